//! The area of one communicator on one node.

use std::{
    ffi::c_int,
    sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering},
};

use schedules::{
    Flag,
    shared::{LINE_DEPTH, MAX_VALUE, SHARED_DEPTH},
};

use super::waiting::Waiting;
use crate::{Error, Result};

/// Bytes from one flag to the next: two lines of a cache, as many processors fetch lines by twos.
const FLAG_BYTES: usize = 128;
/// Where the payload of a flag begins: aligned for every type, in the flag's own line.
const PAYLOAD_OFFSET: usize = 16;
/// Bytes of the payload: what is left of a line of 64 bytes.
const PAYLOAD_BYTES: usize = 48;
/// Of the ranks' parts, which no two ranks write to.
pub(super) const PAGE_BYTES: usize = 4096;
/// Bits of a flag's word for the value within a turn; the turn is above.
const VALUE_BITS: u32 = 20;
const _: () = assert!(MAX_VALUE >> VALUE_BITS == 0);

/// Bytes of a rank's flags: the number of turns that it has finished, then each flag, for as many turns as it is
/// not used again.
const FLAGS_BYTES: usize =
    (FLAG_BYTES * (1 + Flag::ALL.len() * LINE_DEPTH as usize)).next_multiple_of(PAGE_BYTES);

/// Bytes of shared memory mapped by this process, of all communicators.
static MAPPED: AtomicU64 = AtomicU64::new(0);

/// How the area is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Division {
    /// Ranks of this node.
    pub ranks: usize,
    /// Bytes of data that a rank may write in a turn.
    pub turn_bytes: usize,
}

impl Division {
    /// Bytes of a rank's part.
    pub fn part_bytes(self) -> usize {
        FLAGS_BYTES + SHARED_DEPTH as usize * self.turn_bytes
    }

    /// Bytes of the area: a page that says whose it is, then the parts.
    pub fn bytes(self) -> usize {
        PAGE_BYTES + self.ranks * self.part_bytes()
    }

    /// Where the part of a rank begins, by its number on the node.
    pub fn part(self, local: usize) -> usize {
        PAGE_BYTES + local * self.part_bytes()
    }
}

/// Memory mapped into this process.
#[derive(Debug)]
pub(super) struct Mapping {
    pub address: *mut u8,
    pub bytes: usize,
}

impl Mapping {
    /// Maps a file of so many bytes.
    pub fn new(file: c_int, bytes: usize) -> std::io::Result<Self> {
        // SAFETY: a new mapping, which takes no other's place.
        let address = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file, 0)
        };
        if address == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        MAPPED.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(Mapping { address: address.cast(), bytes })
    }

    /// Looks at every page, and writes to those of this rank's part (`own`, in bytes from the beginning), so that the
    /// first calls don't stop at each for the kernel. All pages must have been given memory.
    pub fn touch(&self, own: std::ops::Range<usize>) {
        for place in (0..self.bytes).step_by(PAGE_BYTES) {
            // SAFETY: the place lies in the mapping. Others may write there meanwhile, as is seen by whoever looks
            // at atomics; what is added is nothing.
            let byte = unsafe { &*self.address.wrapping_add(place).cast::<AtomicU8>() };
            match own.contains(&place) {
                true => byte.fetch_add(0, Ordering::Relaxed),
                false => byte.load(Ordering::Relaxed),
            };
        }
    }

    /// Bytes of all mappings of this process.
    pub fn of_process() -> u64 {
        MAPPED.load(Ordering::Relaxed)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        MAPPED.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        // SAFETY: mapped by `new`, and not used any more.
        unsafe { libc::munmap(self.address.cast(), self.bytes) };
    }
}

/// The area of a communicator on this rank's node.
///
/// A rank's part is written by that rank alone. MPI allows one collective at a time on a communicator, so that one
/// thread of a process uses the area at a time.
#[derive(Debug)]
pub(crate) struct SharedArea {
    /// What `parts` point into, as long as the area lives.
    _mapping: Mapping,
    division: Division,
    /// Where the part of each rank of the communicator begins; null where it is on another node.
    parts: Box<[*mut u8]>,
    /// The parts of the other ranks of this node, from the one after this rank on.
    others: Box<[*mut u8]>,
    rank: u32,
    waiting: Waiting,
    /// The next turn.
    turn: AtomicU64,
    /// A process of the node that has ended, else 0.
    lost: AtomicI32,
    /// So many turns have been finished by all ranks of the node, as far as this rank knows.
    finished_by_all: AtomicU64,
}

