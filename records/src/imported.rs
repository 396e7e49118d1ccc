//! What is kept of other tools' measurements beside the times of collectives: messages between
//! pairs of ranks, and the further statistics of a summary.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Collective, Layout, Method, Point, observation::ObservationStatus, record::Row};

/// The statistic of a time that is the mean over all ranks, and over repetitions: what OSU's benchmarks tell. The
/// time until the last rank is done is longer.
pub const MEAN_OVER_RANKS: &str = "mean over repetitions and ranks";

/// Which way messages go between the ranks of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamDirection {
    /// A message there and one of the same size back.
    PingPong,
    /// Messages in a row from the first to the second, then a short answer.
    OneWay,
    /// Messages in a row both ways at once, then a short answer.
    BothWays,
}

/// The time of messages between pairs of ranks, each pair's ranks on two nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairStreams {
    /// Which way they go.
    pub direction: StreamDirection,
    /// Pairs that do the same at once.
    pub pairs: u32,
    /// Bytes of a message.
    pub bytes: u64,
    /// Messages in a row, of each pair and each way.
    pub messages: u32,
    /// The job that made it: the first that was read is 1.
    pub job: u32,
    /// The statistic that the time is, such as `mean`.
    pub statistic: String,
    /// The time of all messages; of a ping-pong there and back.
    pub seconds: f64,
    /// How it was made.
    pub status: ObservationStatus,
}

impl Row for PairStreams {
    const SCHEMA: &'static str = "colibri/pair-streams/1";
    const COLUMNS: &'static [&'static str] =
        &["direction", "pairs", "bytes", "messages", "job", "statistic", "seconds", "status"];

    fn numbers(&self) -> impl IntoIterator<Item = (&'static str, f64)> {
        [("seconds", self.seconds)]
    }

    fn counts(&self) -> impl IntoIterator<Item = (&'static str, u32)> {
        [("pairs", self.pairs), ("messages", self.messages), ("job", self.job)]
    }
}

/// A statistic of a summary that is not the one taken as its time.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherStatistic {
    /// The job that made it, from 1.
    pub job: u32,
    pub point: Point,
    /// By which method.
    pub method: Method,
    /// Repetitions summed up; 0 where that is not given.
    pub repetitions: u32,
    /// Which statistic: `mean`, `least`, `quantile 0.9`.
    pub statistic: String,
    pub seconds: f64,
    /// How it was made.
    pub status: ObservationStatus,
}

/// The fields by the columns' order.
type Columns<Method, Statistic> =
    (u32, Collective, Method, Layout, u64, u32, Statistic, f64, ObservationStatus);

impl Serialize for OtherStatistic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Point { collective, layout, bytes } = self.point;
        let columns: Columns<&Method, &str> = (
            self.job,
            collective,
            &self.method,
            layout,
            bytes,
            self.repetitions,
            &self.statistic,
            self.seconds,
            self.status,
        );
        columns.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OtherStatistic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let columns = Columns::<Method, String>::deserialize(deserializer)?;
        let (job, collective, method, layout, bytes, repetitions, statistic, seconds, status) =
            columns;
        let point = Point { collective, layout, bytes };
        Ok(OtherStatistic { job, point, method, repetitions, statistic, seconds, status })
    }
}

impl Row for OtherStatistic {
    const SCHEMA: &'static str = "colibri/statistics/1";
    const COLUMNS: &'static [&'static str] = &[
        "job",
        "collective",
        "method",
        "procs",
        "bytes",
        "repetitions",
        "statistic",
        "seconds",
        "status",
    ];

    fn numbers(&self) -> impl IntoIterator<Item = (&'static str, f64)> {
        [("seconds", self.seconds)]
    }

    fn counts(&self) -> impl IntoIterator<Item = (&'static str, u32)> {
        [("job", self.job), ("procs", self.point.procs())]
    }
}
