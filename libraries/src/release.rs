//! An MPI library in one of its versions: what a program was built for, and what a launcher starts.

use std::{fmt, str::FromStr};

use records::Library;

use crate::registry;

/// An MPI library in one of its versions, written as `openmpi-4.1.4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryRelease {
    pub library: Library,
    /// Its version's numbers, the greatest first; at least two.
    pub version: Vec<u32>,
}

/// Stands in the place of a library's name for the ABI of MPI 5, which several libraries have.
const STANDARD_ABI: Library = match Library::new("mpiabi") {
    Some(name) => name,
    None => panic!("a library's name is of small letters"),
};

/// How well a program built for one release serves another one, from the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReleaseMatch {
    /// The first number alone is the same: the interface between program and library is.
    Interface,
    /// The first two numbers are.
    Series,
    Exact,
}

impl LibraryRelease {
    /// What a library says of its version by `MPI_Get_library_version`, or its launcher by
    /// `--version`; nothing where either part is not found.
    pub fn said(text: &str) -> Option<Self> {
        let library = registry::recognise(text)?.library();
        let apart = |c: char| c.is_whitespace() || c == ',' || c == '\0';
        let version = text.split(apart).find_map(version)?;
        Some(LibraryRelease { library, version })
    }

    /// What a program is built for that runs on every library with this version of the ABI of MPI 5.
    pub fn standard_abi(major: u32, minor: u32) -> Self {
        LibraryRelease { library: STANDARD_ABI, version: vec![major, minor] }
    }

    /// Whether it is the ABI of MPI 5 in place of a library.
    pub fn is_standard_abi(&self) -> bool {
        self.library == STANDARD_ABI
    }

    /// How well a program built for it serves `other`; nothing where it does not.
    pub fn matches(&self, other: &Self) -> Option<ReleaseMatch> {
        if self.library != other.library || self.version.first() != other.version.first() {
            return None;
        }
        Some(match self.version.get(1) == other.version.get(1) {
            _ if self.version == other.version => ReleaseMatch::Exact,
            true => ReleaseMatch::Series,
            false => ReleaseMatch::Interface,
        })
    }

    /// As people name it: `Open MPI 4.1.4`.
    pub fn title(&self) -> String {
        let known = registry::find(self.library);
        let title = known.map_or(self.library.name(), |library| library.title());
        format!("{title} {}", self.numbers())
    }

    fn numbers(&self) -> String {
        self.version.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
    }
}

/// The numbers of `v4.1.4` or `5.0.0rc1`; a word without a point in its numbers is no version.
fn version(word: &str) -> Option<Vec<u32>> {
    let word = word.strip_prefix('v').unwrap_or(word);
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let parts = word[..end].trim_end_matches('.').split('.');
    let numbers: Option<Vec<u32>> = parts.map(|part| part.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() > 1)
}

impl fmt::Display for LibraryRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.library.name(), self.numbers())
    }
}

impl FromStr for LibraryRelease {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a release; expected e.g. openmpi-4.1.4");
        let (name, numbers) = text.rsplit_once('-').ok_or_else(wrong)?;
        let library = Library::new(name).ok_or_else(wrong)?;
        let version = version(numbers).ok_or_else(wrong)?;
        let release = LibraryRelease { library, version };
        if release.to_string() == text { Ok(release) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_and_version_are_found_in_what_libraries_and_launchers_say() {
        for (said, folder) in [
            ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "openmpi-4.1.4"),
            ("Open MPI v5.0.0rc1, package: x", "openmpi-5.0.0"),
            ("mpirun (Open MPI) 5.0.11\n\nReport bugs to", "openmpi-5.0.11"),
            ("mpirun.real (OpenRTE) 4.1.4\n\nReport bugs to", "openmpi-4.1.4"),
            ("MPICH Version:\t4.0.2\nMPICH Device:\tch4:ofi\n", "mpich-4.0.2"),
            ("HYDRA build details:\n    Version:  4.0.2\n    Release Date: 2022", "mpich-4.0.2"),
            ("Intel(R) MPI Library 2021.19.0 for Linux* OS\n", "intel-2021.19.0"),
            ("Intel(R) MPI Library for Linux* OS, Version 2021.19 Build 2025\n", "intel-2021.19"),
        ] {
            let release = LibraryRelease::said(said).unwrap();
            assert_eq!(release.to_string(), folder, "{said}");
            assert_eq!(folder.parse(), Ok(release));
        }
        assert_eq!(LibraryRelease::said("slurm 22.05.8"), None);
        assert_eq!(LibraryRelease::said("Open MPI, some build"), None);
    }

    #[test]
    fn the_standard_abi_stands_for_no_library() {
        let abi = LibraryRelease::standard_abi(1, 0);
        assert_eq!(abi.to_string(), "mpiabi-1.0");
        assert_eq!("mpiabi-1.0".parse(), Ok(abi.clone()));
        let mpich: LibraryRelease = "mpich-5.0.2".parse().unwrap();
        assert!(abi.is_standard_abi() && !mpich.is_standard_abi());
        assert_eq!(abi.matches(&mpich), None);
    }

    #[test]
    fn what_names_no_release_is_refused() {
        for wrong in ["", "openmpi", "openmpi-", "openmpi-4", "openmpi-4.1rc1", "Open MPI-4.1"] {
            let error = wrong.parse::<LibraryRelease>().unwrap_err();
            assert!(error.contains("openmpi-4.1.4"), "{error}");
        }
    }

    #[test]
    fn a_program_serves_its_own_release_best_and_no_other_interface() {
        let matches = |built: &str, at_hand: &str| {
            built.parse::<LibraryRelease>().unwrap().matches(&at_hand.parse().unwrap())
        };
        assert_eq!(matches("openmpi-4.1.4", "openmpi-4.1.4"), Some(ReleaseMatch::Exact));
        assert_eq!(matches("openmpi-4.1.4", "openmpi-4.1.6"), Some(ReleaseMatch::Series));
        assert_eq!(matches("openmpi-4.0.7", "openmpi-4.1.6"), Some(ReleaseMatch::Interface));
        assert_eq!(matches("openmpi-4.1.4", "openmpi-5.0.11"), None);
        assert_eq!(matches("mpich-4.1.4", "openmpi-4.1.4"), None);
        assert!(ReleaseMatch::Exact > ReleaseMatch::Series);
        assert!(ReleaseMatch::Series > ReleaseMatch::Interface);
    }
}
