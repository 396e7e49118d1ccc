//! Confirms what a run has chosen, and writes what is left of it: choices, files to load, summary.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use choosing::expected::{Among, Beliefs};
use records::{
    Collective, Layout, Method, Point, Root,
    choices::{Choices, Chosen, ConfirmedWay, counts},
    document::{self, Document},
    plan::Plan,
    platform::Platform,
    summary::{LoadWay, RootGain, TuningSummary, WithheldMethod},
};
use serde::{Deserialize, Serialize};
use statistics::geometric_mean;
use tuning::{
    JobCosts, LoadCandidate, WayChoices,
    confirm::ConfirmingTask,
    state::TuningState,
    verdict::{RunConditions, verdict},
};

use crate::{
    bench::ClusterBench,
    chosen, disturbance,
    export_formats::{CarefulExporter, LoadTarget, method_in_profile, representative},
    exporting,
    judging::JudgedRun,
    loading, roots,
    source::CalibrationSource,
    traced::Traced,
};
use site::run_directory::RunDirectory;

/// What confirming has of the budget, and what measuring leaves to it; half of that at least, however long the steps
/// before took. Replayed records of clusters lose least so: what is measured and not confirmed is not loaded.
pub const BUDGET_SHARE: f64 = 0.5;

/// What is settled when confirming begins, and written down: the plans of its jobs follow from it, and a run that goes on
/// has to complete the same ones.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct SettledConfirmation {
    /// What all its jobs together may take, about.
    pub seconds: f64,
    /// What jobs cost beside their calls.
    pub costs: JobCosts,
    /// Whether all operations of programs are commutative: else what is wrong for others is not loaded.
    pub commutative: bool,
    /// How often confirming has begun; see [`ClusterBench::generation`].
    pub generation: u32,
    /// How many batches had been measured.
    pub batches: u32,
}

impl SettledConfirmation {
    /// Where a run has it.
    pub fn path(run: &RunDirectory) -> PathBuf {
        run.file("confirmation.json")
    }
}

impl Document for SettledConfirmation {
    const SCHEMA: &'static str = "colibri/confirming/1";

    fn validate(&self) -> Result<(), (String, String)> {
        match self.costs.fault() {
            Some((field, problem)) => Err((format!("costs.{field}"), problem)),
            None => Ok(()),
        }
    }
}

/// What jobs have confirmed of what was chosen, for each way of loading.
pub struct Confirmation {
    targets: Vec<WayTarget>,
    /// In the same order.
    candidates: Vec<LoadCandidate>,
    /// In which every point could have been confirmed in all ways.
    needed_seconds: f64,
}

/// Loads what was chosen in jobs of its own: what these don't confirm to be faster is left to the default. What
/// `interpolated` knows where nothing was measured is tried with it; `seed` is of the order of the measurements.
///
/// # Errors
/// A job fails; the records are kept.
pub fn confirm(
    bench: &mut ClusterBench<'_, '_>,
    known: &Beliefs,
    interpolated: Option<&Beliefs>,
    settled: &SettledConfirmation,
    seed: u64,
) -> Result<Confirmation> {
    let plan: Plan = document::read(&bench.run.plan())?;
    let platform = &bench.source.calibration.platform;
    let (targets, candidates) =
        candidates(&plan, platform, known, interpolated, settled.commutative)?;
    let task = ConfirmingTask {
        ranks: plan.ranks,
        seconds: settled.seconds,
        costs: settled.costs,
        min_turns: bench.roots.len(),
        seed,
    };
    let (candidates, needed_seconds) = tuning::confirm::run_jobs(bench, candidates, &task)?;
    Ok(Confirmation { targets, candidates, needed_seconds })
}

