//! Shows how far long work is, on stderr: a bar on a terminal from two seconds on, plain lines now and
//! then elsewhere.

use std::{
    io::{IsTerminal as _, stderr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

/// How often it is looked how far it is.
const OFTEN: Duration = Duration::from_millis(250);
/// Work that ends sooner shows no bar.
const SHOWN_AFTER: Duration = Duration::from_secs(2);
/// How often a line is written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// How far something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkDone {
    /// So many units of so many.
    Part(u64, u64),
    /// Under way, but not countable.
    Unknown,
    /// Nothing is under way.
    Idle,
}

/// Shows it until dropped.
pub struct ProgressGuard {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Work whose units are counted by who does it, shown until dropped.
pub struct CountedWork {
    done: Arc<AtomicU64>,
    _shown: ProgressGuard,
}

impl CountedWork {
    /// Begins to show how much is done of so many `units`.
    pub fn begin(what: &'static str, units: &'static str, of: usize) -> Self {
        let done = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&done);
        let of = of as u64;
        let look = move || WorkDone::Part(counted.load(Relaxed).min(of), of);
        CountedWork { done, _shown: show(what, units, look) }
    }

    /// So many more are done.
    pub fn add(&self, units: usize) {
        self.done.fetch_add(units as u64, Relaxed);
    }
}

/// Begins to show what is done, `simulating`, in units of `steps`; `look` is asked how far it is.
pub fn show(
    what: &'static str,
    units: &'static str,
    look: impl Fn() -> WorkDone + Send + 'static,
) -> ProgressGuard {
    let (end, ended) = channel();
    let thread = thread::spawn(move || {
        let begun = Instant::now();
        let mut printed = begun;
        let mut bar: Option<ProgressBar> = None;
        while ended.recv_timeout(OFTEN) == Err(RecvTimeoutError::Timeout) {
            let done_so_far = look();
            if stderr().is_terminal() {
                if begun.elapsed() >= SHOWN_AFTER {
                    draw(bar.get_or_insert_with(|| new_bar(what, units, done_so_far)), done_so_far);
                }
            } else if done_so_far != WorkDone::Idle && printed.elapsed() >= LINE_INTERVAL {
                printed = Instant::now();
                say!("{}", line(what, units, done_so_far, begun.elapsed()));
            }
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    });
    ProgressGuard { end: Some(end), thread: Some(thread) }
}

impl Drop for ProgressGuard {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // It ends when nobody is left to be asked; what it showed was no result.
            let _ = thread.join();
        }
    }
}

fn draw(bar: &ProgressBar, done_so_far: WorkDone) {
    match done_so_far {
        WorkDone::Part(done, of) => {
            bar.set_length(of);
            bar.set_position(done);
        }
        WorkDone::Unknown => bar.tick(),
        WorkDone::Idle => bar.reset(),
    }
}

fn new_bar(what: &str, units: &str, done_so_far: WorkDone) -> ProgressBar {
    let (bar, template) = match done_so_far {
        WorkDone::Unknown => {
            (ProgressBar::new_spinner(), format!("{what} {{spinner}} {{elapsed}}"))
        }
        _ => {
            let length = match units {
                "bytes" => "{total_bytes}".to_owned(),
                _ => format!("{{human_len}} {units}"),
            };
            let template =
                format!("{what} [{{bar:30}}] {{percent}} % of {length} (ends in {{eta}})");
            (ProgressBar::new(0), template)
        }
    };
    match ProgressStyle::with_template(&template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

fn line(what: &str, units: &str, done_so_far: WorkDone, elapsed: Duration) -> String {
    match done_so_far {
        WorkDone::Part(done, of) => {
            let percent = 100.0 * done as f64 / of.max(1) as f64;
            format!("{what}: {percent:.0} % of some {:.1e} {units}", of as f64)
        }
        WorkDone::Unknown | WorkDone::Idle => format!("{what}: for {} s", elapsed.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_how_much_is_done() {
        let told = |done_so_far| line("simulating", "steps", done_so_far, Duration::from_secs(12));
        assert_eq!(told(WorkDone::Part(250, 1000)), "simulating: 25 % of some 1.0e3 steps");
        assert_eq!(told(WorkDone::Part(0, 0)), "simulating: 0 % of some 0.0e0 steps");
        assert_eq!(told(WorkDone::Unknown), "simulating: for 12 s");
    }

    #[test]
    fn what_shows_it_ends_with_what_is_shown() {
        let begun = Instant::now();
        drop(show("waiting", "steps", || WorkDone::Unknown));
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_bar_has_a_length_where_that_is_known() {
        let bar = new_bar("reading", "bytes", WorkDone::Part(0, 0));
        draw(&bar, WorkDone::Part(3, 10));
        assert_eq!((bar.position(), bar.length()), (3, Some(10)));
        assert_eq!(new_bar("judging", "", WorkDone::Unknown).length(), None);
    }
}
