//! The time of one method over the size, from times at a few sizes.
//!
//! # What is computed
//! A start-up time and a rate, a + b m, by least squares of ln(measured / fitted); what then remains is
//! interpolated over ln m between the sizes next to it, and beyond the ends stays as it is there.
//! A line between logarithms alone is too slow half the way between a size whose time is all start-up and one
//! whose time is all transfer; a + b m is not. What a schedule says of a and b adds nothing to that.
//!
//! # Doubt
//! What remains is taken as a Brownian motion over ln m (kriging): its most likely value between two
//! sizes is the line between them, its variance `d1 d2 / (d1 + d2)` times the motion's, d1 and d2 the
//! distances. Its width per root of a unit of ln m is estimated by leaving out each inner size in turn.

use nalgebra::Vector2;

use crate::minimise::minimise;

/// A time at a size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeAtSize {
    /// The size, in bytes.
    pub bytes: u64,
    /// The time, in seconds; above 0.
    pub seconds: f64,
}

/// A method's time over the size.
#[derive(Debug, Clone)]
pub struct SizeCurve {
    /// ln a and ln b.
    logarithms: Vector2<f64>,
    /// ln m, and ln of the measured time over the fitted one, in ascending order.
    remainders: Vec<Remainder>,
}

/// ln m, and the logarithm of what the fitted line leaves of a time there.
type Remainder = (f64, f64);

/// ln m; an empty message is where a byte is.
fn place(bytes: u64) -> f64 {
    (bytes.max(1) as f64).ln()
}

fn fitted(logarithms: &Vector2<f64>, bytes: u64) -> Vector2<f64> {
    Vector2::new(logarithms[0].exp(), logarithms[1].exp() * bytes as f64)
}

impl SizeCurve {
    /// Fits to times in ascending order of their sizes; none where there is no time.
    pub fn fit(times: &[TimeAtSize]) -> Option<Self> {
        let logarithms = match times {
            [] => return None,
            // One time does not tell what it is of.
            [only] => Vector2::new(only.seconds.ln(), f64::NEG_INFINITY),
            _ => least_squares(times),
        };
        let remainder = |time: &TimeAtSize| {
            let fitted = fitted(&logarithms, time.bytes).sum();
            (place(time.bytes), (time.seconds / fitted).ln())
        };
        Some(SizeCurve { logarithms, remainders: times.iter().map(remainder).collect() })
    }

    /// The sizes next to a place: at or below it, and at or above it.
    fn neighbours(&self, here: f64) -> [Option<Remainder>; 2] {
        let below = self.remainders.iter().rev().find(|(at, _)| *at <= here);
        let above = self.remainders.iter().find(|(at, _)| *at >= here);
        [below.copied(), above.copied()]
    }

    /// The time at a size, in seconds.
    pub fn seconds(&self, bytes: u64) -> f64 {
        let here = place(bytes);
        let remainder = match self.neighbours(here) {
            [Some((below, left)), Some((above, right))] if above > below => {
                left + (here - below) / (above - below) * (right - left)
            }
            [Some((_, value)), _] | [None, Some((_, value))] => value,
            [None, None] => 0.0,
        };
        fitted(&self.logarithms, bytes).sum() * remainder.exp()
    }

    /// Deviation of ln of the time at a size, where the motion's width is 1.
    pub fn deviation(&self, bytes: u64) -> f64 {
        let here = place(bytes);
        match self.neighbours(here) {
            [Some((below, _)), Some((above, _))] if above > below => {
                ((here - below) * (above - here) / (above - below)).sqrt()
            }
            [Some(_), Some(_)] => 0.0,
            [Some((at, _)), None] | [None, Some((at, _))] => (here - at).abs().sqrt(),
            [None, None] => f64::INFINITY,
        }
    }

    /// How far each inner time lies from the curve through the others, over its deviation there.
    pub fn leave_one_out(times: &[TimeAtSize]) -> Vec<f64> {
        let distance = |inner: usize| {
            let mut others = times.to_vec();
            let left_out = others.remove(inner);
            let curve = SizeCurve::fit(&others)?;
            let error = (left_out.seconds / curve.seconds(left_out.bytes)).ln().abs();
            Some(error / curve.deviation(left_out.bytes)).filter(|it| it.is_finite())
        };
        (1..times.len().saturating_sub(1)).filter_map(distance).collect()
    }
}

