//! What to load at sizes that were not measured, between sizes that were.

use std::collections::{BTreeMap, BTreeSet};

use records::{Collective, Layout, Method, Point};
use verification::selection::Choice;

use super::TuningState;

impl TuningState {
    /// What to load at the points at which the default was not seen, between sizes at which it was,
    /// ascending: what is decided for by what is believed there, among the methods that can be had and
    /// were seen at other sizes of the same layout.
    pub fn choices_between(&self, among: &dyn Fn(Point, &Method) -> bool) -> Vec<Choice> {
        let mut ranges: BTreeMap<(Collective, Layout), (u64, u64)> = BTreeMap::new();
        for (Point { collective, layout, bytes }, ..) in self.to_load(&|_, _| false) {
            let range = ranges.entry((collective, layout)).or_insert((bytes, bytes));
            *range = (range.0.min(bytes), range.1.max(bytes));
        }
        let seen = self.seen();
        let unseen_between = |point: &Point| {
            let range = ranges.get(&(point.collective, point.layout));
            let is_seen = self.points[point].iter().any(|&(track, index)| {
                self.is_default((track, index)) && self.tracks[track].visits[index] > 0
            });
            range.is_some_and(|(first, last)| (first..last).contains(&&point.bytes)) && !is_seen
        };
        let can_be_had = |point: Point, one: (usize, usize)| {
            self.is_default(one)
                || seen.contains(&(one.0, point.layout)) && among(point, self.method(one))
        };
        let points = self.points.iter().filter(|(point, _)| unseen_between(point));
        let choices = points.map(|(&point, candidates)| {
            let candidates = candidates.iter().copied().filter(|&one| can_be_had(point, one));
            self.choice_between(point, &candidates.collect::<Vec<_>>())
        });
        choices.flatten().collect()
    }

    /// The methods, by their tracks, that were seen at any size of a layout.
    fn seen(&self) -> BTreeSet<(usize, Layout)> {
        let of_track = |(track, of): (usize, &super::MethodTrack)| {
            let visited = of.belief.points().iter().zip(of.visits.clone());
            let visited = visited.filter(|(_, visits)| *visits > 0);
            visited.map(|(point, _)| (track, point.layout)).collect::<Vec<_>>()
        };
        self.tracks.iter().enumerate().flat_map(of_track).collect()
    }

    fn choice_between(&self, point: Point, candidates: &[(usize, usize)]) -> Option<Choice> {
        let default = self.default(candidates)?;
        let decided = self.decided(candidates);
        Some(Choice {
            point,
            method: self.method(decided).clone(),
            seconds: self.seconds(decided.0, decided.1),
            default_seconds: self.seconds(default.0, default.1),
        })
    }
}
