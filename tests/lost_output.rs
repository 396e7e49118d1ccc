//! Streams on which what a program prints is lost.

use std::{fs::File, io::pipe, process::Stdio};

/// On which nothing can be written, as on a full disk.
pub fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// A pipe whose reader has gone, as behind `| head`.
pub fn unread() -> Stdio {
    pipe().unwrap().1.into()
}
