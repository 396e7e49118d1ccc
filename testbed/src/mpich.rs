//! Launching a program by MPICH on a testbed.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use records::RankPlacement;

use crate::{
    IntelMpi, OpenMpi, Shims, Testbed, TestbedError, openmpi, scripts, spec::head_address, state,
    system,
};

/// An MPICH whose `mpiexec` (Hydra) runs on the testbed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mpich {
    mpiexec: PathBuf,
}

impl Mpich {
    /// The first on PATH, be it `mpiexec.mpich`, `mpiexec.hydra`, `mpiexec` or `mpirun`, that is MPICH's.
    ///
    /// # Errors
    /// There is none.
    pub fn find() -> Result<Mpich, TestbedError> {
        Self::find_in(&env::var_os("PATH").unwrap_or_default())
    }

    fn find_in(path: &OsStr) -> Result<Mpich, TestbedError> {
        let names = ["mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"];
        let found = system::in_folders(path, &names).into_iter();
        let missing = TestbedError::NoProgram { program: "mpiexec.mpich", package: "mpich" };
        found.filter_map(|mpiexec| Self::at(&mpiexec).ok()).next().ok_or(missing)
    }

    /// This `mpiexec`.
    ///
    /// # Errors
    /// It does not run, or is of another family.
    pub fn at(mpiexec: &Path) -> Result<Mpich, TestbedError> {
        let said = openmpi::said(mpiexec)?;
        match said.contains("HYDRA") {
            true => Ok(Mpich { mpiexec: mpiexec.into() }),
            false => Err(openmpi::wrong(mpiexec, openmpi::family(&said))),
        }
    }
}

/// A library whose launcher runs on the testbed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestbedMpi {
    /// Open MPI 4 or 5.
    OpenMpi(OpenMpi),
    /// MPICH 4 or 5.
    Mpich(Mpich),
    Intel(IntelMpi),
}

impl TestbedMpi {
    /// Of this launcher, by what it says of itself.
    ///
    /// # Errors
    /// It does not run, or is of another family.
    pub fn at(launcher: &Path) -> Result<TestbedMpi, TestbedError> {
        // Intel's `mpirun` says what the `mpiexec.hydra` says that it finds: MPICH's, perhaps.
        if let Ok(intel) = IntelMpi::at(launcher) {
            return Ok(TestbedMpi::Intel(intel));
        }
        match Mpich::at(launcher) {
            Ok(mpich) => Ok(TestbedMpi::Mpich(mpich)),
            Err(_) => OpenMpi::at(launcher).map(TestbedMpi::OpenMpi),
        }
    }
}

impl Testbed {
    /// A launcher's command with everything that the testbed needs; the caller adds the program and
    /// its arguments. See [`Testbed::mpirun`] and [`Testbed::mpiexec`].
    ///
    /// # Errors
    /// More ranks than the testbed holds, or none.
    pub fn launch(
        &self,
        mpi: &TestbedMpi,
        ranks: u32,
        shims: &Shims,
        environment: &[(&str, &OsStr)],
    ) -> Result<Command, TestbedError> {
        match mpi {
            TestbedMpi::OpenMpi(mpi) => self.mpirun(mpi, ranks, shims, environment),
            TestbedMpi::Mpich(mpi) => self.mpiexec(mpi, ranks, shims, environment),
            TestbedMpi::Intel(mpi) => self.intel_mpiexec(mpi, ranks, shims, environment),
        }
    }

