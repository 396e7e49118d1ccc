use records::{FileError, Method};

use crate::{
    columns::ColumnMap,
    lines::Lines,
    rows::{Job, RanksOnNodes, Sink},
    script::Script,
};

/// What the user tells of files that do not tell it.
#[derive(Debug, Clone, Default)]
pub struct ImportHints {
    /// Ranks in all.
    pub procs: Option<u32>,
    /// Where they ran.
    pub layout: Option<RanksOnNodes>,
    /// The MPI library.
    pub library: Option<String>,
    /// What was forced, where the tool timed something else than the library's default.
    pub method: Option<Method>,
    /// What the columns of a CSV file are.
    pub columns: Option<ColumnMap>,
    /// The script of the job.
    pub script: Script,
}

impl ImportHints {
    /// Ranks in all, as far as anybody tells.
    pub fn procs(&self) -> Option<u32> {
        self.procs.or(self.layout.map(RanksOnNodes::procs)).or(self.script.ranks())
    }

    /// The method that was timed where the file does not say: the library's default if nobody does.
    pub fn method(&self) -> Method {
        self.method.clone().unwrap_or(Method::Default)
    }

    /// The job of a file of which only this is known.
    pub fn job(&self, lines: &Lines<'_>, timing: &str) -> Job {
        let name = lines.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Job {
            name,
            library: self.library.clone().unwrap_or_else(|| self.script.library.clone()),
            nodes: self.layout.or(self.script.layout()),
            timing: timing.into(),
            settings: self.script.settings.clone(),
        }
    }
}

/// A tool whose output is read.
pub trait MeasuringTool: Sync {
    /// As `--from` names it.
    fn name(&self) -> &'static str;

    /// As people name it.
    fn title(&self) -> &'static str;

    /// Reads a file's lines and hands on what they hold.
    ///
    /// # Errors
    /// The lines are not this tool's, broken or cut off, or something needed is not told.
    fn read(
        &self,
        lines: &mut Lines<'_>,
        told: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError>;
}
