//! `colibri explain`: why a decision is what it is, term by term.

use anyhow::Result;
use clap::Args;
use models::{
    Model, Predictor,
    decide::{Segments, best_segment, methods},
    explain::{FormulaText, Symbol, Term},
};
use records::{Collective, Layout, Method, Point, calibration::Estimate, quantity};
use serde::Serialize;

use crate::commands::shared::{
    options::{ListedOrBestSegments, ModelOptions, RootOption, usual_models},
    output,
};
use site::usage;
use stages::{
    deciding::{judged_models, methods_on_nodes, no_methods, tell_without},
    source::CalibrationSource,
};

/// The one communicator size that is explained.
fn one_procs(text: &str) -> Result<u32, String> {
    let procs = text.trim().parse().ok().filter(|procs| (2..=MAX_EXPLAINED).contains(procs));
    procs.ok_or_else(|| {
        format!("expected one number of ranks from 2 to {MAX_EXPLAINED} (more would be simulated for hours)")
    })
}

/// The one message size that is explained.
fn one_size(text: &str) -> Result<u64, String> {
    match text.contains(',') || text.contains("..") {
        true => Err("expected one size, e.g. 64KiB".into()),
        false => quantity::parse_bytes(text),
    }
}

/// More ranks would be simulated for hours.
const MAX_EXPLAINED: u32 = 1 << 20;

/// Explains a decision: the candidates in order, what each parameter contributes to their times,
/// what sets the best apart from the next, and each candidate's formula with its numbers
#[derive(Debug, Args)]
#[command(mut_arg("model", |model| usual_models(model, &judged_models(), "")))]
pub struct Explain {
    #[command(flatten)]
    model: ModelOptions,

    #[command(flatten)]
    root: RootOption,

    /// The collective
    #[arg(long, value_name = "NAME", default_value = "bcast")]
    collective: Collective,

    /// Communicator size, with a node for each rank
    #[arg(
        long,
        short,
        value_name = "N",
        value_parser = one_procs,
        required_unless_present = "layout"
    )]
    procs: Option<u32>,

    /// Instead of --procs, nodes and ranks on each: 8x4, 8x4:cyclic or 4+4+3
    #[arg(long = "layouts", value_name = "NODESxRANKS", conflicts_with = "procs")]
    layout: Option<Layout>,

    /// Message size, such as 64KiB; 0 for a barrier
    #[arg(long = "sizes", short = 'm', value_name = "SIZE", value_parser = one_size)]
    bytes: Option<u64>,

    #[command(flatten)]
    segments: ListedOrBestSegments,

    /// Output format
    #[arg(long, value_enum, default_value_t = ExplanationFormat::Table)]
    format: ExplanationFormat,
}

/// How an explanation is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ExplanationFormat {
    Table,
    Json,
}

/// One model's view of the decision.
#[derive(Serialize)]
struct Explanation {
    collective: Collective,
    #[serde(rename = "procs")]
    layout: Layout,
    bytes: u64,
    model: &'static str,
    forms: String,
    /// By what the point lies beyond what was calibrated; none where it doesn't.
    extrapolated: Option<String>,
    /// What no algorithm gets below; none where each has constants of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_seconds: Option<f64>,
    /// What the limit hangs on: latency, bandwidth, memory or combining.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_cause: Option<&'static str>,
    /// Cheapest first.
    candidates: Vec<ExplainedMethod>,
    /// Seconds by parameter that the best saves against the next; what it pays more is negative.
    best_saves: Vec<Saving>,
}

#[derive(Serialize)]
struct ExplainedMethod {
    method: Method,
    /// n_s.
    segments: u64,
    seconds: f64,
    low_seconds: f64,
    high_seconds: f64,
    /// Time over the best one's, less one.
    behind: f64,
    terms: Vec<Term>,
    formula: FormulaText,
}

#[derive(Serialize)]
struct Saving {
    parameter: &'static str,
    seconds: f64,
}

