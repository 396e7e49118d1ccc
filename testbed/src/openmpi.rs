//! Launching a program by Open MPI on a testbed.

use std::{
    ffi::{OsStr, OsString},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::Command,
};

use records::RankPlacement;

use crate::{NETWORK, Testbed, TestbedError, scripts, state, system};

/// How often a rank asks its sockets in vain before it counts as idle. One round of the progress of MPICH and Intel MPI
/// asks once or a few times.
pub(crate) const IDLE_POLLS: &str = "COLIBRI_IDLE_POLLS=100";

/// Ranks for each processor that can look every 20 us whether a message came through shared memory. With 16
/// of them on each processor (8 nodes of 4 on two) looking left nothing for what they wait for: four of five
/// first jobs made no progress in 120 s, and take 4 s where they look every millisecond.
const MAX_LOOKING: usize = 8;

/// Whether more ranks share the processors than can look that often.
fn is_crowded(ranks: u32, processors: usize) -> bool {
    ranks as usize > MAX_LOOKING * processors
}

/// The libraries that are preloaded into every rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shims {
    /// `libcolibri_yield.so`: waiting ranks sleep until a packet arrives. Without it the ranks of a
    /// testbed wait for each other's waiting.
    pub sleep_on_yield: Option<PathBuf>,
    /// `libcolibri_tracer.so`: tells which algorithms ran.
    pub tracer: Option<PathBuf>,
}

impl Shims {
    /// Both, from the folder they were built or installed into.
    ///
    /// # Errors
    /// One is not there.
    pub fn in_folder(folder: &Path) -> Result<Shims, TestbedError> {
        let find = |file: &str| {
            let path = folder.join(file);
            match path.is_file() {
                true => Ok(Some(path)),
                false => Err(TestbedError::NoShim { path }),
            }
        };
        Ok(Shims {
            sleep_on_yield: find("libcolibri_yield.so")?,
            tracer: find("libcolibri_tracer.so")?,
        })
    }

    /// What is set in every rank: the caller's variables, and what is preloaded.
    pub(crate) fn environment<'a>(
        &self,
        given: &[(&'a str, &'a OsStr)],
    ) -> Vec<(&'a str, OsString)> {
        let is_preload = |(key, _): &&(&str, &OsStr)| *key == "LD_PRELOAD";
        let further = given.iter().find(is_preload).map(|(_, value)| *value);
        let others = given.iter().filter(|variable| !is_preload(variable));
        let others = others.map(|(key, value)| (*key, value.to_os_string()));
        others.chain(self.preload(further).map(|value| ("LD_PRELOAD", value))).collect()
    }

    /// The value of `LD_PRELOAD`, with one that the caller asked for behind; none if empty.
    fn preload(&self, further: Option<&OsStr>) -> Option<OsString> {
        let own = [&self.sleep_on_yield, &self.tracer].into_iter().flatten();
        let all: Vec<&OsStr> = own.map(|path| path.as_os_str()).chain(further).collect();
        (!all.is_empty()).then(|| all.join(OsStr::new(":")))
    }
}

/// An Open MPI whose `mpirun` runs on the testbed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenMpi {
    mpirun: PathBuf,
    major: u32,
}

impl OpenMpi {
    /// The `mpirun` on PATH.
    ///
    /// # Errors
    /// None there; one of another family, or of a version that was never tried.
    pub fn find() -> Result<OpenMpi, TestbedError> {
        match system::on_path("mpirun") {
            Some(mpirun) => Self::at(&mpirun),
            None => Err(TestbedError::NoProgram { program: "mpirun", package: "openmpi-bin" }),
        }
    }

    /// This `mpirun`.
    ///
    /// # Errors
    /// It does not run; it is of another family, or of a version that was never tried.
    pub fn at(mpirun: &Path) -> Result<OpenMpi, TestbedError> {
        let text = said(mpirun)?;
        match major_version(&text) {
            Some(major @ 4..=5) => Ok(OpenMpi { mpirun: mpirun.into(), major }),
            Some(major) => Err(wrong(mpirun, format!("Open MPI {major}"))),
            None => Err(wrong(mpirun, family(&text))),
        }
    }

