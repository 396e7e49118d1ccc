//! `colibri-calibrate`: point-to-point observations between two ranks, within a budget.

pub mod book;
pub mod cells;
pub mod pair;
mod recorder;
pub mod schedule;

use std::path::PathBuf;

use rand::SeedableRng;
use rand_pcg::Pcg64;
use records::{
    observation::{PointToPoint, PointToPointKind, Status},
    quantity,
};
use verification::stopping::Rule;

use self::{
    book::Book,
    cells::Cell,
    pair::{Command, Mirror, Sender},
    recorder::{Recorder, Spent},
    schedule::{Bench, Outcome},
};
use crate::{
    Error, Result,
    clock::{Nanos, now, seconds},
    exchange::{Communicator, Tag},
    launcher, platform,
    progress::Reporter,
    world::{self, JobFlags, World},
};

/// The program's name, in messages and in the record.
pub const PROGRAM: &str = "colibri-calibrate";

/// Measures a platform point to point: raw observations between two ranks
#[derive(Debug, Clone, clap::Parser)]
#[command(name = PROGRAM, version)]
pub struct Flags {
    #[command(flatten)]
    job: JobFlags,
    /// Where the observations go; a record that is there is gone on with
    #[arg(long)]
    record: PathBuf,
    /// Message sizes in bytes, such as 0,1,2,4 or 1..1MiB
    #[arg(long, value_parser = parse_sizes)]
    sizes: Sizes,
    /// The sending and the receiving rank
    #[arg(long, value_parser = parse_pair)]
    pair: (u32, u32),
    /// Seconds from the start of MPI to the end, those of the record's earlier runs included
    #[arg(long, value_parser = parse_budget)]
    budget_seconds: f64,
    /// Seed of the order of the measurements
    #[arg(long)]
    seed: u64,
}

impl Flags {
    /// The flags that both programs have.
    pub fn job(&self) -> &JobFlags {
        &self.job
    }
}

/// A list of sizes as one flag (clap takes a bare `Vec` for a repeated one).
#[derive(Debug, Clone)]
struct Sizes(Vec<u64>);

fn parse_sizes(text: &str) -> std::result::Result<Sizes, String> {
    const MOST: u64 = i32::MAX as u64;
    let sizes = quantity::parse_sizes(text)?;
    match sizes.last() {
        Some(&size) if size > MOST => {
            Err(format!("{size} bytes; one message holds at most {MOST}"))
        }
        _ => Ok(Sizes(sizes)),
    }
}

fn parse_pair(text: &str) -> std::result::Result<(u32, u32), String> {
    let ranks = text.split_once(',').and_then(|(sender, receiver)| {
        Some((sender.trim().parse().ok()?, receiver.trim().parse().ok()?))
    });
    match ranks {
        Some((sender, receiver)) if sender != receiver => Ok((sender, receiver)),
        _ => Err(format!("'{text}' is not a pair; write two different ranks, such as 0,1")),
    }
}

pub(crate) fn parse_budget(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        _ => Err(format!("'{text}' is not a number of seconds above 0, such as 60")),
    }
}

/// The program on one rank.
///
/// # Errors
/// The pair is not in the job; the record cannot be used; the MPI library refuses.
pub fn run(flags: &Flags, world: &World) -> Result<()> {
    let (sender, mirror) = flags.pair;
    if let Some(rank) = [sender, mirror].into_iter().find(|rank| *rank >= flags.job.ranks) {
        let last = flags.job.ranks - 1;
        let problem = format!("--pair names rank {rank}; the job has ranks 0 to {last}");
        // Every rank sees it, one says it.
        return if world.rank() == 0 { Err(Error::Usage(problem)) } else { Ok(()) };
    }
    let surroundings = platform::survey(world, &flags.job)?;
    let recorder = match surroundings.platform {
        Some(platform) => Some(Recorder::new(flags, &platform)?),
        None => None,
    };
    if world.rank() == sender {
        send(flags, world, recorder)
    } else {
        serve(flags, world, recorder)
    }
}

