//! `colibri fit`: parameters from whatever a run holds.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use clap::{Args, builder::PossibleValue};
use models::{
    Model,
    fit::{JointFit, MIN_SECONDS_PER_BYTE, NodeFit, OverRanks},
};
use records::{
    Collective, Method,
    calibration::{Calibration, Estimate, Parameters},
    document, quantity,
};
use statistics::quantile;

use crate::commands::shared::{
    calibration::{time_and_interval, time_per_byte_and_interval},
    options::{List, figure, named, procs},
    output::{self, percent},
};
use site::{run_directory::RunDirectory, usage};
use stages::{
    fitting::{self, Fitted},
    left_out::{self, LeftOut, LeftOutResult, MODELS, SummedPoints},
    memory_benchmark,
};

/// Fits parameters to whatever a run holds (messages between pairs, collectives of known algorithms) and
/// writes calibration.json; tells what the data cannot determine
#[derive(Debug, Args)]
pub struct FitCommand {
    /// Directory of a run, imported or measured (several with --leave-out)
    #[arg(value_name = "RUN", required = true)]
    directories: Vec<PathBuf>,

    /// Cross-validate: leave out each PART in turn, fit to the rest and judge the decisions at what was left
    /// out; writes no calibration
    #[arg(long, value_parser = named(&LeftOut::ALL, part), value_name = "PART")]
    leave_out: Option<LeftOut>,

    /// Leave out all sizes above this one at once, in place of every other size (with --leave-out sizes)
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, requires = "leave_out")]
    above: Option<u64>,

    /// Judge these numbers of ranks alone (with --leave-out)
    #[arg(long, short, value_name = "LIST", value_parser = procs, requires = "leave_out")]
    procs: Option<List<u32>>,

    /// Draw what the decisions cost at what was left out, a panel for each run (SVG or PNG)
    #[arg(long, value_name = "FILE", requires = "leave_out", value_parser = figure())]
    figure: Option<PathBuf>,

    /// Add to the run's calibration.json what a benchmark measured of the memory that ranks of a node share
    /// (CSV: what, ranks, bytes, value, unit)
    #[arg(long, value_name = "FILE", conflicts_with = "leave_out", requires = "overwrite")]
    memory: Option<PathBuf>,

    /// Replace a calibration.json that is there
    #[arg(long)]
    overwrite: bool,
}

fn part(left_out: LeftOut) -> PossibleValue {
    PossibleValue::new(left_out.name()).help(left_out.about())
}

impl FitCommand {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        match (self.leave_out, self.directories.as_slice()) {
            (Some(LeftOut::Sizes), _) => {
                self.leave_out(self.above.map_or(LeftOut::Sizes, LeftOut::SizesAbove))
            }
            (Some(left_out), _) if self.above.is_some() => {
                usage!("--above is for --leave-out sizes, not for {}", left_out.name())
            }
            (Some(left_out), _) => self.leave_out(left_out),
            (None, [directory]) if self.memory.is_some() => self.add_memory(directory),
            (None, [directory]) => self.fit(&RunDirectory::judge(directory)?),
            (None, _) => usage!("several runs are fitted one by one, or compared with --leave-out"),
        }
    }

    fn fit(&self, run: &RunDirectory) -> Result<()> {
        let fitted = fitting::fit(run)?;
        let path = run.calibration();
        let is_kept = path.exists() && !self.overwrite;
        let is_written = run.is_written_to() && !is_kept;
        if is_written {
            document::write(&path, &fitted.calibration)?;
        }
        output::print(&text(&fitted))?;
        if is_kept {
            usage!("{}: already exists; --overwrite replaces it", path.display());
        }
        if is_written {
            say!("written: {}", path.display());
        }
        Ok(())
    }

    fn add_memory(&self, directory: &Path) -> Result<()> {
        let path = RunDirectory::judge(directory)?.calibration();
        let mut calibration: Calibration = document::read(&path)?;
        let file = self.memory.as_deref().unwrap_or(Path::new(""));
        memory_benchmark::add(&mut calibration, file)?;
        document::write(&path, &calibration)?;
        say!("written: {}", path.display());
        Ok(())
    }

    fn leave_out(&self, left_out: LeftOut) -> Result<()> {
        let only = self.procs.as_ref().map(|procs| procs.0.as_slice());
        let (mut panels, mut text) = (Vec::new(), String::new());
        for directory in &self.directories {
            let run = RunDirectory::judge(directory)?;
            let times = fitting::times(&run)?;
            let result = left_out::leave_out(&times, left_out, only)
                .with_context(|| run.path().display().to_string())?;
            let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if self.directories.len() > 1 {
                text += &format!("{name}\n");
            }
            let judged = left_out_text(&result);
            if judged.is_empty() {
                say!(
                    "note: {}: nothing can be left out and predicted from the rest; that takes more sizes, numbers of ranks or \
                     methods",
                    run.path().display()
                );
            }
            text += &judged;
            panels.push((name, result.curves()));
        }
        if let Some(path) = &self.figure {
            figures::save_as(&left_out::draw(&panels)?, path)?;
            say!("written: {}", path.display());
        }
        output::print(&text)
    }
}

