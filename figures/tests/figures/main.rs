//! What is in the pictures, whether they are whole, and that no input makes them panic.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path};

use colibri_figures::{
    Axis, ComparedPoint, Curve, Figure, FigureError, GainPanel, GainPoint, PlotPoint, Quantity,
    Trace, algorithm_fits, decision_map, difference_map, fits, gain, pair_map, panels, parameters,
    penalty_map, save,
};
use records::Collective;

#[path = "../made_up/mod.rs"]
mod made_up;
mod maps;
#[path = "../../../tests/skipped.rs"]
mod skipped;
mod unusual;

const BCAST: Collective = Collective::Bcast;

fn every_kind() -> Vec<Figure> {
    let penalties = made_up::penalties(&[2, 4, 8], &made_up::sizes(21));
    let decisions = made_up::decisions(&[2, 4, 8], &made_up::sizes(21));
    let mut complete = made_up::calibration();
    made_up::complete(&mut complete);
    vec![
        penalty_map(&penalties, BCAST).unwrap(),
        decision_map(&decisions, Some(&penalties), BCAST).unwrap(),
        parameters(&made_up::calibration()).unwrap(),
        algorithm_fits(&complete, BCAST).unwrap(),
        pair_map(&made_up::pairs(8)).unwrap(),
        difference(&made_up::differences(&[2, 4, 8], &made_up::sizes(21))).unwrap(),
        gain(
            BCAST,
            &[penalties.platform.summary()],
            &made_up::gains(&[2, 4, 8], &made_up::sizes(21)),
        )
        .unwrap(),
        time_curves(&[1.0, 1024.0], &[1e-5, 1e-4]),
    ]
}

fn difference(points: &[ComparedPoint]) -> Result<Figure, FigureError> {
    difference_map(BCAST, ["a.json, loggp", "b.json, plogp"], "predicted by plogp", points)
}

fn table(figure: &Figure) -> Vec<Vec<String>> {
    let text = figure.csv().unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect());
    rows.collect()
}

/// Points come back to the last digit, with the panel and series that they are of.
#[test]
fn the_table_of_a_figure_holds_what_it_shows() {
    let axis = |label: &str, quantity| Axis { label: label.into(), quantity };
    let axes = (axis("size", Quantity::Bytes), axis("time", Quantity::Seconds));
    let points = vec![
        PlotPoint { x: 8.0, y: 1.0 / 3.0, low: 0.1, high: 0.7 },
        PlotPoint::exact(64.0, 1.234_567_890_123e-9),
    ];
    let series =
        |name: &str| Curve { name: name.into(), trace: Trace::Line, points: points.clone() };
    let names = ["own, \"x\"", "it's"];
    let all = [
        ("first".to_owned(), names.map(series).to_vec()),
        ("second".to_owned(), vec![series(names[1])]),
    ];
    let figure = panels("Times", &[], axes, &all).unwrap();
    let rows = table(&figure);
    assert_eq!(rows.len(), 6);
    for (row, (panel, series)) in rows.chunks(2).zip([(0, 0), (0, 1), (1, 1)]) {
        for (line, point) in row.iter().zip(&points) {
            let numbers: Vec<f64> =
                line[4..].iter().map(|number| number.parse().unwrap()).collect();
            assert_eq!(numbers, [point.x, point.y, point.low, point.high]);
            assert_eq!((&line[0], &line[2]), (&panel.to_string(), &series.to_string()));
            assert_eq!(line[3], names[series]);
        }
    }
    let script = figure.gnuplot("times.csv").unwrap();
    for part in ["'times.csv' every ::1", "title 'it''s'", "set logscale x 2", "$1==1 && $3==1"] {
        assert!(script.contains(part), "{part}: {script}");
    }
}

/// Every cell of a map, by its row and column.
#[test]
fn the_table_of_a_map_has_its_cells() {
    let penalties = made_up::penalties(&[2, 4, 8], &made_up::sizes(5));
    let figure = penalty_map(&penalties, BCAST).unwrap();
    let rows = table(&figure);
    let panels: std::collections::BTreeSet<&str> = rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(rows.len(), panels.len() * 3 * 5);
    let whole: std::collections::BTreeSet<[&str; 3]> =
        rows.iter().map(|row| [row[0].as_str(), &row[2], &row[3]]).collect();
    assert_eq!(whole.len(), rows.len(), "each place once");
    assert!(rows.iter().all(|row| row[7].parse::<u32>().unwrap() < 1 << 24));
}

/// Where gnuplot is installed it draws every script.
#[test]
fn gnuplot_draws_the_scripts() {
    let dir = tempfile::tempdir().unwrap();
    if std::process::Command::new("gnuplot").arg("--version").output().is_err() {
        return skipped::skipped("gnuplot_draws_the_scripts", "gnuplot is not installed");
    }
    for (index, figure) in every_kind().iter().enumerate() {
        let stem = dir.path().join(format!("figure-{index}"));
        save(figure, &stem).unwrap();
        let mut gnuplot = std::process::Command::new("gnuplot");
        let script = format!("figure-{index}.gp");
        let output = gnuplot.arg(&script).current_dir(dir.path()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && told.is_empty(), "{script}: {told}");
        let svg = fs::read_to_string(dir.path().join(format!("figure-{index}.gnuplot.svg")));
        let svg = svg.unwrap();
        assert!(svg.contains("</svg>") && svg.matches("<path").count() > 3, "{script}: {told}");
    }
}

