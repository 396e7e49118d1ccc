//! What runs the engine's jobs.

use records::{
    choices::Chosen, observation::CollectiveCall, plan::Plan, summary::LoadWay, usage::Usage,
};

use crate::{costs::JobTime, state::Batch};

/// Runs jobs: on a cluster, from a record, or in a world that is made up.
pub trait Bench {
    /// Why a job could not be run.
    type Error;

    /// What a job made; of one that ran before, what was recorded then.
    ///
    /// # Errors
    /// The job fails, or its record cannot be read.
    fn run(&mut self, job: &BenchJob<'_>) -> Result<FinishedJob, Self::Error>;

    /// The plan of a job that was planned before: it is completed as it was planned then.
    ///
    /// # Errors
    /// There is one, which cannot be read.
    fn planned(&mut self, name: JobName) -> Result<Option<Plan>, Self::Error> {
        let _ = name;
        Ok(None)
    }

    /// What the preload library saw of the jobs that loaded it; nothing where it did not look.
    ///
    /// # Errors
    /// What it wrote cannot be read.
    fn usage(&mut self) -> Result<Option<Usage>, Self::Error> {
        Ok(None)
    }

    /// Hears of a batch before it is run, or of the empty one that ends the measuring.
    fn receive_batch(&mut self, number: u32, batch: &Batch) {
        let _ = (number, batch);
    }
}

/// What a job made that has run.
#[derive(Debug, Clone)]
pub struct FinishedJob {
    /// Every call, in order.
    pub rows: Vec<CollectiveCall>,
    /// What it took; nothing where that is not known.
    pub took: Option<JobTime>,
}

/// One job: a start of the measuring program on all ranks.
#[derive(Debug, Clone, Copy)]
pub struct BenchJob<'a> {
    /// No two jobs of a tuning have the same.
    pub name: JobName,
    /// What it measures.
    pub plan: &'a Plan,
    /// What the MPI library is to load; nothing: it runs as it is.
    pub load: Option<Load<'a>>,
    /// What it may take, in seconds.
    pub seconds: f64,
}

/// A job's name within a tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobName {
    /// A batch of the focused measuring, by its number from 1.
    Batch(u32),
    /// The default without anything loaded, or with what was chosen loaded in one way.
    Confirming {
        /// From 1.
        round: u32,
        /// Which part of the round's plan, from 1.
        turn: u32,
        /// What is loaded.
        way: Option<LoadWay>,
    },
}

/// What a job has the MPI library load.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    pub way: LoadWay,
    /// At every point; [`Method::Default`](records::Method::Default) where the library's default is left.
    pub choices: &'a [Chosen],
}
