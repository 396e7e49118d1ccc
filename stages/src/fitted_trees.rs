//! Trees that are made for a network, as methods to compare.

use models::{
    Predictor,
    decide::{Segments, decide},
};
use records::{Algorithm, Method, OwnMethod, Point, TreePace};
use tuning::plan::MethodsOf;

/// How many gaps a trip lasts on which fitted trees are made, whatever the network. It is their ratio alone
/// that shapes them.
const TRIPS: [u32; 3] = [2, 4, 8];

/// Those that are compared on any network.
pub fn usual() -> impl Iterator<Item = OwnMethod> {
    TRIPS.into_iter().map(|trip| fitted(TreePace { trip, gap: 1 }))
}

fn fitted(pace: TreePace) -> OwnMethod {
    OwnMethod::plain(Algorithm::Fitted).with_pace(pace)
}

/// Parts of a gap to which a calibrated ratio of trip and gap is rounded: so sizes whose ratios hardly
/// differ share a method.
const PARTS_OF_GAP: u32 = 4;

/// These methods and, at each point with fitted trees, the tree that is made for the calibrated network, and the one
/// that is made for the segments with which it is fastest.
pub fn with_calibrated_trees(methods: MethodsOf, predictor: Predictor) -> MethodsOf {
    MethodsOf::new(move |point, segments| {
        let mut all = methods.at(point, segments);
        let is_fitted = |method: &Method| method.algorithm() == Some(Algorithm::Fitted);
        if all.iter().any(is_fitted) {
            let whole = predictor.tree_pace(point).map(|pace| fitted(rounded(pace)));
            for tree in whole.into_iter().chain(tree_of_segments(&predictor, point, segments)) {
                // As even as a binomial tree, or one of those that are there.
                if tree.is_parametrized() && !all.contains(&Method::Own(tree)) {
                    all.push(Method::Own(tree));
                }
            }
        }
        all
    })
}

/// The fastest fitted tree whose messages are cut.
fn tree_of_segments(predictor: &Predictor, point: Point, segments: &[u64]) -> Option<OwnMethod> {
    let cuts: Vec<u64> =
        segments.iter().copied().filter(|&bytes| bytes > 0 && bytes < point.bytes).collect();
    if cuts.is_empty() {
        return None;
    }
    let best = decide(predictor, point, &[Algorithm::Fitted], &Segments::List(cuts)).ok()?;
    match best.method {
        Method::Own(tree) if tree.is_parametrized() => Some(tree.with_pace(rounded(tree.pace))),
        // As even as a binomial tree.
        _ => None,
    }
}

/// The ratio in whole parts of a gap, in least terms.
fn rounded(pace: TreePace) -> TreePace {
    let ratio = f64::from(pace.trip) / f64::from(pace.gap);
    let trip = (ratio * f64::from(PARTS_OF_GAP)).round().max(1.0) as u32;
    let common = (1..=PARTS_OF_GAP).rev().find(|part| PARTS_OF_GAP % part + trip % part == 0);
    let common = common.unwrap_or(1);
    TreePace { trip: trip / common, gap: PARTS_OF_GAP / common }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compared::own_methods;
    use records::Collective;

    #[test]
    fn the_calibrated_ratio_is_offered_beside_the_others() {
        let frodo = models::presets::preset("frodo").unwrap().measured;
        let model = models::Model::Refined;
        let predictor = Predictor::new(model, models::Forms::Corrected, &frodo).unwrap();
        let methods = with_calibrated_trees(MethodsOf::new(own_methods), predictor);
        let trees = |layout: &str, collective, bytes| {
            let point = Point { collective, layout: layout.parse().unwrap(), bytes };
            let mut all = methods.at(point, &[0]);
            all.retain(|method| method.algorithm() == Some(Algorithm::Fitted));
            all.iter().map(Method::to_string).collect::<Vec<_>>()
        };
        let short = trees("16", Collective::Bcast, 8);
        assert_eq!(short.len(), TRIPS.len() + 1, "{short:?}");
        assert_eq!(trees("16", Collective::Bcast, 16), short, "nearly the same size");
        assert_eq!(
            trees("16", Collective::Bcast, 1 << 20).len(),
            TRIPS.len(),
            "as even as binomial"
        );
        assert!(trees("4x4", Collective::Bcast, 8).is_empty());
        assert!(trees("16", Collective::Gather, 8).is_empty());
        // One more, cut, where a message is longer than a segment.
        let methods = methods.at(Point::flat(Collective::Bcast, 16, 4096), &[0, 1024]);
        let is_cut = |method: &&Method| {
            method.algorithm() == Some(Algorithm::Fitted) && method.segment_bytes() == 1024
        };
        let cut: Vec<String> = methods.iter().filter(is_cut).map(Method::to_string).collect();
        assert_eq!(cut, ["own:fitted,fan-out=2,trip=3,gap=2,segment=1KiB"]);
    }

    #[test]
    fn ratios_are_in_least_terms() {
        let ratio = |trip, gap| {
            let TreePace { trip, gap } = rounded(TreePace { trip, gap });
            (trip, gap)
        };
        assert_eq!(ratio(57_000, 24_000), (5, 2));
        assert_eq!(ratio(40_100, 10_000), (4, 1));
        assert_eq!(ratio(11_000, 10_000), (1, 1));
        assert_eq!(ratio(13_100, 10_000), (5, 4));
        assert_eq!(ratio(1, 1000), (1, 4));
    }
}