    pub fn mpirun(&self) -> &Path {
        &self.mpirun
    }
}

pub(crate) fn wrong(launcher: &Path, family: String) -> TestbedError {
    TestbedError::WrongMpi { mpirun: launcher.display().to_string(), family }
}

/// What a launcher says of its version.
pub(crate) fn said(launcher: &Path) -> Result<String, TestbedError> {
    let output = Command::new(launcher).arg("--version").output();
    let output =
        output.map_err(|error| wrong(launcher, format!("no program that runs ({error})")))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// From `mpirun (Open MPI) 4.1.4`, or under another name of it `mpirun.openmpi (OpenRTE) 4.1.4`.
fn major_version(text: &str) -> Option<u32> {
    let (_, version) = text.split_once("(Open MPI) ").or_else(|| text.split_once("(OpenRTE) "))?;
    version.split('.').next()?.trim().parse().ok()
}

pub(crate) fn family(text: &str) -> String {
    match text {
        _ if text.contains("Intel(R) MPI") => "Intel MPI".into(),
        _ if text.contains("HYDRA") => "MPICH".into(),
        _ if text.contains("slurm") => "Slurm's".into(),
        _ => "of another family".into(),
    }
}

impl Testbed {
    /// An `mpirun` command with everything that the testbed needs; the caller adds the program and its
    /// arguments, and before them, where nodes have no network inside, MCA parameters of its own.
    /// Ranks are placed as the spec says, not bound to cores. They talk over TCP, and within a node
    /// over shared memory if it has no network inside.
    ///
    /// `environment` is set in every rank; an `LD_PRELOAD` in it is loaded behind the shims.
    ///
    /// # Errors
    /// More ranks than the testbed holds, or none.
    pub fn mpirun(
        &self,
        mpi: &OpenMpi,
        ranks: u32,
        shims: &Shims,
        environment: &[(&str, &OsStr)],
    ) -> Result<Command, TestbedError> {
        self.check_ranks(ranks)?;
        let name = &self.spec().name;
        let mut command = self.exec(None, &mpi.mpirun)?;
        let temporary = state::temporary_directory(name);
        command.env("TMPDIR", &temporary);
        for allow in [
            "OMPI_ALLOW_RUN_AS_ROOT",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
            "PRTE_ALLOW_RUN_AS_ROOT",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
        ] {
            command.env(allow, "1");
        }
        self.placement(&mut command, ranks);
        for (kind, parameter, value) in self.parameters(mpi.major, &temporary) {
            command.arg(kind).arg(parameter).arg(value);
        }
        if shims.sleep_on_yield.is_some() {
            command.arg("-x").arg(self.idle());
        }
        for (key, value) in shims.environment(environment) {
            let mut variable = OsString::from(key);
            variable.push("=");
            variable.push(value);
            command.arg("-x").arg(variable);
        }
        command.args(self.rank_entry());
        Ok(command)
    }

    pub(crate) fn check_ranks(&self, ranks: u32) -> Result<(), TestbedError> {
        let capacity = self.capacity();
        match (1..=capacity).contains(&ranks) {
            true => Ok(()),
            false => Err(TestbedError::Ranks { name: self.spec().name.clone(), ranks, capacity }),
        }
    }

    /// What stands before a rank's program: it enters the rank's own network, if there is one.
    pub(crate) fn rank_entry(&self) -> Vec<OsString> {
        match self.spec().has_inside() {
            true => vec!["/bin/sh".into(), scripts::rank_path(&self.spec().name).into()],
            false => Vec::new(),
        }
    }

    /// Whether every message comes through a socket.
    pub(crate) fn is_all_sockets(&self) -> bool {
        self.spec().ranks_per_node.is_one() || self.spec().has_inside()
    }

    /// How long the shim lets an idle rank wait for its sockets. A message that comes through shared
    /// memory, from a rank of the same node, does not wake it: it looks often, unless too many would.
    pub(crate) fn idle(&self) -> String {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let is_crowded = is_crowded(self.capacity(), processors);
        let microseconds = if self.is_all_sockets() || is_crowded { 1000 } else { 20 };
        format!("COLIBRI_IDLE_MICROSECONDS={microseconds}")
    }

    fn placement(&self, command: &mut Command, ranks: u32) {
        let spec = self.spec();
        let map_by = match spec.placement {
            RankPlacement::Block => "slot",
            RankPlacement::Cyclic => "node",
        };
        command.args(["--host", &self.hosts(), "-np", &ranks.to_string()]);
        command.args(["--map-by", map_by, "--bind-to", "none"]);
    }

    /// Every node's name with how many ranks it holds, as launchers read them.
    pub(crate) fn hosts(&self) -> String {
        let spec = self.spec();
        let host = |node| format!("{}:{}", spec.host(node), spec.ranks_per_node.on(node));
        (0..spec.nodes).map(host).collect::<Vec<_>>().join(",")
    }

    /// Open MPI's parameters: the option they go by, name and value. Everything that differs between
    /// its versions is here: from 5 on the launcher is PRRTE, with parameters of its own.
    fn parameters(
        &self,
        major: u32,
        temporary: &Path,
    ) -> Vec<(&'static str, &'static str, OsString)> {
        let mut agent = OsString::from("/bin/sh ");
        agent.push(scripts::agent_path(&self.spec().name));
        let shared_memory = match (self.is_all_sockets(), major) {
            (true, _) => "self,tcp",
            (false, 4) => "self,vader,tcp",
            (false, _) => "self,sm,tcp",
        };
        let mut parameters = match major {
            4 => vec![
                ("--mca", "plm", "rsh".into()),
                ("--mca", "plm_rsh_agent", agent),
                // Every node is started from the head: it is the only one that mpirun's end reaches.
                ("--mca", "plm_rsh_no_tree_spawn", "1".into()),
                ("--mca", "orte_tmpdir_base", temporary.into()),
                ("--mca", "oob_tcp_if_include", NETWORK.into()),
                // Host names are in no name service; asking one costs seconds.
                ("--mca", "orte_do_not_resolve", "1".into()),
            ],
            _ => vec![
                ("--prtemca", "plm", "ssh".into()),
                ("--prtemca", "plm_ssh_agent", agent),
                ("--prtemca", "plm_ssh_no_tree_spawn", "1".into()),
                ("--prtemca", "prte_tmpdir_base", temporary.into()),
                ("--prtemca", "prte_if_include", NETWORK.into()),
                ("--prtemca", "prte_do_not_resolve", "1".into()),
            ],
        };
        parameters.extend([
            ("--mca", "pml", "ob1".into()),
            ("--mca", "btl", shared_memory.into()),
            ("--mca", "btl_tcp_if_include", NETWORK.into()),
            ("--mca", "mpi_yield_when_idle", "1".into()),
        ]);
        parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_look_less_often_where_many_share_a_processor() {
        // 4 x 4 and 8 x 4 on two processors, of which the latter hung; 8 x 4 on four.
        assert!(!is_crowded(16, 2));
        assert!(is_crowded(32, 2));
        assert!(!is_crowded(32, 4));
    }

    #[test]
    fn launchers_are_told_apart() {
        assert_eq!(major_version("mpirun (Open MPI) 4.1.4\n\nReport bugs to"), Some(4));
        assert_eq!(major_version("mpirun (Open MPI) 5.0.11\n"), Some(5));
        assert_eq!(major_version("mpirun.openmpi (OpenRTE) 4.1.4\n"), Some(4));
        let mpich = "HYDRA build details:\n    Version: 4.0.2\n";
        assert_eq!(major_version(mpich), None);
        assert_eq!(family(mpich), "MPICH");
        assert_eq!(family("Intel(R) MPI Library for Linux* OS, Version 2021.18"), "Intel MPI");
    }

    #[test]
    fn what_is_preloaded_is_one_list() {
        let shims = Shims { sleep_on_yield: Some("/a/y.so".into()), tracer: None };
        assert_eq!(shims.preload(None), Some("/a/y.so".into()));
        assert_eq!(shims.preload(Some(OsStr::new("/b.so"))), Some("/a/y.so:/b.so".into()));
        assert_eq!(Shims::default().preload(None), None);
        let missing = Shims::in_folder(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(missing.contains("/nonexistent/libcolibri_yield.so"), "{missing}");
    }
}
