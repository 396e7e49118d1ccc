//! UCC's tune string for its component tl/ucp.
//!
//! Tokens are joined by `#`, fields of a token by `:`: collective, message range (the upper end
//! does not belong to it), team sizes (both ends do), `@` and the algorithm. What no token holds
//! keeps UCC's own choice. One wrong token drops the whole string.

use records::{Algorithm, Collective, Method, Point};

use super::algorithms::{self, name};
use crate::{
    error::{Result, fail},
    exporter::{Export, Exporter, File, lacks},
    rules::BytesRange,
    spans::{ProcsSpan, narrow, spans},
    version::Versions,
};

const VERSIONS: Versions = Versions { target: "UCC", known: &[(1, 3)] };

/// The string in a shell script.
pub struct TuneString;

impl TuneString {
    /// For a version.
    ///
    /// # Errors
    /// The version's algorithms are not known.
    pub fn new(version: Option<&str>) -> Result<Self> {
        version.map(|version| VERSIONS.read(version)).transpose()?;
        Ok(TuneString)
    }
}

/// What UCC takes for the size of a message (`ucc_coll_args_msgsize`).
fn counts_all_blocks(collective: Collective) -> bool {
    matches!(collective, Collective::Allgather | Collective::Allgatherv | Collective::Alltoall)
}

/// What that is, where it is not Colibri's.
pub fn message_size(collective: Collective) -> Option<&'static str> {
    counts_all_blocks(collective).then_some("the blocks of all ranks together")
}

impl Exporter for TuneString {
    fn target(&self) -> String {
        "UCC 1.3".into()
    }

    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method {
        Method::Own { algorithm, segment_bytes }
    }

    fn express(&self, point: Point, method: &Method) -> Result<(), String> {
        let collective = point.collective;
        match method {
            Method::Own { segment_bytes: 1.., .. } => {
                Err(format!("UCC takes no segment size ({method} for {collective})"))
            }
            Method::Own { algorithm, .. } if name(collective, *algorithm).is_some() => Ok(()),
            _ => Err(lacks(&self.target(), collective, method, &algorithms::named(collective))),
        }
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        algorithms::named(collective)
    }

    fn message_size(&self, collective: Collective) -> Option<&'static str> {
        message_size(collective)
    }

    fn files(&self, export: &Export<'_>) -> Result<Vec<File>> {
        let mut tokens = Vec::new();
        for rules in export.rules {
            let total = counts_all_blocks(rules.collective);
            let spans = spans(rules, false)?;
            for span in if total { narrow(spans) } else { spans } {
                self::tokens(&mut tokens, rules.collective, &span, total)?;
            }
        }
        let mut text = format!("# Algorithms for {}, written by colibri\n", self.target());
        for line in export.origin {
            text += &format!("# {line}\n");
        }
        text += &format!("export UCC_TL_UCP_TUNE='{}'\n", tokens.join("#"));
        Ok(vec![File { name: String::new(), text }])
    }

    fn how_to_load(&self, file: &str, _: &Export<'_>) -> String {
        format!(
            "UCC 1.3:  . {file}, then start the program; in Open MPI: mpirun --mca coll_ucc_enable \
             1 --mca coll_ucc_priority 100 -x UCC_TL_UCP_TUNE ...\n\
             (UCC prints \"failed to parse\" and ignores all of it where a version lacks an \
             algorithm)"
        )
    }
}

fn tokens(
    tokens: &mut Vec<String>,
    collective: Collective,
    span: &ProcsSpan,
    total: bool,
) -> Result<()> {
    let scale = if total { u64::from(span.first) } else { 1 };
    for (index, BytesRange { from_bytes, method, .. }) in span.bands.iter().enumerate() {
        let name = match method {
            Method::Default => continue,
            Method::Own { algorithm, .. } => name(collective, *algorithm),
            _ => None,
        };
        let Some(name) = name else {
            fail!("{method} is not an algorithm of UCC for {collective}");
        };
        let next = span.bands.get(index + 1);
        let end =
            next.map_or("inf".into(), |next| next.from_bytes.saturating_mul(scale).to_string());
        tokens.push(format!(
            "{collective}:{}-{end}:[{}-{}]:@{name}",
            from_bytes.saturating_mul(scale),
            span.first,
            span.last
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{ProcsRange, Rules};

    #[test]
    fn tokens_follow_the_grammar_and_do_not_overlap() {
        let band = |from_bytes, method: &str| BytesRange::new(from_bytes, method.parse().unwrap());
        let bands = vec![
            band(1, "own:k-nomial"),
            band(1000, "default"),
            band(4096, "own:scatter-allgather"),
        ];
        let ring = vec![band(1, "own:ring")];
        let rules = [
            Rules {
                collective: Collective::Bcast,
                sections: vec![ProcsRange { layout: 4_u32.into(), bands, last_bytes: 8191 }],
            },
            Rules {
                collective: Collective::Allgather,
                sections: vec![ProcsRange { layout: 4_u32.into(), bands: ring, last_bytes: 99 }],
            },
        ];
        let export = Export { rules: &rules, origin: &["x".into()] };
        let text = TuneString.files(&export).unwrap().remove(0).text;
        let wanted = "export UCC_TL_UCP_TUNE='bcast:1-1000:[4-4]:@knomial#\
                      bcast:4096-8192:[4-4]:@sag_knomial#allgather:4-400:[4-4]:@ring'\n";
        assert!(text.ends_with(wanted), "{text}");
        let point = Point::flat(Collective::Bcast, 4, 1);
        assert!(TuneString.express(point, &"own:k-nomial,segment=1KiB".parse().unwrap()).is_err());
        assert!(TuneString.express(point, &"own:linear".parse().unwrap()).is_err());
        assert!(TuneString::new(Some("1.2")).is_err());
    }
}
