//! Message sizes at which the library changes its protocol: where g(m) leaves one line for another.

use statistics::{DEVIATIONS_PER_MEDIAN, upper_median};

use super::lines::{self, FittedLine};

/// A departure from a line that is no matter: packets and copies make steps of a few percent.
const TOLERANCE: f64 = 0.05;
/// A piece has at least this many sizes: any two lie on a line.
const SHORTEST: usize = 3;

/// The indices at which a new line begins, ascending; `points` are (m, g(m)) by m.
///
/// The partition into lines with the least sum of squared relative residuals, in units of the
/// tolerance or of the noise if that is greater, plus a fine for every line (Schwarz's criterion:
/// two parameters and a place each). Found exactly, by dynamic programming.
pub(super) fn breaks(points: &[(f64, f64)]) -> Vec<usize> {
    let count = points.len();
    let tolerance = TOLERANCE.max(noise(points));
    let fine = 3.0 * (count.max(2) as f64).ln();
    // best[end]: cost of the points before `end`, and where the last line before it begins.
    let mut best: Vec<Option<(f64, usize)>> = vec![None; count + 1];
    best[0] = Some((0.0, 0));
    for end in SHORTEST..=count {
        for start in (0..=end - SHORTEST).rev() {
            let Some((before, _)) = best[start] else { continue };
            let cost = before + fine + misfit(&points[start..end], tolerance);
            if best[end].is_none_or(|(least, _)| cost < least) {
                best[end] = Some((cost, start));
            }
        }
    }
    let mut starts = Vec::new();
    let mut end = count;
    while let Some((_, start)) = best[end].filter(|_| end > 0) {
        starts.push(start);
        end = start;
    }
    starts.retain(|start| *start > 0);
    starts.reverse();
    starts
}

fn misfit(points: &[(f64, f64)], tolerance: f64) -> f64 {
    let Some(line) = lines::relative(points) else { return 0.0 };
    let weights = lines::relative_weights(points);
    let square = |(&(x, y), weight): (&(f64, f64), &f64)| weight * (y - line.at(x)).powi(2);
    points.iter().zip(&weights).map(square).sum::<f64>() / tolerance.powi(2)
}

/// The relative error of a single point: how far points lie from the line through their
/// neighbours. Its median is not moved by the few places where the line breaks.
fn noise(points: &[(f64, f64)]) -> f64 {
    let mut errors: Vec<f64> = points
        .windows(3)
        .filter_map(|window| {
            let [(x0, y0), (x1, y1), (x2, y2)] = *window else { return None };
            let slope = (y2 - y0) / (x2 - x0);
            let between = FittedLine { intercept: y0 - slope * x0, slope };
            // The three points' errors add up; with sizes that double: 1 + (2/3)^2 + (1/3)^2.
            (y1 > 0.0).then(|| (y1 - between.at(x1)).abs() / y1 / 1.56_f64.sqrt())
        })
        .collect();
    DEVIATIONS_PER_MEDIAN * upper_median(&mut errors).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes() -> impl Iterator<Item = f64> {
        std::iter::once(0.0).chain((0..21).map(|shift| f64::from(1 << shift)))
    }

    #[test]
    fn a_line_has_no_break_and_a_jump_or_a_kink_has_one() {
        let line: Vec<(f64, f64)> = sizes().map(|m| (m, 24.0 + 0.084 * m)).collect();
        assert!(breaks(&line).is_empty());
        let jump: Vec<(f64, f64)> = sizes()
            .map(|m| (m, 24.0 + 0.084 * m + if m > 16384.0 { 1500.0 } else { 0.0 }))
            .collect();
        assert_eq!(breaks(&jump), [16], "32 KiB is the 16th size");
        let kink: Vec<(f64, f64)> =
            sizes().map(|m| (m, 24.0 + 0.01 * m + 0.074 * (m - 4096.0).max(0.0))).collect();
        assert_eq!(breaks(&kink).len(), 1);
        assert!(breaks(&line[..2]).is_empty());
        assert!(breaks(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn noise_makes_no_breaks(noise in proptest::collection::vec(-0.03..0.03_f64, 22)) {
            let points: Vec<(f64, f64)> =
                sizes().zip(&noise).map(|(m, e)| (m, (24.0 + 0.084 * m) * (1.0 + e))).collect();
            prop_assert!(breaks(&points).is_empty());
        }
    }
}
