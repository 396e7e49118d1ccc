//! Rounds of disjoint pairs.

/// Every pair of `0..members` once, in rounds whose pairs have no member in common (the circle
/// method: one stays, the others go round).
pub fn rounds(members: usize) -> Vec<Vec<(usize, usize)>> {
    let places = members + members % 2;
    let turns = places.saturating_sub(1);
    let round = |turn: usize| {
        let at = |place: usize| match place {
            0 => 0,
            _ => 1 + (place - 1 + turn) % turns,
        };
        (0..places / 2)
            .map(|place| (at(place), at(places - 1 - place)))
            // With an odd number one sits out.
            .filter(|(one, other)| *one < members && *other < members)
            .collect()
    };
    (0..turns).map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn everyone_meets_everyone_once() {
        for members in 0..=33_usize {
            let mut met = BTreeSet::new();
            for round in rounds(members) {
                let mut busy = BTreeSet::new();
                for (one, other) in round {
                    assert!(one != other && busy.insert(one) && busy.insert(other));
                    assert!(met.insert((one.min(other), one.max(other))));
                }
            }
            assert_eq!(met.len(), members * members.saturating_sub(1) / 2, "{members}");
        }
    }
}
