//! What to measure next, inside the budget.
//!
//! First every cell is measured once, from small sizes up: its warm-up, which also tells what it
//! costs. A size is begun only if it and the least number of observations of everything begun so
//! far fit. Then come passes over all cells in random order until each has the least number, and
//! then passes over those whose medians are least certain, until all are certain enough or the
//! budget is spent.

use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use verification::stopping::Rule;

use super::cells::Cell;

/// What the schedule needs of the thing that measures.
pub trait Bench {
    /// Why it cannot go on.
    type Error;

    /// Makes observations of a cell: `count` that are judged, or its warm-up.
    ///
    /// # Errors
    /// Measuring failed.
    fn measure(&mut self, cell: &Cell, count: u32, warm_up: bool) -> Result<(), Self::Error>;

    /// Seconds of the budget that are spent.
    fn spent_seconds(&self) -> f64;

    /// Judged observations of a cell so far.
    fn observations(&self, cell: &Cell) -> usize;

    /// How uncertain a cell is, by the rule.
    fn uncertainty(&self, cell: &Cell, rule: &Rule) -> f64;
}

/// Where the schedule ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Cells without the least number of observations.
    pub unreached: Vec<Cell>,
    /// Cells that have it but are less certain than wanted, with their uncertainty; the least
    /// certain first.
    pub uncertain: Vec<(Cell, f64)>,
}

impl Outcome {
    /// Adds another schedule's.
    pub fn add(&mut self, other: Outcome) {
        self.unreached.extend(other.unreached);
        self.uncertain.extend(other.uncertain);
        self.uncertain.sort_by(|one, other| other.1.total_cmp(&one.1));
    }
}

/// A cell to be measured.
#[derive(Debug, Clone, Copy)]
struct Task {
    cell: Cell,
    /// What one repetition costs, as far as is known.
    seconds: f64,
    /// As the bench said after the last visit; kept, because it sorts all observations.
    uncertainty: f64,
}

impl Task {
    /// Uncertainty over the square root of the cost. Over the cost itself, nearly all of the
    /// budget would go to small messages; without it, to large ones.
    fn urgency(&self) -> f64 {
        self.uncertainty / self.seconds.max(1e-9).sqrt()
    }
}

/// Measures the cells until they are certain enough or the budget is spent.
///
/// `cells` are ordered by size.
///
/// # Errors
/// As the bench's.
pub fn run<B: Bench>(
    cells: &[Cell],
    rule: &Rule,
    budget_seconds: f64,
    random: &mut Pcg64,
    bench: &mut B,
) -> Result<Outcome, B::Error> {
    let mut schedule = Schedule { rule, budget_seconds, bench };
    let unfinished: Vec<Cell> =
        cells.iter().filter(|cell| schedule.wants_more(cell)).copied().collect();
    let mut tasks = schedule.scout(&unfinished)?;
    schedule.reach_minimum(&mut tasks, random)?;
    schedule.refine(&mut tasks, random)?;
    Ok(schedule.outcome(cells))
}

struct Schedule<'a, B> {
    rule: &'a Rule,
    budget_seconds: f64,
    bench: &'a mut B,
}

