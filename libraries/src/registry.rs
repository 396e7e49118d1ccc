//! All libraries: a new one is a folder, declared in `lib.rs`, and a line here.

use std::path::Path;

use records::{Algorithm, Collective, FileError, Library, Method, Native, Point, unknown};

use crate::{
    exporter::{FileFormat, MethodAt},
    library::{Forced, MpiLibrary},
};

/// The libraries that are known.
#[rustfmt::skip]
pub const ALL: &[&dyn MpiLibrary] = &[
    &crate::openmpi::OpenMpiLibrary,
    &crate::mpich::MpichLibrary,
    &crate::intel::IntelLibrary,
    &crate::ucc::UccLibrary,
];

/// The library of a name.
///
/// # Errors
/// There is none; which there are.
pub fn find(library: Library) -> Result<&'static dyn MpiLibrary, String> {
    ALL.iter().copied().find(|known| known.library() == library).ok_or_else(|| {
        let names: Vec<Library> = ALL.iter().map(|known| known.library()).collect();
        let names: Vec<&str> = names.iter().map(Library::name).collect();
        unknown("library", library.name(), &names)
    })
}

/// The library that says this of its version, by `MPI_Get_library_version` or by `--version` of
/// its launcher.
pub fn recognise(version: &str) -> Option<&'static dyn MpiLibrary> {
    ALL.iter().copied().find(|known| known.says(version))
}

/// The forms of all files.
pub fn formats() -> impl Iterator<Item = &'static FileFormat> {
    ALL.iter().flat_map(|library| library.formats())
}

/// What a library runs with a file loaded, read from the file's text by whichever reads it.
///
/// # Errors
/// None does; what the first one says of it.
pub fn read(text: &str, path: &Path) -> Result<MethodAt, FileError> {
    let mut read = formats().filter_map(|format| format.read).map(|read| read(text, path));
    let first = read.next().unwrap_or_else(|| Err(FileError::new(path, "no library reads it")));
    first.or_else(|error| read.find_map(Result::ok).ok_or(error))
}

/// Whether a call would run a method, which only a library's own may not.
pub fn runs(point: Point, method: &Method) -> bool {
    match native(method) {
        Some((library, native)) => library.runs(point, native),
        None => true,
    }
}

/// Whether what was seen to run is what was asked for, and not what the library fell back to.
/// Nothing seen is no contradiction.
pub fn ran_as_asked(collective: Collective, method: &Method, ran: &str) -> bool {
    match native(method) {
        Some((library, native)) => library.ran_as_asked(collective, native, ran),
        None => true,
    }
}

/// Whether what was seen to run at a point, by whatever name it was called, is this very method: then the times
/// of one are those of the other. Not so where that is not known.
pub fn is_run_of(point: Point, method: &Method, ran: &str) -> bool {
    native(method).is_some_and(|(library, native)| library.is_run_of(point, native, ran))
}

/// Whether a method is what a library carries out through the memory of one node, by settings of whole jobs: no file
/// names it, and none of Colibri's is the same.
pub fn is_of_one_node(collective: Collective, method: &Method) -> bool {
    native(method).is_some_and(|(library, native)| library.of_one_node(collective) == Some(*native))
}

/// What a native algorithm really is, and why, where that is not what the field means by its name. A library
/// that is not known is taken for one made from Open MPI, as vendors' are.
pub fn unlike_its_name(
    collective: Collective,
    native: &Native,
) -> Option<(Algorithm, &'static str)> {
    let library = find(native.library).unwrap_or(&crate::openmpi::OpenMpiLibrary);
    library.unlike_its_name(collective, native.algorithm)
}

/// The name of the schedule whose ranks stand where the library has them, where that is another
/// one than the algorithm's own; see [`MpiLibrary::variant`].
pub fn variant(collective: Collective, native: &Native) -> Option<&'static str> {
    find(native.library).ok()?.variant(collective, native.algorithm)
}

/// What a setting of a job forces, and of which library; see [`MpiLibrary::forces`].
pub fn forces(name: &str, value: &str) -> Option<(&'static dyn MpiLibrary, Forced)> {
    ALL.iter().find_map(|library| Some((*library, library.forces(name, value)?)))
}

