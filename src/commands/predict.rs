//! `colibri predict`: what each method costs, by each model.

mod drawing;
mod row;
mod standing;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use models::{
    Model, PredictError, Predictor,
    decide::{Segments, best_segment},
};
use records::{Algorithm, Collective, Layout, Method, OwnMethod, Point, quantity};
use schedules::{Entry, find, find_node_aware, of_collective, why_not_modelled};

use self::{
    drawing::{draw, name},
    row::PredictionRow,
    standing::{best_first, mark_ties, of_best, places},
};
use crate::commands::shared::{
    levels::{CompositionOptions, PlacedAlgorithm},
    network::{CostModel, SIMULATION, SimulationOptions, blamed, segment_text},
    options::{
        GridOptions, List, ListedOrBestSegments, ModelOptions, RootOption, algorithms,
        figure as figure_file, usual_models,
    },
    output::{self, TableFormat},
};
use site::{error::WrongUse, usage};
use stages::{
    deciding::{knows_any, no_methods, sizes, tell_without},
    simulating,
    source::CalibrationSource,
};

/// Predicts what each algorithm costs, from closed forms or by simulation
#[derive(Debug, Args)]
#[command(mut_arg("model", |model| usual_models(model, &Model::TABLES, "; refined for collectives that none of these knows")))]
pub struct Predict {
    #[command(flatten)]
    model: ModelOptions,

    #[command(flatten)]
    root: RootOption,

    #[command(flatten)]
    grid: GridOptions<ListedOrBestSegments>,

    /// Algorithms, with commas [default: all that the model covers]
    #[arg(long, value_name = "NAMES", value_parser = algorithms)]
    algorithm: Option<List<Algorithm>>,

    #[command(flatten)]
    composition: CompositionOptions,

    #[command(flatten)]
    simulation: SimulationOptions,

    /// Chains of k-chain, radix of k-nomial and others that have one, by --model refined or simulated
    /// [default: 4, and others that are worth it]
    #[arg(long, value_name = "K", hide_short_help = true, help_heading = SIMULATION)]
    fan_out: Option<u32>,

    /// Also draw the times, as .svg or .png, a panel per model: over message size if there is one
    /// communicator size, over ranks if there is one message size
    #[arg(long, value_name = "FILE", value_parser = figure_file())]
    figure: Option<PathBuf>,

    /// Print every method; else a table longer than a screen has the 3 fastest of each point and model
    #[arg(long)]
    all: bool,

    /// Output format
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    format: TableFormat,
}

const HEADING: [&str; 14] = [
    "collective",
    "algorithm",
    "segment",
    "procs",
    "bytes",
    "model",
    "found by",
    "predicted",
    "of best",
    "95 % interval",
    "T_max",
    "of limit",
    "messages",
    "extrapolated",
];

