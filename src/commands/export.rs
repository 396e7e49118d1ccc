//! `colibri export`: writes what an MPI library loads.

mod learned;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use clap::Args;
use records::{
    FileError, Layout, choices::Choices, document, export::ExportReport, platform::Platform,
    summary::TuningSummary,
};
use statistics::geometric_mean;

use crate::commands::shared::{
    options::{List, ModelOptions, each, export_format, named},
    output,
};
use site::{
    run_directory::{RunDirectory, file_or_in_run},
    usage,
};
use stages::{
    chosen,
    export_formats::{CarefulExporter, Export, ExportFormat, Exporter, LibraryMatch, conflicts},
    exporting::{self, ExpressedChoices, write_files},
    learned::{self as learned_by_applications, LearnedFiles},
    modulefiles::{self, Modulefile},
    record_forms::{self, RecordForm},
    source::CalibrationSource,
};

/// Writes what was chosen in the form that an MPI library or a program loads; or a run's times as other tools'
/// files
#[derive(Debug, Args)]
pub struct ExportCommand {
    /// Directory of a run that holds choices (of `colibri tune`, `verify`, `guidelines`), or a file of
    /// choices (made by `decide --output FILE`); or what COLIBRI_ADAPT named, with --target profile
    #[arg(default_value = "colibri-run", value_name = "DIR|FILE")]
    directory: PathBuf,

    /// What loads the file
    #[arg(
        long,
        value_parser = export_format(),
        value_name = "FORMAT",
        required_unless_present_any = ["record", "modulefiles"]
    )]
    target: Option<ExportFormat>,

    /// Write the run's times of collectives as other tools' files, which `import` reads back: a CSV table,
    /// ReproMPI's (a file per job, ranks and method) or OSU's (and per collective). OUTPUT is then a
    /// directory to make [default: the form's name, in the run's directory]
    #[arg(
        long,
        value_parser = named(&RecordForm::ALL, |form| form.name().into()),
        value_name = "FORM",
        conflicts_with_all = [
            "target", "target_version", "target_library", "report", "commutative", "unconfirmed", "compile",
            "modulefiles", "decisions", "layouts", "ModelOptions",
        ]
    )]
    record: Option<RecordForm>,

    /// Version of that library: Open MPI 4.0, 4.1, 5.0 or 6.0; MPICH 4.0 to 5.0; Intel MPI 2019 or later;
    /// UCC 1.3 [default: that of the run's library; where it is not known, Open MPI 4.1]
    #[arg(long, value_name = "VERSION")]
    target_version: Option<String>,

    /// MPICH's library, whose built-in tuning is kept for all that was not tuned [default: the one
    /// of that version on this machine]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    target_library: Option<PathBuf>,

    /// The file to write, or the directory if the format has many files [default: stdout]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Report of the decisions that the target cannot express, and what that costs [default:
    /// OUTPUT.export.json; none if the export goes to stdout]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    report: Option<PathBuf>,

    /// Also export algorithms that are correct only for commutative operations: safe where every
    /// reduction of the program is commutative (MPI_SUM, MPI_MAX, ...)
    #[arg(long, hide_short_help = true)]
    commutative: bool,

    /// Also export what was not confirmed to be faster: measured with methods forced, or predicted. The file marks it
    #[arg(long)]
    unconfirmed: bool,

    /// For Intel MPI: also make its binary tuning files (named like OUTPUT, ending in .RANKS.dat)
    /// by a command that runs any MPI program, as in 'mpirun -n 2 IMB-MPI1 -help'
    #[arg(long, value_name = "COMMAND", requires = "output", hide_short_help = true)]
    compile: Option<String>,

    /// Write modulefiles (Tcl and Lmod) into this directory, which `module use` is given: of OUTPUT beside it;
    /// without --target, one for each way to load that the run's `colibri tune` has confirmed
    #[arg(long, value_name = "DIR")]
    modulefiles: Option<PathBuf>,

    /// Name of the module behind `colibri/` [default: the cluster's, the library's and its version,
    /// as in hal-openmpi-4.1.4]
    #[arg(long, value_name = "NAME", requires = "modulefiles", value_parser = module_name, hide_short_help = true)]
    module: Option<String>,

    /// Export what --model decided in this file (made by `decide --output FILE`) instead of what
    /// was measured; algorithms are mapped to the target's by name. With --unconfirmed
    #[arg(long, value_name = "RUN|FILE", hide_short_help = true)]
    decisions: Option<PathBuf>,

    /// Layouts that jobs use, for targets that distinguish only the number of ranks: the choices
    /// for the first layout of a size hold for all layouts of that size
    #[arg(long, value_name = "LIST", value_parser = each::<Layout>)]
    layouts: Option<List<Layout>>,

    #[command(flatten)]
    model: ModelOptions,
}

