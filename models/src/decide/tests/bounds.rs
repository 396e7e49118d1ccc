//! What is told of all segment sizes at once.

use proptest::prelude::*;
use records::Collective;

use super::{super::segments::Search, as_measured::as_measured};
use crate::{
    Forms, Model, Point, Predictor,
    closed_forms::CallShape,
    decide::best_segment,
    parameters::{Network, PointToPointParameters},
    predict::CostSource,
    presets::preset,
};

/// By how much a reduction may take less where its messages cost more: they may come to a port in another
/// order then, which saves a gap in each round. Seconds.
fn overtaken(collective: Collective, network: &Network, shape: &CallShape) -> f64 {
    match (collective, &network.model) {
        (Collective::Reduce, PointToPointParameters::PLogP(net)) => {
            shape.rounds() * net.gap(shape.segment_bytes())
        }
        _ => 0.0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// No size between two others takes less than what is told of flows, with the parameters at their
    /// values or all at the cheaper ends.
    #[test]
    fn no_segment_takes_less_than_a_flow_does_at_least(
        seed in any::<u64>(), procs in 2_u32..600, shift in 12_u32..22, reduced in any::<bool>(),
        part in 0.0..1.0_f64, width in 0.0..2.0_f64,
    ) {
        let collective = if reduced { Collective::Reduce } else { Collective::Bcast };
        let parameters = as_measured(preset("frodo").unwrap().measured, seed);
        let predictor = Predictor::new(Model::Refined, Forms::Corrected, &parameters).unwrap();
        let point = Point::flat(collective, procs, 1 << shift);
        let known = predictor.model().algorithms(collective);
        let mut flows = 0;
        for method in known.into_iter().flat_map(|one| predictor.methods(collective, one)) {
            let evaluation = predictor.look_up_method(point, &method).unwrap();
            let CostSource::Form(form) = evaluation.source else { continue };
            let (search, set) =
                (Search::new(point, evaluation, form).unwrap(), evaluation.set);
            let most = search.elements() - 1;
            let low = (most as f64).powf(part) as u64;
            let high = ((low as f64 * width.exp()) as u64).clamp(low, most);
            for (network, rising, shrinking) in [
                (&set.network, &set.rising, &set.shrinking),
                (&set.least, &set.least, &set.least_shrinking),
            ] {
                let told = search.flows_at_least(rising, shrinking, (low, high));
                let step = (high - low).div_ceil(40).max(1) as usize;
                for segment in (low..=high).step_by(step).chain([high]) {
                    let shape = search.cut(segment);
                    let seconds = search.seconds_on(network, &shape);
                    prop_assert!(
                        told <= seconds * (1.0 + 1e-9) + overtaken(collective, network, &shape),
                        "{method}: {told} of {low} to {high}, {seconds} of {segment}"
                    );
                }
                flows += u32::from(told > 0.0);
            }
        }
        prop_assert!(flows > 6, "{flows} say little");
    }

    /// The size that is found is as good as any, with parameters as they are measured.
    #[test]
    fn no_segment_is_better_than_the_one_found(
        seed in any::<u64>(), procs in 2_u32..600, bytes in 1_u64..30_000, reduced in any::<bool>(),
    ) {
        let collective = if reduced { Collective::Reduce } else { Collective::Bcast };
        let parameters = as_measured(preset("frodo").unwrap().measured, seed);
        let predictor = Predictor::new(Model::Refined, Forms::Corrected, &parameters).unwrap();
        let point = Point::flat(collective, procs, bytes);
        let known = predictor.model().algorithms(collective);
        for method in known.into_iter().flat_map(|one| predictor.methods(collective, one)) {
            let evaluation = predictor.look_up_method(point, &method).unwrap();
            let CostSource::Form(form) = evaluation.source else { continue };
            let search = Search::new(point, evaluation, form).unwrap();
            let of = |segment: u64| search.seconds_on(&evaluation.set.network, &search.cut(segment));
            let sizes = if form.segmented { 1..search.elements() } else { 0..0 };
            let sizes = sizes.filter(|&segment| search.cut(segment).suits(form.algorithm));
            let least = sizes.map(of).fold(f64::INFINITY, f64::min);
            let Some(found) = best_segment(&predictor, point, &method).unwrap() else { continue };
            let cut = evaluation.shape.cut(found);
            let found = search.seconds_on(&evaluation.set.network, &cut);
            prop_assert!(
                found <= least * (1.0 + 1e-12) + overtaken(collective, &evaluation.set.network, &cut),
                "{method}: {found}, {least}"
            );
        }
    }
}
