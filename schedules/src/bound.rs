//! What a schedule takes at least, found without executing it.

mod scatter_allgather;

use records::{Algorithm, Collective};

use crate::{
    Call, Entry, Range, Round, Step,
    simulator::{Costs, Options},
};

impl Entry {
    /// Seconds that [`simulate`](crate::simulator::simulate) would surely give at least; once that
    /// is known to be more than `enough`, the rest is not looked at. It takes O(rounds^2) of a few
    /// ranks, and is meant for programs of O(log p) rounds.
    ///
    /// Looked at are chains of messages, which everything else only delays: a message leaves the
    /// first rank behind what its outgoing port has sent before; the rank that waits for it sends
    /// what comes next in its program, and so on. The chains begin with the first rank's last
    /// message, with the last and with the first one of its first round.
    ///
    /// Scatter-allgather's ranks are all followed, in O(p log p).
    ///
    /// The call must satisfy [`Entry::check_everywhere`] and bring no header.
    pub fn at_least(
        &self,
        call: &Call<'_>,
        costs: &impl Costs,
        options: Options,
        enough: f64,
    ) -> f64 {
        let doubles =
            (self.collective, self.algorithm) == (Collective::Bcast, Algorithm::ScatterAllgather);
        if doubles && options.rendezvous_bytes.is_none() {
            return scatter_allgather::at_least(call, costs, options, enough);
        }
        let first = if self.collective.is_rooted() { call.root } else { 0 };
        let mut scratch = Round::of_one_call();
        let steps = self.steps(call, first, &mut scratch);
        let sends: Vec<usize> =
            (0..steps.len()).filter(|&place| steps[place].sent().is_some()).collect();
        let (Some(&earliest), Some(&last)) = (sends.first(), sends.last()) else { return 0.0 };
        let of_first_round = |place: &&usize| steps[**place].round == steps[earliest].round;
        let turn = sends.iter().take_while(of_first_round).last().copied().unwrap_or(earliest);
        let gap = |step: &Done| {
            let (_, range) = step.sent()?;
            Some(costs.gap(range.count * options.element_bytes, step.destinations))
        };
        let message = |range: Range| {
            let bytes = range.count * options.element_bytes;
            costs.send_overhead(bytes) + costs.flight(bytes) + costs.receive_overhead(bytes)
        };
        let mut longest = 0.0_f64;
        for begin in [last, turn, earliest] {
            let mut chain: f64 = steps[..begin].iter().filter_map(gap).sum();
            let (mut rank, mut place, mut program) = (first, begin, steps.clone());
            while let Some(next) = program[place..].iter().position(|step| step.sent().is_some()) {
                let sent = place + next;
                let Some((peer, range)) = program[sent].sent() else { break };
                chain += message(range);
                longest = longest.max(chain);
                if longest > enough {
                    return longest;
                }
                let to_peer = |step: &&Done| step.sent().is_some_and(|(to, _)| to == peer);
                let number = program[..sent].iter().filter(to_peer).count();
                program = self.steps(call, peer, &mut scratch);
                let Some(waited) = waited_for(&program, rank, number) else { break };
                (rank, place) = (peer, waited + 1);
            }
        }
        longest
    }

    /// Seconds that a call takes less at most where each cost is less by that of `savings`, which may
    /// be below 0: what the chain of its messages saves that saves most. None where chains are not
    /// known. Messages that overtake each other, and so make other chains, are not thought of.
    ///
    /// The call must satisfy [`Entry::check_everywhere`].
    pub fn saves_at_most(
        &self,
        call: &Call<'_>,
        savings: &impl Costs,
        options: Options,
    ) -> Option<f64> {
        let doubles =
            (self.collective, self.algorithm) == (Collective::Bcast, Algorithm::ScatterAllgather);
        (doubles && options.rendezvous_bytes.is_none())
            .then(|| scatter_allgather::longest_chain(call, savings, options))
    }

    /// The steps of a rank.
    fn steps(&self, call: &Call<'_>, rank: u32, scratch: &mut Round) -> Vec<Done> {
        let mut steps = Vec::new();
        for round in 0.. {
            if !self.round(call, rank, round, scratch) {
                break;
            }
            let destinations = scratch.destinations();
            let done = |step: &Step| Done { step: *step, round, destinations };
            steps.extend(scratch.steps().iter().map(done));
        }
        steps
    }
}

/// A step in its round, which has so many destinations.
#[derive(Debug, Clone, Copy)]
struct Done {
    step: Step,
    round: u64,
    destinations: u32,
}

