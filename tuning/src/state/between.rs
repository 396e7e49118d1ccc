//! What to load at sizes that were not measured, between sizes that were.

use std::collections::BTreeMap;

use records::{Collective, Layout, Method, Point};
use verification::selection::TimedChoice;

use super::{TrackIndex, TuningState};

impl TuningState {
    /// What to load at the points at which the default was not seen, between sizes at which it was,
    /// ascending: what is decided for by what is believed there, among the methods that can be had.
    pub fn choices_between(&self, among: &dyn Fn(Point, &Method) -> bool) -> Vec<TimedChoice> {
        let mut ranges: BTreeMap<(Collective, Layout), (u64, u64)> = BTreeMap::new();
        for (Point { collective, layout, bytes }, ..) in self.to_load(&|_, _| false) {
            let range = ranges.entry((collective, layout)).or_insert((bytes, bytes));
            *range = (range.0.min(bytes), range.1.max(bytes));
        }
        let unseen_between = |point: &Point| {
            let range = ranges.get(&(point.collective, point.layout));
            let is_seen = self.points[point]
                .iter()
                .any(|&one| self.is_default(one) && self.tracks[one.track].visits[one.index] > 0);
            range.is_some_and(|(first, last)| (first..last).contains(&&point.bytes)) && !is_seen
        };
        let points = self.points.iter().filter(|(point, _)| unseen_between(point));
        let choice = |(&point, candidates): (&Point, &Vec<TrackIndex>)| {
            let can_be_had =
                |one: &TrackIndex| self.is_default(*one) || among(point, self.method(*one));
            let candidates: Vec<_> = candidates.iter().copied().filter(can_be_had).collect();
            let default = self.default(&candidates)?;
            let decided = self.decided(&candidates);
            Some(TimedChoice {
                point,
                method: self.method(decided).clone(),
                seconds: self.seconds(decided),
                default_seconds: self.seconds(default),
            })
        };
        points.filter_map(choice).collect()
    }
}
