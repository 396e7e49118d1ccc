//! The cells as the schedule's visitor makes them: measured, entered into the store, sent to the record.

use records::{
    disturbance,
    group_observation::GroupObservation,
    observation::{ObservationStatus, PointToPoint, PointToPointKind},
};
use statistics::{median_interval, stopping::Rule};

use super::{
    cells::{Experiment, ObservedKind, SizedExperiment},
    combine::Combiner,
    command::PairCommand,
    flags::{CalibrateFlags, Precision},
    group::GroupMember,
    pair::Sender,
    placement::Placement,
    recorder::{EarlierObservations, Recorder},
    schedule::CellVisitor,
    series_store::{Observation, SeriesStore},
    visit::VisitTimes,
    watch::Watch,
};
use crate::{
    Error, Result,
    clock::{Nanos, now, seconds},
    disturbance::wait_for_others,
    exchange::Tag,
    launcher,
    progress::Reporter,
    sleep::sleep_until,
    world::World,
};

/// The sender's instruments.
pub(super) struct MpiCellVisitor<'a> {
    world: &'a World,
    pair: (u32, u32),
    job: u32,
    jobs: u32,
    precision: Precision,
    placement: Placement,
    /// Whether all ranks take part, not the pair alone.
    all_attend: bool,
    sender: Sender,
    group: GroupMember,
    combiner: Combiner,
    /// At rank 0; a sender elsewhere sends its observations there.
    recorder: Option<Recorder>,
    watch: Watch,
    store: SeriesStore,
    budget_seconds: f64,
    /// The number of the visit under way.
    visit: u32,
    spent_before: f64,
    waited_before: f64,
    noted: Nanos,
    /// The last of the levels: after it the program is done.
    is_last: bool,
    progress: Reporter,
}

impl<'a> MpiCellVisitor<'a> {
    /// Goes on from `earlier`; `groups` are the cells of more than two ranks. The mirror must be
    /// about to [receive](Placement::receive) where it is to run.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub(super) fn new(
        flags: &CalibrateFlags,
        world: &'a World,
        recorder: Option<Recorder>,
        watch: Watch,
        earlier: &EarlierObservations,
        groups: &[SizedExperiment],
    ) -> Result<Self> {
        let comm = world.control;
        let pair = flags.level.pair;
        let store = SeriesStore::new(&earlier.rows);
        Ok(MpiCellVisitor {
            world,
            pair,
            job: flags.job_number,
            jobs: flags.job_count,
            precision: flags.precision,
            placement: Placement::agree(&comm, pair.1, flags.job_number)?,
            all_attend: false,
            sender: Sender::new(comm, pair.1, flags.largest()),
            group: GroupMember::new(comm, flags.level.clone(), groups)?,
            combiner: Combiner::new(groups),
            recorder,
            watch,
            visit: store.next_visit(),
            store,
            budget_seconds: flags.budget_seconds,
            spent_before: earlier.seconds,
            waited_before: earlier.waited_seconds,
            noted: now(),
            is_last: !flags.level.inside,
            progress: Reporter::new("calibrating", (flags.budget_seconds * 1e3) as u64),
        })
    }
}

