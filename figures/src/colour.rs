//! Colours that readers with any colour vision tell apart, fixed for all figures.

use plotters::style::{RGBColor, colors::colormaps::ViridisRGB};
use records::{Algorithm, Method};

pub(crate) const BLACK: RGBColor = RGBColor(0, 0, 0);
pub(crate) const WHITE: RGBColor = RGBColor(255, 255, 255);
/// Text of lesser weight.
pub(crate) const GREY: RGBColor = RGBColor(80, 80, 80);
/// Frames and the lines of a grid.
pub(crate) const LIGHT: RGBColor = RGBColor(205, 205, 205);
/// Cells that hold nothing, under their hatching.
pub(crate) const EMPTY: RGBColor = RGBColor(240, 240, 240);

/// Below this a penalty counts as none: white, as in Figure 7 of the paper.
pub(crate) const LEAST: f64 = 0.05;
/// Above this a penalty is off the scale, as in Figure 7 of the paper.
pub(crate) const GREATEST: f64 = 3.0;

/// The shade of a penalty (a fraction: 0.05 is 5 %): white below 5 %, viridis from yellow to blue
/// up to 300 % by the logarithm, black above.
pub(crate) fn of_penalty(penalty: f64) -> RGBColor {
    match penalty {
        p if p < LEAST => WHITE,
        p if p > GREATEST => BLACK,
        p => on_scale((p / LEAST).ln() / (GREATEST / LEAST).ln()),
    }
}

/// Viridis from its light end (0) to the dark one (1). The darkest tenth is left out: it could not
/// be told from black.
pub(crate) fn on_scale(position: f64) -> RGBColor {
    ViridisRGB::get_color_normalized(1.0 - 0.88 * position.clamp(0.0, 1.0), 0.0, 1.0)
}

/// The colour of a ratio of two times: grey where they are within 5 % of each other, red the
/// darker the more it exceeds 1, blue the darker the more it falls short, to 300 % and 1/4; both ends
/// differ in hue for any colour vision.
pub(crate) fn of_ratio(ratio: f64) -> RGBColor {
    let (excess, slower) = if ratio >= 1.0 { (ratio, true) } else { (1.0 / ratio, false) };
    match excess - 1.0 {
        excess if excess < LEAST => EQUAL_TIMES,
        excess => on_sides((excess / LEAST).ln() / (GREATEST / LEAST).ln(), slower),
    }
}

/// Times that are as good as equal.
pub(crate) const EQUAL_TIMES: RGBColor = RGBColor(222, 222, 222);

