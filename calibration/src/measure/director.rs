//! Rank 0: goes through the plan, tells the others what comes, writes what they saw.

use std::{collections::BTreeMap, ops::Range};

use records::{
    Layout, Method, disturbance,
    job_nodes::JobNodes,
    observation::{CollectiveCall, ObservationStatus},
    plan::{Cell, Plan},
};
use serde::de::DeserializeOwned;
use timing::{
    margin::Margin,
    scheme::{self, CallReport, Scheme, Start, TimedCall, TimingScheme},
};

use super::{
    participant::{CallRequest, CallSeries, MeasureCommand, Participant},
    queue::{Next, VisitQueue},
    tracer::Tracer,
    work::{OpenVisit, OpenWork},
};
use crate::{
    Error, Result,
    clock::{Nanos, now},
    disturbance::{sampling::RankSample, stretches::Stretches, wait_for_others},
    exchange::{Communicator, Tag},
    launcher,
    polling_pause::PollingPause,
    progress::Reporter,
    recording::Recording,
    serving,
    world::{self, World},
};

/// Calls of a visit that are made without a look at the deadline in between.
const MAX_IN_A_ROW: u32 = 4;

/// Goes through the plan.
pub(super) struct Director<'a> {
    control: Communicator,
    world: &'a World,
    scheme: Scheme,
    participant: Participant,
    nodes: JobNodes,
    tracer: Tracer,
    writer: Recording<CollectiveCall>,
    deadline_seconds: f64,
    progress: Reporter,
    done: u64,
    queue: VisitQueue,
    stretches: Stretches,
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
        nodes: JobNodes,
        writer: Recording<CollectiveCall>,
        deadline_seconds: f64,
        work: &OpenWork,
        stretches: Stretches,
    ) -> Self {
        Director {
            control: world.control,
            world,
            scheme,
            participant,
            nodes,
            tracer: Tracer::find(),
            writer,
            deadline_seconds,
            progress: Reporter::new("measuring", work.planned),
            done: work.done,
            queue: VisitQueue::new(&work.visits),
            stretches,
            margins: BTreeMap::new(),
            baseline: Vec::new(),
            due: None,
        }
    }

    /// Makes what is left of the plan, as far as the deadline lets it.
    ///
    /// # Errors
    /// The MPI library or the system refuses; a collective computed something wrong.
    pub fn run(mut self, plan: &Plan, work: &OpenWork) -> Result<()> {
        let synchronised =
            self.scheme.compares_clocks() && !self.participant.synchroniser().is_exact();
        if synchronised {
            self.synchronise(true)?;
            self.note_clocks("clock_errors_at_start")?;
        }
        while let Some(next) = self.next(plan)? {
            if !self.make(next, plan)? {
                break;
            }
        }
        self.close_stretch(plan, true)?;
        if synchronised {
            self.note_clocks("clock_errors_at_end")?;
        }
        serving::end(&self.control)?;
        self.progress.finish(self.done);
        let left = self.queue.left();
        if left > 0 {
            let problem = "visits were disturbed and not repeated: other processes used the processors for too long";
            world::warn(&format!("{left} {problem}"));
        }
        if self.done < work.planned {
            let share = 100.0 * self.done as f64 / work.planned as f64;
            let (deadline, done, planned) = (self.deadline_seconds, self.done, work.planned);
            world::warn(&format!(
                "stopped at the deadline of {deadline} s, after {done} of {planned} observations \
                 ({share:.0} %); the same command with --resume makes the rest"
            ));
        }
        Ok(())
    }

    /// The next visit. When none is left, the last stretch tells whether some have to be made again.
    fn next(&mut self, plan: &Plan) -> Result<Option<Next>> {
        if let Some(next) = self.queue.next(self.world.elapsed_seconds()) {
            return Ok(Some(next));
        }
        self.close_stretch(plan, true)?;
        Ok(self.queue.next(self.world.elapsed_seconds()))
    }

    /// Makes a visit; whether the deadline let it.
    fn make(&mut self, next: Next, plan: &Plan) -> Result<bool> {
        let cell = |visit: &OpenVisit| &plan.cells[plan.visits[visit.index as usize].cell as usize];
        let (begun, done) = (self.world.elapsed_seconds(), self.done);
        let (Next::Planned(visit) | Next::Again(visit)) = &next;
        let made = self.visit(visit, cell(visit))?;
        if let Next::Again(_) = next {
            // It was counted when it was made first.
            self.done = done;
            self.queue.made_again(self.world.elapsed_seconds() - begun);
        }
        self.close_stretch(plan, false)?;
        Ok(made)
    }

    /// Tells the record what others took of the processors, where there is something to tell, and waits
    /// for them to end where they go on.
    fn close_stretch(&mut self, plan: &Plan, end: bool) -> Result<()> {
        let Some(stretch) = self.stretches.close(end) else { return Ok(()) };
        self.writer.note(disturbance::KEY, &serde_json::to_string(&stretch)?)?;
        let elapsed = self.world.elapsed_seconds();
        let wait = self.queue.close(stretch.is_disturbed(), plan, elapsed);
        let left = self.deadline_seconds - elapsed;
        let Some(wait) = wait.map(|wait| wait.min(left)).filter(|wait| *wait > 0.0 && !end) else {
            return Ok(());
        };
        wait_for_others(wait);
        self.stretches.forget();
        let waited = self.queue.waited(wait);
        self.writer.note(disturbance::WAITED, &format!("{waited:.3}"))
    }

    fn is_over(&self) -> bool {
        self.world.elapsed_seconds() >= self.deadline_seconds
    }

    fn synchronise(&mut self, first: bool) -> Result<()> {
        self.tell_all(MeasureCommand::Synchronise { first })?;
        let synchroniser = self.participant.synchroniser();
        let report = if first { synchroniser.begin()? } else { synchroniser.pass()? };
        self.due = report.map(|report| now() + report.pause());
        Ok(())
    }

    /// Writes into the record how far the clocks are from rank 0's now.
    fn note_clocks(&mut self, key: &str) -> Result<()> {
        self.tell_all(MeasureCommand::Check)?;
        let errors = self.participant.synchroniser().check()?;
        self.writer.note(key, &serde_json::to_string(&errors)?)
    }

    /// Makes what a visit lacks; whether the deadline let it.
    fn visit(&mut self, visit: &OpenVisit, cell: &Cell) -> Result<bool> {
        if self.is_over() {
            return Ok(false);
        }
        if !self.scheme.calls_in_a_row() {
            self.begin(visit, cell)?;
        }
        let made = self.repeat(visit, cell)?;
        if matches!(cell.method, Method::Plugin(_)) {
            self.tell(cell.point.layout, MeasureCommand::Leave)?;
            self.participant.leave()?;
        }
        Ok(made)
    }

    /// The calls of a visit; whether the deadline let all be made.
    fn repeat(&mut self, visit: &OpenVisit, cell: &Cell) -> Result<bool> {
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
                true => self.row(visit, cell, made..planned.min(made + MAX_IN_A_ROW))?,
                false => vec![self.observe(visit, cell, made)?],
            };
            for call in calls {
                self.writer.append(&call)?;
                self.queue.made(&call);
                self.done += u64::from(call.status != ObservationStatus::Warmup);
                made += 1;
            }
            self.progress.update(self.done);
        }
        Ok(true)
    }

    /// These calls of a visit, reported when all are made.
    fn row(
        &mut self,
        visit: &OpenVisit,
        cell: &Cell,
        numbers: Range<u32>,
    ) -> Result<Vec<CollectiveCall>> {
        let calls = numbers.end - numbers.start;
        let row = CallSeries { visit: visit.index, calls, first: numbers.start == 0 };
        self.tell(cell.point.layout, MeasureCommand::Row(row))?;
        let tracer = &self.tracer;
        tracer.reset();
        let mut ran = Vec::new();
        let own = self.participant.watched(|own| {
            own.row(row, |participant| {
                ran.push(participant.ran().unwrap_or_else(|| tracer.read()));
                tracer.reset();
            })
        })?;
        let reports = self.receive_watched(own, cell.point.layout)?;
        let observed = numbers.zip(ran).enumerate().map(|(at, (repetition, ran))| {
            let of_call: Vec<CallReport> =
                reports.iter().filter_map(|of_rank| of_rank.get(at)).copied().collect();
            let timed = scheme::combine(self.scheme, Start::default(), &[], &of_call);
            Ok(observation(visit, cell, repetition, ran, timed.ok_or_else(no_report)?))
        });
        observed.collect()
    }

    /// Wakes the visit's ranks and waits until each can make its calls.
    fn begin(&mut self, visit: &OpenVisit, cell: &Cell) -> Result<()> {
        self.tell(cell.point.layout, MeasureCommand::Visit(visit.index))?;
        self.participant.visit(visit.index)?;
        self.receive_all((), cell.point.layout)?;
        if self.scheme.needs_baseline() {
            self.tell(cell.point.layout, MeasureCommand::Baseline)?;
            self.baseline = self.participant.baseline()?;
        }
        Ok(())
    }

    fn tell_all(&self, command: MeasureCommand) -> Result<()> {
        let others: Vec<u32> = (1..self.control.size()).collect();
        serving::tell_these(&self.control, &others, &command)
    }

    fn tell(&self, layout: Layout, command: MeasureCommand) -> Result<()> {
        serving::tell_these(&self.control, &self.others(layout)?, &command)
    }

    /// A visit's ranks beside rank 0, in the order of its communicator.
    fn others(&self, layout: Layout) -> Result<Vec<u32>> {
        let members = self.nodes.members(layout).map_err(Error::Usage)?;
        Ok(members.into_iter().skip(1).collect())
    }

    /// What rank 0 reports, and then each other rank of a visit.
    fn receive_all<T: DeserializeOwned>(&self, own: T, layout: Layout) -> Result<Vec<T>> {
        let receive = |rank| {
            self.control.receive_value_asleep(rank, Tag::Report, PollingPause::for_participant())
        };
        std::iter::once(Ok(own)).chain(self.others(layout)?.into_iter().map(receive)).collect()
    }

    /// The same where each rank has watched its machine.
    fn receive_watched<T: DeserializeOwned>(
        &mut self,
        own: (T, RankSample),
        layout: Layout,
    ) -> Result<Vec<T>> {
        let (reports, samples): (Vec<T>, Vec<RankSample>) =
            self.receive_all(own, layout)?.into_iter().unzip();
        self.stretches.take_in(&samples);
        Ok(reports)
    }

    /// One observation: one call, or with scheme bcast one for each rank that confirms.
    fn observe(
        &mut self,
        visit: &OpenVisit,
        cell: &Cell,
        repetition: u32,
    ) -> Result<CollectiveCall> {
        let replies = match self.scheme.timing {
            TimingScheme::Bcast => 1..cell.point.layout.procs(),
            _ => 0..1,
        };
        self.tracer.reset();
        let mut longest: Option<TimedCall> = None;
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
        Ok(observation(visit, cell, repetition, ran, timed))
    }

    fn call(&mut self, cell: &Cell, reply: u32, check: bool) -> Result<TimedCall> {
        let procs = cell.point.layout.procs();
        let mut margin = self.margins.get(&procs).copied().unwrap_or(Margin::new(procs));
        let start = Start { agreed: margin.agree(), reply };
        let call = CallRequest { start, check };
        self.tell(cell.point.layout, MeasureCommand::Call(call))?;
        let own = self.participant.watched(|own| own.call(call))?;
        let reports = self.receive_watched(own, cell.point.layout)?;
        margin.learn(&reports);
        self.margins.insert(procs, margin);
        scheme::combine(self.scheme, start, &self.baseline, &reports).ok_or_else(no_report)
    }
}

fn no_report() -> Error {
    Error::Usage("no rank reported a call".into())
}

/// The row of one call of a visit.
fn observation(
    visit: &OpenVisit,
    cell: &Cell,
    repetition: u32,
    ran: String,
    timed: TimedCall,
) -> CollectiveCall {
    CollectiveCall {
        visit: visit.index,
        point: cell.point,
        method: cell.method.clone(),
        ran,
        repetition: visit.next_repetition.saturating_add(repetition),
        first_start_seconds: timed.first_start_seconds,
        last_start_seconds: timed.last_start_seconds,
        seconds: timed.seconds,
        status: if repetition < visit.warmups { ObservationStatus::Warmup } else { timed.status },
    }
}
