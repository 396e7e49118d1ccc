//! Maps of decisions, penalties, differences and pairs.

use colibri_figures::{Figure, decision_map, pair_map, penalty_map};
use records::{Algorithm, Method};

use super::{BCAST, assert_has, difference, made_up, pixels, texts};

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
    for decision in &mut decisions.choices {
        decision.extrapolated = decision.point.layout.procs() == 8 || decision.point.bytes > 1000;
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
    // Around it: 12 + 3 columns of 75 pixels and back, 3 rows of 40 twice, in 3 panels.
    assert!(black(&marked) > black(&plain) + 3 * 3 * 2000, "{}", black(&marked));
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

#[test]
fn a_penalty_map_has_panels_ticks_units_and_legend() {
    let mut penalties = made_up::penalties(&[2, 4, 8], &made_up::sizes(21));
    penalties.summaries[1].penalty.mean = 0.234;
    penalties.summaries[1].penalty.greatest = 3.12;
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
            "ranks",
            "B",
            "KiB",
            "MiB",
            "512",
            "8",
            "penalty: time(decided) / time(best measured) - 1, in %; below 0 is noise",
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
    // As many digits as below, so that all numbers are written alike.
    penalties.penalties[10].penalty = 1.37;
    let blank = penalty_map(&penalties, BCAST).unwrap();
    penalties.penalties[10].penalty = 4.37;
    let spotted = penalty_map(&penalties, BCAST).unwrap();
    assert_has(&spotted.svg().unwrap(), &["437"]);
    let dark = |figure: &Figure| {
        let (_, pixels) = pixels(&figure.png().unwrap());
        pixels.chunks(3).filter(|pixel| pixel.iter().all(|channel| *channel < 10)).count()
    };
    // One cell of 47 by 40 pixels is black now, but for the number in it.
    assert!(dark(&spotted) > dark(&blank) + 1000, "{} {}", dark(&spotted), dark(&blank));
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
    let own = Method::own(Algorithm::Pipeline).with_segment(3000);
    decisions.choices[0].method = Method::Mockup("bcast_as_scatter_allgather".into());
    decisions.choices[1].method = Method::Default;
    decisions.choices[2].method = own;
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
