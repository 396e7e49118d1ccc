use records::{Collective, FileError, Layout, Method, record};

use crate::{
    columns::ColumnMap,
    lines::Lines,
    rows::{Job, Sink},
    script::{Script, check_forced, launched_ranks},
};

/// What the user tells of files that do not tell it.
#[derive(Debug, Clone, Default)]
pub struct ImportHints {
    /// Ranks in all.
    pub procs: Option<u32>,
    /// Where they ran.
    pub layout: Option<Layout>,
    /// The MPI library.
    pub library: Option<String>,
    /// What was forced, where the tool timed something else than the library's default.
    pub method: Option<Method>,
    /// What the columns of a CSV file are.
    pub columns: Option<ColumnMap>,
    /// The script of the job.
    pub script: Option<Script>,
    /// What tells the file from the others that are read with it, where its name alone does not.
    pub name: Option<String>,
}

/// What is asked of the user where the ranks do not follow.
const GIVE_PROCS: &str = "give --procs or --layouts";

impl ImportHints {
    /// Ranks in all.
    ///
    /// # Errors
    /// Nobody tells; what is missing, or not understood.
    pub fn procs(&self) -> Result<u32, String> {
        let given = self.procs.or(self.layout.map(Layout::procs));
        match (given, &self.script) {
            (Some(procs), _) => Ok(procs),
            (None, Some(script)) => script.ranks().map_err(|why| {
                format!(
                    "does not say how many ranks ran, nor does its script ({why}); {GIVE_PROCS}"
                )
            }),
            (None, None) => Err(format!(
                "does not say how many ranks ran; {GIVE_PROCS}, or put the job's script beside it (NAME.job.sh \
                 beside NAME.txt)"
            )),
        }
    }

    /// Where the ranks ran: as the user says, or the script where that does not contradict the user.
    pub fn nodes(&self) -> Option<Layout> {
        let of_script = self.script.as_ref().and_then(Script::layout);
        let fits = |nodes: &Layout| self.procs.is_none_or(|procs| procs == nodes.procs());
        self.layout.or(of_script.filter(fits))
    }

    /// The method of a collective that was timed where the file does not say: what the user says, else what the
    /// job's script forces, else the library's default.
    ///
    /// # Errors
    /// The script forces an algorithm, and which one does not follow.
    pub fn method(&self, collective: Collective) -> Result<Method, String> {
        if let Some(method) = &self.method {
            return Ok(method.clone());
        }
        let forced = self.script.as_ref().and_then(|script| script.forced(collective));
        forced.unwrap_or(Ok(Method::Default))
    }

    /// Checks a line of output that is none of the tool's: the command that started it may stand there.
    ///
    /// # Errors
    /// It forces an algorithm, and nobody says which.
    pub fn check_command(
        &self,
        lines: &Lines<'_>,
        line: &str,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let is_known =
            self.method.is_some() || self.script.as_ref().is_some_and(Script::forces_any);
        if !is_known {
            check_forced(line).map_err(|problem| lines.fault(problem))?;
        }
        if let Some(launched) = launched_ranks(line)
            && let Ok(procs) = self.procs()
            && procs != launched
        {
            sink.note(&format!(
                "{}, line {}: {} starts {launched} ranks, and times are taken as those of {procs}",
                lines.path().display(),
                lines.number(),
                records::quoted(line)
            ));
        }
        Ok(())
    }

    /// The job of a file of which only this is known.
    pub fn job(&self, lines: &Lines<'_>, timing: &str) -> Job {
        let name = self.name.clone().unwrap_or_else(|| record::name(lines.path()));
        let (library, settings) = match &self.script {
            Some(script) => (script.library.clone(), script.settings.clone()),
            None => (String::new(), Vec::new()),
        };
        Job {
            name,
            library: self.library.clone().unwrap_or(library),
            nodes: self.nodes(),
            timing: timing.into(),
            settings,
            ..Job::default()
        }
    }
}

/// A tool whose output is read.
pub trait MeasuringTool: Sync {
    /// As `--from` names it.
    fn name(&self) -> &'static str;

    /// As people name it.
    fn title(&self) -> &'static str;

    /// Whether the user may say what its columns are.
    fn has_named_columns(&self) -> bool {
        false
    }

    /// Reads a file's lines and hands on what they hold.
    ///
    /// # Errors
    /// The lines are not this tool's, broken or cut off, or something needed is not given.
    fn read(
        &self,
        lines: &mut Lines<'_>,
        hints: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError>;
}
