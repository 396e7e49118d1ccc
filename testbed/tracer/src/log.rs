//! The calls seen: chains of nested calls, in tables of fixed size, so that noting one allocates
//! nothing.

use std::{
    cell::Cell,
    fmt::{self, Display, Write},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{interpose::ALGORITHMS, summary};

const MAX_PARAMETERS: usize = 3;
const MAX_NESTED: usize = 4;
const MAX_CHAINS: usize = 512;

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
}

struct Log {
    chains: [CallChain; MAX_CHAINS],
    length: usize,
    lost: usize,
}

static LOG: Mutex<Log> =
    Mutex::new(Log { chains: [CallChain::EMPTY; MAX_CHAINS], length: 0, lost: 0 });

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static CURRENT: Cell<CallChain> = const { Cell::new(CallChain::EMPTY) };
}

/// A table behind a poisoned lock is still a table: nothing in it can be half written that matters.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An algorithm begins on this thread.
pub fn enter(algorithm: u16, parameters: &[u32]) {
    let depth = DEPTH.get();
    DEPTH.set(depth + 1);
    let mut chain = if depth == 0 { CallChain::EMPTY } else { CURRENT.get() };
    if let Some(call) = chain.calls.get_mut(usize::from(chain.length)) {
        call.algorithm = algorithm;
        for (slot, value) in call.parameters.iter_mut().zip(parameters) {
            *slot = *value;
        }
        chain.length += 1;
    }
    CURRENT.set(chain);
}

/// The algorithm that began last on this thread has returned.
pub fn leave() {
    let depth = DEPTH.get().saturating_sub(1);
    DEPTH.set(depth);
    if depth > 0 {
        return;
    }
    let chain = CURRENT.get();
    summary::count(&chain);
    let mut log = lock(&LOG);
    let length = log.length;
    match log.chains.get_mut(length) {
        Some(slot) => {
            *slot = chain;
            log.length += 1;
        }
        None => log.lost += 1,
    }
}

pub fn reset() {
    let mut log = lock(&LOG);
    log.length = 0;
    log.lost = 0;
}

pub fn text() -> String {
    let log = lock(&LOG);
    let mut text = String::new();
    for (place, chain) in log.chains[..log.length].iter().enumerate() {
        let separator = if place == 0 { "" } else { ";" };
        // Writing into a string cannot fail.
        let _ = write!(text, "{separator}{chain}");
    }
    if log.lost > 0 {
        let _ = write!(text, ";+{} more", log.lost);
    }
    text
}

impl Display for CallChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, call) in self.calls[..usize::from(self.length)].iter().enumerate() {
            let separator = if place == 0 { "" } else { ">" };
            let algorithm = &ALGORITHMS[usize::from(call.algorithm)];
            write!(f, "{separator}{}(", algorithm.name)?;
            for (place, (name, value)) in
                algorithm.parameters.iter().zip(call.parameters).enumerate()
            {
                let separator = if place == 0 { "" } else { "," };
                write!(f, "{separator}{name}={value}")?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str) -> u16 {
        ALGORITHMS.iter().position(|algorithm| algorithm.name == name).unwrap() as u16
    }

    /// One test: the log belongs to the whole process.
    #[test]
    fn calls_are_told_in_order_and_nested_ones_behind_their_caller() {
        reset();
        let pipeline = number("bcast_intra_pipeline");
        enter(pipeline, &[8192]);
        leave();
        enter(number("bcast_intra_split_bintree"), &[0]);
        enter(number("bcast_intra_chain"), &[0, 1]);
        leave();
        assert_eq!(text(), "bcast_intra_pipeline(segment=8192)", "not yet returned");
        leave();
        assert_eq!(
            text(),
            "bcast_intra_pipeline(segment=8192);\
             bcast_intra_split_bintree(segment=0)>bcast_intra_chain(segment=0,fanout=1)"
        );

        reset();
        assert_eq!(text(), "");
        let threads = 4;
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..MAX_CHAINS {
                        enter(pipeline, &[1]);
                        for _ in 0..9 {
                            enter(pipeline, &[2]);
                        }
                        for _ in 0..10 {
                            leave();
                        }
                    }
                });
            }
        });
        let text = text();
        assert!(text.ends_with(&format!(";+{} more", (threads - 1) * MAX_CHAINS)));
        let nested = "bcast_intra_pipeline(segment=1)>bcast_intra_pipeline(segment=2)";
        let whole = text.split(';').filter(|chain| chain.starts_with(nested)).count();
        assert_eq!(whole, MAX_CHAINS, "threads do not mix");

        let mut small = [1_i8; 8];
        // SAFETY: the buffer has the length that is told.
        let length = unsafe { crate::colibri_tracer_read(small.as_mut_ptr().cast(), small.len()) };
        assert_eq!(length, text.len());
        assert_eq!(small.map(|byte| byte as u8), *b"bcast_i\0");
    }
}
