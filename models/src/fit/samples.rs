//! The observations by what was timed, and how certain their centres are.

use std::collections::BTreeMap;

use rand::Rng;
use records::observation::{ObservationStatus, PointToPoint, PointToPointKind};

use super::{
    error::FitError,
    sample::{LEAST, Sample},
    words::kind_name,
};

/// Below this many that are neither late nor disturbed, late ones are used too, and then disturbed ones.
const ENOUGH: usize = 5;

/// What was timed: kind, message size, messages in the train.
pub(super) type SampleKey = (PointToPointKind, u64, u32);

/// In place of a train's messages: by how much longer the longest took than the shortest in the same
/// visit. What the machine does drifts from visit to visit, and is in both of one visit alike.
pub(super) const LONGEST_LESS_SHORTEST: u32 = 0;

/// The usable observations, in the order of their keys.
#[derive(Debug)]
pub(super) struct PairSamples(Vec<(SampleKey, Sample)>);

/// The centres of [`PairSamples`], in the same order.
#[derive(Debug)]
pub(super) struct Centres<'a> {
    samples: &'a PairSamples,
    pub(super) seconds: Vec<f64>,
}

impl Centres<'_> {
    /// What was timed, and where its centre stands.
    pub(super) fn keys(&self) -> impl Iterator<Item = (SampleKey, usize)> {
        self.samples.0.iter().enumerate().map(|(index, (key, _))| (*key, index))
    }
}

/// When an observation was made: its job, its visit; and what it says.
type TimedObservation = (u32, u32, f64);

/// What was timed in time, late and disturbed, by key; without warm-ups.
fn by_key(
    observations: &[PointToPoint],
) -> Result<BTreeMap<SampleKey, [Vec<TimedObservation>; 3]>, FitError> {
    let mut sets: BTreeMap<SampleKey, [Vec<TimedObservation>; 3]> = BTreeMap::new();
    for observation in observations {
        let &PointToPoint {
            kind, bytes, messages, job, visit, repetition, seconds, status, ..
        } = observation;
        if !(seconds.is_finite() && seconds >= 0.0) {
            return Err(FitError::Observation { kind, bytes, repetition, seconds });
        }
        let [in_time, late, disturbed] = sets.entry((kind, bytes, messages)).or_default();
        match status {
            ObservationStatus::Ok => in_time.push((job, visit, seconds)),
            ObservationStatus::Late => late.push((job, visit, seconds)),
            ObservationStatus::Disturbed => disturbed.push((job, visit, seconds)),
            ObservationStatus::Warmup => {}
        }
    }
    Ok(sets)
}

impl PairSamples {
    pub(super) fn collect(
        observations: &[PointToPoint],
        warnings: &mut Vec<String>,
    ) -> Result<Self, FitError> {
        let (mut with_late, mut with_disturbed) = (Vec::new(), Vec::new());
        let (mut rough, mut left_out) = (Vec::new(), Vec::new());
        let mut samples: BTreeMap<SampleKey, Sample> = BTreeMap::new();
        let mut trains: BTreeMap<u64, Vec<Vec<TimedObservation>>> = BTreeMap::new();
        for (key, [mut times, late, disturbed]) in by_key(observations)? {
            for (others, with_others) in [(late, &mut with_late), (disturbed, &mut with_disturbed)]
            {
                if times.len() < ENOUGH && !others.is_empty() {
                    times.extend(others);
                    with_others.push(key);
                }
            }
            match times.len() {
                0..LEAST => left_out.push(key),
                LEAST..ENOUGH => rough.push(key),
                _ => {}
            }
            if times.len() >= LEAST {
                samples.insert(key, Sample::new(&times));
                if key.0 == PointToPointKind::Train {
                    trains.entry(key.1).or_default().push(times);
                }
            }
        }
        for (bytes, trains) in trains {
            if let [short, .., long] = &trains[..] {
                let key = (PointToPointKind::Train, bytes, LONGEST_LESS_SHORTEST);
                samples.extend(Sample::of_differences(long, short).map(|sample| (key, sample)));
            }
        }
        for (problem, keys) in [
            ("late observations were used, as there are no others", with_late),
            (
                "observations were used during which other processes used too much of the processors, \
                 as there are few others",
                with_disturbed,
            ),
            ("few observations, so the intervals are rough", rough),
            ("fewer than 3 observations, so they were excluded", left_out),
        ] {
            if !keys.is_empty() {
                warnings.push(format!("{problem}: {}", list(&keys)));
            }
        }
        Ok(PairSamples(samples.into_iter().collect()))
    }

    pub(super) fn centres(&self) -> Centres<'_> {
        let seconds = self.0.iter().map(|(_, sample)| sample.centre()).collect();
        Centres { samples: self, seconds }
    }

    /// How many visits were disturbed, and how many there were.
    pub(super) fn disturbed(&self) -> (usize, usize) {
        let timed = self.0.iter().filter(|((.., messages), _)| *messages != LONGEST_LESS_SHORTEST);
        Sample::all_disturbed(timed.map(|(_, sample)| sample))
    }

    /// Centres that as many observations could have had.
    pub(super) fn redraw(&self, random: &mut impl Rng) -> Centres<'_> {
        let seconds = self.0.iter().map(|(_, sample)| sample.redraw(random)).collect();
        Centres { samples: self, seconds }
    }
}

/// How many kinds of observations a note names.
const NAMED: usize = 4;

/// `round-trip of 1024 bytes, train of 20 x 0 bytes, 51 more`.
fn list(keys: &[SampleKey]) -> String {
    let one = |(kind, bytes, messages): &SampleKey| match kind {
        PointToPointKind::Clock => kind_name(*kind).to_owned(),
        PointToPointKind::Train => format!("train of {messages} x {bytes} bytes"),
        _ => format!("{} of {bytes} bytes", kind_name(*kind)),
    };
    let mut names: Vec<String> = keys.iter().take(NAMED).map(one).collect();
    if let more @ 1.. = keys.len().saturating_sub(NAMED) {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}
