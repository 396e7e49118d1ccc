//! Which forms do not hold where messages that leave at once share ports by frames.

use records::{Algorithm, Collective};

use super::{CostSource, Evaluation};

impl Evaluation<'_> {
    /// Its form, or by simulation where the form knows messages in turn only and some are longer than a frame.
    /// The best segment is looked for by forms, and so calls in one piece that have segments are evaluated by them.
    pub(super) fn by_frames(&self, collective: Collective) -> CostSource {
        let CostSource::Form(form) = self.source else { return self.source };
        let network = &self.set.network;
        let is_searched = form.segmented && self.shape.segment() == 0;
        if is_searched || network.frame().is_none() || !is_in_turn(collective, form.algorithm) {
            return self.source;
        }
        let entry = schedules::find(collective, form.algorithm);
        match entry.filter(|entry| self.simulated_call(entry).has_frames(network)) {
            Some(entry) => CostSource::Simulated(entry),
            None => self.source,
        }
    }
}

/// Ranks are out of step or send on while more comes, so that messages of two rounds share a port: no form
/// follows that.
const fn is_in_turn(collective: Collective, algorithm: Algorithm) -> bool {
    use Algorithm as A;
    match algorithm {
        A::Linear => matches!(collective, Collective::Alltoall),
        A::Circulant => matches!(collective, Collective::Bcast | Collective::Reduce),
        _ => matches!(
            algorithm,
            A::ScatterAllgather
                | A::ScatterAllgatherRing
                | A::Rabenseifner
                | A::RecursiveDoubling
                | A::RecursiveMultiplying
        ),
    }
}
