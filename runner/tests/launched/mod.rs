//! Runs a launcher to its end, for the test programs that start themselves under one.

pub mod aside;

use std::{
    io::Read,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// For which it has twenty minutes, also on a busy machine; else, or where it fails, what became of it and what it said.
pub fn run_to_end(command: &mut Command) -> Result<(), String> {
    let mut child = command.process_group(0).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let said = thread::spawn(move || {
        let mut said = String::new();
        let _ = stderr.read_to_string(&mut said);
        said
    });
    let limit = Instant::now() + Duration::from_secs(1200);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if Instant::now() > limit => break None,
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    if status.is_none() {
        // SAFETY: the group was made for this child.
        unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
        child.wait().unwrap();
    }
    let said = said.join().unwrap();
    match status {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("{status}\n{said}")),
        None => Err(format!("hung\n{said}")),
    }
}
