//! One clock for all ranks, where they do not share one.
//!
//! Rank 0's clock is the global one; every other rank keeps a [line](ClockLine) that leads from its own
//! clock to it. The lines are learnt down a binomial tree, as in HCA3 (Hunold and Carpen-Amarie,
//! CLUSTER 2018): a parent that knows the global clock answers its children by it, so that no
//! models have to be put together. One pass over the tree gives every rank one more sighting of
//! the global clock and takes log2 p steps; the first synchronisation makes several passes over a
//! second, later ones a single pass. The sightings of a minute are kept, which makes the
//! drift better known with every pass, and with it the time that the lines hold good:
//! [`SynchronisationReport::good_for`] says when the next pass is due.
//!
//! Ranks that share a clock ([`crate::clock::identity`]) share a line: the first
//! of them takes part and tells the others. Where all share one, nothing is exchanged and the
//! global clock is exact.

mod exchange;
mod line;

use std::collections::VecDeque;

use records::observation::{ClockError, ObservationStatus};
use serde::{Deserialize, Serialize};

pub use line::{ClockLine, OffsetMeasurement};

use crate::{
    clock::{self, Nanos, now, seconds},
    peers::{Peers, Tag},
    sleep::sleep_until,
};

/// How the ranks' clocks hang together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockGroups {
    /// For each rank the first rank that reads the same clock.
    pub first_of: Vec<u32>,
    /// For each rank whether the kernel's clock is rank 0's, though its own may be false.
    pub has_referee: Vec<bool>,
}

impl ClockGroups {
    /// Whether all ranks read one clock.
    pub fn is_one(&self) -> bool {
        self.first_of.iter().all(|first| *first == 0)
    }

    /// The ranks that keep a line, ascending.
    fn leaders(&self) -> Vec<u32> {
        let ranks = (0..).zip(&self.first_of);
        ranks.filter(|(rank, first)| rank == *first).map(|(rank, _)| rank).collect()
    }
}

/// A rank's place in the tree of those that keep a line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TreePosition {
    parent: Option<u32>,
    /// The farthest first.
    children: Vec<u32>,
}

impl TreePosition {
    /// Of the `index`-th of the leaders: its parent lacks its lowest bit.
    fn new(leaders: &[u32], index: usize) -> Self {
        let lowest = match index {
            0 => leaders.len().next_power_of_two(),
            _ => 1 << index.trailing_zeros(),
        };
        let parent = (index > 0).then(|| leaders[index - lowest]);
        let mut distance = lowest / 2;
        let mut children = Vec::new();
        while distance > 0 {
            children.extend(leaders.get(index + distance));
            distance /= 2;
        }
        TreePosition { parent, children }
    }
}

/// A rank's part in the global clock.
#[derive(Debug)]
pub struct Synchroniser<P> {
    comm: P,
    groups: ClockGroups,
    /// None for a rank that takes over another's line.
    place: Option<TreePosition>,
    line: ClockLine,
    readings: VecDeque<exchange::Reading>,
    passed: Nanos,
}

/// What a pass came to, over all ranks; rank 0 knows it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SynchronisationReport {
    /// From now on, how long the lines are surely right to a tenth of the round trip.
    pub good_for: Nanos,
    /// The shortest round trip between parent and child; the least of all ranks.
    pub round_trip: Nanos,
}

impl SynchronisationReport {
    /// How long to wait with the next pass. Where a single sighting is no better than a tenth of
    /// the round trip, more passes still make the lines better.
    pub fn pause(&self) -> Nanos {
        self.good_for.clamp(500_000_000, 20_000_000_000)
    }
}

impl<P: Peers> Synchroniser<P> {
    const FIRST_PASSES: usize = 20;
    const PAUSE: Nanos = 50_000_000;
    /// Oscillators keep their rate for about that long, as far as it matters here.
    const KEPT: Nanos = 60_000_000_000;

    /// For a job whose clocks hang together like that; `comm` holds all ranks.
    pub fn new(comm: P, groups: ClockGroups) -> Self {
        let leaders = groups.leaders();
        let place = leaders.binary_search(&comm.rank()).ok();
        let place = place.map(|index| TreePosition::new(&leaders, index));
        let readings = VecDeque::new();
        Synchroniser { comm, groups, place, line: ClockLine::EXACT, readings, passed: 0 }
    }

    /// Whether all ranks read one clock, so that nothing needs to be done.
    pub fn is_exact(&self) -> bool {
        self.groups.is_one()
    }

    /// This rank's way to the global clock.
    pub fn line(&self) -> ClockLine {
        self.line
    }

