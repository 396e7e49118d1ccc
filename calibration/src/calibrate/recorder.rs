//! Rank 0's hand on the record.

use records::{group_observation::GroupObservation, observation::PointToPoint, platform::Platform};
use serde::{Deserialize, Serialize};

use super::{flags::CalibrateFlags, series_store::Observation};
use crate::{
    Result,
    recording::{self, RecordHeader, Recording, spent_seconds},
};

/// What earlier runs left behind.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EarlierObservations {
    pub rows: Vec<Observation>,
    /// Seconds of the budget that they used.
    pub seconds: f64,
    /// Seconds that they waited for others to end.
    pub waited_seconds: f64,
}

/// Appends observations to their records.
#[derive(Debug)]
pub struct Recorder {
    /// What earlier runs left behind.
    pub earlier: EarlierObservations,
    pairs: Recording<PointToPoint>,
    groups: Option<Recording<GroupObservation>>,
}

/// The entries of the header that a run which goes on with a record must agree with.
const IDENTITY: [&str; 1] = ["pair"];

impl Recorder {
    /// Reads the records of each level, if there are any; the time spent is that of all together.
    ///
    /// # Errors
    /// They cannot be read, or hold something else.
    pub fn of_levels(levels: &[CalibrateFlags], platform: &Platform) -> Result<Vec<Self>> {
        let recorders = levels.iter().map(|flags| Self::new(flags, platform));
        let mut recorders: Vec<Self> = recorders.collect::<Result<_>>()?;
        let spent = recorders.iter().map(|it| it.earlier.seconds).fold(0.0, f64::max);
        recorders.iter_mut().for_each(|it| it.earlier.seconds = spent);
        Ok(recorders)
    }

    fn new(flags: &CalibrateFlags, platform: &Platform) -> Result<Self> {
        let header = header(flags, platform)?;
        let path = &flags.job.record;
        let (pairs, there) = Recording::open(path, header.clone(), &IDENTITY)?;
        let seconds = spent_seconds(&there, path)?;
        let waited_seconds = there.waited_seconds();
        let rows = there.rows.into_iter().map(Observation::Pair).collect();
        let (mut earlier, mut groups) =
            (EarlierObservations { rows, seconds, waited_seconds }, None);
        if let Some(path) = &flags.groups {
            let (recording, there) = Recording::open(path, header, &IDENTITY)?;
            // The budget is that of both records together.
            earlier.seconds = earlier.seconds.max(spent_seconds(&there, path)?);
            earlier.rows.extend(there.rows.into_iter().map(Observation::Group));
            groups = Some(recording);
        }
        Ok(Recorder { earlier, pairs, groups })
    }

    /// Appends observations, each in one piece.
    ///
    /// # Errors
    /// The system refuses.
    pub fn append(&mut self, rows: &[Observation]) -> Result<()> {
        rows.iter().try_for_each(|row| match (row, &mut self.groups) {
            (Observation::Pair(row), _) => self.pairs.append(row),
            (Observation::Group(row), Some(groups)) => groups.append(row),
            // No groups are observed where there is no record for them.
            (Observation::Group(_), None) => Ok(()),
        })
    }

    /// Notes what has been spent, where this run has changed a record at all.
    ///
    /// # Errors
    /// The system refuses.
    pub fn note_spent(&mut self, spent_seconds: f64) -> Result<()> {
        self.pairs.note_spent(spent_seconds)?;
        self.groups.iter_mut().try_for_each(|groups| groups.note_spent(spent_seconds))
    }

    /// Notes something beside the observations, where this run has changed a record at all.
    ///
    /// # Errors
    /// The system refuses.
    pub fn note(&mut self, key: &str, value: &str) -> Result<()> {
        self.pairs.note(key, value)?;
        self.groups.iter_mut().try_for_each(|groups| groups.note(key, value))
    }
}

fn header(flags: &CalibrateFlags, platform: &Platform) -> Result<RecordHeader> {
    let sizes: Vec<String> = flags.sizes.0.iter().map(u64::to_string).collect();
    let timing = "CLOCK_MONOTONIC of the sender around its own MPI calls (MPI_Send, MPI_Recv; \
                  to several ranks at once MPI_Isend, MPI_Irecv, MPI_Wait; MPI_Reduce_local); \
                  contiguous bytes; two ranks that could come upon one processor are held on different \
                  ones, but free among several ranks; the clock's own cost is not subtracted \
                  (kind clock)";
    let own = [
        ("pair", format!("{},{}", flags.level.pair.0, flags.level.pair.1)),
        (
            "precision",
            format!("{} {}", flags.precision.criterion.name(), flags.precision.relative_error),
        ),
        ("seed", flags.seed.to_string()),
        ("sizes", sizes.join(",")),
        ("timing", timing.to_owned()),
    ];
    recording::header("calibrate", platform, own)
}
