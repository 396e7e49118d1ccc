//! What is in the pictures, whether they are whole, and that no input makes them panic.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path};

use colibri_figures::{
    Axis, ComparedPoint, Curve, Figure, FigureError, GainPanel, GainPoint, PlotPoint, Quantity,
    Trace, algorithm_fits, curves, decision_map, difference_map, fits, gain, gains, measured_map,
    pair_map, panels, parameters, penalty_map, save,
};
use proptest::prelude::*;
use records::{Algorithm, Collective, Method, document};

mod made_up;

const BCAST: Collective = Collective::Bcast;

fn every_kind() -> Vec<Figure> {
    let penalties = made_up::penalties(&[2, 4, 8], &made_up::sizes(21));
    let decisions = made_up::decisions(&[2, 4, 8], &made_up::sizes(21));
    let mut complete = made_up::calibration();
    made_up::complete(&mut complete);
    vec![
        penalty_map(&penalties, BCAST).unwrap(),
        measured_map(&penalties, BCAST).unwrap(),
        decision_map(&decisions, Some(&penalties), BCAST).unwrap(),
        parameters(&made_up::calibration()).unwrap(),
        algorithm_fits(&complete, BCAST).unwrap(),
        pair_map(&made_up::pairs(8)).unwrap(),
        difference(&made_up::differences(&[2, 4, 8], &made_up::sizes(21))).unwrap(),
        gain(BCAST, &[penalties.platform.summary()], &gains(&penalties, BCAST, None)).unwrap(),
        time_curves(&[1.0, 1024.0], &[1e-5, 1e-4]),
    ]
}

fn difference(points: &[ComparedPoint]) -> Result<Figure, FigureError> {
    difference_map(BCAST, ["a.json, loggp", "b.json, plogp"], "predicted by plogp", points)
}

#[test]
fn a_difference_tells_both_methods_and_what_the_second_costs() {
    let mut points = made_up::differences(&[2, 4, 8], &made_up::sizes(12));
    for point in &mut points {
        point.methods[1] = point.methods[0].clone();
        point.seconds = Some([1e-4, 1e-4]);
    }
    let same = difference(&points).unwrap();
    assert_has(&same.svg().unwrap(), &["they agree at 36 of 36 points", "within 5 %", "-75 %"]);
    let coloured = |figure: &Figure, reddish: bool| {
        let (_, pixels) = pixels(&figure.png().unwrap());
        let is = |p: &[u8]| {
            let (red, blue) = (i32::from(p[0]), i32::from(p[2]));
            if reddish { red > blue + 40 } else { blue > red + 40 }
        };
        pixels.chunks(3).filter(|pixel| is(pixel)).count()
    };
    let other: Method = "own:binary,segment=1KiB".parse().unwrap();
    for (cost, reddish) in [(2.0e-4, true), (0.5e-4, false)] {
        let mut points = points.clone();
        for point in &mut points[20..22] {
            point.methods = ["own:linear".parse().unwrap(), other.clone()];
            point.seconds = Some([1e-4, cost]);
        }
        let figure = difference(&points).unwrap();
        let more = coloured(&figure, reddish) - coloured(&same, reddish);
        // Two cells of 80 by 43 pixels, but for the numbers in them.
        assert!(more > 4000, "{more}");
        assert_eq!(coloured(&figure, !reddish), coloured(&same, !reddish));
        let percent = if reddish { "+100 %" } else { "-50 %" };
        let pair = format!("1: linear \u{2192} binary 1 KiB (2 points, {percent})");
        let detail = format!(
            "they agree at 34 of 36 points; elsewhere B costs {percent} in the geometric mean \
             ({percent})"
        );
        assert_has(&figure.svg().unwrap(), &[&pair, &detail, "1", "A's method \u{2192} B's:"]);
    }
    points[3].methods[1] = Method::Default;
    points[3].seconds = None;
    let svg = difference(&points).unwrap().svg().unwrap();
    assert_has(&svg, &["a time is not known"]);
    let error = difference(&[]).unwrap_err().to_string();
    assert!(error.contains("no point of bcast in common"), "{error}");
}

