//! A synthetic application: calls whose true expected times are known, carried out as the preload library does.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

use super::super::{
    Account, AgreementStep, Arm, CallClass, CallEnd, CallsAlone, Candidate, ClassIndex, Explorer,
    SizeClass, Turn,
};
use records::{Collective, Layout, Method, learned::LearnedClass};
use std::sync::Arc;

/// How an arm's time goes with what has happened so far.
#[derive(Debug, Clone, Copy)]
pub enum Course {
    Steady,
    /// From this share of the application's calls on it takes so many times as long.
    From(f64, f64),
    /// The same, by and by until the end.
    Slowly(f64, f64),
    /// After so many calls by it, it takes so many times as long.
    AfterCalls(u64, f64),
    /// After so many calls by it in a row.
    InLongRuns(u64, f64),
}

/// A method, or the default, of a class.
#[derive(Debug, Clone, Copy)]
pub struct TrueArm {
    /// Times as long as the default.
    pub factor: f64,
    pub course: Course,
    /// The first call takes so much longer, in seconds.
    pub first_seconds: f64,
    pub max_seconds: Option<f64>,
    /// It can do nothing.
    pub declines: bool,
}

impl TrueArm {
    pub fn steady(factor: f64) -> Self {
        TrueArm {
            factor,
            course: Course::Steady,
            first_seconds: 0.0,
            max_seconds: None,
            declines: false,
        }
    }
}

#[derive(Debug, Clone)]
pub struct TrueClass {
    pub collective: Collective,
    pub bytes: u64,
    pub default_seconds: f64,
    /// The default first.
    pub arms: Vec<TrueArm>,
    /// How often it is called beside the others.
    pub weight: f64,
    pub learned: Option<LearnedClass>,
}

#[derive(Debug, Clone)]
pub struct Application {
    pub ranks: u32,
    pub classes: Vec<TrueClass>,
    pub calls: u64,
    pub budget: f64,
    /// The standard deviation of the logarithm of a call's time, common to all ranks, and of each rank by itself.
    pub noise: f64,
    pub rank_noise: f64,
    /// Calls that take 100 times as long.
    pub hiccups: f64,
    /// The mean time that a rank waits in a call for later ones, whatever the method, in seconds.
    pub wait: f64,
    pub agreement_seconds: f64,
}

/// What came of an application.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// True expected seconds by the default alone, of the mean rank.
    pub by_default: f64,
    /// What exploring added, gains taken off.
    pub added: f64,
    /// What could have been saved by the best arm of each class from the first call on.
    pub possible: f64,
    /// The arms that were used at the end.
    pub chosen: Vec<Arm>,
    pub calls: Vec<u64>,
    /// At which call of its class what is used at the end came to be used.
    pub chosen_at: Vec<u64>,
    pub agreements: u64,
    /// Calls that the explorer was asked for.
    pub asked: u64,
    pub account: Account,
    /// What was saved in the last quarter of the calls, and could have been.
    pub late: [f64; 2],
    pub learned: Vec<LearnedClass>,
}

impl Outcome {
    pub fn harm(&self) -> f64 {
        self.added / self.by_default
    }
}

pub fn method(arm: usize) -> Method {
    const METHODS: [&str; 8] = [
        "own:binomial",
        "own:binary",
        "own:pipeline,segment=8KiB",
        "own:linear",
        "own:k-nomial,fan-out=4",
        "own:k-nomial,fan-out=8",
        "own:pipeline,segment=1KiB",
        "own:pipeline,segment=64KiB",
    ];
    METHODS[arm - 1].parse().unwrap()
}

/// The ranks' explorers: some of single ranks, and the last one standing for all others.
pub struct Ranks {
    explorers: Vec<Explorer>,
    weights: Vec<f64>,
    alone: Vec<Vec<Arc<CallsAlone>>>,
    sums: Option<Vec<f64>>,
}

impl Ranks {
    pub fn new(layout: Layout, budget: f64, single: u32) -> Self {
        let procs = layout.procs();
        let single = single.min(procs);
        let mut weights = vec![1.0; single as usize];
        if procs > single {
            weights.push(f64::from(procs - single));
        }
        let explorers = weights.iter().map(|_| Explorer::new(layout, budget)).collect::<Vec<_>>();
        let alone = weights.iter().map(|_| Vec::new()).collect();
        Ranks { explorers, weights, alone, sums: None }
    }

    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    pub fn explorers(&mut self) -> &mut [Explorer] {
        &mut self.explorers
    }

    pub fn add_class(
        &mut self,
        class: CallClass,
        candidates: &[Candidate],
        learned: Option<&LearnedClass>,
    ) -> ClassIndex {
        let mut added = 0;
        for (explorer, alone) in self.explorers.iter_mut().zip(&mut self.alone) {
            let (index, calls) = explorer.add_class(class, candidates.to_vec(), learned);
            alone.push(calls);
            added = index;
        }
        added
    }

