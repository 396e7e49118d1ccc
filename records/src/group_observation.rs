//! Raw observations of more than two ranks, and of one rank's own work: what the parameters that
//! two ranks cannot show are fitted to.

use serde::{Deserialize, Serialize};

use crate::{calibration::Operation, observation::ObservationStatus, record::Row};

/// What was timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupKind {
    /// `messages` flat-tree barriers in a row: everybody sends an empty message to the root, which
    /// then sends one to everybody. Timed at the root.
    FlatBarrier,
    /// [`Self::FlatBarrier`] with receives from all at the root, which are posted together and waited for at once.
    PostedBarrier,
    /// A message of `bytes` handed from rank to rank, an empty one from the last to the root;
    /// timed at the root.
    ChainBcast,
    /// `messages` rounds in which the root sends a message of `bytes` to each of the others at
    /// once, then an empty one back from each; timed at the root.
    FanOut,
    /// An empty message from the root to each of the others, which then send it `messages`
    /// messages of `bytes` each, all at once; timed at the root.
    FanIn,
    /// The root sends a message of `bytes` to each of the others at once, and the first of them an empty one
    /// back; timed at the root until that is there.
    FirstServed,
    /// Pairs of ranks of two nodes, half as many as ranks take part: at once the first of each sends
    /// the other `messages` messages of `bytes`; timed until the root knows that all are there.
    PairStreams,
    /// [`Self::PairStreams`] with both ranks of each pair sending.
    PairExchanges,
    /// `messages` rounds among `procs` ranks of a node. In each, every rank sends a message of `bytes` to one
    /// rank and receives one from another; both are others in the next round, which begins when both messages
    /// are through. Timed until the root knows that all have.
    Shifts,
    /// Each of `procs` ranks of a node copies `bytes` within its memory `messages` times, all at once; timed
    /// until the root knows that all have.
    Copies,
    /// `messages` barriers of `procs` ranks of a node by flags in memory that they share (`shared-flags`); timed
    /// until the root knows that all have ended.
    SharedFlags,
    /// `messages` rounds among `procs` ranks of a node: the root writes `bytes` to memory that they share, all others
    /// copy them at once (`shared-cells`), and a barrier as in [`GroupKind::SharedFlags`] follows; timed as that.
    SharedReads,
    /// `messages` calls of `MPI_Reduce_local` on `bytes`, on one rank alone.
    Combine,
    /// Every rank sends a message of `bytes` to the next and receives one from the one before, all
    /// from an agreed instant on; timed from the first start to the last end.
    Ring,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupObservation {
    /// What was timed.
    pub kind: GroupKind,
    /// What combines, of kind `combine`; elsewhere nothing.
    pub operation: Option<Operation>,
    /// Ranks that took part, the root among them.
    pub procs: u32,
    /// Bytes of one message.
    pub bytes: u64,
    /// Barriers, rounds or calls in a row; 1 elsewhere.
    pub messages: u32,
    /// The job (one start of the launcher) that made it, from 0.
    pub job: u32,
    /// The visit, counted over the whole record: what was observed of one thing at one go.
    pub visit: u32,
    /// Counts from 0 for each (kind, operation, procs, bytes, messages), warm-ups included.
    pub repetition: u32,
    /// What the clock said, its own cost not subtracted.
    pub seconds: f64,
    /// How it was made.
    pub status: ObservationStatus,
}

impl Row for GroupObservation {
    const SCHEMA: &'static str = "colibri/group-observations/2";
    const COLUMNS: &'static [&'static str] = &[
        "kind",
        "operation",
        "procs",
        "bytes",
        "messages",
        "job",
        "visit",
        "repetition",
        "seconds",
        "status",
    ];

    fn numbers(&self) -> impl IntoIterator<Item = (&'static str, f64)> {
        [("seconds", self.seconds)]
    }

    fn counts(&self) -> impl IntoIterator<Item = (&'static str, u32)> {
        [("procs", self.procs), ("messages", self.messages)]
    }

    fn disturb(&mut self) {
        self.status.disturb();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record;

    #[test]
    fn an_operation_may_be_absent() {
        let text = "#@schema=colibri/group-observations/2\n\
                    kind,operation,procs,bytes,messages,job,visit,repetition,seconds,status\n\
                    flat-barrier,,4,0,8,0,0,1,0.001,ok\n\
                    combine,sum-double,1,64,1024,1,7,0,0.5,warmup\n";
        let record = record::parse::<GroupObservation>(text, std::path::Path::new("x")).unwrap();
        let operations: Vec<_> = record.rows.iter().map(|row| row.operation).collect();
        assert_eq!(operations, [None, Some(Operation::SumDouble)]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("groups.csv");
        let mut writer = record::Writer::open(&path, &std::collections::BTreeMap::new()).unwrap();
        record.rows.iter().for_each(|row| writer.append(row).unwrap());
        assert_eq!(record::read::<GroupObservation>(&path).unwrap().rows, record.rows);
    }
}
