//! The MPI library's own algorithms at a site: which can be forced, and how.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::Command,
    sync::{Mutex, PoisonError},
};

use libraries::MpiLibrary;
use records::{Method, Native, Point};

use site::{programs, ranks::Site};

/// The own algorithms of a version of an MPI library.
#[derive(Debug, Clone, Copy)]
pub struct Natives {
    pub library: &'static dyn MpiLibrary,
    /// Its first two numbers.
    pub version: (u32, u32),
}

/// What the library that an MPI program of ours was built for says of its version, asked once.
static SAID: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

fn said(program: PathBuf) -> Option<String> {
    let mut all = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(said) = all.get(&program) {
        return Some(said.clone());
    }
    let said = programs::library(&program).ok()?;
    all.insert(program, said.clone());
    Some(said)
}

/// Those of a site's library; none where it isn't known, or not in which version.
pub fn of_site(site: &Site) -> Option<Natives> {
    let library = site.library()?;
    let said = said(site.program().ok()?).filter(|said| library.says(said))?;
    Some(Natives { library, version: library.version(&said)? })
}

impl Natives {
    /// All that can be forced at a point, within a job or for the whole of one.
    pub fn at(self, point: Point, segments: &[u64]) -> Vec<Method> {
        let collective = point.collective;
        if let Some(within) = self.library.within_job() {
            return (within.methods)(self.version, point, segments);
        }
        let native =
            |algorithm| Native { library: self.library.library(), algorithm, segment_bytes: 0 };
        let natives = self.library.algorithms(collective).into_iter().map(native);
        let can_be_forced = |native: &Native| {
            self.library.runs(point, native)
                && self.library.forced_by(self.version, collective, native).is_some()
        };
        natives.filter(can_be_forced).map(Method::Native).collect()
    }

    /// Environment variables that a job must be started with to run a method; none where it is forced
    /// within the job.
    pub fn for_a_whole_job(self, point: Point, native: &Native) -> Option<Vec<(String, String)>> {
        let collective = point.collective;
        let can_be_within_job = self
            .library
            .within_job()
            .is_some_and(|within| (within.variables)(self.version, collective, native).is_ok());
        match can_be_within_job {
            true => None,
            false => self.library.forced_by(self.version, collective, native),
        }
    }
}

/// The file of an MPI library, of which it is known what it says of its version, that our MPI program for
/// it loads; where the system's linker tells.
pub fn library_file(said: &str) -> Option<PathBuf> {
    let program = programs::mpi(Some(said)).ok()?;
    let output = Command::new("ldd").arg(program).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let places = text.lines().filter_map(|line| line.trim().split_once(" => "));
    let is_mpi = |name: &str| name.starts_with("libmpi.so") || name.starts_with("libmpich.so");
    let of_mpi = places.filter(|(name, _)| is_mpi(name));
    let files = of_mpi.filter_map(|(_, place)| place.split_whitespace().next().map(PathBuf::from));
    files.into_iter().find(|file| file.is_file())
}
