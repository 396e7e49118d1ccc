//! The files of records that tunings are replayed on.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use flate2::read::GzDecoder;
use records::{calibration::Calibration, document, observation::CollectiveCall, record};

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
        // Each job counts its visits from 0.
        let before = rows.last().map_or(0, |row: &CollectiveCall| row.visit + 1);
        rows.extend(
            read.into_iter().map(|row| CollectiveCall { visit: before + row.visit, ..row }),
        );
    }
    rows
}
