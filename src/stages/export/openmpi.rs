//! Open MPI's classic rules file for component coll/tuned, as 4.0, 4.1 and 5.0 read it.
//!
//! The reader takes whitespace-separated numbers and skips `#` comments. A communicator takes the
//! last section whose size is at most its own, a call the last band whose first byte is at most
//! its message; algorithm 0 leaves the call to the library. So each collective begins with a
//! section 0 and ends with a section past the largest size measured, each section with a band 0,
//! and nothing is claimed outside the grid. (Open MPI 6 reads sections of a classic file shifted
//! by one; it wants the JSON form.)

use anyhow::{Result, bail};
use records::{Algorithm, Collective, Library, Method, Native, Point, openmpi, quantity};
use verification::rules::Band;

use super::{
    Export, Exporter, File, lacks,
    spans::{Span, narrow, spans},
    version::{Versions, numbers},
};
use crate::error::usage;

const VERSIONS: Versions = Versions { target: "Open MPI", known: &[(4, 0), (4, 1), (5, 0)] };

/// The classic form.
pub struct Classic {
    /// The first two numbers of the version.
    version: (u32, u32),
}

impl Classic {
    /// For a version; 4.1's file is 5.0's, too.
    ///
    /// # Errors
    /// The version reads another form.
    pub fn new(version: Option<&str>) -> Result<Self> {
        let version = version.unwrap_or("4.1");
        if let Some((6, 0)) = numbers(version) {
            usage!(
                "Open MPI 6.0 reads the sections of a classic file shifted by one; write its \
                 rules by --format openmpi-json"
            );
        }
        Ok(Classic { version: VERSIONS.read(version)? })
    }
}

impl Exporter for Classic {
    fn target(&self) -> String {
        format!("Open MPI {}.{}", self.version.0, self.version.1)
    }

    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method {
        named(algorithm, segment_bytes)
    }

    fn express(&self, point: Point, method: &Method) -> Result<(), String> {
        express(&self.target(), point, method)
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        openmpi::algorithms(collective).iter().map(|row| row.algorithm).collect()
    }

    fn one_for_all_sizes(&self, collective: Collective) -> Option<&'static str> {
        one_for_all_sizes(collective)
    }

    fn message_size(&self, collective: Collective) -> Option<&'static str> {
        match collective {
            Collective::Allgatherv if self.version == (4, 0) => Some(TOTAL),
            _ => message_size(collective),
        }
    }

    fn files(&self, export: &Export<'_>) -> Result<Vec<File>> {
        let mut text = format!("# coll/tuned rules of {}, written by colibri\n", self.target());
        for line in export.origin {
            text += &format!("# {line}\n");
        }
        text += &format!("{} # collectives\n", export.rules.len());
        for rules in export.rules {
            let Some(id) = openmpi::id(rules.collective) else {
                bail!("Open MPI's rules know no {}", rules.collective);
            };
            let total = self.message_size(rules.collective) == Some(TOTAL);
            let one = one_for_all_sizes(rules.collective).is_some();
            let spans = spans(rules, one)?;
            let spans = if total { narrow(spans) } else { spans };
            let size = self.message_size(rules.collective);
            let size = size.unwrap_or_else(|| rules.collective.message_size());
            text += &format!("{id} # {}; message size: {size}\n", rules.collective);
            text += &format!("{} # communicator sizes\n", spans.len() + 2);
            text += "0 1 # smaller than measured: left to the library\n0 0 0 0\n";
            for span in &spans {
                write_section(&mut text, rules.collective, span, total)?;
            }
            let after = spans.last().map_or(1, |span| span.last + 1);
            text += &format!("{after} 1 # larger than measured: left to the library\n0 0 0 0\n");
        }
        Ok(vec![File { name: String::new(), text }])
    }

    fn how_to_load(&self, file: &str, _: &Export<'_>) -> String {
        let mut text = format!(
            "{}:  mpirun --mca coll_tuned_use_dynamic_rules 1 \
             --mca coll_tuned_dynamic_rules_filename {file} ...\n\
             or for every run:     export OMPI_MCA_coll_tuned_use_dynamic_rules=1 \
             OMPI_MCA_coll_tuned_dynamic_rules_filename={file}",
            if self.version == (4, 1) { "Open MPI 4.1 to 5.0".into() } else { self.target() },
        );
        if self.version != (4, 0) {
            text += "\n(Open MPI 5.0 across nodes: also --mca coll_han_priority 0, or coll/han \
                     takes the call first)";
        }
        text
    }
}

