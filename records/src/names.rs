//! Wrong names are answered with the nearest right one.

/// The candidate nearest to `given`, if one is near enough to be what was meant.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
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
    let hint = nearest(given, known.iter().copied())
        .map(|name| format!("; did you mean '{name}'?"))
        .unwrap_or_default();
    format!("unknown {what} '{given}'{hint} (known: {})", known.join(", "))
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
}