impl Predict {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let source = self.model.load()?.with_inside(&self.composition.inside)?;
        let _shown = simulating::show();
        let asked = self.model.named_models(&source);
        self.check_simulation(asked.as_deref())?;
        let layouts = source.layouts(&self.grid.layouts());
        self.grid.check_rows(layouts.len(), self.grid.collective.0.len())?;
        let source = source.with_root(self.root.checked(&self.grid.collective.0, &layouts)?);
        let source = source.with_simulation(self.simulation.of_models());
        let mut rows = Vec::new();
        for &collective in &self.grid.collective.0 {
            let models = asked.clone().unwrap_or_else(|| default_models(&source, collective));
            for model in models {
                let predictor = source.predictor(model)?;
                if self.is_of_all() && !self.is_known(&predictor, collective) {
                    continue;
                }
                let sees_nodes = |layout: &Layout| predictor.at(*layout).sees_nodes();
                let (on_nodes, others): (Vec<Layout>, Vec<Layout>) =
                    layouts.iter().copied().partition(sees_nodes);
                let is_part = !on_nodes.is_empty();
                let mut of_model = self.by_number(&predictor, collective, &others, is_part)?;
                for layout in on_nodes {
                    of_model.extend(self.on_nodes(&predictor, collective, layout)?);
                }
                mark_ties(&predictor, &mut of_model);
                rows.extend(of_model);
            }
        }
        if self.is_of_all() && rows.is_empty() {
            let mut asked = self.algorithm.iter().flat_map(|List(asked)| asked);
            if let Some(why) = asked.find_map(|one| why_not_modelled(&self.grid.collective.0, *one))
            {
                usage!("--algorithm: {why}");
            }
            usage!("no model of those named knows such an algorithm of these collectives");
        }
        self.show(&source, rows)
    }

    /// Whether all collectives or models were asked for: what a model does not know is left out.
    fn is_of_all(&self) -> bool {
        self.grid.asks_for_all() || self.model.asks_for_all()
    }

    /// Flags of simulations and of fan-outs promise nothing where no method looks at them.
    fn check_simulation(&self, models: Option<&[Model]>) -> Result<()> {
        let SimulationOptions { costs, rendezvous, .. } = self.simulation;
        let is_asked = rendezvous.is_some() || costs != CostModel::PLogP;
        if is_asked && !models.is_some_and(|models| models.contains(&Model::Simulated)) {
            usage!("--costs and --rendezvous are for simulations: give --model simulated");
        }
        let is_asked = |entry: &Entry| match &self.algorithm {
            Some(List(asked)) => asked.contains(&entry.algorithm),
            None => true,
        };
        let mut entries = self.grid.collective.0.iter().flat_map(|one| of_collective(*one));
        if self.fan_out.is_some() && !entries.any(|entry| entry.fanned && is_asked(entry)) {
            usage!("--fan-out: none of these algorithms has one; k-chain and k-nomial have");
        }
        let knows_fan_out = |model: &Model| matches!(model, Model::Refined | Model::Simulated);
        if self.fan_out.is_some() && !models.is_some_and(|models| models.iter().any(knows_fan_out))
        {
            usage!(
                "--fan-out is for models that know such algorithms: give --model refined or simulated"
            );
        }
        Ok(())
    }

    /// The ways in which a predictor knows an algorithm, with the fan-out that is asked for.
    fn ways(
        &self,
        predictor: &Predictor,
        collective: Collective,
        algorithm: Algorithm,
    ) -> Vec<Method> {
        let is_fanned = find(collective, algorithm).is_some_and(|entry| entry.fanned);
        match self.fan_out.filter(|_| is_fanned) {
            Some(fan_out) => {
                vec![Method::Own(OwnMethod { fan_out, ..OwnMethod::plain(algorithm) })]
            }
            None => predictor.methods(collective, algorithm),
        }
    }

    /// Whether a model knows a method of those asked for.
    fn is_known(&self, predictor: &Predictor, collective: Collective) -> bool {
        let Some(List(asked)) = &self.algorithm else { return knows_any(predictor, collective) };
        asked.iter().any(|one| knows(predictor, collective, *one))
    }

    /// Where each rank has a node of its own, all are on one node, or nodes are ignored: by method,
    /// layout and size. Algorithms that look at nodes are left out where others do look at them.
    fn by_number(
        &self,
        predictor: &Predictor,
        collective: Collective,
        layouts: &[Layout],
        is_part: bool,
    ) -> Result<Vec<PredictionRow>> {
        let model = predictor.model();
        let here = layouts.first().map_or(predictor, |layout| predictor.at(*layout));
        let mut algorithms = self.wanted(here, collective)?;
        let by_node = algorithms.iter().find(|algorithm| algorithm.is_node_aware());
        if let Some(by_node) = by_node.filter(|_| !is_part) {
            usage!("{by_node} depends on which ranks share a node; give --layouts, such as 8x4");
        }
        algorithms.retain(|algorithm| !algorithm.is_node_aware());
        if layouts.is_empty() || algorithms.is_empty() {
            return Ok(Vec::new());
        }
        let per_algorithm = match &self.grid.segments.segments {
            Segments::List(sizes) => sizes.len(),
            Segments::Auto => 1,
        };
        self.grid.check_rows(layouts.len(), algorithms.len() * per_algorithm)?;
        let mut rows = Vec::new();
        for (algorithm, method) in self.methods(predictor, collective, &algorithms)? {
            for &layout in layouts {
                let procs = layout.procs();
                if self.algorithm.is_none() && !model.serves(collective, algorithm, procs) {
                    say!(
                        "{collective} {algorithm} skipped for {procs} ranks: it needs an even number"
                    );
                    continue;
                }
                for &bytes in sizes(collective, &self.grid.sizes.0) {
                    let point = Point { collective, layout, bytes };
                    let segments = &self.grid.segments.segments;
                    rows.extend(self.predict(predictor, point, algorithm, &method, segments)?);
                }
            }
        }
        Ok(rows)
    }

    /// On nodes of several ranks: by algorithm, those that look at nodes included, and size.
    fn on_nodes(
        &self,
        predictor: &Predictor,
        collective: Collective,
        layout: Layout,
    ) -> Result<Vec<PredictionRow>> {
        let known = self.wanted(predictor.at(layout), collective)?;
        let placed: Vec<PlacedAlgorithm> = match &self.algorithm {
            Some(_) => {
                let named = known.iter();
                let named =
                    named.map(|one| self.composition.named(Some(layout), collective, one.name()));
                named.collect::<Result<_>>()?
            }
            None => {
                let mut all = self.composition.all(Some(layout), collective)?;
                all.retain(|placed| {
                    let inner = placed.renumbered().unwrap_or(placed.entry).algorithm;
                    inner.is_node_aware() || known.contains(&inner)
                });
                all
            }
        };
        let mut rows = Vec::new();
        for placed in placed {
            if placed.leaves_out(layout.procs(), self.algorithm.is_none()) {
                continue;
            }
            let is_known = predictor.at(layout).knows_shared_memory();
            if let Some(why) = placed.through_memory().filter(|_| !is_known) {
                usage!("{why}");
            }
            let algorithm = placed.method.algorithm;
            let methods = match placed.method.is_node_aware() {
                true => vec![Method::Own(placed.method)],
                false => self.ways(predictor.at(layout), collective, algorithm),
            };
            for method in &methods {
                for &bytes in sizes(collective, &self.grid.sizes.0) {
                    let point = Point { collective, layout, bytes };
                    let segments = &self.grid.segments.segments;
                    rows.extend(self.predict(predictor, point, algorithm, method, segments)?);
                }
            }
        }
        Ok(rows)
    }

    /// The algorithms asked for; where that is of all, those of them that the model knows.
    fn wanted(&self, predictor: &Predictor, collective: Collective) -> Result<Vec<Algorithm>> {
        let model = predictor.model();
        let known = predictor.algorithms(collective);
        if known.is_empty() {
            usage!("{}", no_methods(collective, model));
        }
        let asked = match &self.algorithm {
            None => &known,
            Some(List(asked)) if self.is_of_all() => {
                let of_asked = asked.iter().copied();
                return Ok(of_asked.filter(|one| knows(predictor, collective, *one)).collect());
            }
            Some(List(asked)) => asked,
        };
        let is_unknown =
            |one: &&Algorithm| !is_known_form(predictor, collective, **one) && !one.is_node_aware();
        if let Some(unknown) = asked.iter().find(is_unknown) {
            if let Some(why) = why_not_modelled(&self.grid.collective.0, *unknown) {
                usage!("--algorithm: {why}");
            }
            let names: Vec<_> = known.iter().map(|algorithm| algorithm.name()).collect();
            usage!(
                "{collective} has no closed form for '{unknown}' in model {model} (there are for: {})",
                names.join(", ")
            );
        }
        Ok(asked.clone())
    }

    fn show(&self, source: &CalibrationSource, mut rows: Vec<PredictionRow>) -> Result<()> {
        if let Some(path) = &self.figure {
            draw(source, &rows, self.grid.segments.segments == Segments::Auto, path)?;
        }
        let interval = |row: &PredictionRow| {
            let [low, high] = [row.low_seconds?, row.high_seconds?].map(quantity::format_seconds);
            Some(format!("{low} .. {high}"))
        };
        best_first(&mut rows);
        if self.format != TableFormat::Table {
            return output::rows(self.format, &rows, &HEADING, |_| Vec::new());
        }
        let places = places(&rows);
        let mut shown: Vec<(&PredictionRow, String)> = Vec::new();
        let is_long = rows.len() > SCREEN && !self.all;
        for (row, place) in rows.iter().zip(&places) {
            if !is_long || place.number < FASTEST {
                shown.push((row, of_best(row, place)));
            }
        }
        let left_out = rows.len() - shown.len();
        let cells = shown.into_iter().map(|(row, of_best)| {
            vec![
                row.collective.to_string(),
                name(row, &row.method),
                segment_text(row.segment_bytes),
                row.layout.to_string(),
                row.bytes.to_string(),
                row.model.into(),
                row.found_by.into(),
                quantity::format_seconds(row.seconds),
                of_best,
                interval(row).unwrap_or_default(),
                row.greatest_seconds.map_or_else(String::new, quantity::format_seconds),
                row.limit_seconds.map_or_else(String::new, |limit| of_limit(row.seconds, limit)),
                row.messages.map_or_else(String::new, |messages| messages.to_string()),
                output::mark(row.extrapolated),
            ]
        });
        let (heading, cells) = output::filled_columns(&HEADING, cells.collect());
        output::print(&output::aligned(&heading, cells))?;
        if rows.iter().all(|row| row.low_seconds.is_none()) {
            let name = &source.name;
            say!(
                "note: no intervals: nothing is known of the errors of {name}, or simulating them takes too long"
            );
        }
        if left_out > 0 {
            let more = records::counted(left_out, "row");
            say!("note: the {FASTEST} fastest of each point and model; --all prints {more} more");
        }
        Ok(())
    }

    /// The methods to predict, without segments.
    fn methods(
        &self,
        predictor: &Predictor,
        collective: Collective,
        algorithms: &[Algorithm],
    ) -> Result<Vec<(Algorithm, Method)>> {
        tell_without(predictor, collective, algorithms);
        let of = |&algorithm: &Algorithm| {
            let methods = self.ways(predictor, collective, algorithm).into_iter();
            methods.map(move |method| (algorithm, method))
        };
        let methods: Vec<(Algorithm, Method)> = algorithms.iter().flat_map(of).collect();
        if methods.is_empty() {
            usage!(
                "no constants of {} were fitted for {collective} by these algorithms",
                predictor.model()
            );
        }
        Ok(methods)
    }

    /// [`predict_segments`], whose errors are those of the question.
    fn predict(
        &self,
        predictor: &Predictor,
        point: Point,
        algorithm: Algorithm,
        method: &Method,
        segments: &Segments,
    ) -> Result<Vec<PredictionRow>> {
        let rows = predict_segments(predictor, point, algorithm, method, segments);
        // The predictor answers what was asked of it: a rank, a size, an algorithm that cannot be.
        let mut rows = rows.map_err(|error| match error.downcast::<PredictError>() {
            Ok(PredictError::Simulation(error)) => blamed(error),
            Ok(error) => WrongUse(error.to_string()).into(),
            Err(error) => error,
        })?;
        if predictor.model() == Model::Simulated && self.simulation.costs == CostModel::LogGp {
            rows.iter_mut().for_each(|row| row.found_by = "simulated by loggp");
        }
        Ok(rows)
    }
}

