//! The area of one communicator on one node.

use std::{
    ffi::c_int,
    io,
    ops::Range,
    sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering},
};

use schedules::{
    Flag,
    shared::{LINE_BYTES, LINE_DEPTH, PAGE_BYTES, SHARED_DEPTH, TurnPlaces},
};

use super::{
    flags::{self, FlagWords, Flags, VALUE_BITS, WORDS, Wait},
    waiting::Waiting,
};
use crate::{Error, Result};

/// Bytes from one flag to the next: two lines of a cache, as many processors fetch lines by twos.
const FLAG_BYTES: usize = 128;
/// Turns that use fewer bytes have one place each: these stay in the writer's first cache, and 16 of them would not
/// (two ranks: allreduce of 4 KiB takes 1.15 times as long by places in turns, of 32 KiB 0.88, bcast of 64 KiB 0.5).
const MIN_PLACE_BYTES: u64 = 16 << 10;
/// Where a rank's word begins that tells how many turns all have finished: in the line of the number that it has
/// finished itself, as both are looked at together.
const FINISHED_BY_ALL_OFFSET: usize = 8;
/// Where the payload of a flag begins: aligned for every type, in the flag's own line.
const PAYLOAD_OFFSET: usize = 16;
/// Bytes of a rank's flags.
const FLAGS_BYTES: usize = (FLAG_BYTES * WORDS).next_multiple_of(PAGE_BYTES);

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

    /// The flags of a rank, with what lies beside them.
    pub fn flags(self, local: usize) -> Range<usize> {
        self.part(local)..self.part(local) + FLAGS_BYTES
    }

    /// Both halves of a rank's data, each from and up to so many bytes.
    fn data(self, local: usize, bytes: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let half = move |half: usize| self.flags(local).end + half * self.turn_bytes;
        (0..SHARED_DEPTH as usize)
            .map(half)
            .map(move |first| first + bytes.start..first + bytes.end)
    }
}

/// Memory mapped into this process.
#[derive(Debug)]
pub(super) struct Mapping {
    pub address: *mut u8,
    pub bytes: usize,
    /// All of this rank's part has had memory from the beginning.
    pub has_all: bool,
}

