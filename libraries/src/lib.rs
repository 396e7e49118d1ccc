//! A room for each MPI library: how it is recognised, its algorithms and their numbers, how they
//! are forced and seen to run, what a size means to it, what its algorithms must not be used for,
//! and the files that it loads.
//!
//! [`MpiLibrary`] says what a library is. Each has a folder here and a line in [`ALL`]. What was
//! chosen is decided elsewhere: the exporters here write [`rules`] that are given to them.

#![forbid(unsafe_code)]

mod danger;
mod error;
mod exporter;
pub mod intel;
mod library;
pub mod mpich;
pub mod openmpi;
mod registry;
mod release;
pub mod rules;
pub mod spans;
pub mod ucc;
mod version;

pub use danger::{Damage, Danger, UnsafeFor};
pub use error::{Error, Result};
pub use exporter::{
    Comment, Compile, Export, Exporter, File, FileFormat, HowToLoad, LayoutKey, MethodAt, lacks,
};
pub use library::{
    Forced, ForcedPart, JobStart, MethodsOfVersion, MpiLibrary, ReadAt, RequiredVariable, Variable,
    VariablesOf, WithinJob,
};
pub use registry::{
    ALL, find, forces, formats, is_of_one_node, is_run_of, ran_as_asked, read, recognise, runs,
    unlike_its_name, variant,
};
pub use release::{LibraryRelease, ReleaseMatch};
