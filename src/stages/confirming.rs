//! Confirms what a run has chosen, and writes what is left of it: choices, files to load, summary.

use std::path::Path;

use anyhow::{Context, Result};
use records::{
    Method, document,
    plan::{Cell, Plan},
    summary::{LoadWay, TuningSummary},
};
use tuning::{
    WayToLoad,
    confirm::{self, ConfirmingTask},
    focus::Focus,
};
use verification::selection::Choice;

use crate::stages::{
    bench::{ClusterBench, file},
    chosen, disturbance,
    export::replacement,
    exporting,
    judging::JudgedRun,
    traced::Traced,
};

/// Loads what was chosen in jobs of its own, which take about `seconds`: what is not faster is
/// taken out, and what the rest gains is told by further jobs. `traced` is what an application uses, and
/// where that was recorded.
///
/// # Errors
/// A job fails; the records are kept.
pub fn confirm(
    bench: &mut ClusterBench<'_, '_>,
    judged: &JudgedRun,
    known: &Focus,
    traced: Option<(&Path, &Traced)>,
    (seconds, goes_on, seed): (f64, bool, u64),
) -> Result<TuningSummary> {
    let (run, source) = (bench.run, bench.source);
    let plan: Plan = document::read(&run.plan())?;
    let doubts = known.doubts();
    let task = ConfirmingTask {
        choices: &judged.choices,
        doubts: &doubts,
        ways: ways_to_load(&plan),
        ranks: plan.ranks,
        seconds,
        goes_on,
        seed,
    };
    let confirmed = confirm::confirm(bench, &task)?;
    let trace = ClusterBench::trace(run);
    let usage = trace.exists().then(|| document::read(&trace)).transpose()?;
    let (ways, told) = confirmed.tell(usage.as_ref());
    let next = known.runners_up();
    let next = |choice: &Choice| next.get(&choice.point).cloned();
    let mut choices =
        chosen::measured(&judged.penalties, &judged.samples, &judged.choices, &next, &doubts);
    let mut loadings = Vec::new();
    for mut one in ways {
        let confirmed = chosen::confirmed(&choices.choices, &one.choices, &one.loading);
        let path = run.file(file(one.loading.way));
        exporting::write_confirmed(&choices, &confirmed, source, &path)?;
        choices.confirmed.push(confirmed);
        one.loading.application_seconds =
            traced.and_then(|(_, traced)| traced.seconds_with(&one.loading));
        loadings.push(one.loading);
    }
    let mut loadings = loadings.into_iter();
    let summary = TuningSummary {
        platform: judged.penalties.platform.clone(),
        message_size: judged.penalties.message_size.clone(),
        points: judged.choices.len() as u32,
        loading: loadings.next().context("there is a way to load what was chosen")?,
        preload: loadings.next(),
        application: traced.map(|(path, traced)| traced.application(path.display().to_string())),
        regret: Some(known.regret()),
        disturbance: disturbance::of_run(run)?,
        warnings: [judged.penalties.warnings.clone(), told].concat(),
    };
    document::write(&run.choices(), &choices)?;
    document::write(&run.summary(), &summary)?;
    Ok(summary)
}

/// The ways to load what was chosen among the methods of a plan: by rules only where the MPI library has
/// algorithms of its own there.
fn ways_to_load(plan: &Plan) -> &'static [WayToLoad<'static>] {
    const WAYS: &[WayToLoad<'static>] = &[
        WayToLoad {
            way: LoadWay::Rules,
            file: file(LoadWay::Rules),
            loaded: &|_, method| Ok(method.clone()),
        },
        WayToLoad { way: LoadWay::Preload, file: file(LoadWay::Preload), loaded: &replacement },
    ];
    let is_native = |cell: &Cell| matches!(cell.method, Method::Native(_));
    if plan.cells.iter().any(is_native) { WAYS } else { &WAYS[1..] }
}
