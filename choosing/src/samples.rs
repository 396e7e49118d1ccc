//! The observations of a record, gathered by what was measured.

use std::collections::{BTreeMap, BTreeSet};

use records::{
    Collective, Method, Point,
    observation::{CollectiveCall, ObservationStatus, traced_function},
};
use statistics::{median, midmean};

/// The times of one method at one point, in the order in which they were observed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MethodTimes {
    seconds: Vec<f64>,
    /// How many of them the first visit made, the second, ...; what follows at once is more alike
    /// than what was observed at different times.
    visits: Vec<usize>,
    /// How many visits were made, with those of which nothing counts.
    made: usize,
    /// What the tracer saw run, where it saw the same in every observation.
    ran: Option<String>,
    /// Others took too much of the processors during all of them.
    disturbed: bool,
}

/// Which observations: one half chooses, the other tells the time of what was chosen, or else
/// the least of many noisy times flatters itself. A cell that was visited several times is
/// halved by visits, since the calls of one visit have the machine's state of that moment in
/// common: what was lucky in one of them was lucky in the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservationHalf {
    /// The first, third, ... visit (observation, where there was one visit): to choose by.
    Choosing,
    /// The second, fourth, ...: to tell the time of what was chosen.
    Timing,
}

impl ObservationHalf {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            ObservationHalf::Choosing => ObservationHalf::Timing,
            ObservationHalf::Timing => ObservationHalf::Choosing,
        }
    }
}

impl MethodTimes {
    /// How many observations.
    pub fn count(&self) -> usize {
        self.seconds.len()
    }

    /// All of them, in seconds.
    pub fn seconds(&self) -> &[f64] {
        &self.seconds
    }

    /// The median of all, in seconds.
    pub fn median(&self) -> Option<f64> {
        median(&self.seconds)
    }

    /// The [`midmean`] of all, in seconds.
    pub fn midmean(&self) -> Option<f64> {
        midmean(&self.seconds)
    }

    /// The times of each visit, in seconds.
    pub fn visits(&self) -> impl Iterator<Item = &[f64]> {
        let mut rest = self.seconds.as_slice();
        self.visits.iter().map(move |&count| {
            let (visit, others) = rest.split_at(count);
            rest = others;
            visit
        })
    }

    /// The median of each visit, in seconds: its repetitions share the state in which it met the
    /// machine, so that it counts once.
    pub fn medians(&self) -> impl Iterator<Item = f64> {
        self.visits().filter_map(median)
    }

    /// What really ran, where that was seen and was always the same.
    pub fn ran(&self) -> Option<&str> {
        self.ran.as_deref()
    }

    /// Whether others took too much of the processors during all observations.
    pub fn is_disturbed(&self) -> bool {
        self.disturbed
    }

    /// The [`midmean`] of one half, in seconds. The observations of a single visit are dealt to both
    /// halves in turn; a single one must serve for both.
    pub fn midmean_of(&self, half: ObservationHalf) -> Option<f64> {
        let parts: Vec<&[f64]> = match self.visits.len() {
            0 | 1 => self.seconds.chunks(1).collect(),
            _ => self.visits().collect(),
        };
        let skipped = usize::from(half == ObservationHalf::Timing && parts.len() > 1);
        midmean(&parts.into_iter().skip(skipped).step_by(2).flatten().copied().collect::<Vec<_>>())
    }
}

/// All times, by point and method.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    times: BTreeMap<Point, BTreeMap<Method, MethodTimes>>,
    /// What a reader must know: methods that fell back, points with too few observations.
    pub warnings: Vec<String>,
}