impl Confirmation {
    /// Writes the files to load, the choices and the summary. `traced` is what an application uses, and where that was
    /// recorded; `budget_seconds` the budget of the whole run, if it has one. `unconfirmed` asks that what is not confirmed
    /// be written, too.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(
        self,
        bench: &ClusterBench<'_, '_>,
        judged: &JudgedRun,
        known: &TuningState,
        traced: Option<(&Path, &Traced)>,
        budget_seconds: Option<f64>,
        unconfirmed: bool,
    ) -> Result<TuningSummary> {
        let Confirmation { targets, candidates, needed_seconds } = self;
        let (run, source) = (bench.run, bench.source);
        let disturbance = disturbance::of_run(run)?;
        let minutes = |seconds: f64| seconds / 60.0;
        let conditions = RunConditions {
            budget_minutes: budget_seconds.map(minutes),
            needed_minutes: Some(minutes(needed_seconds / BUDGET_SHARE)),
            taken: disturbance.and_then(|disturbance| disturbance.often_taken()),
        };
        let mut warnings: Vec<String> = Vec::new();
        let mut choices = chosen::measured(&judged.penalties, &judged.samples, &judged.choices);
        let mut loadings = Vec::new();
        for (mut one, of) in candidates.into_iter().zip(&targets) {
            warnings.append(&mut one.warnings);
            let left = chosen::with_evidence(&choices.choices, &one, &of.loaded(), &judged.samples);
            one.unshown.untimed = untimed(&known.beliefs, &one.choices);
            let verdict = verdict(counts(&left), one.unshown, &conditions);
            let confirmed = ConfirmedWay { way: of.way, verdict, choices: left };
            of.write(&confirmed, &choices, run, source, unconfirmed)?;
            let (counts, verdict) = exporting::counts_and_verdict(&confirmed, unconfirmed);
            (one.loading.counts, one.loading.verdict) = (counts, verdict);
            one.loading.ranges = confirmed.ranges();
            choices.confirmed.push(confirmed);
            one.loading.application_seconds =
                traced.and_then(|(_, traced)| traced.seconds_with(&one.loading));
            one.loading.roots = gains_by_root(bench, &one.turns);
            loadings.push(one.loading);
        }
        warnings.extend(roots::in_turn(bench.roots));
        let both = loadings.iter().position(|loading| loading.way == LoadWay::Both);
        let both = both.map(|index| loadings.remove(index));
        let mut loadings = loadings.into_iter();
        let loading = loadings.next().context("there is a way to load what was chosen")?;
        let summary = TuningSummary {
            platform: judged.penalties.platform.clone(),
            message_size: judged.penalties.message_size.clone(),
            points: loading.counts.points + loading.counts.shadowed,
            loading,
            preload: loadings.next(),
            both,
            application: traced
                .map(|(path, traced)| traced.application(path.display().to_string())),
            regret: Some(known.regret()),
            disturbance,
            withheld: targets.iter().flat_map(|target| target.withheld(&judged.choices)).collect(),
            warnings: [judged.penalties.warnings.clone(), warnings].concat(),
        };
        document::write(&run.choices(), &choices)?;
        document::write(&run.summary(), &summary)?;
        Ok(summary)
    }
}

/// What was chosen for each way of loading, with what writes its files: in the same order.
fn candidates(
    plan: &Plan,
    platform: &Platform,
    known: &Beliefs,
    interpolated: Option<&Beliefs>,
    commutative: bool,
) -> Result<(Vec<WayTarget>, Vec<LoadCandidate>)> {
    let (mut targets, mut candidates) = (Vec::new(), Vec::new());
    let believed = interpolated.unwrap_or(known);
    for way in ways_to_load(plan) {
        let parts = way.parts().iter().map(|&part| WayPart::new(part, platform, commutative));
        let target = WayTarget { way, parts: parts.collect::<Result<_>>()? };
        let chosen = target.choose(known, interpolated, plan);
        if target.needs_all_its_parts(&chosen.choices) {
            candidates.push(LoadCandidate::new(
                way,
                target.file().to_owned(),
                chosen,
                &target.loaded(),
                &target.is_ruled_out(believed),
            ));
            targets.push(target);
        }
    }
    Ok((targets, candidates))
}

/// At how many points that were to be timed there is no choice, as the default was not timed.
fn untimed(known: &Beliefs, choices: &[Chosen]) -> u32 {
    let chosen: BTreeSet<Point> = choices.iter().map(|choice| choice.point).collect();
    known.points().filter(|(point, _)| !chosen.contains(point)).count() as u32
}

