//! Every two ranks of a communicator: what a message between them takes.

use std::{
    ffi::{c_int, c_void},
    str::FromStr,
};

use records::{Collective, unknown};
use runner::{Arguments, Handle, Mpi, Side};
use serde::{Deserialize, Serialize};
use statistics::stopping::Rule;

use crate::{
    Error, Result,
    clock::{now, resolution_seconds, seconds},
    peers::{Peers, Tag},
    repeating::{self, TimedSummary, repeat},
    table_communicator::TableCommunicator,
    tournament::rounds,
};

/// How a message goes to another rank and one comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairWay {
    /// `MPI_Send` and `MPI_Recv`, both ways.
    PingPong,
    /// `MPI_Scatter` and `MPI_Gather` among the two.
    ScatterGather,
}

impl PairWay {
    /// All of them, in the order of their numbers in C.
    pub const ALL: [PairWay; 2] = [PairWay::PingPong, PairWay::ScatterGather];

    /// As flags spell it.
    pub const fn name(self) -> &'static str {
        match self {
            PairWay::PingPong => "ping-pong",
            PairWay::ScatterGather => "scatter-gather",
        }
    }
}

impl FromStr for PairWay {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.into_iter().find(|exchange| exchange.name() == text);
        found.ok_or_else(|| unknown("exchange", text, &Self::ALL.map(Self::name)))
    }
}

/// What a message between two ranks takes: half of a round trip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimedPair {
    /// The lesser rank, which times.
    pub one: u32,
    /// The other one.
    pub other: u32,
    /// Of the repetitions.
    pub summary: TimedSummary,
    /// Each of these, in seconds; at rank 0 of all ranks alone.
    pub observations: Vec<f64>,
}

/// Measures some pairs: of each round all at once, and one round after the other. Every rank of `of` must
/// call this with the same rounds, and gets the same answer.
///
/// # Safety
/// `of` must be a communicator of the table's library, which must be initialised.
///
/// # Errors
/// A rank is not there or in two pairs of a round, or the rule can't be followed; the library refuses.
pub unsafe fn time_rounds(
    mpi: &Mpi,
    of: Handle,
    exchange: PairWay,
    bytes: usize,
    rule: &Rule,
    rounds: &[Vec<(u32, u32)>],
) -> Result<Vec<TimedPair>> {
    let most = c_int::MAX as usize;
    if bytes > most {
        let problem = format!("a message of {bytes} bytes; one message has at most {most}");
        return Err(Error::Refused(problem));
    }
    repeating::check(rule)?;
    // SAFETY: `of` is a live communicator of the initialised library, and all its ranks are here (contract of
    // this function).
    let all = unsafe { TableCommunicator::new(mpi, of)? };
    check_rounds(rounds, all.size())?;
    let rule = Rule { resolution_seconds: resolution_seconds(), ..*rule };
    let mut timed = Vec::new();
    for round in rounds {
        let own = round.iter().position(|(one, other)| [*one, *other].contains(&all.rank()));
        // Who sits out is with others that do; nothing is exchanged there.
        let colour = own.unwrap_or(round.len()) as u32;
        // SAFETY: as above.
        let pair = unsafe { TableCommunicator::split(mpi, all.handle(), colour)? };
        let mut result = None;
        if let Some(own) = own {
            // The lesser rank comes first there.
            let (one, other) = (round[own].0.min(round[own].1), round[own].0.max(round[own].1));
            let (summary, observations) = time_pair(&pair, exchange, bytes, &rule)?;
            result = (pair.rank() == 0).then_some(TimedPair { one, other, summary, observations });
        }
        timed.extend(all.collect(result)?.into_iter().flatten());
    }
    let kept = timed.clone();
    timed.iter_mut().for_each(|pair| pair.observations.clear());
    let agreed = all.agree(timed)?;
    Ok(if all.rank() == 0 { kept } else { agreed })
}

/// The rounds in which every two of `ranks` ranks meet: disjoint pairs at once, or one pair at a time.
pub fn all_rounds(ranks: u32, at_once: bool) -> Vec<Vec<(u32, u32)>> {
    let pair = |(one, other): (usize, usize)| (one.min(other) as u32, one.max(other) as u32);
    let mut all: Vec<Vec<(u32, u32)>> = rounds(ranks as usize)
        .into_iter()
        .map(|round| round.into_iter().map(pair).collect())
        .collect();
    all.retain(|round| !round.is_empty());
    if !at_once {
        all = all.into_iter().flatten().map(|pair| vec![pair]).collect();
        all.sort_unstable();
    }
    all
}

