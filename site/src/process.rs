//! The border to the system: starting, watching and ending the programs that we launch.

use std::{
    fs,
    io::{self, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

/// How long a launcher or a command of a batch system may take to answer, also on a busy machine.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on an interrupt (Ctrl-C, SIGTERM) is noted, so that what was launched can be ended.
pub fn note_interrupts() -> Result<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed))
        .context("cannot catch interrupts")
}

/// Whether an interrupt was noted.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Whether we are root.
pub fn is_root() -> bool {
    // SAFETY: geteuid takes nothing, cannot fail and touches no memory.
    unsafe { libc::geteuid() == 0 }
}

/// Starts a program in a process group of its own, which ends when we do.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    command.process_group(0);
    let parent = std::process::id();
    // SAFETY: the closure runs between fork and exec and calls only prctl and getppid, which are
    // async-signal-safe; it touches no memory but its own copy of `parent`.
    unsafe {
        command.pre_exec(move || {
            // mpirun ends its ranks in good order on SIGTERM.
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
                return Err(io::Error::last_os_error());
            }
            match libc::getppid() as u32 == parent {
                true => Ok(()),
                false => Err(io::Error::other("the launching process has ended")),
            }
        });
    }
    command.spawn()
}

/// Ends a child with its whole process group, gently first.
pub fn end(child: &mut Child) -> io::Result<ExitStatus> {
    signal_group(child.id(), libc::SIGTERM);
    let patience = Instant::now() + Duration::from_secs(5);
    while Instant::now() < patience {
        if let Some(status) = child.try_wait()? {
            signal_group(child.id(), libc::SIGKILL);
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    signal_group(child.id(), libc::SIGKILL);
    child.wait()
}

/// What a program prints on stdout and then on stderr, if it ends within [`ANSWER_TIMEOUT`]; else it is ended.
pub fn output(command: &mut Command) -> Option<String> {
    Some(answer(command)?.1)
}

/// How a program ended and what it printed on stdout and then on stderr; nothing where it did not end within
/// [`ANSWER_TIMEOUT`].
pub fn answer(command: &mut Command) -> Option<(ExitStatus, String)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command).ok()?;
    let since = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().ok()? {
            break status;
        }
        if since.elapsed() > ANSWER_TIMEOUT {
            // Ended or not, it has said nothing that counts.
            let _ = end(&mut child);
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut said = String::new();
    child.stdout.take()?.read_to_string(&mut said).ok()?;
    child.stderr.take()?.read_to_string(&mut said).ok()?;
    Some((status, said))
}

/// Sends a signal to a process group that [`spawn`] has made.
pub fn signal_group(leader: u32, signal: i32) {
    let Ok(leader) = i32::try_from(leader) else { return };
    // SAFETY: kill takes two numbers. The group is one that `spawn` made, so it holds only what
    // we launched; that it may have ended already is no error.
    unsafe { libc::kill(-leader, signal) };
}

/// When a living process started, in clock ticks since boot.
pub fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold blanks; the state follows it and the start is the 20th
    // field from there (proc(5), field 22).
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    (*fields.first()? != "Z").then(|| fields.get(19)?.parse().ok())?
}
