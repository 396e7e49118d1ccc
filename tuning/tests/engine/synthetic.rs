//! A bench whose times are made up: a truth, and what a real machine does to it.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal};
use rand_pcg::Pcg64;
use records::{
    Collective, Layout, Method, Point,
    observation::{CollectiveCall, ObservationStatus},
    plan::{Cell, Plan, Visit},
    summary::LoadWay,
};
use tuning::{
    Bench, BenchJob, FinishedJob, JobName, JobTime, Weights,
    plan::{Grid, cells},
    state::{Batch, spent_seconds},
};

use crate::{
    truth,
    tuned::{BesideCalls, job_time},
};

/// What a cluster takes for each cell, and how noisy it is.
#[derive(Clone)]
pub struct SyntheticCluster {
    pub cells: Vec<Cell>,
    /// Seconds of a call when nothing disturbs it.
    pub truth: fn(&Cell) -> f64,
    /// How many times as long a method takes where it is loaded as where it was forced.
    pub loaded: fn(&Method) -> f64,
    /// Deviation of the logarithm of all times of a job together.
    pub job_noise: f64,
    /// Half of what a machine's slow and fast states differ by, relatively: they change in some seconds.
    pub drift: f64,
    /// Of the noise, which is another one in each job.
    pub seed: u64,
}

impl SyntheticCluster {
    pub fn new(seed: u64) -> Self {
        let grid = Grid {
            ranks: 16,
            collectives: vec![Collective::Bcast],
            layouts: [2, 4, 6, 11, 16].map(Layout::flat).into(),
            sizes: (0..21).map(|power| 1 << power).collect(),
            segments: vec![0, 1024, 8192, 65536],
            methods: tuning::plan::MethodsOf::new(|point, segments| {
                libraries::openmpi::methods(point.collective, segments, point.procs(), point.bytes)
            }),
            weights: Weights::default(),
            others: Vec::new(),
            rank_bytes: None,
        };
        SyntheticCluster {
            cells: cells(&grid, &grid.sizes),
            truth: truth::seconds,
            loaded: |_| 1.0,
            job_noise: 0.01,
            drift: 0.03,
            seed,
        }
    }

    /// The truth of a method at a point, in seconds, where it is loaded.
    pub fn loaded_seconds(&self, point: Point, method: &Method) -> f64 {
        let cell = Cell { point, method: method.clone() };
        let factor = if *method == Method::Default { 1.0 } else { (self.loaded)(method) };
        (self.truth)(&cell) * factor
    }

    /// The least that any method takes at a point, forced.
    pub fn best_seconds(&self, point: Point) -> f64 {
        let here = self.cells.iter().filter(|cell| cell.point == point);
        here.map(self.truth).fold(f64::INFINITY, f64::min)
    }

    /// What measuring every cell five times takes, in seconds.
    pub fn exhaustive_seconds(&self) -> f64 {
        let visits: Vec<Visit> = (0..self.cells.len() as u32)
            .map(|cell| Visit { cell, warmups: 2, repetitions: 3, calls: 1 })
            .collect();
        spent_seconds(&self.measure(&visits, 0))
    }

    /// What a job sees that visits cells, and does nothing else.
    pub fn measure(&self, visits: &[Visit], number: u32) -> Vec<CollectiveCall> {
        let (cells, visits) = (self.cells.clone(), visits.to_vec());
        let plan = Plan { seed: 0, ranks: 16, cells, visits };
        let name = JobName::Batch(number);
        self.observe(&BenchJob { name, plan: &plan, load: None, seconds: f64::INFINITY })
    }

    /// What a job sees: always the same of one name and plan.
    fn observe(&self, job: &BenchJob<'_>) -> Vec<CollectiveCall> {
        let mut random = Pcg64::seed_from_u64(self.seed ^ stream(job.name));
        let normal = |deviation: f64| LogNormal::new(0.0, deviation).unwrap();
        let state = normal(self.job_noise).sample(&mut random);
        let phase: f64 = random.random_range(0.0..std::f64::consts::TAU);
        let (mut rows, mut now) = (Vec::new(), 0.0);
        for (number, visit) in (0..).zip(&job.plan.visits) {
            let cell = &job.plan.cells[visit.cell as usize];
            let truth = match job.load {
                None => (self.truth)(cell),
                Some(load) => {
                    let here = load.choices.iter().find(|of| of.point == cell.point);
                    self.loaded_seconds(cell.point, &here.unwrap().method)
                }
            };
            let drift = 1.0 + self.drift * f64::sin(phase + now / 3.0);
            let (of_visit, of_call) = if truth < 1e-3 { (0.05, 0.1) } else { (0.01, 0.02) };
            let here = truth * state * drift * normal(of_visit).sample(&mut random);
            for repetition in 0..visit.warmups + visit.repetitions {
                let astray = if random.random::<f64>() < 0.01 { 3.0 } else { 1.0 };
                let seconds = here * normal(of_call).sample(&mut random) * astray;
                let is_warm = repetition < visit.warmups;
                now += seconds;
                rows.push(CollectiveCall {
                    visit: number,
                    repetition,
                    status: if is_warm { ObservationStatus::Warmup } else { ObservationStatus::Ok },
                    ..CollectiveCall::timed(cell, seconds)
                });
            }
        }
        rows
    }
}

