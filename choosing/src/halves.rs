//! Choosing by halves: where a method should replace the library's default, if all were observed about equally often.
//!
//! The strategy of `verify`. The method measured best replaces the default only if it is faster by [`MIN_GAIN`] in the
//! half of the observations that chose it *and* in the half that did not, since what won by luck in one loses in the
//! other, and if all observations together say so significantly.

use std::collections::BTreeSet;

use records::{
    Method, Point,
    choices::{Chosen, TimedMethod},
};
use statistics::is_smaller;

use crate::samples::{ObservationHalf, Samples};

/// Least relative gain for which the default is replaced.
pub const MIN_GAIN: f64 = 0.05;
/// Probability, per point, that a method that is no faster replaces the default by chance; it is
/// shared among the methods compared there (Bonferroni).
const FALSE_REPLACEMENT_RATE: f64 = 0.05;

/// The choice at every point at which the default was measured, ascending.
pub fn choose(samples: &Samples) -> Vec<Chosen> {
    samples.points().filter_map(|point| choose_at(samples, point)).collect()
}

/// The choice at every point by summaries of many repetitions, of which there are too few for a test: the method with
/// the least time replaces the default if it is faster by [`MIN_GAIN`]. What cannot be loaded is
/// not chosen.
pub fn choose_least(samples: &Samples) -> Vec<Chosen> {
    let at = |point| {
        let default_seconds = samples.get(point, &Method::Default)?.midmean()?;
        let loadable = samples.at(point).filter(|(method, _)| !matches!(method, Method::Other(_)));
        let timed = loadable.filter_map(|(method, times)| Some((method, times.midmean()?)));
        let (method, seconds) = timed.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let (method, seconds) = match seconds * (1.0 + MIN_GAIN) < default_seconds {
            true => (method.clone(), seconds),
            false => (Method::Default, default_seconds),
        };
        Some(chosen(samples, point, method, seconds, default_seconds))
    };
    samples.points().filter_map(at).collect()
}

fn choose_at(samples: &Samples, point: Point) -> Option<Chosen> {
    let default = samples.get(point, &Method::Default)?;
    let default_seconds = default.midmean_of(ObservationHalf::Timing)?;
    let (best, best_seconds) = samples.best(point, ObservationHalf::Choosing)?;
    let replace = beats_default(samples, point, best)?;
    let (method, seconds) =
        if replace { (best.clone(), best_seconds) } else { (Method::Default, default_seconds) };
    Some(chosen(samples, point, method, seconds, default_seconds))
}

/// The choice with what came next: the fastest of the other methods that were measured there.
fn chosen(
    samples: &Samples,
    point: Point,
    method: Method,
    seconds: f64,
    default_seconds: f64,
) -> Chosen {
    let others = samples.at(point).filter(|(other, _)| **other != method);
    let timed = others.filter_map(|(method, times)| Some((method, times.midmean()?)));
    let next = timed.min_by(|(_, a), (_, b)| a.total_cmp(b));
    let next = next.map(|(method, seconds)| TimedMethod::new(method.clone(), seconds));
    Chosen { next, ..Chosen::measured(point, method, seconds, default_seconds) }
}

/// Whether a method is faster than the default in both halves, and significantly so.
fn beats_default(samples: &Samples, point: Point, method: &Method) -> Option<bool> {
    let (default, times) = (samples.get(point, &Method::Default)?, samples.get(point, method)?);
    let gains_in =
        |half| Some(times.midmean_of(half)? * (1.0 + MIN_GAIN) < default.midmean_of(half)?);
    let alpha = FALSE_REPLACEMENT_RATE / samples.at(point).count() as f64;
    let significant = is_smaller(times.seconds(), default.seconds(), alpha);
    Some(significant && gains_in(ObservationHalf::Choosing)? && gains_in(ObservationHalf::Timing)?)
}

/// The methods measured at a point beside the default and the one chosen, as [`choose`] would rank
/// them: the well visited first, by the half that chooses, their times from the other half.
pub fn alternatives(samples: &Samples, point: Point, chosen: &Method) -> Vec<TimedMethod> {
    let well_visited: BTreeSet<&Method> =
        samples.well_visited(point).map(|(method, _)| method).collect();
    let others = samples.at(point).filter(|(method, _)| {
        **method != Method::Default
            && *method != chosen
            && !matches!(method, Method::Plugin(_) | Method::Other(_))
    });
    let mut ranked: Vec<((bool, f64), TimedMethod)> = others
        .filter_map(|(method, times)| {
            let rank =
                (!well_visited.contains(method), times.midmean_of(ObservationHalf::Choosing)?);
            let seconds = times.midmean_of(ObservationHalf::Timing)?;
            let beats_default =
                !rank.0 && beats_default(samples, point, method).unwrap_or_default();
            let beats_default = Some(beats_default);
            let alternative = TimedMethod::new(method.clone(), seconds);
            Some((rank, TimedMethod { beats_default, ..alternative }))
        })
        .collect();
    ranked.sort_by(|(a, _), (b, _)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    ranked.into_iter().map(|(_, alternative)| alternative).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{any, call};

    fn chosen(best: [f64; 4], default: [f64; 4]) -> Chosen {
        let best =
            best.map(|seconds| call("native:openmpi:pipeline,segment=8KiB", "", 64, seconds));
        let default = default.map(|seconds| call("default", "", 64, seconds));
        choose(&Samples::gather(&[best, default].concat(), any)).remove(0)
    }

    #[test]
    fn a_method_that_is_faster_in_both_halves_replaces_the_default() {
        let choice = chosen([1.0, 1.1, 1.0, 1.1], [2.0, 2.0, 2.0, 2.0]);
        assert_eq!(choice.method.to_string(), "native:openmpi:pipeline,segment=8KiB");
        assert_eq!((choice.seconds, choice.default_seconds), (1.1, Some(2.0)));
    }

    #[test]
    fn luck_in_one_half_and_small_gains_do_not() {
        assert_eq!(chosen([1.0, 2.1, 1.0, 2.1], [2.0; 4]).method, Method::Default);
        assert_eq!(chosen([1.97; 4], [2.0; 4]).method, Method::Default);
    }

    #[test]
    fn alternatives_are_ranked_and_say_whether_they_beat_the_default() {
        let rows = |method, seconds: [f64; 4]| seconds.map(|it| call(method, "", 64, it));
        let samples = Samples::gather(
            &[
                rows("native:openmpi:pipeline", [1.0, 1.1, 1.0, 1.1]),
                rows("native:openmpi:linear", [1.99, 1.98, 1.99, 1.98]),
                rows("own:binomial", [1.2, 1.3, 1.2, 1.3]),
                rows("default", [2.0; 4]),
            ]
            .concat(),
            any,
        );
        let point = samples.points().next().unwrap();
        let chosen = choose(&samples).remove(0).method;
        let others = alternatives(&samples, point, &chosen);
        let told: Vec<_> = others
            .iter()
            .map(|other| {
                (other.method.to_string(), other.seconds, other.beats_default == Some(true))
            })
            .collect();
        let wanted = [("own:binomial", 1.3, true), ("native:openmpi:linear", 1.98, false)];
        assert_eq!(told, wanted.map(|(name, seconds, beats)| (name.to_owned(), seconds, beats)));
    }
}