/// What the turns of each root show; nothing where there is one root.
fn gains_by_root(bench: &ClusterBench<'_, '_>, turns: &[BTreeMap<Point, f64>]) -> Vec<RootGain> {
    let of_root = |&root: &Root| {
        let turns = turns.iter().zip(1..).filter(|(_, number)| bench.root(*number) == root);
        let mut at: BTreeMap<Point, Vec<f64>> = BTreeMap::new();
        for (point, speed_up) in turns.flat_map(|(turn, _)| turn) {
            at.entry(*point).or_default().push(*speed_up);
        }
        let of_points: Vec<f64> = at.values().filter_map(|all| geometric_mean(all)).collect();
        let speed_up = geometric_mean(&of_points)?;
        Some(RootGain { root, points: of_points.len() as u32, speed_up })
    };
    match bench.roots {
        [_] => Vec::new(),
        roots => roots.iter().filter_map(of_root).collect(),
    }
}

/// What of a way of loading has a file to itself.
struct WayPart {
    target: LoadTarget,
    exporter: CarefulExporter,
}

impl WayPart {
    fn new(way: LoadWay, platform: &Platform, commutative: bool) -> Result<Self> {
        let target = LoadTarget::new(way, platform);
        let exporter = target.exporter(commutative)?;
        Ok(WayPart { target, exporter })
    }
}

/// What is written for a way of loading.
struct WayTarget {
    way: LoadWay,
    parts: Vec<WayPart>,
}

/// The method of each layout that is faster than the default at all sizes, the one that gains most, for
/// collectives of which one serves for all.
fn methods_for_all_sizes(
    known: &Beliefs,
    collectives: &BTreeSet<Collective>,
    among: &Among<'_>,
) -> BTreeMap<(Collective, Layout), Method> {
    let among = |point: Point, method: &Method| {
        collectives.contains(&point.collective) && among(point, method)
    };
    let best_at = known.choices_among(&among);
    let methods: BTreeSet<&Method> = best_at.iter().map(|choice| &choice.method).collect();
    let mut best: BTreeMap<(Collective, Layout), (f64, Method)> = BTreeMap::new();
    for &method in methods.iter().filter(|method| ***method != Method::Default) {
        let mut gains: BTreeMap<(Collective, Layout), Vec<f64>> = BTreeMap::new();
        let alone = known.choices_among(&|point, other| other == method && among(point, other));
        for choice in alone.iter().filter(|choice| collectives.contains(&choice.point.collective)) {
            let gain = match choice.method {
                Method::Default => 0.0,
                _ => choice.speed_up().unwrap_or(1.0),
            };
            let Point { collective, layout, .. } = choice.point;
            gains.entry((collective, layout)).or_default().push(gain);
        }
        for (key, gains) in gains {
            let Some(gain) = geometric_mean(&gains).filter(|gain| *gain > 0.0) else { continue };
            if best.get(&key).is_none_or(|(before, _)| gain > *before) {
                best.insert(key, (gain, method.clone()));
            }
        }
    }
    best.into_iter().map(|(key, (_, method))| (key, method)).collect()
}

/// Whether rules that replace the default by a method at a point would make calls slower on another layout, which they do
/// not tell apart, by what is believed of it there.
fn harms_another_layout<'a>(
    way: LoadWay,
    parts: &'a [WayPart],
    known: &'a Beliefs,
) -> impl Fn(Point, &Method) -> bool + use<'a> {
    let rules = parts.iter().find(|part| part.target.way() == LoadWay::Rules);
    let layouts: BTreeSet<Layout> =
        known.choices().iter().map(|choice| choice.point.layout).collect();
    move |point, method| {
        let Some(WayPart { exporter, .. }) = rules.filter(|_| way.loads_by(LoadWay::Rules, method))
        else {
            return false;
        };
        let key = exporter.layout_key(point.layout);
        let is_same =
            |other: &&Layout| **other != point.layout && exporter.layout_key(**other) == key;
        layouts.iter().filter(is_same).any(|&layout| {
            let there = Point { layout, ..point };
            known.methods_at(there).any(|one| one == method)
                && known.is_surely_slower(there, method)
        })
    }
}

