//! A focused tuning on what a run has recorded: how few of its cells would have sufficed.
//!
//! The engine asks for cells as on a cluster, from nothing. What it asks for is taken from the record; all
//! others are as if they had never been measured. The models' parameters are fitted, again and again, to what
//! has been taken so far. Confirming is left out, since nothing can be loaded. It looks at the least and the greatest size
//! first; where nothing there is worth a look any more, at sizes between these, and so on. At sizes that it has not come
//! to it is chosen by what is believed there; beyond them the default is left. Judged are the decisions at all
//! points by all times of the record, medians over jobs: where a cell has one job, by what it was chosen by.

use std::collections::{BTreeMap, BTreeSet};

use choosing::samples::Samples;
use models::fit::{self, JobTime, MethodTime, Shapes, medians_over_jobs};
use records::{
    Collective, Layout, Method, Point,
    choices::Chosen,
    observation::CollectiveCall,
    plan::{Cell, Visit},
};
use statistics::{mean, quantile};
use tuning::{plan::spread, state::TuningState};

use crate::progress::CountedWork;

/// What the engine takes for enough of the shortest calls. A job's time of a cell is a summary of many
/// repetitions.
const VISITS: usize = 3;
/// Batches until everything is measured: what is known decides what comes next.
const BATCHES: usize = 100;
/// Sizes of a collective on a layout that are looked at first.
const FIRST_SIZES: usize = 2;
/// The engine is never to stop for lack of time, in seconds.
const ENDLESS: f64 = 1e9;

/// How good decisions are after some cells.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedDecisions {
    /// Cells that were looked at.
    pub cells: usize,
    /// Their share of the time that one call of every cell takes.
    pub time: f64,
    /// Penalties at all points, against the least time.
    pub mean: f64,
    pub percentile_95: f64,
}

/// What a replay showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// Of the record.
    pub cells: usize,
    pub points: usize,
    /// After each share of the cells that was asked for, as far as the engine went on.
    pub decisions: Vec<ReplayedDecisions>,
    /// The default's penalties, mean and 95th percentile, at the points where it was timed.
    pub default: Option<[f64; 2]>,
}

/// Tunes on the times of a record, and judges after each of these shares of its cells, ascending.
pub fn replay(times: &[JobTime], shares: &[f64]) -> Replay {
    let medians = medians_over_jobs(times);
    let cell = |time: &MethodTime| Cell { point: time.point, method: time.method.clone() };
    let cells: Vec<Cell> = medians.iter().map(cell).collect();
    let truth = JudgingTimes::new(&medians);
    let mut shown = ShownCells::new(&cells, times);
    let of_all: f64 = medians.iter().map(|time| time.seconds).sum();
    let mut decisions = Vec::new();
    for share in shares {
        let wanted = (share * cells.len() as f64).round() as usize;
        let state = shown.go_on_to(wanted);
        let seen = shown.methods();
        let among = |point: Point, method: &Method| {
            seen.contains(&(point.collective, point.layout, method))
        };
        let beliefs = &state.beliefs;
        let choices =
            [beliefs.choices_among(&among), beliefs.interpolated_choices(&among)].concat();
        let penalties = truth.penalties(&choices);
        let taken = shown.taken.iter().map(|index| medians[*index].seconds);
        if let (Some(mean), Some(percentile_95)) = (mean(&penalties), quantile(&penalties, 0.95)) {
            let (cells, time) = (shown.taken.len(), taken.sum::<f64>() / of_all);
            decisions.push(ReplayedDecisions { cells, time, mean, percentile_95 });
        }
    }
    Replay {
        cells: cells.len(),
        points: truth.points.len(),
        decisions,
        default: truth.of_default(),
    }
}

/// Times of the record by which decisions are judged.
struct JudgingTimes<'a> {
    points: BTreeMap<Point, BTreeMap<&'a Method, f64>>,
}

impl<'a> JudgingTimes<'a> {
    fn new(medians: &'a [MethodTime]) -> Self {
        let mut points: BTreeMap<Point, BTreeMap<&Method, f64>> = BTreeMap::new();
        for time in medians {
            points.entry(time.point).or_default().insert(&time.method, time.seconds);
        }
        JudgingTimes { points }
    }

    /// Where nothing was chosen the default is left.
    fn penalties(&self, choices: &[Chosen]) -> Vec<f64> {
        let chosen: BTreeMap<Point, &Method> =
            choices.iter().map(|choice| (choice.point, &choice.method)).collect();
        let penalty = |point: &Point| {
            self.penalty(*point, chosen.get(point).copied().unwrap_or(&Method::Default))
        };
        self.points.keys().filter_map(penalty).collect()
    }

    fn penalty(&self, point: Point, method: &Method) -> Option<f64> {
        let there = self.points.get(&point)?;
        let least = there.values().copied().fold(f64::INFINITY, f64::min);
        Some(there.get(method)? / least - 1.0)
    }