impl ExportCommand {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        match (self.record, self.target) {
            (Some(form), _) => self.write_record(form),
            (None, Some(format)) => match self.learned()? {
                Some(learned) => self.write_learned(format, learned),
                None => self.write_choices(format),
            },
            (None, None) => self.write_modules(),
        }
    }

    /// What applications have taught, where that is what is named. Choices beside it go first: they were confirmed.
    fn learned(&self) -> Result<Option<LearnedFiles>> {
        if self.directory.join("choices.json").exists() {
            return Ok(None);
        }
        learned_by_applications::read(&self.directory)
    }

    /// Modules of the files that `tune` has left in a run, where that lies now.
    fn write_modules(self) -> Result<()> {
        let asks_for_a_file = self.target_version.is_some()
            || self.target_library.is_some()
            || self.output.is_some()
            || self.report.is_some()
            || self.commutative
            || self.unconfirmed
            || self.layouts.is_some()
            || self.decisions.is_some();
        let Some(directory) = self.modulefiles.filter(|_| !asks_for_a_file) else {
            usage!("name what loads the file, as in --target openmpi");
        };
        let run = RunDirectory::read(&self.directory)?;
        if !run.summary().exists() {
            usage!(
                "{}: holds no tuning whose files a module could load; run `colibri tune`, or name what to write by \
                 --target and --output",
                self.directory.display()
            );
        }
        let summary: TuningSummary = document::read(&run.summary())?;
        let directory = std::path::absolute(directory)?;
        let modules = modulefiles::of_run(&run, &summary, self.module.as_deref())?;
        if modules.is_empty() {
            say!("verdict: {}", summary.advised().verdict);
            say!("So no module is written.");
        }
        for module in &modules {
            module.write(&directory)?;
            say!("verdict: {}\nAs a module:  {}", module.verdict, module.how_to_load(&directory));
        }
        Ok(())
    }

    fn write_record(self, form: RecordForm) -> Result<()> {
        let run = RunDirectory::read(&self.directory)?;
        let directory = self.output.unwrap_or_else(|| run.file(form.name()));
        if directory.exists() {
            bail!("{}: already exists; name another directory by --output", directory.display());
        }
        let files = record_forms::files(&run, form)?;
        std::fs::create_dir_all(&directory)
            .map_err(|error| FileError::io(&directory, "make this directory", &error))?;
        for file in &files {
            document::write_text(&directory.join(&file.name), &file.text)?;
        }
        say!("written: {} in {}", records::counted(files.len(), "file"), directory.display());
        Ok(())
    }

    fn write_choices(self, format: ExportFormat) -> Result<()> {
        let compile = match &self.compile {
            Some(command) => Some((format.compile()?, command)),
            None => None,
        };
        let (choices, source) = self.choices()?;
        let platform = platform(&choices, source.as_ref());
        let (exporter, matched) = self.exporter(format, platform)?;
        let expressed = self.expressed(format, &exporter, &choices, source.as_ref())?;
        let export = expressed.export();
        let files = exporter.files(&export)?;
        let verdict = expressed.verdict().to_string();
        let modulefile =
            self.modulefile(format, &*exporter, &matched, &export, platform, &verdict)?;
        let mut report = expressed.report();
        say!("verdict: {verdict}");
        if let Some(note) = note(&matched, &*exporter) {
            say!("note: {note}");
        }
        tell(&report);
        // What goes to stdout goes last: a report beside it is written though stdout is full.
        let mut printed = None;
        match &self.output {
            Some(path) => {
                report.files = write_files(path, files, &*exporter)?;
                if let Some((compile, command)) = compile {
                    let compiled = compile(&export, command, path)?;
                    report.files.extend(compiled.iter().map(|path| path.display().to_string()));
                }
                match expressed.replaces_something() {
                    true => load(&*exporter, &export, path, modulefile)?,
                    false => {
                        tell_that_nothing_is_loaded(path, modulefile, !report.files.is_empty())
                    }
                }
            }
            None => match files.as_slice() {
                [only] => printed = Some(only.text.clone()),
                [_, ..] if !exporter.is_directory() => {
                    usage!(
                        "this export has {} files, which go together; name the first by --output",
                        files.len()
                    )
                }
                [] => usage!("nothing replaces the default, so there is no file to write"),
                _ => usage!(
                    "this export has {} files; name their directory by --output",
                    files.len()
                ),
            },
        }
        let beside = self.output.map(|path| {
            let mut name = path.into_os_string();
            name.push(".export.json");
            PathBuf::from(name)
        });
        if let Some(path) = self.report.or(beside) {
            document::write(&path, &report)?;
        }
        printed.map_or(Ok(()), |text| output::print(&text))
    }

    /// Writes for the library that the choices were made for, or for the version that is asked for.
    fn exporter(
        &self,
        format: ExportFormat,
        platform: &Platform,
    ) -> Result<(CarefulExporter, LibraryMatch)> {
        let (version, matched) = format.version_for(self.target_version.as_deref(), platform)?;
        let own = match (&self.target_library, &matched) {
            (None, LibraryMatch::Own) => format.library_file(&platform.mpi_library),
            (named, _) => named.clone(),
        };
        let (version, library) = (version.as_deref(), own.as_deref());
        let exporter = format.careful_exporter(version, library, self.commutative)?;
        let is_asked = self.target_version.is_some() && matched == LibraryMatch::Unknown;
        Ok((exporter, if is_asked { LibraryMatch::Own } else { matched }))
    }

    /// The modulefile that is asked for, and the directory to write it into.
    fn modulefile(
        &self,
        format: ExportFormat,
        exporter: &dyn Exporter,
        matched: &LibraryMatch,
        export: &Export<'_>,
        platform: &Platform,
        verdict: &str,
    ) -> Result<Option<(Modulefile, PathBuf)>> {
        let Some(directory) = &self.modulefiles else { return Ok(None) };
        let Some(output) = &self.output else {
            usage!("--modulefiles: a module loads a file; name it by --output");
        };
        let file = std::path::absolute(output)?;
        let settings = modulefiles::settings(exporter, &file, export)?;
        if let LibraryMatch::Other(made_for) = matched {
            usage!(
                "--modulefiles: a module is written for the library that the choices were made for ({made_for}) \
                 alone, and this export is for {}; leave out --modulefiles or --target-version",
                exporter.target()
            );
        }
        let name = self.module.clone();
        let name = name.unwrap_or_else(|| modulefiles::name(platform, format));
        let about = modulefiles::about(exporter, platform);
        let modulefile = Modulefile { name, about, verdict: verdict.into(), settings };
        Ok(Some((modulefile, std::path::absolute(directory)?)))
    }

    /// The choices of a run or a file, and the parameters that they rest on, where these are at hand.
    fn choices(&self) -> Result<(Choices, Option<CalibrationSource>)> {
        let decisions = self.decisions.as_ref().map(|path| file_or_in_run(path, "decisions.json"));
        let file = decisions.or_else(|| Some(self.directory.clone()).filter(|path| path.is_file()));
        if let Some(path) = file {
            let choices = chosen::read(&path)?;
            let source = self.source_of(&choices)?;
            return Ok((choices, source));
        }
        let run = RunDirectory::read(&self.directory)?;
        let is_calibrated = self.model.calibration.is_some() || run.calibration().exists();
        let choices = chosen::of_run(&run)?;
        let source = is_calibrated.then(|| self.model.load_for(&run));
        Ok((choices, source.transpose()?))
    }

    /// The choices as the target can express them.
    fn expressed(
        &self,
        format: ExportFormat,
        exporter: &CarefulExporter,
        choices: &Choices,
        source: Option<&CalibrationSource>,
    ) -> Result<ExpressedChoices> {
        let model = match self.model.model.as_ref().map(|models| models.0.as_slice()) {
            None => None,
            Some([model]) => Some(*model),
            Some(_) => usage!("name the one model whose decisions to export, as in --model plogp"),
        };
        let used = self.layouts.as_ref().map_or(&[][..], |layouts| &layouts.0);
        let procs: BTreeSet<u32> = choices.choices.iter().map(|it| it.point.procs()).collect();
        if let Some(other) = used.iter().find(|layout| !procs.contains(&layout.procs())) {
            let known: Vec<String> = procs.iter().map(u32::to_string).collect();
            usage!(
                "--layouts {other:#}: nothing was chosen for {} ranks; choices are there for {}",
                other.procs(),
                known.join(", ")
            );
        }
        // A tuning has confirmed what holds for most ranks per node; its own file is written again.
        if format.way().is_none() || exporting::confirmed_for(choices, format).is_none() {
            self.ask_layouts(&**exporter, choices, used)?;
        }
        exporting::expressed(choices, format, exporter, model, source, used, self.unconfirmed)
    }

    /// Of layouts that a target does not distinguish it can express one.
    fn ask_layouts(
        &self,
        exporter: &dyn Exporter,
        choices: &Choices,
        used: &[Layout],
    ) -> Result<()> {
        let methods = choices.choices.iter().map(|chosen| (chosen.point, &chosen.method));
        let conflicts = conflicts(exporter, methods, used);
        let Some((key, layouts)) = conflicts.first_key_value() else { return Ok(()) };
        let procs = layouts.first().map_or(0, |layout| layout.procs());
        let full = |layout: &Layout| format!("{layout:#}");
        let layouts: Vec<String> = layouts.iter().map(full).collect();
        let fullest: Vec<String> =
            conflicts.values().filter_map(|all| all.last().map(full)).collect();
        usage!(
            "{} distinguishes only {key}, but {procs} ranks were measured as {}; say which layouts \
             the jobs use, as in --layouts {}",
            exporter.target(),
            layouts.join(" and "),
            fullest.join(",")
        )
    }

    /// The calibration named by a flag, or else the one that a file of predictions names, where it
    /// is still there.
    fn source_of(&self, choices: &Choices) -> Result<Option<CalibrationSource>> {
        let mut options = self.model.clone();
        if let (None, Some(prediction)) = (&options.calibration, &choices.prediction) {
            let name = &prediction.calibration;
            let is_there = name.starts_with("preset:") || Path::new(name).is_file();
            options.calibration = is_there.then(|| name.into());
        }
        match options.calibration {
            Some(_) => Ok(Some(options.load()?)),
            None => Ok(None),
        }
    }
}

