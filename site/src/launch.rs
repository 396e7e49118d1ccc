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

use crate::{allocation::Allocation, begun, crash, launched, launcher::Symptoms, process};

/// What a user wants to know first of a job that did not end well: whether its run can go on. `launched` is in the run's
/// directory; the commands that take `--resume` have written their options there by the time they record anything.
pub(crate) fn kept(launched: &Path) -> &'static str {
    match launched.parent().is_some_and(begun::can_go_on) {
        true => "; what was recorded is kept, and --resume continues from there",
        false => "",
    }
}

/// How many of the program's last lines an error shows.
pub(crate) const LINES_SHOWN: usize = 12;

enum JobEvent {
    Progress(Progress),
    Line(String),
}

/// A job to run.
pub struct LaunchedJob<'a> {
    /// What starts it.
    pub command: Command,
    /// Its name in progress and errors.
    pub step: &'a str,
    /// Where it is written down while it runs.
    pub launched: &'a Path,
    /// It is ended when it makes no progress for so long.
    pub patience: Duration,
    /// By what it shows that it was started wrongly.
    pub symptoms: Option<Symptoms>,
    /// In what it runs.
    pub allocation: Option<&'a Allocation>,
}

/// The ranks were started apart, each as a job of its own; what to do about it is printed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartedApart(String);

/// Why a job did not end well.
#[derive(Debug)]
struct Failure {
    /// In words, with its last lines.
    text: String,
    /// Which rank crashed, and how, in short; nothing where that is not said.
    crash: Option<String>,
    /// It was started wrongly.
    is_apart: bool,
    /// One of our programs has said what is wrong.
    is_explained: bool,
}

impl LaunchedJob<'_> {
    /// Runs it to its end. One that fails is tried once more: a node or a network may have failed
    /// for a moment, and what was recorded is kept.
    ///
    /// # Errors
    /// It cannot be started, fails twice, or we are interrupted; its last lines are printed.
    pub fn run(mut self) -> Result<()> {
        let Some(first) = self.attempt()? else { return Ok(()) };
        self.refuse_hopeless_retry(&first)?;
        say!("{}\n{}: trying once more", first.text, self.step);
        let Some(second) = self.attempt()? else { return Ok(()) };
        self.refuse_hopeless_retry(&second)?;
        let crash = second.crash.map(|crash| format!("\n{crash}")).unwrap_or_default();
        bail!(
            "{} (twice; the first failure is shown above){crash}{}",
            second.text,
            kept(self.launched)
        )
    }

    /// Whether another trial may end better.
    ///
    /// # Errors
    /// It would fail in the same way, or the allocation has ended.
    fn refuse_hopeless_retry(&self, failure: &Failure) -> Result<()> {
        if failure.is_apart {
            return Err(StartedApart(failure.text.clone()).into());
        }
        if failure.is_explained {
            bail!("{}", failure.text);
        }
        let Some((allocation, why)) = self.allocation.and_then(|it| Some((it, it.ended()?))) else {
            return Ok(());
        };
        bail!(
            "{}: {}'s job {} has ended ({why}){}",
            self.step,
            allocation.system.title(),
            allocation.job,
            kept(self.launched)
        )
    }

    /// Runs it once; how it failed, if it did.
    fn attempt(&mut self) -> Result<Option<Failure>> {
        let (step, shown) = (self.step, shown(&self.command));
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = process::spawn(&mut self.command)
            .with_context(|| format!("{step}: cannot start `{shown}`"))?;
        launched::write_down(&child, self.launched)?;
        let (sender, events) = mpsc::channel();
        let readers = [
            child.stdout.take().map(|pipe| forward(pipe, sender.clone())),
            child.stderr.take().map(|pipe| forward(pipe, sender)),
        ];
        let mut bar = ProgressDisplay::new(step);
        let mut said = JobOutput::new(self.symptoms.clone());
        let mut moved = Instant::now();
        let ended = loop {
            match events.recv_timeout(Duration::from_millis(100)) {
                Ok(JobEvent::Progress(progress)) => {
                    moved = Instant::now();
                    bar.show(&progress);
                }
                Ok(JobEvent::Line(line)) => {
                    moved = Instant::now();
                    said.note(line);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break child.wait()?,
            }
            if process::interrupted() {
                process::end(&mut child)?;
                launched::forget(self.launched);
                bail!("{step}: interrupted{}", kept(self.launched));
            }
            if moved.elapsed() > self.patience {
                process::end(&mut child)?;
                launched::forget(self.launched);
                let seconds = self.patience.as_secs();
                let how = format!("no progress for {seconds} s, ended: `{shown}`");
                return Ok(Some(said.failure(step, &how)));
            }
        };
        readers.into_iter().flatten().for_each(|reader| drop(reader.join()));
        launched::forget(self.launched);
        bar.end();
        if !ended.success() {
            return Ok(Some(said.failure(step, &format!("`{shown}` {}", how_it_ended(ended)))));
        }
        said.of_ours().for_each(|line| say!("{line}"));
        Ok(None)
    }
}

