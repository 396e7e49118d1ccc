//! `colibri import`: makes a run of what other tools have measured.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use import::{ColumnMap, ImportHints, MeasuringTool};
use records::{Layout, Method, quantity};

use super::shared::options::{List, layouts};
use site::usage;
use stages::importing::{self, Imported, WantedMethods, WantedRows};

/// Makes a run of what other tools have measured, to be judged, fitted and compared with as one of
/// Colibri's own
#[derive(Debug, Args)]
pub struct ImportCommand {
    /// Whose files they are: osu, imb, reprompi, pico, csv
    #[arg(long, value_name = "TOOL", value_parser = tool)]
    from: ToolOption,

    /// The files, then the directory of the run to make
    #[arg(required = true, num_args = 2.., value_name = "FILES... RUN")]
    paths: Vec<PathBuf>,

    /// Ranks that ran, where the files do not tell
    #[arg(long, short, value_name = "N", value_parser = quantity::parse_rank_count)]
    procs: Option<u32>,

    /// On how many nodes with how many ranks each, where the files do not tell: 32x4
    #[arg(long = "layouts", value_name = "NODESxRANKS")]
    layout: Option<Layout>,

    /// Import only what ran on these layouts, as in 16x1,64x1 [default: all]
    #[arg(long, value_name = "LIST", value_parser = layouts, hide_short_help = true)]
    only_layouts: Option<List<Layout>>,

    /// The MPI library and its version, where the files do not tell: 'Open MPI 4.1.5'
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    mpi_library: Option<String>,

    /// What was forced, where the tool timed another method than the library's default
    #[arg(long, value_name = "METHOD", hide_short_help = true)]
    method: Option<Method>,

    /// The script of the job that wrote the files [default: NAME.job.sh or NAME.sh beside NAME.txt]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    script: Option<PathBuf>,

    /// Columns of csv files: OURS=THEIRS with commas between, as in
    /// procs=np,bytes=size:total,seconds=t:us,collective:=bcast (bytes: ours or total; seconds: s,
    /// ms, us, ns; := tells a value) [default: columns of our own names]
    #[arg(long, value_name = "MAP", hide_short_help = true)]
    columns: Option<ColumnMap>,

    /// Leave out methods that are not the MPI library's
    #[arg(long, hide_short_help = true)]
    library_only: bool,
}

/// One of the tools, by its name.
#[derive(Clone, Copy)]
struct ToolOption(&'static dyn MeasuringTool);

impl std::fmt::Debug for ToolOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

fn tool(name: &str) -> Result<ToolOption, String> {
    import::find(name).map(ToolOption)
}

impl ImportCommand {
    /// Runs the subcommand.
    pub fn run(mut self) -> Result<()> {
        let Some(directory) = self.paths.pop() else { return Ok(()) };
        if let Some((procs, layout)) = self.procs.zip(self.layout)
            && procs != layout.procs()
        {
            let of_layout = records::counted(layout.procs(), "rank");
            usage!("--procs {procs}: --layouts {layout} has {of_layout}; leave one of both out");
        }
        if self.columns.is_some() && !self.from.0.has_named_columns() {
            usage!(
                "--columns: files of {} have no columns to name; leave it out",
                self.from.0.name()
            );
        }
        let script = self.script.as_deref().map(importing::script).transpose()?;
        let hints = ImportHints {
            procs: self.procs,
            layout: self.layout,
            library: self.mpi_library,
            method: self.method,
            columns: self.columns,
            script,
            name: None,
        };
        let methods = match self.library_only {
            true => WantedMethods::OfLibrary,
            false => WantedMethods::All,
        };
        let wanted =
            WantedRows { methods, layouts: self.only_layouts.map(|List(layouts)| layouts) };
        let imported = importing::import(self.from.0, &self.paths, &hints, wanted, &directory);
        let Imported { jobs, calls, exchanges, notes } = imported?;
        notes.iter().for_each(|note| say!("note: {note}"));
        let of = match (calls, exchanges) {
            (calls, 0) => format!("{} of collectives", records::counted(calls, "time")),
            (0, exchanges) => format!("{} of messages", records::counted(exchanges, "time")),
            _ => {
                let calls = records::counted(calls, "time");
                format!("{calls} of collectives and {exchanges} of messages")
            }
        };
        let jobs = records::counted(jobs, "job");
        say!("imported: {of} by {jobs} into {}", directory.display());
        Ok(())
    }
}
