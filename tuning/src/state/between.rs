//! What to load at sizes that were not measured, between sizes that were.

use std::collections::{BTreeMap, BTreeSet};

use records::{Collective, Layout, Method, Point};
use verification::selection::TimedChoice;

use super::TuningState;
use crate::constants::constants;

impl TuningState {
    /// What to load at the points at which the default was not seen, between sizes at which it was,
    /// ascending: what is decided for by what is believed there, among the methods that can be had and
    /// were seen at other sizes of the same layout, unless one that was not seen is surely faster.
    pub fn choices_between(&self, among: &dyn Fn(Point, &Method) -> bool) -> Vec<TimedChoice> {
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
        let points = self.points.iter().filter(|(point, _)| unseen_between(point));
        let choices = points.map(|(&point, candidates)| {
            let can_be_had =
                |&one: &(usize, usize)| self.is_default(one) || among(point, self.method(one));
            let (candidates, others) =
                candidates.iter().copied().filter(can_be_had).partition::<Vec<_>, _>(|&one| {
                    self.is_default(one) || seen.contains(&(one.0, point.layout))
                });
            self.choice_between(point, &candidates, &others)
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

    fn choice_between(
        &self,
        point: Point,
        candidates: &[(usize, usize)],
        unseen: &[(usize, usize)],
    ) -> Option<TimedChoice> {
        let default = self.default(candidates)?;
        let of_seen = self.decided(candidates);
        let decided = self.surely_faster(of_seen, unseen).unwrap_or(of_seen);
        Some(TimedChoice {
            point,
            method: self.method(decided).clone(),
            seconds: self.seconds(decided.0, decided.1),
            default_seconds: self.seconds(default.0, default.1),
        })
    }

    /// The fastest of those that are surely faster than this one by what is believed of both.
    fn surely_faster(
        &self,
        (track, index): (usize, usize),
        others: &[(usize, usize)],
    ) -> Option<(usize, usize)> {
        let belief = |track: usize| &self.tracks[track].belief;
        let (mean, variance) = (belief(track).mean(index), belief(track).variance(index));
        let is_surely_faster = |&(track, index): &(usize, usize)| {
            let doubt = (variance + belief(track).variance(index)).sqrt();
            let lead = mean - belief(track).mean(index) - constants().alike.ln_1p();
            lead > constants().surely * doubt
        };
        let mean = |&(track, index): &(usize, usize)| belief(track).mean(index);
        let faster = others.iter().copied().filter(is_surely_faster);
        faster.min_by(|a, b| mean(a).total_cmp(&mean(b)))
    }
}
