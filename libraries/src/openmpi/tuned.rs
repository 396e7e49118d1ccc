//! Which choices the component coll/tuned can express, and how it defines a message's size: the same in both
//! forms of its rules.

use records::{Algorithm, Collective, Method, Native, Point};

use super::{
    algorithms::{self, LIBRARY},
    forcing::{SWITCH_VARIABLE, as_variable},
    han, sm,
};
use crate::{
    error::{Result, fail},
    exporter::{ALL_BLOCKS, lacks},
    spans::ProcsSpan,
};

pub fn named(algorithm: Algorithm, segment_bytes: u64) -> Method {
    Method::Native(Native { library: LIBRARY, algorithm, segment_bytes })
}

/// The parameter that names a rules file.
pub const RULES_FILE: &str = "coll_tuned_dynamic_rules_filename";

/// The environment variables that make Open MPI load a rules file.
pub fn environment(file: &str) -> Vec<(String, String)> {
    vec![(SWITCH_VARIABLE.to_owned(), "1".to_owned()), (as_variable(RULES_FILE), file.to_owned())]
}

/// How `coll_tuned_decision_dynamic.c` (4.1, 5.0, 6.0) defines the message size, where that is not Colibri's
/// definition.
pub fn message_size(collective: Collective) -> Option<&'static str> {
    match collective {
        Collective::Allgather
        | Collective::Alltoall
        | Collective::ReduceScatter
        | Collective::ReduceScatterBlock => Some(ALL_BLOCKS),
        _ => None,
    }
}

/// Whether a call with MPI_IN_PLACE looks like a message of size 0, whatever its size.
pub fn zero_is_in_place(collective: Collective) -> bool {
    matches!(collective, Collective::Allgather | Collective::Alltoall)
}

pub fn one_for_all_sizes(collective: Collective) -> Option<&'static str> {
    match collective {
        Collective::Gather | Collective::Scatter => Some(
            "Open MPI looks the message up by arguments that are not significant on every rank: \
             with two bands ranks would run different algorithms",
        ),
        Collective::Scan | Collective::Exscan => {
            Some("Open MPI leaves the count out of the message size")
        }
        Collective::Alltoallv => Some("Open MPI treats every message as one of size 0"),
        _ => None,
    }
}

pub fn express(target: &str, point: Point, method: &Method) -> Result<(), String> {
    let Point { collective, layout, bytes } = point;
    let known = algorithms::named(collective);
    let Method::Native(native @ Native { library: LIBRARY, .. }) = method else {
        return Err(lacks(target, collective, method, &known));
    };
    if sm::is(collective, native) {
        return Err(format!(
            "rules of {target} can't name coll/sm; {}=100 runs all of a job's {collective} by it",
            sm::PRIORITY
        ));
    }
    let Some(row) = algorithms::find(collective, native.algorithm) else {
        return Err(lacks(target, collective, method, &known));
    };
    if native.segment_bytes > 0 && !row.segmented {
        return Err(format!("{target} has no segments in {} of {collective}", native.algorithm));
    }
    if native.segment_bytes > u64::from(i32::MAX as u32) {
        return Err(format!("{target} takes segments of at most {} bytes", i32::MAX));
    }
    if algorithms::falls_back(collective, native, layout.procs(), bytes) {
        return Err(format!(
            "{target} would not run {method} for {collective} of {bytes} bytes on {layout}"
        ));
    }
    Ok(())
}

/// A range of message sizes with its algorithm, as both forms write it.
pub struct RuleLine {
    /// The first size of the range, in the library's definition.
    pub from_bytes: u64,
    /// Number of the algorithm; 0 leaves it to the library.
    pub id: u32,
    pub fan_out: u32,
    pub segment_bytes: u64,
}

/// The ranges of message sizes of a span of communicator sizes; `total` says that sizes count the blocks of all ranks.
///
/// # Errors
/// A method that the rules can't name.
pub fn lines(
    collective: Collective,
    span: &ProcsSpan,
    total: bool,
) -> Result<Vec<(RuleLine, &Method)>> {
    let mut lines = Vec::new();
    for range in span.ranges.iter() {
        let (from_bytes, method) = (&range.first_bytes, &range.choice.method);
        let scale = if total { span.first.into() } else { 1 };
        // The library's sizes are signed; no call reaches what lies beyond.
        let within = |bytes: &u64| *bytes <= i64::MAX as u64;
        let Some(mut from_bytes) = from_bytes.checked_mul(scale).filter(within) else { break };
        let (id, fan_out, segment_bytes) = columns(collective, method)?;
        if from_bytes == 0 && id != 0 && zero_is_in_place(collective) {
            let untouched = RuleLine { from_bytes: 0, id: 0, fan_out: 0, segment_bytes: 0 };
            lines.push((untouched, &Method::Default));
            from_bytes = 1;
        }
        lines.push((RuleLine { from_bytes, id, fan_out, segment_bytes }, method));
    }
    Ok(lines)
}

fn columns(collective: Collective, method: &Method) -> Result<(u32, u32, u64)> {
    let native = match method {
        Method::Default => return Ok((0, 0, 0)),
        Method::Native(native) if han::find(collective, native.algorithm).is_some() => {
            return Ok((0, 0, 0));
        }
        Method::Native(native) if native.library == LIBRARY => native,
        _ => fail!("{method} is not an algorithm of Open MPI; its rules cannot name it"),
    };
    let Some(row) = algorithms::find(collective, native.algorithm) else {
        fail!("Open MPI has no {} for {collective}", native.algorithm);
    };
    let fan_out = if native.algorithm == Algorithm::KChain { algorithms::CHAIN_FAN_OUT } else { 0 };
    Ok((row.id, fan_out, native.segment_bytes))
}
