//! `candidates.json`: which methods are predicted to be the fastest, best first, and how long each may take.
//!
//! `decide --candidates DIR` writes it; the preload library tries these first where `COLIBRI_ADAPT` names the directory.

use std::{collections::BTreeSet, path::Path};

use serde::{Deserialize, Serialize, de::IgnoredAny};

use crate::{
    Collective, FileError, Layout, Method, Point,
    document::{self, Document},
    profile,
    size_classes::{check_class, check_overlaps},
};

/// Its name in the directory.
pub const FILE: &str = "candidates.json";

/// Methods to try, by layout, collective and class of sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidates {
    /// Checked and written by [`document`]; named here since no other field may stand in the file.
    #[serde(default, skip_serializing)]
    schema: IgnoredAny,
    /// The calibration that they were predicted by.
    pub calibration: String,
    /// The model that predicted them.
    pub model: String,
    /// The MPI library that was calibrated; empty where that is not known.
    pub library: String,
    pub classes: Vec<CandidateClass>,
}

/// What to try for messages of one class of sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateClass {
    /// `bytes` is the least message of the class; see `choosing::exploring::SizeClass`.
    #[serde(flatten)]
    pub point: Point,
    /// The largest message of the class, in bytes.
    pub last_bytes: u64,
    /// The one that is predicted to be the fastest first.
    pub methods: Vec<PredictedCandidate>,
}

/// A method, and what is predicted of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictedCandidate {
    pub method: Method,
    /// The predicted time of a message in the middle of the class.
    pub seconds: f64,
    /// No message of the class takes longer than this, as far as the prediction's error is known.
    pub max_seconds: f64,
}

impl Document for Candidates {
    const SCHEMA: &'static str = "colibri/candidates/1";

    fn validate(&self) -> Result<(), (String, String)> {
        for (index, class) in self.classes.iter().enumerate() {
            class
                .validate()
                .map_err(|(field, problem)| (format!("classes[{index}].{field}"), problem))?;
        }
        check_overlaps(self.classes.iter().map(|class| (class.point, class.last_bytes)))
    }
}

impl Candidates {
    /// None yet.
    pub fn new(calibration: String, model: String, library: String) -> Self {
        Candidates { schema: IgnoredAny, calibration, model, library, classes: Vec::new() }
    }

    /// What a directory holds; nothing where there is no such file.
    ///
    /// # Errors
    /// As [`document::read`].
    pub fn read(directory: &Path) -> Result<Option<Self>, FileError> {
        let path = directory.join(FILE);
        match path.try_exists().map_err(|error| FileError::io(&path, "read", &error))? {
            true => document::read(&path).map(Some),
            false => Ok(None),
        }
    }

    /// What to try for a message, best first; nothing where nothing was predicted.
    pub fn find(
        &self,
        collective: Collective,
        layout: Layout,
        bytes: u64,
    ) -> &[PredictedCandidate] {
        let is_its = |class: &&CandidateClass| {
            class.point.line() == (collective, layout)
                && (class.point.bytes..=class.last_bytes).contains(&bytes)
        };
        self.classes.iter().find(is_its).map_or(&[], |class| &class.methods)
    }
}

impl CandidateClass {
    fn validate(&self) -> Result<(), (String, String)> {
        check_class(self.point, self.last_bytes)?;
        let mut seen = BTreeSet::new();
        for (index, PredictedCandidate { method, seconds, max_seconds }) in
            self.methods.iter().enumerate()
        {
            let wrong = |name: &str, problem| Err((format!("methods[{index}].{name}"), problem));
            if let Err(problem) = profile::check_replacement(self.point.collective, method) {
                return wrong("method", problem);
            }
            if !seen.insert(method) {
                return wrong(
                    "method",
                    format!("is {method}, a second time; expected each method once"),
                );
            }
            if !(seconds.is_finite() && *seconds >= 0.0) {
                return wrong(
                    "seconds",
                    format!("is {seconds}; expected a number of 0 or more, e.g. 0.000025"),
                );
            }
            if !(max_seconds.is_finite() && max_seconds >= seconds) {
                return wrong(
                    "max_seconds",
                    format!("is {max_seconds}; expected {seconds} (seconds) or more"),
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Candidates {
        let candidate = |method: &str, seconds: f64| PredictedCandidate {
            method: method.parse().unwrap(),
            seconds,
            max_seconds: 3.0 * seconds,
        };
        let class = |bytes: u64| CandidateClass {
            point: Point::new(Collective::Bcast, "8x4".parse().unwrap(), bytes),
            last_bytes: 2 * bytes - 1,
            methods: vec![candidate("own:binomial", 0.25), candidate("own:linear", 0.5)],
        };
        let new = Candidates::new("RUN".into(), "refined".into(), "Open MPI 4.1.4".into());
        Candidates { classes: vec![class(1024), class(2048)], ..new }
    }

    #[test]
    fn what_is_written_reads_back_and_a_message_finds_its_class() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Candidates::read(directory.path()).unwrap(), None);
        document::write(&directory.path().join(FILE), &sample()).unwrap();
        assert_eq!(Candidates::read(directory.path()).unwrap(), Some(sample()));
        let found = |layout: &str, bytes| {
            let candidates = sample();
            candidates.find(Collective::Bcast, layout.parse().unwrap(), bytes).len()
        };
        assert_eq!([1023, 1024, 4095, 4096].map(|bytes| found("8x4", bytes)), [0, 2, 2, 0]);
        assert_eq!(found("8x4:cyclic", 1024), 0, "another layout");
    }

    #[test]
    fn faults_are_named_with_field_and_what_would_be_right() {
        for (from, to, wanted) in [
            (
                "\"bytes\": 2048",
                "\"bytes\": 2047",
                "classes[1].bytes: is 2047, which is in another class of bcast on 8x4 (1024 to 2047 bytes)",
            ),
            (
                "\"last_bytes\": 2047",
                "\"last_bytes\": 1",
                "classes[0].last_bytes: is 1; expected 1024",
            ),
            (
                "own:linear",
                "own:binomial",
                "classes[0].methods[1].method: is own:binomial, a second time",
            ),
            ("own:linear", "default", "classes[0].methods[1].method: is default"),
            (
                "\"seconds\": 0.25",
                "\"seconds\": -0.25",
                "classes[0].methods[0].seconds: is -0.25; expected a number of 0 or more",
            ),
            (
                "\"max_seconds\": 0.75",
                "\"max_seconds\": 0.1",
                "classes[0].methods[0].max_seconds: is 0.1; expected 0.25",
            ),
            ("\"model\"", "\"mdoel\"", "mdoel: unknown field"),
        ] {
            let text = document::text(&sample()).unwrap();
            assert!(text.contains(from), "{from}");
            let text = text.replacen(from, to, 1);
            let error =
                document::parse::<Candidates>(&text, Path::new("c.json")).unwrap_err().to_string();
            assert!(error.starts_with("c.json") && error.contains(wanted), "{to}: {error}");
        }
    }
}
