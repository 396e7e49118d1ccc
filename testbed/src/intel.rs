//! Launching a program by Intel MPI on a testbed.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use records::RankPlacement;

use crate::{RanksPerNode, Shims, Testbed, TestbedError, openmpi, system};

/// Intel's own launcher; its `mpirun` is a script that starts the first of this name on PATH, which may be
/// another library's.
const LAUNCHER: &str = "mpiexec.hydra";

/// An Intel MPI whose `mpiexec.hydra` runs on the testbed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntelMpi {
    mpiexec: PathBuf,
}

impl IntelMpi {
    /// The first on PATH.
    ///
    /// # Errors
    /// There is none.
    pub fn find() -> Result<IntelMpi, TestbedError> {
        Self::find_in(&env::var_os("PATH").unwrap_or_default())
    }

    pub(crate) fn find_in(path: &OsStr) -> Result<IntelMpi, TestbedError> {
        let missing = TestbedError::NoProgram { program: LAUNCHER, package: "of Intel MPI" };
        let found = system::in_folders(path, &[LAUNCHER, "mpirun"]).into_iter();
        found.filter_map(|launcher| Self::at(&launcher).ok()).next().ok_or(missing)
    }

    /// The one beside this launcher.
    ///
    /// # Errors
    /// It does not run, or is of another family.
    pub fn at(launcher: &Path) -> Result<IntelMpi, TestbedError> {
        let mpiexec = launcher.with_file_name(LAUNCHER);
        let said = openmpi::said(&mpiexec)?;
        match said.contains("Intel(R) MPI") {
            true => Ok(IntelMpi { mpiexec }),
            false => Err(openmpi::wrong(launcher, openmpi::family(&said))),
        }
    }

    /// Where the library is installed, by the launcher's own place in it.
    fn root(&self) -> Option<&Path> {
        self.mpiexec.parent()?.parent()
    }
}

impl Testbed {
    /// A command of Intel MPI's launcher, as [`Testbed::mpirun`] is Open MPI's. Ranks talk over TCP, and
    /// within a node over shared memory if it has no network inside.
    ///
    /// # Errors
    /// More ranks than the testbed holds, or none; nodes with unequal numbers, which this launcher does not
    /// place.
    pub fn intel_mpiexec(
        &self,
        mpi: &IntelMpi,
        ranks: u32,
        shims: &Shims,
        environment: &[(&str, &OsStr)],
    ) -> Result<Command, TestbedError> {
        self.check_ranks(ranks)?;
        let spec = self.spec();
        let per_node = match (spec.placement, &spec.ranks_per_node) {
            (RankPlacement::Cyclic, RanksPerNode::Same(_)) => 1,
            (RankPlacement::Block, RanksPerNode::Same(ranks)) => *ranks,
            (_, RanksPerNode::Each(_)) => {
                return Err(TestbedError::Spec(
                    "Intel MPI's launcher places equal numbers of ranks on nodes alone".into(),
                ));
            }
        };
        let mut command = self.hydra_settings("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", shims)?;
        // Another library's programs of the same names, earlier on PATH, would be taken for its own.
        let own = mpi.mpiexec.parent().map(Path::to_path_buf);
        let theirs = env::var_os("PATH").unwrap_or_default();
        let search = env::join_paths(own.into_iter().chain(env::split_paths(&theirs)));
        command.env("PATH", search.unwrap_or(theirs));
        if let Some(root) = mpi.root().filter(|_| env::var_os("I_MPI_ROOT").is_none()) {
            command.env("I_MPI_ROOT", root);
        }
        let fabrics = if spec.has_inside() { "ofi" } else { "shm:ofi" };
        command.arg(format!("I_MPI_FABRICS={fabrics}"));
        command.args(["I_MPI_PIN=off", "FI_PROVIDER=tcp", "FI_TCP_IFACE=eth0"]);
        command.arg(&mpi.mpiexec).args(["-iface", "eth0"]);
        let hosts: Vec<String> = (0..spec.nodes).map(|node| spec.host(node)).collect();
        command.args(["-hosts", &hosts.join(","), "-ppn", &per_node.to_string()]);
        self.add_hydra_ranks(&mut command, ranks, shims, environment);
        Ok(command)
    }
}
