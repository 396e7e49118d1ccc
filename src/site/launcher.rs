//! How MPI programs are started at a site: `mpirun` found on PATH, Slurm's `srun`, or what the
//! user says.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use libraries::{JobStart, MpiLibrary};

use crate::{
    error::usage,
    site::{
        process, programs,
        slurm::{self, Allocation, SRUN},
    },
};

/// Words in what a job says by which it shows that it was started wrongly.
#[derive(Debug, Clone)]
pub struct Symptoms {
    /// Any of these, in one line.
    pub words: Vec<&'static str>,
    /// What to do about it.
    pub advice: fn() -> String,
}

/// A launcher: words in which `{np}` and `{nodes}` stand for numbers.
#[derive(Debug, Clone)]
pub struct Launcher {
    words: Vec<String>,
    /// Whose programs it starts, where that is known.
    pub library: Option<&'static dyn MpiLibrary>,
    /// What it says of its version; Slurm's starts any library's programs and says nothing of them.
    said: Option<String>,
    /// Whether the ranks share this machine, which may have fewer processors than ranks.
    local: bool,
    /// What Slurm has given us, where it has.
    allocation: Option<Allocation>,
}

impl Launcher {
    /// A launcher as the user writes it: words parted by blanks, with `{np}` in one of them.
    ///
    /// # Errors
    /// No `{np}`, the program is not on PATH, or `{nodes}` where their number is not known.
    pub fn parse(text: &str) -> Result<Self> {
        let words: Vec<String> = text.split_whitespace().map(Into::into).collect();
        if !words.iter().any(|word| word.contains("{np}")) {
            usage!(
                "the launcher '{text}' does not say where the number of ranks goes; write {{np}} \
                 there, as in 'mpirun -np {{np}}'"
            );
        }
        let program = &words[0];
        if find_on_path(program).is_none() {
            usage!(
                "the launcher '{program}' is not on PATH; give its full path, or load its module"
            );
        }
        let allocation = Allocation::at_hand()?;
        let nodes = allocation.and_then(|allocation| allocation.nodes);
        if nodes.is_none() && words.iter().any(|word| word.contains("{nodes}")) {
            usage!(
                "{{nodes}} is known only in an allocation of Slurm; write the number of nodes into \
                 the launcher '{text}'"
            );
        }
        let (said, library) = library(program)?;
        Ok(Launcher { words, library, said, local: false, allocation })
    }

    /// The launcher at hand: Slurm's inside an allocation, else `mpirun` on PATH.
    ///
    /// # Errors
    /// There is none.
    pub fn at_hand() -> Result<Self> {
        if env::var_os("SLURM_JOB_ID").is_some() && find_on_path(SRUN).is_some() {
            let mut launcher = Self::parse("srun -n {np}")?;
            if let Some(kind) = slurm::kind_for(launcher.library) {
                launcher.words.insert(1, format!("--mpi={kind}"));
            }
            return Ok(launcher);
        }
        if find_on_path("mpirun").is_none() {
            usage!(
                "no mpirun on PATH: install an MPI library (Debian: openmpi-bin), load its module, \
                 or say how programs are started by --launcher 'srun -n {{np}}'"
            );
        }
        Ok(Launcher { local: true, ..Self::parse("mpirun -np {np}")? })
    }

    /// Our MPI program, built for the library whose programs it starts.
    ///
    /// # Errors
    /// As [`programs::mpi`].
    pub fn program(&self) -> Result<PathBuf> {
        programs::mpi(self.said.as_deref())
    }

    /// Whether it is Slurm's.
    fn is_srun(&self) -> bool {
        is_srun(&self.words[0])
    }

    /// Whether it would start so many ranks, as far as that is known before.
    ///
    /// # Errors
    /// It would refuse.
    pub fn check(&self, ranks: u32) -> Result<()> {
        let shares = ["-O", "--overcommit"];
        match self.allocation {
            Some(allocation)
                if self.is_srun()
                    && !self.words.iter().any(|word| shares.contains(&word.as_str())) =>
            {
                allocation.check(ranks)
            }
            _ => Ok(()),
        }
    }

    /// By what a job shows that it was started wrongly, and what to do then.
    pub fn symptoms(&self) -> Option<Symptoms> {
        let names = |word: &String| word.starts_with("--mpi") && word != "--mpi=none";
        let names_management = self.words.iter().any(names);
        let may_start_apart = self.is_srun() && !names_management;
        may_start_apart.then_some(Symptoms { words: slurm::apart(), advice: slurm::advice })
    }

