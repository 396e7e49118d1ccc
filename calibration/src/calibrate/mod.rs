//! `colibri-mpi calibrate`: observations between two ranks and among several, within a budget.

pub mod cells;
mod combine;
mod command;
mod flags;
pub(crate) mod group;
pub mod levels;
pub mod pace;
pub mod pair;
mod placement;
mod recorder;
mod refine;
pub mod schedule;
pub mod series_store;
mod shared_memory;
mod visit;
mod visitor;
mod watch;

use rand_pcg::Pcg64;
use statistics::stopping::Rule;

pub use self::flags::CalibrateFlags;
use self::{
    cells::{Experiment, SizedExperiment},
    command::{Attention, PairCommand},
    group::GroupMember,
    pace::Pace,
    pair::Mirror,
    placement::Placement,
    recorder::{EarlierObservations, Recorder},
    schedule::{CellVisitor, ScheduleOutcome},
    visitor::MpiCellVisitor,
    watch::Watch,
};
use crate::{
    Error, Result,
    disturbance::{sampling::Sampler, stretches},
    exchange::Tag,
    platform::{self, Survey},
    world::{self, World},
};

/// The program on one rank.
///
/// # Errors
/// The pair is not in the job; the record cannot be used; the MPI library refuses.
pub fn run(flags: &CalibrateFlags, world: &World) -> Result<()> {
    let survey = if flags.job_number == 0 { Survey::WithLoad } else { Survey::InShort };
    let surroundings = platform::survey(world, &flags.job, survey)?;
    let levels = match flags.levels(&surroundings.nodes, platform::processors()) {
        Ok(levels) => levels,
        // Every rank sees it, one says it.
        Err(problem) if world.rank() == 0 => return Err(Error::Usage(problem)),
        Err(_) => return Ok(()),
    };
    let mut recorders = match surroundings.platform {
        Some(platform) => Recorder::of_levels(&levels, &platform)?,
        None => Vec::new(),
    }
    .into_iter();
    for flags in &levels {
        let recorder = recorders.next();
        let (order, attending) = flags.level.order(flags.job.ranks);
        match stretches::begin(world, &order)? {
            (sampler, Some((stretches, _))) => {
                let watch = Watch::new(sampler, stretches, (order, attending));
                send(flags, world, recorder, watch)?;
            }
            (sampler, None) => serve(flags, world, recorder, sampler)?,
        }
    }
    Ok(())
}

/// Every rank but the sender: does what the sender says, and sleeps where that is nothing.
fn serve(
    flags: &CalibrateFlags,
    world: &World,
    mut recorder: Option<Recorder>,
    mut sampler: Sampler,
) -> Result<()> {
    let (sender, mirror) = flags.level.pair;
    let comm = world.control;
    if let Some(recorder) = &recorder {
        comm.send_value(&recorder.earlier, sender, Tag::Setup)?;
    }
    let is_mirror = comm.rank() == mirror;
    let placement = match is_mirror {
        true => Placement::receive(&comm, sender)?,
        false => Placement::free(),
    };
    let idle = if is_mirror { Attention::Mirror } else { Attention::Bystander };
    let mut attention = idle;
    let mut mirror = Mirror::new(comm, sender, if is_mirror { flags.largest() } else { 0 });
    let mut group = GroupMember::new(comm, flags.level.clone(), &flags.group_cells())?;
    loop {
        match command::next(&comm, sender, attention)? {
            PairCommand::Measure(cell, count) if cell.experiment.is_of_pair() => {
                mirror.answer(cell, count)?;
            }
            PairCommand::Measure(cell, count) => group.answer(cell, count)?,
            PairCommand::Attend(all) => {
                placement.hold(!all);
                let joins = all && !is_mirror && group.takes_part();
                attention = if joins { Attention::Participant } else { idle };
            }
            PairCommand::Record(rows) => recorder.iter_mut().try_for_each(|to| to.append(&rows))?,
            PairCommand::EarlierObservations(seconds) => {
                recorder.iter_mut().try_for_each(|to| to.note_spent(seconds))?
            }
            PairCommand::Note(key, value) => {
                recorder.iter_mut().try_for_each(|to| to.note(&key, &value))?
            }
            PairCommand::Look => comm.send_value(&sampler.end(), sender, Tag::Report)?,
            PairCommand::Stop => return Ok(()),
        }
    }
}

/// The part of the budget that goes to the pair before the groups have their turn; what the groups
/// leave is the pair's again.
const SHARE_OF_PAIR: f64 = 0.6;

/// The part of the budget that goes to the level inside a node, where there are two: its messages
/// are the faster ones, and fewer ranks take part.
const SHARE_OF_INSIDE: f64 = 0.2;

