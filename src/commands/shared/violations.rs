//! Tables of violated guidelines: the columns that the terminal and the report have in common.

use records::{
    quantity::{format_bytes, format_seconds},
    violations::{Count, Violation},
};

/// Columns of [`counted`].
pub const COUNTED: [&str; 4] = ["guideline", "collective", "points", "violated"];

/// At how many points a kind of guideline was judged for a collective, and violated.
pub fn counted(count: &Count) -> Vec<String> {
    vec![
        count.class.name().to_owned(),
        count.collective.to_string(),
        count.points.to_string(),
        count.violated.to_string(),
    ]
}

/// Columns of [`compared`].
pub const COMPARED: [&str; 7] =
    ["guideline", "collective", "procs", "size", "time", "faster", "its time"];

/// What was found to be faster than what, and where.
pub fn compared(violation: &Violation) -> [String; 7] {
    [
        violation.class.name().to_owned(),
        violation.point.collective.to_string(),
        violation.point.layout.to_string(),
        format_bytes(violation.point.bytes),
        format_seconds(violation.seconds),
        violation.better.to_string(),
        format_seconds(violation.better_seconds),
    ]
}