impl Explain {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let source = self.model.load()?;
        let bytes = match (self.collective, self.bytes) {
            (Collective::Barrier, None | Some(0)) => 0,
            (Collective::Barrier, Some(_)) => usage!("a barrier carries no data; leave out -m"),
            (_, Some(bytes)) => bytes,
            (collective, None) => usage!("{collective} needs a message size, as in -m 64KiB"),
        };
        let layout = self.layout.or_else(|| self.procs.map(Layout::flat));
        let Some(layout) = layout.filter(|layout| layout.procs() > 1) else {
            usage!("one rank alone has nothing to decide; give --procs or --layouts");
        };
        if layout.procs() > MAX_EXPLAINED {
            usage!(
                "--layouts has {} ranks; expected at most {MAX_EXPLAINED} (more would be simulated for hours)",
                layout.procs()
            );
        }
        let source = source.with_root(self.root.checked(&[self.collective], &[layout])?);
        let point = Point { collective: self.collective, layout, bytes };
        let usual = || source.models(judged_models());
        let mut models = self.model.named_models(&source).unwrap_or_else(usual);
        if self.model.model.is_none() || self.model.asks_for_all() {
            models.retain(|model| !model.algorithms(self.collective).is_empty());
        }
        if models.is_empty() {
            usage!("{}", no_methods(self.collective, Model::Refined));
        }
        let mut explanations = Vec::new();
        for model in models {
            explanations.push(self.explain(&source, model, point)?);
        }
        match self.format {
            ExplanationFormat::Json => {
                output::print(&(serde_json::to_string_pretty(&explanations)? + "\n"))
            }
            ExplanationFormat::Table => {
                let texts: Vec<String> = explanations.iter().map(text).collect();
                output::print(&texts.join("\n"))
            }
        }
    }

    fn explain(
        &self,
        source: &CalibrationSource,
        model: Model,
        point: Point,
    ) -> Result<Explanation> {
        let predictor = source.predictor(model)?;
        let explainer = source.explainer(&predictor)?;
        let mut candidates = Vec::new();
        for method in self.methods(&predictor, point)? {
            let Estimate { value: seconds, low, high } =
                predictor.predict_method(point, &method)?;
            candidates.push(ExplainedMethod {
                segments: match method.segment_bytes() {
                    0 => 1,
                    segment => point.bytes.div_ceil(segment).max(1),
                },
                terms: explainer.terms(point, &method)?,
                formula: explainer.formula(point, &method)?,
                method,
                seconds,
                low_seconds: low,
                high_seconds: high,
                behind: 0.0,
            });
        }
        candidates.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let Some(best) = candidates.first().map(|best| best.seconds) else {
            match predictor.is_by_method() {
                true => usage!("no constants of {model} were fitted for {}", self.collective),
                false => usage!("{}", no_methods(self.collective, model)),
            }
        };
        for candidate in &mut candidates {
            candidate.behind = if best > 0.0 { candidate.seconds / best - 1.0 } else { 0.0 };
        }
        let best_saves = match &candidates[..] {
            [best, next, ..] => savings(best, next),
            _ => Vec::new(),
        };
        // It is one of messages.
        let is_of_messages = candidates.first().is_some_and(|best| !best.method.shares_memory());
        let limit = predictor.limit(point).filter(|limit| is_of_messages && limit.seconds > 0.0);
        Ok(Explanation {
            limit_seconds: limit.map(|limit| limit.seconds),
            limit_cause: limit.map(|limit| limit.cause.name()),
            collective: point.collective,
            layout: point.layout,
            bytes: point.bytes,
            model: model.name(),
            forms: source.forms().to_string(),
            extrapolated: predictor.reach().excess(point),
            candidates,
            best_saves,
        })
    }

    /// What the model decides among, without what is the same as another one.
    fn methods(&self, predictor: &Predictor, point: Point) -> Result<Vec<Method>> {
        let predictor = predictor.at(point.layout);
        if predictor.sees_nodes() {
            let mut found = methods_on_nodes(predictor, point, &self.segments.segments)?;
            found.retain(|method| predictor.is_candidate(point, method).unwrap_or(false));
            return Ok(found);
        }
        let mut known = predictor.algorithms(point.collective);
        known.retain(|one| predictor.model().serves(point.collective, *one, point.procs()));
        tell_without(predictor, point.collective, &known);
        let found = match &self.segments.segments {
            Segments::List(sizes) => {
                let sizes: Vec<u64> =
                    sizes.iter().copied().filter(|size| *size < point.bytes.max(1)).collect();
                let sizes = if sizes.is_empty() { vec![0] } else { sizes };
                methods(predictor, point.collective, &known, &sizes)?
            }
            Segments::Auto => {
                let mut found = Vec::new();
                for method in methods(predictor, point.collective, &known, &[0])? {
                    if let Some(segment) = best_segment(predictor, point, &method)? {
                        found.push(method.with_segment(segment));
                    }
                }
                found
            }
        };
        let possible = |method: &Method| {
            libraries::runs(point, method) && predictor.is_candidate(point, method).unwrap_or(false)
        };
        Ok(found.into_iter().filter(possible).collect())
    }
}

/// By parameter, in the order of the model's.
fn savings(best: &ExplainedMethod, next: &ExplainedMethod) -> Vec<Saving> {
    let of = |candidate: &ExplainedMethod, parameter| {
        let terms = candidate.terms.iter();
        terms.filter(|term| term.parameter == parameter).map(|term| term.seconds).sum::<f64>()
    };
    let mut names: Vec<&'static str> = Vec::new();
    for term in best.terms.iter().chain(&next.terms) {
        if !names.contains(&term.parameter) {
            names.push(term.parameter);
        }
    }
    let saving =
        |parameter| Saving { parameter, seconds: of(next, parameter) - of(best, parameter) };
    names.into_iter().map(saving).collect()
}

