//! Confirms what was chosen: the default is measured with it loaded, in each way in which it can
//! be, and without it.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use records::{
    Method, Point, document,
    observation::CollectiveCall,
    plan::{Cell, Plan},
    record,
    summary::{Harm, Summary, Way},
};
use verification::{
    focus::{self, Focus},
    harm::{self, Compared},
    plan::{self, Repeated, VERY_SHORT_SECONDS},
    samples::Samples,
    selection::Choice,
};

use super::{Tune, candidate::Candidate};
use crate::{
    commands::shared::gains,
    site::{
        ranks::{LazySite, Setting},
        run_directory::RunDirectory,
    },
    stages::{chosen, exporting, judging::Judged, measuring, source::Source},
};

/// What the first round leaves is told by the second, which had no part in choosing, save that
/// what it shows to be slower is taken out as well: what is told of the rest flatters by no more
/// than that.
const ROUNDS: [u32; 2] = [1, 2];

/// Points at most at which the jobs are compared where nothing is replaced.
const MOST_CONTROLS: usize = 32;

/// A job's turn is to be no shorter: a second of it goes to its start.
const TURN_SECONDS: f64 = 10.0;
/// As many are enough for jobs to have met much the same.
const MOST_TURNS: usize = 4;

/// Jobs that measure the default, without and with something loaded.
struct Confirmation<'a> {
    tune: &'a Tune,
    run: &'a RunDirectory,
    source: &'a Source,
    candidates: Vec<Candidate>,
    ranks: u32,
    /// What all rounds may take.
    seconds: f64,
}

/// The jobs of a round as they are to be: the default by itself, and with each candidate loaded
/// that replaces it anywhere, all of them in several turns.
struct Jobs<'a> {
    round: u32,
    loading: Vec<Option<&'a Candidate>>,
    /// What they may take together, in seconds.
    seconds: f64,
}

impl Jobs<'_> {
    /// The states that a machine passes through may last for many seconds; were each job made in one
    /// piece, one of them might have the better state to itself.
    fn turns(&self) -> usize {
        let turns = self.seconds / (TURN_SECONDS * self.loading.len() as f64);
        (turns as usize).clamp(1, MOST_TURNS)
    }

    /// The order of the jobs in a turn: drift must favour none.
    fn order(&self, turn: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.loading.len()).collect();
        if (self.round as usize + turn).is_multiple_of(2) {
            order.reverse();
        }
        order
    }
}

/// The jobs of a round.
pub struct Round {
    /// The default's times without anything loaded.
    pub default: Samples,
    loaded: Vec<Loaded>,
    /// What all jobs spent, in seconds.
    spent: f64,
}

struct Loaded {
    way: Way,
    samples: Samples,
    rows: Vec<CollectiveCall>,
}

impl Tune {
    /// Loads what was chosen in jobs of its own, which take about `seconds`: what is not faster is
    /// taken out, and what the rest gains is told by further jobs.
    pub(super) fn confirm(
        &self,
        run: &RunDirectory,
        site: &mut LazySite,
        source: &Source,
        judged: &Judged,
        known: &Focus,
        seconds: f64,
    ) -> Result<Summary> {
        let plan: Plan = document::read(&run.plan())?;
        let is_native = |cell: &Cell| matches!(cell.method, Method::Native(_));
        let ways: &[Way] = match plan.cells.iter().any(is_native) {
            true => &[Way::Rules, Way::Preload],
            false => &[Way::Preload],
        };
        let doubts = known.doubts();
        let candidate = |&way: &Way| Candidate::new(way, &judged.choices, &doubts);
        let candidates = ways.iter().map(candidate).collect();
        let mut confirmation =
            Confirmation { tune: self, run, source, candidates, ranks: plan.ranks, seconds };
        let mut last = None;
        for number in ROUNDS {
            let Some(round) = confirmation.round(site, number, last.as_ref())? else { break };
            for candidate in &mut confirmation.candidates {
                candidate.take_out(&round, Some(&number) == ROUNDS.last());
            }
            last = Some(round);
        }
        let mut warnings = judged.penalties.warnings.clone();
        let traced = self.traced_as_planned(run)?;
        let mut loadings = Vec::new();
        let next = known.runners_up();
        let next = |choice: &Choice| next.get(&choice.point).cloned();
        let mut choices =
            chosen::measured(&judged.penalties, &judged.samples, &judged.choices, &next, &doubts);
        for mut candidate in confirmation.candidates {
            if let Some(round) = &last {
                warnings.extend(candidate.tell(round, &trace(run))?);
            }
            let confirmed =
                chosen::confirmed(&choices.choices, &candidate.choices, &candidate.loading);
            let file = run.file(candidate.file());
            exporting::write_confirmed(&choices, &confirmed, source, &file)?;
            choices.confirmed.push(confirmed);
            let traced = traced.as_ref();
            candidate.loading.application_seconds =
                traced.and_then(|traced| traced.seconds_with(&candidate.loading));
            loadings.push(candidate.loading);
        }
        let mut loadings = loadings.into_iter();
        let summary = Summary {
            platform: judged.penalties.platform.clone(),
            message_size: judged.penalties.message_size.clone(),
            points: judged.choices.len() as u32,
            loading: loadings.next().context("there is a way to load what was chosen")?,
            preload: loadings.next(),
            application: self
                .trace
                .as_ref()
                .zip(traced.as_ref())
                .map(|(path, traced)| traced.application(path.display().to_string())),
            regret: Some(known.regret()),
            warnings,
        };
        document::write(&run.choices(), &choices)?;
        document::write(&run.summary(), &summary)?;
        gains::draw_gains(run, &summary)?;
        Ok(summary)
    }
}

