//! How MPI programs are started at a site: `mpirun` found on PATH, Slurm's `srun`, or what the
//! user says.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::Result;

use crate::{error::usage, process};

/// Which MPI library's launcher it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    OpenMpi,
    Other,
}

/// A launcher: words in which `{np}` and `{nodes}` stand for numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    words: Vec<String>,
    /// Whose it is.
    pub family: Family,
    /// Whether the ranks share this machine, which may have fewer processors than ranks.
    local: bool,
}

impl Launcher {
    /// A launcher as the user writes it: words parted by blanks, with `{np}` in one of them.
    ///
    /// # Errors
    /// No `{np}`, or the program is not on PATH.
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
        let family = family(program);
        Ok(Launcher { words, family, local: false })
    }

    /// The launcher at hand: Slurm's inside an allocation, else `mpirun` on PATH.
    ///
    /// # Errors
    /// There is none.
    pub fn at_hand() -> Result<Self> {
        if env::var_os("SLURM_JOB_ID").is_some() && find_on_path("srun").is_some() {
            return Self::parse("srun -n {np}");
        }
        if find_on_path("mpirun").is_none() {
            usage!(
                "no mpirun on PATH: install an MPI library (Debian: openmpi-bin), load its module, \
                 or say how programs are started by --launcher 'srun -n {{np}}'"
            );
        }
        Ok(Launcher { local: true, ..Self::parse("mpirun -np {np}")? })
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
        let words = self.words.iter().map(|word| {
            // One node per rank is the most that can be wanted where nothing else is known.
            word.replace("{np}", &ranks.to_string()).replace("{nodes}", &ranks.to_string())
        });
        let mut words = words.map(OsString::from);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        if self.family == Family::OpenMpi {
            command.envs(open_mpi_settings());
            if self.local && ranks > processors() {
                command.envs(SHARED_PROCESSORS);
            }
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
pub fn ranks_at_hand() -> u32 {
    let slurm = env::var("SLURM_NTASKS").ok().and_then(|tasks| tasks.parse().ok());
    slurm.unwrap_or_else(processors)
}

fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// Open MPI 4 (`OMPI_`) and 5 (`PRTE_`) place more ranks than processors only when told; such
/// ranks must yield while they wait.
const SHARED_PROCESSORS: [(&str, &str); 4] = [
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
];

/// Settings that every start by Open MPI's launcher wants, as environment variables.
fn open_mpi_settings() -> Vec<(&'static str, &'static str)> {
    let mut settings = vec![
        // Without it forced algorithms and rules files are silently ignored.
        ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"),
    ];
    if process::is_root() {
        settings.push(("OMPI_ALLOW_RUN_AS_ROOT", "1"));
        settings.push(("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"));
    }
    settings
}

/// Where a program is: a path as it stands, a name sought on PATH.
pub fn find_on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Path::new(program).is_file().then(|| program.into());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.is_file())
}

/// For which a launcher may take, also on a busy machine, to say its version.
const PATIENCE: Duration = Duration::from_secs(15);

/// Whose launcher a program is, by what it says of its version.
fn family(program: &str) -> Family {
    let said = process::said_within(Command::new(program).arg("--version"), PATIENCE);
    match said {
        Some(text) if text.contains("Open MPI") || text.contains("OpenRTE") => Family::OpenMpi,
        _ => Family::Other,
    }
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
    fn the_command_is_what_one_would_type() {
        let launcher = Launcher::parse("sh -c {np}").unwrap();
        let environment = [("A".to_owned(), "1".into())];
        let command = launcher.command(4, &environment, Path::new("/bin/prog"), &["--x".into()]);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert_eq!(command.get_program(), "sh");
        assert_eq!(words, ["-c", "4", "env", "A=1", "/bin/prog", "--x"]);
    }
}