/// Another one for each job.
fn stream(name: JobName) -> u64 {
    match name {
        JobName::Batch(number) => u64::from(number) << 32,
        JobName::Confirming { round, turn, way } => {
            let way = match way {
                None => 1,
                Some(LoadWay::Rules) => 2,
                Some(LoadWay::Preload) => 3,
                Some(LoadWay::Both) => 4,
            };
            1 << 63 | u64::from(round) << 48 | u64::from(turn) << 40 | way << 32
        }
    }
}

/// A job that was run.
#[derive(Debug, Clone, PartialEq)]
pub struct SyntheticJob {
    pub name: JobName,
    pub plan: Plan,
    pub rows: Vec<CollectiveCall>,
}

/// A bench on a world; it keeps a record of what ran, and can be killed.
pub struct SyntheticBench<'a> {
    pub world: &'a SyntheticCluster,
    pub record: Vec<SyntheticJob>,
    /// The job that was begun when the engine was killed, which is planned and recorded in part.
    pub begun: Option<(JobName, Plan)>,
    pub batches: Vec<Batch>,
    /// So many jobs run to their end.
    pub jobs_to_live: usize,
    /// What starting a job takes, and what a call takes beside its own time by its processes, in seconds; nothing:
    /// no job tells what it took.
    pub beside_calls: Option<BesideCalls>,
}

/// The engine was killed.
#[derive(Debug, PartialEq)]
pub struct Killed;

impl<'a> SyntheticBench<'a> {
    pub fn new(world: &'a SyntheticCluster) -> Self {
        SyntheticBench {
            world,
            record: Vec::new(),
            begun: None,
            batches: Vec::new(),
            jobs_to_live: usize::MAX,
            beside_calls: None,
        }
    }

    /// What the jobs took in which something was confirmed, in seconds.
    pub fn confirming_seconds(&self) -> f64 {
        let is_confirming = |job: &&SyntheticJob| matches!(job.name, JobName::Confirming { .. });
        let jobs = self.record.iter().filter(is_confirming);
        jobs.filter_map(|job| self.took(job)).map(|took| took.seconds()).sum()
    }

    fn took(&self, job: &SyntheticJob) -> Option<JobTime> {
        self.beside_calls.map(|beside| job_time(beside, &job.rows))
    }

    fn finished(&self, job: &SyntheticJob) -> FinishedJob {
        FinishedJob { rows: job.rows.clone(), took: self.took(job) }
    }

    fn recorded(&self, name: JobName) -> Option<&SyntheticJob> {
        self.record.iter().find(|job| job.name == name)
    }
}

impl Bench for SyntheticBench<'_> {
    type Error = Killed;

    fn run(&mut self, job: &BenchJob<'_>) -> Result<FinishedJob, Killed> {
        if let Some(recorded) = self.recorded(job.name) {
            return Ok(self.finished(recorded));
        }
        let Some(left) = self.jobs_to_live.checked_sub(1) else {
            self.begun = Some((job.name, job.plan.clone()));
            return Err(Killed);
        };
        self.jobs_to_live = left;
        if let Some((_, plan)) = self.begun.take_if(|(name, _)| *name == job.name) {
            assert_eq!(&plan, job.plan, "{:?} was begun by another plan", job.name);
        }
        let rows = self.world.observe(job);
        let made = SyntheticJob { name: job.name, plan: job.plan.clone(), rows };
        let finished = self.finished(&made);
        self.record.push(made);
        Ok(finished)
    }

    fn planned(&mut self, name: JobName) -> Result<Option<Plan>, Killed> {
        let begun = self.begun.iter().filter(|(begun, _)| *begun == name).map(|(_, plan)| plan);
        let recorded = self.recorded(name).map(|job| &job.plan);
        Ok(recorded.into_iter().chain(begun).next().cloned())
    }

    fn receive_batch(&mut self, _: u32, batch: &Batch) {
        self.batches.push(batch.clone());
    }
}