    /// What the next call is by: the arm, and the turn where the explorers were asked.
    pub fn begin(&self, class: ClassIndex) -> (Arm, Option<Turn>) {
        let of = |rank: usize| match self.alone[rank][class].take() {
            Some(arm) => (arm, None),
            None if let Some(arm) = self.alone[rank][class].timed_arm() => {
                (arm, Some(Turn { arm, is_timed: true }))
            }
            None => {
                let turn = self.explorers[rank].next(class);
                assert_eq!(turn, self.explorers[rank].next(class), "asked twice");
                (turn.arm, Some(turn))
            }
        };
        let first = of(0);
        for rank in 1..self.explorers.len() {
            assert_eq!(of(rank), first, "ranks out of step in class {class}");
        }
        first
    }

    /// A call that the library refuses.
    pub fn refuse(&self, class: ClassIndex) {
        for (rank, explorer) in self.explorers.iter().enumerate() {
            match self.alone[rank][class].take() {
                Some(_) => self.alone[rank][class].put_back(),
                None => {
                    explorer.next(class);
                }
            }
        }
    }

    /// The call that was asked for has ended; returns how many agreements began with it.
    pub fn end(
        &mut self,
        class: ClassIndex,
        ends: impl Fn(usize) -> CallEnd,
        mut agreement_seconds: impl FnMut(usize) -> f64,
    ) -> u64 {
        let mut steps = Vec::new();
        for (rank, explorer) in self.explorers.iter_mut().enumerate() {
            let (alone, end) = (&self.alone[rank][class], ends(rank));
            if alone.timed_arm().is_some() {
                alone.add_timed((end.seconds.unwrap() * 1e9) as u64, end.was_declined);
                steps.push(None);
                continue;
            }
            explorer.ended(class, end);
            steps.push(explorer.agreement());
        }
        let same = |step: &Option<AgreementStep>| match step {
            None => 0,
            Some(AgreementStep::Begin(numbers)) => numbers.len(),
            Some(AgreementStep::Finish) => usize::MAX,
        };
        assert!(steps.iter().all(|step| same(step) == same(&steps[0])), "{steps:?}");
        match &steps[0] {
            None => 0,
            Some(AgreementStep::Begin(numbers)) => {
                let mut sums = vec![0.0; numbers.len()];
                for (step, weight) in steps.iter().zip(&self.weights) {
                    let Some(AgreementStep::Begin(numbers)) = step else { unreachable!() };
                    for (sum, number) in sums.iter_mut().zip(numbers) {
                        *sum += weight * number;
                    }
                }
                assert!(self.sums.is_none(), "two agreements at once");
                self.sums = Some(sums);
                for (rank, explorer) in self.explorers.iter_mut().enumerate() {
                    explorer.agreement_took(0.3 * agreement_seconds(rank));
                }
                1
            }
            Some(AgreementStep::Finish) => {
                let sums = self.sums.take().unwrap();
                for (rank, explorer) in self.explorers.iter_mut().enumerate() {
                    explorer.agreement_took(0.7 * agreement_seconds(rank));
                    explorer.agreed(&sums);
                }
                0
            }
        }
    }
}

impl TrueClass {
    fn call_class(&self) -> CallClass {
        CallClass { collective: self.collective, size: SizeClass::of(self.bytes) }
    }
}

/// What a call costs beside what it is for: asked for, and timed, in seconds (as measured: see `ledger`).
const ASKED: f64 = 100e-9;
const TIMED: f64 = 60e-9;
/// What is called so often in a row is no trial.
const LONG_ROW: u64 = 40;

impl Application {
    /// True expected seconds of a call by an arm, without the wait.
    fn expected(&self, class: &TrueClass, arm: usize, progress: f64, calls: u64, row: u64) -> f64 {
        let one = &class.arms[arm];
        let after = match one.course {
            Course::Steady => 1.0,
            Course::From(at, factor) => {
                if progress >= at {
                    factor
                } else {
                    1.0
                }
            }
            Course::Slowly(at, factor) => {
                1.0 + (factor - 1.0) * ((progress - at) / (1.0 - at)).max(0.0)
            }
            Course::AfterCalls(at, factor) => {
                if calls >= at {
                    factor
                } else {
                    1.0
                }
            }
            Course::InLongRuns(at, factor) => {
                if row >= at {
                    factor
                } else {
                    1.0
                }
            }
        };
        class.default_seconds * one.factor * after
    }

    pub fn run(&self, random: &mut impl Rng) -> Outcome {
        self.run_watched(random, |_, _, _| ())
    }