#[test]
fn what_lies_beyond_the_calibration_is_outlined() {
    let mut decisions = made_up::decisions(&[2, 4, 8], &made_up::sizes(12));
    let plain = decision_map(&decisions, None, BCAST).unwrap();
    let key = "extrapolated beyond what was calibrated";
    assert!(!plain.svg().unwrap().contains(key));
    for decision in &mut decisions.decisions {
        decision.extrapolated = decision.layout.procs() == 8 || decision.bytes > 1000;
    }
    let marked = decision_map(&decisions, None, BCAST).unwrap();
    let svg = marked.svg().unwrap();
    assert_has(&svg, &[key]);
    // 12 sizes by 3, of which 12 + 2 * 2 lie beyond.
    assert!(texts(&svg).iter().any(|text| text.ends_with(", 16 extrapolated")), "{svg}");
    let black = |figure: &Figure| {
        let (_, pixels) = pixels(&figure.png().unwrap());
        pixels.chunks(3).filter(|pixel| pixel.iter().all(|channel| *channel == 0)).count()
    };
    // Around it: 12 + 3 columns of 80 pixels and back, 3 rows of 43 twice, in 3 panels.
    assert!(black(&marked) > black(&plain) + 3 * 3 * 2000, "{}", black(&marked));
}

#[test]
fn panels_share_one_legend() {
    let axis = |label: &str, quantity| Axis { label: label.into(), quantity };
    let axes = (axis("processes", Quantity::Processes), axis("time", Quantity::Seconds));
    let series = |name: &str| Curve {
        name: name.into(),
        trace: Trace::Line,
        points: vec![PlotPoint::exact(2.0, 1e-5), PlotPoint::exact(4.0, 1e-4)],
    };
    let all = [
        ("hockney".to_owned(), vec![series("linear"), series("binary")]),
        ("loggp".to_owned(), vec![series("binary")]),
    ];
    let svg = panels("Predicted", &[], axes, &all).unwrap().svg().unwrap();
    assert_has(&svg, &["(a) hockney", "(b) loggp", "linear", "binary"]);
    let count = texts(&svg).iter().filter(|text| *text == "binary").count();
    assert_eq!(count, 1, "one entry for both panels");
}

#[test]
fn a_pair_map_has_its_findings_and_both_axes() {
    let svg = pair_map(&made_up::pairs(4)).unwrap().svg().unwrap();
    assert_has(&svg, &["node 3 receives at half the rate of the others", "receiver (rank)"]);
    assert!(svg.contains("sender") && svg.contains("95.2") && svg.contains("47.6"), "{svg}");
    let mut none = made_up::pairs(4);
    none.links.clear();
    assert!(pair_map(&none).unwrap_err().to_string().contains("no links"));
}

fn time_curves(x: &[f64], y: &[f64]) -> Figure {
    try_curves(x.iter().zip(y).map(|(x, y)| PlotPoint::exact(*x, *y)).collect()).unwrap()
}

fn try_curves(points: Vec<PlotPoint>) -> Result<Figure, FigureError> {
    let axis = |label: &str, quantity| Axis { label: label.into(), quantity };
    let (x, y) = (axis("message size", Quantity::Bytes), axis("time", Quantity::Seconds));
    let series = [Trace::Marked, Trace::Line].map(|trace| Curve {
        name: format!("{trace:?}"),
        trace,
        points: points.clone(),
    });
    curves("Predicted against measured", &[], x, y, &series)
}

/// The texts of an SVG document; those that are cut off end with an ellipsis.
fn texts(svg: &str) -> Vec<String> {
    svg.split("<text")
        .skip(1)
        .map(|rest| {
            let content = rest.split_once('>').unwrap().1.split_once("</text>").unwrap().0;
            content.trim().replace("&lt;", "<").replace("&gt;", ">").replace("&apos;", "'")
        })
        .collect()
}

fn assert_has(svg: &str, wanted: &[&str]) {
    let texts = texts(svg);
    for text in wanted {
        assert!(texts.iter().any(|t| t == text), "'{text}' is not in {texts:?}");
    }
}

fn pixels(png: &[u8]) -> ((u32, u32), Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    ((info.width, info.height), pixels)
}

/// The least rectangle that holds everything that is not white: (left, top, right, bottom).
fn inked(figure: &Figure) -> (u32, u32, u32, u32) {
    let ((width, _), pixels) = pixels(&figure.png().unwrap());
    let ink = pixels.chunks(3).zip(0_u32..).filter(|(pixel, _)| *pixel != [255, 255, 255]);
    ink.map(|(_, index)| (index % width, index / width))
        .fold((u32::MAX, u32::MAX, 0, 0), |(left, top, right, bottom), (x, y)| {
            (left.min(x), top.min(y), right.max(x), bottom.max(y))
        })
}

