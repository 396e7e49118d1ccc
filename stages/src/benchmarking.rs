//! One collective, or pairs of ranks, timed by `colibri-mpi bench`, and what its record says.

use std::{ffi::OsString, path::Path};

use anyhow::Result;
use records::{
    observation::{CollectiveCall, PointToPoint},
    reading, record,
};
use serde::Serialize;
use statistics::{mean_interval, median};
use timing::factors;

use site::{ranks::Site, usage};

/// One message size of a collective, or of two ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchRow {
    /// The two ranks, as `0-1`, or the collective.
    pub what: String,
    pub method: String,
    /// How many ranks took part.
    pub procs: u32,
    pub bytes: u64,
    /// Times it was repeated.
    pub repetitions: usize,
    /// Of the repetitions.
    pub mean_seconds: f64,
    /// Of the repetitions.
    pub median_seconds: f64,
    /// Lower end of the mean's interval.
    pub low_seconds: f64,
    /// Its upper end.
    pub high_seconds: f64,
    /// Whether the interval is as narrow as was asked for.
    pub precise: bool,
}

/// How certain the mean is to be.
#[derive(Debug, Clone, Copy)]
pub struct WantedPrecision {
    /// Of the mean's interval.
    pub confidence: f64,
    /// Half of its width, as a part of the mean.
    pub relative_error: f64,
}

/// The factors of a file, as `colibri-mpi bench` takes them; one of each of the ranks.
///
/// # Errors
/// It cannot be read, or has another number of them.
pub fn factors_of(path: &Path, ranks: u32) -> Result<OsString> {
    let text = reading::text_file(path)?;
    let factors = factors::parse(&text, path)?;
    if factors.len() != ranks as usize {
        let (path, count) = (path.display(), factors.len());
        usage!(
            "{path}: {} given; expected {ranks}, one of each rank",
            records::counted(count, "factor")
        );
    }
    Ok(factors::in_words(Some(&factors)).into())
}

/// Runs it on all ranks.
///
/// # Errors
/// As [`Site::run`].
pub fn run(site: &Site, record: &Path, arguments: Vec<OsString>) -> Result<()> {
    let arguments = [vec!["--record".into(), record.into()], arguments].concat();
    site.run("bench", site.ranks(), &arguments, &[])
}

/// What a collective's record says, by message size.
///
/// # Errors
/// It cannot be read.
pub fn collective_rows(path: &Path, wanted: WantedPrecision) -> Result<Vec<BenchRow>> {
    let calls = record::read::<CollectiveCall>(path)?.rows;
    let mut rows = Vec::new();
    for of_size in calls.chunk_by(|one, other| one.visit == other.visit) {
        let first = &of_size[0];
        let seconds: Vec<f64> = of_size.iter().map(|call| call.seconds).collect();
        let subject = (first.point.collective.to_string(), first.method.to_string());
        rows.extend(row(
            subject,
            (first.point.layout.procs(), first.point.bytes),
            &seconds,
            wanted,
        ));
    }
    rows.sort_by_key(|row| row.bytes);
    Ok(rows)
}

/// What the record of pairs says, by message size and pair.
///
/// # Errors
/// It cannot be read.
pub fn pair_rows(path: &Path, wanted: WantedPrecision, way: &str) -> Result<Vec<BenchRow>> {
    let mut messages = record::read::<PointToPoint>(path)?.rows;
    messages.sort_by_key(|row| (row.bytes, row.sender, row.receiver, row.repetition));
    let mut rows = Vec::new();
    let key = |row: &PointToPoint| (row.bytes, row.sender, row.receiver);
    for of_pair in messages.chunk_by(|one, other| key(one) == key(other)) {
        let first = &of_pair[0];
        let seconds: Vec<f64> = of_pair.iter().map(|row| row.seconds).collect();
        let subject = (format!("{}-{}", first.sender, first.receiver), way.to_owned());
        rows.extend(row(subject, (2, first.bytes), &seconds, wanted));
    }
    Ok(rows)
}

fn row(
    (what, method): (String, String),
    (procs, bytes): (u32, u64),
    seconds: &[f64],
    wanted: WantedPrecision,
) -> Option<BenchRow> {
    let median_seconds = median(seconds)?;
    let interval = mean_interval(seconds, wanted.confidence);
    let (mean_seconds, half) = interval.unwrap_or((median_seconds, 0.0));
    Some(BenchRow {
        what,
        method,
        procs,
        bytes,
        repetitions: seconds.len(),
        mean_seconds,
        median_seconds,
        low_seconds: mean_seconds - half,
        high_seconds: mean_seconds + half,
        precise: interval.is_some() && half <= wanted.relative_error * mean_seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_the_interval_and_says_whether_it_is_narrow_enough() {
        let wanted = WantedPrecision { confidence: 0.95, relative_error: 0.1 };
        let subject = || ("bcast".to_owned(), "default".to_owned());
        // Of ten, t is 2.262 and the standard error 0.0333.
        let told = row(subject(), (4, 8), &[0.9, 1.1].repeat(5), wanted).unwrap();
        assert!((told.high_seconds - 1.0 - 2.262 * 0.10541 / 10.0_f64.sqrt()).abs() < 1e-4);
        assert!(told.precise && told.repetitions == 10);
        let narrower = WantedPrecision { relative_error: 0.05, ..wanted };
        assert!(!row(subject(), (4, 8), &[0.9, 1.1].repeat(5), narrower).unwrap().precise);
        assert!(!row(subject(), (4, 8), &[1.0], wanted).unwrap().precise);
        assert_eq!(row(subject(), (4, 8), &[], wanted), None);
    }
}
