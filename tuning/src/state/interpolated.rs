//! What to load where the default was not seen: at sizes that were left out, and where its calls take too long to be
//! worth a look.

use std::collections::BTreeMap;

use records::{Collective, Layout, Method, Point, choices::Chosen};

use super::{TrackIndex, TuningState};

impl TuningState {
    /// What to load at the points at which the default was not seen, above the least size at which it was, ascending:
    /// what is decided for by what is believed there, among the methods that can be had. What was seen there is not given
    /// up for what is only believed to be a little faster.
    pub fn interpolated_choices(&self, among: &dyn Fn(Point, &Method) -> bool) -> Vec<Chosen> {
        let choice = |(point, default, decided)| self.timed_choice(point, default, decided);
        self.to_load_interpolated(among).into_iter().map(choice).collect()
    }

    /// The standard deviations of the logarithms of what these are believed to gain.
    pub fn interpolated_doubts(
        &self,
        among: &dyn Fn(Point, &Method) -> bool,
    ) -> BTreeMap<Point, f64> {
        let doubt = |(point, default, decided)| (point, self.doubt(default, decided));
        self.to_load_interpolated(among).into_iter().map(doubt).collect()
    }

    fn to_load_interpolated(
        &self,
        among: &dyn Fn(Point, &Method) -> bool,
    ) -> Vec<(Point, TrackIndex, TrackIndex)> {
        let mut least: BTreeMap<(Collective, Layout), u64> = BTreeMap::new();
        for (Point { collective, layout, bytes }, ..) in self.to_load(&|_, _| false) {
            let least = least.entry((collective, layout)).or_insert(bytes);
            *least = bytes.min(*least);
        }
        let is_above = |point: &Point| {
            let least = least.get(&(point.collective, point.layout));
            least.is_some_and(|least| *least < point.bytes)
        };
        let unseen = self.points.iter().filter(|(point, candidates)| {
            is_above(point)
                && !candidates.iter().any(|&one| self.is_default(one) && self.is_seen(one))
        });
        let choice = |(&point, candidates): (&Point, &Vec<TrackIndex>)| {
            let can_be_had =
                |one: &TrackIndex| self.is_default(*one) || among(point, self.method(*one));
            let candidates: Vec<_> = candidates.iter().copied().filter(can_be_had).collect();
            let default = self.default(&candidates)?;
            let decided =
                self.decided_by_seen(&candidates).unwrap_or_else(|| self.decided(&candidates));
            Some((point, default, decided))
        };
        unseen.filter_map(choice).collect()
    }
}