pub(super) fn named(algorithm: Algorithm, segment_bytes: u64) -> Method {
    Method::Native(Native { library: Library::OpenMpi, algorithm, segment_bytes })
}

/// Message sizes that count the blocks of all ranks.
pub(super) const TOTAL: &str = "the blocks of all ranks together";

/// What `coll_tuned_decision_dynamic.c` (4.1, 5.0, 6.0) looks a message up by.
pub(super) fn message_size(collective: Collective) -> Option<&'static str> {
    match collective {
        Collective::Allgather
        | Collective::Alltoall
        | Collective::ReduceScatter
        | Collective::ReduceScatterBlock => Some(TOTAL),
        _ => None,
    }
}

/// Whether a size of 0 is also what MPI_IN_PLACE looks like, whatever the message.
pub(super) fn zero_is_in_place(collective: Collective) -> bool {
    matches!(collective, Collective::Allgather | Collective::Alltoall)
}

pub(super) fn one_for_all_sizes(collective: Collective) -> Option<&'static str> {
    match collective {
        Collective::Gather | Collective::Scatter => Some(
            "Open MPI looks the message up by arguments that are not significant on every rank: \
             with two bands ranks would run different algorithms",
        ),
        Collective::Scan | Collective::Exscan => {
            Some("Open MPI leaves the count out of the message size")
        }
        Collective::Alltoallv => Some("Open MPI takes every message for one of size 0"),
        _ => None,
    }
}

pub(super) fn express(target: &str, point: Point, method: &Method) -> Result<(), String> {
    let Point { collective, procs, bytes } = point;
    let rows = openmpi::algorithms(collective);
    let known: Vec<&str> = rows.iter().map(|row| row.algorithm.name()).collect();
    let Method::Native(native @ Native { library: Library::OpenMpi, .. }) = method else {
        return Err(lacks(target, collective, method, &known));
    };
    let Some(row) = openmpi::find(collective, native.algorithm) else {
        return Err(lacks(target, collective, method, &known));
    };
    if native.segment_bytes > 0 && !row.segmented {
        return Err(format!("{target} has no segments in {} of {collective}", native.algorithm));
    }
    if native.segment_bytes > u64::from(i32::MAX as u32) {
        return Err(format!("{target} takes segments of at most {} bytes", i32::MAX));
    }
    if openmpi::falls_back(collective, native, procs, bytes) {
        return Err(format!(
            "{target} would not run {method} for {collective} of {bytes} bytes on {procs}"
        ));
    }
    Ok(())
}

/// A band as both forms write it.
pub(super) struct Line {
    /// The first size, in what the target counts.
    pub from_bytes: u64,
    /// Number of the algorithm; 0 leaves it to the library.
    pub id: u32,
    pub fan_out: u32,
    pub segment_bytes: u64,
}

/// The bands of a span; `total` says that sizes count the blocks of all ranks.
///
/// # Errors
/// A method that the rules can't name.
pub(super) fn lines(
    collective: Collective,
    span: &Span,
    total: bool,
) -> Result<Vec<(Line, &Method)>> {
    let mut lines = Vec::new();
    for Band { from_bytes, method } in &span.bands {
        let scale = if total { span.first.into() } else { 1 };
        // The library's sizes are signed; no call reaches what lies beyond.
        let within = |bytes: &u64| *bytes <= i64::MAX as u64;
        let Some(mut from_bytes) = from_bytes.checked_mul(scale).filter(within) else { break };
        let (id, fan_out, segment_bytes) = columns(collective, method)?;
        if from_bytes == 0 && id != 0 && zero_is_in_place(collective) {
            let untouched = Line { from_bytes: 0, id: 0, fan_out: 0, segment_bytes: 0 };
            lines.push((untouched, &Method::Default));
            from_bytes = 1;
        }
        lines.push((Line { from_bytes, id, fan_out, segment_bytes }, method));
    }
    Ok(lines)
}

