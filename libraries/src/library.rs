//! What an MPI library is to Colibri.

use std::fmt;

use records::{Algorithm, Collective, Library, Method, Native, Point};

use crate::{danger::Danger, exporter::FileFormat, version};

/// An MPI library, or one of collectives that serves under it.
///
/// What a library does not say of itself is the rule: nothing to set for a start, nothing to be
/// forced within a job, no tracer.
pub trait MpiLibrary: Sync {
    /// As methods name it: `openmpi`.
    fn library(&self) -> Library;

    /// As people name it: `Open MPI`.
    fn title(&self) -> &'static str;

    /// Whether it is this one that says so of its version, by `MPI_Get_library_version` or by
    /// `--version` of its launcher.
    fn says(&self, version: &str) -> bool;

    /// The first two numbers of its version, by what it says of that.
    fn version(&self, said: &str) -> Option<(u32, u32)> {
        version::said(said)
    }

    /// Environment variables that every start by its own launcher wants.
    fn environment(&self, _: JobStart) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// The kind of process management that Slurm's `srun` has to give it, and whether it takes no
    /// other.
    fn process_management(&self) -> (&'static str, bool) {
        ("pmi2", false)
    }

    /// Words by which its ranks show that they were started without process management.
    fn started_apart(&self) -> &'static [&'static str] {
        &[]
    }

    /// The algorithms that it has for a collective, in some version, and that have a name in the
    /// field; each once.
    fn algorithms(&self, collective: Collective) -> Vec<Algorithm>;

    /// Whether a call would run the algorithm with these segments, and not fall back to another
    /// one or end the program.
    fn runs(&self, point: Point, native: &Native) -> bool;

    /// What one of its algorithms really is, and why, where that is not what the field means by
    /// the name.
    fn unlike_its_name(&self, _: Collective, _: Algorithm) -> Option<(Algorithm, &'static str)> {
        None
    }

    /// Where its ranks stand at other places than in Colibri's algorithm of that name: the name of
    /// the schedule that is like its own, which stands among the variants of schedules.
    fn variant(&self, _: Collective, _: Algorithm) -> Option<&'static str> {
        None
    }

    /// Environment variables by which a version runs an algorithm in a whole job; none where it
    /// can't.
    fn forced_by(
        &self,
        version: (u32, u32),
        collective: Collective,
        native: &Native,
    ) -> Option<Vec<(String, String)>>;

    /// What a setting that somebody made for a job forces: an environment variable, or a parameter of its launcher.
    /// Nothing where it is not this library's, or leaves the choice to it.
    fn forces(&self, _name: &str, _value: &str) -> Option<Forced> {
        None
    }

    /// The algorithm that the values of such settings mean.
    ///
    /// # Errors
    /// They mean none, or not the same in all versions; why.
    fn forced_method(
        &self,
        _: Collective,
        _algorithm: &str,
        _segment_bytes: Option<&str>,
    ) -> Result<Native, String> {
        Err("which algorithm that is depends on the library's version".into())
    }

    /// What carries out a collective through memory that the ranks of a node share, where that is an algorithm by itself
    /// and serves communicators of one node alone: a [point](Point) does not tell whether it is on one.
    fn of_one_node(&self, _: Collective) -> Option<Native> {
        None
    }

    /// How algorithms are forced one after the other within a job, where that works.
    fn within_job(&self) -> Option<&'static WithinJob> {
        None
    }

    /// Whether Colibri's algorithms, by the same names, are those that it has itself: what is timed of
    /// its own then tells of both.
    fn has_all_of_ours(&self) -> bool {
        false
    }

    /// The library to preload that tells which algorithms ran, where there is one.
    fn tracer(&self) -> Option<&'static str> {
        None
    }

    /// Whether what was seen to run is what was asked for, and not what the library fell back to.
    /// Nothing seen is no contradiction.
    fn ran_as_asked(&self, _: Collective, _: &Native, _ran: &str) -> bool {
        true
    }

    /// Whether what was seen to run at a point is this very algorithm with these segments, and nothing
    /// else that has its name: then the times of one are those of the other.
    fn is_run_of(&self, _: Point, _: &Native, _ran: &str) -> bool {
        false
    }

    /// By what its files look a message up, where it is not what a size is to Colibri.
    fn message_size(&self, _: Collective) -> Option<&'static str> {
        None
    }

    /// What its algorithms must not be used for.
    fn dangers(&self) -> Vec<Danger> {
        Vec::new()
    }

    /// The files that it loads.
    fn formats(&self) -> &'static [FileFormat];
}

impl fmt::Debug for dyn MpiLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

/// How a job is started.
#[derive(Debug, Clone, Copy)]
pub struct JobStart {
    /// By the system's administrator, which some launchers refuse.
    pub as_root: bool,
    /// With more ranks than processors on this machine.
    pub oversubscribed: bool,
}

/// What a setting forces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forced {
    /// The algorithms of several collectives, by a file or a list.
    Several,
    /// The algorithm of a collective, or a part of it.
    Of(Collective, ForcedPart),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForcedPart {
    Algorithm,
    SegmentSize,
    FanOut,
}

/// The methods that a version can be made to run at a point, with these segment sizes.
pub type MethodsOfVersion = fn((u32, u32), Point, &[u64]) -> Vec<Method>;

/// The variables of an algorithm, in a version.
pub type VariablesOf = fn((u32, u32), Collective, &Native) -> Result<Vec<Variable>, String>;

/// Forcing by control variables of MPI's tool interface.
pub struct WithinJob {
    /// What is to be compared.
    pub methods: MethodsOfVersion,
    /// What must be on, or the variables are ignored.
    pub switch: Option<RequiredVariable>,
    /// Of what part of the library the variables are.
    pub part: &'static str,
    /// The variables of an algorithm.
    pub variables: VariablesOf,
    /// When the library reads them.
    pub read: ReadAt,
}

/// A control variable without which others are ignored.
#[derive(Debug, Clone, Copy)]
pub struct RequiredVariable {
    pub name: &'static str,
    /// How it is turned on when a job starts.
    pub turned_on_by: &'static str,
}

/// When a library reads the variables that force an algorithm.
#[derive(Debug, Clone, Copy)]
pub enum ReadAt {
    /// When a communicator is made, which keeps them; those of some algorithms at each call, too.
    Communicator,
    /// At each call. One that the algorithm can't carry out fails, instead of falling back: so what
    /// succeeds ran what is given here, as a tracer would tell it.
    Call(fn((u32, u32), Collective, &Native) -> Option<String>),
}

/// A control variable to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub value: i32,
    /// Whether the library may lack it.
    pub optional: bool,
}