/// Every rank but the sender: does what the sender says, and sleeps where that is nothing.
fn serve(flags: &Flags, world: &World, mut recorder: Option<Recorder>) -> Result<()> {
    let (sender, mirror) = flags.pair;
    let comm = world.control;
    if let Some(recorder) = &recorder {
        comm.tell(&recorder.earlier, sender, Tag::Setup)?;
    }
    let is_mirror = comm.rank() == mirror;
    let largest = if is_mirror { largest(flags) } else { 0 };
    let mut mirror = Mirror::new(comm, sender, largest);
    loop {
        match pair::next_command(&comm, sender, is_mirror)? {
            Command::Measure(cell, count) => mirror.answer(cell, count)?,
            Command::Record(rows) => recorder.iter_mut().try_for_each(|to| to.append(&rows))?,
            Command::Spent(seconds) => recorder.iter_mut().try_for_each(|to| to.note(seconds))?,
            Command::Stop => return Ok(()),
        }
    }
}

fn largest(flags: &Flags) -> usize {
    flags.sizes.0.last().map_or(0, |&size| size as usize)
}

/// The sender: decides and times.
fn send(flags: &Flags, world: &World, recorder: Option<Recorder>) -> Result<()> {
    let comm = world.control;
    let earlier: Spent = match &recorder {
        Some(recorder) => recorder.earlier.clone(),
        None => comm.hear(0, Tag::Setup)?,
    };
    let mut bench = PairBench {
        world,
        pair: flags.pair,
        sender: Sender::new(comm, flags.pair.1, largest(flags)),
        recorder,
        book: Book::new(&earlier.rows),
        spent_before: earlier.seconds,
        noted: now(),
        progress: Reporter::new("calibrating", (flags.budget_seconds * 1e3) as u64),
    };
    bench.observe_clock()?;
    let rule = bench.rule();
    let cells = Cell::all(&flags.sizes.0);
    let mut random = Pcg64::seed_from_u64(flags.seed);
    let outcome = schedule::run(&cells, &rule, flags.budget_seconds, &mut random, &mut bench)?;
    bench.end()?;
    for rank in (0..comm.size()).filter(|rank| *rank != comm.rank()) {
        comm.tell(&Command::Stop, rank, Tag::Command)?;
    }
    report(&outcome, &rule, flags.budget_seconds);
    Ok(())
}

/// Says on stderr what the budget did not reach.
fn report(outcome: &Outcome, rule: &Rule, budget_seconds: f64) {
    if !outcome.unreached.is_empty() {
        const NAMED: usize = 4;
        let mut names: Vec<String> =
            outcome.unreached.iter().take(NAMED).map(Cell::describe).collect();
        if let more @ 1.. = outcome.unreached.len().saturating_sub(NAMED) {
            names.push(format!("{more} more"));
        }
        let budget = format!("the budget of {budget_seconds} s is too small for everything");
        let least = rule.minimum;
        let list = names.join(", ");
        world::warn(PROGRAM, &format!("{budget}; fewer than {least} observations of: {list}"));
    }
    if let Some((worst, uncertainty)) = outcome.uncertain.first() {
        let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
        let many = outcome.uncertain.len();
        let wanted = percent(rule.relative_error);
        let worst = format!("{} (+-{})", worst.describe(), percent(*uncertainty));
        world::warn(
            PROGRAM,
            &format!("{many} medians are less certain than +-{wanted}; the worst: {worst}"),
        );
    }
}

/// The two ranks as the schedule's bench.
struct PairBench<'a> {
    world: &'a World,
    pair: (u32, u32),
    sender: Sender,
    /// At rank 0; a sender elsewhere sends its observations there.
    recorder: Option<Recorder>,
    book: Book,
    spent_before: f64,
    noted: Nanos,
    progress: Reporter,
}

