//! How MPI programs are started at a site: by the batch system's launcher, `mpirun` found on PATH, or
//! what the user says.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use libraries::{JobStart, MpiLibrary, openmpi::OpenMpiLibrary};

use crate::{
    allocation::{Allocation, BatchSystem},
    process, programs,
    slurm::{self, SRUN},
    template::Template,
    usage,
};

/// Words in what a job says by which it shows that it was started wrongly.
#[derive(Debug, Clone)]
pub struct Symptoms {
    /// Any of these, in one line.
    pub words: Vec<&'static str>,
    /// What to do about it.
    pub advice: fn() -> String,
}

/// A launcher: words in which places such as `{np}` stand for a job's numbers.
#[derive(Debug, Clone)]
pub struct Launcher {
    template: Template,
    /// Whose programs it starts, where that is known.
    pub library: Option<&'static dyn MpiLibrary>,
    /// What it says of its version; Slurm's starts any library's programs and says nothing of them.
    said: Option<String>,
    /// Whether the ranks share this machine, which may have fewer processors than ranks.
    local: bool,
    /// What a batch system has given us, where it has.
    allocation: Option<Allocation>,
    /// Other launchers to try where this one turns out to start ranks apart.
    others: Vec<Template>,
}

impl Launcher {
    /// A launcher as the user writes it: words as in a shell, with `{np}` in one of them.
    ///
    /// # Errors
    /// As [`Template::parse`]; the program is not on PATH, or one of an MPI library that does not say its version.
    pub fn parse(text: &str) -> Result<Self> {
        let allocation = Allocation::at_hand()?;
        let template = Template::parse(text, allocation.as_ref())?;
        let program = template.program();
        if find_on_path(program).is_none() {
            usage!(
                "the launcher '{program}' is not on PATH; give its full path, or load its module"
            );
        }
        let (said, library) = library(program)?;
        Ok(Launcher { template, library, said, local: false, allocation, others: Vec::new() })
    }

    /// The launcher at hand: the batch system's inside an allocation, else `mpirun` on PATH.
    ///
    /// # Errors
    /// There is none.
    pub fn at_hand() -> Result<Self> {
        let allocation = Allocation::at_hand()?;
        let system = allocation.as_ref().map(|held| held.system);
        match system {
            Some(BatchSystem::Slurm) if find_on_path(SRUN).is_some() => return Self::srun(),
            Some(BatchSystem::Flux) => return Self::parse("flux run -N {nodes} -n {np}"),
            // PALS starts the programs of every library that Cray's machines have.
            Some(BatchSystem::Pbs) if find_on_path("aprun").is_some() => {
                return Self::parse("mpiexec -n {np} --ppn {ppn}");
            }
            _ => {}
        }
        if find_on_path("mpirun").is_none() {
            usage!(
                "no mpirun on PATH: install an MPI library (Debian: openmpi-bin), load its module, \
                 or say how programs are started by --launcher 'srun -n {{np}}'"
            );
        }
        match allocation {
            Some(Allocation { host_file: Some(file), .. }) => Self::mpirun_over(&file),
            _ => Ok(Launcher { local: true, ..Self::parse("mpirun -np {np}")? }),
        }
    }

    /// Slurm's, with the process management that the library takes; what else Slurm offers is tried
    /// where that turns out wrong.
    fn srun() -> Result<Self> {
        let mut launcher = Self::parse("srun -n {np}")?;
        let plain = launcher.template.clone();
        if let Some(kind) = slurm::kind_for(launcher.library) {
            launcher.template = plain.with(format!("--mpi={kind}"));
        }
        let others = slurm::other_kinds().into_iter().map(|kind| plain.with(kind));
        launcher.others = others.filter(|other| *other != launcher.template).collect();
        Ok(launcher)
    }

    /// `mpirun` that is given the allocation's nodes: not every build knows the batch system.
    fn mpirun_over(file: &str) -> Result<Self> {
        let launcher = Self::parse("mpirun -np {np}")?;
        let is_open_mpi =
            launcher.library.is_some_and(|it| it.library() == OpenMpiLibrary.library());
        let option = if is_open_mpi { "--hostfile" } else { "-f" };
        let file = shlex::try_quote(file)?;
        Self::parse(&format!("mpirun {option} {file} -np {{np}}"))
    }

    /// This launcher by the next way to start ranks, where there is another one to try.
    pub fn next(mut self) -> Option<Self> {
        if self.others.is_empty() {
            return None;
        }
        self.template = self.others.remove(0);
        Some(self)
    }

    /// Starts jobs as one of before did, where that is one of its ways.
    pub fn go_on_as(&mut self, text: &str) {
        let known = self.others.iter().find(|other| other.text() == text);
        if let Some(known) = known {
            self.template = known.clone();
        }
    }

    /// What a batch system has given us, where it has.
    pub fn allocation(&self) -> Option<&Allocation> {
        self.allocation.as_ref()
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
        is_srun(self.template.program())
    }

