//! How the ranks of a communicator come to share memory, node by node.
//!
//! Collective: the first rank of each node makes a file without a name (`memfd_create`, which no limit of `/dev/shm`
//! holds for and which leaves nothing behind), the others open it through `/proc`, and all look whether what they
//! mapped is what was made. All ranks of the communicator then learn whether all could; else they try the same with
//! POSIX shared memory, and if that fails on any rank too, none shares memory. What a rank alone sees never decides.

use std::{
    ffi::{CString, c_int, c_void},
    fs::File,
    io, mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    process, ptr,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use schedules::{
    NodesOfRanks,
    shared::{PAGE_BYTES, turn_bytes},
};

use super::{
    area::{Division, Mapping, SharedArea},
    waiting::Waiting,
};
use crate::{Error, Mpi, Result, duplicate::Duplicate, error::check};

/// Words of a set of processors: as many as glibc's `cpu_set_t` has.
const SET_WORDS: usize = size_of::<libc::cpu_set_t>() / size_of::<u64>();

/// How the file of a node is made.
#[derive(Debug, Clone, Copy)]
enum FileKind {
    /// `memfd_create`, opened by others as `/proc/PID/fd/FD`.
    Unnamed,
    /// `shm_open`, by a name that is removed as soon as all have it.
    Posix,
}

/// What each rank tells all others.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Announcement {
    /// Bytes that this process has mapped already.
    mapped: u64,
    pid: i64,
    /// The namespace of `pid`, 0 where it is not known.
    namespace: u64,
    /// Of the first rank of a node: the file, below 0 where there is none, and what its first words are.
    file: i64,
    nonce: [u64; 2],
    processors: [u64; SET_WORDS],
}

/// What limits the areas of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AreaLimits {
    /// Bytes on a node, of all communicators that a process belongs to.
    pub bytes: u64,
    /// Whether ranks share memory even where they outnumber the processors.
    pub is_crowd_allowed: bool,
}

/// Makes the area of this rank's node. All ranks of the communicator call this; the reason why there is none is the
/// same on all.
///
/// # Safety
/// The communicator must be live, and all its ranks must call this with the same limits.
///
/// # Errors
/// MPI fails. Inside, why no memory is shared.
pub(crate) unsafe fn create(
    mpi: &Mpi,
    ours: Duplicate,
    nodes: &NodesOfRanks,
    limits: AreaLimits,
) -> Result<std::result::Result<SharedArea, String>> {
    let members = nodes.members(nodes.node_of(ours.rank));
    let most = nodes.most() as usize;
    // All nodes divide alike, as all ranks have to agree on what a call may use.
    let turn_bytes = turn_bytes(limits.bytes, most);
    if turn_bytes == 0 {
        return Ok(Err(format!(
            "{} bytes of shared memory are too few for {most} ranks on a node; COLIBRI_SHARED_MEMORY sets them",
            limits.bytes
        )));
    }
    let division = Division { ranks: members.len(), turn_bytes };
    let mut why = String::new();
    for kind in [FileKind::Unnamed, FileKind::Posix] {
        // SAFETY: all ranks come here, with the same kind (contract of this function).
        let outcome = unsafe { attempt(mpi, ours, nodes, members, division, limits, kind)? };
        match outcome {
            Ok(area) => return Ok(Ok(area)),
            Err(Refusal { reason, is_final }) => {
                why = reason;
                if is_final {
                    break;
                }
            }
        }
    }
    Ok(Err(why))
}

/// Why no memory is shared; the same on all ranks.
struct Refusal {
    reason: String,
    /// Whether another kind of file would change nothing.
    is_final: bool,
}

