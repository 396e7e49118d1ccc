//! The parsers of packages that other packages use, each with what the program does with what it
//! accepts.

mod calibration;
mod documents;
mod observations;
mod others;
mod profiles;
mod rules;
mod words;

use std::{fmt::Debug, path::Path};

use records::{
    Collective, Point,
    document::{self, Document},
    record::{self, Record, Row},
};

use crate::Answer;

pub use calibration::calibration;
pub use documents::{
    agreement, candidates, check, choices, learned, pairs, penalties, plan, summary, usage,
    violations,
};
pub use observations::{clock_errors, groups, links, measurements, observations, pair_times};
pub use others::{imb, job_script, osu, pico, reprompi, table};
pub use profiles::{pgtune, profile};
pub use rules::rules;
pub use words::words;

/// What errors call the file.
pub const FILE: &str = "FILE";

/// Calls at which what was read is asked: small, around every power of two, and at the ends of what
/// can be said.
pub fn points() -> impl Iterator<Item = Point> {
    const PROCS: [u32; 6] = [1, 2, 7, 64, 65_536, u32::MAX];
    const BYTES: [u64; 7] = [0, 1, 8, 1000, 65_536, 1 << 40, u64::MAX];
    Collective::ALL.into_iter().flat_map(|collective| {
        PROCS.into_iter().flat_map(move |procs| {
            BYTES.into_iter().map(move |bytes| Point::flat(collective, procs, bytes))
        })
    })
}

/// Reads a document, writes it, reads that again, and hands it on.
pub fn document<T: Document + Debug>(input: &[u8], then: impl FnOnce(&T)) -> Answer {
    // As `document::read`: what is no text is refused.
    let Ok(text) = str::from_utf8(input) else { return Answer::Refused };
    match document::parse::<T>(text, Path::new(FILE)) {
        Ok(body) => {
            reads_back(&body);
            then(&body);
            Answer::Accepted
        }
        Err(error) => refused_with(&error),
    }
}

/// What is written of a document is the document.
///
/// # Panics
/// It is not.
pub fn reads_back<T: Document + Debug>(body: &T) {
    let text = document::text(body).expect("what was read can be written");
    let again = document::parse::<T>(&text, Path::new(FILE))
        .unwrap_or_else(|error| panic!("what was written can't be read: {error}"));
    assert_eq!(format!("{again:?}"), format!("{body:?}"), "another document is read back");
}

/// Reads a record, writes its lines, reads them again, and hands it on.
pub fn record<T: Row + Debug>(input: &[u8], then: impl FnOnce(&Record<T>)) -> Answer {
    // As `record::read`.
    let text = String::from_utf8_lossy(input);
    match record::parse::<T>(&text, Path::new(FILE)) {
        Ok(record) => {
            let mut lines = format!("#@schema={}\n{}\n", T::SCHEMA, T::COLUMNS.join(","));
            for row in &record.rows {
                let line = record::line(row).expect("what was read can be written");
                lines += str::from_utf8(&line).expect("lines are text");
            }
            let again = record::parse::<T>(&lines, Path::new(FILE))
                .unwrap_or_else(|error| panic!("what was written can't be read: {error}"));
            assert_eq!(again.torn, 0, "a whole line is read as a torn one");
            assert_eq!(
                format!("{:?}", again.rows),
                format!("{:?}", record.rows),
                "other lines are read back"
            );
            then(&record);
            Answer::Accepted
        }
        Err(error) => refused_with(&error),
    }
}

/// An error is some lines for people, whatever stood in the file.
///
/// # Panics
/// It says nothing.
pub fn refused_with(error: &dyn std::fmt::Display) -> Answer {
    assert!(!error.to_string().trim().is_empty(), "an error without a word");
    Answer::Refused
}