/// ln a and ln b of two and more times: the least squares of relative errors.
fn least_squares(times: &[TimeAtSize]) -> Vector2<f64> {
    let sum = |at: &[f64]| {
        let at = Vector2::from_row_slice(at);
        let (mut sum, mut slopes) = (0.0, vec![0.0; 2]);
        for time in times {
            let parts = fitted(&at, time.bytes);
            let error = (time.seconds / parts.sum()).ln();
            sum += error * error;
            for (slope, part) in slopes.iter_mut().zip(parts.iter()) {
                *slope -= 2.0 * error * part / parts.sum();
            }
        }
        (sum, slopes)
    };
    let (first, last) = (times[0], times[times.len() - 1]);
    let start = [first.seconds.ln(), (last.seconds / last.bytes.max(1) as f64).ln()];
    Vector2::from_vec(minimise(start.to_vec(), sum))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand_distr::{Distribution as _, Normal};

    use super::*;

    const SIZES: [u64; 6] = [32, 2048, 131_072, 1 << 20, 8 << 20, 512 << 20];

    fn times(of: impl Fn(u64) -> f64) -> Vec<TimeAtSize> {
        SIZES.map(|bytes| TimeAtSize { bytes, seconds: of(bytes) }).into()
    }

    #[test]
    fn a_start_up_and_a_rate_are_found_between_sizes_64_times_apart() {
        for (start, rate) in [(3e-6, 1e-10), (1e-4, 1e-9), (1e-6, 0.0), (1e-9, 5e-10)] {
            let truth = |bytes: u64| start + rate * bytes as f64;
            let curve = SizeCurve::fit(&times(truth)).unwrap();
            for bytes in [256, 16_384, 65_536, 64 << 20, 1 << 30] {
                let found = curve.seconds(bytes);
                assert!((found / truth(bytes)).ln().abs() < 0.01, "{bytes}: {found}");
            }
        }
    }

    #[test]
    fn measured_times_are_kept_and_ends_go_on() {
        let odd = |bytes: u64| (1 + bytes % 7) as f64 * if bytes > 4096 { 1e-4 } else { 1e-5 };
        let curve = SizeCurve::fit(&times(odd)).unwrap();
        for bytes in SIZES {
            assert!((curve.seconds(bytes) / odd(bytes) - 1.0).abs() < 1e-9);
            assert_eq!(curve.deviation(bytes), 0.0);
        }
        assert!(curve.deviation(256) > 0.0 && curve.deviation(1 << 30) > 0.0);
        let one = SizeCurve::fit(&times(odd)[..1]).unwrap();
        assert_eq!(one.seconds(1 << 20), one.seconds(32));
        assert!(SizeCurve::fit(&[]).is_none());
    }

    /// Of a Brownian motion on top of a + b m the width is found again, and the errors are as large as
    /// told.
    #[test]
    fn the_doubt_is_as_large_as_the_errors() {
        const WIDTH: f64 = 0.2;
        let (mut distances, mut within, mut all) = (Vec::new(), 0, 0);
        for seed in 0..60 {
            let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
            let normal = Normal::new(0.0, WIDTH).unwrap();
            let (mut drift, mut before) = (0.0, place(16));
            let mut made = |bytes: u64| {
                drift += normal.sample(&mut random) * (place(bytes) - before).sqrt();
                before = place(bytes);
                let seconds = (5e-6 + 2e-10 * bytes as f64) * f64::exp(drift);
                TimeAtSize { bytes, seconds }
            };
            let all_times: Vec<TimeAtSize> = (2..=13).map(|power| made(1 << (2 * power))).collect();
            let known: Vec<TimeAtSize> = all_times.iter().copied().step_by(2).collect();
            distances.extend(SizeCurve::leave_one_out(&known));
            let curve = SizeCurve::fit(&known).unwrap();
            for left_out in all_times.iter().skip(1).step_by(2).take(5) {
                let error = (left_out.seconds / curve.seconds(left_out.bytes)).ln().abs();
                within += usize::from(error < 2.0 * WIDTH * curve.deviation(left_out.bytes));
                all += 1;
            }
        }
        let width = statistics::median(&distances).unwrap() / 0.6745;
        assert!((width / WIDTH).ln().abs() < 0.4, "{width}");
        let share = f64::from(within as u32) / f64::from(all);
        assert!((0.85..1.0).contains(&share), "{share}");
    }
}
