//! Decision functions in a shorter form, printed as a table, JSON or source code.

use std::collections::BTreeSet;

use anyhow::Result;
use models::{
    Model, Predictor,
    compress::{Bounds, Compressed, CompressionForm, DecisionGrid},
    decide::{self, Segments},
};
use records::{Collective, Layout, Method, Point};

use super::Decide;
use crate::commands::shared::output::{self, TableFormat};
use site::usage;
use stages::{
    deciding::{DecisionRequest, expressible_methods, sizes},
    source::CalibrationSource,
};

impl Decide {
    /// The compressed functions, by collective and model.
    pub(super) fn compressed(
        &self,
        source: &CalibrationSource,
        wanted: &DecisionRequest<'_>,
        form: CompressionForm,
    ) -> Result<Vec<(Model, Compressed)>> {
        let bounds = Bounds { depth: self.depth, penalty: self.within };
        let mut compressed = Vec::new();
        for &collective in wanted.collectives {
            for &model in wanted.models {
                let predictor = source.predictor(model)?;
                let methods = candidates(&predictor, collective, wanted)?;
                match methods.is_empty() {
                    true if wanted.of_all => continue,
                    true => usage!("{collective} has no candidates in model {model}"),
                    false => {}
                }
                let grid = (&*procs(wanted), sizes(collective, wanted.sizes));
                let map = DecisionGrid::new(&predictor, collective, grid, &methods)?;
                compressed.push((model, map.compress(&predictor, form, bounds)?));
            }
        }
        Ok(compressed)
    }

    pub(super) fn print_compressed(
        &self,
        source: &CalibrationSource,
        wanted: &DecisionRequest<'_>,
        all: &[(Model, Compressed)],
    ) -> Result<()> {
        let excess = |function: &Compressed| {
            let collective = function.collective;
            let procs = procs(wanted).into_iter().max()?;
            let bytes = sizes(collective, wanted.sizes).iter().copied().max()?;
            source.reach().excess(Point::flat(collective, procs, bytes))
        };
        let rows: Vec<CompressedRow> = all
            .iter()
            .map(|(model, function)| CompressedRow {
                model: model.name(),
                extrapolated: excess(function).is_some(),
                function,
            })
            .collect();
        if let Some(language) = self.code {
            let [(model, function)] = all else {
                usage!("--code prints one function: name one --collective and one --model")
            };
            let mut origin = origin(source, *model, function);
            if let Some(excess) = excess(function) {
                origin.push(format!("Extrapolated in part: up to {excess}."));
            }
            return output::print(&function.code(language, &origin));
        }
        if self.format == TableFormat::Json {
            return output::print(&(serde_json::to_string_pretty(&rows)? + "\n"));
        }
        let short: Vec<Size> = rows.iter().map(CompressedRow::size).collect();
        let heading = [
            "collective",
            "model",
            "entries",
            "nodes",
            "mean penalty",
            "greatest penalty",
            "extrapolated",
        ];
        output::rows(self.format, &short, &heading, |row| {
            vec![
                row.collective.to_string(),
                row.model.into(),
                row.entries.to_string(),
                row.nodes.to_string(),
                format!("{:.2} %", 100.0 * row.mean_penalty),
                format!("{:.2} %", 100.0 * row.greatest_penalty),
                output::mark(row.extrapolated),
            ]
        })
    }

    /// The layouts that are decided for: a compressed function knows the number of ranks alone, so that
    /// only those with one rank on each node stay.
    ///
    /// # Errors
    /// None is left.
    pub(super) fn kept_layouts(&self, layouts: Vec<Layout>) -> Result<Vec<Layout>> {
        if self.compress.is_none() {
            return Ok(layouts);
        }
        let (flat, others): (Vec<Layout>, Vec<Layout>) =
            layouts.into_iter().partition(|layout| layout.is_flat());
        let others: Vec<String> = others.iter().map(Layout::to_string).collect();
        if flat.is_empty() {
            usage!(
                "--compress distinguishes only the number of ranks; give --layouts with one rank on each \
                 node, such as 8x1, in place of {}",
                others.join(", ")
            );
        }
        if !others.is_empty() {
            say!(
                "note: --compress distinguishes only the number of ranks; skipped: {}",
                others.join(", ")
            );
        }
        Ok(flat)
    }
}

/// Where a compressed function comes from, for its comments.
fn origin(source: &CalibrationSource, model: Model, function: &Compressed) -> Vec<String> {
    vec![
        format!("Decided by the model {model} with {}, not measured.", source.name),
        format!(
            "Predicted penalty of this form: {:.2} % on average, {:.2} % at most.",
            100.0 * function.mean_penalty,
            100.0 * function.greatest_penalty
        ),
    ]
}

/// The methods that a compressed function may take anywhere on the grid.
fn candidates(
    predictor: &Predictor,
    collective: Collective,
    wanted: &DecisionRequest<'_>,
) -> Result<Vec<Method>> {
    let Segments::List(segments) = wanted.segments else {
        usage!("--compress needs a list of segment sizes, as in --segments 0,1KiB,8KiB")
    };
    let mut methods = match wanted.target {
        None => {
            let known = predictor.algorithms(collective);
            decide::methods(predictor, collective, &known, segments)?
        }
        Some(target) => {
            let procs = procs(wanted).into_iter().max().unwrap_or(1);
            let bytes = sizes(collective, wanted.sizes).iter().copied().max().unwrap_or(0);
            expressible_methods(target, predictor, Point::flat(collective, procs, bytes), segments)
        }
    };
    methods.retain(|method| predictor.knows(collective, method));
    Ok(methods)
}

#[derive(serde::Serialize)]
struct CompressedRow<'a> {
    model: &'static str,
    /// A part of the grid lies beyond what was calibrated.
    extrapolated: bool,
    #[serde(flatten)]
    function: &'a Compressed,
}

/// How large a compressed function is, and what that costs.
#[derive(serde::Serialize)]
struct Size {
    collective: Collective,
    model: &'static str,
    entries: usize,
    nodes: usize,
    mean_penalty: f64,
    greatest_penalty: f64,
    extrapolated: bool,
}

impl CompressedRow<'_> {
    fn size(&self) -> Size {
        let Compressed { collective, entries, mean_penalty, greatest_penalty, .. } = *self.function;
        Size {
            collective,
            model: self.model,
            entries,
            nodes: self.function.nodes.len(),
            mean_penalty,
            greatest_penalty,
            extrapolated: self.extrapolated,
        }
    }
}

/// The numbers of ranks wanted: a compressed function knows no more of a communicator.
fn procs(wanted: &DecisionRequest<'_>) -> Vec<u32> {
    let procs: BTreeSet<u32> = wanted.layouts.iter().map(|layout| layout.procs()).collect();
    procs.into_iter().collect()
}
