//! `colibri-calibrate`: observations between two ranks and among several, within a budget.

mod bench;
pub mod book;
pub mod cells;
mod combine;
mod command;
pub(crate) mod group;
pub mod pace;
pub mod pair;
mod placement;
mod recorder;
mod refine;
pub mod schedule;

use std::path::PathBuf;

use rand_pcg::Pcg64;
use records::quantity;
use statistics::stopping::{Criterion, Rule};

use self::{
    bench::CellBench,
    cells::{Cell, Experiment},
    command::{Attention, Command},
    group::Group,
    pace::Pace,
    pair::Mirror,
    placement::Placement,
    recorder::{Recorder, Spent},
    schedule::{Bench, Outcome},
};
use crate::{
    Error, Result,
    exchange::Tag,
    platform::{self, Survey},
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
    #[command(flatten)]
    precision: Precision,
    /// Where the observations go; a record that is there is gone on with
    #[arg(long)]
    record: PathBuf,
    /// Where the observations of more than two ranks go, and of combining; without it there are
    /// none
    #[arg(long)]
    groups: Option<PathBuf>,
    /// Message sizes in bytes, such as 0,1,2,4 or 1..1MiB
    #[arg(long, value_parser = parse_sizes)]
    sizes: Sizes,
    /// The sending and the receiving rank: two ranks such as 0,1; between-nodes, the first ranks of
    /// the first two nodes (0,1 where there is one); inside-node, the first two of one node
    #[arg(long = "pair", value_parser = parse_pair)]
    choice: Choice,
    /// What is chosen, known when the ranks have told where they are.
    #[arg(skip)]
    pair: (u32, u32),
    /// Seconds from the start of MPI to the end, those of the record's earlier runs included
    #[arg(long, value_parser = parse_budget)]
    budget_seconds: f64,
    /// Number of this job among those that fill the record: what is cheap is measured in each of
    /// them anew, since jobs differ
    #[arg(long = "job", default_value_t = 0)]
    job_number: u32,
    /// How many jobs fill the record: each makes its share of the least number of visits, and the last
    /// one says what the budget did not reach
    #[arg(long = "jobs", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    job_count: u32,
    /// Seed of the order of the measurements
    #[arg(long)]
    seed: u64,
}

/// When a cell is certain enough, if the budget lasts.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Precision {
    /// By what it is told: median-interval, rse, cov-mean or cov-median (those of NREP)
    #[arg(long = "stop-by", default_value = Criterion::MedianInterval.name())]
    criterion: Criterion,
    /// And what it shall be at most, as a part of the time; far above 1 the least number of visits
    /// is enough
    #[arg(long = "precision", value_parser = parse_precision, default_value = "0.025")]
    relative_error: f64,
}

fn parse_precision(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(part) if part > 0.0 && part.is_finite() => Ok(part),
        _ => Err(format!("'{text}' is not a number above 0, such as 0.025")),
    }
}

impl Flags {
    /// Messages through a whole group are measured to this size: a chain of ranks takes as many
    /// times longer than a pair.
    const LARGEST_OF_GROUPS: u64 = 64 << 10;

    /// The flags that both programs have.
    pub fn job(&self) -> &JobFlags {
        &self.job
    }

    fn is_last_job(&self) -> bool {
        self.job_number + 1 >= self.job_count
    }