/// One attempt with one kind of file.
///
/// # Safety
/// As [`create`].
unsafe fn attempt(
    mpi: &Mpi,
    ours: Duplicate,
    nodes: &NodesOfRanks,
    members: &[u32],
    division: Division,
    limits: AreaLimits,
    kind: FileKind,
) -> Result<std::result::Result<SharedArea, Refusal>> {
    let is_first = members[0] == ours.rank;
    let nonce = nonce(ours.rank);
    let made = is_first.then(|| make_file(kind, nonce, division));
    let has_name = matches!(made, Some(Ok(_))) && matches!(kind, FileKind::Posix);
    let name = has_name.then_some(FileName(nonce));
    let own = Announcement {
        mapped: Mapping::of_process(),
        pid: i64::from(process::id()),
        namespace: namespace_of_processes(),
        file: match &made {
            Some(Ok(file)) => i64::from(file.as_raw_fd()),
            _ => -1,
        },
        nonce,
        processors: processors(),
    };
    // SAFETY: all ranks come here (contract of `create`).
    let all = unsafe { gather(mpi, ours, &own)? };
    let bytes_of = |node| Division { ranks: nodes.members(node).len(), ..division }.bytes() as u64;
    let is_over =
        |rank: u32| all[rank as usize].mapped + bytes_of(nodes.node_of(rank)) > limits.bytes;
    if (0..ours.size).any(is_over) {
        let reason = format!(
            "communicators share {} bytes of memory on a node already; COLIBRI_SHARED_MEMORY sets the limit",
            limits.bytes
        );
        return Ok(Err(Refusal { reason, is_final: true }));
    }
    let crowded = |node| is_crowded(nodes.members(node).iter().map(|rank| &all[*rank as usize]));
    if !limits.is_crowd_allowed && (0..nodes.count()).any(crowded) {
        let reason = "the ranks of a node outnumber the processors that they may run on".into();
        return Ok(Err(Refusal { reason, is_final: true }));
    }
    let first = &all[members[0] as usize];
    let local = members.iter().position(|rank| *rank == ours.rank).unwrap_or_default();
    // What is made stays open until the others have it.
    let mapped = match &made {
        Some(Err(error)) => Err(number(error)),
        Some(Ok(file)) => attach(kind, first, Some(file), division, local).map_err(|e| number(&e)),
        None => attach(kind, first, None, division, local).map_err(|e| number(&e)),
    };
    let has = match &mapped {
        Err(error) => -error,
        Ok(mapping) if mapping.has_all => ALL,
        Ok(_) => FLAGS,
    };
    // SAFETY: as above.
    let attached = unsafe { gather(mpi, ours, &has)? };
    drop(name);
    let failed = attached.iter().position(|one| *one < 0);
    match (mapped, failed) {
        (Ok(mapping), None) => {
            (0..members.len()).for_each(|rank| mapping.look(division.flags(rank)));
            // In another container the same number is another process.
            let is_seen =
                |rank: u32| own.namespace != 0 && all[rank as usize].namespace == own.namespace;
            let is_other = |rank: &&u32| **rank != ours.rank && is_seen(**rank);
            let pid = |rank: &u32| all[*rank as usize].pid as libc::pid_t;
            let waiting = Waiting {
                peers: members.iter().filter(is_other).map(pid).collect(),
                is_crowded: crowded(nodes.node_of(ours.rank)),
            };
            let area = SharedArea::new(mapping, division, members, ours.size, ours.rank, waiting);
            if attached.iter().all(|one| *one == ALL) {
                area.set_ready(division.turn_bytes);
            }
            Ok(Ok(area))
        }
        (_, failed) => {
            let rank = failed.unwrap_or_default();
            let cause = io::Error::from_raw_os_error(-attached[rank]);
            let place = match kind {
                FileKind::Unnamed => "by memfd_create",
                FileKind::Posix => "in /dev/shm",
            };
            let reason =
                format!("rank {rank} could not map the memory of its node {place}: {cause}");
            Ok(Err(Refusal { reason, is_final: false }))
        }
    }
}

/// The system's number of an error, above 0.
fn number(error: &io::Error) -> c_int {
    let other = if error.kind() == io::ErrorKind::NotFound { libc::ENOENT } else { libc::EINVAL };
    error.raw_os_error().unwrap_or(other)
}

/// A rank has memory for all of its part; below 0 it has none, for the error of this number.
const ALL: c_int = 2;
/// It has memory for its flags.
const FLAGS: c_int = 1;

