//! TAP devices: an Ethernet device of the kernel's whose cable ends in a file.

use std::{
    ffi::c_int,
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    os::unix::fs::OpenOptionsExt,
};

use anyhow::{Context, Result, ensure};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// More than any frame.
pub const FRAME_ROOM: usize = 2048;

/// Enters a network namespace that nobody else has. The files of TAP devices keep the namespace alive
/// in which they were opened; a node's must be able to go while the switch runs.
pub fn enter_own_namespace() -> Result<()> {
    // SAFETY: the process has one thread, which shares its files with no other.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
        .context("cannot make the switch's network namespace (it needs CAP_SYS_ADMIN)")
}

/// One device; it vanishes with this.
#[derive(Debug)]
pub struct Tap {
    file: File,
}

impl Tap {
    /// In this process's network namespace, by the name given.
    pub fn make(name: &str) -> Result<Tap> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .context("cannot open /dev/net/tun")?;
        let request = request(name)?;
        // SAFETY: the kernel reads and writes one ifreq at that address, which lives through the call.
        let made = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw const request) };
        checked(made).with_context(|| format!("cannot make the TAP device {name}"))?;
        // Frames come as they are on the wire: cut to the device's size and with their checksums.
        let none: libc::c_ulong = 0;
        // SAFETY: this request takes a number and touches no memory.
        let plain = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, none) };
        checked(plain).with_context(|| format!("cannot set up the TAP device {name}"))?;
        Ok(Tap { file })
    }

    /// The next frame that the node has sent; none if there is none now.
    ///
    /// # Errors
    /// The device is gone.
    pub fn read<'a>(&self, room: &'a mut [u8; FRAME_ROOM]) -> io::Result<Option<&'a [u8]>> {
        match (&self.file).read(room) {
            Ok(length) => Ok(Some(&room[..length])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives the node a frame; tells whether it took it, which it does not while its device is down.
    pub fn write(&self, frame: &[u8]) -> bool {
        (&self.file).write(frame).is_ok_and(|written| written == frame.len())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn request(name: &str) -> Result<libc::ifreq> {
    // SAFETY: an ifreq is plain numbers, for which zeroes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    ensure!(name.len() < request.ifr_name.len(), "'{name}' is too long for a device's name");
    for (letter, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *letter = byte.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    Ok(request)
}

fn checked(answer: c_int) -> io::Result<()> {
    match answer {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