impl WayTarget {
    /// What is chosen of what can be loaded this way.
    fn choose(&self, known: &Beliefs, interpolated: Option<&Beliefs>, plan: &Plan) -> WayChoices {
        let (way, parts) = (self.way, &self.parts);
        let is_one = |collective: &Collective| {
            let mut rules = parts.iter().filter(|part| part.target.way() == LoadWay::Rules);
            rules.any(|part| part.exporter.one_for_all_sizes(*collective).is_some())
        };
        let rules = parts.iter().find(|part| part.target.way() == LoadWay::Rules);
        let representative =
            rules.map(|part| representative(&*part.exporter, &known.choices(), &[]));
        let is_by_job = rules.is_some_and(|part| part.exporter.holds_for_whole_job());
        let is_of_job = |point: Point| !is_by_job || point.procs() == plan.ranks;
        let points = known.choices();
        let of_job = |point: Point| {
            let mut points = points.iter().map(|choice| choice.point);
            points.find(|other| other.collective == point.collective && is_of_job(*other))
        };
        let leading = |point: Point| {
            let point = if is_of_job(point) { point } else { of_job(point)? };
            representative.as_ref().and_then(|of| of(point))
        };
        let is_leading = |point: Point| leading(point).is_none_or(|layout| layout == point.layout);
        let by_rules = |method: &Method| way.loads_by(LoadWay::Rules, method);
        let harms = harms_another_layout(way, parts, known);
        let is_loadable = |point: Point, method: &Method| {
            can_be_loaded(way, plan, point, method)
                && self.takes(point, method)
                && (is_of_job(point) || !by_rules(method))
                && !(is_leading(point) && harms(point, method))
        };
        let mut one_for_all_sizes: BTreeSet<Collective> =
            Collective::ALL.into_iter().filter(is_one).collect();
        let of_all = match way {
            // The preload library would leave it the sizes at which nothing is replaced.
            LoadWay::Both => BTreeMap::new(),
            _ => methods_for_all_sizes(known, &one_for_all_sizes, &is_loadable),
        };
        let is_by_size = |point: Point, method: &Method| {
            !by_rules(method) || !one_for_all_sizes.contains(&point.collective)
        };
        let is_choosable = |point: Point, method: &Method| {
            let of_layout = of_all.get(&(point.collective, point.layout));
            is_loadable(point, method)
                && (is_by_size(point, method) || of_layout == Some(method))
                && (way != LoadWay::Both || is_leading(point) || !by_rules(method))
        };
        let mut choices = known.choices_among(&is_choosable);
        let is_replaced = |of: &&Chosen| of.method != Method::Default && !by_rules(&of.method);
        let shadowed_points =
            choices.iter().filter(|one| !is_leading(one.point) && !is_replaced(one));
        let shadowed_points = shadowed_points
            .filter_map(|choice| Some((choice.point, leading(choice.point)?)))
            .collect();
        let is_interpolable = |point: Point, method: &Method| {
            is_loadable(point, method)
                && is_by_size(point, method)
                && (is_leading(point) || !by_rules(method))
        };
        if let Some(interpolated) = interpolated {
            // What one method serves for is decided by the sizes that were measured.
            let is_decided = |point: &Point| {
                way == LoadWay::Rules && one_for_all_sizes.contains(&point.collective)
            };
            let more = interpolated.interpolated_choices(&is_interpolable).into_iter();
            choices.extend(more.filter(|choice| !is_decided(&choice.point)));
            choices.sort_by_key(|choice| choice.point);
        }
        if way != LoadWay::Rules {
            one_for_all_sizes.clear();
        }
        WayChoices { choices, one_for_all_sizes, shadowed_points }
    }