#[test]
fn panels_share_one_legend() {
    let axis = |label: &str, quantity| Axis { label: label.into(), quantity };
    let axes = (axis("ranks", Quantity::Processes), axis("time", Quantity::Seconds));
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
    panels("Predicted against measured", &[], (x, y), &[(String::new(), series.to_vec())])
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
    assert!(
        ["csv", "gp"].iter().all(|end| dir.path().join(format!("penalty.bcast.{end}")).exists())
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4, "nothing else is left beside them");
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
    let svg = gain(BCAST, &[], &[gains_of_eight()]).unwrap().svg().unwrap();
    assert_has(
        &svg,
        &[
            "8 ranks",
            "speed-up",
            "6.3",
            "the library's default",
            "with it loaded",
            "speed-up 6.3 (geometric mean), at most 6.3, at 1 of 2",
        ],
    );
}

/// One size is replaced, the other left to the default.
fn gains_of_eight() -> GainPanel {
    let point = |bytes, tuned_seconds| {
        let interval = Some([6.0, 6.5]);
        GainPoint { bytes, default_seconds: 0.307, tuned_seconds, interval }
    };
    GainPanel { layout: 8_u32.into(), points: vec![point(64, None), point(1024, Some(0.049))] }
}

#[test]
fn a_gain_has_all_points_and_its_interval() {
    let csv = gain(BCAST, &[], &[gains_of_eight()]).unwrap().csv().unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let of = |name: &str| rows.iter().filter(|row| row[3] == name).collect::<Vec<_>>();
    assert_eq!((of("the library's default").len(), of("with it loaded").len()), (2, 1), "{csv}");
    let [y, low, high] = [5, 6, 7].map(|at| of("with it loaded")[0][at].parse::<f64>().unwrap());
    assert!((low - 0.307 / 6.5).abs() < 1e-9 && (high - 0.307 / 6.0).abs() < 1e-9, "{csv}");
    assert!(low < y && y < high, "{csv}");
}

/// A panel of one place would be an empty frame with a dot.
#[test]
fn what_has_one_place_is_a_sentence() {
    let mut alone = gains_of_eight();
    alone.layout = 2_u32.into();
    alone.points.remove(0);
    let figure = gain(BCAST, &[], &[alone.clone(), gains_of_eight()]).unwrap();
    let svg = figure.svg().unwrap();
    let told =
        "2 ranks, 1 KiB: the library's default 307 ms, with it loaded 49.0 ms (47.2 ms to 51.2 ms)";
    assert_has(&svg, &["8 ranks"]);
    assert!(svg.contains(&format!("<desc>{told}</desc>")), "{svg}");
    assert_eq!(svg.matches("<svg class=\"panel\"").count(), 1);
    assert!(figure.csv().unwrap().contains("2 ranks"), "its data are there");
    let none = gain(BCAST, &[], &[alone]).unwrap();
    assert!(!none.svg().unwrap().contains("<svg class=\"panel\""));
    none.png().unwrap();
}

/// A page places them by itself, as a telephone needs it.
#[test]
fn each_part_of_a_figure_is_an_element() {
    let count = |svg: &str, class: &str| svg.matches(&format!("<svg class=\"{class}\"")).count();
    let penalties = made_up::penalties(&[2, 4], &made_up::sizes(4));
    let map = penalty_map(&penalties, BCAST).unwrap().svg().unwrap();
    assert_eq!(["heading", "panel", "scale"].map(|class| count(&map, class)), [1, 1, 1]);
    assert_eq!(texts(&map).iter().filter(|text| *text == "ranks").count(), 1, "one axis");
    let mut calibration = made_up::calibration();
    made_up::complete(&mut calibration);
    let plots = parameters(&calibration).unwrap();
    let svg = plots.svg().unwrap();
    assert_eq!(count(&svg, "panel"), 7);
    assert!(svg.contains("<title>Parameters of the models</title>"));
    // Each panel has a legend of its own, and the last one's fills the place beside it.
    let (width, height) = plots.size();
    let (_, _, right, bottom) = inked(&plots);
    let ((wide, _), pixels) = pixels(&plots.png().unwrap());
    let ink = |x: u32, y: u32| pixels[3 * (y * wide + x) as usize..][..3] != [255, 255, 255];
    let quarter = (width / 2 + 40..right).any(|x| (height - 500..bottom).any(|y| ink(x, y)));
    assert!(quarter, "nothing stands beside the last panel");
}

#[test]
fn a_barrier_is_drawn_over_the_processes() {
    let gains: Vec<GainPanel> = [2, 4, 8]
        .map(|procs| {
            let default_seconds = f64::from(procs) * 2e-5;
            let point =
                GainPoint { bytes: 0, default_seconds, tuned_seconds: Some(1e-5), interval: None };
            GainPanel { layout: procs.into(), points: vec![point] }
        })
        .into();
    let svg = gain(Collective::Barrier, &[], &gains).unwrap().svg().unwrap();
    assert_has(&svg, &["ranks", "2", "4", "8", "16"]);
    // Layouts of as many processes have panels of their own.
    let layouts = ["2", "4", "2x2", "4x2"].map(|layout| GainPanel {
        layout: layout.parse().unwrap(),
        points: vec![GainPoint {
            bytes: 0,
            default_seconds: 2e-5,
            tuned_seconds: Some(1e-5),
            interval: None,
        }],
    });
    let svg = gain(Collective::Barrier, &[], &layouts).unwrap().svg().unwrap();
    assert_has(&svg, &["(a) 1 per node", "(b) 2 per node"]);
}
