//! What the script of a job tells of it.
//!
//! A script is read, not run: what a launcher's line starts is taken where every word of it is understood.
//! Otherwise nothing is guessed: the line is named, and the user is asked.

mod forcing;
mod granted;
mod launch;
mod launch_options;
mod launchers;
mod shell;
mod variables;

use std::{collections::BTreeMap, path::PathBuf};

use records::{Collective, FileError, Layout, Method, number::check_procs};

use self::{
    forcing::ForcedAlgorithms,
    granted::{Granted, StartedRanks},
    launch::{names_launcher, started, without_keywords},
    shell::{ShellCommand, ShellText},
    variables::Variables,
};
pub use self::{forcing::check_forced, launch::launched_ranks};
use crate::Lines;

/// What a job's script tells of it.
#[derive(Debug, Clone, Default)]
pub struct Script {
    path: PathBuf,
    /// What starts ranks, in the order of the lines.
    launches: Vec<LaunchLine>,
    /// Modules of MPI libraries, `openmpi/4.0.3-qpsxmnc`.
    pub library: String,
    /// What is set in the environment, `UCX_NET_DEVICES=mlx5_0:1`.
    pub settings: Vec<String>,
    forced: ForcedAlgorithms,
    /// Whether its environment says where ranks run, or in which order.
    is_placed: bool,
}

/// A command that starts ranks, or may.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LaunchLine {
    line: u64,
    text: String,
    /// Or why it is not understood.
    started: Result<StartedRanks, String>,
}

/// How the names of modules of MPI libraries begin.
const LIBRARIES: [&str; 6] = ["openmpi", "mpich", "mvapich", "intel-mpi", "impi", "cray-mpich"];
/// Variables by which launchers place ranks, or parts of their names.
const PLACING_VARIABLES: [&str; 4] =
    ["_MCA_rmaps", "SLURM_DISTRIBUTION", "MPICH_RANK_REORDER_METHOD", "I_MPI_PERHOST"];
/// Programs that only keep what they are given.
const KEEPING: [&str; 2] = ["cat", "tee"];

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// It cannot be read, or a number in it is none.
    pub fn read(mut lines: Lines<'_>) -> Result<Self, FileError> {
        let text = ShellText::read(&mut lines)?;
        let mut granted = Granted::default();
        for (line, comment) in &text.comments {
            granted.take(comment).map_err(|(field, problem)| {
                FileError::new(lines.path(), problem).at_line(*line).in_field(field)
            })?;
        }
        let mut script = Script { path: lines.path().to_owned(), ..Script::default() };
        let mut variables = Variables::default();
        for command in &text.commands {
            let words = shlex::split(&command.text).unwrap_or_default();
            let words = without_keywords(&words);
            variables.take(words);
            script.take(words, &command.text);
            script.forced.take(command.line, words, &command.text);
        }
        granted.with(&mut variables);
        for command in text.commands {
            if let Some(started) = of_command(&command, &granted, &variables) {
                let ShellCommand { line, text, .. } = command;
                script.launches.push(LaunchLine { line, text, started });
            }
        }
        Ok(script)
    }

    /// What a command loads and sets.
    fn take(&mut self, words: &[String], text: &str) {
        match words {
            [module, load, names @ ..] if module == "module" && load == "load" => {
                let is_library =
                    |name: &&String| LIBRARIES.iter().any(|begin| name.starts_with(begin));
                if let Some(name) = names.iter().rfind(is_library) {
                    self.library.clone_from(name);
                }
            }
            [export, ..] if export == "export" => {
                self.settings.extend(text.strip_prefix("export ").map(|it| it.trim().to_owned()));
            }
            _ => {}
        }
        let is_placing = |word: &String| {
            word.split_once('=')
                .is_some_and(|(name, _)| PLACING_VARIABLES.iter().any(|it| name.contains(it)))
        };
        self.is_placed |= words.iter().any(is_placing);
    }

    /// What calls of a collective were forced to run; nothing where the script forces nothing.
    ///
    /// # Errors
    /// It does, and what does not follow; why, with the line.
    pub fn forced(&self, collective: Collective) -> Option<Result<Method, String>> {
        self.forced.method(collective, &self.path, self.launches.len())
    }

    /// Whether it forces any algorithm.
    pub fn forces_any(&self) -> bool {
        !self.forced.is_empty()
    }

    /// Where the ranks ran, where that is sure.
    pub fn layout(&self) -> Option<Layout> {
        self.ranks().ok().filter(|_| !self.is_placed)?;
        let mut layouts =
            self.launches.iter().map(|it| it.started.as_ref().ok().and_then(|it| it.layout));
        let first = layouts.next()??;
        layouts.all(|layout| layout == Some(first)).then_some(first)
    }

    /// Ranks in all: what its launchers start, where that is understood, and the same of all.
    ///
    /// # Errors
    /// It does not follow; why, with the line.
    pub fn ranks(&self) -> Result<u32, String> {
        let path = self.path.display();
        let mut lines: BTreeMap<u32, u64> = BTreeMap::new();
        for LaunchLine { line, text, started } in &self.launches {
            match started {
                Ok(started) => drop(lines.entry(started.ranks).or_insert(*line)),
                Err(why) => {
                    let text = records::quoted(text);
                    return Err(format!("{path}, line {line}: {text} is not understood: {why}"));
                }
            }
        }
        match (lines.len(), lines.first_key_value()) {
            (1, Some((ranks, line))) => match check_procs(*ranks) {
                Ok(()) => Ok(*ranks),
                Err(problem) => Err(format!("{path}, line {line}: the number of ranks {problem}")),
            },
            (0, _) => Err(format!(
                "{path}: no line starts ranks by a launcher that is known (srun, mpirun, mpiexec, ...)"
            )),
            _ => {
                let each = lines.iter().map(|(ranks, line)| format!("{ranks} (line {line})"));
                let each: Vec<String> = each.take(8).collect();
                Err(format!("{path}: launchers start {} ranks", each.join(" and ")))
            }
        }
    }
}

fn of_command(
    command: &ShellCommand,
    granted: &Granted,
    variables: &Variables,
) -> Option<Result<StartedRanks, String>> {
    let filled = variables.filled(&command.text);
    let Some(words) = shlex::split(&filled) else {
        return names_launcher(&filled).then(|| Err("a quote is not closed".to_owned()));
    };
    let keeps = words.first().is_some_and(|first| KEEPING.contains(&first.as_str()));
    match names_launcher(&command.input) && !keeps {
        true => Some(Err("what is given to it as its input is not followed".into())),
        false => started(&words, granted, variables),
    }
}

#[cfg(test)]
mod tests;