    fn of_default(&self) -> Option<[f64; 2]> {
        let penalties = self.penalties(&[]);
        Some([mean(&penalties)?, quantile(&penalties, 0.95)?])
    }
}

/// Points of so many sizes of each collective and layout, evenly spread over those of the cells.
fn points_at(cells: &[Cell], sizes: usize) -> BTreeSet<Point> {
    let mut of: BTreeMap<(Collective, Layout), BTreeSet<u64>> = BTreeMap::new();
    for cell in cells {
        of.entry(cell.point.line()).or_default().insert(cell.point.bytes);
    }
    let mut points = BTreeSet::new();
    for ((collective, layout), all) in of {
        let all: Vec<u64> = all.into_iter().collect();
        let kept = spread(&all, sizes).into_iter();
        points.extend(kept.map(|bytes| Point { collective, layout, bytes }));
    }
    points
}

/// What the engine has been shown.
struct ShownCells<'a> {
    cells: &'a [Cell],
    times: &'a [JobTime],
    /// Cells by their index.
    taken: BTreeSet<usize>,
    rows: Vec<CollectiveCall>,
    shapes: Shapes,
    work: CountedWork,
}

impl<'a> ShownCells<'a> {
    fn new(cells: &'a [Cell], times: &'a [JobTime]) -> Self {
        let (taken, rows, shapes) = (BTreeSet::new(), Vec::new(), Shapes::default());
        let work = CountedWork::begin("replaying", "cells", cells.len());
        ShownCells { cells, times, taken, rows, shapes, work }
    }

    /// Shows what the engine asks for until it has seen so many cells, or asks for nothing new at any size.
    fn go_on_to(&mut self, wanted: usize) -> TuningState {
        let mut sizes = FIRST_SIZES;
        let mut before = BTreeSet::new();
        loop {
            let points = points_at(self.cells, sizes);
            if self.taken.len() >= wanted || points == before {
                return self.state(self.cells);
            }
            self.look_at(&points, wanted);
            // Each step between two sizes is halved.
            sizes = 2 * sizes - 1;
            before = points;
        }
    }

    /// Shows what the engine asks for of these points, until it has seen so many cells or asks for nothing new.
    fn look_at(&mut self, points: &BTreeSet<Point>, wanted: usize) {
        let of_batch = self.cells.len().div_ceil(BATCHES);
        let among: Vec<usize> = (0..self.cells.len())
            .filter(|index| points.contains(&self.cells[*index].point))
            .collect();
        let cells: Vec<Cell> = among.iter().map(|index| self.cells[*index].clone()).collect();
        while let left @ 1.. = wanted.saturating_sub(self.taken.len()) {
            let asked = self.state(&cells).next(ENDLESS).visits;
            let new = asked.iter().map(|Visit { cell, .. }| among[*cell as usize]);
            let mut batch: Vec<usize> = Vec::new();
            for index in new.filter(|index| !self.taken.contains(index)) {
                if !batch.contains(&index) && batch.len() < of_batch.min(left) {
                    batch.push(index);
                }
            }
            if batch.is_empty() {
                return;
            }
            batch.into_iter().for_each(|index| self.take(index));
        }
    }

    /// The methods of which something was seen on a layout: of the others nothing is known but models, and no jobs
    /// would confirm them.
    fn methods(&self) -> BTreeSet<(Collective, Layout, &Method)> {
        let cells = self.taken.iter().map(|index| &self.cells[*index]);
        cells.map(|cell| (cell.point.collective, cell.point.layout, &cell.method)).collect()
    }

    /// Shows all times of a cell, each as a visit; of few jobs again and again.
    fn take(&mut self, index: usize) {
        let cell = &self.cells[index];
        let is_of = |time: &&JobTime| (time.point, &time.method) == (cell.point, &cell.method);
        let seconds: Vec<f64> = self.times.iter().filter(is_of).map(|time| time.seconds).collect();
        let visits = seconds.len().max(VISITS);
        for seconds in seconds.iter().cycle().take(visits) {
            let visit = self.rows.len() as u32;
            self.rows.push(CollectiveCall { visit, ..CollectiveCall::timed(cell, *seconds) });
        }
        self.taken.insert(index);
        self.work.add(1);
    }

    /// What the engine knows of these cells, with models fitted to what it has seen.
    fn state(&self, cells: &[Cell]) -> TuningState {
        let is_seen = |time: &&JobTime| {
            let is_it = |index: &usize| {
                let cell = &self.cells[*index];
                (time.point, &time.method) == (cell.point, &cell.method)
            };
            self.taken.iter().any(is_it)
        };
        let seen: Vec<JobTime> = self.times.iter().filter(is_seen).cloned().collect();
        let fit = fit::joint_values(&seen, &self.shapes).ok();
        let expected =
            |cell: &Cell| vec![fit.as_ref().and_then(|it| it.seconds(cell.point, &cell.method))];
        TuningState::new(cells, &expected, &Samples::gather(&self.rows, libraries::ran_as_asked))
            .with_cells_counted()
    }
}