/// Gives the data of all ranks memory, in either half up to so many bytes. All ranks of the communicator call this.
///
/// # Safety
/// The communicator must be live, and all its ranks must call this with the same number.
///
/// # Errors
/// MPI fails; a rank has not enough memory, which refuses the call on all alike.
pub(crate) unsafe fn provide(
    mpi: &Mpi,
    ours: Duplicate,
    area: &SharedArea,
    bytes: usize,
) -> Result<()> {
    let own = u8::from(area.give_memory(bytes).is_ok());
    // SAFETY: all ranks come here (contract of this function).
    let all = unsafe { gather(mpi, ours, &own)? };
    match all.iter().position(|given| *given == 0) {
        Some(rank) => Err(Error::Refused(format!("rank {rank} has no memory left to share"))),
        None => {
            area.set_ready(bytes);
            Ok(())
        }
    }
}

/// What every rank says, by rank.
///
/// # Safety
/// As [`create`]; `T` has no padding and may be any bytes.
unsafe fn gather<T: Copy>(mpi: &Mpi, ours: Duplicate, own: &T) -> Result<Vec<T>> {
    let (bytes, byte) = (size_of::<T>() as c_int, mpi.constants.byte);
    let mut all = vec![*own; ours.size as usize];
    // SAFETY: `own` and each entry of `all` have so many bytes, and all ranks of the live communicator come here
    // (contract of this function).
    let code = unsafe {
        let (from, into) = (ptr::from_ref(own).cast(), all.as_mut_ptr().cast());
        (mpi.allgather)(from, bytes, byte, into, bytes, byte, ours.comm)
    };
    check("MPI_Allgather", code)?;
    Ok(all)
}

/// What no other area has: the time, the process, and a number within it.
fn nonce(rank: u32) -> [u64; 2] {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = u64::from(process::id()) << 32 | u64::from(rank);
    [now.as_nanos() as u64, process ^ (number << 20)]
}

fn name(nonce: [u64; 2]) -> CString {
    CString::new(format!("/colibri-{:016x}{:016x}", nonce[0], nonce[1])).unwrap_or_default()
}

/// A file of the size of the area, which begins with the nonce.
fn make_file(kind: FileKind, nonce: [u64; 2], division: Division) -> io::Result<OwnedFd> {
    // SAFETY: the names end in a zero byte; what is opened is owned by nobody else.
    let file = unsafe {
        let file = match kind {
            FileKind::Unnamed => libc::memfd_create(c"colibri".as_ptr(), libc::MFD_CLOEXEC),
            FileKind::Posix => {
                let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
                libc::shm_open(name(nonce).as_ptr(), flags, 0o600 as libc::mode_t)
            }
        };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(file)
    };
    let made = File::from(file);
    let begun = check_file_size(division.bytes()).and_then(|()| {
        made.set_len(division.bytes() as u64)?;
        use std::os::unix::fs::FileExt;
        allocate(&made, 0, PAGE_BYTES)?;
        // SAFETY: two words are sixteen bytes.
        let bytes: [u8; 16] = unsafe { mem::transmute(nonce) };
        made.write_all_at(&bytes, 0)
    });
    // A full /dev/shm is left as it was.
    if begun.is_err() && matches!(kind, FileKind::Posix) {
        remove_name(nonce);
    }
    begun.map(|()| made.into())
}

fn remove_name(nonce: [u64; 2]) {
    // SAFETY: the name ends in a zero byte.
    unsafe { libc::shm_unlink(name(nonce).as_ptr()) };
}

/// The name of a file in /dev/shm, which is removed however it goes on.
struct FileName([u64; 2]);

impl Drop for FileName {
    fn drop(&mut self) {
        remove_name(self.0);
    }
}

