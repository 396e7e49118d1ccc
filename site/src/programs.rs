//! Where the MPI program and the preloaded libraries are.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Once, OnceLock},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use libraries::LibraryRelease;
use testbed::programs::directories;

pub use testbed::programs::find;

use crate::{process, usage};

/// The program that runs on every rank.
const MPI: &str = "colibri-mpi";

/// Beside the command: a folder for each MPI library that the program was built for (`make programs`),
/// named by library and version, or by the ABI that several libraries have (`make release`).
const FOLDER: &str = "programs";

/// Folders of programs for an ABI are named by this and the file name of the libraries that have it:
/// `abi-libmpi.so.40` serves Open MPI 4 and 5, `abi-libmpi.so.12` MPICH, Intel MPI, MVAPICH and Cray MPICH.
const ABI: &str = "abi-";

/// Whether there is an MPI program at all.
///
/// # Errors
/// There is none.
pub fn any_mpi() -> Result<()> {
    match built().is_empty() && built_for_abis().is_empty() {
        true => Ok(find(MPI).map(drop)?),
        false => Ok(()),
    }
}

/// The MPI program for the library at hand. `said` is what its launcher says of its version; of one that is no MPI library's
/// own, such as `srun` or a script, `mpirun` or `mpiexec` on PATH is asked, which a library's module puts there.
///
/// # Errors
/// There is none, or several and nothing tells which.
pub fn mpi(said: Option<&str>) -> Result<PathBuf> {
    let (built, abis) = (built(), built_for_abis());
    if built.is_empty() && abis.is_empty() {
        return Ok(find(MPI)?);
    }
    let on_path = || said_on_path().and_then(LibraryRelease::said);
    let wanted = said.and_then(LibraryRelease::said).or_else(on_path);
    let by_release = |wanted| best(&built, wanted).or_else(|| by_abi(&abis, wanted));
    if let Some(program) = wanted.as_ref().and_then(by_release) {
        note_if_older(&program);
        return Ok(program);
    }
    // The one beside the command, which may find any library of its kind where it starts.
    if let Ok(program) = find(MPI) {
        return Ok(program);
    }
    let releases = built.iter().map(|(release, _)| release.to_string());
    let names: Vec<String> = releases.chain(abis.iter().map(|(abi, _)| abi.clone())).collect();
    let (names, build) = (names.join(", "), "`make programs MPICC=/path/to/mpicc` builds it");
    match (wanted, &built[..], &abis[..]) {
        (Some(wanted), ..) => {
            let why = why_no_abi(&abis, &wanted);
            usage!(
                "there is no {MPI} for {}, only for {names}{why}; {build} with that library's mpicc",
                wanted.title()
            )
        }
        (None, [(_, only)], []) => Ok(only.clone()),
        (None, ..) => usage!(
            "the MPI library at hand is not recognised; load its module, so that its mpirun is on \
             PATH (there is a {MPI} for {names}; for another one {build})"
        ),
    }
}

/// An installation copies the programs within seconds.
const SAME_BUILD: Duration = Duration::from_secs(60);

/// Tells of a program that was built well before the one beside the command: it may measure what an
/// older Colibri did.
fn note_if_older(program: &Path) {
    static TOLD: Once = Once::new();
    let Ok(beside) = find(MPI) else { return };
    if is_older(program, &beside).unwrap_or(false) {
        TOLD.call_once(|| {
            say!(
                "note: {} is older than {}; `make programs` builds it anew",
                program.display(),
                beside.display()
            );
        });
    }
}

fn is_older(program: &Path, beside: &Path) -> std::io::Result<bool> {
    let built = |path: &Path| fs::metadata(path)?.modified();
    let later = built(beside)?.duration_since(built(program)?);
    Ok(later.is_ok_and(|later| later > SAME_BUILD))
}

/// The programs that were built for a library each, by name; those for the ABI of MPI 5 are [`built_for_abis`].
fn built() -> Vec<(LibraryRelease, PathBuf)> {
    let release = |(name, path): (String, PathBuf)| Some((name.parse().ok()?, path));
    let built = in_folders().into_iter().filter_map(release);
    built.filter(|(release, _): &(LibraryRelease, _)| !release.is_standard_abi()).collect()
}

/// The programs that run with every library of an ABI, by their folders' names.
fn built_for_abis() -> Vec<(String, PathBuf)> {
    let is_standard =
        |name: &str| name.parse::<LibraryRelease>().is_ok_and(|release| release.is_standard_abi());
    let mut built = in_folders();
    built.retain(|(name, _)| name.starts_with(ABI) || is_standard(name));
    built
}

