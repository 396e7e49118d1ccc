//! What messages quote and count: wrong names are answered with the nearest right one.

use std::fmt::Display;

/// Most characters of what was given that a message quotes, and that are looked at for what was
/// meant: more than any name has.
const LONGEST: usize = 80;

/// Most characters of a message that is not ours to word.
const LONGEST_MESSAGE: usize = 600;

/// The candidate nearest to `given`, if one is near enough to be what was meant.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing takes as long as both are; what is much longer than all names is near none.
    if given.chars().nth(LONGEST).is_some() {
        return None;
    }
    let given = given.to_lowercase();
    candidates
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= name.len().max(given.len()).div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// What to say of a wrong name: `unknown algorithm 'x'; did you mean 'y'? (known: ...)`.
pub fn unknown(what: &str, given: &str, known: &[&str]) -> String {
    unknown_as(what, (given, given), known)
}

/// As [`unknown`], of a name that may be what is `meant` in another spelling.
pub fn unknown_as(what: &str, (given, meant): (&str, &str), known: &[&str]) -> String {
    let hint = nearest(meant, known.iter().copied())
        .map(|name| format!("; did you mean '{name}'?"))
        .unwrap_or_default();
    format!("unknown {what} {}{hint} (known: {})", quoted(given), known.join(", "))
}

/// `1 point`, `63 points`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    match count == N::from(1) {
        true => format!("1 {noun}"),
        false => format!("{count} {noun}s"),
    }
}

/// What was given, as a message quotes it: whole where it is as short as a name.
pub fn quoted(given: &str) -> String {
    match given.char_indices().nth(LONGEST) {
        None => format!("'{given}'"),
        Some((end, _)) => format!("'{}...' ({} bytes)", &given[..end], given.len()),
    }
}

/// A message that may quote a whole file: its beginning and its end where it is long.
pub fn shortened(message: &str) -> String {
    let half = LONGEST_MESSAGE / 2;
    let begin = message.char_indices().nth(half).map(|(place, _)| place);
    let end = message.char_indices().nth_back(half).map(|(place, _)| place);
    match (begin, end) {
        (Some(begin), Some(end)) if begin < end => {
            let left_out = end - begin;
            format!("{} ... ({left_out} bytes) ... {}", &message[..begin], &message[end..])
        }
        _ => message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_and_a_far_one_is_not() {
        assert_eq!(nearest("pipelin", ["linear", "pipeline"]), Some("pipeline"));
        assert_eq!(nearest("BINOMAL", ["binary", "binomial"]), Some("binomial"));
        assert_eq!(nearest("mpi_bcst", ["MPI_Bcast", "MPI_Scan"]), Some("MPI_Bcast"));
        assert_eq!(nearest("xyzzy", ["binary", "binomial"]), None);
    }

    #[test]
    fn one_point_is_no_points() {
        let points = [0_u32, 1, 2].map(|count| counted(count, "point"));
        assert_eq!(points, ["0 points", "1 point", "2 points"]);
    }

    #[test]
    fn what_is_long_is_neither_compared_nor_quoted_whole() {
        let long = "pipeline".repeat(100_000);
        assert_eq!(nearest(&long, ["pipeline", &long]), None);
        let message = unknown("algorithm", &long, &["pipeline"]);
        assert!(message.contains("pipeline...' (800000 bytes) (known: pipeline)"), "{message}");
        assert!(message.len() < 200, "{message}");
        assert_eq!(quoted("pipelin\u{e9}"), "'pipelin\u{e9}'");
        assert_eq!(shortened("short"), "short");
        let message = shortened(&format!("unknown field `{long}`, expected one of `seconds`"));
        assert!(message.starts_with("unknown field `pipe"), "{message}");
        assert!(message.ends_with("expected one of `seconds`"), "{message}");
        assert!(message.len() < 700, "{message}");
        let wide = "\u{fc}".repeat(400);
        assert_eq!(shortened(&wide), wide);
    }
}