impl MpiCellVisitor<'_> {
    const CLOCK_READINGS: usize = 20;
    /// Visits to a cell, at least.
    const LEAST: usize = 8;
    /// How often what has been spent is recorded.
    const NOTE_PAUSE: Nanos = 1_000_000_000;
    /// A message that went around in less needs no shorter wait: sleeping is no more exact.
    const MIN_WAIT: f64 = 200e-6;
    /// After this time the ranks that are left out look for messages so rarely that they are in
    /// nobody's way.
    const QUIET: Nanos = 5_000_000;

    /// Whether a cell of several ranks can be measured.
    pub(super) fn can_measure(&self, cell: &SizedExperiment) -> bool {
        self.group.can_measure(cell)
    }

    /// What has been observed.
    pub(super) fn store(&self) -> &SeriesStore {
        &self.store
    }

    /// All ranks take part from now on and run where they may, or the pair alone does, each on a
    /// processor of its own.
    fn attend(&mut self, all: bool) -> Result<()> {
        if self.all_attend != all {
            self.all_attend = all;
            self.placement.hold(!all);
            self.tell_all(&PairCommand::Attend(all))?;
            if !all {
                sleep_until(now() + Self::QUIET);
            }
        }
        Ok(())
    }

    /// Tells all other ranks.
    pub(super) fn tell_all(&self, command: &PairCommand) -> Result<()> {
        self.world.control.send_value_to_others(command, Tag::Command)
    }

    pub(super) fn observe_clock(&mut self) -> Result<()> {
        let cell = SizedExperiment::of_pair(Experiment::RoundTrip, 0);
        let there = self.store.clock().len();
        for reading in there..Self::CLOCK_READINGS {
            let begun = now();
            let ended = now();
            let kind = ObservedKind::Pair(PointToPointKind::Clock);
            self.record(kind, &cell, seconds(ended - begun), reading == 0)?;
        }
        Ok(())
    }

    fn record(
        &mut self,
        kind: ObservedKind,
        cell: &SizedExperiment,
        seconds: f64,
        warm_up: bool,
    ) -> Result<()> {
        let &SizedExperiment { procs, bytes, messages, .. } = cell;
        let repetition = self.store.next_repetition(kind, cell);
        let status = if warm_up { ObservationStatus::Warmup } else { ObservationStatus::Ok };
        let (sender, receiver) = self.pair;
        let row = match kind {
            ObservedKind::Pair(kind) => Observation::Pair(PointToPoint {
                kind,
                sender,
                receiver,
                bytes,
                messages,
                job: self.job,
                visit: self.visit,
                repetition,
                seconds,
                status,
            }),
            ObservedKind::Group(kind, operation) => Observation::Group(GroupObservation {
                kind,
                operation,
                procs,
                bytes,
                messages,
                job: self.job,
                visit: self.visit,
                repetition,
                seconds,
                status,
            }),
        };
        self.store.enter(&row);
        match &mut self.recorder {
            Some(recorder) => recorder.append(&[row]),
            None => self.world.control.send_value(&PairCommand::Record(vec![row]), 0, Tag::Command),
        }
    }

    /// How certain the medians shall be, and from how many visits: those that are due by the end of
    /// this job. All in the first one would show the machine as it was in a few seconds. What the
    /// clock itself costs is as fine as it sees; taken from the record, so that a finished record
    /// stays finished.
    pub(super) fn rule(&self) -> Rule {
        let clock = median_interval(&self.store.clock(), 0.95);
        Rule {
            criterion: self.precision.criterion,
            minimum: (Self::LEAST * (self.job + 1).min(self.jobs) as usize)
                .div_ceil(self.jobs as usize),
            // What is still uncertain then has the rest of the budget, whatever it was given.
            maximum: usize::MAX,
            confidence: 0.95,
            relative_error: self.precision.relative_error,
            resolution_seconds: clock.map_or(0.0, |clock| clock.value),
        }
    }

    /// Tells the record what has been spent, for a run that goes on with it.
    fn note_spent(&mut self) -> Result<()> {
        self.noted = now();
        let seconds = self.spent_seconds();
        match &mut self.recorder {
            Some(recorder) => recorder.note_spent(seconds),
            None => self.world.control.send_value(
                &PairCommand::EarlierObservations(seconds),
                0,
                Tag::Command,
            ),
        }
    }

    /// Tells the records what others took of the processors, where there is something to tell. What was
    /// measured while they took too much does not count, as far as there is time to measure it again; and
    /// where they go on, their end is awaited.
    fn look(&mut self, end: bool) -> Result<()> {
        let Some(stretch) = self.watch.look(&self.world.control, self.all_attend, end)? else {
            return Ok(());
        };
        self.note(disturbance::KEY, serde_json::to_string(&stretch)?)?;
        let (elapsed, disturbed) = (self.world.elapsed_seconds(), stretch.is_disturbed());
        let allowance = &mut self.watch.allowance;
        let is_lost = disturbed && allowance.left(elapsed) > 0.0;
        if is_lost {
            allowance.made_again(stretch.seconds);
        }
        self.store.close_stretch(is_lost);
        let left = self.budget_seconds - self.spent_seconds();
        let wait = self.watch.allowance.close(disturbed, elapsed).map(|wait| wait.min(left));
        let Some(wait) = wait.filter(|wait| *wait > 0.0 && !end) else { return Ok(()) };
        wait_for_others(wait);
        // What was seen meanwhile is of no stretch.
        self.watch.look(&self.world.control, self.all_attend, true)?;
        let waited = self.waited_before + self.watch.allowance.waited(wait);
        self.note(disturbance::WAITED, format!("{waited:.3}"))
    }

    fn note(&mut self, key: &str, value: String) -> Result<()> {
        match &mut self.recorder {
            Some(recorder) => recorder.note(key, &value),
            None => {
                let note = PairCommand::Note(key.to_owned(), value);
                self.world.control.send_value(&note, 0, Tag::Command)
            }
        }
    }

    pub(super) fn end(&mut self) -> Result<()> {
        self.look(true)?;
        self.note_spent()?;
        let done = if self.is_last { u64::MAX } else { (self.spent_seconds() * 1e3) as u64 };
        self.progress.finish(done);
        Ok(())
    }

    /// How long a message of this size surely takes: 1.2 times the round trip (as logp_mpi), of
    /// the slow ones among those seen.
    fn wait(&self, bytes: u64) -> Nanos {
        let cell = SizedExperiment::of_pair(Experiment::RoundTrip, bytes);
        let mut sorted = self.store.judged(ObservedKind::Pair(PointToPointKind::RoundTrip), &cell);
        sorted.sort_unstable_by(f64::total_cmp);
        let slow = sorted.get(sorted.len() * 9 / 10).copied().unwrap_or_default();
        ((1.2 * slow).max(Self::MIN_WAIT) * 1e9) as Nanos
    }

    fn measure_part(&mut self, cell: &SizedExperiment, visit: VisitTimes) -> Result<()> {
        let count = visit.unjudged + visit.judged;
        let wait = self.wait(cell.bytes);
        match cell.experiment {
            Experiment::Combine(_) => {}
            experiment if experiment.is_of_pair() => self.sender.begin(*cell, count)?,
            _ => self.group.begin(*cell, count)?,
        }
        for repetition in 0..count {
            launcher::end_if_gone();
            let observed = match cell.experiment {
                Experiment::Combine(operation) => self.combiner.repeat(cell, operation)?,
                experiment if experiment.is_of_pair() => self.sender.repeat(*cell, wait)?,
                _ => self.group.repeat(*cell)?,
            };
            for (kind, seconds) in observed {
                self.record(kind, cell, seconds, repetition < visit.unjudged)?;
            }
        }
        Ok(())
    }

    /// Waits are taken from round trips, which may have to be made first.
    fn ensure_round_trip(&mut self, cell: &SizedExperiment) -> Result<()> {
        let round_trip = SizedExperiment::of_pair(Experiment::RoundTrip, cell.bytes);
        let waits = [Experiment::ReceiveOverhead, Experiment::SpacedOne, Experiment::SpacedTrain];
        if waits.contains(&cell.experiment) && self.store.visits(&round_trip) == 0 {
            self.measure(&round_trip, VisitTimes { unjudged: 0, judged: 1 })?;
        }
        Ok(())
    }
}