/// What the preload library saw in the first turn of the first round. Later it doesn't look, which
/// would take some 100 ns of each call.
fn trace(run: &RunDirectory) -> PathBuf {
    run.file("confirmation-1-1-preload.usage.json")
}

/// Adds the rows of a job's next turn, as later visits.
fn append(rows: &mut Vec<CollectiveCall>, turn: Vec<CollectiveCall>) {
    let before = rows.iter().map(|row| row.visit + 1).max().unwrap_or(0);
    rows.extend(turn.into_iter().map(|row| CollectiveCall { visit: before + row.visit, ..row }));
}

impl Confirmation<'_> {
    /// The default's jobs and those of each way; nothing where nothing is to be confirmed.
    fn round(
        &self,
        site: &mut LazySite,
        number: u32,
        before: Option<&Round>,
    ) -> Result<Option<Round>> {
        let to_load = self.candidates.iter().filter(|candidate| candidate.replaced().count() > 0);
        let loading: Vec<Option<&Candidate>> =
            std::iter::once(None).chain(to_load.map(Some)).collect();
        if loading.len() == 1 {
            return Ok(None);
        }
        let jobs = Jobs { round: number, loading, seconds: self.share(before) };
        let repeated = self.repeated(&jobs);
        // Every point is seen once, however short the time.
        let deadline = jobs.seconds.max(repeated.expected_seconds) * 2.0 * measuring::PATIENCE;
        let mut rows = vec![Vec::new(); jobs.loading.len()];
        for turn in 0..repeated.plans[0].len() {
            for index in jobs.order(turn) {
                let plan = &repeated.plans[index][turn];
                if plan.visits.is_empty() {
                    continue;
                }
                append(&mut rows[index], self.job(site, &jobs, (turn, index), plan, deadline)?);
            }
        }
        let mut round = Round { default: Samples::default(), loaded: Vec::new(), spent: 0.0 };
        for (candidate, rows) in jobs.loading.iter().zip(rows) {
            let samples = Samples::gather(&rows);
            round.spent += focus::spent(&rows);
            match candidate {
                None => round.default = samples,
                Some(Candidate { loading, .. }) => {
                    round.loaded.push(Loaded { way: loading.way, samples, rows });
                }
            }
        }
        Ok(Some(round))
    }

    /// What a round may take, in seconds: half at first, what is left then.
    fn share(&self, before: Option<&Round>) -> f64 {
        match before {
            None => self.seconds / ROUNDS.len() as f64,
            Some(round) => (self.seconds - round.spent).max(0.0),
        }
    }

    /// One turn of a job, unless its record is whole.
    fn job(
        &self,
        site: &mut LazySite,
        jobs: &Jobs<'_>,
        (turn, index): (usize, usize),
        plan: &Plan,
        deadline_seconds: f64,
    ) -> Result<Vec<CollectiveCall>> {
        let candidate = jobs.loading[index];
        let name = candidate.map_or("default", Candidate::name);
        let stem = format!("confirmation-{}-{}-{name}", jobs.round, turn + 1);
        let file = |end: &str| self.run.file(&format!("{stem}{end}"));
        let (plan_path, record_path, done) = (file("-plan.json"), file(".csv"), file(".done"));
        if !done.exists() {
            document::write(&plan_path, plan)?;
            let settings = match candidate {
                Some(candidate) => self.load((jobs.round, turn), candidate)?,
                None => Vec::new(),
            };
            let deadline = Duration::from_secs_f64(deadline_seconds);
            measuring::measure(
                site.open(self.run)?,
                plan,
                &plan_path,
                &record_path,
                deadline,
                &settings,
            )
            .with_context(|| format!("confirmation {}, {name}", jobs.round))?;
            document::write_text(&done, "")?;
        }
        Ok(record::read::<CollectiveCall>(&record_path)?.rows)
    }

    /// The default, where it is replaced and at the controls, as often as fits in all jobs of a
    /// round together: each job by what runs in it, which is short where what it replaces may be
    /// long.
    fn repeated(&self, jobs: &Jobs<'_>) -> Repeated {
        let replaced = jobs.loading.iter().flatten().flat_map(|candidate| candidate.replaced());
        let controls = self.controls();
        let default: BTreeMap<Point, f64> = replaced
            .chain(controls.iter().copied())
            .map(|choice| (choice.point, choice.default_seconds))
            .collect();
        let cell = |&Point { collective, procs, bytes }: &Point| Cell {
            collective,
            method: Method::Default,
            procs,
            bytes,
        };
        let cells: Vec<Cell> = default.keys().map(cell).collect();
        let seconds = |candidate: &Option<&Candidate>| {
            let times = match candidate {
                None => default.clone(),
                Some(loaded) => {
                    let controls = controls.iter().map(|of| (of.point, of.default_seconds));
                    let replaced = loaded.replaced().map(|choice| (choice.point, choice.seconds));
                    replaced.chain(controls).collect()
                }
            };
            cells.iter().map(|cell| times.get(&cell.point()).copied()).collect()
        };
        let seconds: Vec<Vec<Option<f64>>> = jobs.loading.iter().map(seconds).collect();
        let seed = self.tune.seed.wrapping_add(jobs.round.into());
        plan::repeat(&cells, &seconds, self.ranks, jobs.seconds, (jobs.turns(), seed))
    }

    /// Points at which no candidate replaces the default, so that all jobs run the same: what they
    /// differ by there is the machine's. Only short calls differ much from job to job.
    fn controls(&self) -> Vec<&Choice> {
        let Some(first) = self.candidates.first() else { return Vec::new() };
        let is_left = |point: Point| {
            let mut replaced = self.candidates.iter().flat_map(Candidate::replaced);
            replaced.all(|choice| choice.point != point)
        };
        let controls: Vec<&Choice> = first
            .choices
            .iter()
            .filter(|of| of.default_seconds < VERY_SHORT_SECONDS && is_left(of.point))
            .collect();
        let every = controls.len().div_ceil(MOST_CONTROLS).max(1);
        controls.into_iter().step_by(every).collect()
    }

    /// Writes what a round is to load, and says how.
    fn load(&self, (round, turn): (u32, usize), candidate: &Candidate) -> Result<Vec<Setting>> {
        let stage = if round == 1 { "candidate" } else { "confirmed" };
        let path = self.run.file(&format!("{stage}-{}", candidate.file()));
        exporting::write(candidate.format(), self.source, &candidate.choices, &path)?;
        let mut settings = Vec::new();
        match candidate.loading.way {
            Way::Rules => {
                let name = "coll_tuned_dynamic_rules_filename";
                settings.push(Setting::Parameter(name, path.into_os_string()));
            }
            Way::Preload => {
                settings.push(Setting::PreloadLibrary);
                settings.push(Setting::Variable("COLIBRI_PROFILES", path.into_os_string()));
                if (round, turn) == (1, 0) {
                    let trace = trace(self.run).into_os_string();
                    settings.push(Setting::Variable("COLIBRI_TRACE", trace));
                }
            }
        }
        Ok(settings)
    }
}

