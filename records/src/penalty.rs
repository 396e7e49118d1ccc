//! `penalty.json`: what it costs to follow a decision function instead of the measured best.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Collective, Method, Point, document::Document, platform::Platform, quantity::format_bytes,
};

/// The penalty of every decision function at every measured point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Penalties {
    /// What was measured on.
    pub platform: Platform,
    /// How a call was timed.
    pub timing: String,
    /// How the best was chosen and timed.
    pub best: String,
    /// What a message size means, per collective.
    pub message_size: BTreeMap<Collective, String>,
    /// One per collective and decision function.
    pub summaries: Vec<PenaltySummary>,
    /// Summaries by regions of the map: one per collective, decision function and region that holds
    /// points, ascending in this order.
    pub regions: Vec<RegionSummary>,
    /// How far the models' times are from the measured ones, in ascending order of their fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prediction_errors: Vec<PredictionError>,
    /// What of these numbers is noise, per collective.
    pub noise: Vec<Noise>,
    /// On a virtual cluster: how much slower its links are when all are busy.
    pub busy_links: Vec<BusyLinks>,
    /// One per collective, decision function, procs and bytes, ascending in this order.
    pub penalties: Vec<Penalty>,
    /// What a reader must know: cells without observations, methods that fell back, ...
    pub warnings: Vec<String>,
}

impl Document for Penalties {
    const SCHEMA: &'static str = "colibri/penalty/1";
}

/// One decision function's penalties, summed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PenaltySummary {
    pub collective: Collective,
    /// Whose decision: a model's name, `default`, `measured`, or the name given to a file.
    pub decided_by: String,
    /// Points with a penalty.
    pub points: u32,
    /// Points that have none, since the method decided for was not measured there.
    pub not_measured: u32,
    #[serde(flatten)]
    pub penalty: Distribution,
}

/// One decision function's penalties in one region of the map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegionSummary {
    /// Which part of the map.
    #[serde(flatten)]
    pub region: Region,
    /// What following the decision function costs there.
    #[serde(flatten)]
    pub summary: PenaltySummary,
}

/// How far a model's times are from the measured ones: |predicted / measured - 1|, as a fraction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictionError {
    pub collective: Collective,
    /// The model's name.
    pub model: String,
    /// Of one method; none: of all that the model knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// In one part of the map; none: in all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
    pub times: u32,
    pub median: f64,
    /// 95th percentile.
    pub percentile_95: f64,
}

/// A rectangle of a penalty map; what bounds it belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Region {
    /// Smallest communicator.
    pub first_procs: u32,
    /// Largest communicator; none where there is no bound.
    pub last_procs: Option<u32>,
    /// Smallest message.
    pub first_bytes: u64,
    /// Largest message; none where there is no bound.
    pub last_bytes: Option<u64>,
}

impl Region {
    /// First communicator sizes of the regions.
    const PROCS: [u32; 4] = [1, 5, 17, 65];
    /// First message sizes of the regions.
    const BYTES: [u64; 3] = [0, 8 << 10, 64 << 10];

    /// The region that a point lies in: up to 4, 16, 64 and more processes; messages below 8 KiB,
    /// below 64 KiB, and longer ones.
    pub fn containing(procs: u32, bytes: u64) -> Self {
        let (first_procs, next_procs) = enclosing(&Self::PROCS, procs);
        let (first_bytes, next_bytes) = enclosing(&Self::BYTES, bytes);
        Region {
            first_procs,
            last_procs: next_procs.map(|next| next - 1),
            first_bytes,
            last_bytes: next_bytes.map(|next| next - 1),
        }
    }

    /// `5 to 16`, `65 and more`.
    pub fn procs_in_words(&self) -> String {
        match self.last_procs {
            Some(last) => format!("{} to {last}", self.first_procs),
            None => format!("{} and more", self.first_procs),
        }
    }

    /// `below 8 KiB`, `8 KiB to below 64 KiB`, `64 KiB and more`.
    pub fn bytes_in_words(&self) -> String {
        let (first, next) = (self.first_bytes, self.last_bytes.map(|last| last.saturating_add(1)));
        match (first, next.map(format_bytes)) {
            (0, Some(next)) => format!("below {next}"),
            (first, Some(next)) => format!("{} to below {next}", format_bytes(first)),
            (first, None) => format!("{} and more", format_bytes(first)),
        }
    }
}

