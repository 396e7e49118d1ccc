//! Tokens of UCC's tune string for its component tl/ucp.
//!
//! Tokens are joined by `#`, fields of a token by `:`: collective, message range (the upper end
//! does not belong to it), team sizes (both ends do), `@` and the algorithm. What no token holds
//! keeps UCC's own choice. One wrong token drops the whole string.

use records::{Collective, Method};

use super::algorithms::name;
use crate::{
    error::{Result, fail},
    exporter::ALL_BLOCKS,
    spans::ProcsSpan,
};

/// Whether UCC takes the blocks of all ranks together for the size of a message
/// (`ucc_coll_args_msgsize`).
pub fn counts_all_blocks(collective: Collective) -> bool {
    matches!(collective, Collective::Allgather | Collective::Allgatherv | Collective::Alltoall)
}

/// What that is, where it is not Colibri's.
pub fn message_size(collective: Collective) -> Option<&'static str> {
    counts_all_blocks(collective).then_some(ALL_BLOCKS)
}

/// The tokens of a span of team sizes. `teams` are the sizes to name in them, where what they stand in does
/// not name them.
///
/// # Errors
/// A method that UCC does not have.
pub fn tokens(
    collective: Collective,
    span: &ProcsSpan,
    teams: Option<(u32, u32)>,
) -> Result<Vec<String>> {
    let scale = if counts_all_blocks(collective) { u64::from(span.first) } else { 1 };
    let teams = teams.map_or(String::new(), |(first, last)| format!(":[{first}-{last}]"));
    let mut tokens = Vec::new();
    for range in span.ranges.iter() {
        let method = &range.choice.method;
        let name = match method {
            Method::Default => continue,
            Method::Own(own) if own.is_plain() => name(collective, own.algorithm),
            _ => None,
        };
        let Some(name) = name else {
            fail!("{method} is not an algorithm of UCC for {collective}");
        };
        let size = |bytes: u64| size(bytes.saturating_mul(scale));
        let end = range.next_bytes().map_or("inf".into(), size);
        let first = size(range.first_bytes);
        tokens.push(format!("{collective}:{first}-{end}{teams}:@{name}"));
    }
    Ok(tokens)
}

/// A number of bytes as short as UCC reads it.
fn size(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        _ => bytes.to_string(),
    }
}
