//! What the ranks of a node tell each other by flags, whatever words these are: in the area of a node they lie in the
//! memory that its ranks share, in the tests of orderings in a model of the memory of processors.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use schedules::{
    Flag,
    shared::{LINE_DEPTH, MAX_VALUE},
};

use crate::Result;

/// Bits of a flag's word for the value within a turn; the turn is above.
pub(super) const VALUE_BITS: u32 = 20;
const _: () = assert!(MAX_VALUE >> VALUE_BITS == 0);

/// Words of a rank: the number of turns that it has finished, then each flag, for as many turns as it is not used
/// again.
pub(super) const WORDS: usize = 1 + Flag::ALL.len() * LINE_DEPTH as usize;
/// Which of them tells how many turns are finished.
const FINISHED: usize = 0;

/// A word of 64 bits that one rank writes and all read.
pub(super) trait FlagWord {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
}

impl FlagWord for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }
}

/// Where the words of the ranks of a node are, as one of these ranks finds them.
pub(super) trait FlagWords {
    type Word: FlagWord;
    /// Where those of one rank are.
    type Part: Copy;

    fn own(&self) -> Self::Part;

    /// Those of all other ranks.
    fn others(&self) -> &[Self::Part];

    /// One of the [`WORDS`] of a part.
    fn word(&self, part: Self::Part, number: usize) -> &Self::Word;

    /// How many turns all ranks have finished, as the rank of a part has seen.
    fn finished_by_all(&self, part: Self::Part) -> &Self::Word;
}

/// How a rank waits.
pub(super) trait Wait {
    /// Until it is so.
    ///
    /// # Errors
    /// It will not be so any more.
    fn until(&mut self, is_so: impl FnMut() -> bool) -> Result<()>;
}

/// The flags of a node's ranks, as one of these ranks uses them.
#[derive(Debug)]
pub(super) struct Flags<W> {
    pub words: W,
    /// So many turns have been finished by all ranks of the node, as far as this rank knows.
    finished_by_all: AtomicU64,
    /// Which of the others knew it the last time: often a root, which awaits all.
    informed_by: AtomicUsize,
}

/// Which word a flag is in a turn.
#[inline]
pub(super) fn number(flag: Flag, turn: u64) -> usize {
    let slot = (turn % u64::from(LINE_DEPTH)) as usize;
    1 + flag as usize * LINE_DEPTH as usize + slot
}

/// A flag's word at a value of a turn: it grows from value to value and from turn to turn.
#[inline]
fn raised(turn: u64, value: u32) -> u64 {
    (turn << VALUE_BITS) | u64::from(value)
}

impl<W: FlagWords> Flags<W> {
    pub fn new(words: W) -> Self {
        Flags { words, finished_by_all: AtomicU64::new(0), informed_by: AtomicUsize::new(0) }
    }

    /// Raises a flag of this rank: whoever awaits it sees what this rank wrote before.
    #[inline]
    pub fn signal(&self, flag: Flag, turn: u64, value: u32) {
        let word = self.words.word(self.words.own(), number(flag, turn));
        word.store(raised(turn, value), Ordering::Release);
    }

    /// Waits until a rank has raised a flag.
    ///
    /// # Errors
    /// Those of waiting.
    #[inline]
    pub fn await_flag(
        &self,
        part: W::Part,
        flag: Flag,
        turn: u64,
        value: u32,
        mut wait: impl Wait,
    ) -> Result<()> {
        let value = raised(turn, value);
        let word = self.words.word(part, number(flag, turn));
        wait.until(|| word.load(Ordering::Acquire) >= value)
    }

    /// As [`Flags::await_flag`], of all other ranks of the node.
    ///
    /// # Errors
    /// Those of waiting.
    #[inline]
    pub fn await_all(&self, flag: Flag, turn: u64, value: u32, mut wait: impl Wait) -> Result<()> {
        let (value, number) = (raised(turn, value), number(flag, turn));
        for part in self.words.others() {
            let word = self.words.word(*part, number);
            wait.until(|| word.load(Ordering::Acquire) >= value)?;
        }
        Ok(())
    }

    /// Waits until all ranks of the node have finished every turn up to the one `depth` before this.
    ///
    /// # Errors
    /// Those of waiting.
    #[inline]
    pub fn await_finished(&self, turn: u64, depth: u32, mut wait: impl Wait) -> Result<()> {
        // So many turns are to be finished.
        let wanted = (turn + 1).saturating_sub(u64::from(depth));
        if self.finished_by_all.load(Ordering::Relaxed) >= wanted {
            return Ok(());
        }
        let others = self.words.others();
        let known_by = |part: W::Part| self.words.finished_by_all(part).load(Ordering::Acquire);
        // One look instead of one at each of the others.
        if let Some(part) = others.get(self.informed_by.load(Ordering::Relaxed)) {
            let known = known_by(*part);
            if known >= wanted {
                self.finished_by_all.store(known, Ordering::Relaxed);
                return Ok(());
            }
        }
        // This rank has finished all before this turn.
        let mut least = turn;
        for (place, part) in others.iter().enumerate() {
            let known = known_by(*part);
            if known >= wanted {
                self.informed_by.store(place, Ordering::Relaxed);
                self.finished_by_all.store(known, Ordering::Relaxed);
                return Ok(());
            }
            let mut seen = 0;
            let word = self.words.word(*part, FINISHED);
            wait.until(|| {
                seen = word.load(Ordering::Acquire);
                seen >= wanted
            })?;
            least = least.min(seen);
        }
        self.tell_finished_by_all(least);
        Ok(())
    }

    /// This rank has seen that all have finished so many turns.
    #[inline]
    fn tell_finished_by_all(&self, turns: u64) {
        self.finished_by_all.store(turns, Ordering::Relaxed);
        self.words.finished_by_all(self.words.own()).store(turns, Ordering::Release);
    }

    /// This rank is done with a turn, and may know that all ranks of the node have begun it.
    #[inline]
    pub fn finish(&self, turn: u64, all_have_begun: bool) {
        self.words.word(self.words.own(), FINISHED).store(turn + 1, Ordering::Release);
        if all_have_begun {
            // Who begins a turn has finished those before.
            self.tell_finished_by_all(turn);
        }
    }
}
