//! Counts what a thread allocates, and stops a thread that takes far too much.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// More than this, in bytes, is a fault of whatever asked for it.
pub const MOST: usize = 1 << 30;
/// More than this, in bytes, is not handed out.
const NEVER: usize = 4 << 30;

/// The system's allocator, counting by thread.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    static WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a watched thread waits because it asked for far too much.
static STUCK: AtomicBool = AtomicBool::new(false);

/// What is live in this thread, in bytes. Less than there is where other threads free what this one
/// allocated, never more by more than what they allocated.
pub fn live() -> usize {
    LIVE.get()
}

/// Counts the peak anew from here on; what goes far beyond [`MOST`] stops the thread for good.
pub fn watch() {
    PEAK.set(LIVE.get());
    WATCHED.set(true);
}

/// The most that was live in this thread since [`watch`], in bytes.
pub fn peak() -> usize {
    WATCHED.set(false);
    PEAK.get()
}

/// Whether a watched thread was stopped.
pub fn is_stuck() -> bool {
    STUCK.load(Ordering::Relaxed)
}

fn take(bytes: usize) {
    let live = LIVE.get().saturating_add(bytes);
    LIVE.set(live);
    if live > PEAK.get() {
        PEAK.set(live);
        if live > NEVER && WATCHED.get() {
            STUCK.store(true, Ordering::Relaxed);
            // The watchdog ends the process, and says at which input.
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
    }
}

fn give_back(bytes: usize) {
    LIVE.set(LIVE.get().saturating_sub(bytes));
}

// SAFETY: everything is the system allocator's; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        give_back(layout.size());
        take(size);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_took_is_told_though_it_was_freed() {
        let before = live();
        watch();
        drop(vec![1_u8; 10 << 20]);
        let peak = peak() - before;
        assert!((10 << 20..11 << 20).contains(&peak), "{peak}");
        assert!(live() < before + (1 << 20));
    }
}
