//! The files that a target loads.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use records::{
    Algorithm, Collective, FileError, Layout, Method, Point, RankPlacement, summary::LoadWay,
};

use crate::{danger::UnsafeFor, error::Result, rules::Rules};

/// Everything that an exporter may tell.
pub struct Export<'a> {
    /// What to load, one entry per collective.
    pub rules: &'a [Rules],
    /// Whether to load it, where it comes from and what it rests on, for the file's comments.
    pub comments: &'a [Comment],
}

/// A line of a file's comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Of what alone it tells; of all where it is nothing.
    pub of: Option<(Collective, Layout)>,
    /// Without line ends.
    pub text: String,
}

impl<T: Into<String>> From<T> for Comment {
    fn from(text: T) -> Self {
        Comment { of: None, text: text.into() }
    }
}

impl fmt::Display for Comment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name where the export is a directory. Where it is not, empty for the file itself; what
    /// follows its name for one that goes with it.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// What a target sees of a layout: layouts with the same key are one to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LayoutKey {
    /// The number of ranks alone.
    Procs(u32),
    /// That, the average of ranks per node rounded up, and whether the ranks of each node follow each
    /// other.
    PerNode {
        /// Number of ranks.
        procs: u32,
        /// Rounded up.
        per_node: u32,
        /// Whether ranks are in blocks.
        in_blocks: bool,
    },
    /// The number of ranks, and whether two levels are used: each of several nodes holds the same number of
    /// ranks, two or more.
    Levels {
        /// Number of ranks.
        procs: u32,
        /// Whether there are two levels.
        has_levels: bool,
    },
    /// The numbers of ranks and of nodes.
    Nodes {
        /// Number of ranks.
        procs: u32,
        /// Number of nodes.
        nodes: u32,
    },
    /// All of it.
    Whole(Layout),
}

impl LayoutKey {
    /// The key of a layout whose target sees averages.
    pub fn per_node(layout: Layout) -> Self {
        LayoutKey::PerNode {
            procs: layout.procs(),
            per_node: layout.procs().div_ceil(layout.nodes()),
            in_blocks: layout.placement() == Some(RankPlacement::Block) && !layout.is_flat(),
        }
    }
}

impl fmt::Display for LayoutKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LayoutKey::Procs(_) => "the number of ranks",
            LayoutKey::PerNode { .. } => {
                "the number of ranks, the average per node and whether they are in blocks"
            }
            LayoutKey::Levels { .. } => {
                "the number of ranks and, of these, the calls that coll/han carries out"
            }
            LayoutKey::Nodes { .. } => "the numbers of ranks and of nodes",
            LayoutKey::Whole(_) => "all nodes",
        })
    }
}

/// A message size that sums the blocks of all ranks, as [`Exporter::message_size`] has it.
pub const ALL_BLOCKS: &str = "the blocks of all ranks together";

/// A target that loads files, in one version.
pub trait Exporter: Sync {
    /// Who loads it, for people: `Open MPI 4.1`.
    fn target(&self) -> String;

    /// How the target spells an algorithm that a model decided for by its name.
    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method;

    /// Whether the target can express that a method is to run at a point; the reason where it can't.
    /// [`Method::Default`] is not asked for: every target can be left to itself.
    ///
    /// # Errors
    /// Why not.
    fn express(&self, point: Point, method: &Method) -> Result<(), String>;

    /// Whether its files keep an algorithm from calls for which it must not be used.
    fn keeps_from(&self, _: UnsafeFor) -> bool {
        false
    }

    /// The algorithms that it has for a collective.
    fn algorithms(&self, collective: Collective) -> Vec<Algorithm>;