impl<B: Bench> Schedule<'_, B> {
    /// A repetition's parts smaller than this are grouped: telling the other rank costs time too.
    const VISIT_SECONDS: f64 = 2e-3;
    /// Most repetitions in one visit; more would gather them in one moment of the machine.
    const VISIT_MOST: u32 = 8;

    fn wants_more(&self, cell: &Cell) -> bool {
        let observations = self.bench.observations(cell);
        !self.rule.is_content(observations, self.bench.uncertainty(cell, self.rule))
    }

    fn task(&self, cell: Cell, seconds: f64) -> Task {
        Task { cell, seconds, uncertainty: self.bench.uncertainty(&cell, self.rule) }
    }

    fn left_seconds(&self) -> f64 {
        self.budget_seconds - self.bench.spent_seconds()
    }

    /// Observations that a cell lacks to the least number.
    fn lacking(&self, cell: &Cell) -> usize {
        self.rule.minimum.saturating_sub(self.bench.observations(cell))
    }

    /// What the least number of observations of the tasks still costs.
    fn minimum_seconds(&self, tasks: &[Task]) -> f64 {
        tasks.iter().map(|task| task.seconds * self.lacking(&task.cell) as f64).sum()
    }

    /// Measures every cell's warm-up, size by size, as far as the budget carries the sizes.
    fn scout(&mut self, cells: &[Cell]) -> Result<Vec<Task>, B::Error> {
        let mut tasks: Vec<Task> = Vec::new();
        for size in cells.chunk_by(|one, other| one.bytes == other.bytes) {
            let expected: Vec<Task> =
                size.iter().map(|cell| self.task(*cell, expected_seconds(cell, &tasks))).collect();
            let warm_ups: f64 = expected.iter().map(|task| task.seconds).sum();
            let whole = warm_ups + self.minimum_seconds(&expected) + self.minimum_seconds(&tasks);
            if whole > self.left_seconds() {
                break;
            }
            for cell in size {
                let seconds = self.timed(cell, 1, true)?;
                tasks.push(self.task(*cell, seconds));
            }
        }
        Ok(tasks)
    }

    fn reach_minimum(&mut self, tasks: &mut [Task], random: &mut Pcg64) -> Result<(), B::Error> {
        loop {
            // The warm-ups may have cost more than expected: then the largest sizes wait.
            let mut carried = tasks.len();
            while carried > 0 && self.minimum_seconds(&tasks[..carried]) > self.left_seconds() {
                carried -= 1;
            }
            let pass = (0..carried).filter(|&index| self.lacking(&tasks[index].cell) > 0);
            if !self.pass(tasks, pass.collect(), random)? {
                return Ok(());
            }
        }
    }

    fn refine(&mut self, tasks: &mut [Task], random: &mut Pcg64) -> Result<(), B::Error> {
        loop {
            let mut urgent: Vec<(f64, usize)> = (0..tasks.len())
                .filter(|&index| self.is_open(&tasks[index]))
                .map(|index| (tasks[index].urgency(), index))
                .collect();
            urgent.sort_by(|one, other| other.0.total_cmp(&one.0));
            urgent.truncate(urgent.len().div_ceil(4));
            let pass = urgent.into_iter().map(|(_, index)| index).collect();
            if !self.pass(tasks, pass, random)? {
                return Ok(());
            }
        }
    }

    /// Whether a task has its least number, wants more, and one more fits.
    fn is_open(&self, task: &Task) -> bool {
        let observations = self.bench.observations(&task.cell);
        observations >= self.rule.minimum
            && !self.rule.is_content(observations, task.uncertainty)
            && task.seconds <= self.left_seconds()
    }

    /// Visits the tasks once in random order, each if it still fits; whether any was measured.
    fn pass(
        &mut self,
        tasks: &mut [Task],
        mut order: Vec<usize>,
        random: &mut Pcg64,
    ) -> Result<bool, B::Error> {
        order.shuffle(random);
        let mut any = false;
        for index in order {
            let Task { cell, seconds, .. } = tasks[index];
            let count = self.visit_length(&cell, seconds);
            if f64::from(count) * seconds > self.left_seconds() {
                continue;
            }
            let latest = self.timed(&cell, count, false)?;
            // A repetition that took longer is believed at once, a shorter one slowly.
            tasks[index] = self.task(cell, latest.max((seconds + latest) / 2.0));
            any = true;
        }
        Ok(any)
    }

    fn visit_length(&self, cell: &Cell, seconds: f64) -> u32 {
        let short = (Self::VISIT_SECONDS / seconds.max(1e-9)) as u32;
        let short = short.clamp(1, Self::VISIT_MOST);
        match self.lacking(cell) {
            // So that the least number is spread over several passes.
            lacking @ 1.. => short.min(lacking as u32).min(2),
            0 => short,
        }
    }

    /// Measures and gives the seconds of one repetition.
    fn timed(&mut self, cell: &Cell, count: u32, warm_up: bool) -> Result<f64, B::Error> {
        let before = self.bench.spent_seconds();
        self.bench.measure(cell, count, warm_up)?;
        Ok((self.bench.spent_seconds() - before) / f64::from(count))
    }

    fn outcome(&self, cells: &[Cell]) -> Outcome {
        let mut outcome = Outcome::default();
        for cell in cells {
            let uncertainty = self.bench.uncertainty(cell, self.rule);
            if self.lacking(cell) > 0 {
                outcome.unreached.push(*cell);
            } else if uncertainty > self.rule.relative_error {
                outcome.uncertain.push((*cell, uncertainty));
            }
        }
        outcome.uncertain.sort_by(|one, other| other.1.total_cmp(&one.1));
        outcome
    }
}

/// What a repetition may cost, from the same experiment at the size before: as much more as the
/// messages hold more bytes, a KiB per message being taken for what a message costs by itself.
fn expected_seconds(cell: &Cell, known: &[Task]) -> f64 {
    let weight = |cell: &Cell| {
        (cell.bytes as f64 + 1024.0) * f64::from(cell.messages) * f64::from(cell.procs)
    };
    let before = known.iter().rev().find(|task| task.cell.experiment == cell.experiment);
    before.map_or(0.0, |task| task.seconds * (weight(cell) / weight(&task.cell)).max(1.0))
}

#[cfg(test)]
mod tests;
