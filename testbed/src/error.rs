use std::path::PathBuf;

use records::FileError;

/// Why a testbed could not be made, used or removed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// Namespaces need root.
    #[error("the testbed needs root: it makes network namespaces; run it with sudo")]
    NotRoot,
    /// A program that it is built with is not installed.
    #[error("cannot find the program `{program}`; install Debian's package {package}")]
    NoProgram {
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// A program or library of ours that is not where it is looked for.
    #[error(
        "{name} is not in {searched}; build it with `cargo build --release --workspace`, or name its \
         directory in COLIBRI_PROGRAMS"
    )]
    NotBuilt {
        name: String,
        /// Where it was looked for.
        searched: String,
    },
    /// A value that no testbed can have.
    #[error("{0}")]
    Spec(String),
    /// A testbed of that name, or what is left of one, is there.
    #[error(
        "a testbed '{name}' already exists ({what}); remove it first: colibri testbed down --name \
         {name}"
    )]
    Exists {
        name: String,
        /// What of it was found.
        what: String,
    },
    /// None of that name.
    #[error("there is no testbed '{name}'; make one: colibri testbed up --name {name}")]
    Missing {
        /// The name asked for.
        name: String,
    },
    /// Its making was interrupted.
    #[error(
        "the testbed '{name}' was not completed; remove it: colibri testbed down --name {name}"
    )]
    Incomplete { name: String },
    /// Its network has ended.
    #[error(
        "the switch of the testbed '{name}' has ended; remove it: colibri testbed down --name {name}"
    )]
    NoSwitch { name: String },
    /// A node beyond the last.
    #[error("the testbed '{name}' has no node {node}: its {nodes} nodes are numbered from 0")]
    NoSuchNode {
        name: String,
        /// The node asked for.
        node: u32,
        /// How many there are.
        nodes: u32,
    },
    /// More ranks than it holds, or none.
    #[error("{ranks} ranks do not fit the testbed '{name}': it holds 1 to {capacity}")]
    Ranks {
        name: String,
        /// The ranks asked for.
        ranks: u32,
        /// Nodes times ranks per node.
        capacity: u32,
    },
    /// A step failed; what was made before it is removed again.
    #[error("cannot {doing}: {problem}{hint}")]
    Step {
        /// What was to be done.
        doing: String,
        /// What the program answered.
        problem: String,
        /// What it may need; empty, or with the punctuation that leads to it.
        hint: String,
    },
    /// A step failed, and so did removing what was made before it.
    #[error("{first}; then what was made could not be removed: {second}")]
    Twice { first: Box<TestbedError>, second: Box<TestbedError> },
    /// Ending the testbed's processes would end the caller.
    #[error("this runs inside the testbed '{name}' itself; run it from outside")]
    Inside { name: String },
    /// Processes that even SIGKILL did not end.
    #[error("processes of the testbed '{name}' do not end: {pids:?}")]
    Survivors { name: String, pids: Vec<i32> },
    /// The launcher that was found.
    #[error("the testbed needs Open MPI 4 or 5, MPICH or Intel MPI; `{mpirun}` is {family}")]
    WrongMpi {
        mpirun: String,
        /// What it says of itself.
        family: String,
    },
    /// A file to be preloaded that is not there.
    #[error("{path}: no such library; build the packages colibri-yield and colibri-tracer")]
    NoShim {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A state file that cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}