/// So many rows are read without scrolling.
const SCREEN: usize = 24;
/// So many of each point and model a longer table has.
const FASTEST: usize = 3;

/// How many times the limit a time is: `1.12 x`; nothing where there is no limit.
fn of_limit(seconds: f64, limit: f64) -> String {
    if limit > 0.0 { format!("{:.2} x", seconds / limit) } else { String::new() }
}

/// The models of the paper's tables; where it has none, the refined one. Of constants of algorithms
/// both that have them.
fn default_models(source: &CalibrationSource, collective: Collective) -> Vec<Model> {
    let usual = source.models(Model::TABLES.to_vec()).into_iter();
    let known: Vec<Model> =
        usual.filter(|model| !model.algorithms(collective).is_empty()).collect();
    if known.is_empty() { vec![Model::Refined] } else { known }
}

/// Whether a model knows an algorithm of a collective, or that looks at nodes.
fn knows(predictor: &Predictor, collective: Collective, algorithm: Algorithm) -> bool {
    let known = predictor.algorithms(collective);
    match algorithm.is_node_aware() {
        true => !known.is_empty() && find_node_aware(collective, algorithm).is_some(),
        false => {
            is_known_form(predictor, collective, algorithm)
                && !predictor.methods(collective, algorithm).is_empty()
        }
    }
}