/// Where the library was measured for which the choices were made, as far as they or the parameters tell.
fn platform<'a>(choices: &'a Choices, source: Option<&'a CalibrationSource>) -> &'a Platform {
    match source {
        Some(source) if choices.platform.mpi_library.is_empty() => &source.calibration.platform,
        _ => &choices.platform,
    }
}

/// What is to be known of the library that is written for.
fn note(matched: &LibraryMatch, exporter: &dyn Exporter) -> Option<String> {
    let target = exporter.target();
    match matched {
        LibraryMatch::Own => None,
        LibraryMatch::Other(made_for) => {
            Some(format!("the choices were made for {made_for}, and are written for {target}"))
        }
        LibraryMatch::Unknown => Some(format!(
            "which MPI library the choices were made for is not known: they are written for {target}; \
             --target-version names another version"
        )),
    }
}

/// Says how what was written is loaded; writes the module that loads it.
fn load(
    exporter: &dyn Exporter,
    export: &Export<'_>,
    path: &Path,
    modulefile: Option<(Modulefile, PathBuf)>,
) -> Result<()> {
    // A job's ranks may run in another directory.
    let place = std::path::absolute(path).unwrap_or_else(|_| path.into());
    say!("{}", exporter.how_to_load(&place.display().to_string(), export));
    if let Some((modulefile, directory)) = modulefile {
        modulefile.write(&directory)?;
        say!("As a module:  {}", modulefile.how_to_load(&directory));
    }
    Ok(())
}

