//! From points on a grid to the ranges that a rules file states.

use std::collections::BTreeMap;

pub use libraries::rules::{BytesRange, ProcsRange, Rules};
use records::{Collective, Layout, Method, choices::Chosen};
use statistics::geometric_mean;

/// Where one method gives way to another between two measured sizes: given the collective, the
/// layout, the methods below and above and the two sizes, the first size at which the
/// upper one is predicted to be faster; nothing where the predictions don't cross in between.
pub type Crossing<'a> = &'a dyn Fn(Collective, Layout, &Method, &Method, u64, u64) -> Option<u64>;

/// Joins neighbouring equal choices to ranges. A threshold between two sizes with different methods lies at the
/// crossing of the two predictions if that falls inside, else at the geometric mean. Between a method and the
/// default it lies at the method's size: nothing is claimed beyond what was chosen.
pub fn rules(choices: &[Chosen], crossing: Crossing<'_>) -> Vec<Rules> {
    let mut by_collective: BTreeMap<Collective, BTreeMap<Layout, BTreeMap<u64, &Chosen>>> =
        BTreeMap::new();
    for choice in choices {
        let sections = by_collective.entry(choice.point.collective).or_default();
        let bands = sections.entry(choice.point.layout).or_default();
        bands.insert(choice.point.bytes, choice);
    }
    by_collective
        .into_iter()
        .map(|(collective, sections)| Rules {
            collective,
            sections: sections
                .into_iter()
                .map(|(layout, sizes)| section(collective, layout, &sizes, crossing))
                .collect(),
        })
        .collect()
}

fn section(
    collective: Collective,
    layout: Layout,
    sizes: &BTreeMap<u64, &Chosen>,
    crossing: Crossing<'_>,
) -> ProcsRange {
    let mut joined: Vec<(u64, Vec<&Chosen>)> = Vec::new();
    let mut below = 0;
    for (&bytes, &choice) in sizes {
        match joined.last_mut() {
            Some((_, same)) if same[0].method == choice.method => same.push(choice),
            Some((_, others)) => {
                let from_bytes = match (&others[0].method, &choice.method) {
                    (Method::Default, _) => bytes,
                    (_, Method::Default) => below + 1,
                    (last, next) => crossing(collective, layout, last, next, below, bytes)
                        .filter(|crossed| (below + 1..=bytes).contains(crossed))
                        .unwrap_or_else(|| between(below, bytes)),
                };
                joined.push((from_bytes, vec![choice]));
            }
            None => joined.push((bytes, vec![choice])),
        }
        below = bytes;
    }
    let bands = joined.into_iter().map(|(from_bytes, same)| BytesRange {
        from_bytes,
        method: same[0].method.clone(),
        gain: gain(&same),
    });
    ProcsRange { layout, bands: bands.collect(), last_bytes: below }
}

/// How many times as fast as the default, on geometric average, where that is known; equal times claim nothing.
fn gain(choices: &[&Chosen]) -> Option<f64> {
    let gains: Vec<f64> = choices
        .iter()
        .filter(|choice| choice.default_seconds != Some(choice.seconds))
        .filter_map(|choice| choice.speed_up())
        .collect();
    geometric_mean(&gains)
}

/// The geometric mean of two sizes, above the lower one and at most the upper one.
fn between(low: u64, high: u64) -> u64 {
    let mean = ((low.max(1) as f64) * (high as f64)).sqrt().round() as u64;
    mean.clamp(low + 1, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use records::Point;

    fn choice(procs: u32, bytes: u64, method: &str) -> Chosen {
        let point = Point::flat(Collective::Bcast, procs, bytes);
        let method = method.parse().unwrap();
        Chosen::measured(point, method, 1.0, 1.0)
    }

    #[test]
    fn neighbours_are_joined_and_thresholds_lie_where_predictions_cross() {
        let (a, b) = ("native:openmpi:binomial", "native:openmpi:pipeline,segment=8KiB");
        let choices = [
            choice(8, 1024, a),
            choice(8, 2048, a),
            choice(8, 8192, b),
            choice(8, 16384, b),
            choice(8, 65536, "default"),
            choice(8, 262_144, a),
        ];
        let crossing = |_: Collective, _: Layout, from: &Method, _: &Method, _: u64, _: u64| {
            (from.to_string() == a).then_some(3000)
        };
        let rules = rules(&choices, &crossing);
        let bands: Vec<_> = rules[0].sections[0]
            .bands
            .iter()
            .map(|band| (band.from_bytes, band.method.to_string()))
            .collect();
        let default = String::from("default");
        let wanted =
            [(1024, a.into()), (3000, b.into()), (16385, default), (262_144, a.to_owned())];
        assert_eq!(bands, wanted);
        assert_eq!(rules[0].sections[0].last_bytes, 262_144);
    }

    proptest! {
        /// Whatever was chosen at a measured point, the ranges say the same there.
        #[test]
        fn ranges_agree_with_every_choice(
            methods in proptest::collection::vec(0_usize..3, 1..20),
            crossed in proptest::option::of(any::<u64>()),
        ) {
            let names = ["default", "native:openmpi:linear", "native:openmpi:binomial"];
            let choices: Vec<_> = methods
                .iter()
                .zip(0..)
                .map(|(&index, power)| choice(4, 1 << power, names[index]))
                .collect();
            let rules = rules(&choices, &|_, _, _, _, _, _| crossed);
            let bands = &rules[0].sections[0].bands;
            for pair in bands.windows(2) {
                prop_assert!(pair[0].from_bytes < pair[1].from_bytes);
                prop_assert_ne!(&pair[0].method, &pair[1].method);
            }
            for choice in choices {
                let band = bands.iter().rev().find(|band| band.from_bytes <= choice.point.bytes);
                prop_assert_eq!(&band.unwrap().method, &choice.method);
            }
        }
    }
}
