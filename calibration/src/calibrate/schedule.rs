//! What to measure next, inside the budget.
//!
//! First comes a look around, so that every parameter comes out of a short budget too: a warm-up,
//! which also tells what a cell costs, and a few observations of every third size, from small sizes up,
//! then of round trips between these, then of all between these, as far as half of the budget goes.
//! Then come passes over all cells in random order until each has the least number of visits; where
//! that does not fit, the largest sizes wait. Then come passes over those that are least certain,
//! until all are certain enough or the budget is spent.
//! Beside all that the decisive cells are visited at a steady [pace](super::pace).

use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use statistics::stopping::Rule;

use first_look::{FirstLooks, expected_seconds};
pub use outcome::ScheduleOutcome;

use super::{cells::SizedExperiment, pace::Pace, visit::VisitTimes};

mod first_look;
mod outcome;

/// What the schedule needs of the thing that measures.
pub trait CellVisitor {
    /// Why it cannot go on.
    type Error;

    /// Brings the ranks into the state in which they are for such a cell, which takes time that is
    /// none of its own.
    ///
    /// # Errors
    /// Telling them failed.
    fn prepare(&mut self, cell: &SizedExperiment) -> Result<(), Self::Error>;

    /// Makes observations of a cell.
    ///
    /// # Errors
    /// Measuring failed.
    fn measure(&mut self, cell: &SizedExperiment, visit: VisitTimes) -> Result<(), Self::Error>;

    /// Seconds of the budget that are spent.
    fn spent_seconds(&self) -> f64;

    /// Visits with judged observations of a cell so far.
    fn visits(&self, cell: &SizedExperiment) -> usize;

    /// Those of this job.
    fn visits_of_job(&self, cell: &SizedExperiment) -> usize;

    /// Those that every cell shall have in this job, whatever it has had before.
    fn least_of_job(&self) -> usize;

    /// Seconds of the last judged repetition of a cell; 0 before the first.
    fn call_seconds(&self, cell: &SizedExperiment) -> f64;

    /// How uncertain a cell is, by the rule.
    fn uncertainty(&self, cell: &SizedExperiment, rule: &Rule) -> f64;
}

/// A cell to be measured.
#[derive(Debug, Clone, Copy)]
struct CellTask {
    cell: SizedExperiment,
    /// What one repetition costs, as far as is known.
    seconds: f64,
    /// As the visitor said after the last visit; kept, because it sorts all observations.
    uncertainty: f64,
}

/// Measures the cells until they are certain enough or the budget is spent.
///
/// `cells` are ordered by size; those of `pace` are visited besides, whatever the cells.
///
/// # Errors
/// As the visitor's.
pub fn run<V: CellVisitor>(
    cells: &[SizedExperiment],
    rule: &Rule,
    budget_seconds: f64,
    random: &mut Pcg64,
    pace: &mut Pace,
    visitor: &mut V,
) -> Result<ScheduleOutcome, V::Error> {
    let unfinished: Vec<SizedExperiment> =
        cells.iter().filter(|cell| wants_more(cell, rule, visitor)).copied().collect();
    let mut schedule = VisitSchedule { rule, budget_seconds, pace, visitor };
    let mut tasks = schedule.look_around(&unfinished)?;
    schedule.reach_minimum(&mut tasks, random)?;
    schedule.refine(&mut tasks, random)?;
    Ok(schedule.outcome(cells))
}

/// Whether a cell lacks visits or certainty.
pub fn wants_more<V: CellVisitor>(cell: &SizedExperiment, rule: &Rule, visitor: &V) -> bool {
    lacking(cell, rule, visitor) > 0
        || !cell.rule(rule).is_content(visitor.visits(cell), visitor.uncertainty(cell, rule))
}

