//! Rank 0: goes through the plan, tells the others what comes, writes what they saw.

use std::{collections::BTreeMap, ops::Range};

use records::{
    Method,
    observation::{CollectiveCall, Status},
    plan::{Cell, Plan},
};
use serde::de::DeserializeOwned;

use super::{
    margin::Margin,
    participant::{Call, Command, Participant, Row},
    timing::{self, Report, Scheme, Start, Timed, Timing},
    tracer::Tracer,
    work::{Visit, Work},
};
use crate::{
    Error, Result,
    clock::{Nanos, now},
    exchange::{Communicator, Tag},
    launcher,
    patience::Patience,
    progress::Reporter,
    recording::Recording,
    serving,
    world::{self, World},
};

/// Calls of a visit that are made without a look at the deadline in between.
const MOST_IN_A_ROW: u32 = 4;

/// Goes through the plan.
pub(super) struct Director<'a> {
    control: Communicator,
    world: &'a World,
    scheme: Scheme,
    participant: Participant,
    tracer: Tracer,
    writer: Recording<CollectiveCall>,
    deadline_seconds: f64,
    progress: Reporter,
    done: u64,
    /// By number of processes.
    margins: BTreeMap<u32, Margin>,
    /// What the scheme subtracts from the visit's calls.
    baseline: Vec<Nanos>,
    /// When the clocks have to be synchronised anew; none where the scheme needs no common clock
    /// or the ranks share one.
    due: Option<Nanos>,
}

impl<'a> Director<'a> {
    /// At the start of a plan, or of what is left of it.
    pub fn new(
        world: &'a World,
        scheme: Scheme,
        participant: Participant,
        writer: Recording<CollectiveCall>,
        deadline_seconds: f64,
        work: &Work,
    ) -> Self {
        Director {
            control: world.control,
            world,
            scheme,
            participant,
            tracer: Tracer::find(),
            writer,
            deadline_seconds,
            progress: Reporter::new("measuring", work.planned),
            done: work.done,
            margins: BTreeMap::new(),
            baseline: Vec::new(),
            due: None,
        }
    }