fn tell_that_nothing_is_loaded(
    path: &Path,
    modulefile: Option<(Modulefile, PathBuf)>,
    is_written: bool,
) {
    if is_written {
        say!("{}: leaves every call to the library", path.display());
    }
    let Some((modulefile, directory)) = modulefile else { return };
    say!("So no module is written.");
    for path in modulefile.paths(&directory).iter().filter(|path| path.exists()) {
        say!("{}: is of an earlier export; remove it", path.display());
    }
}

/// A name that is one file's and no hidden one.
fn module_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !text.is_empty() && !text.starts_with('.') && text.chars().all(plain) {
        true => Ok(text.into()),
        false => Err("take letters, digits, `-`, `_` and `.`, as in hal-openmpi-4.1.4".into()),
    }
}

/// Says on stderr what the target can't express.
fn tell(report: &ExportReport) {
    let count = report.unexpressed.len();
    if count == 0 {
        return;
    }
    let losses: Vec<f64> =
        report.unexpressed.iter().filter_map(|one| Some(1.0 + one.loss?)).collect();
    // What stands in for a choice was not confirmed.
    let basis = if report.basis == "confirmed" { "measured" } else { &report.basis };
    say!(
        "{count} of {} cannot be expressed for {}. Penalty of what is exported instead ({basis}):",
        records::counted(report.decisions, "decision"),
        report.target
    );
    match geometric_mean(&losses) {
        Some(mean) => {
            let unknown = count - losses.len();
            let rest = if unknown > 0 {
                format!("; unknown at {}", records::counted(unknown, "point"))
            } else {
                String::new()
            };
            say!("  {:.1} % on average{rest}", (mean - 1.0) * 100.0);
        }
        None => say!("  unknown (these calls are left to the library)"),
    }
    let worst = report.unexpressed.iter().filter(|one| one.loss.is_some());
    let worst = worst.max_by(|a, b| a.loss.unwrap_or(0.0).total_cmp(&b.loss.unwrap_or(0.0)));
    if let Some(one) = worst {
        say!(
            "  {:.1} % at most: {}, {} instead of {}",
            one.loss.unwrap_or(0.0) * 100.0,
            one.point,
            one.exported.short(),
            one.method.short()
        );
    }
    let mut reasons: Vec<&str> = Vec::new();
    for one in &report.unexpressed {
        if !reasons.contains(&one.reason.as_str()) {
            reasons.push(&one.reason);
        }
    }
    for reason in reasons.iter().take(REASONS) {
        say!("  {reason}");
    }
    if let Some(more @ 1..) = reasons.len().checked_sub(REASONS) {
        say!("  {}; all are in the report (--report FILE)", records::counted(more, "more reason"));
    }
}

/// How many reasons are printed on a terminal.
const REASONS: usize = 4;
