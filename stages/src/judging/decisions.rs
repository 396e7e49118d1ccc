//! Decisions of the models at the points of a run, among the methods that it has measured.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use libraries::{MpiLibrary, openmpi::OpenMpiLibrary};
use models::{
    Model,
    decide::{self, Segments},
};
use records::{Collective, Layout, Method, Point, choices::Choices, plan::Cell};

use crate::{
    deciding,
    source::{CalibrationSource, ParameterSet},
};

/// What is added to a model's name where its parameters were fitted to collectives.
pub const FITTED: &str = "-fitted";

/// What is added to a model's name where each algorithm has constants of its own.
pub const ALGORITHMS: &str = "-algorithms";

/// What is added to a model's name where it ignores that nodes hold several ranks.
pub const FLAT: &str = "-flat";

/// The measured parameters, the same with nodes ignored where the calibration knows nodes, and, where the calibration has them, the fitted ones and the constants of
/// algorithms, each with what is added to the models' names.
pub fn parameter_sources(
    source: &CalibrationSource,
) -> impl Iterator<Item = (&'static str, CalibrationSource)> {
    let sets = [
        ("", ParameterSet::Measured),
        (FITTED, ParameterSet::Fitted),
        (ALGORITHMS, ParameterSet::Algorithms),
    ];
    let flat = source.with(ParameterSet::Measured).and_then(|source| source.ignoring_nodes());
    let all = sets.into_iter().filter_map(|(suffix, set)| Some((suffix, source.with(set)?)));
    all.chain(flat.map(|source| (FLAT, source)))
}

/// What models decide among.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CandidateMethods {
    /// The methods that can be loaded.
    Loadable,
    /// Those measured at each point: of libraries whose methods we can't load, and where others chose
    /// what to measure.
    Measured,
}

/// Whether there are parameters for any of the models.
pub fn has_parameters(source: &CalibrationSource, models: &[Model]) -> bool {
    parameter_sources(source).any(|(_, source)| models.iter().any(|model| source.holds(*model)))
}

/// Decisions at the points of these cells by each model with each set of parameters; none where no
/// model knows any of the methods.
pub fn decisions(
    source: &CalibrationSource,
    cells: &[Cell],
    models: &[Model],
    candidates: CandidateMethods,
) -> Result<Option<Choices>> {
    let mut all: Option<Choices> = None;
    for (suffix, source) in parameter_sources(source) {
        let models: Vec<Model> =
            models.iter().copied().filter(|model| source.holds(*model)).collect();
        let of_set = match candidates {
            CandidateMethods::Loadable => decisions_of_set(&source, cells, &models)?,
            CandidateMethods::Measured => among_measured(&source, cells, &models)?,
        };
        let Some(mut of_set) = of_set else { continue };
        let names = of_set.choices.iter_mut().filter_map(|chosen| chosen.model.as_mut());
        names.for_each(|name| *name += suffix);
        match &mut all {
            None => all = Some(of_set),
            Some(all) => {
                all.choices.extend(of_set.choices);
                if let Some((all, of_set)) = all.prediction.as_mut().zip(of_set.prediction) {
                    let of_set = of_set.parameters;
                    all.parameters += &format!("; {of_set} where a name ends in {suffix}");
                }
            }
        }
    }
    Ok(all)
}

/// Decisions among the methods measured at each point that a model knows; none where it knows none.
fn among_measured(
    source: &CalibrationSource,
    cells: &[Cell],
    models: &[Model],
) -> Result<Option<Choices>> {
    let mut measured: BTreeMap<Point, Vec<Method>> = BTreeMap::new();
    for cell in cells {
        measured.entry(cell.point).or_default().push(cell.method.clone());
    }
    for (point, methods) in &mut measured {
        methods.sort_by_key(|method| method.is_own() != is_own_first(*point));
    }
    let mut decisions = Vec::new();
    for &model in models {
        let predictor = source.predictor(model)?;
        for (point, methods) in &measured {
            let known: Vec<Method> = methods
                .iter()
                .filter(|method| predictor.is_candidate(*point, method).unwrap_or(false))
                .cloned()
                .collect();
            if !known.is_empty() {
                decisions.push(decide::decide_among(&predictor, *point, &known)?);
            }
        }
    }
    let collectives = measured.keys().map(|point| point.collective);
    Ok((!decisions.is_empty()).then(|| source.predicted_choices(collectives, decisions)))
}

/// Which of two methods that a model cannot tell apart is taken: Colibri's, which keeps scratch memory and datatypes
/// from call to call where libraries make them in each (a reduction of 1 MiB by Open MPI: up to 385 page faults of
/// 0.5 to 1.4 us); a library's own broadcast, which needs none and has no layer above it.
fn is_own_first(point: Point) -> bool {
    point.collective != Collective::Bcast
}

