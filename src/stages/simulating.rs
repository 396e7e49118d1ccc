//! Shows how far long simulations are: on stderr, a bar on a terminal, plain lines elsewhere.

use std::{
    io::{IsTerminal as _, stderr},
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use models::simulated::UNDER_WAY;

/// How often it is looked how far they are.
const OFTEN: Duration = Duration::from_millis(250);
/// How often a line is written where there is no terminal.
const SELDOM: Duration = Duration::from_secs(10);

/// Shows it until dropped.
pub struct Shown {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Begins to look.
pub fn show() -> Shown {
    let (end, ended) = channel();
    let thread = thread::spawn(move || {
        let mut bar = stderr().is_terminal().then(bar);
        let mut told = Instant::now();
        while ended.recv_timeout(OFTEN) == Err(RecvTimeoutError::Timeout) {
            let under_way = UNDER_WAY.steps();
            match (&mut bar, under_way) {
                (Some(bar), Some((done, of))) => {
                    bar.set_length(of);
                    bar.set_position(done);
                }
                (Some(bar), None) => bar.reset(),
                (None, Some((done, of))) if told.elapsed() >= SELDOM => {
                    told = Instant::now();
                    eprintln!("{}", line(done, of));
                }
                (None, _) => {}
            }
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    });
    Shown { end: Some(end), thread: Some(thread) }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // It ends when nobody is left to be asked; what it showed was no result.
            let _ = thread.join();
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let template = "simulating [{bar:30}] {percent} % of {human_len} steps (ends in {eta})";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

fn line(done: u64, of: u64) -> String {
    let percent = 100.0 * done as f64 / of.max(1) as f64;
    format!("simulating: {percent:.0} % of some {:.1e} steps", of as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_how_much_is_done() {
        assert_eq!(line(250, 1000), "simulating: 25 % of some 1.0e3 steps");
        assert_eq!(line(0, 0), "simulating: 0 % of some 0.0e0 steps");
    }

    #[test]
    fn what_shows_it_ends_with_what_is_shown() {
        let begun = Instant::now();
        drop(show());
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}