/// Opens and maps the file of the node, and takes this rank's flags into possession: their pages come to the memory
/// that is nearest to the rank. A file in /dev/shm, which may be too small, gets all of its memory now, or it is found
/// that there is none; the data of one without a name get it when calls need it ([`provide`]), if the kernel says then
/// whether there is enough.
fn attach(
    kind: FileKind,
    first: &Announcement,
    made: Option<&OwnedFd>,
    division: Division,
    local: usize,
) -> io::Result<Mapping> {
    let opened = match (made, kind) {
        (Some(file), _) => file.try_clone()?,
        (None, _) if first.file < 0 => return Err(io::ErrorKind::NotFound.into()),
        (None, FileKind::Unnamed) => {
            let path = format!("/proc/{}/fd/{}", first.pid, first.file);
            File::options().read(true).write(true).open(path)?.into()
        }
        (None, FileKind::Posix) => {
            // SAFETY: the name ends in a zero byte; what is opened is owned by nobody else.
            unsafe {
                let flags = libc::O_RDWR | libc::O_CLOEXEC;
                let file = libc::shm_open(name(first.nonce).as_ptr(), flags, 0 as libc::mode_t);
                if file < 0 {
                    return Err(io::Error::last_os_error());
                }
                OwnedFd::from_raw_fd(file)
            }
        }
    };
    let file = File::from(opened);
    if file.metadata()?.len() != division.bytes() as u64 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut mapping = Mapping::new(file.as_raw_fd(), division.bytes())?;
    // SAFETY: the mapping has at least a page, which the first rank wrote before it announced the file.
    let found = unsafe { mapping.address.cast::<[u64; 2]>().read_volatile() };
    if found != first.nonce {
        // The file is another's: the ranks do not see the same processes.
        return Err(io::ErrorKind::InvalidData.into());
    }
    mapping.has_all = matches!(kind, FileKind::Posix) || !mapping.gives_memory();
    let flags = division.flags(local);
    let given = if mapping.has_all { division.part_bytes() } else { flags.len() };
    allocate(&file, flags.start, given)?;
    Ok(mapping)
}

/// Gives a part of a file pages, so that there is no signal later that there are none.
fn allocate(file: &File, offset: usize, bytes: usize) -> io::Result<()> {
    check_file_size(offset + bytes)?;
    loop {
        // SAFETY: the file is open.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), offset as i64, bytes as i64) } {
            0 => return Ok(()),
            // The application's timers may interrupt it.
            libc::EINTR => {}
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// Whether this process may make files so long; a longer one would end it by a signal.
fn check_file_size(bytes: usize) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the output is a local.
    let code = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    if code == 0 && (bytes as u64) > limit.rlim_cur {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    Ok(())
}

/// What tells this process's numbers of processes from those of other containers.
fn namespace_of_processes() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |file| file.ino())
}

/// The processors that this thread may run on; all where the kernel has more than a set holds.
fn processors() -> [u64; SET_WORDS] {
    let mut set = [0_u64; SET_WORDS];
    // SAFETY: the set has as many bytes as is said.
    let code = unsafe {
        let bytes = size_of_val(&set);
        libc::sched_getaffinity(0, bytes, set.as_mut_ptr().cast::<libc::cpu_set_t>())
    };
    if code == 0 { set } else { [u64::MAX; SET_WORDS] }
}

/// Whether these ranks are more than the processors that they may run on.
fn is_crowded<'a>(ranks: impl Iterator<Item = &'a Announcement> + Clone) -> bool {
    let mut all = [0_u64; SET_WORDS];
    for rank in ranks.clone() {
        all.iter_mut().zip(rank.processors).for_each(|(all, own)| *all |= own);
    }
    ranks.count() > all.iter().map(|word| word.count_ones() as usize).sum()
}

/// Lets MPI go on while a rank waits: looks for a message that nobody sends.
///
/// # Safety
/// The communicator must be live.
///
/// # Errors
/// MPI fails.
pub(crate) unsafe fn progress(mpi: &Mpi, ours: &Duplicate, tag: c_int) -> Result<()> {
    let mut is_there = 0;
    let status = mpi.constants.status_ignore as *mut c_void;
    // SAFETY: the communicator is live (contract of this function); the flag is a local.
    let code = unsafe { (mpi.iprobe)(ours.rank as c_int, tag, ours.comm, &mut is_there, status) };
    check("MPI_Iprobe", code)
}
