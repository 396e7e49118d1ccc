//! Launching a program by Open MPI on a testbed.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{NETWORK, Testbed, TestbedError, scripts, state, system};

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
        let wrong = |family: String| TestbedError::WrongMpi {
            mpirun: mpirun.display().to_string(),
            family,
        };
        let output = Command::new(mpirun).arg("--version").output();
        let output = output.map_err(|error| wrong(format!("no program that runs ({error})")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        match major_version(&text) {
            Some(major @ 4..=5) => Ok(OpenMpi { mpirun: mpirun.into(), major }),
            Some(major) => Err(wrong(format!("Open MPI {major}"))),
            None => Err(wrong(family(&text))),
        }
    }

    /// The launcher.
    pub fn mpirun(&self) -> &Path {
        &self.mpirun
    }
}

/// From `mpirun (Open MPI) 4.1.4`.
fn major_version(text: &str) -> Option<u32> {
    let (_, version) = text.split_once("(Open MPI) ")?;
    version.split('.').next()?.trim().parse().ok()
}

fn family(text: &str) -> String {
    match text {
        _ if text.contains("Intel(R) MPI") => "Intel MPI".into(),
        _ if text.contains("HYDRA") => "MPICH".into(),
        _ if text.contains("slurm") => "Slurm's".into(),
        _ => "of another family".into(),
    }
}

impl Testbed {
    /// An `mpirun` command with everything that the testbed needs; the caller adds MCA parameters of
    /// its own, then the program and its arguments. Rank i runs on node i / (ranks per node), over
    /// TCP only (and shared memory within a node), not bound to cores.
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
        let name = &self.spec().name;
        if !(1..=self.capacity()).contains(&ranks) {
            let capacity = self.capacity();
            return Err(TestbedError::Ranks { name: name.clone(), ranks, capacity });
        }
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
        let further = environment.iter().find(|(key, _)| *key == "LD_PRELOAD").map(|(_, v)| *v);
        let preload = shims.preload(further);
        let others = environment.iter().filter(|(key, _)| *key != "LD_PRELOAD").copied();
        for (key, value) in others.chain(preload.as_deref().map(|value| ("LD_PRELOAD", value))) {
            let mut variable = OsString::from(key);
            variable.push("=");
            variable.push(value);
            command.arg("-x").arg(variable);
        }
        Ok(command)
    }

    /// How long the shim lets an idle rank wait for its sockets. A message that comes through shared
    /// memory, from a rank of the same node, does not wake it.
    fn idle(&self) -> String {
        let microseconds = if self.spec().ranks_per_node == 1 { 1000 } else { 20 };
        format!("COLIBRI_IDLE_MICROSECONDS={microseconds}")
    }

    fn placement(&self, command: &mut Command, ranks: u32) {
        let spec = self.spec();
        let slots = spec.ranks_per_node;
        let hosts: Vec<String> =
            (0..spec.nodes).map(|node| format!("{}:{slots}", spec.host(node))).collect();
        command.args(["--host", &hosts.join(","), "-np", &ranks.to_string()]).args([
            "--map-by",
            "slot",
            "--bind-to",
            "none",
        ]);
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
        let shared_memory = match (self.spec().ranks_per_node, major) {
            (1, _) => "self,tcp",
            (_, 4) => "self,vader,tcp",
            (_, _) => "self,sm,tcp",
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
    fn launchers_are_told_apart() {
        assert_eq!(major_version("mpirun (Open MPI) 4.1.4\n\nReport bugs to"), Some(4));
        assert_eq!(major_version("mpirun (Open MPI) 5.0.11\n"), Some(5));
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
