//! What is believed of one method's time over the points of a grid, and how observations change it.
//!
//! The logarithm of the time is taken for a Gaussian process around what the models predict: they
//! are wrong by a factor that changes slowly with the message size and the number of processes, so
//! what was seen at one point tells something of its neighbours (kriging of the residuals of a
//! model).

use records::Point;

use crate::constants::constants;

/// What is thought of a method's time before it is observed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    /// Expected logarithm of the time in seconds.
    pub mean: f64,
    /// Standard deviation of that logarithm that is the method's own at this point, and tells nothing
    /// of its neighbours.
    pub own: f64,
}

/// The logarithm of one method's times at several points of one collective: jointly normal.
#[derive(Debug, Clone, PartialEq)]
pub struct Belief {
    points: Vec<Point>,
    mean: Vec<f64>,
    /// Row by row; it is symmetric.
    covariance: Vec<f64>,
}

impl Belief {
    /// Before any observation. `common` is the standard deviation of an error that all points
    /// share, `smooth` of one that changes slowly from point to point.
    pub fn new(points: Vec<Point>, priors: &[Prior], common: f64, smooth: f64) -> Self {
        let mean = priors.iter().map(|prior| prior.mean).collect();
        let places = || points.iter().enumerate();
        let covariance = places().flat_map(|(row, &one)| {
            places().map(move |(column, &other)| {
                let own = if row == column { priors[row].own.powi(2) } else { 0.0 };
                common.powi(2) + smooth.powi(2) * similarity(one, other) + own
            })
        });
        let covariance = covariance.collect();
        Belief { points, mean, covariance }
    }

    /// The points, in the order given.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Expected logarithm of the time at a point, by its index.
    pub fn mean(&self, index: usize) -> f64 {
        self.mean[index]
    }

    /// Variance of the logarithm at a point, by its index.
    pub fn variance(&self, index: usize) -> f64 {
        self.row(index)[index].max(0.0)
    }

    /// Takes an observation in: the logarithm of a time at a point, with the variance of its noise.
    pub fn observe(&mut self, index: usize, logarithm: f64, noise: f64) {
        let surprise = logarithm - self.mean[index];
        let shared = self.row(index).to_vec();
        let total = shared[index] + noise;
        let add = |sums: &mut [f64], factor: f64| {
            for (sum, shared) in sums.iter_mut().zip(&shared) {
                *sum += factor * shared;
            }
        };
        add(&mut self.mean, surprise / total);
        for (row, of_row) in self.covariance.chunks_exact_mut(shared.len()).zip(&shared) {
            add(row, -1.0 / total * of_row);
        }
    }

    fn row(&self, index: usize) -> &[f64] {
        &self.covariance[index * self.points.len()..][..self.points.len()]
    }

    /// Takes in that an observation will be made: what is not known yet becomes less uncertain.
    pub fn expect(&mut self, index: usize, noise: f64) {
        self.observe(index, self.mean[index], noise);
    }
}

/// Factors of two between sizes or numbers of processes; nothing is one below 1.
pub(crate) fn octaves(a: f64, b: f64) -> f64 {
    (a.max(0.5) / b.max(0.5)).log2().abs()
}

/// How much what changes slowly tells at one point of another: 1 of itself, near 0 of one far off.
///
/// Matern's covariance of order 3/2, over the sizes and over the processes with their ranks per node. Smoother ones (the normal curve) hold what lies
/// between two observations for surer than it is: beliefs were then off by a factor of 1.5 from what was
/// observed, as trees change their shape from one number of processes to the next.
pub fn similarity(a: Point, b: Point) -> f64 {
    let matern =
        |distance: f64| (1.0 + 3.0_f64.sqrt() * distance) * (-3.0_f64.sqrt() * distance).exp();
    let bytes = octaves(a.bytes as f64, b.bytes as f64) / constants().octaves_of_bytes;
    let procs = octaves(a.procs().into(), b.procs().into()) / constants().octaves_of_procs;
    let per_node = |point: Point| f64::from(point.layout.max_per_node());
    let per_node = octaves(per_node(a), per_node(b)) / constants().octaves_of_procs;
    matern(bytes) * matern(procs.hypot(per_node))
}

#[cfg(test)]
mod tests {
    use records::Collective;

    use super::*;

    fn belief() -> Belief {
        let point = |bytes| Point::flat(Collective::Bcast, 8, bytes);
        let points = vec![point(1024), point(2048), point(1 << 20)];
        Belief::new(points, &[Prior { mean: 0.0, own: 0.01 }; 3], 0.1, 0.3)
    }

    #[test]
    fn an_observation_tells_most_of_its_neighbours() {
        let mut belief = belief();
        let before = belief.variance(2);
        belief.observe(0, 0.5, 1e-4);
        let [here, near, far] = [0, 1, 2].map(|index| belief.mean(index));
        assert!(
            (here - 0.5).abs() < 0.01 && near > 0.45 && far > 0.0 && far < 0.2,
            "{here} {near} {far}"
        );
        assert!(belief.variance(0) < 2e-4 && belief.variance(1) < 0.02);
        assert!(belief.variance(2) < before);
    }

    /// By the normal curve it stays off by up to 0.26: taken for alike is then what is not.
    #[test]
    fn what_changes_from_one_number_of_processes_to_the_next_is_learned() {
        let grid = [4, 6, 8, 11, 16].map(|procs| {
            let point = |power: u32| Point::flat(Collective::Reduce, procs, 1 << power);
            (0..12).map(point).collect::<Vec<_>>()
        });
        let points = grid.concat();
        let truth = |point: Point| if [6, 11].contains(&point.procs()) { 0.2 } else { -0.2 };
        let nothing = vec![Prior { mean: 0.0, own: 0.015 }; points.len()];
        let mut belief = Belief::new(points.clone(), &nothing, 0.25, 0.25);
        for (index, &point) in points.iter().enumerate() {
            if [1, 2, 4, 8, 1024].contains(&point.bytes) {
                belief.observe(index, truth(point), 0.05_f64.powi(2));
            }
        }
        for (index, &point) in points.iter().enumerate() {
            let off = belief.mean(index) - truth(point);
            assert!(off.abs() < 0.12, "{point:?}: {off}");
        }
    }

    #[test]
    fn what_is_expected_changes_no_mean() {
        let mut belief = belief();
        belief.expect(1, 1e-4);
        assert_eq!([0, 1, 2].map(|index| belief.mean(index)), [0.0; 3]);
        assert!(belief.variance(1) < 2e-4);
    }

    /// One variable: the posterior of a normal prior and a normal observation.
    #[test]
    fn one_point_is_the_textbooks_case() {
        let points = vec![belief().points()[0]];
        let mut belief = Belief::new(points, &[Prior { mean: 1.0, own: 2.0 }], 0.0, 0.0);
        belief.observe(0, 3.0, 1.0);
        assert!((belief.mean(0) - (1.0 / 4.0 + 3.0) / (1.0 / 4.0 + 1.0)).abs() < 1e-12);
        assert!((belief.variance(0) - 1.0 / (1.0 / 4.0 + 1.0)).abs() < 1e-12);
    }
}