fn together([value, interval]: [String; 2]) -> String {
    if interval.is_empty() { value } else { format!("{value} ({interval})") }
}

fn time(estimate: Estimate) -> String {
    together(time_and_interval(estimate))
}

fn per_byte(estimate: Estimate) -> String {
    let rate = match estimate.value > MIN_SECONDS_PER_BYTE {
        true => format!(", {:.3} GB/s", 1e-9 / estimate.value),
        false => String::new(),
    };
    together(time_per_byte_and_interval(estimate)) + &rate
}

/// How many times as much an algorithm takes.
fn factor_of(Estimate { value, low, high }: Estimate) -> String {
    let interval = if low < high { format!("{low:.2} .. {high:.2}") } else { String::new() };
    together([format!("{value:.2}"), interval])
}

fn text(fitted: &Fitted) -> String {
    let mut text = String::new();
    if let Some(streams) = &fitted.streams {
        let parameters = &streams.parameters;
        text += "Fitted to messages between pairs of ranks\n";
        text += &format!("  alpha    {}\n", time(parameters.hockney.alpha_seconds));
        text += &format!("  g        {}\n", time(parameters.loggp.gap_seconds));
        text += &format!("  G        {}\n", per_byte(parameters.loggp.gap_seconds_per_byte));
        for share in &streams.shares {
            text += &format!(
                "  {:>3} pairs together: {:.1} million messages/s, {:.2} GB/s\n",
                share.pairs,
                share.messages_per_second / 1e6,
                share.bytes_per_second / 1e9
            );
        }
    }
    if let Some(joint) = &fitted.joint {
        text += &joint_text(joint);
    }
    if let Some(node) = &fitted.node {
        text += &node_text(node);
    }
    for warning in &fitted.calibration.warnings {
        text += &format!("not determined: {warning}\n");
    }
    text
}

fn node_text(node: &NodeFit) -> String {
    let NodeFit { memory, slowdown_exponent, median_error, times, over, between, .. } = node;
    let means = if *over == OverRanks::Mean { ", which are means over the ranks" } else { "" };
    let caches = memory.ranks_per_cache.map_or_else(
        || "no groups of ranks share a cache".to_owned(),
        |ranks| format!("messages among {ranks} consecutive ranks, which share a cache, do not"),
    );
    let mut text = format!(
        "Copies in the memory of one node, fitted to {times} times{means}; median relative error {}\n  \
         while b ranks copy, a message takes (b / 2)^{slowdown_exponent:.2} times as long; {caches}\n",
        percent(*median_error)
    );
    if let Some(Parameters { hockney, .. }) = between {
        text += &format!(
            "  messages between nodes beside these copies: alpha {}, beta {}\n",
            time(hockney.alpha_seconds),
            per_byte(hockney.beta_seconds_per_byte)
        );
    }
    text
}

fn joint_text(joint: &JointFit) -> String {
    let mut text = format!(
        "Fitted to {} times of collectives whose schedules are known; median relative error {}\n",
        joint.times,
        percent(joint.median_error)
    );
    text += &format!("  alpha  {}\n", time(joint.start));
    text += &format!("  beta   {}\n", per_byte(joint.per_byte));
    text += &format!("  gamma  {}\n", per_byte(joint.combining));
    if let Some([start, inside]) = joint.inside {
        text += &format!("  alpha inside nodes  {}\n", time(start));
        text += &format!("  beta inside nodes   {}\n", per_byte(inside));
    }
    for factor in &joint.factors {
        text += &format!(
            "  {:<15} {:<38} alpha x {}, beta x {} (from {})\n",
            factor.collective.to_string(),
            factor.method.to_string(),
            factor_of(factor.start),
            factor_of(factor.per_byte),
            records::counted(factor.times, "time")
        );
    }
    text
}