/// The programs in folders, in the order of these folders' names.
fn in_folders() -> Vec<(String, PathBuf)> {
    let folders = directories().into_iter().filter_map(|dir| fs::read_dir(dir.join(FOLDER)).ok());
    let mut programs: Vec<(String, PathBuf)> =
        folders.flatten().flatten().filter_map(|folder| program_in(&folder.path())).collect();
    programs.sort();
    programs
}

fn program_in(folder: &Path) -> Option<(String, PathBuf)> {
    let name = folder.file_name()?.to_str()?.to_owned();
    let program = folder.join(MPI).canonicalize().ok().filter(|program| program.is_file())?;
    Some((name, program))
}

/// The one whose release is nearest; of several, the newest.
fn best(built: &[(LibraryRelease, PathBuf)], wanted: &LibraryRelease) -> Option<PathBuf> {
    let serving = built
        .iter()
        .filter_map(|(release, path)| Some((release.matches(wanted)?, &release.version, path)));
    serving.max_by_key(|(how, version, _)| (*how, *version)).map(|(_, _, path)| path.clone())
}

/// One that was built for an ABI, where what it finds here is the library that is wanted.
fn by_abi(abis: &[(String, PathBuf)], wanted: &LibraryRelease) -> Option<PathBuf> {
    let finds = |program: &Path| LibraryRelease::said(&library(program).ok()?);
    let serves = |program: &Path| finds(program).is_some_and(|it| it.matches(wanted).is_some());
    abis.iter().find(|(_, program)| serves(program)).map(|(_, program)| program.clone())
}

/// What each program of an ABI finds here in place of the library that is wanted; nothing where there is no such
/// program.
fn why_no_abi(abis: &[(String, PathBuf)], wanted: &LibraryRelease) -> String {
    let found = |(name, program): &(String, PathBuf)| match library(program) {
        Ok(said) => match LibraryRelease::said(&said) {
            Some(release) => format!("{name} finds {}", release.title()),
            None => format!("{name} finds a library that is not recognised"),
        },
        Err(_) => format!("{name} does not find its library, which the loader has to know"),
    };
    if abis.is_empty() {
        return String::new();
    }
    let found: Vec<String> = abis.iter().map(found).collect();
    format!(" ({}; load the module of {})", found.join(", "), wanted.title())
}

/// What the launcher on PATH says of its version; asked once.
fn said_on_path() -> Option<&'static str> {
    static SAID: OnceLock<Option<String>> = OnceLock::new();
    let said = || {
        ["mpirun", "mpiexec"].into_iter().find_map(|launcher| {
            let said = process::output(Command::new(launcher).arg("--version"))?;
            LibraryRelease::said(&said).is_some().then_some(said)
        })
    };
    SAID.get_or_init(said).as_deref()
}

/// What the MPI library that a program finds says of its version.
///
/// # Errors
/// It does not start here.
pub fn library(program: &Path) -> Result<String> {
    let output = Command::new(program)
        .arg("--mpi-library")
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    if !output.status.success() {
        bail!(
            "`{} --mpi-library` failed; is the MPI library that it was built for installed, and \
             its module loaded? It printed: {}",
            program.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_an_earlier_build_is_older() {
        let folder = tempfile::tempdir().unwrap();
        let [program, beside] = ["program", "beside"].map(|name| folder.path().join(name));
        for path in [&program, &beside] {
            fs::write(path, "").unwrap();
        }
        assert!(!is_older(&program, &beside).unwrap());
        let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
        fs::File::options().write(true).open(&program).unwrap().set_modified(hour_ago).unwrap();
        assert!(is_older(&program, &beside).unwrap() && !is_older(&beside, &program).unwrap());
    }

    #[test]
    fn the_nearest_release_is_taken_and_of_several_the_newest() {
        let names = ["mpich-4.0.2", "mpich-4.1", "openmpi-4.1.4", "openmpi-4.1.6", "openmpi-5.0.3"];
        let built = names.map(|name| (name.parse().unwrap(), PathBuf::from(name)));
        let best = |wanted: &str| {
            best(&built, &wanted.parse().unwrap()).map(|path| path.display().to_string())
        };
        assert_eq!(best("openmpi-4.1.4").as_deref(), Some("openmpi-4.1.4"));
        assert_eq!(best("openmpi-4.1.5").as_deref(), Some("openmpi-4.1.6"));
        assert_eq!(best("openmpi-4.0.7").as_deref(), Some("openmpi-4.1.6"));
        assert_eq!(best("mpich-4.0.3").as_deref(), Some("mpich-4.0.2"));
        assert_eq!(best("mpich-5.0.2"), None);
        assert_eq!(best("intel-2021.19"), None);
    }
}
