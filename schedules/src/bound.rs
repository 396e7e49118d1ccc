//! Whether a schedule surely takes longer than some time, told without executing it.

use crate::{
    Call, Entry, Range, Round, Step,
    registry::is_rooted,
    simulator::{Costs, Options},
};

impl Entry {
    /// Whether [`simulate`](crate::simulator::simulate) would surely give more than `seconds`; false
    /// where that is not known. It takes O(rounds^2) of a few ranks, and is meant for programs of
    /// O(log p) rounds.
    ///
    /// Looked at are chains of messages, which everything else only delays: a message leaves the
    /// first rank behind what its outgoing port has sent before; the rank that waits for it sends
    /// what comes next in its program, and so on. The chains begin with the first rank's last
    /// message, with the last and with the first one of its first round.
    ///
    /// The call must satisfy [`Entry::check_everywhere`] and bring no header.
    pub fn surely_exceeds(
        &self,
        call: &Call<'_>,
        costs: &impl Costs,
        options: Options,
        seconds: f64,
    ) -> bool {
        let first = if is_rooted(self.collective) { call.root } else { 0 };
        let mut scratch = Round::default();
        let steps = self.steps(call, first, &mut scratch);
        let sends: Vec<usize> =
            (0..steps.len()).filter(|&place| steps[place].sent().is_some()).collect();
        let (Some(&earliest), Some(&last)) = (sends.first(), sends.last()) else { return false };
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
        [last, turn, earliest].into_iter().any(|begin| {
            let mut chain: f64 = steps[..begin].iter().filter_map(gap).sum();
            let (mut rank, mut place, mut program) = (first, begin, steps.clone());
            while let Some(next) = program[place..].iter().position(|step| step.sent().is_some()) {
                let sent = place + next;
                let Some((peer, range)) = program[sent].sent() else { break };
                chain += message(range);
                if chain > seconds {
                    return true;
                }
                let to_peer = |step: &&Done| step.sent().is_some_and(|(to, _)| to == peer);
                let number = program[..sent].iter().filter(to_peer).count();
                program = self.steps(call, peer, &mut scratch);
                let Some(waited) = waited_for(&program, rank, number) else { break };
                (rank, place) = (peer, waited + 1);
            }
            false
        })
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
        simulator::{LogGp, Options, simulate},
    };
    use records::Collective;

    const COSTS: LogGp = LogGp {
        latency: 61.0,
        overhead: 8.0,
        gap: 24.0,
        gap_per_byte: 0.1,
        combine_per_byte: 0.01,
    };

    /// Half of the time of a doubling broadcast is told to be too little.
    #[test]
    fn it_tells_most_of_the_time() {
        let entry = crate::find(Collective::Bcast, records::Algorithm::ScatterAllgather).unwrap();
        for (ranks, count) in [(5, 8), (100, 1000), (1000, 1 << 20), (1023, 1 << 10)] {
            let call = Call::new(ranks, count);
            let seconds = simulate(entry, &call, &COSTS, Options::default()).unwrap().seconds;
            let exceeds =
                |part| entry.surely_exceeds(&call, &COSTS, Options::default(), part * seconds);
            assert!(exceeds(0.5), "{ranks} ranks, {count} elements");
            assert!(!exceeds(1.0), "{ranks} ranks, {count} elements");
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
            let v_form = matches!(entry.collective, Collective::Scatterv | Collective::Gatherv);
            let call = Call::new(ranks, count);
            prop_assume!(!v_form && entry.check_everywhere(&call).is_ok());
            let costs = LogGp { gap, gap_per_byte: per_byte, ..COSTS };
            let seconds = simulate(entry, &call, &costs, Options::default()).unwrap().seconds;
            let slack = 1e-9 * seconds;
            prop_assert!(!entry.surely_exceeds(&call, &costs, Options::default(), seconds + slack));
            // What exceeds the whole exceeds a part of it.
            let exceeds = |part| entry.surely_exceeds(&call, &costs, Options::default(), part * seconds);
            prop_assert!(!exceeds(1.0 + 1e-9) || exceeds(part));
        }
    }
}
