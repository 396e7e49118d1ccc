//! `learned/*.json`: what applications have shown of methods while they ran.
//!
//! The preload library writes it where `COLIBRI_ADAPT` names a directory; the next job begins with it, and `report`
//! and `export` read it. One file is of one MPI library on one kind of processor. [`store`] keeps them.

pub mod store;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::IgnoredAny};

use crate::{
    Collective, Layout, Method, Point,
    document::Document,
    profile,
    size_classes::{check_class, check_overlaps},
};

/// What applications have shown of the calls of one MPI library on one kind of processor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    /// Checked and written by [`document`](crate::document); named here since no other field may
    /// stand in the file.
    #[serde(default, skip_serializing)]
    schema: IgnoredAny,
    /// The MPI library and its version, such as `Open MPI 4.1.4`.
    pub library: String,
    /// The processor's name as the system gives it; empty where it gives none.
    pub processor: String,
    /// Jobs that this is of.
    pub jobs: u64,
    /// One entry for each layout, collective and class of sizes.
    pub classes: Vec<LearnedClass>,
}

/// Calls of one collective, on communicators of one layout, with messages of one class of sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnedClass {
    /// `bytes` is the least message of the class; see `choosing::exploring::SizeClass`.
    #[serde(flatten)]
    pub point: Point,
    /// The largest message of the class, in bytes.
    pub last_bytes: u64,
    /// How often it was called; a call of all ranks of a communicator counts once.
    pub calls: u64,
    /// The time of one call by the library's default, the mean of the ranks, in seconds; 0 where it was not timed.
    pub default_seconds: f64,
    /// What is used: [`Method::Default`] where nothing is known to be faster.
    pub chosen: Method,
    /// The methods that were tried.
    pub tried: Vec<LearnedMethod>,
}

/// How a method compares with the default, in runs of calls by turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnedMethod {
    pub method: Method,
    #[serde(flatten)]
    pub ratios: LogRatios,
}

/// ln(time of a method / time of what it was compared with) of some trials: runs of calls by both next to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LogRatios {
    pub trials: u64,
    /// Their mean; `log_ratio` in files.
    #[serde(rename = "log_ratio")]
    pub mean: f64,
    /// The sum of the squared deviations from the mean.
    pub squares: f64,
}

/// So many trials of a method are kept: older ones fade, so that a cluster that changes is learnt anew. The
/// standard error of 64 is an eighth of their scatter, which tells gains of a few per cent.
pub const MOST_TRIALS: u64 = 64;

/// So many classes are kept, those in which most time is spent: a file of some megabytes, read at each start. Programs
/// that make communicators of ever new layouts would let it grow without end.
const MOST_CLASSES: usize = 10_000;

/// Times of the default that differ by more than this factor are of a cluster that has changed.
const CHANGED: f64 = 1.5;

/// Times of the default so far are worth at most so many times the calls of those that come.
const OLDER_PER_NEWER: u64 = 3;

/// The natural logarithm of a factor of 1e30: no two times of calls are further apart.
const GREATEST_LOG_RATIO: f64 = 69.0;

impl Document for Learned {
    const SCHEMA: &'static str = "colibri/learned/1";

    fn validate(&self) -> Result<(), (String, String)> {
        if self.library.trim().is_empty() {
            let problem = "is empty; expected the MPI library and its version, e.g. Open MPI 4.1.4";
            return Err(("library".into(), problem.into()));
        }
        for (index, class) in self.classes.iter().enumerate() {
            class
                .validate()
                .map_err(|(field, problem)| (format!("classes[{index}].{field}"), problem))?;
        }
        check_overlaps(self.classes.iter().map(|class| (class.point, class.last_bytes)))
    }
}

impl Learned {
    /// Nothing yet.
    pub fn new(library: String, processor: String) -> Self {
        Learned { schema: IgnoredAny, library, processor, jobs: 0, classes: Vec::new() }
    }

    /// The class of a message; none where nothing was learned of it.
    pub fn find(
        &self,
        collective: Collective,
        layout: Layout,
        bytes: u64,
    ) -> Option<&LearnedClass> {
        let line = (collective, layout);
        self.classes.iter().find(|class| class.point.line() == line && class.holds(bytes))
    }

    /// Adds what a job has learned on one more communicator: evidence of one time, of which none is older.
    pub fn pool(&mut self, class: LearnedClass) {
        match self.classes.iter_mut().find(|there| there.is_same_class(&class)) {
            None => self.classes.push(class),
            Some(there) => there.pool(class),
        }
    }