    /// Makes what is left of the plan, as far as the deadline lets it.
    ///
    /// # Errors
    /// The MPI library or the system refuses; a collective computed something wrong.
    pub fn run(mut self, plan: &Plan, work: &Work) -> Result<()> {
        let synchronised =
            self.scheme.compares_clocks() && !self.participant.synchroniser().is_exact();
        if synchronised {
            self.synchronise(true)?;
            self.note_clocks("clock_errors_at_start")?;
        }
        for visit in &work.visits {
            let cell = &plan.cells[plan.visits[visit.index as usize].cell as usize];
            if !self.visit(visit, cell)? {
                break;
            }
        }
        if synchronised {
            self.note_clocks("clock_errors_at_end")?;
        }
        serving::end(&self.control)?;
        self.progress.finish(self.done);
        if self.done < work.planned {
            let share = 100.0 * self.done as f64 / work.planned as f64;
            let (deadline, done, planned) = (self.deadline_seconds, self.done, work.planned);
            world::warn(&format!(
                "the deadline of {deadline} s is over: {done} of {planned} observations \
                 ({share:.0} %) are made; the same command makes the others"
            ));
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.world.elapsed_seconds() >= self.deadline_seconds
    }

    fn synchronise(&mut self, first: bool) -> Result<()> {
        self.tell(self.control.size(), Command::Synchronise { first })?;
        let synchroniser = self.participant.synchroniser();
        let report = if first { synchroniser.begin()? } else { synchroniser.pass()? };
        self.due = report.map(|report| now() + report.pause());
        Ok(())
    }

    /// Writes into the record how far the clocks are from rank 0's now.
    fn note_clocks(&mut self, key: &str) -> Result<()> {
        self.tell(self.control.size(), Command::Check)?;
        let errors = self.participant.synchroniser().check()?;
        self.writer.note(key, &serde_json::to_string(&errors)?)
    }

    /// Makes what a visit lacks; whether the deadline let it.
    fn visit(&mut self, visit: &Visit, cell: &Cell) -> Result<bool> {
        if self.is_over() {
            return Ok(false);
        }
        if !self.scheme.calls_in_a_row() {
            self.begin(visit, cell)?;
        }
        let made = self.repeat(visit, cell)?;
        if matches!(cell.method, Method::Plugin(_)) {
            self.tell(cell.procs, Command::Leave)?;
            self.participant.leave()?;
        }
        Ok(made)
    }

    /// The calls of a visit; whether the deadline let all be made.
    fn repeat(&mut self, visit: &Visit, cell: &Cell) -> Result<bool> {
        let planned = visit.warmups.saturating_add(visit.repetitions);
        let mut made = 0;
        while made < planned {
            if self.is_over() {
                return Ok(false);
            }
            if self.due.is_some_and(|due| now() >= due) {
                self.synchronise(false)?;
            }
            launcher::end_if_gone();
            let calls = match self.scheme.calls_in_a_row() {
                true => self.row(visit, cell, made..planned.min(made + MOST_IN_A_ROW))?,
                false => vec![self.observe(visit, cell, made)?],
            };
            for call in calls {
                self.writer.append(&call)?;
                self.done += u64::from(call.status != Status::Warmup);
                made += 1;
            }
            self.progress.update(self.done);
        }
        Ok(true)
    }

    /// These calls of a visit, reported when all are made.
    fn row(
        &mut self,
        visit: &Visit,
        cell: &Cell,
        numbers: Range<u32>,
    ) -> Result<Vec<CollectiveCall>> {
        let calls = numbers.end - numbers.start;
        let row = Row { visit: visit.index, calls, first: numbers.start == 0 };
        self.tell(cell.procs, Command::Row(row))?;
        let tracer = &self.tracer;
        tracer.reset();
        let mut ran = Vec::new();
        let own = self.participant.row(row, |participant| {
            ran.push(participant.ran().unwrap_or_else(|| tracer.read()));
            tracer.reset();
        })?;
        let reports = self.hear_all(own, cell.procs)?;
        let observed = numbers.zip(ran).enumerate().map(|(at, (repetition, ran))| {
            let of_call: Vec<Report> =
                reports.iter().filter_map(|of_rank| of_rank.get(at)).copied().collect();
            let timed = timing::combine(self.scheme, Start::default(), &[], &of_call);
            Ok(observation((visit, cell), repetition, ran, timed.ok_or_else(no_report)?))
        });
        observed.collect()
    }

    /// Wakes the visit's ranks and waits until each can make its calls.
    fn begin(&mut self, visit: &Visit, cell: &Cell) -> Result<()> {
        self.tell(cell.procs, Command::Visit(visit.index))?;
        self.participant.visit(visit.index)?;
        self.hear_all((), cell.procs)?;
        if self.scheme.needs_baseline() {
            self.tell(cell.procs, Command::Baseline)?;
            self.baseline = self.participant.baseline()?;
        }
        Ok(())
    }

    fn tell(&self, procs: u32, command: Command) -> Result<()> {
        serving::tell_first(&self.control, procs, &command)
    }

    /// What rank 0 reports, and then each other rank of a visit.
    fn hear_all<T: DeserializeOwned>(&self, own: T, procs: u32) -> Result<Vec<T>> {
        let hear = |rank| self.control.hear_asleep(rank, Tag::Report, Patience::of_participant());
        std::iter::once(Ok(own)).chain((1..procs).map(hear)).collect()
    }

    /// One observation: one call, or with scheme bcast one for each rank that confirms.
    fn observe(&mut self, visit: &Visit, cell: &Cell, repetition: u32) -> Result<CollectiveCall> {
        let replies = match self.scheme.timing {
            Timing::Bcast => 1..cell.procs,
            _ => 0..1,
        };
        self.tracer.reset();
        let mut longest: Option<Timed> = None;
        for reply in replies {
            let check = repetition == 0 && longest.is_none();
            let timed = self.call(cell, reply, check)?;
            if longest.is_none_or(|longest| timed.seconds > longest.seconds) {
                longest = Some(timed);
            }
        }
        let timed =
            longest.ok_or_else(|| Error::Usage("there is no rank to confirm a call".into()))?;
        let ran = self.participant.ran().unwrap_or_else(|| self.tracer.read());
        Ok(observation((visit, cell), repetition, ran, timed))
    }

    fn call(&mut self, cell: &Cell, reply: u32, check: bool) -> Result<Timed> {
        let mut margin = self.margins.get(&cell.procs).copied().unwrap_or(Margin::new(cell.procs));
        let start = Start { agreed: margin.agree(), reply };
        let call = Call { start, check };
        self.tell(cell.procs, Command::Call(call))?;
        let own = self.participant.call(call)?;
        let reports = self.hear_all(own, cell.procs)?;
        margin.learn(&reports);
        self.margins.insert(cell.procs, margin);
        timing::combine(self.scheme, start, &self.baseline, &reports).ok_or_else(no_report)
    }
}

fn no_report() -> Error {
    Error::Usage("no rank reported a call".into())
}

/// The row of one call of a visit.
fn observation(
    (visit, cell): (&Visit, &Cell),
    repetition: u32,
    ran: String,
    timed: Timed,
) -> CollectiveCall {
    CollectiveCall {
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
        status: if repetition < visit.warmups { Status::Warmup } else { timed.status },
    }
}
