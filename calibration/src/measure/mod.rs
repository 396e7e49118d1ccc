//! `colibri-measure`: times methods of collectives by a plan.
//!
//! Rank 0 directs. It tells the ranks of a visit's communicator what comes, call by call, and
//! collects what they saw; all others sleep until they are needed.

pub mod collectives;
pub mod methods;
pub mod participant;
pub mod timing;
pub mod tool;
pub mod tracer;
pub mod work;

use std::{collections::BTreeMap, path::PathBuf};

use records::{
    document,
    observation::{CollectiveCall, Status},
    plan::{Cell, Plan},
    platform::Platform,
    record::Writer,
};

use self::{
    participant::{Call, Command, Participant},
    timing::{Margin, Report, Scheme},
    tracer::Tracer,
    work::{Visit, Work},
};
use crate::{
    Error, Result,
    calibrate::parse_budget,
    exchange::{Communicator, Tag},
    launcher::{self, Lock},
    platform::{self, Surroundings},
    progress::Reporter,
    sleep::Patience,
    world::{self, JobFlags, World},
};

/// The program's name, in messages and in the record.
pub const PROGRAM: &str = "colibri-measure";

/// Times methods of MPI collectives by a plan
#[derive(Debug, Clone, clap::Parser)]
#[command(name = PROGRAM, version)]
pub struct Flags {
    #[command(flatten)]
    job: JobFlags,
    /// What to measure
    #[arg(long)]
    plan: PathBuf,
    /// Where the observations go; a record that is there is completed
    #[arg(long)]
    record: PathBuf,
    /// Seconds after the start of MPI from which on nothing new is begun
    #[arg(long, value_parser = parse_budget)]
    deadline_seconds: f64,
}

impl Flags {
    /// The flags that both programs have.
    pub fn job(&self) -> &JobFlags {
        &self.job
    }
}

/// The program on one rank.
///
/// # Errors
/// The plan or the record cannot be used; the MPI library cannot do what the plan asks for; a
/// collective computed something wrong.
pub fn run(flags: &Flags, world: &World) -> Result<()> {
    let Surroundings { shared_clock, processors, platform } = platform::survey(world, &flags.job)?;
    let scheme = match shared_clock {
        true if world.control.size() <= processors => Scheme::GlobalExact,
        true => Scheme::Global,
        false => Scheme::Max,
    };
    let Some(platform) = platform else {
        return match world.control.hear_asleep(0, Tag::Setup, Patience::of_participant())? {
            Some(plan) => Participant::new(plan, scheme, world.control)?.serve(&world.control),
            None => Ok(()),
        };
    };
    let plan: Plan = document::read(&flags.plan)?;
    work::check_plan(&plan, flags.job.ranks, &flags.plan)?;
    // Before the others hear of the plan, so that what the library cannot do is said once, and
    // before the record is begun.
    let participant = Participant::new(plan.clone(), scheme, world.control)?;
    let _lock = Lock::take(&flags.record)?;
    let work = Work::new(&plan, &flags.record)?;
    let others = 1..world.control.size();
    if work.visits.is_empty() {
        others
            .into_iter()
            .try_for_each(|rank| world.control.tell(&None::<Plan>, rank, Tag::Setup))?;
        Reporter::new("measuring", work.planned).finish(work.done);
        return Ok(());
    }
    others.into_iter().try_for_each(|rank| world.control.tell(&Some(&plan), rank, Tag::Setup))?;
    let header = header(&plan, &platform, scheme)?;
    let director = Director {
        control: world.control,
        world,
        scheme,
        participant,
        tracer: Tracer::find(),
        writer: Writer::open(&flags.record, &header)?,
        deadline_seconds: flags.deadline_seconds,
        progress: Reporter::new("measuring", work.planned),
        done: work.done,
        margins: BTreeMap::new(),
    };
    director.run(&plan, &work)
}

