use std::collections::HashMap;

use records::{Collective, FileError, imported::StreamDirection};

use crate::{
    lines::Lines,
    rows::{Job, Sink},
};

/// Messages in a row of its bandwidth tests, where a title does not tell them.
pub(super) const WINDOW: u32 = 64;

/// What a table of the OSU micro-benchmarks holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum OsuTest {
    Latency,
    Bandwidth(StreamDirection),
    MessageRate {
        pairs: u32,
        window: u32,
    },
    Collective(Collective),
    /// Not read.
    Other,
}

/// The titles of a file.
pub(super) struct OsuTitles {
    job: Job,
    /// How often each came, without its version: two versions in a log are two starts.
    starts: HashMap<String, u32>,
    /// The first that is not read.
    pub(super) unread: Option<FileError>,
    /// Where the buffers of the first are: nothing of the host's memory, `CUDA`; and what a line under its title
    /// says of both sides.
    buffers: [Option<String>; 2],
}

impl OsuTitles {
    pub(super) fn new(job: Job) -> Self {
        OsuTitles { job, starts: HashMap::new(), unread: None, buffers: [None, None] }
    }

    /// What stands under a title, of a new job where it came before.
    pub(super) fn begin(
        &mut self,
        title: &str,
        lines: &Lines<'_>,
        sink: &mut dyn Sink,
    ) -> Result<OsuTest, FileError> {
        let (test, accelerator) = match test(title) {
            Ok(read) => read,
            Err(problem) => {
                sink.note(&format!("left out: {problem}"));
                self.unread.get_or_insert_with(|| lines.fault(problem));
                return Ok(OsuTest::Other);
            }
        };
        if self.are_elsewhere(0, accelerator) {
            sink.note(&format!(
                "left out: in {} buffers are in another memory than in the test before",
                records::quoted(title)
            ));
            return Ok(OsuTest::Other);
        }
        if !accelerator.is_empty() {
            sink.note(&format!("{accelerator}: buffers may be in memory of GPUs"));
        }
        let starts = self.starts.entry(without_version(title).to_owned()).or_default();
        *starts += 1;
        if *starts > 1 && matches!(test, OsuTest::Collective(_)) {
            sink.note(&format!(
                "{}: {} stands there again: each time is taken as a job of as many ranks",
                lines.path().display(),
                records::quoted(title)
            ));
        }
        let mut job = self.job.started(*starts);
        if !accelerator.is_empty() {
            job.settings.push(format!("accelerator={accelerator}"));
            accelerator.clone_into(&mut job.memory);
        }
        sink.job(lines.number(), &job)?;
        Ok(test)
    }

    /// Whether a line under a title tells of other memory than the first such line did:
    /// `Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)`.
    pub(super) fn is_other_memory(&mut self, comment: &str, sink: &mut dyn Sink) -> bool {
        let comment = comment.trim();
        let is_other = comment.starts_with("Send Buffer on ") && self.are_elsewhere(1, comment);
        if is_other {
            sink.note(&format!(
                "left out: {} is another memory than in the test before",
                records::quoted(comment)
            ));
        }
        is_other
    }

    fn are_elsewhere(&mut self, kind: usize, buffers: &str) -> bool {
        *self.buffers[kind].get_or_insert_with(|| buffers.to_owned()) != *buffers
    }
}

/// A title without what stands behind it: `MPI Allreduce Latency Test v5.6.2`.
fn without_version(title: &str) -> &str {
    title.rsplit_once(" v").map_or(title, |(title, _)| title).trim()
}

/// What a title stands over, and what holds the buffers where the host's memory does not:
/// `MPI-CUDA Allreduce Latency Test v5.6.2`.
fn test(title: &str) -> Result<(OsuTest, &str), String> {
    let title = without_version(title);
    let other = || {
        format!(
            "{} is not a test that Colibri reads: expected latency, bandwidth, message rate or a \
             blocking collective of MPI",
            records::quoted(title)
        )
    };
    let (programming, name) = title.split_once(' ').unwrap_or_default();
    let accelerator = match programming.strip_prefix("MPI") {
        Some("") => "",
        Some(behind) if behind.starts_with('-') => &behind[1..],
        _ => return Err(other()),
    };
    let (accelerator, name) = match name.split_once(' ') {
        Some((managed @ "MANAGED", name)) => (managed, name),
        _ => (accelerator, name),
    };
    let name = name.strip_suffix("Test").unwrap_or(name).trim();
    let test = match name {
        "Latency" => OsuTest::Latency,
        "Bandwidth" => OsuTest::Bandwidth(StreamDirection::OneWay),
        "Bi-Directional Bandwidth" => OsuTest::Bandwidth(StreamDirection::BothWays),
        "Multiple Bandwidth / Message Rate" => OsuTest::MessageRate { pairs: 0, window: WINDOW },
        _ => {
            let of = name.strip_suffix("Latency").unwrap_or(name).trim();
            OsuTest::Collective(match of {
                "Broadcast" => Collective::Bcast,
                "All-to-All Personalized Exchange" => Collective::Alltoall,
                "All-to-Allv Personalized Exchange" => Collective::Alltoallv,
                // Its size is the vector in some versions and the block in others.
                "Reduce_scatter_block" => {
                    return Err("the size of osu_reduce_scatter_block is not the same in all \
                                versions; import osu_reduce_scatter instead"
                        .into());
                }
                of => of.to_ascii_lowercase().parse().map_err(|_| other())?,
            })
        }
    };
    Ok((test, accelerator))
}