/// ColorBrewer's red and blue from their light ends (0) to the dark ones (1).
pub(crate) fn on_sides(position: f64, slower: bool) -> RGBColor {
    let stops = match slower {
        true => [RGBColor(253, 219, 199), RGBColor(214, 96, 77), RGBColor(103, 0, 31)],
        false => [RGBColor(209, 229, 240), RGBColor(67, 147, 195), RGBColor(5, 48, 97)],
    };
    let position = 2.0 * position.clamp(0.0, 1.0);
    let first = if position < 1.0 { 0 } else { 1 };
    let part = position - first as f64;
    let (from, to) = (stops[first], stops[first + 1]);
    let mix = |from: u8, to: u8| {
        (f64::from(from) + part * (f64::from(to) - f64::from(from))).round() as u8
    };
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// Black or white, whichever is easier to read on `ground`.
pub(crate) fn contrasting(ground: RGBColor) -> RGBColor {
    // Where the contrasts (L + 0.05) / 0.05 and 1.05 / (L + 0.05) are equal (WCAG 2).
    if luminance(ground) > 0.179 { BLACK } else { WHITE }
}

/// Relative luminance of sRGB (WCAG 2), 0 to 1.
fn luminance(RGBColor(red, green, blue): RGBColor) -> f64 {
    let linear = |channel: u8| match f64::from(channel) / 255.0 {
        c if c <= 0.04045 => c / 12.92,
        c => ((c + 0.055) / 1.055).powf(2.4),
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

/// Okabe and Ito's palette for series of curves, but for its yellow, too light for a line, and with
/// grey for its black; and an olive of Tol's.
pub(crate) const SERIES: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(60, 60, 60),
    RGBColor(153, 153, 51),
];

/// The colour of a method's algorithm, the same in every figure.
///
/// Okabe and Ito's eight go to the algorithms of broadcast and reduce that compete most; the others
/// take colours of Tol's, so that those that occur in one collective differ.
pub(crate) fn of_method(method: &Method) -> RGBColor {
    match method {
        Method::Default => RGBColor(187, 187, 187),
        Method::Mockup(_) | Method::Plugin(_) | Method::Other(_) => RGBColor(119, 119, 119),
        Method::Native(_) | Method::Own(_) => method.algorithm().map_or(EMPTY, of_algorithm),
    }
}

/// Of algorithms that came later: from two-level on, one of each.
const LATER: [RGBColor; 18] = [
    RGBColor(17, 119, 51),
    RGBColor(170, 68, 153),
    RGBColor(68, 170, 153),
    RGBColor(102, 37, 6),
    RGBColor(100, 143, 255),
    RGBColor(128, 128, 128),
    RGBColor(254, 97, 0),
    RGBColor(0, 68, 27),
    RGBColor(250, 159, 181),
    RGBColor(120, 94, 240),
    RGBColor(221, 204, 119),
    // Of shared memory.
    RGBColor(255, 0, 128),
    RGBColor(0, 220, 220),
    RGBColor(160, 220, 40),
    RGBColor(190, 90, 30),
    RGBColor(204, 102, 119),
    RGBColor(51, 34, 136),
    RGBColor(0, 100, 140),
];

fn of_algorithm(algorithm: Algorithm) -> RGBColor {
    use Algorithm as A;
    match algorithm {
        A::Linear => RGBColor(240, 228, 66),
        A::Binomial => RGBColor(86, 180, 233),
        A::Binary => RGBColor(0, 158, 115),
        A::SplittedBinary => RGBColor(230, 159, 0),
        A::Pipeline => RGBColor(0, 114, 178),
        A::KChain => RGBColor(204, 121, 167),
        A::ScatterAllgather => RGBColor(213, 94, 0),
        A::ScatterAllgatherRing => RGBColor(136, 34, 85),
        A::KNomial => RGBColor(0, 0, 0),
        A::InOrderBinary => RGBColor(153, 153, 51),
        A::TwoProcs => RGBColor(230, 159, 0),
        A::Rabenseifner => RGBColor(213, 94, 0),
        A::RecursiveDoubling => RGBColor(153, 153, 51),
        A::Ring => RGBColor(0, 114, 178),
        A::SegmentedRing => RGBColor(230, 159, 0),
        A::Bruck => RGBColor(0, 158, 115),
        A::Pairwise => RGBColor(204, 121, 167),
        A::NeighborExchange => RGBColor(136, 34, 85),
        A::DoubleRing => RGBColor(213, 94, 0),
        A::RecursiveHalving => RGBColor(0, 0, 0),
        A::Traff => RGBColor(213, 94, 0),
        A::LinearBlocking | A::LinearConcurrent => RGBColor(0, 114, 178),
        A::LinearAscending => RGBColor(153, 153, 51),
        A::LinearReady => RGBColor(0, 158, 115),
        A::LinearSynchronised => RGBColor(0, 0, 0),
        A::LinearDescending => RGBColor(230, 159, 0),
        A::BinomialAscending => RGBColor(204, 121, 167),
        A::BinomialDescending => RGBColor(136, 34, 85),
        later => LATER[later as usize - A::TwoLevel as usize],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libraries::openmpi;
    use records::Collective;
    use std::collections::BTreeSet;

    #[test]
    fn the_scale_darkens_steadily_from_white_to_black() {
        let mut last = luminance(of_penalty(0.0));
        assert_eq!(of_penalty(-0.1), WHITE);
        assert_eq!(of_penalty(0.049), WHITE);
        for step in 0..=60 {
            let penalty = (LEAST * 60_f64.powf(f64::from(step) / 60.0)).min(GREATEST);
            let next = luminance(of_penalty(penalty));
            assert!(next < last, "at {penalty}: {next} is not darker than {last}");
            last = next;
        }
        assert!(last > luminance(BLACK) + 0.02, "off the scale is darker than its end");
        assert_eq!(of_penalty(f64::INFINITY), BLACK);
    }

    #[test]
    fn the_sides_of_a_ratio_darken_steadily_and_differ() {
        assert_eq!([of_ratio(1.0), of_ratio(1.049), of_ratio(1.0 / 1.049)], [EQUAL_TIMES; 3]);
        let mut last = [luminance(EQUAL_TIMES); 2];
        for step in 0..=30 {
            let ratio = 1.0 + LEAST * 60_f64.powf(f64::from(step) / 30.0);
            let sides = [of_ratio(ratio), of_ratio(1.0 / ratio)];
            assert!(sides[0].0 > sides[0].2 && sides[1].0 < sides[1].2, "{ratio}: {sides:?}");
            let next = sides.map(luminance);
            assert!(step == 0 || (next[0] < last[0] && next[1] < last[1]), "{ratio}: {next:?}");
            last = next;
        }
        assert_eq!(of_ratio(f64::INFINITY), of_ratio(1.0 + GREATEST));
        assert_eq!(of_ratio(0.0), of_ratio(1.0 / (1.0 + GREATEST)));
    }

    #[test]
    fn text_is_readable_on_every_colour() {
        let scale = (0..=20).map(|step| on_scale(f64::from(step) / 20.0));
        let algorithms = Algorithm::ALL.iter().map(|algorithm| of_algorithm(*algorithm));
        let ratios = (-20..=20).map(|power| of_ratio(1.1_f64.powi(power)));
        for ground in scale.chain(algorithms).chain(ratios).chain(SERIES) {
            let (a, b) = (luminance(ground), luminance(contrasting(ground)));
            let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
            assert!(contrast >= 4.5, "{ground:?}: {contrast}");
        }
    }

    /// Those that have a schedule, of messages, shared memory or by nodes, with Open MPI's own and the paper's.
    #[test]
    fn algorithms_of_one_collective_have_different_colours() {
        for collective in Collective::ALL {
            let scheduled = schedules::of_collective(collective).map(|entry| entry.algorithm);
            let native = openmpi::algorithms(collective).iter().map(|native| native.algorithm);
            let shared = schedules::shared_of_collective(collective).map(|entry| entry.algorithm);
            let node_aware =
                schedules::NODE_AWARE.iter().filter(|one| one.collective == collective);
            let node_aware = node_aware.map(|entry| entry.algorithm);
            let algorithms: BTreeSet<Algorithm> =
                scheduled.chain(native).chain(shared).chain(node_aware).collect();
            let colours: BTreeSet<(u8, u8, u8)> =
                algorithms.iter().map(|algorithm| rgb(of_algorithm(*algorithm))).collect();
            assert_eq!(colours.len(), algorithms.len(), "{collective}: {algorithms:?}");
            let Some(shared) = shared else { continue };
            let RGBColor(red, green, blue) = of_algorithm(shared);
            for other in algorithms.iter().filter(|other| **other != shared) {
                let (r, g, b) = rgb(of_algorithm(*other));
                let squares = [(red, r), (green, g), (blue, b)]
                    .map(|(one, two)| (f64::from(one) - f64::from(two)).powi(2));
                let apart = squares.iter().sum::<f64>().sqrt();
                assert!(apart > 60.0, "{collective}: {shared} and {other} are {apart} apart");
            }
        }
    }

    /// By normal sight and by the two common colour blindnesses (Vienot, Brettel and Mollon 1999,
    /// in linear RGB).
    #[test]
    fn series_are_told_apart_by_any_reader() {
        const SIGHTS: [[[f64; 3]; 3]; 3] = [
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
            [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
        ];
        let seen = |color: RGBColor, sight: &[[f64; 3]; 3]| {
            let (r, g, b) = rgb(color);
            let linear = [r, g, b].map(|channel| (f64::from(channel) / 255.0).powf(2.2));
            sight.map(|row| {
                let sum: f64 = row.iter().zip(linear).map(|(weight, part)| weight * part).sum();
                sum.clamp(0.0, 1.0).powf(1.0 / 2.2)
            })
        };
        for sight in &SIGHTS {
            for (index, one) in SERIES.iter().enumerate() {
                for other in &SERIES[..index] {
                    let (a, b) = (seen(*one, sight), seen(*other, sight));
                    let squares: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
                    assert!(squares.sqrt() > 0.12, "{one:?} {other:?}: {}", squares.sqrt());
                }
            }
        }
    }

    fn rgb(RGBColor(red, green, blue): RGBColor) -> (u8, u8, u8) {
        (red, green, blue)
    }
}
