//! No harm: whether a loaded decision makes a call slower than the library's default.

use records::{
    Method, Point,
    summary::{Harm, Slower},
};
use statistics::{family_wise_control, median, significance::Test};

/// How much slower a call may be, relatively: what is less is no harm.
pub const TOLERANCE: f64 = 0.05;
/// Probability of calling anything harm that is none, over all cells together.
pub const LEVEL: f64 = 0.05;

/// A point with what was observed there without and with the decision loaded, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Where.
    pub point: Point,
    /// What is loaded there.
    pub method: Method,
    /// The library's default.
    pub default: Vec<f64>,
    /// The same call with the decision loaded.
    pub loaded: Vec<f64>,
}

/// Judges all points at which the loaded decision differs from the default, together: by a
/// one-sided rank-sum test of the default's times, made slower by [`TOLERANCE`], against the loaded
/// ones, at [`LEVEL`] corrected for their number (Holm).
pub fn judge(cells: &[Compared]) -> Harm {
    let p_values: Vec<f64> = cells.iter().map(Compared::p_value).collect();
    let corrected = family_wise_control(&p_values);
    let slower = cells.iter().zip(&corrected).filter(|(_, p)| **p < LEVEL);
    let slower = slower.filter_map(|(cell, &p_value)| cell.slower(p_value));
    let most = cells.len().max(1) as f64;
    let too_few = |cell: &&Compared| {
        Test::least_p_value(cell.default.len(), cell.loaded.len()) * most >= LEVEL
    };
    let ratios: Vec<f64> = cells.iter().filter_map(Compared::slowdown).collect();
    Harm {
        points: cells.len() as u32,
        tolerance: TOLERANCE,
        level: LEVEL,
        greatest_slowdown: ratios.iter().copied().reduce(f64::max),
        slower: slower.collect(),
        too_few: cells.iter().filter(too_few).count() as u32,
    }
}

impl Compared {
    fn p_value(&self) -> f64 {
        let allowed: Vec<f64> =
            self.default.iter().map(|seconds| seconds * (1.0 + TOLERANCE)).collect();
        Test::RankSum.p_value(&allowed, &self.loaded)
    }

    fn slowdown(&self) -> Option<f64> {
        Some(median(&self.loaded)? / median(&self.default)? - 1.0)
    }

    fn slower(&self, p_value: f64) -> Option<Slower> {
        let Point { collective, procs, bytes } = self.point;
        Some(Slower {
            collective,
            procs,
            bytes,
            method: self.method.clone(),
            default_seconds: median(&self.default)?,
            loaded_seconds: median(&self.loaded)?,
            slowdown: self.slowdown()?,
            p_value,
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;
    use records::Collective;

    use super::*;

    /// So many points with `count` times each; `factor` says how much slower what is loaded is.
    fn cells(seed: u64, count: usize, factor: impl Fn(u64) -> f64) -> Vec<Compared> {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut times = |scale: f64| -> Vec<f64> {
            (0..count).map(|_| scale * (1.0 + 0.2 * random.random::<f64>().powi(2))).collect()
        };
        let cell = |bytes| Compared {
            point: Point { collective: Collective::Bcast, procs: 8, bytes },
            method: Method::Default,
            default: times(1e-3),
            loaded: times(1e-3 * factor(bytes)),
        };
        (1..=60).map(cell).collect()
    }

    #[test]
    fn what_is_much_slower_is_found_and_nothing_else() {
        let slow = |bytes| if bytes == 7 || bytes == 40 { 1.5 } else { 0.9 };
        let harm = judge(&cells(1, 10, slow));
        let found: Vec<u64> = harm.slower.iter().map(|slower| slower.bytes).collect();
        assert_eq!(found, [7, 40]);
        assert!(harm.slower.iter().all(|slower| (slower.slowdown - 0.5).abs() < 0.1));
        assert_eq!((harm.points, harm.too_few), (60, 0));
        assert!(harm.greatest_slowdown.unwrap() > 0.4);
    }

    /// Of 200 sets of 60 points each that are slower by just what is allowed, few are blamed.
    #[test]
    fn equal_times_are_seldom_called_harm() {
        let blamed =
            (0..200).filter(|&seed| !judge(&cells(seed, 8, |_| 1.05)).slower.is_empty()).count();
        assert!(blamed <= 16, "{blamed} of 200 sets; 10 are expected at most");
        let none = (0..200).filter(|&seed| !judge(&cells(seed, 8, |_| 1.0)).slower.is_empty());
        assert_eq!(none.count(), 0);
    }

    #[test]
    fn too_few_observations_are_told() {
        let harm = judge(&cells(3, 4, |_| 3.0));
        assert!(harm.slower.is_empty() && harm.too_few == 60, "70 ways for 60 points");
        assert_eq!(judge(&[]).points, 0);
    }
}
