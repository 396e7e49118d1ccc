//! The script by which Slurm runs a command, and runs it again where the job was requeued.

use std::{
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Result;
use records::{FileError, document};

use crate::{begun::GivenOptions, template::quoted, usage};

/// What the script is to run.
pub struct BatchScript<'a> {
    /// The directory of the run.
    pub directory: &'a Path,
    /// The subcommand's options, which go into the script.
    pub given: &'a GivenOptions,
    /// Options of sbatch's, as on its command line.
    pub options: &'a str,
    /// What the command may take; an application's own runs are not in it.
    pub budget: Duration,
    /// Whether it runs an application, whose time is not known.
    pub runs_application: bool,
}

impl BatchScript<'_> {
    /// Writes it beside the run's directory; its path.
    ///
    /// # Errors
    /// It is there already, or can't be written; the options hold a quote that is not closed.
    pub fn write(&self) -> Result<PathBuf> {
        let Some(words) = shlex::split(self.options) else {
            usage!("--sbatch '{}' has a quote that is not closed", self.options);
        };
        if self.runs_application && !has(&words, "-t", "--time") {
            usage!(
                "--sbatch: how long the application runs is not known; give the job's time limit, as in \
                 --sbatch='--time=1:00:00', for the budget and five runs of it at least"
            );
        }
        let mut name = self.directory.as_os_str().to_owned();
        name.push(".sbatch");
        let path = PathBuf::from(name);
        if path.exists() {
            usage!("{}: already exists; submit it, or remove it first", path.display());
        }
        let folder = env::current_dir().map_err(|e| FileError::io(Path::new("."), "find", &e))?;
        let command = env::current_exe().map_err(|e| FileError::io(&folder, "find", &e))?;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(|e| FileError::io(parent, "make", &e))?;
        }
        document::write_text(&path, &self.text(&words, &folder, &command))?;
        Ok(path)
    }

    fn text(&self, words: &[String], folder: &Path, command: &Path) -> String {
        let directory = self.directory.display().to_string();
        let mut text = "#!/bin/bash\n".to_owned();
        let mut line = |option: &str| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "#SBATCH {option}");
        };
        if !self.options.is_empty() {
            line(self.options);
        }
        if !has(words, "-t", "--time") {
            line(&format!("--time={}", minutes(self.budget)));
        }
        if !has(words, "-o", "--output") {
            line(&format!("--output={}", quoted(&format!("{directory}.log"))));
        }
        // Begun again, or requeued, the job goes on with what is recorded.
        line("--requeue");
        line("--open-mode=append");
        let mut run = vec!["tune".to_owned(), directory, "--resume".into()];
        run.extend(self.given.words());
        let run: Vec<String> = run.iter().map(|word| quoted(word)).collect();
        let (folder, command) =
            (quoted(&folder.display().to_string()), quoted(&command.display().to_string()));
        text += &format!("cd {folder} || exit\nexec {command} {}\n", run.join(" "));
        text
    }
}

/// Whether an option is given in one of its two forms.
fn has(words: &[String], short: &str, long: &str) -> bool {
    let is_long = |word: &String| word == long || word.starts_with(&format!("{long}="));
    words.iter().any(|word| word.starts_with(short) && !word.starts_with("--") || is_long(word))
}

/// The time limit, in minutes: the budget, and what starting jobs and judging take beyond it.
fn minutes(budget: Duration) -> u64 {
    (budget.mul_f64(1.3).as_secs() + 120).div_ceil(60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(options: &str) -> String {
        let given = GivenOptions::of(
            "tune",
            [("--", "./a b"), ("budget", "3m"), ("launcher", "srun -n {np} 'x y'")],
        );
        let script = BatchScript {
            directory: Path::new("my run"),
            given: &given,
            options,
            budget: Duration::from_secs(180),
            runs_application: false,
        };
        let words = shlex::split(options).unwrap();
        script.text(&words, Path::new("/home/a b"), Path::new("/opt/colibri"))
    }

    #[test]
    fn the_script_runs_the_same_and_resumes() {
        let text = text("-N 4 -n 8");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], ["#!/bin/bash", "#SBATCH -N 4 -n 8", "#SBATCH --time=6"]);
        assert!(lines.contains(&"#SBATCH --requeue"), "{text}");
        assert!(lines.contains(&"#SBATCH --output='my run.log'"), "{text}");
        assert!(lines.contains(&"cd '/home/a b' || exit"), "{text}");
        let last = shlex::split(lines.last().unwrap()).unwrap();
        assert_eq!(
            last,
            [
                "exec",
                "/opt/colibri",
                "tune",
                "my run",
                "--resume",
                "--budget=3m",
                "--launcher=srun -n {np} 'x y'",
                "--",
                "./a b"
            ]
        );
    }

    #[test]
    fn what_the_user_has_said_is_not_said_again() {
        for options in ["-t 10 -o x", "--time=10 --output=x", "-t10 -ox"] {
            let text = text(options);
            assert_eq!(text.matches("#SBATCH").count(), 3, "{text}");
        }
        assert!(!text("").contains("#SBATCH \n"));
    }
}
