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

/// Okabe and Ito's palette without black, for series of curves.
pub(crate) const SERIES: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(60, 60, 60),
];

/// The colour of a method's algorithm, the same in every figure.
///
/// Okabe and Ito's eight go to the algorithms of broadcast and reduce that compete most; the others
/// take colours of Tol's, so that those that occur in one collective differ.
pub(crate) fn of_method(method: &Method) -> RGBColor {
    match method {
        Method::Default => RGBColor(187, 187, 187),
        Method::Mockup(_) => RGBColor(119, 119, 119),
        Method::Native(_) | Method::Own { .. } => method.algorithm().map_or(EMPTY, of_algorithm),
    }
}

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
        A::InOrderBinary | A::TwoProcs => RGBColor(153, 153, 51),
        A::Rabenseifner => RGBColor(213, 94, 0),
        A::RecursiveDoubling => RGBColor(86, 180, 233),
        A::Ring => RGBColor(0, 114, 178),
        A::SegmentedRing => RGBColor(230, 159, 0),
        A::Bruck => RGBColor(0, 158, 115),
        A::Pairwise => RGBColor(204, 121, 167),
        A::NeighborExchange => RGBColor(136, 34, 85),
        A::DoubleRing => RGBColor(213, 94, 0),
        A::RecursiveHalving => RGBColor(0, 0, 0),
        A::Traff => RGBColor(213, 94, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn text_is_readable_on_every_colour() {
        let scale = (0..=20).map(|step| on_scale(f64::from(step) / 20.0));
        let algorithms = Algorithm::ALL.iter().map(|algorithm| of_algorithm(*algorithm));
        for ground in scale.chain(algorithms).chain(SERIES) {
            let (a, b) = (luminance(ground), luminance(contrasting(ground)));
            let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
            assert!(contrast >= 4.5, "{ground:?}: {contrast}");
        }
    }

    /// The algorithms that Open MPI has for one collective, with those of the paper.
    #[test]
    fn algorithms_of_one_collective_have_different_colours() {
        use Algorithm as A;
        let collectives: [&[A]; 5] = [
            &[
                A::Linear,
                A::KChain,
                A::Pipeline,
                A::SplittedBinary,
                A::Binary,
                A::Binomial,
                A::KNomial,
                A::ScatterAllgather,
                A::ScatterAllgatherRing,
            ],
            &[
                A::Linear,
                A::KChain,
                A::Pipeline,
                A::Binary,
                A::Binomial,
                A::InOrderBinary,
                A::Rabenseifner,
            ],
            &[A::Linear, A::RecursiveDoubling, A::Ring, A::SegmentedRing, A::Rabenseifner],
            &[A::Linear, A::Bruck, A::RecursiveDoubling, A::Ring, A::NeighborExchange, A::Pairwise],
            &[A::Linear, A::DoubleRing, A::RecursiveDoubling, A::Bruck, A::RecursiveHalving],
        ];
        for algorithms in collectives {
            let colours: BTreeSet<(u8, u8, u8)> = algorithms
                .iter()
                .map(|algorithm| {
                    let RGBColor(r, g, b) = of_algorithm(*algorithm);
                    (r, g, b)
                })
                .collect();
            assert_eq!(colours.len(), algorithms.len(), "{algorithms:?}");
        }
    }
}
