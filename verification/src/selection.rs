//! Where a measured method should replace the library's default.

use records::{Method, Point, choices::Chosen};
use statistics::is_smaller;

use crate::samples::{Half, Samples};

/// Least relative gain for which the default is replaced.
pub const LEAST_GAIN: f64 = 0.05;
/// Probability, per point, that a method that is no faster replaces the default by chance; it is
/// shared among the methods compared there (Bonferroni).
const CHANCE: f64 = 0.05;

/// What to load at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Where.
    pub point: Point,
    /// The method to load; [`Method::Default`] where nothing beats the default.
    pub method: Method,
    /// Its time, from observations that did not choose it, in seconds.
    pub seconds: f64,
    /// The default's time from the same half, in seconds.
    pub default_seconds: f64,
}

impl From<&Chosen> for Choice {
    fn from(chosen: &Chosen) -> Self {
        Choice {
            point: chosen.point(),
            method: chosen.method.clone(),
            seconds: chosen.seconds,
            default_seconds: chosen.default_seconds,
        }
    }
}

/// The choice at every point at which the default was measured, ascending.
///
/// The method measured best replaces the default only if it is faster by [`LEAST_GAIN`] in the
/// half that chose it *and* in the half that did not, since what won by luck in one loses in the
/// other, and if all observations together say so significantly.
pub fn choose(samples: &Samples) -> Vec<Choice> {
    samples.points().filter_map(|point| choose_at(samples, point)).collect()
}

fn choose_at(samples: &Samples, point: Point) -> Option<Choice> {
    let default = samples.get(point, &Method::Default)?;
    let default_seconds = default.midmean_of(Half::Timing)?;
    let (best, best_seconds) = samples.best(point)?;
    let gains_in = |half| {
        let best = samples.get(point, best)?.midmean_of(half)?;
        Some(best * (1.0 + LEAST_GAIN) < default.midmean_of(half)?)
    };
    let alpha = CHANCE / samples.at(point).count() as f64;
    let significant = is_smaller(samples.get(point, best)?.seconds(), default.seconds(), alpha);
    let replace = significant && gains_in(Half::Choosing)? && gains_in(Half::Timing)?;
    let (method, seconds) =
        if replace { (best.clone(), best_seconds) } else { (Method::Default, default_seconds) };
    Some(Choice { point, method, seconds, default_seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::tests::call;

    fn chosen(best: [f64; 4], default: [f64; 4]) -> Choice {
        let best =
            best.map(|seconds| call("native:openmpi:pipeline,segment=8KiB", "", 64, seconds));
        let default = default.map(|seconds| call("default", "", 64, seconds));
        choose(&Samples::gather(&[best, default].concat())).remove(0)
    }

    #[test]
    fn a_method_that_is_faster_in_both_halves_replaces_the_default() {
        let choice = chosen([1.0, 1.1, 1.0, 1.1], [2.0, 2.0, 2.0, 2.0]);
        assert_eq!(choice.method.to_string(), "native:openmpi:pipeline,segment=8KiB");
        assert_eq!((choice.seconds, choice.default_seconds), (1.1, 2.0));
    }

    #[test]
    fn luck_in_one_half_and_small_gains_do_not() {
        assert_eq!(chosen([1.0, 2.1, 1.0, 2.1], [2.0; 4]).method, Method::Default);
        assert_eq!(chosen([1.97; 4], [2.0; 4]).method, Method::Default);
    }
}