    /// Synchronises for the first time; every rank must. Gives the report at rank 0.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn begin(&mut self) -> Result<Option<SynchronisationReport>, P::Error> {
        let mut report = self.pass()?;
        if !self.is_exact() {
            for _ in 1..Self::FIRST_PASSES {
                sleep_until(now() + Self::PAUSE);
                report = self.pass()?;
            }
        }
        Ok(report)
    }

    /// One pass over the tree; every rank must. Gives the report at rank 0.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn pass(&mut self) -> Result<Option<SynchronisationReport>, P::Error> {
        if self.is_exact() {
            let report = SynchronisationReport { good_for: Nanos::MAX, round_trip: 0 };
            return Ok((self.comm.rank() == 0).then_some(report));
        }
        match self.place.clone() {
            None => {
                let first = self.groups.first_of[self.comm.rank() as usize];
                self.line = self.comm.receive_value(first, Tag::Setup)?;
            }
            Some(place) => self.lead(&place)?,
        }
        self.passed = now();
        self.gather()
    }

    fn lead(&mut self, place: &TreePosition) -> Result<(), P::Error> {
        if let Some(parent) = place.parent {
            let reading = exchange::read(&self.comm, parent, |local| local)?;
            self.learn(reading);
        }
        let line = self.line;
        for &child in &place.children {
            exchange::answer(&self.comm, child, |local| {
                (line.global(local), line.error_at(local))
            })?;
        }
        let rank = self.comm.rank();
        let mates = (0..)
            .zip(&self.groups.first_of)
            .filter(|(mate, first)| **first == rank && *mate != rank);
        for (mate, _) in mates {
            self.comm.send_value(&self.line, mate, Tag::Setup)?;
        }
        Ok(())
    }

    fn learn(&mut self, reading: exchange::Reading) {
        self.readings.push_back(reading);
        while self.readings.front().is_some_and(|old| reading.local - old.local > Self::KEPT) {
            self.readings.pop_front();
        }
        if let Some(line) = ClockLine::through(&sightings(&self.readings)) {
            self.line = line;
        }
    }

    fn round_trip(&self) -> Nanos {
        self.readings.iter().map(|reading| reading.width).min().unwrap_or_default()
    }

    /// How long this rank has seen the global clock. What a machine's state does to both ways unequally
    /// lasts for seconds, and sightings that share it do not show it: a drift is not to be trusted
    /// for much longer than it was watched.
    fn seen_for(&self) -> Nanos {
        let ends = self.readings.front().zip(self.readings.back());
        ends.map_or(Nanos::MAX, |(first, last)| last.local - first.local)
    }

    /// Rank 0 learns how long the lines of all leaders hold good.
    fn gather(&self) -> Result<Option<SynchronisationReport>, P::Error> {
        let round_trip = self.round_trip();
        // Three standard errors are to stay below a tenth of the round trip.
        let good_for = self.line.good_for(now(), round_trip as f64 / 30.0);
        let own = SynchronisationReport { good_for: good_for.min(self.seen_for() / 2), round_trip };
        let leaders = self.groups.leaders();
        if self.comm.rank() != 0 {
            if self.place.is_some() {
                self.comm.send_value(&own, 0, Tag::Setup)?;
            }
            return Ok(None);
        }
        let mut all = SynchronisationReport { good_for: Nanos::MAX, round_trip: Nanos::MAX };
        for leader in leaders.into_iter().skip(1) {
            let theirs: SynchronisationReport = self.comm.receive_value(leader, Tag::Setup)?;
            all.good_for = all.good_for.min(theirs.good_for);
            all.round_trip = all.round_trip.min(theirs.round_trip);
        }
        Ok(Some(all))
    }

    /// Compares every rank's global clock with rank 0's directly; every rank must. Rank 0 gets an
    /// observation for each rank that keeps a line.
    ///
    /// Beside what round trips tell, which is uncertain by half of their width, stands the exact
    /// error where the kernel's clock is shared and the ranks' own are false.
    ///
    /// # Errors
    /// The MPI library refuses.
    pub fn check(&self) -> Result<Vec<ClockError>, P::Error> {
        let comm = &self.comm;
        if self.place.is_none() {
            return Ok(Vec::new());
        }
        if comm.rank() != 0 {
            let kernel: Nanos = comm.wait_for(0, Tag::Setup)?;
            let line = self.line;
            let reading = exchange::read(comm, 0, |local| line.global(local))?;
            let truth = line.global(clock::falsified(kernel));
            let error = ClockError {
                rank: comm.rank(),
                seconds_after: seconds(now() - self.passed),
                round_trip_seconds: seconds(reading.width),
                seen_error_seconds: reading.offset / 1e9,
                true_error_seconds: None,
                drift_ppm: line.drift() * 1e6,
                status: ObservationStatus::Ok,
            };
            comm.send_value(&(error, truth), 0, Tag::Setup)?;
            return Ok(Vec::new());
        }
        let mut errors = Vec::new();
        for leader in self.groups.leaders().into_iter().skip(1) {
            let kernel = clock::kernel_now();
            comm.send_value(&kernel, leader, Tag::Setup)?;
            exchange::answer(comm, leader, |local| (local, 0.0))?;
            let (mut error, truth): (ClockError, Nanos) = comm.receive_value(leader, Tag::Setup)?;
            if self.groups.has_referee[leader as usize] {
                error.true_error_seconds = Some(seconds(truth - clock::falsified(kernel)));
            }
            errors.push(error);
        }
        Ok(errors)
    }
}