// SAFETY: the mapping lives as long as the area. What several processes or threads reach at the same time are
// atomic words; all else is ordered by them.
unsafe impl Send for SharedArea {}
// SAFETY: as above.
unsafe impl Sync for SharedArea {}

impl SharedArea {
    /// Of the ranks of the communicator that are on this node, ascending; `ranks` are all of it.
    pub(super) fn new(
        mapping: Mapping,
        division: Division,
        members: &[u32],
        ranks: u32,
        rank: u32,
        waiting: Waiting,
    ) -> Self {
        let mut parts = vec![std::ptr::null_mut(); ranks as usize];
        for (local, member) in members.iter().enumerate() {
            parts[*member as usize] = mapping.address.wrapping_add(division.part(local));
        }
        let place = members.iter().position(|member| *member == rank).unwrap_or_default();
        let others = members[place..].iter().skip(1).chain(&members[..place]);
        let others = others.map(|member| parts[*member as usize]).collect();
        SharedArea {
            _mapping: mapping,
            others,
            division,
            parts: parts.into(),
            rank,
            waiting,
            turn: AtomicU64::new(0),
            lost: AtomicI32::new(0),
            finished_by_all: AtomicU64::new(0),
        }
    }

    /// Elements of so many bytes that a rank may write in a turn, and beside a flag.
    pub fn capacity(&self, element_bytes: usize) -> (u64, u64) {
        match element_bytes {
            // Of nothing there is room for any number.
            0 => (u64::MAX >> VALUE_BITS, 0),
            bytes => ((self.division.turn_bytes / bytes) as u64, (PAYLOAD_BYTES / bytes) as u64),
        }
    }

    /// The first of so many turns that begin now.
    ///
    /// # Errors
    /// A rank of the node is no more, or there are no more turns, after years.
    #[inline]
    pub fn begin_turns(&self, number: u64) -> Result<u64> {
        // Ranks that went on without one would raise flags that another still waits for in an earlier turn.
        match self.lost.load(Ordering::Relaxed) {
            0 => {}
            pid => return Err(Error::Peer(pid)),
        }
        // Nobody else begins one meanwhile.
        let turn = self.turn.load(Ordering::Relaxed);
        let next = turn + number;
        if next >> (u64::BITS - VALUE_BITS) > 0 {
            return Err(Error::Refused("the turns with shared memory are used up".into()));
        }
        self.turn.store(next, Ordering::Relaxed);
        Ok(turn)
    }

    #[inline]
    fn part(&self, rank: u32) -> *mut u8 {
        self.parts[rank as usize]
    }

    /// A word of a part, at a multiple of [`FLAG_BYTES`].
    #[inline]
    fn word(&self, part: *mut u8, place: usize) -> &AtomicU64 {
        // SAFETY: the part is of a rank of this node, as in every schedule, so that it is mapped as long as the
        // area lives. The place lies in its flags, is aligned, and is only used as an atomic.
        unsafe { &*part.wrapping_add(place).cast::<AtomicU64>() }
    }

    /// Where a flag lies in a part.
    #[inline]
    fn place(flag: Flag, turn: u64) -> usize {
        let slot = (turn % u64::from(LINE_DEPTH)) as usize;
        (1 + flag as usize * LINE_DEPTH as usize + slot) * FLAG_BYTES
    }

    /// A flag's word at a value of a turn: it grows from value to value and from turn to turn.
    #[inline]
    fn raised(turn: u64, value: u32) -> u64 {
        (turn << VALUE_BITS) | u64::from(value)
    }

    /// Where the payload of a flag lies: [`PAYLOAD_BYTES`].
    #[inline]
    pub fn payload(&self, rank: u32, flag: Flag, turn: u64) -> *mut u8 {
        self.part(rank).wrapping_add(Self::place(flag, turn) + PAYLOAD_OFFSET)
    }

    /// Where the data of a rank lie in a turn.
    #[inline]
    pub fn data(&self, rank: u32, turn: u64) -> *mut u8 {
        let half = (turn % u64::from(SHARED_DEPTH)) as usize;
        self.part(rank).wrapping_add(FLAGS_BYTES + half * self.division.turn_bytes)
    }