fn header(plan: &Plan, platform: &Platform, scheme: Scheme) -> Result<BTreeMap<String, String>> {
    let used = collectives::OPERATIONS
        .iter()
        .filter(|operation| plan.cells.iter().any(|cell| cell.collective == operation.collective));
    let (calls, sizes): (Vec<String>, Vec<String>) = used
        .map(|operation| {
            let size = operation.collective.message_size();
            (operation.description.to_owned(), format!("{}: {size}", operation.collective))
        })
        .unzip();
    Ok([
        ("calls", calls.join("; ")),
        ("message_size", sizes.join("; ")),
        ("plan_seed", plan.seed.to_string()),
        ("platform", serde_json::to_string(platform)?),
        ("program", format!("{PROGRAM} {}", env!("CARGO_PKG_VERSION"))),
        ("ranks", plan.ranks.to_string()),
        ("timing", scheme.description().to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into())
}

/// Rank 0: goes through the plan.
struct Director<'a> {
    control: Communicator,
    world: &'a World,
    scheme: Scheme,
    participant: Participant,
    tracer: Tracer,
    writer: Writer<CollectiveCall>,
    deadline_seconds: f64,
    progress: Reporter,
    done: u64,
    /// By number of processes.
    margins: BTreeMap<u32, Margin>,
}

impl Director<'_> {
    fn run(mut self, plan: &Plan, work: &Work) -> Result<()> {
        for visit in &work.visits {
            let cell = &plan.cells[plan.visits[visit.index as usize].cell as usize];
            if !self.visit(visit, cell)? {
                break;
            }
        }
        for rank in 1..self.control.size() {
            self.control.tell(&Command::Stop, rank, Tag::Command)?;
        }
        self.progress.finish(self.done);
        if self.done < work.planned {
            let share = 100.0 * self.done as f64 / work.planned as f64;
            let (deadline, done, planned) = (self.deadline_seconds, self.done, work.planned);
            world::warn(
                PROGRAM,
                &format!(
                    "the deadline of {deadline} s is over: {done} of {planned} observations \
                     ({share:.0} %) are made; the same command makes the others"
                ),
            );
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.world.elapsed_seconds() >= self.deadline_seconds
    }

    /// Makes what a visit lacks; whether the deadline let it.
    fn visit(&mut self, visit: &Visit, cell: &Cell) -> Result<bool> {
        if self.is_over() {
            return Ok(false);
        }
        self.begin(visit, cell)?;
        for repetition in 0..visit.warmups.saturating_add(visit.repetitions) {
            if self.is_over() {
                return Ok(false);
            }
            let row = self.observe(visit, cell, repetition)?;
            self.writer.append(&row)?;
            self.done += u64::from(row.status != Status::Warmup);
            self.progress.update(self.done);
        }
        Ok(true)
    }

    /// Wakes the visit's ranks and waits until each can make its calls.
    fn begin(&mut self, visit: &Visit, cell: &Cell) -> Result<()> {
        self.tell(cell.procs, Command::Visit(visit.index))?;
        self.participant.visit(visit.index)?;
        (1..cell.procs).try_for_each(|rank| {
            self.control.hear_asleep(rank, Tag::Report, Patience::of_participant())
        })
    }

    fn tell(&self, procs: u32, command: Command) -> Result<()> {
        (1..procs).try_for_each(|rank| self.control.tell(&command, rank, Tag::Command))
    }

    fn observe(&mut self, visit: &Visit, cell: &Cell, repetition: u32) -> Result<CollectiveCall> {
        launcher::end_if_gone();
        let warm_up = repetition < visit.warmups;
        let mut margin = self.margins.get(&cell.procs).copied().unwrap_or(Margin::new(cell.procs));
        self.tracer.reset();
        let call = Call { agreed: margin.agree(), check: repetition == 0 };
        self.tell(cell.procs, Command::Call(call))?;
        let mut reports: Vec<Report> = vec![self.participant.call(call)?];
        let ran = self.participant.ran().unwrap_or_else(|| self.tracer.read());
        for rank in 1..cell.procs {
            let patience = Patience::of_participant();
            reports.push(self.control.hear_asleep(rank, Tag::Report, patience)?);
        }
        margin.learn(&reports);
        self.margins.insert(cell.procs, margin);
        let timed = timing::combine(self.scheme, call.agreed, &reports)
            .ok_or_else(|| Error::Usage("no rank reported a call".into()))?;
        Ok(CollectiveCall {
            visit: visit.index,
            collective: cell.collective,
            method: cell.method.clone(),
            ran,
            procs: cell.procs,
            bytes: cell.bytes,
            repetition: visit.next_repetition.saturating_add(repetition),
            first_start_seconds: timed.first_start_seconds,
            last_start_seconds: timed.last_start_seconds,
            seconds: timed.seconds,
            status: if warm_up { Status::Warmup } else { timed.status },
        })
    }
}