/// Visits that a cell lacks to the least number, in all or in this job.
fn lacking<V: CellVisitor>(cell: &SizedExperiment, rule: &Rule, visitor: &V) -> usize {
    /// Jobs differ in what a small message costs; a large one is its bytes, and on a slow network many
    /// small ones are.
    const SMALL: u64 = 1 << 10;
    const MIN_OF_SMALL: usize = 4;
    let is_small = cell.experiment.is_of_pair()
        && cell.bytes <= SMALL
        && !VisitTimes::is_long(visitor.call_seconds(cell));
    let least = if is_small { MIN_OF_SMALL } else { 0 }.max(visitor.least_of_job());
    let in_all = rule.minimum.saturating_sub(visitor.visits(cell));
    in_all.max(least.saturating_sub(visitor.visits_of_job(cell)))
}

struct VisitSchedule<'a, V> {
    rule: &'a Rule,
    budget_seconds: f64,
    pace: &'a mut Pace,
    visitor: &'a mut V,
}

impl<V: CellVisitor> VisitSchedule<'_, V> {
    /// Observations of the first look: as few as the fits can do with.
    const FEW: u32 = 3;
    /// The two least sizes are looked at in any case if they are no larger: that takes no time on
    /// any network, and without them there are no parameters.
    const INDISPENSABLE: u64 = 1 << 10;
    /// Of what is left, for the first look.
    const FIRST_SHARE: f64 = 0.5;
    /// Of what is left, up to the end of the look at every third size. What a byte costs is known from large
    /// messages alone: where they take long they are worth more than that small ones are visited as often as wanted.
    const THIRDS_SHARE: f64 = 0.75;
    /// Of what is left, up to the end of the round trips between these, which take a few hundredths of that time.
    const ROUND_TRIPS_SHARE: f64 = 0.85;

    fn task(&self, cell: SizedExperiment, seconds: f64) -> CellTask {
        CellTask { cell, seconds, uncertainty: self.visitor.uncertainty(&cell, self.rule) }
    }

    fn left_seconds(&self) -> f64 {
        self.budget_seconds - self.visitor.spent_seconds()
    }

    fn lacking(&self, cell: &SizedExperiment) -> usize {
        lacking(cell, self.rule, self.visitor)
    }

    /// What the least number of visits to the tasks still costs.
    fn minimum_seconds(&self, tasks: &[CellTask]) -> f64 {
        let seconds = |task: &CellTask| Self::visit_seconds(task) * self.lacking(&task.cell) as f64;
        tasks.iter().map(seconds).sum()
    }

    /// A warm-up and a few observations of everything that has none, from small sizes up, every third
    /// size first; of an experiment for which a size takes too long no larger ones.
    fn look_around(&mut self, cells: &[SizedExperiment]) -> Result<Vec<CellTask>, V::Error> {
        let begun = self.visitor.spent_seconds();
        let left = self.left_seconds();
        let mut indispensable: Vec<u64> = cells.iter().map(|cell| cell.bytes).collect();
        indispensable.dedup();
        indispensable.truncate(2);
        indispensable.retain(|bytes| *bytes <= Self::INDISPENSABLE);
        let mut tasks: Vec<CellTask> = Vec::new();
        let mut too_long: Vec<SizedExperiment> = Vec::new();
        let looks = FirstLooks::new(cells, &indispensable, |cell| self.visitor.visits(cell) > 0);
        let thirds = looks.thirds.into_iter().map(|size| (size, Self::THIRDS_SHARE, Self::FEW));
        let trips =
            looks.round_trips.into_iter().map(|size| (size, Self::ROUND_TRIPS_SHARE, Self::FEW));
        let between = looks.between.into_iter().map(|size| (size, Self::FIRST_SHARE, 1));
        for (size, share, visits_of_long) in thirds.chain(trips).chain(between) {
            let is_larger = |long: &SizedExperiment| {
                long.experiment == size[0].experiment && long.bytes <= size[0].bytes
            };
            if too_long.iter().any(is_larger) {
                continue;
            }
            let seconds: Vec<f64> = size
                .iter()
                .map(|cell| {
                    expected_seconds(cell, tasks.iter().map(|task| (&task.cell, task.seconds)))
                })
                .collect();
            let is_indispensable = indispensable.contains(&size[0].bytes);
            let looks: Vec<VisitTimes> = size
                .iter()
                .zip(&seconds)
                .map(|(cell, seconds)| {
                    let is_long = !is_indispensable && VisitTimes::is_long(*seconds);
                    self.first_look(cell, is_long)
                })
                .collect();
            let expected = looks.iter().zip(&seconds).map(|(look, seconds)| {
                let visits = if look.unjudged == 0 { visits_of_long } else { 1 };
                f64::from(look.repetitions() * visits) * seconds
            });
            let fits = self.visitor.spent_seconds() + expected.sum::<f64>() <= begun + share * left;
            if !fits && !is_indispensable {
                too_long.extend(size);
                continue;
            }
            for (cell, look) in size.iter().zip(looks) {
                let seconds = self.timed(cell, look)?;
                tasks.push(self.task(*cell, seconds));
                // Not before each of the decisive ones has had its first look.
                if !cell.is_decisive() {
                    self.keep_pace()?;
                }
            }
            // The pace would visit the second of the least sizes before its first look.
            let visits = if is_indispensable { 1 } else { visits_of_long };
            let visited = tasks.len() - size.len();
            self.look_again(&mut tasks[visited..], visits, begun + share * left)?;
        }
        tasks.sort_by_key(|task| task.cell.bytes);
        self.look_again(&mut tasks, Self::FEW, begun + Self::FIRST_SHARE * left)?;
        Ok(tasks)
    }

    /// What is long had one observation: up to so many visits, as far as there is time until `end`.
    fn look_again(
        &mut self,
        tasks: &mut [CellTask],
        visits: u32,
        end: f64,
    ) -> Result<(), V::Error> {
        for _ in 1..visits {
            for task in tasks.iter_mut().filter(|task| VisitTimes::is_long(task.seconds)) {
                let is_seldom = self.visitor.visits(&task.cell) < visits as usize;
                if is_seldom && self.visitor.spent_seconds() + task.seconds <= end {
                    self.again(task)?;
                    self.keep_pace()?;
                }
            }
        }
        Ok(())
    }

    /// Of what is long, one at a time.
    fn first_look(&self, cell: &SizedExperiment, is_long: bool) -> VisitTimes {
        if is_long {
            return VisitTimes { unjudged: 0, judged: 1 };
        }
        let judged = if self.visitor.visits(cell) == 0 { Self::FEW } else { 0 };
        VisitTimes { unjudged: 1, judged }
    }

    fn reach_minimum(
        &mut self,
        tasks: &mut [CellTask],
        random: &mut Pcg64,
    ) -> Result<(), V::Error> {
        loop {
            // What was begun may cost more than there is beside the pace: then the largest sizes wait.
            let mut carried = tasks.len();
            let left = self.left_seconds() * (1.0 - Pace::SHARE);
            while carried > 0 && self.minimum_seconds(&tasks[..carried]) > left {
                carried -= 1;
            }
            let lacking = |&index: &usize| self.lacking(&tasks[index].cell) > 0;
            let pass = Self::decisive_last(tasks, (0..carried).filter(lacking));
            if !self.pass(tasks, pass, random)? {
                return Ok(());
            }
        }
    }

    fn refine(&mut self, tasks: &mut [CellTask], random: &mut Pcg64) -> Result<(), V::Error> {
        loop {
            // Visits can be lost to what else uses the processors.
            self.reach_minimum(tasks, random)?;
            let mut open: Vec<usize> =
                (0..tasks.len()).filter(|&index| self.is_open(&tasks[index])).collect();
            if self.pace.goes_on_after(self.budget_seconds) {
                open.retain(|&index| !tasks[index].cell.is_decisive());
            }
            let open = Self::decisive_last(tasks, open.into_iter());
            let mut urgent: Vec<(f64, usize)> =
                open.into_iter().map(|index| (Self::urgency(&tasks[index]), index)).collect();
            urgent.sort_by(|one, other| other.0.total_cmp(&one.0));
            urgent.truncate(urgent.len().div_ceil(4));
            let pass = urgent.into_iter().map(|(_, index)| index).collect();
            if !self.pass(tasks, pass, random)? {
                return Ok(());
            }
        }
    }

    /// The decisive ones have their visits beside the others', as long as there are such: none of
    /// those, if any other is there.
    fn decisive_last(tasks: &[CellTask], which: impl Iterator<Item = usize>) -> Vec<usize> {
        let (decisive, others): (Vec<usize>, Vec<usize>) =
            which.partition(|&index| tasks[index].cell.is_decisive());
        if others.is_empty() { decisive } else { others }
    }

    /// How much less certain than wanted, over the square root of what a visit costs. Over the cost
    /// itself, nearly all of the budget would go to small messages; without it, to large ones.
    fn urgency(task: &CellTask) -> f64 {
        let wanted = 1.0 / task.cell.fineness();
        task.uncertainty / wanted / Self::visit_seconds(task).max(1e-9).sqrt()
    }

    /// Whether a task has its least number, wants more, and one more fits.
    fn is_open(&self, task: &CellTask) -> bool {
        let visits = self.visitor.visits(&task.cell);
        visits >= self.rule.minimum
            && !task.cell.rule(self.rule).is_content(visits, task.uncertainty)
            && Self::visit_seconds(task) <= self.left_seconds()
    }

    /// Visits the tasks once in random order, each if it still fits; whether any was measured.
    fn pass(
        &mut self,
        tasks: &mut [CellTask],
        mut order: Vec<usize>,
        random: &mut Pcg64,
    ) -> Result<bool, V::Error> {
        order.shuffle(random);
        let mut any = false;
        for index in order {
            let task = tasks[index];
            if Self::visit_seconds(&task) > self.left_seconds() {
                continue;
            }
            self.again(&mut tasks[index])?;
            self.keep_pace()?;
            any = true;
        }
        Ok(any)
    }

    /// Visits a task once more.
    fn again(&mut self, task: &mut CellTask) -> Result<(), V::Error> {
        let latest = self.timed(&task.cell, VisitTimes::for_call_time(task.seconds))?;
        // A repetition that took longer is believed at once, a shorter one slowly.
        *task = self.task(task.cell, latest.max((task.seconds + latest) / 2.0));
        Ok(())
    }

    /// Visits the cells of the pace, if it is time.
    fn keep_pace(&mut self) -> Result<(), V::Error> {
        let begun = self.visitor.spent_seconds();
        for index in self.pace.round(begun) {
            let (cell, visit, expected_seconds) = self.pace.visit(index);
            if expected_seconds <= self.left_seconds() {
                let seconds = self.timed(&cell, visit)?;
                self.pace.learn(index, seconds);
            }
        }
        self.pace.rest(begun, self.visitor.spent_seconds());
        Ok(())
    }

    fn visit_seconds(task: &CellTask) -> f64 {
        f64::from(VisitTimes::for_call_time(task.seconds).repetitions()) * task.seconds
    }

    /// Measures and gives the seconds of one repetition.
    fn timed(&mut self, cell: &SizedExperiment, visit: VisitTimes) -> Result<f64, V::Error> {
        self.visitor.prepare(cell)?;
        let before = self.visitor.spent_seconds();
        self.visitor.measure(cell, visit)?;
        Ok((self.visitor.spent_seconds() - before) / f64::from(visit.repetitions().max(1)))
    }

    fn outcome(&self, cells: &[SizedExperiment]) -> ScheduleOutcome {
        let mut outcome = ScheduleOutcome::default();
        for cell in cells {
            let uncertainty = self.visitor.uncertainty(cell, self.rule);
            if self.lacking(cell) > 0 {
                outcome.unreached.push(*cell);
            } else if uncertainty > cell.rule(self.rule).relative_error {
                outcome.uncertain.push((*cell, uncertainty));
            }
        }
        outcome.uncertain.sort_by(|one, other| other.1.total_cmp(&one.1));
        outcome
    }
}

#[cfg(test)]
mod tests;
