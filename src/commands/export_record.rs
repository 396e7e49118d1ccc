//! `colibri export-record`: gives a run's record in another tool's form.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use records::{FileError, document};

use crate::commands::shared::options::named;
use site::run_directory::RunDirectory;
use stages::record_forms::{self, RecordForm};

/// Writes a run's times of collectives as other tools' files, which `import` reads back
#[derive(Debug, Args)]
pub struct ExportRecordCommand {
    /// Directory of a run, imported or measured
    #[arg(value_name = "RUN")]
    directory: PathBuf,

    /// The form: a CSV table, ReproMPI's (a file per job, ranks and method) or OSU's (and per collective)
    #[arg(long, value_parser = named(&RecordForm::ALL, |form| form.name().into()), value_name = "FORM")]
    to: RecordForm,

    /// The directory to make [default: the form's name, in the run's directory]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl ExportRecordCommand {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let run = RunDirectory::read(&self.directory)?;
        let directory = self.output.unwrap_or_else(|| run.file(self.to.name()));
        if directory.exists() {
            bail!("{}: already exists; name another by --output", directory.display());
        }
        let files = record_forms::files(&run, self.to)?;
        std::fs::create_dir_all(&directory)
            .map_err(|error| FileError::io(&directory, "make this directory", &error))?;
        for file in &files {
            document::write_text(&directory.join(&file.name), &file.text)?;
        }
        say!("written: {} in {}", records::counted(files.len(), "file"), directory.display());
        Ok(())
    }
}