#[test]
fn both_files_are_written_and_whole() {
    let dir = tempfile::tempdir().unwrap();
    let figure = penalty_map(&made_up::penalties(&[2, 4], &[1, 1024]), BCAST).unwrap();
    let [svg, png] = save(&figure, &dir.path().join("penalty.bcast")).unwrap();
    assert_eq!(svg, dir.path().join("penalty.bcast.svg"), "a stem's own dot stays");
    assert_eq!(png, dir.path().join("penalty.bcast.png"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside them");
    let text = fs::read_to_string(&svg).unwrap();
    let (width, height) = figure.size();
    assert!(text.starts_with(&format!("<svg width=\"{width}\" height=\"{height}\"")), "{text:.80}");
    assert!(text.ends_with("</svg>\n"));
    assert_eq!(pixels(&fs::read(&png).unwrap()).0, (width, height));
}

#[test]
fn a_file_that_cannot_be_written_is_named_with_the_reason() {
    let figure = time_curves(&[1.0], &[1.0]);
    let error = save(&figure, Path::new("/no/such/folder/figure")).unwrap_err();
    assert!(matches!(error, FigureError::File(_)));
    let text = error.to_string();
    assert!(text.contains("/no/such/folder/figure.svg"), "{text}");
    assert!(text.contains("no such file or directory"), "{text}");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    for (first, second) in every_kind().into_iter().zip(every_kind()) {
        assert_eq!(first.svg().unwrap(), second.svg().unwrap());
        assert_eq!(first.svg().unwrap(), first.svg().unwrap());
    }
    let small = || {
        let map = penalty_map(&made_up::penalties(&[2, 4], &[1, 1024]), BCAST).unwrap();
        [map, time_curves(&[1.0, 1024.0], &[1e-5, 1e-4])]
    };
    for (first, second) in small().into_iter().zip(small()) {
        assert_eq!(first.png().unwrap(), second.png().unwrap());
    }
}

#[test]
fn nothing_reaches_the_edge() {
    for figure in every_kind() {
        let (width, height) = figure.size();
        let (left, top, right, bottom) = inked(&figure);
        assert!(left >= 12 && top >= 12, "{left} {top}");
        assert!(right < width - 6 && bottom < height - 12, "{right} {bottom} of {width} {height}");
    }
}

#[test]
fn no_text_is_cut_off_at_the_usual_sizes() {
    let many: Vec<u32> = (2..=32).collect();
    let penalties = made_up::penalties(&many, &made_up::sizes(24));
    let mut figures = every_kind();
    figures.push(penalty_map(&penalties, BCAST).unwrap());
    for figure in figures {
        for text in texts(&figure.svg().unwrap()) {
            assert!(!text.contains('\u{2026}'), "'{text}' is cut off");
        }
    }
}

#[test]
fn a_penalty_map_has_panels_ticks_units_and_legend() {
    let mut penalties = made_up::penalties(&[2, 4, 8], &made_up::sizes(21));
    penalties.summaries[1].mean = 0.234;
    penalties.summaries[1].greatest = 3.12;
    let whole = penalty_map(&penalties, BCAST).unwrap().svg().unwrap();
    assert_has(
        &whole,
        &[
            "Penalty of following each decision function: bcast",
            "8 ranks on 8 hosts, testbed of 8 nodes, 100mbit, Open MPI v4.1.4",
            "(a) hockney",
            "(b) loggp",
            "(c) plogp",
            "(d) default",
            "mean 23 %, greatest 312 %, 63 points",
            "message size (count x type size)",
            "processes",
            "B",
            "KiB",
            "MiB",
            "512",
            "8",
            "penalty: time(decided) / time(best measured) - 1, in %",
            "< 5 %",
            "5 %",
            "300 %",
            "> 300 %",
        ],
    );
    assert!(!texts(&whole).contains(&"no data".to_owned()), "there is data everywhere");
    penalties.penalties.remove(5);
    assert_has(&penalty_map(&penalties, BCAST).unwrap().svg().unwrap(), &["no data"]);
}

#[test]
fn a_penalty_is_written_into_its_cell_and_shaded() {
    let mut penalties = made_up::penalties(&[2, 4, 8], &made_up::sizes(21));
    for penalty in &mut penalties.penalties {
        penalty.penalty = 0.0;
    }
    let blank = penalty_map(&penalties, BCAST).unwrap();
    penalties.penalties[10].penalty = 4.37;
    let spotted = penalty_map(&penalties, BCAST).unwrap();
    assert_has(&spotted.svg().unwrap(), &["437%"]);
    let dark = |figure: &Figure| {
        let (_, pixels) = pixels(&figure.png().unwrap());
        pixels.chunks(3).filter(|pixel| pixel.iter().all(|channel| *channel < 10)).count()
    };
    // One cell of 66 by 43 pixels is black now, but for the number in it.
    assert!(dark(&spotted) > dark(&blank) + 1500, "{} {}", dark(&spotted), dark(&blank));
}

#[test]
fn a_decision_map_names_its_algorithms_and_segments() {
    let penalties = made_up::penalties(&[2, 4, 8], &made_up::sizes(21));
    let decisions = made_up::decisions(&[2, 4, 8], &made_up::sizes(21));
    let svg = decision_map(&decisions, Some(&penalties), BCAST).unwrap().svg().unwrap();
    assert_has(
        &svg,
        &[
            "(a) measured best",
            "(b) hockney",
            "(c) loggp",
            "(d) plogp",
            "algorithm:",
            "binomial",
            "binary",
            "splitted-binary",
            "pipeline",
            "segment size:",
            "unsegmented",
            "1 KiB",
            "8 KiB",
            "8KiB",
            "ties with others within the uncertainty",
            "parameters: calibration.json (measured); closed forms: corrected",
        ],
    );
    let legend = texts(&svg);
    assert!(!legend.contains(&"linear".to_owned()), "what does not occur is not in the legend");
}

#[test]
fn an_algorithm_has_one_colour_in_all_figures() {
    let color_of = |svg: &str, name: &str| {
        let before = &svg[..svg.find(&format!(">\n{name}\n")).unwrap()];
        let patch = before.rfind("stroke=\"none\"").unwrap();
        let fill = &before[..patch][before[..patch].rfind("fill=\"#").unwrap()..];
        fill[6..13].to_owned()
    };
    let small = made_up::decisions(&[2, 4, 8], &made_up::sizes(21));
    let large = made_up::decisions(&[16, 32], &made_up::sizes(8));
    let small = decision_map(&small, None, BCAST).unwrap().svg().unwrap();
    let large = decision_map(&large, None, BCAST).unwrap().svg().unwrap();
    assert_eq!(color_of(&small, "binomial"), "#56B4E9");
    assert_eq!(color_of(&large, "binomial"), "#56B4E9");
    assert_ne!(color_of(&large, "linear"), "#56B4E9");
}

#[test]
fn mock_ups_the_default_and_own_methods_are_told_apart() {
    let mut decisions = made_up::decisions(&[4, 8], &made_up::sizes(12));
    let own = Method::Own { algorithm: Algorithm::Pipeline, segment_bytes: 3000 };
    decisions.decisions[0].method = Method::Mockup("bcast_as_scatter_allgather".into());
    decisions.decisions[1].method = Method::Default;
    decisions.decisions[2].method = own;
    let svg = decision_map(&decisions, None, BCAST).unwrap().svg().unwrap();
    assert_has(
        &svg,
        &[
            "M1 = bcast_as_scatter_allgather",
            "M1",
            "the library's default",
            "Colibri's own, on point-to-point",
            "3000 B",
            "3000",
        ],
    );
}

#[test]
fn parameters_have_values_with_units() {
    let svg = parameters(&made_up::calibration()).unwrap().svg().unwrap();
    assert_has(
        &svg,
        &[
            "measured: Hockney alpha 71.0 us, beta 84.2 ns/byte; LogGP L 52.0 us, o 6.00 us, \
             g 13.0 us, G 84.2 ns/byte; PLogP L 55.0 us; gamma 0.300 ns/byte",
            "Hockney: alpha + beta m",
            "PLogP: g(m)",
            "PLogP: os(m)",
            "PLogP: or(m)",
            "PLogP: L",
            "1 KiB",
            "1 MiB",
            "100 us",
            "message size m",
            "time",
        ],
    );
}

#[test]
fn whatever_else_was_measured_has_a_panel() {
    let mut calibration = made_up::calibration();
    let few = parameters(&calibration).unwrap().svg().unwrap();
    assert!(!few.contains("gamma(m)") && !few.contains("Hockney over m"));
    made_up::complete(&mut calibration);
    let svg = parameters(&calibration).unwrap().svg().unwrap();
    assert_has(
        &svg,
        &[
            "(e) Hockney over m, measured",
            "Hockney: beta(m) m",
            "(f) gap of k partners over k g(m)",
            "g(m, k): 1 to 7",
            "g(m, k): to 1 from 2",
            "(g) gamma(m), measured",
            "gamma: sum-double",
            "ns per byte",
        ],
    );
}

#[test]
fn fits_show_times_residuals_and_how_straight_they_are() {
    let mut calibration = made_up::calibration();
    assert!(matches!(fits(&calibration), Err(FigureError::NothingToDraw(_))));
    made_up::complete(&mut calibration);
    let svg = fits(&calibration).unwrap().svg().unwrap();
    assert_has(
        &svg,
        &[
            "(a) times over P",
            "(b) times over their lines",
            "flat-tree barrier, 0 B",
            "pipelined bcast, 64 KiB",
        ],
    );
    let straight = |text: &String| text.starts_with("R^2: flat-tree barrier, 0 B 0.9900");
    assert!(texts(&svg).iter().any(straight));
}

#[test]
fn constants_of_algorithms_are_shown_with_their_residuals() {
    let mut calibration = made_up::calibration();
    let empty = algorithm_fits(&calibration, Collective::Bcast);
    assert!(matches!(empty, Err(FigureError::NothingToDraw(_))));
    made_up::complete(&mut calibration);
    let svg = algorithm_fits(&calibration, Collective::Bcast).unwrap().svg().unwrap();
    assert_has(
        &svg,
        &[
            "Constants of algorithms: residuals of bcast",
            "(a) hockney forms",
            "(b) refined forms",
            "own:binomial",
            "native:openmpi:pipeline",
            "measured / form",
        ],
    );
    let worst =
        "refined forms are off by (median): native:openmpi:pipeline 4.0 %; own:binomial 2.0 %";
    assert!(texts(&svg).iter().any(|text| text == worst), "{:?}", texts(&svg));
    let other = algorithm_fits(&calibration, Collective::Reduce);
    assert!(matches!(other, Err(FigureError::NothingToDraw(_))));
}

#[test]
fn gains_are_default_over_tuned() {
    let mut penalties = made_up::penalties(&[8], &[1024]);
    for penalty in &mut penalties.penalties {
        penalty.best_seconds = 0.049;
        penalty.decided_seconds = if penalty.decided == Method::Default { 0.307 } else { 0.0614 };
    }
    let point = |tuned_seconds| GainPoint { bytes: 1024, default_seconds: 0.307, tuned_seconds };
    let wanted = |tuned| vec![GainPanel { layout: 8_u32.into(), points: vec![point(tuned)] }];
    assert_eq!(gains(&penalties, BCAST, None), wanted(0.049));
    assert_eq!(gains(&penalties, BCAST, Some("plogp")), wanted(0.0614));
    assert_eq!(gains(&penalties, BCAST, Some("nobody")), []);
    let svg = gain(BCAST, &[], &wanted(0.049)).unwrap().svg().unwrap();
    assert_has(
        &svg,
        &[
            "(a) 8 processes",
            "ratio",
            "6.3",
            "the library's default",
            "tuned",
            "ratio default / tuned: 6.3 in the geometric mean, 6.3 at most, 1 point",
        ],
    );
}

#[test]
fn a_barrier_is_drawn_over_the_processes() {
    let gains: Vec<GainPanel> = [2, 4, 8]
        .map(|procs| {
            let default_seconds = f64::from(procs) * 2e-5;
            let point = GainPoint { bytes: 0, default_seconds, tuned_seconds: 1e-5 };
            GainPanel { layout: procs.into(), points: vec![point] }
        })
        .into();
    let svg = gain(Collective::Barrier, &[], &gains).unwrap().svg().unwrap();
    assert_has(&svg, &["processes", "2", "4", "8", "16"]);
}

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
        (measured_map(&made_up::penalties(&[], &[1]), reduce), "no cells for reduce (it is empty)"),
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
        "too much to draw: 1100 process counts, at most 1024 fit into one figure"
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
    assert_has(&svg, &[note]);
}

#[test]
fn extreme_values_are_drawn() {
    let mut penalties = made_up::penalties(&[1, 2], &[0, 1, 1000, u64::MAX]);
    for penalty in penalties.penalties.iter_mut().filter(|penalty| penalty.layout.procs() == 2) {
        penalty.layout = u32::MAX.into();
    }
    let extremes = [0.0, -1.0, f64::MAX, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE];
    for (index, penalty) in penalties.penalties.iter_mut().enumerate() {
        penalty.penalty = extremes[index % extremes.len()];
        penalty.best_seconds = extremes[(index + 1) % extremes.len()];
    }
    for summary in &mut penalties.summaries {
        summary.mean = f64::MAX;
        summary.greatest = f64::INFINITY;
    }
    let figure = penalty_map(&penalties, BCAST).unwrap();
    assert_has(&figure.svg().unwrap(), &[">999%", "no data"]);
    pixels(&figure.png().unwrap());
    let all = gains(&penalties, BCAST, None);
    gain(BCAST, &[], &all).unwrap().png().unwrap();
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
