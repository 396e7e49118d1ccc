//! Inputs that are empty, too large, extreme or foreign.

use colibri_figures::{FigureError, PlotPoint, decision_map, gain, penalty_map};
use proptest::prelude::*;
use records::{Collective, document};

use super::{BCAST, assert_has, made_up, pixels, texts, try_curves};

#[test]
fn an_empty_input_says_why_there_is_nothing() {
    let penalties = made_up::penalties(&[2], &[1]);
    let decisions = made_up::decisions(&[2], &[1]);
    let reduce = Collective::Reduce;
    for (outcome, wanted) in [
        (
            penalty_map(&penalties, reduce),
            "the penalty file has no cells for reduce (it has bcast)",
        ),
        (penalty_map(&made_up::penalties(&[], &[1]), reduce), "no cells for reduce (it is empty)"),
        (decision_map(&decisions, None, reduce), "the decisions file has no cells for reduce"),
        (gain(BCAST, &[], &[]), "there are no points"),
        (try_curves(vec![PlotPoint::exact(0.0, 1.0)]), "none of 2 points is positive and finite"),
    ] {
        let text = outcome.unwrap_err().to_string();
        assert!(text.starts_with("nothing to draw: ") && text.contains(wanted), "{text}");
    }
}

#[test]
fn more_than_fits_is_an_error_with_the_limit() {
    let procs: Vec<u32> = (1..=1100).collect();
    let error = penalty_map(&made_up::penalties(&procs, &[1]), BCAST).unwrap_err();
    assert_eq!(
        error.to_string(),
        "too much to draw: 1100 rank counts, at most 1024 fit into one figure"
    );
}

#[test]
fn what_a_logarithmic_axis_cannot_show_is_said() {
    let points = vec![
        PlotPoint::exact(1.0, 1e-5),
        PlotPoint::exact(0.0, 1.0),
        PlotPoint::exact(2.0, f64::NAN),
    ];
    let svg = try_curves(points).unwrap().svg().unwrap();
    let note =
        "4 of 6 points are not shown: zero or not finite, which logarithmic axes do not have";
    assert!(svg.contains(&format!("<desc>{note}\n")), "{svg}");
}

#[test]
fn extreme_values_are_drawn() {
    let mut penalties = made_up::penalties(&[1, 2], &[0, 1, 1000, u64::MAX]);
    for penalty in
        penalties.penalties.iter_mut().filter(|penalty| penalty.point.layout.procs() == 2)
    {
        penalty.point.layout = u32::MAX.into();
    }
    let extremes = [0.0, -1.0, f64::MAX, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE];
    for (index, penalty) in penalties.penalties.iter_mut().enumerate() {
        penalty.penalty = extremes[index % extremes.len()];
        penalty.best_seconds = extremes[(index + 1) % extremes.len()];
    }
    for summary in &mut penalties.summaries {
        summary.penalty.mean = f64::MAX;
        summary.penalty.greatest = f64::INFINITY;
    }
    let figure = penalty_map(&penalties, BCAST).unwrap();
    assert_has(&figure.svg().unwrap(), &[">999%", "no data"]);
    pixels(&figure.png().unwrap());
    let mut gains = made_up::gains(&[1, u32::MAX], &[0, 1, 1000, u64::MAX]);
    for (index, point) in gains.iter_mut().flat_map(|panel| &mut panel.points).enumerate() {
        point.tuned_seconds = Some(extremes[(index + 1) % extremes.len()]);
    }
    gain(BCAST, &[], &gains).unwrap().png().unwrap();
}

#[test]
fn foreign_text_stays_text() {
    let mut penalties = made_up::penalties(&[2], &[1]);
    penalties.platform.mpi_library = "<script>\u{8}\n\"&' \u{1F426} \u{4e2d}".into();
    penalties.warnings = vec!["a b ".repeat(400), "b".into(), "c".into()];
    let figure = penalty_map(&penalties, BCAST).unwrap();
    let svg = figure.svg().unwrap();
    assert!(!svg.contains("<script>") && !svg.contains('\u{8}'));
    assert!(texts(&svg).iter().any(|text| text.ends_with("and 1 more")));
    figure.png().unwrap();
}

#[test]
fn figures_are_drawn_from_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("penalty.json");
    let penalties = made_up::penalties(&[2, 4], &made_up::sizes(4));
    document::write(&path, &penalties).unwrap();
    let read = document::read(&path).unwrap();
    let figure = |penalties| penalty_map(penalties, BCAST).unwrap().svg().unwrap();
    assert_eq!(figure(&read), figure(&penalties));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_curve_makes_it_panic(
        values in proptest::collection::vec((any::<f64>(), any::<f64>(), any::<f64>(), any::<f64>()), 0..8),
    ) {
        let points = values.into_iter().map(|(x, y, low, high)| PlotPoint { x, y, low, high }).collect();
        match try_curves(points) {
            Ok(figure) => prop_assert!(figure.svg().unwrap().ends_with("</svg>\n")),
            Err(error) => prop_assert!(matches!(error, FigureError::NothingToDraw(_))),
        }
    }

    #[test]
    fn no_grid_makes_it_panic(
        procs in proptest::collection::btree_set(1_u32..5000, 1..12),
        sizes in proptest::collection::btree_set(any::<u64>(), 1..40),
    ) {
        let (procs, sizes): (Vec<u32>, Vec<u64>) =
            (procs.into_iter().collect(), sizes.into_iter().collect());
        let penalties = made_up::penalties(&procs, &sizes);
        let decisions = made_up::decisions(&procs, &sizes);
        let figure = decision_map(&decisions, Some(&penalties), BCAST).unwrap();
        prop_assert!(figure.svg().unwrap().ends_with("</svg>\n"));
        let (width, height) = figure.size();
        prop_assert!(width <= 2400 && height <= 4000, "{width} {height}");
    }
}
