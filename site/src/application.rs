//! Runs a user's program to its end: what it prints goes to a file, and how it failed is reported.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use records::{FileError, quantity::format_duration};

use crate::{
    crash,
    launch::{LINES_SHOWN, as_typed, how_it_ended, kept, shown},
    launched,
    launcher::find_on_path,
    process, usage,
};

/// How often it is looked whether the program has ended. What is timed is the program's own, from `MPI_Init` to
/// `MPI_Finalize`.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How much of the end of a log is read for an error's last lines.
const END_OF_LOG: i64 = 8192;

/// One run of a user's program.
pub struct Application<'a> {
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// What the run is for, in messages.
    pub step: &'a str,
    /// What it prints.
    pub log: &'a Path,
    /// It is ended when it takes longer; nothing where that is not known.
    pub limit: Option<Duration>,
}

impl Application<'_> {
    /// Runs the command that starts it, once: a program that fails is the user's to mend.
    ///
    /// # Errors
    /// It cannot be started, fails, takes too long, or we are interrupted.
    pub(crate) fn run(&self, mut command: Command, launched: &Path) -> Result<()> {
        let step = self.step;
        let log = File::create(self.log).map_err(|e| FileError::io(self.log, "write", &e))?;
        let errors = log.try_clone().map_err(|e| FileError::io(self.log, "write", &e))?;
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let shown = shown(&command);
        let mut child = process::spawn(&mut command)
            .with_context(|| format!("{step}: cannot start `{shown}`"))?;
        launched::write_down(&child, launched)?;
        let begun = Instant::now();
        let ended = loop {
            if let Some(ended) = child.try_wait()? {
                break ended;
            }
            let is_late = self.limit.filter(|limit| begun.elapsed() > *limit);
            if process::interrupted() || is_late.is_some() {
                process::end(&mut child)?;
                launched::forget(launched);
                let Some(limit) = is_late else { bail!("{step}: interrupted{}", kept(launched)) };
                bail!(
                    "{step}: `{shown}` did not end within {}, and was ended{}{}",
                    format_duration(limit),
                    self.last_lines(),
                    kept(launched)
                );
            }
            std::thread::sleep(LOOK_EVERY);
        };
        launched::forget(launched);
        if !ended.success() {
            let how = how_it_ended(ended);
            bail!("{step}: `{shown}` {how}{}{}", self.last_lines(), kept(launched));
        }
        Ok(())
    }

    /// The end of its log, with the rank that crashed where a launcher tells it.
    fn last_lines(&self) -> String {
        let mut text = Vec::new();
        if let Ok(mut log) = File::open(self.log) {
            // A shorter file is read from its beginning.
            let _ = log.seek(SeekFrom::End(-END_OF_LOG));
            // What cannot be read is not shown.
            let _ = log.read_to_end(&mut text);
        }
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let crash = lines.iter().find_map(|line| crash::in_line(line));
        let last = lines.iter().rev().take(LINES_SHOWN).rev();
        let last: VecDeque<String> = last.map(|line| (*line).to_owned()).collect();
        let crash = crash.map(|crash| format!("\n{crash}")).unwrap_or_default();
        format!("{}{crash}\nall that it printed: {}", as_typed(&last), self.log.display())
    }
}

/// Programs that start others; what follows a dot in their names is a library's or an administrator's.
const LAUNCHERS: [&str; 9] =
    ["mpirun", "mpiexec", "orterun", "prterun", "srun", "aprun", "jsrun", "ibrun", "flux"];

/// Whether a program can be found, and is no launcher.
///
/// # Errors
/// It is one, or cannot be found.
pub fn check(words: &[OsString]) -> Result<()> {
    let Some(program) = words.first().map(|word| word.to_string_lossy()) else { return Ok(()) };
    let name = program.rsplit('/').next().unwrap_or_default();
    if LAUNCHERS.contains(&name.split('.').next().unwrap_or_default()) {
        usage!(
            "{program}: name the application alone behind --; how it is started is said by \
             --launcher 'mpirun -np {{np}}' --ranks 4"
        );
    }
    if find_on_path(&program).is_none() {
        usage!("{program}: there is no such program here; give the path of the application");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, limit: Option<Duration>) -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let [log, launched] = ["log", "launched.json"].map(|name| folder.path().join(name));
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let words = ["sh".into()];
        let application = Application { words: &words, step: "step", log: &log, limit };
        let ended = application.run(command, &launched);
        assert!(!launched.exists());
        let log = std::fs::read_to_string(log).unwrap();
        (ended.map_or_else(|error| error.to_string(), |()| String::new()), log)
    }

    #[test]
    fn what_it_prints_is_kept_and_how_it_failed_is_told() {
        assert_eq!(run("echo a; echo b >&2", None), (String::new(), "a\nb\n".into()));
        let (error, _) = run("seq 9999; exit 3", None);
        assert!(error.contains("step: `sh -c") && error.contains("exit code 3"), "{error}");
        assert!(error.contains("\n    9999\n") && !error.contains("    9987\n"), "{error}");
        let (error, _) = run("kill -SEGV $$", None);
        assert!(error.contains("signal 11; it printed nothing"), "{error}");
    }

    #[test]
    fn one_that_does_not_end_is_ended() {
        let (error, _) = run("echo on; sleep 600", Some(Duration::from_millis(300)));
        assert!(error.contains("did not end within 300ms") && error.contains("    on"), "{error}");
    }

    #[test]
    fn a_launcher_and_what_is_not_there_are_refused() {
        let check = |program: &str| check(&[program.into()]).map_err(|error| error.to_string());
        for launcher in ["mpirun", "/usr/bin/mpiexec.hydra", "srun"] {
            assert!(check(launcher).unwrap_err().contains("the application alone"), "{launcher}");
        }
        assert!(check("./no-such").unwrap_err().contains("there is no such program"));
        check("sh").unwrap();
    }
}
