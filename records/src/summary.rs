//! `summary.json`: what a tuning run gained.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};

use crate::{
    Collective, Method, Point, Root,
    confirmed::{Advice, ConfirmedRange, LoadVerdict, LoadedCounts, PairedSpeedUp},
    disturbance::Disturbance,
    document::Document,
    platform::Platform,
    usage::{Calls, Usage},
};

/// What the library's default costs and what the tuned choice costs, measured with what is to be
/// loaded, in jobs made after the choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuningSummary {
    /// What was measured on.
    pub platform: Platform,
    /// What a message size means, per collective.
    pub message_size: BTreeMap<Collective, String>,
    /// Points decided on, those left to the default included.
    pub points: u32,
    /// By the MPI library's own means where it has any, else by the preload library.
    #[serde(flatten)]
    pub loading: Loading,
    /// By the preload library, where `loading` is another way.
    pub preload: Option<Loading>,
    /// By both at once, where methods of both kinds were chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub both: Option<Loading>,
    /// What an application that was traced can expect.
    pub application: Option<Application>,
    /// What the choices are expected to cost still, where the measuring was focused.
    pub regret: Option<Regret>,
    /// What others took of the processors while it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
    /// What was measured to be the fastest, and cannot be loaded by the MPI library's own means; the greatest
    /// gain first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<WithheldMethod>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// A method that was measured to be the fastest at some points and cannot be loaded there, for one reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WithheldMethod {
    /// Where it was the fastest.
    pub points: u32,
    /// The greatest measured there, over the default.
    pub speed_up: f64,
    /// Why it is not loaded.
    pub reason: String,
}

impl Document for TuningSummary {
    const SCHEMA: &'static str = "colibri/summary/1";

    fn validate(&self) -> Result<(), (String, String)> {
        let of_ways = [
            ("counts", Some(&self.loading)),
            ("preload.counts", self.preload.as_ref()),
            ("both.counts", self.both.as_ref()),
        ];
        for (field, loading) in of_ways {
            let checked = loading.map_or(Ok(()), |loading| loading.counts.check());
            checked.map_err(|problem| (field.to_owned(), problem))?;
        }
        Ok(())
    }
}

impl TuningSummary {
    /// Every way in which what was chosen can be loaded.
    pub fn loadings(&self) -> impl Iterator<Item = &Loading> {
        std::iter::once(&self.loading).chain(&self.preload).chain(&self.both)
    }

    /// The way of loading with the greatest confirmed gain; where none is advised, the first that would be after a longer
    /// run.
    pub fn advised(&self) -> &Loading {
        let is_advised = |loading: &&Loading| loading.verdict.advice == Advice::Load;
        let by_gain = |a: &&Loading, b: &&Loading| a.mean_speed_up.total_cmp(&b.mean_speed_up);
        let may_follow = |loading: &&Loading| {
            matches!(loading.verdict.advice, Advice::Repeat { .. } | Advice::Tune)
        };
        self.loadings()
            .filter(is_advised)
            .max_by(by_gain)
            .or_else(|| self.loadings().find(may_follow))
            .unwrap_or(&self.loading)
    }
}

/// How what was chosen gets into a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadWay {
    /// A rules file, which the MPI library reads.
    #[default]
    Rules,
    /// Profiles, which the preload library reads.
    Preload,
    /// Both at once, each with what it is better at.
    Both,
}

impl LoadWay {
    /// Whether it loads a method by one of its [parts](Self::parts): of both the library's own by rules, all
    /// others by profiles.
    pub fn loads_by(self, part: LoadWay, method: &Method) -> bool {
        match self {
            LoadWay::Both => (part == LoadWay::Rules) == method.is_native(),
            one => one == part,
        }
    }

    /// The single ways that it consists of.
    pub const fn parts(self) -> &'static [LoadWay] {
        match self {
            LoadWay::Rules => &[LoadWay::Rules],
            LoadWay::Preload => &[LoadWay::Preload],
            LoadWay::Both => &[LoadWay::Rules, LoadWay::Preload],
        }
    }
}

