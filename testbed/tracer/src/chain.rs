//! A call with the calls made inside it.

use std::{
    fmt::{self, Display},
    sync::{Mutex, MutexGuard, PoisonError},
};

use records::quantity;

use crate::algorithms::ALGORITHMS;

const MAX_PARAMETERS: usize = 3;
const MAX_NESTED: usize = 4;

/// One call of one algorithm: its place in [`ALGORITHMS`] and its parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TracedCall {
    algorithm: u16,
    parameters: [u32; MAX_PARAMETERS],
}

/// An outermost call and, behind it, the calls made inside it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CallChain {
    length: u8,
    calls: [TracedCall; MAX_NESTED],
}

impl CallChain {
    pub const EMPTY: CallChain = CallChain {
        length: 0,
        calls: [TracedCall { algorithm: 0, parameters: [0; MAX_PARAMETERS] }; MAX_NESTED],
    };

    /// A call inside those that are open; one nested too deeply is left out.
    pub fn push(&mut self, algorithm: u16, parameters: &[u32]) {
        if let Some(call) = self.calls.get_mut(usize::from(self.length)) {
            call.algorithm = algorithm;
            for (slot, value) in call.parameters.iter_mut().zip(parameters) {
                *slot = *value;
            }
            self.length += 1;
        }
    }
}

impl Display for CallChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, call) in self.calls[..usize::from(self.length)].iter().enumerate() {
            let separator = if place == 0 { "" } else { ">" };
            let algorithm = &ALGORITHMS[usize::from(call.algorithm)];
            write!(f, "{separator}{}", algorithm.name)?;
            for (name, value) in algorithm.parameters.iter().zip(call.parameters) {
                match (*name, value) {
                    ("segment", 0) => {}
                    ("segment", bytes) => {
                        write!(f, ",segment={}", quantity::compact_bytes(bytes.into()))?;
                    }
                    (name, value) => write!(f, ",{}={value}", name.replace('_', "-"))?,
                }
            }
        }
        Ok(())
    }
}

/// A table behind a poisoned lock is still a table: nothing in it can be half written that matters.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