impl Round {
    /// What the default takes without and with something loaded, in seconds: midmeans, since a call may
    /// have two modes, and a program meets both.
    pub fn times(&self, way: Way, point: Point) -> Option<(f64, f64)> {
        let time = |samples: &Samples| samples.get(point, &Method::Default)?.midmean();
        time(&self.default).zip(time(self.loaded(way)?))
    }

    /// The default's times with something loaded.
    pub fn loaded(&self, way: Way) -> Option<&Samples> {
        self.loaded.iter().find(|loaded| loaded.way == way).map(|loaded| &loaded.samples)
    }

    /// Whether what was loaded made calls slower where it replaces the default; nothing where
    /// nothing was loaded.
    pub fn harm<'c>(&self, way: Way, replaced: impl Iterator<Item = &'c Choice>) -> Option<Harm> {
        let loaded = self.loaded(way)?;
        let compared = |choice: &Choice| {
            let times = |samples: &Samples| {
                Some(samples.get(choice.point, &Method::Default)?.seconds().to_vec())
            };
            Some(Compared {
                point: choice.point,
                method: choice.method.clone(),
                default: times(&self.default)?,
                loaded: times(loaded)?,
            })
        };
        Some(harm::judge(&replaced.filter_map(compared).collect::<Vec<_>>()))
    }

    /// Every call made with something loaded.
    pub fn rows(&self, way: Way) -> impl Iterator<Item = &CollectiveCall> {
        let loaded = self.loaded.iter().filter(move |loaded| loaded.way == way);
        loaded.flat_map(|loaded| &loaded.rows)
    }
}