impl PairBench<'_> {
    const CLOCK_READINGS: usize = 20;
    /// How often the record is told what has been spent.
    const NOTE_PAUSE: Nanos = 1_000_000_000;
    /// A message that went around in less needs no shorter wait: sleeping is no more exact.
    const LEAST_WAIT: f64 = 200e-6;

    fn control(&self) -> &Communicator {
        &self.world.control
    }

    fn observe_clock(&mut self) -> Result<()> {
        let kind = PointToPointKind::Clock;
        let there = self.book.judged(kind, 0, 1).len();
        for reading in there..Self::CLOCK_READINGS {
            let begun = now();
            let ended = now();
            let warm_up = reading == 0;
            self.record(kind, 0, 1, seconds(ended - begun), warm_up)?;
        }
        Ok(())
    }

    fn record(
        &mut self,
        kind: PointToPointKind,
        bytes: u64,
        messages: u32,
        seconds: f64,
        warm_up: bool,
    ) -> Result<()> {
        let row = PointToPoint {
            kind,
            sender: self.pair.0,
            receiver: self.pair.1,
            bytes,
            messages,
            repetition: self.book.next_repetition(kind, bytes, messages),
            seconds,
            status: if warm_up { Status::Warmup } else { Status::Ok },
        };
        self.book.enter(&row);
        match &mut self.recorder {
            Some(recorder) => recorder.append(&[row]),
            None => self.control().tell(&Command::Record(vec![row]), 0, Tag::Command),
        }
    }

    /// How certain the medians shall be. What the clock itself costs is as fine as it sees; taken
    /// from the record, so that a finished record stays finished.
    fn rule(&self) -> Rule {
        let clock = self.book.judged(PointToPointKind::Clock, 0, 1);
        let clock = verification::stopping::median_interval(clock, 0.95);
        Rule {
            minimum: 8,
            maximum: 400,
            confidence: 0.95,
            relative_error: 0.025,
            resolution_seconds: clock.map_or(0.0, |clock| clock.median),
        }
    }

    /// Tells the record what has been spent, for a run that goes on with it.
    fn note_spent(&mut self) -> Result<()> {
        self.noted = now();
        let seconds = self.spent_seconds();
        match &mut self.recorder {
            Some(recorder) => recorder.note(seconds),
            None => self.control().tell(&Command::Spent(seconds), 0, Tag::Command),
        }
    }

    fn end(&mut self) -> Result<()> {
        self.note_spent()?;
        self.progress.finish(u64::MAX);
        Ok(())
    }

    /// How long a message of this size surely takes: 1.2 times the round trip (as logp_mpi), of
    /// the slow ones among those seen.
    fn wait(&self, bytes: u64) -> Nanos {
        let judged = self.book.judged(PointToPointKind::RoundTrip, bytes, 1);
        let mut sorted = judged.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let slow = sorted.get(sorted.len() * 9 / 10).copied().unwrap_or_default();
        ((1.2 * slow).max(Self::LEAST_WAIT) * 1e9) as Nanos
    }

    /// The wait of a receive overhead is taken from round trips, which may have to be made first.
    fn ensure_round_trip(&mut self, cell: &Cell) -> Result<()> {
        let round_trip = Cell::new(cells::Experiment::RoundTrip, cell.bytes);
        let needed = cell.experiment == cells::Experiment::ReceiveOverhead;
        if needed && self.book.observations(&round_trip) == 0 {
            self.measure(&round_trip, 1, false)?;
        }
        Ok(())
    }
}

impl Bench for PairBench<'_> {
    type Error = Error;

    fn measure(&mut self, cell: &Cell, count: u32, warm_up: bool) -> Result<()> {
        self.ensure_round_trip(cell)?;
        let wait = self.wait(cell.bytes);
        self.sender.begin(*cell, count)?;
        for _ in 0..count {
            launcher::end_if_gone();
            for (kind, seconds) in self.sender.repeat(*cell, wait)? {
                self.record(kind, cell.bytes, cell.messages, seconds, warm_up)?;
            }
        }
        self.progress.update((self.spent_seconds() * 1e3) as u64);
        if now() - self.noted >= Self::NOTE_PAUSE {
            self.note_spent()?;
        }
        Ok(())
    }

    fn spent_seconds(&self) -> f64 {
        self.spent_before + self.world.elapsed_seconds()
    }

    fn observations(&self, cell: &Cell) -> usize {
        self.book.observations(cell)
    }

    fn uncertainty(&self, cell: &Cell, rule: &Rule) -> f64 {
        self.book.uncertainty(cell, rule)
    }
}
