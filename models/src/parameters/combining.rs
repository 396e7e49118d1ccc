//! What combining two messages costs.

use records::calibration::{Gamma, Operation, Parameters};

use super::{End, at_end};

/// gamma(m) m over the message size: linear between measured sizes, with the last sizes' slope
/// beyond them; the first size's cost, which is mostly the call's, below. gamma m where only one
/// gamma is known.
///
/// Of the operations measured it is the one that Colibri verifies with: `MPI_SUM` of `double`.
#[derive(Debug, Clone, PartialEq)]
pub struct Combining {
    per_byte: f64,
    /// (bytes, seconds, slope from there on), ascending.
    pieces: Vec<(f64, f64, f64)>,
}

impl Combining {
    /// The operation that reductions are verified with.
    pub const OPERATION: Operation = Operation::SumDouble;

    /// gamma m.
    pub fn per_byte(seconds: f64) -> Self {
        Combining { per_byte: seconds, pieces: Vec::new() }
    }

    pub(super) fn new(parameters: &Parameters, end: Option<End>) -> Self {
        let per_byte = at_end(parameters.gamma_seconds_per_byte, end);
        let measured = parameters.gamma.iter().find(|gamma| gamma.operation == Self::OPERATION);
        let points: Vec<(f64, f64)> = measured.map_or(Vec::new(), |gamma| seconds(gamma, end));
        let pieces = points.iter().enumerate().map(|(index, &(bytes, seconds))| {
            let slope = match (points.get(index + 1), index.checked_sub(1)) {
                (Some(&(next, then)), _) => (then - seconds) / (next - bytes),
                (None, Some(before)) => {
                    let (from, then) = points[before];
                    ((seconds - then) / (bytes - from)).max(0.0)
                }
                (None, None) => per_byte,
            };
            (bytes, seconds, slope)
        });
        Combining { per_byte, pieces: pieces.collect() }
    }

    /// What costs nowhere more than this or any of the others, which have the same knots, and never falls
    /// while the size grows.
    pub(super) fn least(&self, others: &[&Combining]) -> Self {
        let mut least = self.clone();
        for other in others {
            least.per_byte = least.per_byte.min(other.per_byte);
            for (piece, (_, seconds, slope)) in least.pieces.iter_mut().zip(&other.pieces) {
                *piece = (piece.0, piece.1.min(*seconds), piece.2.min(*slope));
            }
        }
        for index in (1..least.pieces.len()).rev() {
            let (next, then, _) = least.pieces[index];
            let (bytes, seconds, slope) = &mut least.pieces[index - 1];
            *seconds = seconds.min(then);
            *slope = (then - *seconds) / (next - *bytes);
        }
        least
    }

    /// What costs nowhere more than this, and grows by no greater factor than the message does.
    pub(super) fn shrinking_per_byte(&self) -> Self {
        let mut shrinking = self.clone();
        let pieces = &mut shrinking.pieces;
        for index in 1..pieces.len() {
            let (start, before, _) = pieces[index - 1];
            let (bytes, seconds, _) = pieces[index];
            let seconds = seconds.min(before * bytes / start);
            pieces[index].1 = seconds;
            pieces[index - 1].2 = (seconds - before) / (bytes - start);
        }
        if let Some((bytes, seconds, slope)) = pieces.last_mut() {
            *slope = slope.min(*seconds / *bytes);
        }
        shrinking
    }

    /// Makes it take so many times as long.
    pub(crate) fn scale(&mut self, factor: f64) {
        self.per_byte *= factor;
        for (_, seconds, slope) in &mut self.pieces {
            *seconds *= factor;
            *slope *= factor;
        }
    }

    /// The measured sizes.
    pub(super) fn knots(&self) -> Vec<u64> {
        self.pieces.iter().map(|(bytes, ..)| *bytes as u64).collect()
    }

    /// Seconds to combine two messages of `bytes`; 0 of empty ones.
    #[inline]
    pub fn at(&self, bytes: f64) -> f64 {
        let Some(&(first, seconds, _)) = self.pieces.first() else { return self.per_byte * bytes };
        if bytes <= 0.0 {
            return 0.0;
        }
        if bytes <= first {
            return seconds;
        }
        let above = self.pieces.partition_point(|(start, ..)| *start <= bytes);
        let (start, seconds, slope) = self.pieces[above - 1];
        seconds + (bytes - start) * slope
    }
}

fn seconds(gamma: &Gamma, end: Option<End>) -> Vec<(f64, f64)> {
    let whole = |knot: &records::calibration::GammaKnot| {
        let bytes = knot.bytes as f64;
        (bytes, bytes * at_end(knot.seconds_per_byte, end))
    };
    gamma.knots.iter().filter(|knot| knot.bytes > 0).map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::calibration::{Estimate, GammaKnot};

    #[test]
    fn one_gamma_is_a_line_and_several_are_pieces() {
        let mut parameters = crate::presets::preset("frodo").unwrap().measured;
        parameters.gamma_seconds_per_byte = Estimate { value: 2.0, low: 1.0, high: 3.0 };
        assert_eq!(Combining::new(&parameters, None).at(10.0), 20.0);
        assert_eq!(Combining::new(&parameters, Some(End::High)).at(10.0), 30.0);
        // 10 bytes in 40 s, 20 in 60, 40 in 160: slopes 2, 5, 5.
        let knot =
            |bytes, value: f64| GammaKnot { bytes, seconds_per_byte: Estimate::exact(value) };
        parameters.gamma = vec![Gamma {
            operation: Operation::SumDouble,
            knots: vec![knot(10, 4.0), knot(20, 3.0), knot(40, 4.0)],
        }];
        let combining = Combining::new(&parameters, None);
        for (bytes, wanted) in
            [(0.0, 0.0), (1.0, 40.0), (10.0, 40.0), (15.0, 50.0), (30.0, 110.0), (50.0, 210.0)]
        {
            assert_eq!(combining.at(bytes), wanted, "{bytes}");
        }
        parameters.gamma[0].operation = Operation::MaxInt;
        assert_eq!(Combining::new(&parameters, None).at(10.0), 20.0);
    }
}
