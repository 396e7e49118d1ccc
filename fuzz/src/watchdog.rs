//! Ends the process where an input never comes back, and says which it was.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, Once, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::memory;

/// After so long on the clock, on a busy machine too, an input is taken to hang for good.
const PATIENCE: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// What one thread is at.
#[derive(Debug)]
struct WatchedThread {
    name: &'static str,
    number: u64,
    input: Vec<u8>,
    begun: Option<Instant>,
}

/// A thread that the watchdog looks after, until it is dropped.
#[derive(Debug)]
pub struct Watched(Arc<Mutex<WatchedThread>>);

static ALL: Mutex<Vec<Arc<Mutex<WatchedThread>>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watched {
    /// Of one parser.
    pub fn new(name: &'static str) -> Self {
        static DOG: Once = Once::new();
        DOG.call_once(|| drop(thread::spawn(watch)));
        let state = WatchedThread { name, number: 0, input: Vec::new(), begun: None };
        let state = Arc::new(Mutex::new(state));
        lock(&ALL).push(Arc::clone(&state));
        Watched(state)
    }

    /// An input begins.
    pub fn begin(&self, input: &[u8], number: u64) {
        let mut state = lock(&self.0);
        state.number = number;
        state.input.clear();
        state.input.extend_from_slice(input);
        state.begun = Some(Instant::now());
    }

    /// It came back.
    pub fn end(&self) {
        lock(&self.0).begun = None;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        lock(&ALL).retain(|state| !Arc::ptr_eq(state, &self.0));
    }
}

fn watch() {
    loop {
        thread::sleep(BETWEEN_LOOKS);
        let all = lock(&ALL);
        let running = all.iter().filter_map(|state| {
            let state = lock(state);
            state.begun.map(|begun| (begun.elapsed(), state))
        });
        if let Some((elapsed, state)) = running.max_by_key(|(elapsed, _)| *elapsed)
            && (elapsed > PATIENCE || memory::is_stuck())
        {
            give_up(&state, elapsed);
        }
    }
}

/// What can't be reduced any more is kept in a file.
fn give_up(state: &WatchedThread, elapsed: Duration) -> ! {
    let path = kept(state.name);
    let place = match fs::write(&path, &state.input) {
        Ok(()) => format!("kept in {}", path.display()),
        Err(error) => format!("it can't be kept in {}: {error}", path.display()),
    };
    let why = match memory::is_stuck() {
        true => "asks for more than 4 GiB".to_owned(),
        false => format!("is at it for {:.0} s", elapsed.as_secs_f64()),
    };
    eprintln!("fuzz {}: input {} {why}; {place}", state.name, state.number);
    std::process::abort();
}

fn kept(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("colibri-fuzz-{name}-{}", std::process::id()))
}