    /// Whether it would start so many ranks, as far as that is known before.
    ///
    /// # Errors
    /// It would refuse.
    pub fn check(&self, ranks: u32) -> Result<()> {
        let shares = ["-O", "--overcommit"];
        let shared = self.template.words().iter().any(|word| shares.contains(&word.as_str()));
        match &self.allocation {
            Some(allocation) if self.is_srun() && !shared => allocation.check_srun(ranks),
            _ => Ok(()),
        }
    }

    /// By what a job shows that it was started wrongly, and what to do then.
    pub fn symptoms(&self) -> Option<Symptoms> {
        let names = |word: &String| word.starts_with("--mpi") && word != "--mpi=none";
        let names_management = self.template.words().iter().any(names);
        let may_start_apart = self.is_srun() && (!names_management || !self.others.is_empty());
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
        let nodes = self.allocation.as_ref().and_then(|held| held.nodes);
        let mut words = self.template.filled(ranks, nodes);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        if self.is_srun() {
            for (name, value) in [slurm::END_AT_ONCE, slurm::RING_FENCE] {
                if env::var_os(name).is_none() {
                    command.env(name, value);
                }
            }
            command.env(slurm::WHOLE_ENVIRONMENT.0, slurm::WHOLE_ENVIRONMENT.1);
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
        self.template.text()
    }
}

/// Ranks to start where nothing is said: what a batch system gave, else one for each processor.
///
/// # Errors
/// What it says is not understood.
pub fn ranks_at_hand() -> Result<u32> {
    let given = Allocation::at_hand()?.and_then(|allocation| allocation.tasks);
    Ok(given.unwrap_or_else(processors))
}

fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// Where a program is: a path as it stands, a name looked for on PATH.
pub fn find_on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Path::new(program).is_file().then(|| program.into());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.is_file())
}

/// Whether a program is Slurm's launcher.
pub fn is_srun(program: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == SRUN)
}

/// Names of MPI libraries' own launchers, which all tell their version, before what tells several of a name apart.
const OF_LIBRARIES: [&str; 4] = ["mpirun", "mpiexec", "orterun", "prterun"];

/// What a launcher says of its version, and whose programs it starts by that; Slurm's starts any
/// library's, ours for one.
///
/// # Errors
/// A library's own does not tell it: it is broken, and no other one can tell whose programs it starts.
fn library(program: &str) -> Result<(Option<String>, Option<&'static dyn MpiLibrary>)> {
    if is_srun(program) {
        let said = programs::library(&programs::mpi(None)?)?;
        return Ok((None, libraries::recognise(&said)));
    }
    let mut command = Command::new(program);
    let answer = process::answer(command.arg("--version"));
    let said = answer.as_ref().map(|(_, said)| said.clone());
    let library = said.as_deref().and_then(libraries::recognise);
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let is_of_library = OF_LIBRARIES.contains(&name.split('.').next().unwrap_or_default());
    let fault = match answer {
        Some((status, _)) if status.success() => None,
        Some((status, said)) => Some(format!("{status}; it printed: {}", said.trim())),
        None => Some(format!("no answer within {} s", process::ANSWER_TIMEOUT.as_secs())),
    };
    if let Some(fault) = fault.filter(|_| is_of_library && library.is_none()) {
        usage!(
            "the launcher '{program}' does not work: `{program} --version` failed ({fault}); load the \
             module of its MPI library, or give another one by --launcher"
        );
    }
    Ok((said, library))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_launcher_without_a_place_for_the_ranks_is_refused() {
        let error = Launcher::parse("mpirun -np 8").unwrap_err().to_string();
        assert!(error.contains("write {np} there"), "{error}");
        let error = Launcher::parse("no-such-launcher {np}").unwrap_err().to_string();
        assert!(error.contains("not on PATH"), "{error}");
    }

    /// The MPI library at hand is not another one's that happens to be on PATH.
    #[test]
    fn a_library_launcher_that_does_not_work_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let launcher = |name: &str, script: &str| {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            Launcher::parse(&format!("{} -n {{np}}", path.display()))
        };
        let breaks = "echo 'libopen-rte.so.40: cannot open shared object file' >&2; exit 127";
        for name in ["mpirun", "mpiexec.hydra"] {
            let error = launcher(name, breaks).unwrap_err().to_string();
            let named = format!("{}/{name} --version` failed", folder.path().display());
            assert!(error.contains(&named) && error.contains("libopen-rte.so.40"), "{error}");
            assert!(error.contains("127") && error.contains("--launcher"), "{error}");
        }
        let known = launcher("mpirun", "echo 'mpirun (Open MPI) 4.1.4'; exit 1").unwrap();
        assert!(known.library.is_some());
        // A script need not know of versions.
        assert!(launcher("start", breaks).unwrap().library.is_none());
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