/// Whether a model knows an algorithm that does not look at nodes; second forms of some by their schedules alone.
fn is_known_form(predictor: &Predictor, collective: Collective, algorithm: Algorithm) -> bool {
    predictor.algorithms(collective).contains(&algorithm)
        || predictor.model() == Model::Simulated && find(collective, algorithm).is_some()
}

/// One row for each segment size, one alone where the algorithm has no segments; with `auto` one
/// for the best.
fn predict_segments(
    predictor: &Predictor,
    point: Point,
    algorithm: Algorithm,
    method: &Method,
    segments: &Segments,
) -> Result<Vec<PredictionRow>> {
    let here = predictor.at(point.layout);
    let segmented = here.segmented(point.collective, method)?;
    let segments = match segments {
        _ if !segmented => vec![0],
        Segments::Auto => best_segment(predictor, point, method)?.into_iter().collect(),
        Segments::List(these) => these.clone(),
    };
    let mut rows = Vec::new();
    for segment_bytes in segments {
        let method = method.clone().with_segment(segment_bytes);
        // More streams than segments are the same as with fewer streams.
        let is_parametrized = matches!(&method, Method::Own(own) if own.is_parametrized());
        let is_another = !is_parametrized || here.is_candidate(point, &method)?;
        if !libraries::runs(point, &method) || !is_another {
            continue;
        }
        let prediction = predictor.predict_in_full(point, &method)?;
        // Of parameters whose errors are not known there is none.
        let interval = prediction.interval.filter(|[low, high]| low < high);
        rows.push(PredictionRow {
            collective: point.collective,
            algorithm,
            segment_bytes,
            layout: point.layout,
            bytes: point.bytes,
            model: predictor.model().name(),
            seconds: prediction.seconds,
            low_seconds: interval.map(|[low, _]| low),
            high_seconds: interval.map(|[_, high]| high),
            tie: false,
            messages: prediction.messages,
            greatest_seconds: predictor.predict_greatest(point, &method)?,
            // It is one of messages.
            limit_seconds: (predictor.limit(point).filter(|_| !method.shares_memory()))
                .map(|limit| limit.seconds),
            found_by: predictor.found_by(point, &method)?,
            method: here.made_for(point, &method)?,
            asked: method,
            tells_origin: predictor.is_by_method() || here.sees_nodes(),
            extrapolated: !predictor.reach().covers(point),
        });
    }
    Ok(rows)
}