#[cfg(test)]
mod tests {
    use records::{Collective, observation::Status};

    use super::*;

    const POINT: Point = Point { collective: Collective::Bcast, procs: 8, bytes: 64 };

    /// Ten visits of the default, every second of which took twice as long as those between.
    fn samples(seconds: f64) -> Samples {
        visits(10, |visit| seconds * f64::from(1 + visit % 2))
    }

    fn visits(count: u32, seconds: impl Fn(u32) -> f64) -> Samples {
        let row = |visit: u32| CollectiveCall {
            visit,
            collective: POINT.collective,
            method: Method::Default,
            ran: String::new(),
            procs: POINT.procs,
            bytes: POINT.bytes,
            repetition: 0,
            first_start_seconds: 0.0,
            last_start_seconds: 0.0,
            seconds: seconds(visit),
            status: Status::Ok,
        };
        Samples::gather(&(0..count).map(row).collect::<Vec<_>>())
    }

    fn round(loaded: f64) -> Round {
        rounds(samples(1.0), samples(loaded))
    }

    fn rounds(default: Samples, samples: Samples) -> Round {
        let loaded = vec![Loaded { way: Way::Rules, samples, rows: Vec::new() }];
        Round { default, loaded, spent: 2.0 }
    }

    /// Believed to be ten times as fast.
    fn candidate() -> Candidate {
        let method = "native:openmpi:pipeline".parse().unwrap();
        let choice = Choice { point: POINT, method, seconds: 0.1, default_seconds: 1.0 };
        Candidate::new(Way::Rules, &[choice], &BTreeMap::from([(POINT, 0.02)]))
    }

    #[test]
    fn what_the_last_round_shows_to_do_harm_is_taken_out_whatever_was_believed() {
        let left = |loaded, is_last| {
            let mut candidate = candidate();
            candidate.take_out(&round(loaded), is_last);
            (candidate.replaced().count(), candidate.loading.taken_out)
        };
        assert_eq!(left(2.0, false).0, 1, "one round as noisy as that does not overthrow it");
        let (replaced, taken_out) = left(2.0, true);
        assert_eq!((replaced, taken_out.len()), (0, 1));
        assert!((taken_out[0].speed_up - 0.5).abs() < 1e-9);
        assert_eq!(left(1.05, true), (1, Vec::new()), "that is no harm");
    }

    /// So little slower that jobs may differ as much: what is believed would let it stay.
    #[test]
    fn what_is_told_to_be_significantly_slower_is_not_loaded() {
        let steady = |seconds: f64| visits(200, move |visit| seconds + 1e-4 * f64::from(visit));
        let mut candidate = candidate();
        candidate.take_out(&rounds(steady(1.0), steady(1.07)), true);
        let harm = candidate.loading.harm.clone().unwrap();
        assert_eq!(harm.slower.len(), 1, "{harm:?}");
        assert_eq!(candidate.replaced().count(), 0);
        assert_eq!(candidate.loading.taken_out[0].method, harm.slower[0].method);
    }
}
