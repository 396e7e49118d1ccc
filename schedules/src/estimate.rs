//! How long a schedule is, without executing it.

use crate::{Call, Entry, Round, Step, entry::known_to};

/// How much there is to execute, about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Length {
    /// Sends, receives, combinations and copies of all ranks together.
    pub steps: f64,
    /// Sends and receives of all ranks that may be under way at once.
    pub slots: f64,
    /// Rounds of the rank that has most of those looked at.
    pub rounds: u64,
}

/// Ranks that are looked at, and rounds of each.
const RANKS: u32 = 127;
const ROUNDS: u64 = 8;
/// No more ranks are looked at after so many steps.
const STEPS: usize = 1 << 20;

impl Entry {
    /// The length of a call: the first rank's, and that of some others scaled up. Ranks of one
    /// algorithm do much the same; the first of them may do it for all.
    ///
    /// The call must satisfy [`Entry::check_everywhere`].
    pub fn length(&self, call: &Call<'_>) -> Length {
        let root = if self.collective.is_rooted() { call.root } else { 0 };
        let mut scratch = Round::of_one_call();
        let (of_root, mut looked_at) = self.of_rank(call, root, &mut scratch);
        let (mut sum, mut count) = (Length { steps: 0.0, slots: 0.0, rounds: of_root.rounds }, 0);
        // An odd step meets ranks of all kinds in trees.
        let apart = (call.ranks / RANKS).max(1) | 1;
        for distance in (1..call.ranks).rev().step_by(apart as usize) {
            let (one, seen) = self.of_rank(call, call.after(root, distance), &mut scratch);
            sum.steps += one.steps;
            sum.slots += one.slots;
            sum.rounds = sum.rounds.max(one.rounds);
            count += 1;
            looked_at += seen;
            if looked_at > STEPS {
                break;
            }
        }
        let scale = if count == 0 { 0.0 } else { f64::from(call.ranks - 1) / f64::from(count) };
        Length {
            steps: of_root.steps + scale * sum.steps,
            slots: of_root.slots + scale * sum.slots,
            rounds: sum.rounds,
        }
    }

    /// The length of one rank's program, and from how many steps it is estimated.
    fn of_rank(&self, call: &Call<'_>, rank: u32, scratch: &mut Round) -> (Length, usize) {
        let call = &known_to(self.collective, call, rank);
        let needs = self.needs_in(call, rank, scratch);
        // What follows a header is known only with it.
        let known = if needs.header > 0 { 1 } else { needs.rounds };
        let apart = (known / ROUNDS).max(1);
        let (mut seen, mut steps, mut count) = (0, 0, 0_u64);
        for round in (0..known).step_by(apart as usize) {
            if !self.round(call, rank, round, scratch) {
                break;
            }
            let is_wait = |step: &&Step| matches!(step, Step::Wait { .. });
            seen += scratch.steps().len();
            steps += scratch.steps().len() - scratch.steps().iter().filter(is_wait).count();
            count += 1;
        }
        let per_round = steps as f64 / count.max(1) as f64;
        let length = Length {
            steps: needs.rounds as f64 * per_round,
            slots: f64::from(needs.slots),
            rounds: needs.rounds,
        };
        (length, seen)
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Call, ENTRIES,
        simulator::{ActivityKind, LogGpCosts, Options, Simulator},
    };
    use records::Collective;

    /// What is told without executing is what is executed, give or take a factor of 3.
    #[test]
    fn the_length_is_about_that_of_the_execution() {
        let costs = LogGpCosts {
            latency: 61.0,
            overhead: 8.0,
            gap: 24.0,
            gap_per_byte: 0.1,
            combine_per_byte: 0.01,
        };
        for entry in ENTRIES {
            if entry.collective.has_counts() && entry.collective.is_rooted() {
                continue;
            }
            for (ranks, segment) in [(2, 0), (16, 0), (64, 8), (100, 0)] {
                let call = Call { segment, ..Call::new(ranks, 1000) };
                if entry.check_everywhere(&call).is_err() {
                    continue;
                }
                let mut steps = 0.0;
                let observe = |activity: crate::simulator::Activity| {
                    steps += f64::from(u8::from(activity.kind != ActivityKind::Wait));
                };
                Simulator::new()
                    .run_observed(entry, &call, &costs, Options::default(), observe)
                    .unwrap();
                let told = entry.length(&call).steps;
                let close = told <= 3.0 * steps + 8.0 && steps <= 3.0 * told + 8.0;
                assert!(
                    close,
                    "{entry:?} on {ranks}, segment {segment}: {told} told, {steps} done"
                );
            }
        }
    }

    #[test]
    fn a_long_schedule_is_told_at_once() {
        let begun = std::time::Instant::now();
        let length = |collective, algorithm, ranks, count, segment| {
            let entry = crate::find(collective, algorithm).unwrap();
            entry.length(&Call { segment, ..Call::new(ranks, count) })
        };
        use records::Algorithm::{Linear, Pipeline};
        let pipeline = length(Collective::Bcast, Pipeline, 8, 1 << 30, 1);
        assert!(pipeline.rounds >= 1 << 30 && pipeline.steps > 1e10, "{pipeline:?}");
        let alltoall = length(Collective::Alltoall, Linear, 1 << 20, 1, 0);
        assert!(alltoall.steps > 1e12, "{alltoall:?}");
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    }
}
