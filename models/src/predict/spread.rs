use records::calibration::Estimate;

use super::UncertainNetwork;
use crate::{parameters::MOST_PARAMETERS, simulated::FoundTime};

/// Beyond what two ways of adding up the same times differ by.
const MORE_THAN_ROUNDING: f64 = 1.0 + 1e-9;

/// Those of two levels: no set has more parameters.
pub(super) const MAX_ENDS: usize = 2 * MOST_PARAMETERS;

/// A time at the parameters' values and with each parameter at either end of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) value: f64,
    pub(super) ends: [[f64; 2]; MAX_ENDS],
    /// Whose parameters they are: errors of different sets are independent.
    pub(super) set: usize,
}

impl Spread {
    /// `ends`: low and high of each parameter, one after the other; the others have no interval.
    pub(super) fn new(value: f64, ends: &[FoundTime], set: usize) -> Self {
        let mut all = [[value; 2]; MAX_ENDS];
        for (place, pair) in all.iter_mut().zip(ends.chunks_exact(2)) {
            *place = [pair[0].seconds, pair[1].seconds];
        }
        Spread { value, ends: all, set }
    }

    /// The time, in seconds, with the interval that the parameters' intervals (95 %) give it.
    pub(crate) fn estimate(&self) -> Estimate {
        let [below, above] = self.deviations();
        let value = self.value;
        Estimate { value, low: (value - below).max(0.0), high: value + above }
    }

    /// How far below the value and above it the parameters' errors reach.
    fn deviations(&self) -> [f64; 2] {
        deviations(self.value, &self.ends)
    }

    /// By how much a method comes nearer to this, the cheapest, at the ends of its parameters' intervals,
    /// all errors together, if it falls by `falls` at most at the lower end of each.
    pub(super) fn comes_nearer(&self, falls: f64, of: &UncertainNetwork) -> f64 {
        let square = |[low, high]: &[f64; 2]| {
            (falls - (self.value - low)).max(high - self.value).max(0.0).powi(2)
        };
        self.ends.iter().take(of.ends.len()).map(square).sum::<f64>().sqrt()
    }

    /// A time which a method must surely take, at the parameters' values and with all of them at the
    /// cheaper end of their intervals, so that it is surely no tie with this one, which is the
    /// cheapest. At the values it takes `at_most` at most. Infinite where no time would do.
    ///
    /// Let that time be t, and let the method take v at the values. It falls by at most v - t at a lower
    /// end, and rises at an upper one. So at the ends of a parameter the two come nearer by at most
    /// max(v - t - fall, rise), by what this one falls and rises there. It is no tie if v is more than
    /// this by more than the root of the sum of the squares. That root is convex in v: what holds
    /// at v = t and at v = `at_most` holds between.
    pub(crate) fn surely_apart_from(&self, at_most: f64, of: &UncertainNetwork) -> f64 {
        const HALVINGS: u32 = 20;
        if of.number != self.set {
            return f64::INFINITY;
        }
        let nearer = |beyond| self.comes_nearer(beyond, of);
        let value = self.value * MORE_THAN_ROUNDING;
        let more = at_most - value;
        if nearer(0.0) >= more {
            return f64::INFINITY;
        }
        // The furthest that `at_most` may be beyond t.
        let (mut beyond, mut too_far) = (0.0, more - nearer(0.0));
        if nearer(too_far) < more {
            beyond = too_far;
        }
        for _ in 0..HALVINGS {
            let middle = 0.5 * (beyond + too_far);
            match nearer(middle) < more {
                true => beyond = middle,
                false => too_far = middle,
            }
        }
        at_most - beyond
    }

    /// Whether the parameters' uncertainty lets this be as cheap as `best`, which is cheaper at
    /// their values.
    ///
    /// Both are evaluated at the same ends of the same parameters, and what is added up are the
    /// deviations of their difference: an error that both share does not make them a tie.
    /// Those of different sets of parameters share none.
    pub(crate) fn may_be_as_cheap_as(&self, best: &Spread) -> bool {
        let difference = self.value - best.value;
        let square = |(this, other): (&[f64; 2], &[f64; 2])| {
            let towards =
                f64::max(difference - (this[0] - other[0]), difference - (this[1] - other[1]));
            towards.max(0.0).powi(2)
        };
        let spread = match self.set == best.set {
            true => self.ends.iter().zip(&best.ends).map(square).sum::<f64>().sqrt(),
            false => f64::hypot(self.deviations()[0], best.deviations()[1]),
        };
        difference <= spread || equal(self.value, best.value)
    }
}

/// How far below a value and above it its parameters' errors reach: added in quadrature, of each
/// parameter the further end.
fn deviations(value: f64, ends: &[[f64; 2]]) -> [f64; 2] {
    let squares = |deviation: fn(f64, f64) -> f64| {
        let square = |[low, high]: &[f64; 2]| {
            deviation(*low, value).max(deviation(*high, value)).max(0.0).powi(2)
        };
        ends.iter().map(square).sum::<f64>().sqrt()
    };
    [squares(|end, value| value - end), squares(|end, value| end - value)]
}

/// Equal but for rounding: the same time, reached by another order of additions.
pub(crate) fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}
