//! The files of records that tunings are replayed on.

use std::{
    collections::BTreeSet,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use choosing::samples::Samples;
use flate2::read::GzDecoder;
use records::{
    Method, Point, calibration::Calibration, document, observation::CollectiveCall, record,
};

/// A file of a record.
fn data(record: &str, name: &str) -> (String, PathBuf) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../figures/data").join(record).join(name);
    let mut text = String::new();
    GzDecoder::new(File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
    (text, path)
}

pub fn read_calibration(record: &str, name: &str) -> Calibration {
    let (text, path) = data(record, name);
    document::parse(&text, &path).unwrap()
}

/// The calls of several jobs of a record, one after the other.
pub fn read_rows(record: &str, names: &[&str]) -> Vec<CollectiveCall> {
    let mut rows = Vec::new();
    for name in names {
        let (text, path) = data(record, name);
        let read = record::parse::<CollectiveCall>(&text, &path).unwrap().rows;
        // Each job numbers its visits for itself.
        let numbers = rows.iter().map(|row: &CollectiveCall| row.visit + 1);
        let before = numbers.max().unwrap_or(0);
        rows.extend(
            read.into_iter().map(|row| CollectiveCall { visit: before + row.visit, ..row }),
        );
    }
    rows
}

/// Cells with fewer than three calls: one alone may be an outlier (seen: 3.8 ms among calls of 0.2 ms), so both
/// halves judge them.
pub fn judged_by_few(judging: &[CollectiveCall]) -> BTreeSet<(Point, Method)> {
    let cells: BTreeSet<_> = judging.iter().map(|row| (row.point, row.method.clone())).collect();
    let samples = Samples::gather(judging, libraries::ran_as_asked);
    let is_few = |(point, method): &(Point, Method)| {
        samples.get(*point, method).is_none_or(|times| times.count() < 3)
    };
    cells.into_iter().filter(is_few).collect()
}
