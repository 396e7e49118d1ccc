//! How a rank waits for another one's flag.

use std::{
    hint, thread,
    time::{Duration, Instant},
};

use crate::{Error, Result};

/// Looks at the flag before MPI is let go on: a flag comes within some microseconds where all ranks are in the
/// call, and a look takes some 40 ns (the pause of a processor).
const SPINS: u32 = 256;
/// Looks between two times that MPI is let go on.
const SPINS_BETWEEN: u32 = 32;
/// The same where each look gives the processor up: letting MPI go on polls sockets, and takes ten times as long as a
/// look. The ranks that share a processor come as much later to theirs.
const YIELDS_BETWEEN: u32 = 8;
/// After so long a processor that another rank may need is given up: a time slice of the kernel is a millisecond
/// or more.
const PATIENCE: Duration = Duration::from_micros(200);
/// From one look whether the other processes are alive to the next.
const LOOK_AT_PEERS: Duration = Duration::from_secs(1);

/// What is known of the ranks of a node for waiting.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The processes of the other ranks, where they can be seen.
    pub peers: Box<[libc::pid_t]>,
    /// Whether there are more ranks than processors for them: then who waits gives its processor up at once.
    pub is_crowded: bool,
}

impl Waiting {
    /// Until it is so. Without `progress` a rank that waits for a message of ours would wait forever.
    ///
    /// # Errors
    /// `progress` failed, or another process is no more.
    #[inline]
    pub fn until(
        &self,
        mut is_so: impl FnMut() -> bool,
        progress: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        if is_so() {
            return Ok(());
        }
        let spins = if self.is_crowded { 1 } else { SPINS };
        for _ in 0..spins {
            hint::spin_loop();
            if is_so() {
                return Ok(());
            }
        }
        self.at_length(is_so, progress)
    }

    #[cold]
    fn at_length(
        &self,
        mut is_so: impl FnMut() -> bool,
        mut progress: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let begun = Instant::now();
        let mut looked = begun;
        loop {
            progress()?;
            for _ in 0..if self.is_crowded { YIELDS_BETWEEN } else { SPINS_BETWEEN } {
                if is_so() {
                    return Ok(());
                }
                if self.is_crowded {
                    thread::yield_now();
                } else {
                    hint::spin_loop();
                }
            }
            let now = Instant::now();
            if now - begun > PATIENCE {
                thread::yield_now();
            }
            if now - looked > LOOK_AT_PEERS {
                looked = now;
                // What it did last may be what is waited for.
                if let Some(pid) = self.missing()
                    && !is_so()
                {
                    return Err(Error::Peer(pid));
                }
            }
        }
    }

    /// A process that is no more.
    fn missing(&self) -> Option<libc::pid_t> {
        let is_missing = |pid: &&libc::pid_t| {
            // SAFETY: signal 0 is none: it is only looked whether the process is there.
            let code = unsafe { libc::kill(**pid, 0) };
            code != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
        };
        self.peers.iter().find(is_missing).copied()
    }
}