impl Done {
    /// To whom what is sent, if the step sends.
    fn sent(&self) -> Option<(u32, Range)> {
        match self.step {
            Step::Send { peer, range, .. } | Step::SendReady { peer, range, .. } => {
                Some((peer, range))
            }
            _ => None,
        }
    }
}

/// Where the message of that number (from 0) of a sender has been waited for.
fn waited_for(steps: &[Done], sender: u32, number: usize) -> Option<usize> {
    let from = |(_, done): &(usize, &Done)| matches!(done.step, Step::Receive { peer, .. } if peer == sender);
    let (posted, done) = steps.iter().enumerate().filter(from).nth(number)?;
    let Step::Receive { slot, .. } = done.step else { return None };
    Some(posted + steps[posted..].iter().position(|done| done.step == Step::Wait { slot })?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{
        Call, ENTRIES,
        simulator::{LogGpCosts, Options, simulate},
    };
    use records::{Algorithm, Collective};

    const COSTS: LogGpCosts = LogGpCosts {
        latency: 61.0,
        overhead: 8.0,
        gap: 24.0,
        gap_per_byte: 0.1,
        combine_per_byte: 0.01,
    };

    /// Of a doubling broadcast, nearly two thirds are told at least.
    #[test]
    fn it_tells_most_of_the_time() {
        let entry = crate::find(Collective::Bcast, Algorithm::ScatterAllgather).unwrap();
        for (ranks, count) in [(5, 8), (100, 1000), (1000, 1 << 20), (1023, 1 << 10)] {
            let call = Call::new(ranks, count);
            let seconds = simulate(entry, &call, &COSTS, Options::default()).unwrap().seconds;
            let told = entry.at_least(&call, &COSTS, Options::default(), f64::INFINITY) / seconds;
            assert!(told > 0.65 && told <= 1.0, "{ranks} ranks, {count} elements: {told}");
        }
    }

    proptest! {
        /// Whatever is simulated takes at least what is told of it.
        #[test]
        fn nothing_is_told_that_is_not_so(
            index in 0..ENTRIES.len(), ranks in 1_u32..40, count in 0_u64..500,
            part in 0.5..1.0_f64, per_byte in 0.0..3.0_f64, gap in 0.0..100.0_f64,
        ) {
            let entry = &ENTRIES[index];
            let v_form = entry.collective.v_form_of().is_some() && entry.collective.is_rooted();
            let call = Call::new(ranks, count);
            prop_assume!(!v_form && entry.check_everywhere(&call).is_ok());
            let costs = LogGpCosts { gap, gap_per_byte: per_byte, ..COSTS };
            let seconds = simulate(entry, &call, &costs, Options::default()).unwrap().seconds;
            let told = |enough| entry.at_least(&call, &costs, Options::default(), enough);
            prop_assert!(told(f64::INFINITY) <= seconds * (1.0 + 1e-9));
            // Where not all is looked at, it is no more, and as much as was enough.
            let (less, enough, all) = (told(part * seconds), part * seconds, told(f64::INFINITY));
            prop_assert!(less <= all * (1.0 + 1e-9) && (less > enough || less == all));
        }

        /// Where messages cost less, a call takes less by no more than is told. Between more than two
        /// ranks messages overtake each other at a port that takes its time, which is not told of.
        #[test]
        fn no_more_is_saved_than_is_told(
            ranks in 1_u32..70, count in 0_u64..5000, cheaper in 0..4_usize, part in 0.3..1.5_f64,
            per_byte in 0.0..3.0_f64, gap in 0.0..100.0_f64,
        ) {
            let [per_byte, gap] = [per_byte, gap].map(|cost| if ranks > 2 { 0.0 } else { cost });
            let entry = crate::find(Collective::Bcast, Algorithm::ScatterAllgather).unwrap();
            let call = Call::new(ranks, count);
            let costs = LogGpCosts { gap, gap_per_byte: per_byte, ..COSTS };
            let mut less = costs;
            match cheaper {
                0 => less.latency *= part,
                1 => less.overhead *= part,
                2 => less.gap *= part,
                _ => less.gap_per_byte *= part,
            }
            let seconds = |costs| simulate(entry, &call, costs, Options::default()).unwrap().seconds;
            let savings = LogGpCosts {
                latency: costs.latency - less.latency,
                overhead: costs.overhead - less.overhead,
                gap: costs.gap - less.gap,
                gap_per_byte: costs.gap_per_byte - less.gap_per_byte,
                combine_per_byte: 0.0,
            };
            let told = entry.saves_at_most(&call, &savings, Options::default()).unwrap();
            prop_assert!(seconds(&costs) - seconds(&less) <= told + 1e-9 * seconds(&costs));
        }
    }
}
