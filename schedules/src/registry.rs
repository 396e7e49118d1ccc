//! The algorithms by collective and name.

use records::{Algorithm, Collective, OwnMethod, nearest, quoted};

use crate::{ENTRIES, Entry, algorithms::VARIANTS, find_node_aware, find_shared, why_not_modelled};

/// The algorithms of a collective.
pub fn of_collective(collective: Collective) -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter().filter(move |entry| entry.collective == collective)
}

/// The algorithm for a collective, if there is one.
pub fn find(collective: Collective, algorithm: Algorithm) -> Option<&'static Entry> {
    of_collective(collective).find(|entry| entry.algorithm == algorithm)
}

/// The schedule of a method for a collective, of messages, shared memory or by nodes, if there is one.
pub fn find_method(collective: Collective, method: &OwnMethod) -> Option<&'static Entry> {
    let algorithm = method.algorithm;
    match (method.by_node, algorithm.is_node_aware()) {
        (true, _) => find_node_aware(collective, Algorithm::NodeOrder),
        (false, true) => find_node_aware(collective, algorithm),
        (false, false) => {
            find(collective, algorithm).or_else(|| find_shared(collective, algorithm))
        }
    }
}

/// An algorithm of [`VARIANTS`] for a collective, by its name there.
pub fn find_variant(collective: Collective, name: &str) -> Option<&'static Entry> {
    let found = VARIANTS.iter().find(|(of, entry)| entry.collective == collective && *of == name);
    found.map(|(_, entry)| entry)
}

/// An algorithm by its name within the collective.
///
/// # Errors
/// Names the nearest one and all there are; of one of shared memory, why it is none of these.
pub fn find_named(collective: Collective, name: &str) -> Result<&'static Entry, String> {
    of_collective(collective).find(|entry| entry.name == name).ok_or_else(|| {
        let algorithm = Algorithm::ALL.iter().find(|algorithm| algorithm.name() == name);
        if let Some(why) = algorithm.and_then(|one| why_not_modelled(&[collective], *one)) {
            return why;
        }
        let names: Vec<_> = of_collective(collective).map(|entry| entry.name).collect();
        let hint = nearest(name, names.iter().copied())
            .map(|name| format!("; did you mean '{name}'?"))
            .unwrap_or_default();
        format!(
            "{collective} has no algorithm {}{hint} (known: {})",
            quoted(name),
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Call;

    #[test]
    fn names_are_unique_within_a_collective() {
        for entry in ENTRIES {
            let same = find_named(entry.collective, entry.name).unwrap();
            assert!(std::ptr::eq(entry, same), "{entry:?} twice");
        }
    }

    #[test]
    fn a_wrong_name_or_call_says_what_would_be_right() {
        let error = find_named(Collective::Bcast, "pipelin").unwrap_err();
        assert!(error.contains("did you mean 'pipeline'?"), "{error}");
        for (collective, name, part) in [
            (Collective::Bcast, "shared-cells", "bcast shared-cells goes through memory"),
            (Collective::Bcast, "shared-slots", "its algorithm of shared memory is 'shared-cells'"),
            (Collective::Scan, "shared-slots", "nor any other of shared memory"),
            (Collective::Bcast, "shared-cell", "no algorithm 'shared-cell'"),
        ] {
            let error = find_named(collective, name).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let entry = find(Collective::Reduce, Algorithm::Binary).unwrap();
        for (call, part) in [
            (Call::new(0, 1), "at least 1"),
            (Call { root: 4, ..Call::new(4, 1) }, "expected 0 to 3"),
            (Call { commutative: false, ..Call::new(4, 1) }, "not commutative"),
            (Call::new(4, u64::MAX / 4), "overflow"),
        ] {
            let error = entry.check(&call).unwrap_err().to_string();
            assert!(error.starts_with("reduce binary: ") && error.contains(part), "{error}");
        }
        let scatterv = find(Collective::Scatterv, Algorithm::Linear).unwrap();
        let own = Call { counts: &[3], displacements: &[0], ..Call::new(4, 0) };
        assert_eq!(scatterv.check(&own), Ok(()));
        let error = scatterv.check_everywhere(&own).unwrap_err().to_string();
        assert!(error.contains("1 counts for 4 ranks"), "{error}");
        for (counts, displacements, part) in [
            (&[1_u64, 2][..], &[0_u64, 1][..], "2 counts for 4 ranks"),
            (&[1, 2, 3, 4], &[0], "1 displacements"),
            (&[1, 2, 3, u64::MAX], &[0, 1, 2, 3], "overflows"),
        ] {
            let call = Call { counts, displacements, ..Call::new(4, 0) };
            let error = scatterv.check(&call).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let halving = find(Collective::ReduceScatter, Algorithm::RecursiveHalving).unwrap();
        let gap = Call { counts: &[1, 1], displacements: &[0, 2], ..Call::new(2, 0) };
        assert!(halving.check(&gap).unwrap_err().to_string().contains("follow each other"));
    }
}