    /// Raises a flag of this rank: whoever awaits it sees what this rank wrote before.
    #[inline]
    pub fn signal(&self, flag: Flag, turn: u64, value: u32) {
        let word = self.word(self.part(self.rank), Self::place(flag, turn));
        word.store(Self::raised(turn, value), Ordering::Release);
    }

    /// As [`SharedArea::signal`], with what lies beside the flag.
    ///
    /// Payload and flag are written one right after the other: others look at the line all the time, so that it
    /// would be taken away in between, and come back only some 100 ns later.
    ///
    /// # Safety
    /// `source` must be valid for reads of so many bytes, at most [`PAYLOAD_BYTES`], and no part of the payload.
    #[inline]
    pub unsafe fn signal_with(
        &self,
        flag: Flag,
        turn: u64,
        value: u32,
        source: *const u8,
        bytes: usize,
    ) {
        let mut payload = [0_u64; PAYLOAD_BYTES / size_of::<u64>()];
        // SAFETY: the source has so many bytes, which fit (contract of this function).
        unsafe { source.copy_to_nonoverlapping(payload.as_mut_ptr().cast(), bytes) };
        let into = self.payload(self.rank, flag, turn).cast::<[u64; PAYLOAD_BYTES / 8]>();
        // SAFETY: the payload of a flag has room for it, is aligned, and is this rank's to write in the turn.
        unsafe { into.write(payload) };
        self.signal(flag, turn, value);
    }

    /// Waits until a rank has raised a flag. `progress` lets MPI go on meanwhile.
    ///
    /// # Errors
    /// `progress` failed, or a rank of the node is no more.
    #[inline]
    pub fn await_flag(
        &self,
        rank: u32,
        flag: Flag,
        turn: u64,
        value: u32,
        progress: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let value = Self::raised(turn, value);
        let word = self.word(self.part(rank), Self::place(flag, turn));
        self.until(|| word.load(Ordering::Acquire) >= value, progress)
    }

    /// As [`SharedArea::await_flag`], of all other ranks of the node.
    ///
    /// # Errors
    /// As [`SharedArea::await_flag`].
    #[inline]
    pub fn await_all(
        &self,
        flag: Flag,
        turn: u64,
        value: u32,
        mut progress: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let value = Self::raised(turn, value);
        let place = Self::place(flag, turn);
        for part in &self.others {
            let word = self.word(*part, place);
            self.until(|| word.load(Ordering::Acquire) >= value, &mut progress)?;
        }
        Ok(())
    }

    /// Waits until all ranks of the node have finished every turn up to the one `depth` before this.
    ///
    /// # Errors
    /// As [`SharedArea::await_flag`].
    #[inline]
    pub fn await_finished(
        &self,
        turn: u64,
        depth: u32,
        mut progress: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        // So many turns are to be finished.
        let wanted = (turn + 1).saturating_sub(u64::from(depth));
        if self.finished_by_all.load(Ordering::Relaxed) >= wanted {
            return Ok(());
        }
        let mut least = u64::MAX;
        for part in &self.others {
            let mut seen = 0;
            // A part begins with the number of turns that its rank has finished.
            let word = self.word(*part, 0);
            let is_there = || {
                seen = word.load(Ordering::Acquire);
                seen >= wanted
            };
            self.until(is_there, &mut progress)?;
            least = least.min(seen);
        }
        self.finished_by_all.store(least, Ordering::Relaxed);
        Ok(())
    }

    /// Waits, and remembers if that was in vain.
    #[inline]
    fn until(
        &self,
        is_so: impl FnMut() -> bool,
        progress: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let outcome = self.waiting.until(is_so, progress);
        if let Err(Error::Peer(pid)) = outcome {
            self.lost.store(pid, Ordering::Relaxed);
        }
        outcome
    }

    /// This rank is done with a turn, and may know that all ranks of the node have begun it.
    #[inline]
    pub fn finish(&self, turn: u64, all_have_begun: bool) {
        self.word(self.part(self.rank), 0).store(turn + 1, Ordering::Release);
        if all_have_begun {
            // Who begins a turn has finished those before.
            self.finished_by_all.store(turn, Ordering::Relaxed);
        }
    }
}