/// What cannot be seen of a round trip even if it was undisturbed, as a part of it.
const UNDETECTABLE_SHARE: f64 = 0.02;

/// Readings of the global clock with what they may be wrong by.
///
/// Where the ways were longer than usual, all of it may be on one side. That they were shorter makes a
/// reading no better: as a rule only one of them was, as by a processor that happened to be awake, and
/// the offset is off by half of it.
fn sightings(readings: &VecDeque<exchange::Reading>) -> Vec<OffsetMeasurement> {
    let mut widths: Vec<Nanos> = readings.iter().map(|reading| reading.width).collect();
    widths.sort_unstable();
    let Some((&least, &usual)) = widths.first().zip(widths.get(widths.len() / 2)) else {
        return Vec::new();
    };
    let sighting = |reading: &exchange::Reading| {
        let longer = (reading.width - usual).max(0) as f64;
        let own = UNDETECTABLE_SHARE * least as f64 + longer / 2.0;
        let error = own.hypot(reading.theirs);
        OffsetMeasurement { local: reading.local, offset: reading.offset, error }
    };
    readings.iter().map(sighting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of readings of a clock with a drift of 10 ppm, as seen on a machine where a way is
    /// shorter now and then, or longer.
    #[test]
    fn a_reading_that_is_shorter_on_one_way_leads_nowhere() {
        let reading = |number: i64| {
            let local = number * 50_000_000;
            // Half of what one way differs by is taken for an offset.
            let differs = match number {
                4 | 16 => -5_000,
                9 => 9_000,
                _ => 300 * (number % 3 - 1),
            };
            let offset = 1e-5 * local as f64 + differs as f64 / 2.0;
            exchange::Reading { local, offset, width: 32_000 + differs, theirs: 0.0 }
        };
        let readings: VecDeque<_> = (0..20).map(reading).collect();
        let line = ClockLine::through(&sightings(&readings)).unwrap();
        assert!((line.drift() - 1e-5).abs() < 3e-7, "{}", line.drift());
        let end = 1_000_000_000;
        let off = end - line.global(end) - 10_000;
        assert!(off.abs() < 200, "{off} ns");
        assert!(sightings(&VecDeque::new()).is_empty());
    }

    /// Whatever the number of leaders: one tree over all of them, in which a parent has learnt
    /// before it teaches, of log2 p steps.
    #[test]
    fn the_tree_reaches_all() {
        for count in 1..=40_u32 {
            let leaders: Vec<u32> = (0..count).map(|rank| 3 * rank).collect();
            let places: Vec<TreePosition> =
                (0..leaders.len()).map(|index| TreePosition::new(&leaders, index)).collect();
            assert_eq!(places[0].parent, None);
            for (rank, place) in leaders.iter().zip(&places) {
                for child in &place.children {
                    let at = leaders.binary_search(child).unwrap();
                    assert_eq!(places[at].parent, Some(*rank), "{count}");
                }
            }
            let children: usize = places.iter().map(|place| place.children.len()).sum();
            assert_eq!(children, leaders.len() - 1);
            let most = places.iter().map(|place| place.children.len()).max().unwrap();
            assert!(most <= count.next_power_of_two().ilog2() as usize, "{count}: {most}");
        }
    }

    #[test]
    fn one_of_each_clock_keeps_a_line() {
        let groups = ClockGroups { first_of: vec![0, 0, 2, 2, 4], has_referee: vec![true; 5] };
        assert_eq!(groups.leaders(), [0, 2, 4]);
        assert!(!groups.is_one());
        assert!(ClockGroups { first_of: vec![0; 3], has_referee: vec![true; 3] }.is_one());
    }
}
