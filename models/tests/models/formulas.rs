//! The closed forms' texts are what their functions compute.

use models::{Forms, Model, Point, Predictor, closed_forms::refined, explain::Explainer};
use proptest::prelude::*;
use records::{Algorithm as A, Collective as C, Method};

use crate::tables::numbers;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_terms_of_every_formula_sum_to_the_time(
        numbers in numbers(),
        procs in 2_u32..300,
        bytes in prop_oneof![1_u64..40, 1_u64..2_000_000],
        segment in prop_oneof![Just(0_u64), 1_u64..40, 1_u64..200_000],
    ) {
        let parameters = numbers.parameters();
        for model in Model::TABLES.into_iter().chain([Model::Refined]) {
            for forms in Forms::ALL {
                let predictor = Predictor::new(model, forms, &parameters).unwrap();
                let explainer = Explainer::new(&predictor, &parameters, None, false).unwrap();
                for collective in C::ALL {
                    let bytes = if collective == C::Barrier { 0 } else { bytes };
                    let point = Point::flat(collective, procs, bytes);
                    for algorithm in model.algorithms(collective) {
                        let no_form = model == Model::Refined
                            && !refined::forms(collective)
                                .iter()
                                .any(|form| form.algorithm == algorithm && form.holds(procs));
                        if no_form || !model.serves(collective, algorithm, procs) {
                            continue;
                        }
                        let whole = Method::own(algorithm);
                        let segmented = predictor.segmented(collective, &whole).unwrap();
                        let segment_bytes = if segmented { segment } else { 0 };
                        let method = whole.with_segment(segment_bytes);
                        let seconds = predictor.predict(point, algorithm, segment_bytes).unwrap();
                        let formula = explainer.formula(point, &method).unwrap();
                        let sum: f64 = formula.parts.iter().map(|part| part.seconds).sum();
                        let said = formula.symbols.is_empty() && formula.parts.is_empty();
                        prop_assert!(!said || model == Model::Refined, "{formula:?}");
                        prop_assert!(
                            said || (sum - seconds).abs() <= 1e-11 * seconds,
                            "{model} {forms} {collective} {algorithm}: {sum}, not {seconds}: \
                             {formula:?}"
                        );
                    }
                }
            }
        }
    }
}

/// Frodo's pipeline of 64 KiB in 1 KiB segments: 7 messages of 1 KiB, 63 gaps.
#[test]
fn a_formula_reads_as_in_the_table() {
    let frodo = models::presets::preset("frodo").unwrap().measured;
    let predictor = Predictor::new(Model::LogGp, Forms::Printed, &frodo).unwrap();
    let explainer = Explainer::new(&predictor, &frodo, None, false).unwrap();
    let point = Point::flat(C::Bcast, 8, 64 << 10);
    let method = Method::own(A::Pipeline).with_segment(1 << 10);
    let formula = explainer.formula(point, &method).unwrap();
    assert_eq!(formula.text, "(P - 1)(L + 2 o + (m_s - 1) G) + (n_s - 1)(g + (m_s - 1) G)");
    let stream = 1023.0 * 0.084e-6;
    let wanted = [7.0 * (61.22e-6 + 16.4e-6 + stream), 63.0 * (23.8e-6 + stream)];
    for (part, wanted) in formula.parts.iter().zip(wanted) {
        assert!((part.seconds / wanted - 1.0).abs() < 1e-12, "{part:?}");
    }
    let names: Vec<&str> = formula.symbols.iter().map(|symbol| symbol.name.as_str()).collect();
    assert_eq!(names, ["P", "L", "o", "m_s", "G", "n_s", "g"]);
    assert_eq!(formula.symbols[3].value, 1024.0);
}
