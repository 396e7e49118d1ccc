//! One input, with everything that is asked of whoever reads it.

use std::{
    cell::{Cell, RefCell},
    panic::{self, AssertUnwindSafe},
    sync::Once,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

use crate::{
    memory,
    parser::{Answer, Parser},
    watchdog::Watched,
};

/// An input that takes longer, in processor time, is a fault.
const MAX_TIME: Duration = Duration::from_secs(1);

/// What an input did that none may do.
#[derive(Debug)]
pub struct InputFailure {
    /// Words that are equal for equal faults.
    pub kind: String,
}

/// What became of an input.
#[derive(Debug)]
pub struct Trial {
    /// The parser's answer.
    pub answer: Result<Answer, InputFailure>,
    /// Processor time of this thread.
    pub took: Duration,
    /// What was allocated at once, beside what had been before.
    pub peak_bytes: usize,
}

/// Reads one input. `number` tells it from others where the process must be ended.
pub fn try_one(parser: &Parser, input: &[u8], watched: &Watched, number: u64) -> Trial {
    watched.begin(input, number);
    let (before, live) = (spent(), memory::live());
    memory::watch();
    let answer = quietly(|| (parser.read)(input));
    let peak_bytes = memory::peak().saturating_sub(live);
    let took = spent().saturating_sub(before);
    watched.end();
    let fault = |kind: &str| Err(InputFailure { kind: kind.to_owned() });
    let answer = match answer {
        Err(kind) => Err(InputFailure { kind }),
        Ok(_) if took > MAX_TIME => fault("takes more than 1 s"),
        Ok(_) if peak_bytes > memory::MOST => fault("takes more than 1 GiB"),
        Ok(answer) => Ok(answer),
    };
    Trial { answer, took, peak_bytes }
}

/// Processor time that this thread has spent.
pub fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

thread_local! {
    /// Whether a panic of this thread is told by its return value alone.
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What the closure gives, or where and by which words it panicked.
fn quietly<T>(closure: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |told| match QUIET.get() {
            true => PANIC.with_borrow_mut(|place| *place = kind(told)),
            false => usual(told),
        }));
    });
    QUIET.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(closure));
    QUIET.set(false);
    outcome.map_err(|_| PANIC.take())
}

/// Where it is, and its words, with one mark for every number: they differ from input to input.
fn kind(told: &panic::PanicHookInfo<'_>) -> String {
    const SHOWN: usize = 200;
    let place = told.location().map(ToString::to_string).unwrap_or_default();
    let payload = told.payload();
    let words = payload.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or_default();
    let words = words.lines().next().unwrap_or_default();
    let mut kind = format!("panic at {place}: ");
    for letter in words.chars().take(SHOWN) {
        match letter.is_ascii_digit() {
            true if kind.ends_with('#') => {}
            true => kind.push('#'),
            false => kind.push(letter),
        }
    }
    kind
}
