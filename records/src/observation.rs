//! The raw observations: nothing averaged, nothing dropped.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Collective, Layout, Method, Point, plan::Cell, record::Row};

/// How an observation was made; the last column of every record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObservationStatus {
    Ok,
    /// The first of its kind, which pays for connections and caches; kept, not judged.
    Warmup,
    /// A rank came late to the agreed start.
    Late,
    /// Others took too much of the processors meanwhile, as the record says
    /// ([`disturbance`](crate::disturbance)); kept, made again, not judged where there is anything else.
    Disturbed,
}

impl ObservationStatus {
    /// Others took too much of the processors meanwhile; of a warm-up nothing is used in any case.
    pub fn disturb(&mut self) {
        if *self != ObservationStatus::Warmup {
            *self = ObservationStatus::Disturbed;
        }
    }
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
    /// Half of the time for a message of `bytes` forward and one of `bytes` back.
    PingPong,
    /// Half of the time for a message of `bytes` forward and one back, by MPI_Scatter and MPI_Gather among the two.
    ScatterGather,
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
    pub status: ObservationStatus,
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

    fn disturb(&mut self) {
        self.status.disturb();
    }
}

/// One timed call of a collective.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveCall {
    /// Index of the visit in the plan that asked for it.
    pub visit: u32,
    /// What was called, on which ranks, with how many bytes.
    pub point: Point,
    /// The method asked for.
    pub method: Method,
    /// What the tracer saw run, outermost first, such as `bcast_intra_pipeline,segment=8KiB`;
    /// empty where nothing could be seen.
    pub ran: String,
    /// Counts from 0 within the visit, warm-ups included.
    pub repetition: u32,
    /// When the first rank entered the call, in seconds after the agreed start (scheme `global`; else 0).
    pub first_start_seconds: f64,
    /// When the last rank entered the call, in seconds after that (scheme `barrier`: after the first).
    pub last_start_seconds: f64,
    /// The time of the call by the record's timing scheme (header `timing`).
    pub seconds: f64,
    /// How it was made.
    pub status: ObservationStatus,
}

impl CollectiveCall {
    /// The first call of the first visit, of which nothing is known but what took how many seconds:
    /// what tests and simulated benches observe.
    pub fn timed(cell: &Cell, seconds: f64) -> Self {
        CollectiveCall {
            visit: 0,
            point: cell.point,
            method: cell.method.clone(),
            ran: String::new(),
            repetition: 0,
            first_start_seconds: 0.0,
            last_start_seconds: 0.0,
            seconds,
            status: ObservationStatus::Ok,
        }
    }
}

/// The fields by the columns' order: CSV has no structures, and a point's fields do not stand together.
type Columns<Method, Ran> =
    (u32, Collective, Method, Ran, Layout, u64, u32, f64, f64, f64, ObservationStatus);

impl Serialize for CollectiveCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Point { collective, layout, bytes } = self.point;
        let columns: Columns<&Method, &str> = (
            self.visit,
            collective,
            &self.method,
            &self.ran,
            layout,
            bytes,
            self.repetition,
            self.first_start_seconds,
            self.last_start_seconds,
            self.seconds,
            self.status,
        );
        columns.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CollectiveCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let columns = Columns::<Method, String>::deserialize(deserializer)?;
        let (
            visit,
            collective,
            method,
            ran,
            layout,
            bytes,
            repetition,
            first,
            last,
            seconds,
            status,
        ) = columns;
        Ok(CollectiveCall {
            visit,
            point: Point { collective, layout, bytes },
            method,
            ran,
            repetition,
            first_start_seconds: first,
            last_start_seconds: last,
            seconds,
            status,
        })
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

    fn time(&self) -> Option<(&'static str, f64)> {
        (self.status == ObservationStatus::Ok).then_some(("seconds", self.seconds))
    }

    fn counts(&self) -> impl IntoIterator<Item = (&'static str, u32)> {
        [("procs", self.point.procs())]
    }

    fn disturb(&mut self) {
        self.status.disturb();
    }
}

