//! Lines through measured times.

use nalgebra::{Matrix2, Vector2};
use statistics::{DEVIATIONS_PER_MEDIAN, upper_median};

use crate::minimise::HUBER;

/// y = intercept + slope x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FittedLine {
    pub(super) intercept: f64,
    pub(super) slope: f64,
}

impl FittedLine {
    pub(super) fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// The line with the least sum of `weight (y - line)^2`; `None` where the points hold no two
/// different x.
pub(super) fn weighted(points: impl Iterator<Item = (f64, f64, f64)>) -> Option<FittedLine> {
    let (mut w, mut wx, mut wxx, mut wy, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y, weight) in points {
        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * y;
        wxy += weight * x * y;
    }
    let (normal, moments) = (Matrix2::new(w, wx, wx, wxx), Vector2::new(wy, wxy));
    // Bytes reach 1e9: in units that make the diagonal 1 nothing is lost to their squares.
    let units = normal.diagonal().map(|square: f64| 1.0 / square.sqrt());
    let scale = Matrix2::from_diagonal(&units);
    let scaled = scale * normal * scale;
    if scaled.iter().any(|entry| !entry.is_finite()) || scaled.determinant() < 1e-12 {
        return None;
    }
    let solution = scale * scaled.cholesky()?.solve(&(scale * moments));
    Some(FittedLine { intercept: solution.x, slope: solution.y })
}

/// The weighted least-squares line among those of which neither intercept nor slope is below 0, and through points that
/// all have x = 0 the flat one.
pub(super) fn weighted_above_zero(
    points: impl Iterator<Item = (f64, f64, f64)>,
) -> Option<FittedLine> {
    let points: Vec<(f64, f64, f64)> = points.collect();
    let ratio = |of: fn(&(f64, f64, f64)) -> (f64, f64)| {
        let (above, below) =
            points.iter().map(of).fold((0.0, 0.0), |(above, below), (a, b)| (above + a, below + b));
        (above / below).max(0.0)
    };
    let flat =
        || FittedLine { intercept: ratio(|(_, y, weight)| (weight * y, *weight)), slope: 0.0 };
    if !points.is_empty() && points.iter().all(|(x, ..)| *x == 0.0) {
        return Some(flat());
    }
    let line = weighted(points.iter().copied())?;
    Some(match line {
        FittedLine { intercept, .. } if intercept < 0.0 => FittedLine {
            intercept: 0.0,
            slope: ratio(|(x, y, weight)| (weight * x * y, weight * x * x)),
        },
        FittedLine { slope, .. } if slope < 0.0 => flat(),
        _ => line,
    })
}

/// 1/y^2, the weight that makes errors relative; times below a millionth of the greatest count as
/// that, so that a 0 does not hold the line.
pub(super) fn relative_weights(points: &[(f64, f64)]) -> Vec<f64> {
    let greatest = points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let floor = (greatest * 1e-6).max(f64::MIN_POSITIVE.sqrt());
    points.iter().map(|(_, y)| y.max(floor).powi(-2)).collect()
}

/// The line with the least relative squares.
pub(super) fn relative(points: &[(f64, f64)]) -> Option<FittedLine> {
    let weights = relative_weights(points);
    weighted(points.iter().zip(&weights).map(|(&(x, y), &weight)| (x, y, weight)))
}

/// A line by relative errors that single points do not bend.
pub(super) fn robust_relative(points: &[(f64, f64)]) -> Option<FittedLine> {
    robust(points, &relative_weights(points), |points| weighted(points))
}

/// A line that single points do not bend: Huber's estimator by iteratively reweighted least squares,
/// the scale from the median absolute residual. `solve` gives the line with the least sum of
/// `weight (y - line)^2` among those that are allowed.
pub(super) fn robust(
    points: &[(f64, f64)],
    weights: &[f64],
    solve: impl Fn(&mut dyn Iterator<Item = (f64, f64, f64)>) -> Option<FittedLine>,
) -> Option<FittedLine> {
    let mut plain = points.iter().zip(weights).map(|(&(x, y), &weight)| (x, y, weight));
    let mut line = solve(&mut plain)?;
    let mut residuals = Vec::with_capacity(points.len());
    for _ in 0..30 {
        residuals.clear();
        residuals.extend(
            points
                .iter()
                .zip(weights)
                .map(|(&(x, y), weight)| (y - line.at(x)).abs() * weight.sqrt()),
        );
        let scale =
            DEVIATIONS_PER_MEDIAN * upper_median(&mut residuals.clone()).unwrap_or_default();
        if scale <= 1e-9 {
            break; // All on one line but for rounding.
        }
        let mut points =
            points.iter().zip(weights).zip(&residuals).map(|((&(x, y), weight), residual)| {
                (x, y, weight * (HUBER * scale / residual).min(1.0))
            });
        let next = solve(&mut points)?;
        let near = |next: f64, last: f64| (next - last).abs() <= 1e-6 * last.abs();
        let settled = match line.slope == 0.0 {
            true => near(next.slope, 0.0) && near(next.intercept, line.intercept),
            false => near(next.slope, line.slope),
        };
        line = next;
        if settled {
            break;
        }
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-7 * b.abs()
    }

    #[test]
    fn no_line_goes_through_one_place() {
        assert_eq!(relative(&[(4.0, 1.0)]), None);
        assert_eq!(relative(&[(4.0, 1.0), (4.0, 2.0)]), None);
        assert_eq!(relative(&[]), None);
    }

    proptest! {
        #[test]
        fn a_line_is_found_and_one_wild_point_does_not_bend_the_robust_one(
            intercept in 1e-6..1e-4_f64, slope in 1e-10..1e-6_f64,
            wild in 0_usize..8, factor in 3.0..20.0_f64,
        ) {
            let mut points: Vec<(f64, f64)> = (10..18)
                .map(|shift| f64::from(1 << shift))
                .map(|x| (x, intercept + slope * x))
                .collect();
            for line in [relative(&points), robust_relative(&points)] {
                let line = line.unwrap();
                prop_assert!(near(line.slope, slope) && near(line.at(0.0), intercept));
            }
            points[wild].1 *= factor;
            let line = robust_relative(&points).unwrap();
            prop_assert!((line.slope / slope - 1.0).abs() < 0.05, "{} {slope}", line.slope);
        }
    }
}