fn text(explanation: &Explanation) -> String {
    let Explanation { collective, layout, bytes, model, forms, candidates, best_saves, .. } =
        explanation;
    let size = match collective {
        Collective::Barrier => String::new(),
        other => format!(" of {} ({})", quantity::format_bytes(*bytes), other.message_size()),
    };
    let mut text =
        format!("{collective}{size} on {}, by {model} ({forms} forms)\n", layout.in_words());
    if let Some(excess) = &explanation.extrapolated {
        text += &format!("extrapolated: {excess}\n");
    }
    let row = |(place, candidate): (usize, &ExplainedMethod)| {
        vec![
            (place + 1).to_string(),
            candidate.method.to_string(),
            quantity::format_seconds(candidate.seconds),
            format!("+{:.1} %", 100.0 * candidate.behind),
            format!("n_s = {}: {}", candidate.segments, sum(&candidate.terms)),
        ]
    };
    let heading = ["", "method", "predicted", "behind", "terms"];
    text += &output::aligned(&heading, candidates.iter().enumerate().map(row));
    text += &above_limit(explanation);
    if let [best, next, ..] = &candidates[..] {
        let saves: Vec<String> = best_saves
            .iter()
            .map(|saving| {
                let verb = if saving.seconds < 0.0 { "pays" } else { "saves" };
                let seconds = quantity::format_seconds(saving.seconds.abs());
                format!("{verb} {seconds} in {}", saving.parameter)
            })
            .collect();
        text += &format!(
            "{} wins: against {} it {}; {} ahead{}.\n",
            best.method,
            next.method,
            saves.join(", "),
            quantity::format_seconds(next.seconds - best.seconds),
            match best.high_seconds > best.low_seconds {
                true => format!(
                    " (95 % interval of its prediction: {} .. {})",
                    quantity::format_seconds(best.low_seconds),
                    quantity::format_seconds(best.high_seconds)
                ),
                false => String::new(),
            }
        );
    }
    text += "\nFormulas with their values:\n";
    for (place, candidate) in candidates.iter().enumerate() {
        text += &format!("{:>3} {}\n", place + 1, candidate.method);
        text += &formula(&candidate.formula);
    }
    text
}

/// How far the best is from what the network allows.
fn above_limit(explanation: &Explanation) -> String {
    let (Some(limit), Some(cause), Some(best)) =
        (explanation.limit_seconds, explanation.limit_cause, explanation.candidates.first())
    else {
        return String::new();
    };
    let (text, ratio) = (quantity::format_seconds(limit), best.seconds / limit);
    format!("{} is {ratio:.2} x the limit ({text}, by {cause}).\n", best.method)
}

/// The formula, what its terms come to, and what its symbols are.
fn formula(formula: &FormulaText) -> String {
    let mut text = format!("      {}\n", formula.text);
    let of_words = formula.symbols.is_empty();
    let parts = formula.parts.iter().map(|part| {
        let seconds = quantity::format_seconds(part.seconds);
        if of_words { format!("{seconds} ({})", part.text) } else { seconds }
    });
    let sum = parts.collect::<Vec<_>>().join(" + ").replace("+ -", "- ");
    if formula.parts.len() > 1 {
        text += &format!("      = {sum}\n");
    }
    let symbols: Vec<String> = formula.symbols.iter().map(symbol).collect();
    if !symbols.is_empty() {
        text += &format!("      {}\n", symbols.join(", "));
    }
    text
}

/// `P = 24`, `L = 61.2 us`, `G = 84.0 ns/byte`.
fn symbol(symbol: &Symbol) -> String {
    let Symbol { name, value, unit } = symbol;
    match *unit {
        "seconds" => format!("{name} = {}", quantity::format_seconds(*value)),
        "seconds_per_byte" => format!("{name} = {}", quantity::format_seconds_per_byte(*value)),
        "bytes" => format!("{name} = {value} bytes"),
        _ => format!("{name} = {value}"),
    }
}

/// `7 L (429 us) + 14 o (115 us)`.
fn sum(terms: &[Term]) -> String {
    let term = |term: &Term| {
        let seconds = quantity::format_seconds(term.seconds);
        match term.count {
            Some(count) => {
                format!("{} {} ({seconds})", (count * 100.0).round() / 100.0, term.parameter)
            }
            None => format!("{} ({seconds})", term.parameter),
        }
    };
    terms.iter().map(term).collect::<Vec<_>>().join(" + ")
}
