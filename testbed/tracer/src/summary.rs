//! With `COLIBRI_TRACER_FILE`: how often each kind of call was made, appended when the process exits.

use std::{
    env,
    ffi::OsString,
    fmt::Write as _,
    fs::OpenOptions,
    io::{self, Write as _},
    panic::catch_unwind,
    process,
    sync::{Mutex, OnceLock},
};

use crate::chain::{CallChain, lock};

const MAX_KINDS: usize = 256;
const FILE_VARIABLE: &str = "COLIBRI_TRACER_FILE";

struct CallCounts {
    kinds: [(CallChain, u64); MAX_KINDS],
    length: usize,
    other: u64,
}

static COUNTS: Mutex<CallCounts> =
    Mutex::new(CallCounts { kinds: [(CallChain::EMPTY, 0); MAX_KINDS], length: 0, other: 0 });

/// The file, asked for once: with the first call, when the handler for the exit is set too.
static FILE: OnceLock<Option<OsString>> = OnceLock::new();

pub fn count(chain: &CallChain) {
    if FILE.get_or_init(watch).is_none() {
        return;
    }
    let mut counts = lock(&COUNTS);
    let length = counts.length;
    if let Some((_, count)) = counts.kinds[..length].iter_mut().find(|(kind, _)| kind == chain) {
        *count += 1;
        return;
    }
    match counts.kinds.get_mut(length) {
        Some(slot) => {
            *slot = (*chain, 1);
            counts.length += 1;
        }
        None => counts.other += 1,
    }
}

fn watch() -> Option<OsString> {
    let path = env::var_os(FILE_VARIABLE).filter(|path| !path.is_empty())?;
    // SAFETY: the handler is a function of this library, which stays loaded to the end of the process.
    unsafe { libc::atexit(append) };
    Some(path)
}

extern "C" fn append() {
    // A panic may not cross into C; the process is at its end.
    let _ = catch_unwind(|| {
        let Some(Some(path)) = FILE.get() else { return };
        // One write to a file opened for appending: lines of several processes do not mix.
        let written = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(lines().as_bytes()));
        if let Err(error) = written {
            let path = path.to_string_lossy();
            // There is nowhere else to say it.
            let _ = writeln!(io::stderr(), "colibri tracer: cannot append to {path}: {error}");
        }
    });
}

fn lines() -> String {
    let who = format!("rank={} pid={}", rank(), process::id());
    let counts = lock(&COUNTS);
    let mut text = String::new();
    for (kind, count) in &counts.kinds[..counts.length] {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{who} {kind} {count}");
    }
    if counts.other > 0 {
        let _ = writeln!(text, "{who} other {}", counts.other);
    }
    text
}

/// The rank in `MPI_COMM_WORLD` as the launcher told it; MPI itself is finalized by now.
fn rank() -> String {
    ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"]
        .into_iter()
        .find_map(|variable| env::var(variable).ok())
        .unwrap_or_else(|| "?".into())
}