impl Samples {
    /// Gathers a record's rows. Warm-ups are left out, and what others disturbed where there is anything
    /// else; observations with a late start are used where such are usual, or where there
    /// are no others and they tell something; a method that fell back to another algorithm is not
    /// booked under its name. Methods of which it was seen that they ran the very same at a point
    /// (the library's default, and the algorithm that it takes there) have their times in common.
    ///
    /// `ran_as_asked` says whether what was seen to run is the method that a collective was asked to take.
    pub fn gather(
        rows: &[CollectiveCall],
        ran_as_asked: impl Fn(Collective, &Method, &str) -> bool,
    ) -> Self {
        let mut by_cell: BTreeMap<(Point, &Method), Vec<&CollectiveCall>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.status != ObservationStatus::Warmup) {
            by_cell.entry((row.point, &row.method)).or_default().push(row);
        }
        let disturbed = leave_out_disturbed(&mut by_cell);
        let usual = usually_late(&by_cell);
        let mut samples = Samples::default();
        let mut late = 0;
        let mut fell_back: BTreeMap<(Collective, &Method, &str), Vec<Point>> = BTreeMap::new();
        for ((point, method), rows) in by_cell {
            let other = rows.iter().find(|row| !ran_as_asked(point.collective, method, &row.ran));
            if let Some(row) = other {
                let ran = row.ran.rsplit(['>', ';']).next().unwrap_or_default();
                let ran = traced_function(ran);
                fell_back.entry((point.collective, method, ran)).or_default().push(point);
                continue;
            }
            let times = usable(&rows, usual.contains(&point));
            if times.seconds.is_empty() {
                late += 1;
                continue;
            }
            samples.times.entry(point).or_default().insert(method.clone(), times);
        }
        samples.times.values_mut().for_each(share_between_the_same);
        samples.warnings = fell_back
            .into_iter()
            .map(|((collective, method, ran), points)| {
                let count = points.len();
                format!(
                    "{collective}: {method} ran {ran} instead at {count} points; not counted there"
                )
            })
            .chain((disturbed > 0).then(|| {
                format!(
                    "{disturbed} cells were timed only while other processes used too much of the \
                     processors: these times are used as there are no others, and may be too long"
                )
            }))
            .chain((late > 0).then(|| {
                format!(
                    "{late} cells were timed only in calls that a rank began so late that they do not \
                     tell how long the method takes; not counted"
                )
            }))
            .collect();
        samples
    }

    /// These samples without the methods for which `keep` says no.
    #[must_use]
    pub fn among(&self, keep: impl Fn(Point, &Method) -> bool) -> Self {
        let mut samples = self.clone();
        for (&point, methods) in &mut samples.times {
            methods.retain(|method, _| keep(point, method));
        }
        samples
    }

    /// The points measured, ascending.
    pub fn points(&self) -> impl Iterator<Item = Point> {
        self.times.keys().copied()
    }

    /// The methods measured at a point, with their times.
    pub fn at(&self, point: Point) -> impl Iterator<Item = (&Method, &MethodTimes)> {
        self.times.get(&point).into_iter().flatten()
    }

    /// The times of one method at a point.
    pub fn get(&self, point: Point, method: &Method) -> Option<&MethodTimes> {
        self.times.get(&point)?.get(method)
    }

    /// The method with the least midmean of one half, and its time from the other half.
    pub fn best(&self, point: Point, half: ObservationHalf) -> Option<(&Method, f64)> {
        let (method, times) = self.least(point, |times| times.midmean_of(half))?;
        Some((method, times.midmean_of(half.other())?))
    }

    /// The methods at a point that were visited at least a quarter as often as the one visited most.
    /// The others were given up as too slow; the midmeans of their few visits vary so much that one
    /// of them would be the least by chance.
    pub fn well_visited(&self, point: Point) -> impl Iterator<Item = (&Method, &MethodTimes)> {
        const SHARE: usize = 4;
        let most = self.at(point).map(|(_, times)| times.made).max().unwrap_or_default();
        self.at(point).filter(move |(_, times)| SHARE * times.made >= most)
    }

    /// The well visited method that is least by a measure.
    pub fn least(
        &self,
        point: Point,
        of: impl Fn(&MethodTimes) -> Option<f64>,
    ) -> Option<(&Method, &MethodTimes)> {
        let value = |times: &MethodTimes| of(times).unwrap_or(f64::INFINITY);
        self.well_visited(point).min_by(|a, b| value(a.1).total_cmp(&value(b.1)))
    }
}