fn native(method: &Method) -> Option<(&'static dyn MpiLibrary, &Native)> {
    let Method::Native(native) = method else { return None };
    Some((find(native.library).ok()?, native))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::ForcedPart;

    #[test]
    fn what_libraries_say_of_themselves_is_recognised() {
        for (said, title) in [
            ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "Open MPI"),
            ("mpirun (Open MPI) 5.0.11\n\nReport bugs to", "Open MPI"),
            ("mpirun.real (OpenRTE) 4.1.4\n\nReport bugs to", "Open MPI"),
            ("MPICH Version:\t4.0.2\nMPICH Device:\tch4:ofi\n", "MPICH"),
            ("HYDRA build details:\n    Version:  4.0.2\n", "MPICH"),
            ("MVAPICH Version      : 4.0\n", "MPICH"),
            ("Intel(R) MPI Library 2021.19.0 for Linux* OS\n", "Intel MPI"),
            ("Intel(R) MPI Library for Linux* OS, Version 2021.19 Build 2025\n", "Intel MPI"),
        ] {
            assert_eq!(recognise(said).map(|library| library.title()), Some(title), "{said}");
        }
        assert!(recognise("slurm 22.05.8").is_none());
    }

    /// Fujitsu's MPI is made from Open MPI: its linear alltoall posts all messages at once, too.
    #[test]
    fn a_library_that_is_not_known_is_like_open_mpi() {
        let linear = |library: &str| {
            let native = Native {
                library: Library::new(library).unwrap(),
                algorithm: Algorithm::Linear,
                segment_bytes: 0,
            };
            unlike_its_name(Collective::Alltoall, &native).map(|(algorithm, _)| algorithm)
        };
        assert_eq!(linear("openmpi"), Some(Algorithm::LinearConcurrent));
        assert_eq!(linear("fujitsu"), Some(Algorithm::LinearConcurrent));
        assert_eq!(linear("mpich"), None);
    }

    #[test]
    fn every_library_has_its_own_name_and_formats() {
        for (index, library) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.library() != library.library()));
        }
        let mut names: Vec<&str> = formats().map(|format| format.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        let error = find(Library::new("mpch").unwrap()).err().unwrap();
        assert!(error.contains("did you mean 'mpich'?"), "{error}");
    }

    /// A danger is one of an algorithm that is known, and says where it was seen.
    #[test]
    fn dangers_are_those_of_known_algorithms() {
        for library in ALL {
            for danger in library.dangers() {
                let known = library.algorithms(danger.collective);
                assert!(known.contains(&danger.algorithm), "{danger:?}");
                assert!(!danger.source.is_empty(), "{danger:?}");
            }
        }
    }

    /// Whatever can be forced is known by the name that its variables are found by.
    #[test]
    fn every_algorithm_can_be_forced_for_a_whole_job() {
        for library in ALL {
            for collective in Collective::ALL {
                for algorithm in library.algorithms(collective) {
                    let native = Native { library: library.library(), algorithm, segment_bytes: 0 };
                    let versions = [(1, 3), (4, 0), (5, 0), (2021, 19)];
                    let forced = versions.map(|it| library.forced_by(it, collective, &native));
                    let forced = forced.into_iter().flatten().next();
                    assert!(forced.is_some_and(|it| !it.is_empty()), "{collective} {native:?}");
                }
            }
        }
    }

    /// What the exporters and `forced_by` set is understood where somebody else has set it.
    #[test]
    fn settings_that_force_are_known_again() {
        for library in ALL {
            for collective in Collective::ALL {
                for algorithm in library.algorithms(collective) {
                    let native = Native { library: library.library(), algorithm, segment_bytes: 0 };
                    let set = library.forced_by((5, 0), collective, &native).unwrap_or_default();
                    let known: Vec<Forced> = set
                        .iter()
                        .filter_map(|(name, value)| forces(name, value))
                        .map(|(of, forced)| {
                            assert_eq!(of.library(), library.library());
                            forced
                        })
                        .collect();
                    let of_it = [Forced::Several, Forced::Of(collective, ForcedPart::Algorithm)];
                    let is_known = known.iter().any(|forced| of_it.contains(forced));
                    let is_of_component = ["han", "han-simple", "sm"].contains(&algorithm.name());
                    assert!(set.is_empty() || is_known || is_of_component, "{set:?}");
                    assert!(forces(set.first().map_or("", |it| it.0.as_str()), "").is_none());
                }
            }
        }
    }
}