/// How far a rank's global clock was from rank 0's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockError {
    pub rank: u32,
    /// Since its clock was last synchronised.
    pub seconds_after: f64,
    /// The shortest way there and back when it was compared.
    pub round_trip_seconds: f64,
    /// Its global clock less rank 0's by that comparison, which is uncertain by half the round
    /// trip.
    pub seen_error_seconds: f64,
    /// The error of its global clock exactly, where the kernel's clock is shared and the ranks' own are false.
    pub true_error_seconds: Option<f64>,
    /// How fast its own clock goes away from rank 0's, in parts per million.
    pub drift_ppm: f64,
    /// How it was made.
    pub status: ObservationStatus,
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

/// The outermost function of a call as a tracer writes it: `bcast_intra_chain` of `bcast_intra_chain,segment=1KiB`.
///
/// Older records have `bcast_intra_chain(segment=1024)`, of which the function alone is read.
pub fn traced_function(call: &str) -> &str {
    call.split(['>', ',', '(']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two calls in a calm stretch, two while a third of the processors was stolen, one of which nothing is
    /// known as the program was killed, and two in a calm stretch again.
    #[test]
    fn observations_are_marked_by_what_the_record_tells_of_their_stretch() {
        let stretch = |stolen: &str| {
            format!(
                "#@disturbance={{\"seconds\":0.5,\"host\":\"n1\",\"processors\":2,\"ranks\":8,\
                 \"stolen\":{stolen},\"others\":null,\"involuntary_switches\":7,\"load\":2.5}}\n"
            )
        };
        let call = |repetition: u32, status: &str| {
            format!("0,bcast,default,,8,64,{repetition},0.0,0.0,0.001,{status}\n")
        };
        let head = format!(
            "#@schema={}\n#@ranks=8\n{}\n",
            CollectiveCall::SCHEMA,
            CollectiveCall::COLUMNS.join(",")
        );
        let text = [
            head,
            call(0, "warmup") + &call(1, "ok") + &stretch("0.01"),
            call(2, "warmup") + &call(3, "ok") + &call(4, "late") + &stretch("0.33"),
            call(5, "ok") + "#@resumed\n",
            call(6, "ok") + &stretch("0.4") + &call(7, "ok") + &stretch("null"),
        ];
        let path = std::path::Path::new("m.csv");
        let record = crate::record::parse::<CollectiveCall>(&text.concat(), path).unwrap();
        let found: Vec<ObservationStatus> = record.rows.iter().map(|row| row.status).collect();
        use ObservationStatus::{Disturbed, Ok, Warmup};
        assert_eq!(found, [Warmup, Ok, Warmup, Disturbed, Disturbed, Ok, Disturbed, Ok]);
        assert_eq!(record.stretches.len(), 4);
        assert_eq!(record.stretches[3].taken(), None, "not known, and not 0");
        assert_eq!(record.header.keys().collect::<Vec<_>>(), ["ranks"]);
        let broken = text.concat().replace("0.33", "3.3");
        let error = crate::record::parse::<CollectiveCall>(&broken, path).unwrap_err().to_string();
        assert!(error.contains("line 10, field disturbance: stolen: expected a share"), "{error}");
        // What a kill left of a line tells nothing.
        let cut = text.concat().trim_end().trim_end_matches("\"load\":2.5}").to_owned();
        let record = crate::record::parse::<CollectiveCall>(&cut, path).unwrap();
        assert_eq!((record.rows.len(), record.stretches.len()), (8, 3));
    }

    #[test]
    fn no_status_begins_another() {
        let names = ["ok", "warmup", "late", "disturbed"];
        for name in names {
            assert!(serde_json::from_str::<ObservationStatus>(&format!("\"{name}\"")).is_ok());
            assert_eq!(names.iter().filter(|other| other.starts_with(name)).count(), 1);
        }
    }
}
