//! Processors that do not fall asleep while frames are under way.
//!
//! An idle processor of a virtual machine is given back to the hypervisor, and takes tens of
//! microseconds to come back when a frame is due or has come. While this file is open the kernel lets
//! idle processors look for work instead. The kernel forgets it with the process, however that ends.

use std::{fs::File, io::Write};

const LATENCY: &str = "/dev/cpu_dma_latency";

/// In microseconds: what waking up may take.
const NONE: i32 = 0;

/// Keeps processors awake, or lets them sleep.
#[derive(Debug, Default)]
pub struct Processors {
    held: Option<File>,
    /// The kernel does not offer it, which was tried once.
    is_refused: bool,
}

impl Processors {
    /// Until they are let go.
    pub fn keep_awake(&mut self) {
        if self.held.is_none() && !self.is_refused {
            self.held = File::options().write(true).open(LATENCY).ok();
            let written = self.held.as_mut().map(|file| file.write_all(&NONE.to_ne_bytes()));
            self.is_refused = !matches!(written, Some(Ok(())));
        }
    }

    /// They may sleep.
    pub fn let_sleep(&mut self) {
        self.held = None;
    }

    /// Whether they are kept from sleeping.
    pub fn are_awake(&self) -> bool {
        self.held.is_some()
    }
}
