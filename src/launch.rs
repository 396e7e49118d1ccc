//! Runs an MPI program to its end: shows its progress, notices when it hangs, tells why it failed.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, IsTerminal, Read},
    path::Path,
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use records::progress::Progress;

use crate::process;

/// How many of the program's last lines an error shows.
const LINES_SHOWN: usize = 12;

enum Event {
    Progress(Progress),
    Line(String),
}

/// Runs `command` to its end.
///
/// `step` names it in progress and errors; `launched` is where it is written down while it runs.
/// It is ended when it makes no progress for `patience`.
///
/// # Errors
/// It cannot be started, fails, hangs, or we are interrupted; its last lines are told.
pub fn run(mut command: Command, step: &str, launched: &Path, patience: Duration) -> Result<()> {
    let shown = shown(&command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        process::spawn(&mut command).with_context(|| format!("{step}: cannot start `{shown}`"))?;
    process::write_down(&child, launched)?;
    let (sender, events) = mpsc::channel();
    let readers = [
        child.stdout.take().map(|pipe| forward(pipe, sender.clone())),
        child.stderr.take().map(|pipe| forward(pipe, sender)),
    ];
    let mut bar = Bar::new(step);
    let mut last = VecDeque::new();
    let mut moved = Instant::now();
    let ended = loop {
        match events.recv_timeout(Duration::from_millis(100)) {
            Ok(Event::Progress(progress)) => {
                moved = Instant::now();
                bar.show(&progress);
            }
            Ok(Event::Line(line)) => {
                moved = Instant::now();
                note(&mut last, line);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break child.wait()?,
        }
        if process::interrupted() {
            process::end(&mut child)?;
            process::forget(launched);
            bail!("{step}: interrupted; what was recorded is kept, --resume goes on from there");
        }
        if moved.elapsed() > patience {
            process::end(&mut child)?;
            process::forget(launched);
            let seconds = patience.as_secs();
            bail!("{step}: no progress for {seconds} s, ended: `{shown}`{}", told(&last));
        }
    };
    readers.into_iter().flatten().for_each(|reader| drop(reader.join()));
    process::forget(launched);
    bar.end();
    match ended.success() {
        true => {
            last.iter()
                .filter(|line| line.starts_with("colibri-"))
                .for_each(|line| eprintln!("{line}"));
            Ok(())
        }
        false => bail!("{step}: `{shown}` {}{}", how_it_ended(ended), told(&last)),
    }
}

fn how_it_ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("failed with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "failed".into(),
    }
}

fn forward(pipe: impl Read + Send + 'static, events: Sender<Event>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let event = match Progress::parse(&line) {
                Some(progress) => Event::Progress(progress),
                None => Event::Line(line),
            };
            if events.send(event).is_err() {
                break;
            }
        }
    })
}

fn note(last: &mut VecDeque<String>, line: String) {
    if !line.is_empty() {
        last.push_back(line);
        while last.len() > LINES_SHOWN {
            last.pop_front();
        }
    }
}

fn told(last: &VecDeque<String>) -> String {
    match last.len() {
        0 => "; it said nothing".into(),
        _ => last.iter().fold("; it said:".into(), |text, line| text + "\n    " + line),
    }
}

/// A command as one would type it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// A bar with an estimate of the end on a terminal, a plain line every ten seconds elsewhere.
struct Bar {
    step: String,
    bar: Option<ProgressBar>,
    told: Option<Instant>,
}

impl Bar {
    fn new(step: &str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            let template = "{prefix} [{bar:30}] {pos}/{len} {msg} (ends in {eta})";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(step.to_owned());
            bar
        });
        Bar { step: step.into(), bar, told: None }
    }

    fn show(&mut self, progress: &Progress) {
        match &self.bar {
            Some(bar) => {
                bar.set_length(progress.of);
                bar.set_position(progress.done);
                bar.set_message(progress.step.clone());
            }
            None if self.told.is_none_or(|told| told.elapsed() >= Duration::from_secs(10)) => {
                let Progress { step, done, of } = progress;
                eprintln!("{}: {done}/{of} {step}", self.step);
                self.told = Some(Instant::now());
            }
            None => {}
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, patience: Duration) -> Result<()> {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, "step", &dir.path().join("launched.json"), patience)
    }

    #[test]
    fn a_failing_program_is_named_with_its_last_words() {
        let error = sh("echo broken pump >&2; exit 3", Duration::from_secs(9)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("step: `sh -c") && text.contains("exit code 3"), "{text}");
        assert!(text.contains("\n    broken pump"), "{text}");
    }

    #[test]
    fn a_hanging_program_is_ended() {
        let error = sh("sleep 600", Duration::from_millis(300)).unwrap_err().to_string();
        assert!(error.contains("no progress for"), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let command = Command::new("no-such-launcher");
        let launched = dir.path().join("launched.json");
        let error = run(command, "step", &launched, Duration::from_secs(1)).unwrap_err();
        assert!(format!("{error:#}").contains("cannot start `no-such-launcher`"), "{error:#}");
    }
}
