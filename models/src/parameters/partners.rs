//! What further partners do to the gap.

use records::calibration::ManyGap;

use super::starts::Starts;

/// g(m, k) / (k g(m)): piecewise linear in the size and in k, 1 at k = 1, constant beyond what was
/// measured. As a factor, it keeps the shape of g(m) between the few sizes at which it was
/// measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Partners(Vec<Factors>);

#[derive(Debug, Clone, PartialEq)]
struct Factors {
    partners: f64,
    /// (bytes, factor), ascending.
    knots: Vec<(f64, f64)>,
    /// The knots' sizes.
    starts: Starts,
}

impl Partners {
    /// `gaps` ascend in partners, their knots in size; `gap` is g(m).
    pub(super) fn new(gaps: &[ManyGap], gap: impl Fn(f64) -> f64) -> Self {
        let factors = |many: &ManyGap| {
            let partners = f64::from(many.partners);
            let knots = many.knots.iter().filter_map(|knot| {
                let bytes = knot.bytes as f64;
                let alone = partners * gap(bytes);
                (alone > 0.0).then(|| (bytes, knot.gap_seconds.value / alone))
            });
            let knots: Vec<(f64, f64)> = knots.collect();
            let starts = Starts::new(knots.iter().map(|(bytes, _)| *bytes).collect());
            Factors { partners, knots, starts }
        };
        Partners(gaps.iter().map(factors).filter(|factors| !factors.knots.is_empty()).collect())
    }

    /// Factors that are nowhere above these, and fall nowhere while the size grows.
    pub(super) fn rising(mut self) -> Self {
        self.0.iter_mut().for_each(|row| lower(row.knots.iter_mut().rev()));
        self
    }

    /// Factors that are nowhere above these, and rise nowhere.
    pub(super) fn falling(mut self) -> Self {
        self.0.iter_mut().for_each(|row| lower(row.knots.iter_mut()));
        self
    }

    /// The numbers of partners with which it was measured.
    pub(super) fn measured(&self) -> impl Iterator<Item = u32> {
        let Partners(rows) = self;
        rows.iter().map(|row| row.partners as u32)
    }

    pub(super) fn factor(&self, bytes: f64, partners: u32) -> f64 {
        let Partners(rows) = self;
        let partners = f64::from(partners);
        if partners <= 1.0 || rows.is_empty() {
            return 1.0;
        }
        let above = rows.partition_point(|row| row.partners <= partners);
        let (low, low_factor) = match above.checked_sub(1) {
            Some(below) => (rows[below].partners, rows[below].at(bytes)),
            None => (1.0, 1.0),
        };
        match rows.get(above) {
            Some(high) => {
                let part = (partners - low) / (high.partners - low);
                low_factor + part * (high.at(bytes) - low_factor)
            }
            None => low_factor,
        }
    }
}

/// Each factor to the least of those up to it.
fn lower<'a>(knots: impl Iterator<Item = &'a mut (f64, f64)>) {
    let mut least = f64::INFINITY;
    for (_, factor) in knots {
        least = least.min(*factor);
        *factor = least;
    }
}

impl Factors {
    fn at(&self, bytes: f64) -> f64 {
        let above = self.starts.up_to(bytes);
        match (above.checked_sub(1).map(|below| self.knots[below]), self.knots.get(above)) {
            (Some((low, from)), Some(&(high, to))) => {
                from + (bytes - low) / (high - low) * (to - from)
            }
            (Some((_, factor)), None) | (None, Some(&(_, factor))) => factor,
            (None, None) => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::calibration::{Estimate, GapKnot};

    fn many(partners: u32, gaps: &[(u64, f64)]) -> ManyGap {
        let knot = |&(bytes, gap)| GapKnot { bytes, gap_seconds: Estimate::exact(gap) };
        ManyGap { partners, knots: gaps.iter().map(knot).collect() }
    }

    /// g(m) = 1 + m.
    #[test]
    fn factors_are_linear_between_and_constant_beyond() {
        let gaps = [many(3, &[(1, 12.0), (9, 30.0)]), many(5, &[(1, 40.0)])];
        let partners = Partners::new(&gaps, |bytes| 1.0 + bytes);
        // At k = 3: 2 at 1 byte, 1 at 9 bytes; at k = 5: 4.
        for (bytes, k, wanted) in [
            (1.0, 0, 1.0),
            (1.0, 1, 1.0),
            (1.0, 2, 1.5),
            (1.0, 3, 2.0),
            (5.0, 3, 1.5),
            (0.0, 3, 2.0),
            (1e6, 3, 1.0),
            (1.0, 4, 3.0),
            (1.0, 99, 4.0),
        ] {
            assert_eq!(partners.factor(bytes, k), wanted, "{bytes} bytes, {k} partners");
        }
    }

    #[test]
    fn without_measurements_partners_cost_the_same_each() {
        assert_eq!(Partners::default().factor(1024.0, 7), 1.0);
        assert_eq!(Partners::new(&[many(2, &[(1, 1.0)])], |_| 0.0).factor(1.0, 2), 1.0);
    }
}