/// What a job has said.
struct JobOutput {
    last: VecDeque<String>,
    symptoms: Option<Symptoms>,
    shows_symptom: bool,
    /// One of our programs has said what is wrong.
    is_explained: bool,
    /// The first rank that crashed.
    crash: Option<String>,
}

impl JobOutput {
    fn new(symptoms: Option<Symptoms>) -> Self {
        JobOutput {
            last: VecDeque::new(),
            symptoms,
            shows_symptom: false,
            is_explained: false,
            crash: None,
        }
    }

    fn note(&mut self, line: String) {
        if line.is_empty() {
            return;
        }
        let words = self.symptoms.as_ref().map_or(&[][..], |symptoms| &symptoms.words);
        self.shows_symptom |= words.iter().any(|words| line.contains(words));
        self.is_explained |= is_of_ours(&line) && line.contains(": error");
        self.crash = self.crash.take().or_else(|| crash::in_line(&line));
        self.last.push_back(line);
        while self.last.len() > LINES_SHOWN {
            self.last.pop_front();
        }
    }

    /// The last lines of our own programs.
    fn of_ours(&self) -> impl Iterator<Item = &String> {
        self.last.iter().filter(|line| is_of_ours(line))
    }

    fn failure(&self, step: &str, how: &str) -> Failure {
        let mut text = format!("{step}: {how}{}", as_typed(&self.last));
        if let (true, Some(symptoms)) = (self.shows_symptom, &self.symptoms) {
            text += &format!("\n{}", (symptoms.advice)());
        }
        Failure {
            text,
            crash: self.crash.clone(),
            is_apart: self.shows_symptom,
            is_explained: self.is_explained,
        }
    }
}

fn is_of_ours(line: &str) -> bool {
    line.starts_with("colibri-")
}

pub(crate) fn how_it_ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("failed with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "failed".into(),
    }
}

fn forward(
    pipe: impl Read + Send + 'static,
    events: Sender<JobEvent>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let event = match Progress::parse(&line) {
                Some(progress) => JobEvent::Progress(progress),
                None => JobEvent::Line(line),
            };
            if events.send(event).is_err() {
                break;
            }
        }
    })
}

