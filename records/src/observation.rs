//! The raw observations: nothing averaged, nothing dropped.

use serde::{Deserialize, Serialize};

use crate::{Collective, Method, plan::Cell, record::Row};

/// How an observation was made; the last column of every record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// As planned.
    Ok,
    /// The first of its kind, which pays for connections and caches; kept, not judged.
    Warmup,
    /// A rank came late to the agreed start.
    Late,
}

/// What was timed between two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PointToPointKind {
    /// Two readings of the clock with nothing between them.
    Clock,
    /// A message of `bytes` forward, an empty one back; timed at the sender.
    RoundTrip,
    /// The call of MPI_Send alone.
    SendOverhead,
    /// The call of MPI_Recv alone, the message having arrived before.
    ReceiveOverhead,
    /// `messages` messages of `bytes` in a row, then one empty acknowledgement; timed at the sender
    /// from the first send to the acknowledgement.
    Train,
    /// `messages` messages of `bytes` with a wait before each but the first, then one of `bytes`
    /// back (Netgauge's PRTT); timed at the sender, without the waits.
    SpacedTrain,
}

/// One observation between two ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointToPoint {
    /// What was timed.
    pub kind: PointToPointKind,
    /// World rank that sends the `bytes`.
    pub sender: u32,
    /// World rank that receives them.
    pub receiver: u32,
    /// Bytes of one message.
    pub bytes: u64,
    /// Messages in the train; 1 elsewhere.
    pub messages: u32,
    /// The job (one start of the launcher) that made it, from 0.
    pub job: u32,
    /// The visit, counted over the whole record: what was observed of one thing at one go. The
    /// state of the machine differs between visits more than within one.
    pub visit: u32,
    /// Counts from 0 for each (kind, bytes, messages), warm-ups included.
    pub repetition: u32,
    /// What the clock said, its own cost not subtracted.
    pub seconds: f64,
    /// How it was made.
    pub status: Status,
}

impl Row for PointToPoint {
    const SCHEMA: &'static str = "colibri/observations/2";
    const COLUMNS: &'static [&'static str] = &[
        "kind",
        "sender",
        "receiver",
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
        [("messages", self.messages)]
    }
}

/// One timed call of a collective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectiveCall {
    /// Index of the visit in the plan that asked for it.
    pub visit: u32,
    /// The collective.
    pub collective: Collective,
    /// The method asked for.
    pub method: Method,
    /// What the tracer saw run, outermost first, such as `bcast_intra_pipeline(segment=8192)`;
    /// empty where nothing could be seen.
    pub ran: String,
    /// Processes in the communicator.
    pub procs: u32,
    /// Message size; see [`Collective::message_size`].
    pub bytes: u64,
    /// Counts from 0 within the visit, warm-ups included.
    pub repetition: u32,
    /// When the first rank entered the call, in seconds after the agreed start (scheme `global`; else 0).
    pub first_start_seconds: f64,
    /// When the last rank entered the call, in seconds after that (scheme `barrier`: after the first).
    pub last_start_seconds: f64,
    /// The time of the call by the record's timing scheme (header `timing`).
    pub seconds: f64,
    /// How it was made.
    pub status: Status,
}

impl CollectiveCall {
    /// The first call of the first visit, of which nothing is known but what took how many seconds:
    /// what tests and simulated benches observe.
    pub fn timed(cell: &Cell, seconds: f64) -> Self {
        CollectiveCall {
            visit: 0,
            collective: cell.collective,
            method: cell.method.clone(),
            ran: String::new(),
            procs: cell.procs,
            bytes: cell.bytes,
            repetition: 0,
            first_start_seconds: 0.0,
            last_start_seconds: 0.0,
            seconds,
            status: Status::Ok,
        }
    }
}

impl Row for CollectiveCall {
    const SCHEMA: &'static str = "colibri/measurements/1";
    const COLUMNS: &'static [&'static str] = &[
        "visit",
        "collective",
        "method",
        "ran",
        "procs",
        "bytes",
        "repetition",
        "first_start_seconds",
        "last_start_seconds",
        "seconds",
        "status",
    ];

    fn numbers(&self) -> impl IntoIterator<Item = (&'static str, f64)> {
        [
            ("first_start_seconds", self.first_start_seconds),
            ("last_start_seconds", self.last_start_seconds),
            ("seconds", self.seconds),
        ]
    }

    fn counts(&self) -> impl IntoIterator<Item = (&'static str, u32)> {
        [("procs", self.procs)]
    }
}

/// How far a rank's global clock was from rank 0's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockError {
    /// The rank.
    pub rank: u32,
    /// Since its clock was last synchronised.
    pub seconds_after: f64,
    /// The shortest way there and back when it was compared.
    pub round_trip_seconds: f64,
    /// Its global clock less rank 0's by that comparison, which is uncertain by half the round
    /// trip.
    pub seen_error_seconds: f64,
    /// The same exactly, where the kernel's clock is shared and the ranks' own are false.
    pub true_error_seconds: Option<f64>,
    /// How fast its own clock goes away from rank 0's, in parts per million.
    pub drift_ppm: f64,
    /// How it was made.
    pub status: Status,
}

impl Row for ClockError {
    const SCHEMA: &'static str = "colibri/clock-errors/1";
    const COLUMNS: &'static [&'static str] = &[
        "rank",
        "seconds_after",
        "round_trip_seconds",
        "seen_error_seconds",
        "true_error_seconds",
        "drift_ppm",
        "status",
    ];

    fn numbers(&self) -> impl IntoIterator<Item = (&'static str, f64)> {
        [
            ("seconds_after", self.seconds_after),
            ("round_trip_seconds", self.round_trip_seconds),
            ("seen_error_seconds", self.seen_error_seconds),
            ("true_error_seconds", self.true_error_seconds.unwrap_or(0.0)),
            ("drift_ppm", self.drift_ppm),
        ]
    }

    fn counts(&self) -> impl IntoIterator<Item = (&'static str, u32)> {
        []
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_status_begins_another() {
        let names = ["ok", "warmup", "late"];
        for name in names {
            assert!(serde_json::from_str::<Status>(&format!("\"{name}\"")).is_ok());
            assert_eq!(names.iter().filter(|other| other.starts_with(name)).count(), 1);
        }
    }
}
