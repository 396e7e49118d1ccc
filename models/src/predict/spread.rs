use crate::parameters::MOST_PARAMETERS;

/// A predicted time with the interval that the parameters' intervals (95 %) give it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// The time.
    pub seconds: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A time at the parameters' values and with each parameter at either end of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) value: f64,
    pub(super) ends: [[f64; 2]; MOST_PARAMETERS],
    /// Whose parameters they are: errors of different sets are independent.
    pub(super) set: usize,
}

impl Spread {
    /// `ends`: low and high of each parameter, one after the other; the others have no interval.
    pub(super) fn new(value: f64, ends: &[f64], set: usize) -> Self {
        let mut all = [[value; 2]; MOST_PARAMETERS];
        for (place, pair) in all.iter_mut().zip(ends.chunks_exact(2)) {
            place.copy_from_slice(pair);
        }
        Spread { value, ends: all, set }
    }

    pub(crate) fn prediction(&self) -> Prediction {
        let [below, above] = self.deviations();
        Prediction {
            seconds: self.value,
            low: (self.value - below).max(0.0),
            high: self.value + above,
        }
    }

    /// How far below the value and above it the parameters' errors reach.
    fn deviations(&self) -> [f64; 2] {
        deviations(self.value, &self.ends)
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
pub(crate) fn deviations(value: f64, ends: &[[f64; 2]]) -> [f64; 2] {
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