/// One way to load what was chosen, and what that gains.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Loading {
    pub way: LoadWay,
    /// The file or directory to load, relative to the run's directory.
    pub file: String,
    /// Whether to load it.
    pub verdict: LoadVerdict,
    /// At how many points it replaces the default.
    pub counts: LoadedCounts,
    /// Where it was confirmed to be faster, and how surely.
    pub ranges: Vec<ConfirmedRange>,
    /// Points at which it was confirmed to be faster and was timed, ascending.
    pub gains: Vec<Gain>,
    /// Points taken out because what was loaded was not faster there than the default.
    pub rejected: Vec<RemovedPoint>,
    /// Points whose choice cannot be loaded in this way, which are left to the default.
    pub unexpressed: Vec<NotLoaded>,
    /// Geometric mean of the confirmed speed-ups over all other points that were measured, the rest counting 1.
    pub mean_speed_up: f64,
    /// Its interval (95 %); absent where nothing was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_interval: Option<[f64; 2]>,
    /// Calls made with it loaded for which it was seen what ran.
    pub calls_observed: u64,
    /// Those of them that ran what it says.
    #[serde(rename = "calls_as_told")]
    pub calls_as_selected: u64,
    /// Whether what was loaded in the last round of jobs made any call slower.
    pub harm: Option<Harm>,
    /// How long the traced application is expected to run with it, from `MPI_Init` to `MPI_Finalize`,
    /// in seconds.
    pub application_seconds: Option<f64>,
    /// What it gains with each root that was measured, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<RootGain>,
}

/// What is gained where collectives have this root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RootGain {
    pub root: Root,
    /// Points replaced that were timed with it.
    pub points: u32,
    /// Geometric mean over them.
    pub speed_up: f64,
}

/// What a rank of a traced application spends in collectives, on average over the ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Application {
    pub trace: String,
    /// From `MPI_Init` to `MPI_Finalize`.
    pub seconds: f64,
    /// Of these, in collectives.
    pub collective_seconds: f64,
    /// Of these, in calls that tuning can replace.
    pub tunable_seconds: f64,
    /// How it ran without and with what is [advised](TuningSummary::advised), where `tune` ran it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<ApplicationTurn>,
}

/// An application run twice, one run right after the other: without and with what is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ApplicationTurn {
    pub without: ApplicationRun,
    pub with: ApplicationRun,
}

/// One run of an application.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ApplicationRun {
    /// From `MPI_Init` to `MPI_Finalize`, on the first rank.
    pub seconds: f64,
    /// What a rank spends of that in collectives, on average over the ranks.
    pub collective_seconds: f64,
    /// Calls of collectives; one of all ranks of a communicator counts once.
    pub calls: u64,
    /// Those of them that the preload library carried out by a method of a profile.
    pub replaced_calls: u64,
}

impl ApplicationRun {
    /// By the trace of the run.
    pub fn of(usage: &Usage) -> Self {
        let calls = |wanted: fn(&&Calls) -> bool| {
            usage.calls.iter().filter(wanted).map(|calls| calls.calls).sum()
        };
        ApplicationRun {
            seconds: usage.seconds,
            collective_seconds: usage.collective_seconds(),
            calls: calls(|_| true),
            replaced_calls: calls(|calls| calls.method != Method::Default),
        }
    }
}

/// How much slower than the best methods the chosen ones are expected to be, relative to their
/// times, by the models and what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Regret {
    /// Over all points, weighted by what an application spends there where that is known.
    pub mean: f64,
    /// At the worst point.
    pub greatest: f64,
}

/// Whether what is loaded makes calls slower than the default: at the points at which it replaces it,
/// from jobs that had no part in the choice. Points that were slower at all are then left to the
/// default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Harm {
    pub points: u32,
    /// Turns of jobs without and with it loaded, one right after the other: the samples.
    pub jobs: u32,
    /// The relative slowdown that is allowed.
    pub tolerance: f64,
    /// Level of the one-sided tests of more than that, over all points together (Holm): Student's t of the
    /// logarithms of the turns' ratios.
    pub level: f64,
    /// The greatest relative slowdown (mean over the turns), significant or not; negative where all gained.
    pub greatest_slowdown: Option<f64>,
    /// The relative slowdown that would have been found with a probability of 80 %, at half of the points;
    /// absent where there are too few turns to tell.
    pub detectable: Option<f64>,
    /// Points that are significantly slower by more than what is allowed.
    pub slower: Vec<Slower>,
    /// Points that fewer than two turns compared, so that nothing could be significant.
    pub too_few: u32,
}

impl Harm {
    /// default / loaded where that is significantly slower.
    pub fn speed_up(&self, point: Point) -> Option<f64> {
        let found = self.slower.iter().find(|slower| slower.point == point);
        found.map(|slower| 1.0 / (1.0 + slower.slowdown))
    }
}

/// A point that was made slower by what was loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slower {
    #[serde(flatten)]
    pub point: Point,
    /// What is loaded there.
    pub method: Method,
    /// Median time of the library's default.
    pub default_seconds: f64,
    /// Median time with it loaded.
    pub loaded_seconds: f64,
    /// loaded / default - 1.
    pub slowdown: f64,
    /// Corrected probability of this or more, if it were slower by no more than is allowed.
    pub p_value: f64,
}