    /// An `mpiexec` command of MPICH's, as [`Testbed::mpirun`] is Open MPI's. MPICH tells nodes apart
    /// by its daemons; where nodes have a network inside, or ranks are dealt in turn, no two ranks
    /// share memory to it, but their host names still say which are on one node.
    ///
    /// # Errors
    /// More ranks than the testbed holds, or none.
    pub fn mpiexec(
        &self,
        mpi: &Mpich,
        ranks: u32,
        shims: &Shims,
        environment: &[(&str, &OsStr)],
    ) -> Result<Command, TestbedError> {
        self.check_ranks(ranks)?;
        let mut command = self.hydra_settings("HYDRA_LAUNCHER_EXTRA_ARGS", shims)?;
        for variable in ["UCX_NET_DEVICES=eth0", "FI_TCP_IFACE=eth0", "FI_PROVIDER=tcp"] {
            command.arg(variable);
        }
        command.arg("UCX_TLS=tcp,self");
        if self.spec().has_inside() {
            command.arg("MPIR_CVAR_NOLOCAL=1");
        }
        command.arg(&mpi.mpiexec).args(["-localhost", &head_address()]);
        command.args(["-hosts", &self.hosts_in_turn()]);
        self.add_hydra_ranks(&mut command, ranks, shims, environment);
        Ok(command)
    }

    /// `env` on the head, for the settings of a Hydra, whose `agent_variable` names what its launcher is
    /// given before a host's name.
    pub(crate) fn hydra_settings(
        &self,
        agent_variable: &str,
        shims: &Shims,
    ) -> Result<Command, TestbedError> {
        let name = &self.spec().name;
        let mut command = self.exec(None, "env")?;
        command.env("TMPDIR", state::temporary_directory(name));
        command.env(agent_variable, scripts::agent_path(name));
        if shims.sleep_on_yield.is_some() {
            command.arg(self.idle()).arg(openmpi::IDLE_POLLS);
        }
        Ok(command)
    }

    /// What Hydra's command ends with before the program, after the hosts.
    pub(crate) fn add_hydra_ranks(
        &self,
        command: &mut Command,
        ranks: u32,
        shims: &Shims,
        environment: &[(&str, &OsStr)],
    ) {
        // By the shell, since `/run` is commonly mounted so that nothing in it may be executed.
        command.args(["-launcher", "rsh", "-launcher-exec", "/bin/sh"]);
        command.args(["-n", &ranks.to_string()]);
        for (key, value) in shims.environment(environment) {
            command.arg("-genv").arg(key).arg(value);
        }
        command.args(self.rank_entry());
    }

    /// As [`Testbed::hosts`]; where ranks are dealt in turn a node is named again for each round.
    fn hosts_in_turn(&self) -> String {
        let spec = self.spec();
        if spec.placement == RankPlacement::Block {
            return self.hosts();
        }
        let rounds = (0..spec.nodes).map(|node| spec.ranks_per_node.on(node)).max().unwrap_or(0);
        let round = |round| {
            let nodes = (0..spec.nodes).filter(move |node| spec.ranks_per_node.on(*node) > round);
            nodes.map(|node| format!("{}:1", spec.host(node)))
        };
        (0..rounds).flat_map(round).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    /// A module's folder stands in front of the system's, which may hold an older MPICH by a better name.
    #[test]
    fn the_launcher_of_the_first_folder_is_taken_whatever_its_name() {
        let place = tempfile::tempdir().unwrap();
        let put = |folder: &str, name: &str, says: &str| {
            let path = place.path().join(folder).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            path
        };
        let own = put("module", "mpirun", "HYDRA build details: Version: 5.0.2");
        put("system", "mpiexec.mpich", "HYDRA build details: Version: 4.0.2");
        put("other", "mpiexec.hydra", "Intel(R) MPI Library for Linux* OS, Version 2021.19");
        let path = |folders: &[&str]| {
            env::join_paths(folders.iter().map(|folder| place.path().join(folder))).unwrap()
        };
        let found = |folders: &[&str]| Mpich::find_in(&path(folders)).map(|found| found.mpiexec);
        assert_eq!(found(&["other", "module", "system"]).unwrap(), own);
        assert!(found(&["other"]).is_err());
        let intel = IntelMpi::find_in(&path(&["module", "other"])).unwrap();
        assert_eq!(intel, IntelMpi::at(&place.path().join("other/mpiexec.hydra")).unwrap());
    }
}