/// How far times carried over to another size are off, and how many of them by as much as was given.
fn carried_text(carried: &[(f64, f64)]) -> String {
    let errors: Vec<f64> = carried.iter().map(|(error, _)| error.exp() - 1.0).collect();
    let (Some(median), Some(upper)) = (quantile(&errors, 0.5), quantile(&errors, 0.95)) else {
        return String::new();
    };
    let within = carried.iter().filter(|(error, deviation)| *error <= 2.0 * deviation).count();
    format!(
        "Times interpolated at sizes left out, {}: the greater of measured and interpolated over the lesser less 1, \
         median {}, 95th percentile {}; {} lie within two predicted standard deviations\n",
        records::counted(carried.len(), "time"),
        percent(median),
        percent(upper),
        percent(within as f64 / carried.len() as f64)
    )
}

/// What each model knows of what was left out, and how far its times are off, by method.
fn predicted_text(result: &LeftOutResult) -> String {
    if result.predicted.is_empty() {
        return String::new();
    }
    let mut of_methods: BTreeMap<(Collective, &Method), BTreeMap<Model, Vec<f64>>> =
        BTreeMap::new();
    for one in &result.predicted {
        let of_models = of_methods.entry((one.collective, &one.method)).or_default();
        of_models.entry(one.model).or_default().push(one.error);
    }
    let mut text = String::from("\nOf the times left out, except the default's, a model predicts:");
    for model in MODELS {
        let known = result.predicted.iter().filter(|one| one.model == model).count();
        text += &format!(" {model} {}", percent(known as f64 / result.judged.max(1) as f64));
    }
    text += "\nPrediction error there, |predicted / measured - 1|, median and 95th\n\n";
    let row = |((collective, method), of_models): (_, BTreeMap<Model, Vec<f64>>)| {
        let (collective, method): (Collective, &Method) = (collective, method);
        let times = of_models.values().map(Vec::len).max().unwrap_or_default();
        let of_model = |model: Model| {
            let errors = of_models.get(&model)?;
            let (median, upper) = (quantile(errors, 0.5)?, quantile(errors, 0.95)?);
            Some(format!("{}, {}", percent(median), percent(upper)))
        };
        let mut row = vec![collective.to_string(), method.short(), times.to_string()];
        row.extend(MODELS.map(|model| of_model(model).unwrap_or_else(|| "-".into())));
        row
    };
    let names = MODELS.map(Model::name);
    let heading = [&["collective", "method", "times"], &names[..]].concat();
    text + &output::aligned(&heading, of_methods.into_iter().map(row))
}

fn left_out_text(result: &LeftOutResult) -> String {
    let mut text = String::new();
    if let (Some(median), Some(upper)) =
        (quantile(&result.errors, 0.5), quantile(&result.errors, 0.95))
    {
        text += &format!(
            "Prediction error of what was left out by the joint fit alone (structure): median {}, 95th percentile {}, {}\n",
            percent(median),
            percent(upper),
            records::counted(result.errors.len(), "time")
        );
    }
    text += &carried_text(&result.carried);
    if !result.rows.is_empty() {
        text += "Penalty against the measured best, at what was left out\n\n";
        text += &format!(
            "{:<16} {:<12} {:>6} {:>9} {:>9}\n",
            "collective", "decided by", "points", "mean", "95th"
        );
    }
    for row in &result.rows {
        let name = match row.summed {
            SummedPoints::Of(collective) => collective.name(),
            SummedPoints::All => "all",
            SummedPoints::Common => "where all decide",
        };
        text += &format!(
            "{name:<16} {:<12} {:>6} {:>9} {:>9}\n",
            row.decided_by,
            row.points,
            percent(row.mean),
            percent(row.percentile_95)
        );
    }
    text += &predicted_text(result);
    if result.unreached > 0 {
        text += &format!(
            "Not judged, since nothing near was measured: {}\n",
            records::counted(result.unreached, "point")
        );
    }
    text
}