    /// `watch` sees the class, its call, and the arm of each.
    pub fn run_watched(
        &self,
        random: &mut impl Rng,
        mut watch: impl FnMut(usize, u64, Arm),
    ) -> Outcome {
        let mut ranks = Ranks::new(Layout::flat(self.ranks), self.budget, 1);
        for class in &self.classes {
            let candidate = |(arm, one): (usize, &TrueArm)| Candidate {
                method: method(arm),
                max_seconds: one.max_seconds,
            };
            let candidates: Vec<_> = class.arms.iter().enumerate().skip(1).map(candidate).collect();
            ranks.add_class(class.call_class(), &candidates, class.learned.as_ref());
        }
        let mut of_arm: Vec<Vec<u64>> =
            self.classes.iter().map(|class| vec![0; class.arms.len()]).collect();
        let mut row = vec![(0_usize, 0_u64); self.classes.len()];
        let mut saved: Vec<Vec<f64>> =
            self.classes.iter().map(|class| vec![0.0; class.arms.len()]).collect();
        let mut out = Outcome {
            chosen: vec![0; self.classes.len()],
            calls: vec![0; self.classes.len()],
            chosen_at: vec![0; self.classes.len()],
            ..Outcome::default()
        };
        let total: f64 = self.classes.iter().map(|class| class.weight).sum();
        let normal = |random: &mut _| -> f64 { StandardNormal.sample(random) };
        for call in 0..self.calls {
            let mut at = random.random::<f64>() * total;
            let index = self.classes.iter().position(|class| {
                at -= class.weight;
                at < 0.0
            });
            let index = index.unwrap_or(0);
            let class = &self.classes[index];
            let progress = call as f64 / self.calls as f64;
            let (arm, turn) = ranks.begin(index);
            watch(index, out.calls[index], arm);
            let wanted = arm as usize;
            let real = if class.arms[wanted].declines { 0 } else { wanted };
            let in_row = if row[index].0 == real { row[index].1 + 1 } else { 0 };
            row[index] = (real, in_row);
            let default = self.expected(class, 0, progress, 0, 0);
            let mut seconds = self.expected(class, real, progress, of_arm[index][real], in_row);
            if of_arm[index][real] == 0 {
                seconds += class.arms[real].first_seconds;
            }
            of_arm[index][real] += 1;
            out.by_default += default + self.wait;
            out.added += seconds - default;
            for (other, saved) in saved[index].iter_mut().enumerate() {
                if !class.arms[other].declines {
                    // What an arm would do if it were used always.
                    *saved += default
                        - self.expected(class, other, progress, out.calls[index], out.calls[index]);
                }
            }
            if call >= self.calls - self.calls / 4 {
                out.late[0] += default - seconds;
                let best = (0..class.arms.len())
                    .filter(|arm| !class.arms[*arm].declines)
                    .map(|arm| {
                        self.expected(class, arm, progress, out.calls[index], out.calls[index])
                    })
                    .fold(f64::INFINITY, f64::min);
                out.late[1] += default - best;
            }
            out.calls[index] += 1;
            if in_row == LONG_ROW && out.chosen[index] != arm {
                out.chosen_at[index] = out.calls[index] - LONG_ROW;
                out.chosen[index] = arm;
            }
            let Some(turn) = turn else { continue };
            out.asked += 1;
            out.added += ASKED + if turn.is_timed { TIMED } else { 0.0 };
            let hiccup = if random.random::<f64>() < self.hiccups { 100.0 } else { 1.0 };
            let common = (self.noise * normal(random) - 0.5 * self.noise * self.noise).exp();
            let wait = self.wait * 2.0 * random.random::<f64>();
            let mut times = [0.0; 8];
            for (rank, weight) in ranks.weights().iter().enumerate() {
                let noise = self.rank_noise / weight.sqrt();
                let own = (noise * normal(random) - 0.5 * noise * noise).exp();
                let waited = 1.0 + (2.0 * random.random::<f64>() - 1.0) / weight.sqrt();
                times[rank] = seconds * common * own * hiccup + wait * waited;
            }
            let end = |rank: usize| CallEnd {
                seconds: turn.is_timed.then_some(times[rank]),
                was_declined: class.arms[wanted].declines,
            };
            let agreement =
                |_rank: usize| self.agreement_seconds * (0.3 * normal(random) - 0.045).exp();
            let began = ranks.end(index, end, agreement);
            out.agreements += began;
            out.added += began as f64 * self.agreement_seconds;
        }
        for saved in saved {
            out.possible += saved.into_iter().fold(0.0, f64::max);
        }
        out.account = ranks.explorers()[0].account();
        out.learned = ranks.explorers()[0].learned();
        out
    }
}