    /// What is to be loaded, relative to the run's directory.
    fn file(&self) -> &'static str {
        match &self.parts[..] {
            [only] => only.target.file(),
            _ => loading::BOTH,
        }
    }

    /// Whether what was chosen takes all of it: both ways at once are tried where each of them would replace
    /// something.
    fn needs_all_its_parts(&self, chosen: &[Chosen]) -> bool {
        let has = |part: &WayPart| {
            let mut replaced = chosen.iter().filter(|one| one.method != Method::Default);
            replaced.any(|one| self.way.loads_by(part.target.way(), &one.method))
        };
        self.way != LoadWay::Both || self.parts.iter().all(has)
    }

    /// Writes what is to be loaded of what was confirmed.
    fn write(
        &self,
        confirmed: &ConfirmedWay,
        choices: &Choices,
        run: &RunDirectory,
        source: &CalibrationSource,
        unconfirmed: bool,
    ) -> Result<()> {
        for WayPart { target, exporter } in &self.parts {
            let path = loading::part_in_run(run, self.way, target, "")?;
            let of_part = loading::part_of(self.way, target.way(), &confirmed.choices);
            let verdict = &confirmed.verdict;
            exporting::write_confirmed(
                exporter,
                choices,
                &of_part,
                verdict,
                source,
                &path,
                unconfirmed,
            )?;
        }
        Ok(())
    }

    /// What was measured best and is not loaded, the greatest gain first.
    fn withheld(&self, best: &[Chosen]) -> Vec<WithheldMethod> {
        let mut reasons: BTreeMap<String, (u32, f64)> = BTreeMap::new();
        let natives = best.iter().filter(|one| one.method.is_native());
        let [part] = &self.parts[..] else { return Vec::new() };
        if part.target.way() != LoadWay::Rules {
            return Vec::new();
        }
        for one in natives {
            if let Err(reason) = part.exporter.allows(one.point, &one.method) {
                let (points, greatest) = reasons.entry(reason).or_default();
                *points += 1;
                *greatest = greatest.max(one.speed_up().unwrap_or(1.0));
            }
        }
        let method = |(reason, (points, speed_up))| WithheldMethod { points, speed_up, reason };
        let mut withheld: Vec<WithheldMethod> = reasons.into_iter().map(method).collect();
        withheld.sort_by(|a, b| b.speed_up.total_cmp(&a.speed_up));
        withheld
    }

    /// Whether what is written for one of its parts can name a method there.
    fn takes(&self, point: Point, method: &Method) -> bool {
        let mut by = self.parts.iter().filter(|part| self.way.loads_by(part.target.way(), method));
        by.any(|part| {
            part.target.way() == LoadWay::Preload || part.exporter.allows(point, method).is_ok()
        })
    }

    /// What is loaded for what was chosen.
    fn loaded(&self) -> impl Fn(Point, &Method) -> Result<Method, String> {
        let way = self.way;
        move |point, method| match way.loads_by(LoadWay::Rules, method) {
            true => Ok(method.clone()),
            false => method_in_profile(point, method),
        }
    }

    /// Whether what is loaded for a method that was chosen at another size of a layout must not be at a point: no such method can
    /// be had there, or by what is believed it surely is slower than the default.
    fn is_ruled_out<'a>(&'a self, known: &'a Beliefs) -> impl Fn(Point, &Method) -> bool + use<'a> {
        let loaded = self.loaded();
        let harms = harms_another_layout(self.way, &self.parts, known);
        move |point, method| {
            let is_it = |other: &&Method| {
                self.takes(point, other) && loaded(point, other).is_ok_and(|other| other == *method)
            };
            !known
                .methods_at(point)
                .filter(is_it)
                .any(|other| !known.is_surely_slower(point, other) && !harms(point, other))
        }
    }
}

/// The ways to load what was chosen among the methods of a plan: by the MPI library's own means only
/// where it has algorithms of its own there, by the preload library unless there is nothing else; by both at
/// once where methods of both kinds were timed.
fn ways_to_load(plan: &Plan) -> Vec<LoadWay> {
    let has = |of: fn(&Method) -> bool| plan.cells.iter().any(|cell| of(&cell.method));
    let natives = has(Method::is_native);
    let mut ways = Vec::new();
    if natives {
        ways.push(LoadWay::Rules);
    }
    ways.push(LoadWay::Preload);
    if natives && has(Method::is_ours) {
        ways.push(LoadWay::Both);
    }
    ways
}

/// What can be chosen for a way of loading. What was not timed itself stands for the same algorithm in
/// the preload library only where nothing of that was timed, and it has the algorithm.
fn can_be_loaded(way: LoadWay, plan: &Plan, point: Point, method: &Method) -> bool {
    match (way, method) {
        (_, Method::Default) => true,
        (_, Method::Plugin(_)) => false,
        (LoadWay::Rules, method) => method.is_native(),
        (LoadWay::Both, method) => method.is_ours() || method.is_native(),
        (LoadWay::Preload, method) => {
            method.is_ours()
                || !libraries::is_of_one_node(point.collective, method)
                    && !plan.cells.iter().any(|cell| cell.method.is_ours())
        }
    }
}

#[cfg(test)]
mod tests;
