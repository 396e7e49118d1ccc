//! Rank 0's hand on the record.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use records::{
    FileError,
    group_observation::GroupObservation,
    observation::PointToPoint,
    platform::Platform,
    record::{self, Row, Writer},
};
use serde::{Deserialize, Serialize};

use super::{
    book::Observation,
    flags::{Flags, PROGRAM},
};
use crate::{Error, Result, launcher::Lock};

/// What earlier runs left behind.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Their observations.
    pub rows: Vec<Observation>,
    /// Seconds of the budget that they used.
    pub seconds: f64,
}

/// Appends observations to their records.
#[derive(Debug)]
pub struct Recorder {
    /// What earlier runs left behind.
    pub earlier: Spent,
    pairs: Sheet<PointToPoint>,
    groups: Option<Sheet<GroupObservation>>,
}

/// One record; touches the file only when there is something to append.
#[derive(Debug)]
struct Sheet<T> {
    path: PathBuf,
    header: BTreeMap<String, String>,
    writer: Option<Writer<T>>,
    _lock: Lock,
}

const SPENT: &str = "spent_seconds";

/// The keys that a run which goes on with a record must agree with.
const IDENTITY: [&str; 1] = ["pair"];

impl Recorder {
    /// Reads the records, if there are any.
    ///
    /// # Errors
    /// They cannot be read, or hold something else.
    pub fn new(flags: &Flags, platform: &Platform) -> Result<Self> {
        let mut earlier = Spent::default();
        let header = header(flags, platform)?;
        let pairs = Sheet::open(&flags.record, &header, Observation::Pair, &mut earlier)?;
        let groups = flags.groups.as_deref();
        let groups = groups
            .map(|path| Sheet::open(path, &header, Observation::Group, &mut earlier))
            .transpose()?;
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
    pub fn note(&mut self, spent_seconds: f64) -> Result<()> {
        let text = format!("{spent_seconds:.3}");
        self.pairs.note(&text)?;
        self.groups.iter_mut().try_for_each(|groups| groups.note(&text))
    }
}

impl<T: Row> Sheet<T> {
    /// Adds to `earlier` what the record holds; the budget is that of both records together.
    fn open(
        path: &Path,
        header: &BTreeMap<String, String>,
        observation: impl Fn(T) -> Observation,
        earlier: &mut Spent,
    ) -> Result<Self> {
        let lock = Lock::take(path)?;
        let (rows, seconds) = read::<T>(path, header)?;
        earlier.rows.extend(rows.into_iter().map(observation));
        earlier.seconds = earlier.seconds.max(seconds);
        Ok(Sheet { path: path.into(), header: header.clone(), writer: None, _lock: lock })
    }

    fn append(&mut self, row: &T) -> Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(Writer::open(&self.path, &self.header)?),
        };
        Ok(writer.append(row)?)
    }

    fn note(&mut self, spent_seconds: &str) -> Result<()> {
        Ok(self.writer.iter_mut().try_for_each(|writer| writer.note(SPENT, spent_seconds))?)
    }
}

fn header(flags: &Flags, platform: &Platform) -> Result<BTreeMap<String, String>> {
    let sizes: Vec<String> = flags.sizes.0.iter().map(u64::to_string).collect();
    let timing = "CLOCK_MONOTONIC of the sender around its own MPI calls (MPI_Send, MPI_Recv; \
                  to several ranks at once MPI_Isend, MPI_Irecv, MPI_Wait; MPI_Reduce_local); \
                  contiguous bytes; two ranks that could come upon one processor are held on different \
                  ones, but free among several ranks; the clock's own cost is not subtracted \
                  (kind clock)";
    Ok([
        ("pair", format!("{},{}", flags.pair.0, flags.pair.1)),
        ("platform", serde_json::to_string(platform)?),
        (
            "precision",
            format!("{} {}", flags.precision.criterion.name(), flags.precision.relative_error),
        ),
        ("program", format!("{PROGRAM} {}", env!("CARGO_PKG_VERSION"))),
        ("seed", flags.seed.to_string()),
        ("sizes", sizes.join(",")),
        ("timing", timing.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into())
}

/// The rows and the seconds spent of a record that may be there.
fn read<T: Row>(path: &Path, header: &BTreeMap<String, String>) -> Result<(Vec<T>, f64)> {
    let there = match record::read::<T>(path) {
        Ok(there) => there,
        // Killed before its header was whole: nothing was observed.
        Err(_) if begins_a_header::<T>(path)? => return Ok((Vec::new(), 0.0)),
        Err(error) => return Err(error.into()),
    };
    for key in IDENTITY {
        let (old, new) = (there.header.get(key), header.get(key));
        if old.is_some() && old != new {
            let [old, new] = [old, new].map(|value| value.map_or("", String::as_str));
            let problem = format!("is {old}, this run's is {new}; name another --record");
            return Err(FileError::new(path, problem).in_field(key).into());
        }
    }
    let seconds = match there.header.get(SPENT) {
        Some(text) => text.parse().map_err(|_| {
            let problem = format!("is '{text}', wanted a number of seconds");
            Error::from(FileError::new(path, problem).in_field(SPENT))
        })?,
        None => 0.0,
    };
    Ok((there.rows, seconds))
}

/// Whether a file is empty or the beginning of a record's first line.
fn begins_a_header<T: Row>(path: &Path) -> Result<bool> {
    let text = std::fs::read_to_string(path).map_err(|e| FileError::io(path, "read", &e))?;
    Ok(format!("#@schema={}\n", T::SCHEMA).starts_with(&text))
}