    /// Why one method has to serve for all message sizes of a collective, where it has to.
    fn one_for_all_sizes(&self, _: Collective) -> Option<&'static str> {
        None
    }

    /// What a message size is to the target, where it is not what it is to Colibri.
    fn message_size(&self, _: Collective) -> Option<&'static str> {
        None
    }

    /// Whether what is loaded for a job holds on its smaller communicators, too, whatever was chosen for these.
    fn holds_for_whole_job(&self) -> bool {
        false
    }

    /// What it tells communicators apart by, of where their ranks are.
    fn layout_key(&self, layout: Layout) -> LayoutKey {
        LayoutKey::Procs(layout.procs())
    }

    /// Whether what was chosen for two layouts of as many ranks can't stand in the files together,
    /// though the target tells these layouts apart. Each comes with all methods chosen for it.
    fn clash(
        &self,
        _: Collective,
        _one: (Layout, &[&Method]),
        _other: (Layout, &[&Method]),
    ) -> bool {
        false
    }

    /// Whether the export is a directory of files.
    fn is_directory(&self) -> bool {
        false
    }

    /// The files.
    ///
    /// # Errors
    /// What the export holds can't be written.
    fn files(&self, export: &Export<'_>) -> Result<Vec<File>>;

    /// The environment variables that load what was written into `file`, an absolute path; nothing
    /// where it takes more, or values that differ between jobs.
    fn environment(&self, _file: &str, _: &Export<'_>) -> Option<Vec<(String, String)>> {
        None
    }

    /// The environment variables by which a job of so many ranks loads what was written into `file`.
    ///
    /// # Errors
    /// As [`files`](Self::files).
    fn variables(
        &self,
        file: &str,
        export: &Export<'_>,
        _ranks: u32,
    ) -> Result<Vec<(String, String)>> {
        Ok(self.environment(file, export).unwrap_or_default())
    }

    /// How it is loaded.
    fn how_to_load(&self, file: &str, export: &Export<'_>) -> HowToLoad;
}

/// How a file is loaded, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HowToLoad {
    /// What a command is for, and the command; any of them loads the file. Not empty.
    pub commands: Vec<(String, String)>,
    /// What else is to be known, a line each.
    pub remarks: Vec<String>,
}

impl HowToLoad {
    /// By one command.
    pub fn new(heading: impl Into<String>, command: String) -> Self {
        HowToLoad { commands: vec![(heading.into(), command)], remarks: Vec::new() }
    }

    /// Or by another one.
    #[must_use]
    pub fn or(mut self, heading: &str, command: String) -> Self {
        self.commands.push((heading.into(), command));
        self
    }

    #[must_use]
    pub fn with_remark(mut self, remark: &str) -> Self {
        self.remarks.push(remark.into());
        self
    }
}

/// A line each.
impl fmt::Display for HowToLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commands =
            self.commands.iter().map(|(heading, command)| format!("{heading}:  {command}"));
        let lines: Vec<String> = commands.chain(self.remarks.iter().cloned()).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// A form of file that a library loads, of which it may have several.
pub struct FileFormat {
    /// As `--target` names it.
    pub name: &'static str,
    /// What it is, for the help.
    pub about: &'static str,
    /// The way of loading for which `tune` confirms choices, where it does so for this form.
    pub way: Option<LoadWay>,
    /// What `tune` calls the file in a run's directory.
    pub file: &'static str,
    /// Whether a file of the library is looked into.
    pub takes_library: bool,
    /// The exporter for a version of the library; the file to look into.
    pub exporter: MakeExporter,
    /// What a file makes the library run, read from its text, where that can be read; the path is
    /// for the errors.
    pub read: Option<ReadFile>,
    /// How the library itself makes files of its own out of what was exported, where it does.
    pub compile: Option<Compile>,
}

/// Makes the exporter for a version of the library, with a file of the library to look into.
pub type MakeExporter = fn(Option<&str>, Option<&Path>) -> Result<Box<dyn Exporter>>;

/// Reads a file's text; the path is for the errors.
pub type ReadFile = fn(&str, &Path) -> Result<MethodAt, FileError>;

/// What a library runs at a point with a file loaded; in words where that has no name here.
pub type MethodAt = Box<dyn Fn(Point) -> Result<Method, String>>;

/// Starts a command with the library to make files of its own beside the exported one.
pub type Compile = fn(&Export<'_>, &str, &Path) -> Result<Vec<PathBuf>>;

/// The answer where a target has no such algorithm.
pub fn lacks(target: &str, collective: Collective, method: &Method, known: &[Algorithm]) -> String {
    if known.is_empty() {
        return format!("{target} takes no algorithm for {collective}");
    }
    let known: Vec<&str> = known.iter().map(|algorithm| algorithm.name()).collect();
    format!("{target} cannot select {method} for {collective} (it has: {})", known.join(", "))
}