pub(crate) fn as_typed(last: &VecDeque<String>) -> String {
    match last.len() {
        0 => "; it printed nothing".into(),
        _ => last.iter().fold("; it said:".into(), |text, line| text + "\n    " + line),
    }
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// A bar with an estimate of the end on a terminal, a plain line every ten seconds elsewhere.
struct ProgressDisplay {
    step: String,
    bar: Option<ProgressBar>,
    printed: Option<Instant>,
}

impl ProgressDisplay {
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
        ProgressDisplay { step: step.into(), bar, printed: None }
    }

    fn show(&mut self, progress: &Progress) {
        match &self.bar {
            Some(bar) => {
                bar.set_length(progress.of);
                bar.set_position(progress.done);
                bar.set_message(progress.step.clone());
            }
            None if self
                .printed
                .is_none_or(|printed| printed.elapsed() >= Duration::from_secs(10)) =>
            {
                let Progress { step, done, of } = progress;
                say!("{}: {done}/{of} {step}", self.step);
                self.printed = Some(Instant::now());
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

    fn job(command: Command, launched: &Path, patience: Duration) -> LaunchedJob<'_> {
        LaunchedJob { command, step: "step", launched, patience, symptoms: None, allocation: None }
    }

    /// In a directory of its own.
    fn sh(script: &str, patience: Duration) -> (tempfile::TempDir, Result<()>) {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(dir.path());
        let result = job(command, &dir.path().join("launched.json"), patience).run();
        (dir, result)
    }

    /// How often a script that leaves a mark each time was started.
    fn starts(dir: &tempfile::TempDir) -> usize {
        std::fs::read_to_string(dir.path().join("starts")).unwrap().lines().count()
    }

    const START: &str = "echo start >> starts";

    #[test]
    fn a_failing_program_is_named_with_its_last_words_after_a_second_trial() {
        let script = format!("{START}; echo broken pump >&2; exit 3");
        let (dir, result) = sh(&script, Duration::from_secs(9));
        let text = result.unwrap_err().to_string();
        assert!(text.contains("step: `sh -c") && text.contains("exit code 3"), "{text}");
        assert!(text.contains("\n    broken pump") && text.contains("twice"), "{text}");
        assert_eq!(starts(&dir), 2);
    }

    #[test]
    fn a_crash_is_told_in_a_line_at_the_end() {
        let script = "echo 'srun: error: v1: task 3: Segmentation fault' >&2; seq 20; exit 1";
        let (_dir, result) = sh(script, Duration::from_secs(9));
        let text = result.unwrap_err().to_string();
        let last = text.lines().last().unwrap();
        assert_eq!(last, "rank 3 on v1 crashed: Segmentation fault");
    }

    #[test]
    fn a_run_is_said_to_go_on_where_it_can() {
        let fails = |options: Option<&str>| {
            let dir = tempfile::tempdir().unwrap();
            if let Some(name) = options {
                std::fs::write(dir.path().join(name), "{}").unwrap();
            }
            let mut command = Command::new("sh");
            command.args(["-c", "exit 1"]).current_dir(dir.path());
            let launched = dir.path().join("launched.json");
            job(command, &launched, Duration::from_secs(9)).run().unwrap_err().to_string()
        };
        assert!(fails(Some("tune.json")).contains("--resume continues from there"));
        for of_others in [None, Some("platform.json")] {
            let text = fails(of_others);
            assert!(!text.contains("--resume") && !text.contains("kept"), "{text}");
        }
    }

    #[test]
    fn what_fails_once_is_no_failure() {
        let script = format!("{START}; [ $(wc -l < starts) = 2 ] || kill -ABRT $$");
        let (dir, result) = sh(&script, Duration::from_secs(9));
        result.unwrap();
        assert_eq!(starts(&dir), 2);
    }

    #[test]
    fn what_our_programs_call_an_error_is_not_tried_again() {
        let script = format!("{START}; echo 'colibri-mpi: error on rank 0: wet'; exit 1");
        let (dir, result) = sh(&script, Duration::from_secs(9));
        assert!(result.unwrap_err().to_string().contains("rank 0: wet"));
        assert_eq!(starts(&dir), 1);
    }

    #[test]
    fn a_wrong_start_is_told_with_advice_though_much_was_said_since() {
        let dir = tempfile::tempdir().unwrap();
        let launched = dir.path().join("launched.json");
        let mut command = Command::new("sh");
        command.args(["-c", "echo start >> starts; echo all alone; seq 100; exit 1"]);
        command.current_dir(dir.path());
        let symptoms = Symptoms { words: vec!["all alone"], advice: || "hold hands".into() };
        let job =
            LaunchedJob { symptoms: Some(symptoms), ..job(command, &launched, Duration::MAX) };
        let error = job.run().unwrap_err();
        assert!(error.is::<StartedApart>());
        let text = error.to_string();
        assert!(text.ends_with("\n    100\nhold hands"), "{text}");
        assert_eq!(starts(&dir), 1);
    }

    #[test]
    fn a_hanging_program_is_ended() {
        let (_dir, result) = sh("sleep 600", Duration::from_millis(300));
        let error = result.unwrap_err().to_string();
        assert!(error.contains("no progress for"), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let command = Command::new("no-such-launcher");
        let launched = dir.path().join("launched.json");
        let error = job(command, &launched, Duration::from_secs(1)).run().unwrap_err();
        assert!(format!("{error:#}").contains("cannot start `no-such-launcher`"), "{error:#}");
    }
}