/// The greatest of ascending beginnings that is not above a value, and the one after it.
fn enclosing<T: Copy + PartialOrd>(beginnings: &[T], value: T) -> (T, Option<T>) {
    let after = beginnings.partition_point(|beginning| *beginning <= value).max(1);
    (beginnings[after - 1], beginnings.get(after).copied())
}

/// How values are distributed. All are fractions: 0.05 is 5 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Arithmetic mean.
    pub mean: f64,
    pub median: f64,
    /// 95th percentile.
    pub percentile_95: f64,
    pub greatest: f64,
}

/// What two halves of the same observations say differently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    pub collective: Collective,
    pub points: u32,
    /// Penalty of the method that is best by one half, timed on the other, against the best of that
    /// other half; both ways. What a penalty against the measured best cannot fall below but by
    /// luck.
    pub choice: Distribution,
    /// Relative difference of one method's times by the two halves, over all methods at all points.
    pub halves: Distribution,
}

/// How long a message takes when every one of `procs` nodes sends one to the next and receives one
/// from the one before, all at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BusyLinks {
    /// Nodes.
    pub procs: u32,
    /// Size of each message.
    pub bytes: u64,
    /// Median time until the last has its message.
    pub seconds: f64,
    /// That time over the one among few nodes. Above 1 it is the machine's doing: on links that are
    /// real the number of nodes would not matter.
    pub slowdown: f64,
}

/// What a decision costs at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Penalty {
    #[serde(flatten)]
    pub point: Point,
    /// Whose decision: a model's name, `default`, `measured`, or the name given to a file.
    pub decided_by: String,
    /// The method decided for.
    pub decided: Method,
    /// Its measured time: the midmean of all observations.
    pub decided_seconds: f64,
    /// The method with the least midmean over all observations.
    pub best: Method,
    /// Time of the best, from observations that did not choose it, so that decided / best - 1 is the
    /// penalty.
    pub best_seconds: f64,
    /// decided / best - 1; slightly negative by chance.
    pub penalty: f64,
    /// The machine under the virtual cluster does not carry all links at once here; see
    /// [`Penalties::busy_links`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub machine_limited: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_lies_in_one_region_and_on_the_right_side_of_its_bounds() {
        for (procs, bytes, wanted) in [
            (1, 0, "1 to 4 below 8 KiB"),
            (4, 8191, "1 to 4 below 8 KiB"),
            (5, 8192, "5 to 16 8 KiB to below 64 KiB"),
            (16, 65_535, "5 to 16 8 KiB to below 64 KiB"),
            (17, 65_536, "17 to 64 64 KiB and more"),
            (u32::MAX, u64::MAX, "65 and more 64 KiB and more"),
        ] {
            let region = Region::containing(procs, bytes);
            let words = format!("{} {}", region.procs_in_words(), region.bytes_in_words());
            assert_eq!(words, wanted);
            assert!(region.first_procs <= procs && region.first_bytes <= bytes);
            assert!(region.last_procs.is_none_or(|last| procs <= last));
            assert!(region.last_bytes.is_none_or(|last| bytes <= last));
        }
    }

    #[test]
    fn a_region_stands_beside_its_numbers_in_the_file() {
        let one = RegionSummary {
            region: Region::containing(70, 10_000),
            summary: PenaltySummary {
                collective: Collective::Bcast,
                decided_by: "default".into(),
                points: 3,
                not_measured: 1,
                penalty: Distribution {
                    mean: 0.25,
                    median: 0.25,
                    percentile_95: 0.5,
                    greatest: 0.5,
                },
            },
        };
        let text = serde_json::to_value(&one).unwrap();
        assert_eq!((&text["first_bytes"], &text["last_bytes"]), (&8192.into(), &65_535.into()));
        assert_eq!((&text["last_procs"], &text["mean"]), (&serde_json::Value::Null, &0.25.into()));
        assert_eq!(serde_json::from_value::<RegionSummary>(text).unwrap(), one);
    }
}
