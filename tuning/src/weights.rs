//! How much each point matters.

use std::collections::BTreeMap;

use records::Point;

/// How much each point matters: every one alike, or as much as an application spends there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Weights(BTreeMap<Point, f64>);

impl Weights {
    /// By the time spent at each point, in seconds. The mean weight is 1, so that what is
    /// tolerable at a point is so, too, where it has weights.
    ///
    /// Points at which no time is spent have none.
    pub fn from_seconds(seconds: &BTreeMap<Point, f64>) -> Self {
        let used = || seconds.iter().filter(|(_, seconds)| **seconds > 0.0);
        let mean = used().map(|(_, seconds)| seconds).sum::<f64>() / used().count().max(1) as f64;
        Weights(used().map(|(&point, seconds)| (point, seconds / mean)).collect())
    }

    /// Whether every point matters alike.
    pub fn are_equal(&self) -> bool {
        self.0.is_empty()
    }

    /// The weight of a point: 1 where all are alike, 0 where nothing is spent.
    pub fn at(&self, point: Point) -> f64 {
        match self.are_equal() {
            true => 1.0,
            false => self.0.get(&point).copied().unwrap_or(0.0),
        }
    }

    /// How many points have a weight.
    pub fn points(&self) -> usize {
        self.0.len()
    }

    /// The heaviest of the points, so many, and which share of the whole weight they have.
    #[must_use]
    pub fn heaviest(&self, count: usize) -> (Self, f64) {
        let mut points: Vec<(Point, f64)> =
            self.0.iter().map(|(&point, &weight)| (point, weight)).collect();
        points.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        points.truncate(count);
        let kept: f64 = points.iter().map(|(_, weight)| weight).sum();
        let all: f64 = self.0.values().sum();
        (Weights(points.into_iter().collect()), kept / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::Collective;

    fn point(bytes: u64) -> Point {
        Point::flat(Collective::Bcast, 8, bytes)
    }

    #[test]
    fn weights_have_a_mean_of_one_and_unused_points_have_none() {
        let seconds = [(point(1), 3.0), (point(2), 0.0), (point(4), 1.0)];
        let weights = Weights::from_seconds(&seconds.into());
        assert_eq!([1, 2, 4, 8].map(|bytes| weights.at(point(bytes))), [1.5, 0.0, 0.5, 0.0]);
        assert_eq!(weights.points(), 2);
        let (heaviest, share) = weights.heaviest(1);
        assert_eq!((heaviest.points(), share), (1, 0.75));
        assert_eq!(heaviest.at(point(4)), 0.0);
    }

    #[test]
    fn where_nothing_is_said_every_point_counts_alike() {
        let weights = Weights::from_seconds(&BTreeMap::new());
        assert!(weights.are_equal());
        assert_eq!(weights.at(point(7)), 1.0);
    }
}