fn columns(collective: Collective, method: &Method) -> Result<(u32, u32, u64)> {
    let native = match method {
        Method::Default => return Ok((0, 0, 0)),
        Method::Native(native) if native.library == Library::OpenMpi => native,
        _ => bail!("{method} is not an algorithm of Open MPI; its rules cannot name it"),
    };
    let Some(row) = openmpi::find(collective, native.algorithm) else {
        bail!("Open MPI has no {} for {collective}", native.algorithm);
    };
    let fan_out = if native.algorithm == Algorithm::KChain { openmpi::CHAIN_FAN_OUT } else { 0 };
    Ok((row.id, fan_out, native.segment_bytes))
}

fn write_section(
    text: &mut String,
    collective: Collective,
    span: &Span,
    total: bool,
) -> Result<()> {
    let lines = lines(collective, span, total)?;
    *text += &format!(
        "{} {} # processes, bands: bytes algorithm fan-out segment\n",
        span.first,
        lines.len()
    );
    for (Line { from_bytes, id, fan_out, segment_bytes }, method) in lines {
        let size = quantity::format_bytes(from_bytes);
        let name = method.short();
        *text += &format!("{from_bytes} {id} {fan_out} {segment_bytes} # from {size}: {name}\n");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use verification::rules::{Rules, Section};

    /// The numbers that Open MPI's reader sees: comments go, the rest is split at blanks.
    fn numbers(text: &str) -> Vec<u64> {
        text.lines()
            .map(|line| line.split('#').next().unwrap_or_default())
            .flat_map(str::split_whitespace)
            .map(|word| word.parse().unwrap())
            .collect()
    }

    fn band(from_bytes: u64, method: &str) -> Band {
        Band { from_bytes, method: method.parse().unwrap() }
    }

    fn written(version: &str, collective: Collective, sections: Vec<Section>) -> Result<String> {
        let rules = [Rules { collective, sections }];
        let origin = ["a test with 3 words".into()];
        let export = Export { rules: &rules, choices: &[], origin: &origin };
        Ok(Classic::new(Some(version))?.files(&export)?.remove(0).text)
    }

    #[test]
    fn nothing_is_claimed_outside_the_grid() {
        let bands = vec![
            band(1, "default"),
            band(3000, "native:openmpi:k-chain,segment=1KiB"),
            band(65536, "native:openmpi:pipeline,segment=8KiB"),
        ];
        let sections = vec![Section { procs: 8, bands, last_bytes: 1 << 20 }];
        let wanted = [
            1, 7, 3, // one collective: bcast, three communicator sizes
            0, 1, 0, 0, 0, 0, // smaller ones
            8, 4, 0, 0, 0, 0, 3000, 2, 4, 1024, 65536, 3, 0, 8192, 1_048_577, 0, 0, 0, // 8
            9, 1, 0, 0, 0, 0, // larger ones
        ];
        assert_eq!(numbers(&written("4.1", Collective::Bcast, sections).unwrap()), wanted);
    }

    /// Sizes over all ranks, a size 0 that may be MPI_IN_PLACE, a method for two ranks only.
    #[test]
    fn allgather_counts_all_blocks_and_leaves_size_0_alone() {
        let two = vec![band(0, "native:openmpi:two-procs"), band(100, "native:openmpi:ring")];
        let four = vec![band(0, "native:openmpi:ring")];
        let sections = vec![
            Section { procs: 2, bands: two, last_bytes: 1000 },
            Section { procs: 4, bands: four, last_bytes: 1000 },
        ];
        let wanted = [
            1, 0, 5, // allgather
            0, 1, 0, 0, 0, 0, // smaller
            2, 4, 0, 0, 0, 0, 1, 6, 0, 0, 200, 4, 0, 0, 2002, 0, 0, 0, // 2
            3, 3, 0, 0, 0, 0, 300, 4, 0, 0, 3003, 0, 0,
            0, // 3: no algorithm for two processes
            4, 3, 0, 0, 0, 0, 1, 4, 0, 0, 4004, 0, 0, 0, // 4
            5, 1, 0, 0, 0, 0, // larger
        ];
        let text = written("5.0", Collective::Allgather, sections).unwrap();
        assert_eq!(numbers(&text), wanted, "{text}");
    }

    #[test]
    fn gather_and_scatter_have_one_band_without_end() {
        for (collective, id) in [(Collective::Gather, 9), (Collective::Scatter, 15)] {
            let bands = vec![band(1, "native:openmpi:binomial")];
            let sections = vec![Section { procs: 4, bands, last_bytes: 1000 }];
            let wanted = [1, id, 3, 0, 1, 0, 0, 0, 0, 4, 1, 0, 2, 0, 0, 5, 1, 0, 0, 0, 0];
            assert_eq!(numbers(&written("4.1", collective, sections).unwrap()), wanted);
        }
    }

    #[test]
    fn what_open_mpi_cannot_run_is_refused() {
        for method in ["own:pipeline", "native:openmpi:rabenseifner", "mockup:bcast_as_scatter"] {
            let bands = vec![band(1, method)];
            let sections = vec![Section { procs: 8, bands, last_bytes: 1 }];
            assert!(written("4.1", Collective::Bcast, sections).is_err(), "{method}");
        }
        let point = Point { collective: Collective::Bcast, procs: 8, bytes: 4 };
        let fails = |method: &str| express("Open MPI", point, &method.parse().unwrap()).is_err();
        assert!(fails("native:openmpi:scatter-allgather"), "fewer elements than processes");
        assert!(fails("native:mpich:binomial"));
        assert!(!fails("native:openmpi:binomial"));
    }

    #[test]
    fn open_mpi_6_does_not_get_a_classic_file() {
        let error = Classic::new(Some("6.0")).err().unwrap().to_string();
        assert!(error.contains("shifted by one") && error.contains("openmpi-json"), "{error}");
        assert!(Classic::new(Some("4.0.7")).is_ok());
        assert!(Classic::new(Some("3.1")).is_err());
        assert!(Classic::new(Some("x")).is_err());
    }

    /// What is written is read back as the library reads it: at every point that was decided the
    /// method decided for, outside of them the default.
    #[test]
    fn the_file_says_at_every_point_what_was_decided() {
        use verification::{rules::rules, selection::Choice};
        let names = ["default", "native:openmpi:pipeline,segment=1KiB", "native:openmpi:binomial"];
        for collective in [Collective::Bcast, Collective::Allreduce, Collective::Allgather] {
            let mut choices = Vec::new();
            for (procs, bytes) in [2, 3, 8].into_iter().flat_map(|p| (0..=20).map(move |b| (p, b)))
            {
                let mut methods = vec![Method::Default];
                methods.extend(names.iter().map(|name| name.parse().unwrap()));
                methods.extend(openmpi::methods(collective, &[0, 1024], procs, 1 << bytes));
                let point = Point { collective, procs, bytes: 1 << bytes };
                methods.retain(|method| {
                    *method == Method::Default
                        || express("Open MPI", point, method).is_ok()
                            && method.segment_bytes() < point.bytes
                });
                let method = methods[(procs as usize * 7 + bytes * 5) % methods.len()].clone();
                choices.push(Choice { point, method, seconds: 1.0, default_seconds: 1.0 });
            }
            let rules = rules(&choices, &|_, _, _, _, _, _| None);
            let export = Export { rules: &rules, choices: &choices, origin: &[] };
            let text = Classic::new(None).unwrap().files(&export).unwrap().remove(0).text;
            let read = openmpi::rules::parse(&text, std::path::Path::new("x.rules")).unwrap();
            for choice in &choices {
                let Point { procs, .. } = choice.point;
                assert_eq!(
                    read.method(choice.point).as_ref(),
                    Ok(&choice.method),
                    "{procs}\n{text}"
                );
            }
            for (procs, bytes) in [(1, 64), (9, 64), (8, 1 << 21)] {
                let point = Point { collective, procs, bytes };
                assert_eq!(read.method(point), Ok(Method::Default));
            }
        }
    }
}
