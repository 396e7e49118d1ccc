//! The calls seen: chains of nested calls, in tables of fixed size, so that noting one allocates
//! nothing.

use std::{cell::Cell, fmt::Write, sync::Mutex};

use crate::{
    chain::{CallChain, lock},
    summary,
};

const MAX_CHAINS: usize = 512;

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

/// An algorithm begins on this thread.
pub fn enter(algorithm: u16, parameters: &[u32]) {
    let depth = DEPTH.get();
    DEPTH.set(depth + 1);
    let mut chain = if depth == 0 { CallChain::EMPTY } else { CURRENT.get() };
    chain.push(algorithm, parameters);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::ALGORITHMS;

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
        assert_eq!(text(), "bcast_intra_pipeline,segment=8KiB", "not yet returned");
        leave();
        assert_eq!(
            text(),
            "bcast_intra_pipeline,segment=8KiB;\
             bcast_intra_split_bintree>bcast_intra_chain,fan-out=1"
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
        let nested = "bcast_intra_pipeline,segment=1>bcast_intra_pipeline,segment=2";
        let whole = text.split(';').filter(|chain| chain.starts_with(nested)).count();
        assert_eq!(whole, MAX_CHAINS, "threads do not mix");

        let mut small = [1_i8; 8];
        // SAFETY: the buffer has the length that is told.
        let length = unsafe { crate::colibri_tracer_read(small.as_mut_ptr().cast(), small.len()) };
        assert_eq!(length, text.len());
        assert_eq!(small.map(|byte| byte as u8), *b"bcast_i\0");
    }
}