fn share_between_the_same(methods: &mut BTreeMap<Method, MethodTimes>) {
    let mut by_what_ran: BTreeMap<String, MethodTimes> = BTreeMap::new();
    for times in methods.values() {
        let Some(ran) = &times.ran else { continue };
        let none = || MethodTimes { disturbed: true, ..MethodTimes::default() };
        let all = by_what_ran.entry(ran.clone()).or_insert_with(none);
        all.disturbed &= times.disturbed;
        all.seconds.extend(&times.seconds);
        all.visits.extend(&times.visits);
        all.made += times.made;
    }
    for times in methods.values_mut() {
        let Some(all) = times.ran.as_ref().and_then(|ran| by_what_ran.get(ran)) else { continue };
        times.seconds.clone_from(&all.seconds);
        times.visits.clone_from(&all.visits);
        times.made = all.made;
        times.disturbed = all.disturbed;
    }
}

/// Leaves out what was timed while others took too much of the processors; gives how many cells have
/// nothing else, which keep it.
fn leave_out_disturbed(cells: &mut BTreeMap<(Point, &Method), Vec<&CollectiveCall>>) -> usize {
    let is_calm = |row: &&CollectiveCall| row.status != ObservationStatus::Disturbed;
    for rows in cells.values_mut().filter(|rows| rows.iter().any(is_calm)) {
        rows.retain(is_calm);
    }
    cells.values().filter(|rows| rows.iter().any(|row| !is_calm(row))).count()
}

/// The points at which most of the calls began late: that is how ranks start there, as in the short
/// calls of many ranks on few processors. Where a call in time is the rule, a late one is an accident
/// of its visit and may take twice as long. By each method alone it would be judged whether its late
/// calls count, and methods compared of which one has them and the other not.
fn usually_late(cells: &BTreeMap<(Point, &Method), Vec<&CollectiveCall>>) -> BTreeSet<Point> {
    let mut counts: BTreeMap<Point, (usize, usize)> = BTreeMap::new();
    for ((point, _), rows) in cells {
        let (late, all) = counts.entry(*point).or_default();
        *late += rows.iter().filter(|row| row.status == ObservationStatus::Late).count();
        *all += rows.len();
    }
    counts.into_iter().filter(|(_, (late, all))| 2 * late > *all).map(|(point, _)| point).collect()
}

/// What counts of a cell: late calls where they are usual; else, where there are no others, those that tell
/// what the method takes, which may be none.
fn usable(rows: &[&CollectiveCall], late_is_usual: bool) -> MethodTimes {
    let is_in_time = |row: &CollectiveCall| row.status == ObservationStatus::Ok;
    let all_are_late = !rows.iter().any(|row| is_in_time(row));
    let counts = |row: &CollectiveCall| {
        late_is_usual || is_in_time(row) || all_are_late && !is_mostly_waiting(row)
    };
    let ran = rows.first().map(|row| &row.ran).filter(|ran| !ran.is_empty());
    let ran = ran.filter(|ran| rows.iter().all(|row| row.ran == **ran)).cloned();
    let disturbed = rows.iter().all(|row| row.status == ObservationStatus::Disturbed);
    let mut times = MethodTimes { ran, disturbed, ..MethodTimes::default() };
    for visit in rows.chunk_by(|one, next| follows(one, next)) {
        times.made += 1;
        let before = times.seconds.len();
        times.seconds.extend(visit.iter().filter(|row| counts(row)).map(|row| row.seconds));
        times.visits.extend(Some(times.seconds.len() - before).filter(|&count| count > 0));
    }
    times
}

/// Whether a rank began a late call after most of what the call took: what the method takes lies anywhere
/// between that time and less than half of it.
fn is_mostly_waiting(row: &CollectiveCall) -> bool {
    let waited = row.last_start_seconds - row.first_start_seconds;
    row.status == ObservationStatus::Late && waited > 0.5 * row.seconds
}

/// Whether an observation is of the same visit as the one before. Records that were put together
/// number their visits each from the start, so a repetition that does not follow the one before
/// begins a visit too.
pub fn follows(one: &CollectiveCall, next: &CollectiveCall) -> bool {
    one.visit == next.visit && one.repetition < next.repetition
}

#[cfg(test)]
mod tests;