/// What is gained at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    #[serde(flatten)]
    pub point: Point,
    /// What replaces the default.
    pub method: Method,
    /// Time of the library's default (midmean).
    pub default_seconds: f64,
    /// Time with the file loaded (midmean).
    pub tuned_seconds: f64,
    /// Of this size by itself. Its interval (95 %) may reach below 1 where only the range that the size belongs to is
    /// surely faster.
    #[serde(flatten, serialize_with = "speed_up_first")]
    pub alone: PairedSpeedUp,
}

/// In the order that files of gains have.
fn speed_up_first<S: Serializer>(of: &PairedSpeedUp, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(3))?;
    map.serialize_entry("speed_up", &of.speed_up)?;
    map.serialize_entry("pairs", &of.pairs)?;
    map.serialize_entry("interval", &of.interval)?;
    map.end()
}

/// A point that the confirmation took out of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemovedPoint {
    #[serde(flatten)]
    pub point: Point,
    /// What had been measured best.
    pub method: Method,
    /// default / tuned: estimated from all measurements and confirming jobs; where the last jobs alone show
    /// harm or no gain, their ratio.
    pub speed_up: f64,
}

/// A choice that cannot be loaded in one of the ways.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotLoaded {
    #[serde(flatten)]
    pub point: Point,
    /// What was chosen.
    pub method: Method,
    /// Why it cannot be loaded.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::document;

    fn loading(way: LoadWay, file: &str) -> Loading {
        Loading {
            way,
            file: file.into(),
            gains: vec![Gain {
                point: Point::flat(Collective::Bcast, 8, 65536),
                method: "own:pipeline,segment=8KiB".parse().unwrap(),
                default_seconds: 0.04,
                tuned_seconds: 0.01,
                alone: PairedSpeedUp { pairs: 3, speed_up: 4.0, interval: [3.5, 4.6] },
            }],
            verdict: LoadVerdict { advice: Advice::Load, reason: "It is faster.".into() },
            counts: LoadedCounts { points: 3, confirmed: 1, ..LoadedCounts::default() },
            ranges: Vec::new(),
            rejected: Vec::new(),
            unexpressed: Vec::new(),
            mean_speed_up: 1.5,
            mean_interval: Some([1.4, 1.6]),
            calls_observed: 8,
            calls_as_selected: 8,
            harm: None,
            application_seconds: None,
            roots: vec![RootGain { root: Root::Last, points: 1, speed_up: 1.5 }],
        }
    }

    #[test]
    fn both_ways_read_back_and_the_first_is_at_the_top() {
        let summary = TuningSummary {
            platform: Platform::default(),
            message_size: BTreeMap::new(),
            points: 3,
            loading: loading(LoadWay::Rules, "openmpi.rules"),
            preload: Some(loading(LoadWay::Preload, "profiles")),
            both: None,
            application: None,
            regret: None,
            disturbance: None,
            withheld: Vec::new(),
            warnings: Vec::new(),
        };
        let text = document::text(&summary).unwrap();
        assert_eq!(document::parse::<TuningSummary>(&text, Path::new("x")).unwrap(), summary);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["file"], "openmpi.rules");
        assert_eq!(value["preload"]["gains"][0]["speed_up"], 4.0);
        let files: Vec<&str> = summary.loadings().map(|loading| loading.file.as_str()).collect();
        assert_eq!(files, ["openmpi.rules", "profiles"]);
        let wrong = text.replacen("\"pairs\": 3", "\"pairs\": true", 1);
        let error = document::parse::<TuningSummary>(&wrong, Path::new("x")).unwrap_err();
        assert!(error.to_string().contains("field gains[0].pairs: "), "{error}");
        let wrong = text.replacen("\"confirmed\": 1,", "\"confirmed\": 4,", 1);
        let error = document::parse::<TuningSummary>(&wrong, Path::new("x")).unwrap_err();
        let wanted = "field counts: replaces the default at 4 of 3 points";
        assert!(error.to_string().contains(wanted), "{error}");
        // The first way's fields stand beside the summary's own.
        let wrong = text.replacen("\"way\": \"rules\"", "\"way\": 7", 1);
        let line = 1 + wrong.lines().position(|line| line.contains("\"way\": 7")).unwrap();
        let error = document::parse::<TuningSummary>(&wrong, Path::new("x")).unwrap_err();
        let wanted = format!("x, line {line}, field way: ");
        assert!(error.to_string().starts_with(&wanted), "{wanted} {error}");
        let gain = &text[text.find("\"tuned_seconds\"").unwrap()..];
        let places = ["speed_up", "pairs", "interval"].map(|name| gain.find(name).unwrap());
        assert!(places.is_sorted(), "as files have always had them: {gain}");
    }
}
