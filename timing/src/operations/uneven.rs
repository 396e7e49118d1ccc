//! Blocks of unequal size: what the collectives that scatter and gather them are called with.

use std::ffi::c_int;

use records::Collective;
use runner::{Arguments, MpiConstants};

use super::{
    buffers::{Buffers, pattern},
    operation::{Blocks, CallingRank},
};
use crate::{Error, Result};

/// A block for every rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnevenBlocks {
    counts: Vec<c_int>,
    displacements: Vec<c_int>,
    all: usize,
}

impl UnevenBlocks {
    /// The collectives that can be called with such blocks.
    pub const COLLECTIVES: [Collective; 3] =
        [Collective::Allgatherv, Collective::Gatherv, Collective::Scatterv];

    /// Blocks in proportion to the factors, one of each rank, whose mean is `bytes`.
    ///
    /// # Errors
    /// A factor is negative or none, all are 0, or the blocks have too many bytes together.
    pub fn new(bytes: usize, factors: &[f64]) -> Result<Self> {
        let sum: f64 = factors.iter().sum();
        if let Some(wrong) = factors.iter().position(|factor| factor.is_nan() || *factor < 0.0) {
            let problem = format!("factor {} of rank {wrong}; expected 0 or above", factors[wrong]);
            return Err(Error::Refused(problem));
        }
        if !(sum > 0.0 && sum.is_finite()) {
            let problem = format!("factors whose sum is {sum}; expected one above 0");
            return Err(Error::Refused(problem));
        }
        let scale = bytes as f64 * factors.len() as f64 / sum;
        let mut blocks = UnevenBlocks { counts: Vec::new(), displacements: Vec::new(), all: 0 };
        for factor in factors {
            let count = (factor * scale).round();
            if blocks.all as f64 + count > f64::from(c_int::MAX) {
                let problem = format!(
                    "blocks of {bytes} bytes in the mean have more than {} together",
                    c_int::MAX
                );
                return Err(Error::Refused(problem));
            }
            blocks.displacements.push(blocks.all as c_int);
            blocks.counts.push(count as c_int);
            blocks.all += count as usize;
        }
        Ok(blocks)
    }

    /// Bytes of every rank's block.
    pub fn counts(&self) -> &[c_int] {
        &self.counts
    }

    fn own(&self, place: CallingRank) -> usize {
        self.counts[place.rank as usize] as usize
    }

    fn is_result(&self, collective: Collective, place: CallingRank) -> bool {
        collective != Collective::Gatherv || place.is_root()
    }

    /// Buffers with the data to be sent, and nothing that is right where the result comes.
    pub fn buffers(
        &self,
        collective: Collective,
        place: CallingRank,
        constants: MpiConstants,
    ) -> Buffers {
        let (out, into) = match collective {
            Collective::Scatterv if place.is_root() => (self.all, self.own(place)),
            Collective::Scatterv => (0, self.own(place)),
            _ if self.is_result(collective, place) => (self.own(place), self.all),
            _ => (self.own(place), 0),
        };
        let mut buffers = Buffers::new(out, into, constants);
        for (index, byte) in buffers.outgoing_mut()[..out].iter_mut().enumerate() {
            *byte = pattern(index, place.rank);
        }
        for (index, wanted) in self.expected(collective, place).enumerate() {
            buffers.incoming_mut()[index] = !wanted;
        }
        buffers
    }

    /// What a call is made with.
    pub fn arguments(
        &self,
        collective: Collective,
        buffers: &mut Buffers,
        place: CallingRank,
    ) -> Arguments {
        let datatype = buffers.constants.byte;
        let outgoing = buffers.outgoing_mut().as_mut_ptr().cast();
        let incoming = buffers.incoming_mut().as_mut_ptr().cast();
        let own = self.own(place) as i64;
        let blocks =
            Blocks { own, counts: &self.counts, displacements: &self.displacements, datatype };
        blocks.arguments(collective, outgoing, incoming, place)
    }

    /// The bytes of the result on a rank.
    fn expected(&self, collective: Collective, place: CallingRank) -> impl Iterator<Item = u8> {
        let scattered = collective == Collective::Scatterv;
        let there = self.is_result(collective, place);
        let ranks =
            (0..place.procs).filter(move |rank| there && (!scattered || *rank == place.rank));
        ranks.flat_map(move |rank| {
            let block = rank as usize;
            let (first, count) = (self.displacements[block] as usize, self.counts[block] as usize);
            (0..count).map(move |index| match scattered {
                true => pattern(first + index, place.root),
                false => pattern(index, rank),
            })
        })
    }

    /// Compares the result with what it should be.
    ///
    /// # Errors
    /// It is another; names the first wrong byte.
    pub fn check(
        &self,
        collective: Collective,
        buffers: &Buffers,
        place: CallingRank,
    ) -> Result<()> {
        let found = buffers.incoming().iter();
        for (index, (wanted, found)) in self.expected(collective, place).zip(found).enumerate() {
            if wanted != *found {
                return Err(Error::WrongResult(format!(
                    "{collective} of {} bytes in uneven blocks gave a wrong result: byte {index} on \
                     rank {} is {found}, expected {wanted}",
                    self.all, place.rank
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner::AbiFamily;

    #[test]
    fn blocks_are_in_proportion_and_their_mean_is_the_size() {
        let blocks = UnevenBlocks::new(100, &[1.0, 0.0, 3.0, 4.0]).unwrap();
        assert_eq!(blocks.counts(), [50, 0, 150, 200]);
        assert_eq!((blocks.displacements, blocks.all), (vec![0, 50, 50, 200], 400));
        for (factors, part) in [
            (vec![1.0, -2.0], "of rank 1"),
            (vec![f64::NAN], "of rank 0"),
            (vec![0.0, 0.0], "whose sum is 0"),
            (vec![f64::INFINITY], "whose sum"),
        ] {
            let error = UnevenBlocks::new(8, &factors).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let error = UnevenBlocks::new(1 << 30, &[1.0; 3]).unwrap_err().to_string();
        assert!(error.contains("together"), "{error}");
    }

    #[test]
    fn a_right_result_passes_and_a_missing_or_wrong_one_does_not() {
        let blocks = UnevenBlocks::new(40, &[1.0, 0.0, 3.0]).unwrap();
        let constants = MpiConstants::new(AbiFamily::Mpich, |_| std::ptr::null()).unwrap();
        for collective in UnevenBlocks::COLLECTIVES {
            for rank in 0..3 {
                let place = CallingRank { rank, procs: 3, root: 1 };
                let mut buffers = blocks.buffers(collective, place, constants);
                let right: Vec<u8> = blocks.expected(collective, place).collect();
                let told = blocks.check(collective, &buffers, place);
                assert_eq!(told.is_err(), !right.is_empty(), "{collective} on rank {rank}");
                buffers.incoming_mut()[..right.len()].copy_from_slice(&right);
                blocks.check(collective, &buffers, place).unwrap();
                if let Some(last) = right.len().checked_sub(1) {
                    buffers.incoming_mut()[last] ^= 1;
                    let error = blocks.check(collective, &buffers, place).unwrap_err().to_string();
                    assert!(error.contains(&format!("byte {last} on rank {rank}")), "{error}");
                }
            }
        }
    }
}
