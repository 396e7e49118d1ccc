//! `check.json`: whether what a tuning chose still holds, at a later date.

use serde::{Deserialize, Serialize};

use crate::{
    Method, Point, disturbance::Disturbance, document::Document, platform::Platform,
    summary::LoadWay,
};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// When it began (UTC), such as `2026-11-27T01:15:00`.
    pub date: String,
    /// What all points together say.
    pub verdict: CheckVerdict,
    /// Why, in a sentence.
    pub reason: String,
    /// Whether and why to tune again; nothing where that would gain nothing that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tune_again: Option<String>,
    /// How the choices were loaded.
    pub way: LoadWay,
    /// The file or directory that was loaded, relative to the run's directory.
    pub file: String,
    /// What was measured on.
    pub platform: Platform,
    /// What is another one than when the run was begun.
    pub changes: Vec<Change>,
    /// In the order of collective, layout and size.
    pub points: Vec<CheckedPoint>,
    /// Points that replace the default for which the budget had no time.
    pub left_out: u32,
    /// Pairs of jobs, one without and one with the file loaded.
    pub pairs: u32,
    /// How much slower than the default a call may be, relatively: what is less is no harm.
    pub tolerance: f64,
    /// Probability of calling anything slower that is not, over all points together (Holm).
    pub level: f64,
    /// Calls made with the file loaded for which it was seen what ran.
    pub calls_observed: u64,
    /// Those of them that ran what was chosen.
    #[serde(rename = "calls_as_told")]
    pub calls_as_selected: u64,
    /// What others took of the processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
}

/// What a check says of all points together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// Nothing is slower than the default, and enough could be judged.
    Holds,
    /// Too little could be judged.
    CannotTell,
    /// What is loaded makes a call slower than the default.
    Harm,
}

impl CheckVerdict {
    /// The exit code of `colibri check`.
    pub const fn exit_code(self) -> u8 {
        match self {
            CheckVerdict::Holds => 0,
            CheckVerdict::CannotTell => 3,
            CheckVerdict::Harm => 4,
        }
    }

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            CheckVerdict::Holds => "the choices hold",
            CheckVerdict::CannotTell => "can't tell",
            CheckVerdict::Harm => "a choice does harm",
        }
    }
}

/// A property of the machines or the MPI library that is another one than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Such as `MPI library`.
    pub what: String,
    pub before: String,
    pub now: String,
}

/// Why a point was timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckedFor {
    /// What is loaded there was confirmed to be faster.
    Confirmed,
    /// The method changes between it and a neighbouring size.
    Switch,
    /// It is left to the default: both jobs should take as long.
    Sentinel,
}

/// What a check says of one point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointVerdict {
    /// What is loaded is faster than the default; where that is the default, it takes as long.
    Holds,
    /// It is shown to gain less than the tolerance, and not to be slower by more.
    NoLongerFaster,
    /// It is slower than the default by more than the tolerance.
    NowSlower,
    /// Neither is shown.
    CannotTell,
}

impl PointVerdict {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            PointVerdict::Holds => "holds",
            PointVerdict::NoLongerFaster => "no longer faster",
            PointVerdict::NowSlower => "now slower",
            PointVerdict::CannotTell => "can't tell",
        }
    }
}

/// A point, timed again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckedPoint {
    #[serde(flatten)]
    pub point: Point,
    /// What is loaded there; [`Method::Default`] where the library is left alone.
    pub method: Method,
    pub timed_for: CheckedFor,
    pub verdict: PointVerdict,
    /// Why it is undecided, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// default / loaded when it was tuned, where it was timed then.
    pub speed_up_before: Option<f64>,
    /// default / loaded now: geometric mean over the pairs of jobs.
    pub speed_up: Option<f64>,
    /// Its interval: 95 % for all points together.
    pub interval: Option<[f64; 2]>,
    /// Of a point that is now slower: the corrected probability of this or more, were it slower by no more than the
    /// tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Pairs of jobs that others did not disturb.
    pub pairs: u32,
    /// The default's time when it was tuned, as it was believed or measured.
    pub default_seconds_before: Option<f64>,
    /// The default's time now (midmean).
    pub default_seconds: Option<f64>,
    /// The time with the file loaded (midmean).
    pub loaded_seconds: Option<f64>,
}

impl Check {
    /// At how many points this was found.
    pub fn count(&self, verdict: PointVerdict) -> usize {
        self.points.iter().filter(|one| one.verdict == verdict).count()
    }
}

impl Document for Check {
    const SCHEMA: &'static str = "colibri/check/1";
}