impl CellVisitor for MpiCellVisitor<'_> {
    type Error = Error;

    fn prepare(&mut self, cell: &SizedExperiment) -> Result<()> {
        self.attend(!cell.experiment.is_of_pair())
    }

    fn measure(&mut self, cell: &SizedExperiment, visit: VisitTimes) -> Result<()> {
        self.ensure_round_trip(cell)?;
        self.visit = self.store.next_visit();
        for part in cell.parts() {
            self.measure_part(&part, visit)?;
        }
        self.progress.update((self.spent_seconds() * 1e3) as u64);
        if now() - self.noted >= Self::NOTE_PAUSE {
            self.note_spent()?;
        }
        self.look(false)
    }

    fn spent_seconds(&self) -> f64 {
        self.spent_before + self.world.elapsed_seconds()
    }

    fn visits(&self, cell: &SizedExperiment) -> usize {
        self.store.visits(cell)
    }

    fn visits_of_job(&self, cell: &SizedExperiment) -> usize {
        self.store.visits_of_job(cell, self.job)
    }

    fn least_of_job(&self) -> usize {
        // A job that was not planned only adds to what is uncertain.
        if self.job < self.jobs { Self::LEAST / self.jobs as usize } else { 0 }
    }

    fn call_seconds(&self, cell: &SizedExperiment) -> f64 {
        self.store.call_seconds(cell)
    }

    fn uncertainty(&self, cell: &SizedExperiment, rule: &Rule) -> f64 {
        self.store.uncertainty(cell, rule)
    }
}