fn check_rounds(rounds: &[Vec<(u32, u32)>], ranks: u32) -> Result<()> {
    for round in rounds {
        let mut members: Vec<u32> = round.iter().flat_map(|(one, other)| [*one, *other]).collect();
        members.sort_unstable();
        let most = members.last().copied().unwrap_or_default();
        if most >= ranks {
            let problem =
                format!("rank {most} of {ranks}; expected 0 to {}", ranks.saturating_sub(1));
            return Err(Error::Refused(problem));
        }
        if let Some(twice) = members.windows(2).find(|two| two[0] == two[1]) {
            let problem = format!("rank {} in two pairs at once, or with itself", twice[0]);
            return Err(Error::Refused(problem));
        }
    }
    Ok(())
}

fn time_pair(
    pair: &TableCommunicator,
    exchange: PairWay,
    bytes: usize,
    rule: &Rule,
) -> Result<(TimedSummary, Vec<f64>)> {
    let (outgoing, mut incoming) = (vec![1_u8; 2 * bytes], vec![0_u8; 2 * bytes]);
    let mut round_trip = || match exchange {
        PairWay::PingPong => ping_pong(pair, &outgoing[..bytes], &mut incoming[..bytes]),
        PairWay::ScatterGather => scatter_gather(pair, &outgoing, &mut incoming),
    };
    round_trip()?;
    let mut all = Vec::new();
    let summary = repeat(pair, rule, |calls| {
        let mut timed = Vec::with_capacity(calls);
        for _ in 0..calls {
            let begun = now();
            round_trip()?;
            timed.push(seconds(now() - begun) / 2.0);
        }
        all.extend_from_slice(&timed);
        Ok(timed)
    })?;
    Ok((summary, all))
}

fn ping_pong(pair: &TableCommunicator, outgoing: &[u8], incoming: &mut [u8]) -> Result<()> {
    if pair.rank() == 0 {
        pair.send(outgoing, 1, Tag::Data)?;
        return pair.receive(incoming, 1, Tag::Data);
    }
    pair.receive(incoming, 0, Tag::Data)?;
    pair.send(outgoing, 0, Tag::Data)
}

/// The root's own block stays where it is.
fn scatter_gather(pair: &TableCommunicator, outgoing: &[u8], incoming: &mut [u8]) -> Result<()> {
    let (constants, bytes) = (&pair.mpi().constants, outgoing.len() / 2);
    let block = |address: *mut c_void| Side::uniform(address, bytes as i64, constants.byte);
    let own = match pair.rank() {
        0 => block(constants.in_place as *mut c_void),
        _ => block(incoming.as_mut_ptr().cast()),
    };
    let all = block(outgoing.as_ptr().cast_mut().cast());
    let scatter = Arguments::moving(Collective::Scatter, all, own, 0);
    let back = match pair.rank() {
        0 => own,
        _ => all,
    };
    let into = block(incoming.as_mut_ptr().cast());
    let gather = Arguments::moving(Collective::Gather, back, into, 0);
    for (arguments, call) in [(scatter, "MPI_Scatter"), (gather, "MPI_Gather")] {
        // SAFETY: the buffers hold a block of each rank; both ranks call.
        let code = unsafe { pair.mpi().call(&arguments, pair.handle()) };
        if code != 0 {
            return Err(runner::Error::Mpi { call, code }.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_two_ranks_meet_at_once_or_one_after_the_other() {
        let at_once = all_rounds(4, true);
        assert_eq!((at_once.len(), at_once.iter().map(Vec::len).max()), (3, Some(2)));
        let alone = all_rounds(4, false);
        let wanted: Vec<Vec<(u32, u32)>> =
            [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)].map(|pair| vec![pair]).into();
        assert_eq!(alone, wanted);
        assert!(all_rounds(1, true).is_empty());
        check_rounds(&at_once, 4).unwrap();
    }

    #[test]
    fn a_rank_has_one_partner_at_a_time() {
        for (round, part) in [
            (vec![(0, 4)], "rank 4 of 4"),
            (vec![(0, 1), (1, 2)], "rank 1"),
            (vec![(2, 2)], "rank 2"),
        ] {
            let error = check_rounds(&[round], 4).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