    /// What was learned since `earlier`, which is this document as the same job had it before: for a job that adds to
    /// the [`store`] more than once.
    #[must_use]
    pub fn since(&self, earlier: &Learned) -> Self {
        let before: BTreeMap<Point, &LearnedClass> =
            earlier.classes.iter().map(|class| (class.point, class)).collect();
        let since = self.classes.iter().map(|class| match before.get(&class.point) {
            Some(before) if before.is_same_class(class) => class.since(before),
            _ => class.clone(),
        });
        let classes = since.filter(|class| class.calls > 0).collect();
        Learned { jobs: self.jobs.saturating_sub(earlier.jobs), classes, ..self.clone() }
    }

    /// Adds what later jobs have learned, with the same library on the same processors. Evidence from before fades
    /// beyond [`MOST_TRIALS`]; of a class that both have, the choice is the newer one's if that has compared anything.
    pub fn merge(&mut self, newer: &Learned) {
        self.jobs = self.jobs.saturating_add(newer.jobs);
        let mut classes = BTreeMap::new();
        for class in self.classes.drain(..) {
            classes.insert(class.point, class);
        }
        for class in &newer.classes {
            let mut merged = class.clone();
            match classes.remove(&class.point) {
                Some(older) if older.is_same_class(class) => merged = older.merged(class),
                _ => {}
            }
            merged.fade();
            // Of classes that another version of Colibri has cut otherwise, which are by points of the same line.
            let line = Point { bytes: 0, ..class.point }..=Point {
                bytes: class.last_bytes,
                ..class.point
            };
            let overlap = |(point, older): (&Point, &LearnedClass)| {
                (older.last_bytes >= class.point.bytes).then_some(*point)
            };
            let overlapping: Vec<Point> = classes.range(line).filter_map(overlap).collect();
            overlapping.iter().for_each(|point| drop(classes.remove(point)));
            classes.insert(class.point, merged);
        }
        let mut classes: Vec<LearnedClass> = classes.into_values().collect();
        if classes.len() > MOST_CLASSES {
            classes.sort_by(|a, b| b.seconds().total_cmp(&a.seconds()));
            classes.truncate(MOST_CLASSES);
            classes.sort_by_key(|class| class.point);
        }
        self.classes = classes;
    }
}

impl LearnedClass {
    fn validate(&self) -> Result<(), (String, String)> {
        let wrong = |field: &str, problem: String| Err((field.to_owned(), problem));
        let collective = self.point.collective;
        check_class(self.point, self.last_bytes)?;
        if let Err(problem) = check_at_least_0(self.default_seconds) {
            return wrong("default_seconds", problem);
        }
        if self.chosen != Method::Default
            && let Err(problem) = profile::check_replacement(collective, &self.chosen)
        {
            return wrong("chosen", problem);
        }
        for (index, tried) in self.tried.iter().enumerate() {
            let field = |name: &str| format!("tried[{index}].{name}");
            if tried.method == Method::Default {
                let problem =
                    "is default, which methods are compared with; expected another method";
                return wrong(&field("method"), problem.into());
            }
            if let Err(problem) = profile::check_replacement(collective, &tried.method) {
                return wrong(&field("method"), problem);
            }
            if self.tried.iter().take(index).any(|before| before.method == tried.method) {
                let problem =
                    format!("is {}, a second time; expected each method once", tried.method);
                return wrong(&field("method"), problem);
            }
            let LogRatios { mean, squares, .. } = tried.ratios;
            if mean.is_nan() || mean.abs() > GREATEST_LOG_RATIO {
                let problem = format!(
                    "is {mean}; expected a logarithm of a ratio of times, between -{GREATEST_LOG_RATIO} and \
                     {GREATEST_LOG_RATIO}, e.g. -0.7"
                );
                return wrong(&field("log_ratio"), problem);
            }
            if let Err(problem) = check_at_least_0(squares) {
                return wrong(&field("squares"), problem);
            }
        }
        Ok(())
    }

    /// Whether a message is in it.
    pub fn holds(&self, bytes: u64) -> bool {
        (self.point.bytes..=self.last_bytes).contains(&bytes)
    }

    /// The evidence for what is chosen.
    pub fn evidence(&self) -> Option<&LearnedMethod> {
        self.find(&self.chosen)
    }

    /// How a method compares; none that was not tried.
    pub fn find(&self, method: &Method) -> Option<&LearnedMethod> {
        self.tried.iter().find(|tried| tried.method == *method)
    }

    fn find_mut(&mut self, method: &Method) -> Option<&mut LogRatios> {
        let tried = self.tried.iter_mut().find(|tried| tried.method == *method);
        tried.map(|tried| &mut tried.ratios)
    }

    /// What all its calls take by the default, in seconds.
    pub fn seconds(&self) -> f64 {
        self.calls as f64 * self.default_seconds
    }

    fn is_same_class(&self, other: &LearnedClass) -> bool {
        self.point == other.point && self.last_bytes == other.last_bytes
    }