    /// The command that starts `ranks` ranks of `program` with `arguments`.
    ///
    /// `environment` holds for every rank: it is set by `env` in front of the program, which
    /// every launcher understands.
    pub fn command(
        &self,
        ranks: u32,
        environment: &[(String, OsString)],
        program: &Path,
        arguments: &[OsString],
    ) -> Command {
        // A job of fewer ranks than there are nodes can be on as many nodes only.
        let nodes = self.allocation.and_then(|it| it.nodes).unwrap_or(ranks).min(ranks);
        let words = self.words.iter().map(|word| {
            word.replace("{np}", &ranks.to_string()).replace("{nodes}", &nodes.to_string())
        });
        let mut words = words.map(OsString::from);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        let (name, value) = slurm::END_AT_ONCE;
        if self.is_srun() && env::var_os(name).is_none() {
            command.env(name, value);
        }
        if let Some(library) = self.library {
            let oversubscribed = self.local && ranks > processors();
            let start = JobStart { as_root: process::is_root(), oversubscribed };
            command.envs(library.environment(start));
        }
        if !environment.is_empty() {
            command.arg("env").args(environment.iter().map(|(name, value)| {
                let mut setting = OsString::from(name);
                setting.push("=");
                setting.push(value);
                setting
            }));
        }
        command.arg(program).args(arguments);
        command
    }

    /// As the user would write it.
    pub fn text(&self) -> String {
        self.words.join(" ")
    }
}

/// Ranks to start where nothing is said: what Slurm gave, else one for each processor.
///
/// # Errors
/// What Slurm says is not understood.
pub fn ranks_at_hand() -> Result<u32> {
    let given = Allocation::at_hand()?.and_then(|allocation| allocation.tasks);
    Ok(given.unwrap_or_else(processors))
}

fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// Where a program is: a path as it stands, a name sought on PATH.
pub fn find_on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Path::new(program).is_file().then(|| program.into());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.is_file())
}

fn is_srun(program: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == SRUN)
}

/// What a launcher says of its version, and whose programs it starts by that; Slurm's starts any
/// library's, ours for one.
fn library(program: &str) -> Result<(Option<String>, Option<&'static dyn MpiLibrary>)> {
    if is_srun(program) {
        let said = programs::library(&programs::mpi(None)?)?;
        return Ok((None, libraries::recognise(&said)));
    }
    let mut command = Command::new(program);
    let said = process::said_within(command.arg("--version"), programs::PATIENCE);
    let library = said.as_deref().and_then(libraries::recognise);
    Ok((said, library))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_without_a_place_for_the_ranks_is_refused() {
        let error = Launcher::parse("mpirun -np 8").unwrap_err().to_string();
        assert!(error.contains("write {np} there"), "{error}");
        let error = Launcher::parse("no-such-launcher {np}").unwrap_err().to_string();
        assert!(error.contains("not on PATH"), "{error}");
    }

    #[test]
    fn nodes_are_nodes_and_unknown_ones_are_refused() {
        let words = ["sh", "-N", "{nodes}", "-n", "{np}"].map(Into::into).to_vec();
        let nodes = |nodes| Some(Allocation { nodes: Some(nodes), ..Allocation::default() });
        let (said, allocation) = (None, nodes(4));
        let launcher = Launcher { words, library: None, said, local: false, allocation };
        let words = |ranks| {
            let command = launcher.command(ranks, &[], Path::new("prog"), &[]);
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(words(16), ["-N", "4", "-n", "16", "prog"]);
        assert_eq!(words(2), ["-N", "2", "-n", "2", "prog"]);
        let error = Launcher::parse("sh -N {nodes} {np}").unwrap_err().to_string();
        assert!(error.contains("{nodes}") && error.contains("write the number"), "{error}");
    }

    #[test]
    fn the_command_is_what_one_would_type() {
        let launcher = Launcher::parse("sh -c {np}").unwrap();
        let environment = [("A".to_owned(), "1".into())];
        let command = launcher.command(4, &environment, Path::new("/bin/prog"), &["--x".into()]);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert_eq!(command.get_program(), "sh");
        assert_eq!(words, ["-c", "4", "env", "A=1", "/bin/prog", "--x"]);
    }
}