    fn group_cells(&self) -> Vec<Cell> {
        if self.groups.is_none() {
            return Vec::new();
        }
        let sizes = &self.sizes.0;
        let small = sizes.partition_point(|bytes| *bytes <= Self::LARGEST_OF_GROUPS);
        Cell::all_of_groups(&sizes[..small], self.job.ranks)
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

/// Which pair is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    These(u32, u32),
    BetweenNodes,
    InsideNode,
}

impl Choice {
    /// The pair in a job whose ranks are on these nodes; else what is wrong.
    fn pair(self, nodes: &[u32]) -> std::result::Result<(u32, u32), String> {
        let last = nodes.len() - 1;
        let with = |same: bool| {
            let found = (0..nodes.len()).find_map(|one| {
                let other = (one + 1..nodes.len()).find(|two| (nodes[one] == nodes[*two]) == same);
                Some((one as u32, other? as u32))
            });
            found.filter(|_| last > 0)
        };
        match self {
            Choice::These(one, other) => {
                match [one, other].iter().find(|rank| **rank > last as u32) {
                    None => Ok((one, other)),
                    Some(rank) => {
                        Err(format!("--pair names rank {rank}; the job has ranks 0 to {last}"))
                    }
                }
            }
            _ if last == 0 => Err("a pair needs two ranks; the job has one".into()),
            Choice::BetweenNodes => Ok(with(false).unwrap_or((0, 1))),
            Choice::InsideNode => with(true).ok_or_else(|| {
                "--pair inside-node needs a node with two ranks; every node has one".into()
            }),
        }
    }
}

fn parse_pair(text: &str) -> std::result::Result<Choice, String> {
    let ranks = text.split_once(',').and_then(|(sender, receiver)| {
        Some((sender.trim().parse().ok()?, receiver.trim().parse().ok()?))
    });
    match (text, ranks) {
        ("between-nodes", _) => Ok(Choice::BetweenNodes),
        ("inside-node", _) => Ok(Choice::InsideNode),
        (_, Some((sender, receiver))) if sender != receiver => Ok(Choice::These(sender, receiver)),
        _ => Err(format!(
            "'{text}' is not a pair; write two different ranks, such as 0,1, or between-nodes or \
             inside-node"
        )),
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
    let survey = if flags.job_number == 0 { Survey::WithLoad } else { Survey::InShort };
    let surroundings = platform::survey(world, &flags.job, survey)?;
    let pair = match flags.choice.pair(&surroundings.nodes) {
        Ok(pair) => pair,
        // Every rank sees it, one says it.
        Err(problem) if world.rank() == 0 => return Err(Error::Usage(problem)),
        Err(_) => return Ok(()),
    };
    let flags = &Flags { pair, ..flags.clone() };
    let recorder = match surroundings.platform {
        Some(platform) => Some(Recorder::new(flags, &platform)?),
        None => None,
    };
    if world.rank() == pair.0 {
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
    let placement = match is_mirror {
        true => Placement::hear(&comm, sender)?,
        false => Placement::free(),
    };
    let idle = if is_mirror { Attention::Mirror } else { Attention::Bystander };
    let mut attention = idle;
    let mut mirror = Mirror::new(comm, sender, if is_mirror { largest(flags) } else { 0 });
    let order = group::order(flags.pair, flags.job.ranks);
    let mut group = Group::new(comm, order, &flags.group_cells());
    loop {
        match command::next(&comm, sender, attention)? {
            Command::Measure(cell, count) if cell.experiment.is_of_pair() => {
                mirror.answer(cell, count)?;
            }
            Command::Measure(cell, count) => group.answer(cell, count)?,
            Command::Attend(all) => {
                placement.hold(!all);
                attention = if all && !is_mirror { Attention::Participant } else { idle };
            }
            Command::Record(rows) => recorder.iter_mut().try_for_each(|to| to.append(&rows))?,
            Command::Spent(seconds) => recorder.iter_mut().try_for_each(|to| to.note(seconds))?,
            Command::Stop => return Ok(()),
        }
    }
}

fn largest(flags: &Flags) -> usize {
    flags.sizes.0.last().map_or(0, |&size| size as usize)
}

/// The part of the budget that goes to the pair before the groups have their turn; what the groups
/// leave is the pair's again.
const SHARE_OF_PAIR: f64 = 0.6;

/// The sender: decides and times.
fn send(flags: &Flags, world: &World, recorder: Option<Recorder>) -> Result<()> {
    let comm = world.control;
    let earlier: Spent = match &recorder {
        Some(recorder) => recorder.earlier.clone(),
        None => comm.hear(0, Tag::Setup)?,
    };
    let groups = flags.group_cells();
    let mut bench = CellBench::new(flags, world, recorder, &earlier, &groups)?;
    bench.observe_clock()?;
    let rule = bench.rule();
    let budget = flags.budget_seconds;
    let mut random = Pcg64::new(u128::from(flags.seed), u128::from(flags.job_number));
    let begun = bench.spent_seconds();
    let pair_until = match groups.is_empty() {
        true => budget,
        false => begun + SHARE_OF_PAIR * (budget - begun),
    };
    let mut pace = Pace::new(&pair_cells(flags, &bench), begun, budget);
    add_sizes(flags, &rule, pair_until, &mut random, &mut pace, &mut bench)?;
    let cells = pair_cells(flags, &bench);
    let mut measure = |cells: &[Cell], until: f64| {
        schedule::run(cells, &rule, until, &mut random, &mut pace, &mut bench)
    };
    let mut outcome = measure(&cells, pair_until)?;
    if !groups.is_empty() {
        let of_groups = measure(&groups, budget)?;
        outcome = measure(&cells, budget)?;
        outcome.add(of_groups);
    }
    bench.end()?;
    bench.tell_all(&Command::Stop)?;
    if flags.is_last_job() {
        report(&outcome, &rule, budget);
    }
    Ok(())
}

/// Adds message sizes where g(m) is no line, before all sizes are measured more certainly.
///
/// Nothing is added to a record that is finished.
fn add_sizes(
    flags: &Flags,
    rule: &Rule,
    budget_seconds: f64,
    random: &mut Pcg64,
    pace: &mut Pace,
    bench: &mut CellBench,
) -> Result<()> {
    if !pair_cells(flags, bench).iter().any(|cell| schedule::wants_more(cell, rule, bench)) {
        return Ok(());
    }
    let least = Rule { relative_error: f64::INFINITY, ..*rule };
    let mut cells = pair_cells(flags, bench);
    loop {
        schedule::run(&cells, &least, budget_seconds, random, pace, bench)?;
        let sizes = refine::sizes(bench.book(), &flags.sizes.0);
        if sizes.is_empty() || bench.spent_seconds() >= budget_seconds {
            return Ok(());
        }
        cells = Cell::all_of_pair(&sizes);
        cells.retain(|cell| Experiment::OF_SIZE.contains(&cell.experiment));
    }
}

/// The cells between two ranks, those of added sizes included.
fn pair_cells(flags: &Flags, bench: &CellBench) -> Vec<Cell> {
    let mut sizes = bench.book().sizes();
    sizes.extend(&flags.sizes.0);
    sizes.sort_unstable();
    sizes.dedup();
    Cell::all_of_pair(&sizes)
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
        world::warn(PROGRAM, &format!("{budget}; fewer than {least} visits to: {list}"));
    }
    if let Some((worst, uncertainty)) = outcome.uncertain.first() {
        let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
        let many = outcome.uncertain.len();
        let wanted = percent(rule.relative_error);
        let worst = format!("{} (+-{})", worst.describe(), percent(*uncertainty));
        world::warn(
            PROGRAM,
            &format!(
                "{many} medians are less certain than wanted (+-{wanted}, the smallest messages \
                 finer); the worst: {worst}"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_chosen_by_node() {
        let nodes = [0, 0, 1, 1];
        let pair = |text: &str, nodes: &[u32]| parse_pair(text).unwrap().pair(nodes);
        assert_eq!(pair("between-nodes", &nodes), Ok((0, 2)));
        assert_eq!(pair("inside-node", &nodes), Ok((0, 1)));
        assert_eq!(pair("inside-node", &[0, 1, 1]), Ok((1, 2)));
        assert_eq!(pair("between-nodes", &[0, 0]), Ok((0, 1)));
        assert_eq!(pair("3,1", &nodes), Ok((3, 1)));
        assert!(pair("inside-node", &[0, 1]).unwrap_err().contains("every node has one"));
        assert!(pair("0,4", &nodes).unwrap_err().contains("ranks 0 to 3"));
        assert!(pair("between-nodes", &[0]).unwrap_err().contains("has one"));
        assert!(parse_pair("1,1").unwrap_err().contains("two different ranks"));
    }
}