    /// Evidence of one time: all of it counts alike. What is chosen most calls have.
    fn pool(&mut self, other: LearnedClass) {
        let [here, there] = [&*self, &other].map(|class| (class.default_seconds, class.calls));
        self.default_seconds = mean_by_calls(here, there);
        if other.calls > self.calls {
            self.chosen = other.chosen;
        }
        self.calls = self.calls.saturating_add(other.calls);
        for tried in other.tried {
            match self.find_mut(&tried.method) {
                None => self.tried.push(tried),
                Some(there) => there.pool(tried.ratios),
            }
        }
    }

    fn since(&self, earlier: &LearnedClass) -> Self {
        let tried = self.tried.iter().map(|tried| {
            let before = earlier.find(&tried.method).map(|before| before.ratios);
            let ratios = tried.ratios.since(before.unwrap_or_default());
            LearnedMethod { method: tried.method.clone(), ratios }
        });
        LearnedClass {
            calls: self.calls.saturating_sub(earlier.calls),
            tried: tried.filter(|tried| tried.ratios.trials > 0).collect(),
            ..self.clone()
        }
    }

    fn merged(mut self, newer: &LearnedClass) -> Self {
        self.default_seconds = self.default_seconds_with(newer);
        self.calls = self.calls.saturating_add(newer.calls);
        if newer.tried.iter().any(|tried| tried.ratios.trials > 0) {
            self.chosen = newer.chosen.clone();
        }
        for tried in &newer.tried {
            match self.find_mut(&tried.method) {
                None => self.tried.push(tried.clone()),
                Some(older) => {
                    older.fade_to(MOST_TRIALS.saturating_sub(tried.ratios.trials));
                    older.pool(tried.ratios);
                }
            }
        }
        self
    }

    /// The mean of both, weighted by calls. Where they are far apart the newer alone: the mean of two clusters is
    /// neither's time. The older calls weigh a few times the newer ones at most, else a slow change would show only
    /// after as many calls as there ever were.
    fn default_seconds_with(&self, newer: &LearnedClass) -> f64 {
        let [before, now] = [self.default_seconds, newer.default_seconds];
        if now <= 0.0 {
            return before;
        }
        if !(now / CHANGED..=now * CHANGED).contains(&before) {
            return now;
        }
        let weight = self.calls.min(newer.calls.saturating_mul(OLDER_PER_NEWER));
        mean_by_calls((before, weight), (now, newer.calls))
    }

    fn fade(&mut self) {
        self.tried.iter_mut().for_each(|tried| tried.ratios.fade_to(MOST_TRIALS));
    }
}

/// What was not timed, or not called, counts nothing.
fn mean_by_calls(one: (f64, u64), other: (f64, u64)) -> f64 {
    let weight = |(seconds, calls): (f64, u64)| if seconds > 0.0 { calls as f64 } else { 0.0 };
    let [first, second] = [weight(one), weight(other)];
    match first + second > 0.0 {
        true => one.0 + (other.0 - one.0) * (second / (first + second)),
        false => one.0.max(other.0),
    }
}

impl LogRatios {
    /// One trial more.
    pub fn add(&mut self, log_ratio: f64) {
        self.pool(LogRatios { trials: 1, mean: log_ratio, squares: 0.0 });
    }

    /// Adds trials of which none is older.
    ///
    /// Source: Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.
    pub fn pool(&mut self, other: LogRatios) {
        let trials = self.trials.saturating_add(other.trials);
        if trials == 0 {
            return;
        }
        let share = other.trials as f64 / trials as f64;
        let apart = other.mean - self.mean;
        self.squares += other.squares + apart * apart * self.trials as f64 * share;
        self.mean += apart * share;
        self.trials = trials;
    }

    /// The trials since `earlier`: what [`Self::pool`] with them makes this of it.
    fn since(self, earlier: LogRatios) -> Self {
        let trials = self.trials.saturating_sub(earlier.trials);
        if trials == 0 || earlier.trials == 0 {
            return LogRatios { trials, ..self };
        }
        let (all, before, now) = (self.trials as f64, earlier.trials as f64, trials as f64);
        let mean = self.mean + (self.mean - earlier.mean) * (before / now);
        let apart = mean - earlier.mean;
        let squares = self.squares - earlier.squares - apart * apart * before * now / all;
        LogRatios { trials, mean, squares: squares.max(0.0) }
    }

    /// Keeps so many trials at most: as sure of it as these alone would be.
    pub fn fade_to(&mut self, trials: u64) {
        if self.trials > trials {
            self.squares *= trials as f64 / self.trials as f64;
            self.trials = trials;
        }
    }
}

fn check_at_least_0(number: f64) -> Result<(), String> {
    match number.is_finite() && number >= 0.0 {
        true => Ok(()),
        false => Err(format!("is {number}; expected a number of 0 or more, e.g. 0.000025")),
    }
}

#[cfg(test)]
mod tests;