/// None where the set has parameters for none of the models and cells.
fn decisions_of_set(
    source: &CalibrationSource,
    cells: &[Cell],
    models: &[Model],
) -> Result<Option<Choices>> {
    let collectives: BTreeSet<Collective> =
        cells.iter().map(|cell| cell.point.collective).collect();
    let bytes: BTreeSet<u64> = cells.iter().map(|cell| cell.point.bytes).collect();
    let bytes: Vec<u64> = bytes.into_iter().collect();
    let layouts: BTreeSet<Layout> = cells.iter().map(|cell| cell.point.layout).collect();
    let layouts: Vec<Layout> = layouts.into_iter().collect();
    let predictors = models.iter().map(|model| source.predictor(*model));
    let predictors = predictors.collect::<Result<Vec<_>>>()?;
    let modelled = |cell: &&Cell| {
        predictors.iter().any(|predictor| predictor.knows(cell.point.collective, &cell.method))
    };
    let modelled_cells = cells.iter().filter(modelled);
    let segments: BTreeSet<u64> = modelled_cells.map(|cell| cell.method.segment_bytes()).collect();
    let segments: Vec<u64> = segments.into_iter().collect();
    // Methods of memory, which no model knows, are timed beside a library's own as well.
    let has_own = cells.iter().filter(modelled).any(|cell| cell.method.is_own());
    let openmpi = (OpenMpiLibrary.formats()[0].exporter)(None, None)?;
    let target = if has_own { None } else { Some(openmpi.as_ref()) };
    let mut all: Option<Choices> = None;
    for (&model, predictor) in models.iter().zip(&predictors) {
        let is_timed = |of: &Collective| {
            let mut cells = cells.iter().filter(|cell| cell.point.collective == *of);
            cells.any(|cell| predictor.knows(*of, &cell.method))
        };
        let known: Vec<Collective> = collectives.iter().copied().filter(is_timed).collect();
        if known.is_empty() {
            continue;
        }
        let of_model = deciding::decisions(
            source,
            &deciding::DecisionRequest {
                collectives: &known,
                layouts: &layouts,
                sizes: &bytes,
                segments: &Segments::List(segments.clone()),
                models: &[model],
                target,
                of_all: false,
            },
        )?;
        match &mut all {
            None => all = Some(of_model),
            Some(all) => {
                all.choices.extend(of_model.choices);
                all.message_size.extend(of_model.message_size);
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use models::Forms;

    use super::*;

    /// What a model chooses is among what was timed, though methods of memory were timed beside it.
    #[test]
    fn models_decide_among_natives_where_of_our_own_only_memory_was_timed() {
        let preset = Some(OsStr::new("preset:frodo"));
        let source =
            CalibrationSource::load(preset, Forms::Corrected, ParameterSet::Measured).unwrap();
        let cells = ["native:openmpi:linear", "native:openmpi:binomial", "own:shared-cells"].map(
            |method| {
                let point = Point::flat(Collective::Bcast, 8, 64);
                Cell { point, method: method.parse().unwrap() }
            },
        );
        let decisions = decisions(&source, &cells, &[Model::Hockney], CandidateMethods::Loadable);
        let decisions = decisions.unwrap().unwrap().choices;
        assert_eq!(decisions.len(), 1);
        assert!(decisions[0].method.is_native(), "{:?}", decisions[0].method);
    }

    fn chosen_among(point: Point, methods: &[&str]) -> String {
        let preset = Some(OsStr::new("preset:frodo"));
        let source =
            CalibrationSource::load(preset, Forms::Corrected, ParameterSet::Measured).unwrap();
        let cell = |method: &&str| Cell { point, method: method.parse().unwrap() };
        let cells: Vec<Cell> = methods.iter().map(cell).collect();
        let decisions = decisions(&source, &cells, &[Model::Hockney], CandidateMethods::Measured);
        decisions.unwrap().unwrap().choices[0].method.to_string()
    }

    #[test]
    fn of_two_that_a_model_cannot_tell_apart_the_one_without_needless_work_is_taken() {
        for (collective, taken) in
            [(Collective::Bcast, "native:openmpi:"), (Collective::Reduce, "own:")]
        {
            let point = Point::flat(collective, 8, 1 << 20);
            for methods in [
                ["own:binomial", "native:openmpi:binomial"],
                ["native:openmpi:binomial", "own:binomial"],
            ] {
                assert_eq!(chosen_among(point, &methods), format!("{taken}binomial"));
            }
        }
    }
}