impl Mapping {
    /// Maps a file of so many bytes.
    pub fn new(file: c_int, bytes: usize) -> io::Result<Self> {
        // SAFETY: a new mapping, which takes no other's place.
        let address = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file, 0)
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        MAPPED.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(Mapping { address: address.cast(), bytes, has_all: false })
    }

    /// Whether the kernel gives pages memory when it is asked to (Linux 5.14 on).
    pub fn gives_memory(&self) -> bool {
        self.advise(0..0, libc::MADV_POPULATE_WRITE).is_ok()
    }

    /// Gives pages memory, the nearest to this processor, and maps them.
    ///
    /// # Errors
    /// There is not enough.
    pub fn give_memory(&self, own: Range<usize>) -> io::Result<()> {
        self.advise(own, libc::MADV_POPULATE_WRITE)
    }

    /// Maps pages that have memory, so that calls don't stop at each for the kernel.
    pub fn look(&self, range: Range<usize>) {
        if self.advise(range.clone(), libc::MADV_POPULATE_READ).is_ok() {
            return;
        }
        for place in range.step_by(PAGE_BYTES) {
            // SAFETY: the place lies in the mapping. What others write there meanwhile is not used.
            unsafe { self.address.wrapping_add(place).read_volatile() };
        }
    }

    /// Of all of the kernel's pages that the range touches, which may be larger than [`PAGE_BYTES`].
    fn advise(&self, range: Range<usize>, advice: c_int) -> io::Result<()> {
        // SAFETY: asks for a constant.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) });
        let page = page.ok().filter(|page| *page > 0).unwrap_or(PAGE_BYTES);
        let begin = range.start / page * page;
        let length = range.end.saturating_sub(begin);
        let beginning = self.address.wrapping_add(begin).cast();
        // SAFETY: the range lies in the mapping, which begins with a page; either advice changes no byte.
        match unsafe { libc::madvise(beginning, length, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
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
    mapping: Mapping,
    division: Division,
    flags: Flags<MappedWords>,
    waiting: Waiting,
    /// Bytes of every rank's data in either half, from the first on, that have memory; the same on all ranks of the
    /// communicator. Data get it when calls need it: communicators of short calls that are made and freed often would
    /// be slow otherwise (two ranks, 12 calls of 32 bytes: 2.7 ms in place of 0.2).
    ready: AtomicUsize,
    /// This rank's number on the node.
    local: usize,
    /// The next turn.
    turn: AtomicU64,
    /// A process of the node that has ended, else 0.
    lost: AtomicI32,
}

/// The flags of the ranks of a node, in memory that is mapped as long as this lives.
#[derive(Debug)]
struct MappedWords {
    /// Where the part of each rank of the communicator begins; null where it is on another node.
    parts: Box<[*mut u8]>,
    /// The parts of the other ranks of this node, from the one after this rank on.
    others: Box<[*mut u8]>,
    own: *mut u8,
}

impl FlagWords for MappedWords {
    type Word = AtomicU64;
    type Part = *mut u8;

    #[inline]
    fn own(&self) -> *mut u8 {
        self.own
    }

    #[inline]
    fn others(&self) -> &[*mut u8] {
        &self.others
    }

    #[inline]
    fn word(&self, part: *mut u8, number: usize) -> &AtomicU64 {
        // SAFETY: the part is of a rank of this node, as in every schedule, so that it is mapped as long as this
        // lives. The word is one of its flags, is aligned, and is only used as an atomic.
        unsafe { &*part.wrapping_add(number * FLAG_BYTES).cast::<AtomicU64>() }
    }

    #[inline]
    fn finished_by_all(&self, part: *mut u8) -> &AtomicU64 {
        // SAFETY: as above; this word lies between the first flag and what is beside it.
        unsafe { &*part.wrapping_add(FINISHED_BY_ALL_OFFSET).cast::<AtomicU64>() }
    }
}

/// Copies bytes; those of one number, the commonest, without a call.
///
/// # Safety
/// The source must be valid for reads, the other for writes of so many bytes, and both must not overlap.
#[inline(always)]
pub(super) unsafe fn copy_bytes(source: *const u8, into: *mut u8, bytes: usize) {
    // SAFETY: as this function's contract says.
    unsafe {
        match bytes == size_of::<u64>() {
            true => into.cast::<u64>().write_unaligned(source.cast::<u64>().read_unaligned()),
            false => source.copy_to_nonoverlapping(into, bytes),
        }
    }
}

/// How a rank waits in an area.
struct InArea<'a, P> {
    area: &'a SharedArea,
    /// Lets MPI go on.
    progress: P,
}

impl<P: FnMut() -> Result<()>> Wait for InArea<'_, P> {
    /// Remembers if that was in vain.
    #[inline]
    fn until(&mut self, is_so: impl FnMut() -> bool) -> Result<()> {
        let outcome = self.area.waiting.until(is_so, &mut self.progress);
        if let Err(Error::Peer(pid)) = outcome {
            self.area.lost.store(pid, Ordering::Relaxed);
        }
        outcome
    }
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
            flags: Flags::new(MappedWords {
                others,
                own: mapping.address.wrapping_add(division.part(place)),
                parts: parts.into(),
            }),
            mapping,
            division,
            waiting,
            ready: AtomicUsize::new(0),
            local: place,
            turn: AtomicU64::new(0),
            lost: AtomicI32::new(0),
        }
    }

    /// Elements of so many bytes that a rank may write in a turn, and beside a flag.
    pub fn capacity(&self, element_bytes: usize) -> (u64, u64) {
        match element_bytes {
            // Of nothing there is room for any number.
            0 => (u64::MAX >> VALUE_BITS, 0),
            bytes => ((self.division.turn_bytes / bytes) as u64, (LINE_BYTES / bytes) as u64),
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

    /// So many turns go by without this rank, which has failed alone: it is done with them at once. What the others get
    /// of it in this call is not defined; later calls are right.
    #[cold]
    pub fn skip_turns(&self, number: u64) {
        if let Ok(first) = self.begin_turns(number) {
            (first..first + number).for_each(|turn| self.finish(turn, false));
        }
    }

    /// Where it begins.
    #[inline]
    pub fn beginning(&self) -> *mut u8 {
        self.mapping.address
    }

    #[inline]
    fn part(&self, rank: u32) -> *mut u8 {
        self.flags.words.parts[rank as usize]
    }

    /// Where the payload of a flag lies: [`LINE_BYTES`].
    #[inline]
    pub fn payload(&self, rank: u32, flag: Flag, turn: u64) -> *mut u8 {
        self.payload_of(self.part(rank), flag, turn)
    }

    #[inline]
    fn payload_of(&self, part: *mut u8, flag: Flag, turn: u64) -> *mut u8 {
        part.wrapping_add(flags::number(flag, turn) * FLAG_BYTES + PAYLOAD_OFFSET)
    }

    /// Where a rank's data of each turn lie, in a call that uses so many elements of so many bytes: see
    /// [`Needs::shared_elements`](schedules::Needs::shared_elements). The same on all ranks.
    pub fn places(&self, elements: u64, element_bytes: usize) -> TurnPlaces {
        let bytes = elements.saturating_mul(element_bytes as u64);
        // No two places have a line in common, or one that a processor fetches with it.
        match bytes.checked_next_multiple_of(FLAG_BYTES as u64) {
            Some(bytes) if bytes >= MIN_PLACE_BYTES => {
                TurnPlaces::new(bytes, self.division.turn_bytes as u64)
            }
            _ => TurnPlaces::default(),
        }
    }

    /// How many bytes of either half of all ranks' data have to get memory first for a call with these
    /// [places](SharedArea::places); none where they have it. The same on all ranks.
    pub fn lacks(&self, places: TurnPlaces, elements: u64, element_bytes: usize) -> Option<usize> {
        let end = places.end(elements.saturating_mul(element_bytes as u64));
        let end = end.min(self.division.turn_bytes as u64) as usize;
        // By powers of two, as each time all ranks wait for each other.
        let grown = end.max(MIN_PLACE_BYTES as usize).next_power_of_two();
        (end > self.ready.load(Ordering::Relaxed)).then(|| grown.min(self.division.turn_bytes))
    }

    /// Gives this rank's data memory, in either half up to so many bytes.
    ///
    /// # Errors
    /// There is not enough.
    pub(super) fn give_memory(&self, bytes: usize) -> io::Result<()> {
        if self.mapping.has_all {
            return Ok(());
        }
        let lacking = self.ready.load(Ordering::Relaxed)..bytes;
        self.division.data(self.local, lacking).try_for_each(|data| self.mapping.give_memory(data))
    }

    /// All ranks' data have memory up to so many bytes.
    pub(super) fn set_ready(&self, bytes: usize) {
        let new = self.ready.load(Ordering::Relaxed)..bytes;
        for local in 0..self.division.ranks {
            self.division.data(local, new.clone()).for_each(|data| self.mapping.look(data));
        }
        self.ready.store(bytes, Ordering::Relaxed);
    }

    /// Where the data of a rank lie in a turn.
    #[inline]
    pub fn data(&self, rank: u32, turn: u64, places: TurnPlaces) -> *mut u8 {
        self.part(rank).wrapping_add(FLAGS_BYTES + self.data_offset(turn, places))
    }

    /// Bytes from a rank's data in turn 0 to those in another.
    #[inline]
    pub fn data_offset(&self, turn: u64, places: TurnPlaces) -> usize {
        let half = (turn % u64::from(SHARED_DEPTH)) as usize * self.division.turn_bytes;
        half + places.offset(turn) as usize
    }

    /// Bytes from the payload of a flag in turn 0 to that in another.
    #[inline]
    pub fn payload_offset(turn: u64) -> usize {
        (turn % u64::from(LINE_DEPTH)) as usize * FLAG_BYTES
    }

    /// Raises a flag of this rank: whoever awaits it sees what this rank wrote before.
    #[inline]
    pub fn signal(&self, flag: Flag, turn: u64, value: u32) {
        self.flags.signal(flag, turn, value);
    }

    /// As [`SharedArea::signal`], with what lies beside the flag.
    ///
    /// Payload and flag are written one right after the other: others look at the line all the time, so that it
    /// would be taken away in between, and come back only some 100 ns later.
    ///
    /// # Safety
    /// `source` must be valid for reads of so many bytes, at most [`LINE_BYTES`], and no part of the payload.
    #[inline]
    pub unsafe fn signal_with(
        &self,
        flag: Flag,
        turn: u64,
        value: u32,
        source: *const u8,
        bytes: usize,
    ) {
        if bytes == size_of::<u64>() {
            let into = self.payload_of(self.flags.words.own, flag, turn);
            // SAFETY: the payload of a flag has room for it and is this rank's to write in the turn; the source has so
            // many bytes (contract of this function).
            unsafe { copy_bytes(source, into, bytes) };
            self.signal(flag, turn, value);
            return;
        }
        let mut payload = [0_u64; LINE_BYTES / size_of::<u64>()];
        // SAFETY: the source has so many bytes, which fit (contract of this function).
        unsafe { source.copy_to_nonoverlapping(payload.as_mut_ptr().cast(), bytes) };
        let into =
            self.payload_of(self.flags.words.own, flag, turn).cast::<[u64; LINE_BYTES / 8]>();
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
        self.flags.await_flag(self.part(rank), flag, turn, value, InArea { area: self, progress })
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
        progress: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        self.flags.await_all(flag, turn, value, InArea { area: self, progress })
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
        progress: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        self.flags.await_finished(turn, depth, InArea { area: self, progress })
    }

    /// This rank is done with a turn, and may know that all ranks of the node have begun it.
    #[inline]
    pub fn finish(&self, turn: u64, all_have_begun: bool) {
        self.flags.finish(turn, all_have_begun);
    }
}