/// The sender: decides and times.
fn send(
    flags: &CalibrateFlags,
    world: &World,
    recorder: Option<Recorder>,
    watch: Watch,
) -> Result<()> {
    let comm = world.control;
    let earlier: EarlierObservations = match &recorder {
        Some(recorder) => recorder.earlier.clone(),
        None => comm.receive_value(0, Tag::Setup)?,
    };
    let mut groups = flags.group_cells();
    let mut visitor = MpiCellVisitor::new(flags, world, recorder, watch, &earlier, &groups)?;
    groups.retain(|cell| visitor.can_measure(cell));
    visitor.observe_clock()?;
    let rule = visitor.rule();
    let mut random = Pcg64::new(u128::from(flags.seed), u128::from(flags.job_number));
    let begun = visitor.spent_seconds();
    let budget = match flags.level.inside {
        true => begun + SHARE_OF_INSIDE * (flags.budget_seconds - begun),
        false => flags.budget_seconds,
    };
    let pair_until = match groups.is_empty() {
        true => budget,
        false => begun + SHARE_OF_PAIR * (budget - begun),
    };
    let mut pace = Pace::new(&pair_cells(flags, &visitor), begun, budget);
    add_sizes(flags, &rule, pair_until, &mut random, &mut pace, &mut visitor)?;
    let cells = pair_cells(flags, &visitor);
    let mut measure = |cells: &[SizedExperiment], until: f64| {
        schedule::run(cells, &rule, until, &mut random, &mut pace, &mut visitor)
    };
    let mut outcome = measure(&cells, pair_until)?;
    if !groups.is_empty() {
        let of_groups = measure(&groups, budget)?;
        outcome = measure(&cells, budget)?;
        outcome.add(of_groups);
    }
    visitor.end()?;
    visitor.tell_all(&PairCommand::Stop)?;
    if flags.is_last_job() {
        report(&outcome, &rule, flags);
    }
    Ok(())
}

/// Adds message sizes where g(m) is no line, before all sizes are measured more certainly.
///
/// Nothing is added to a record that is finished.
fn add_sizes(
    flags: &CalibrateFlags,
    rule: &Rule,
    budget_seconds: f64,
    random: &mut Pcg64,
    pace: &mut Pace,
    visitor: &mut MpiCellVisitor,
) -> Result<()> {
    if !pair_cells(flags, visitor).iter().any(|cell| schedule::wants_more(cell, rule, visitor)) {
        return Ok(());
    }
    let least = Rule { relative_error: f64::INFINITY, ..*rule };
    let mut cells = pair_cells(flags, visitor);
    loop {
        schedule::run(&cells, &least, budget_seconds, random, pace, visitor)?;
        let sizes = refine::sizes(visitor.store(), &flags.sizes.0);
        if sizes.is_empty() || visitor.spent_seconds() >= budget_seconds {
            return Ok(());
        }
        cells = SizedExperiment::all_of_pair(&sizes);
        cells.retain(|cell| Experiment::OF_SIZE.contains(&cell.experiment));
    }
}

/// The cells between two ranks, those of added sizes included.
fn pair_cells(flags: &CalibrateFlags, visitor: &MpiCellVisitor) -> Vec<SizedExperiment> {
    let mut sizes = visitor.store().sizes();
    sizes.extend(&flags.sizes.0);
    sizes.sort_unstable();
    sizes.dedup();
    SizedExperiment::all_of_pair(&sizes)
}

/// Says on stderr what the budget did not reach.
fn report(outcome: &ScheduleOutcome, rule: &Rule, flags: &CalibrateFlags) {
    let place = if flags.level.inside { "inside a node: " } else { "" };
    if !outcome.unreached.is_empty() {
        const NAMED: usize = 4;
        let mut names: Vec<String> =
            outcome.unreached.iter().take(NAMED).map(SizedExperiment::describe).collect();
        if let more @ 1.. = outcome.unreached.len().saturating_sub(NAMED) {
            names.push(format!("{more} more"));
        }
        let (budget, least) = (flags.budget_seconds, rule.minimum);
        let list = names.join(", ");
        world::warn(&format!(
            "{place}the budget of {budget:.0} s is too small for everything; fewer than {least} \
             visits to: {list}"
        ));
    }
    if let Some((worst, uncertainty)) = outcome.uncertain.first() {
        let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
        let many = match outcome.uncertain.len() {
            1 => "1 median is".to_owned(),
            many => format!("{many} medians are"),
        };
        let wanted = percent(rule.relative_error);
        let worst = format!("{} (+-{})", worst.describe(), percent(*uncertainty));
        world::warn(&format!(
            "{place}{many} less precise than asked for (+-{wanted}, the smallest messages \
             finer); the worst: {worst}"
        ));
    }
}
