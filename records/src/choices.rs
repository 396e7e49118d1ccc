//! `choices.json`: what a run has chosen at each point, and what that rests on. A run ends in this
//! document; exports read it and choose nothing by themselves.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Collective, Method, Point, document::Document, platform::Platform, summary::Way};

/// What a run has chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choices {
    /// What was measured on.
    pub platform: Platform,
    /// What a message size means, per collective.
    pub message_size: BTreeMap<Collective, String>,
    /// Among all methods measured, however they are loaded: ascending by collective, procs, bytes.
    pub choices: Vec<Chosen>,
    /// What was confirmed for each way of loading, in the same order.
    #[serde(default)]
    pub confirmed: Vec<Confirmed>,
}

/// What jobs made after the choice have left of it, for one way of loading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmed {
    /// How it is loaded.
    pub way: Way,
    /// At every point of [`Choices::choices`], what that way can't load being left to the default.
    pub choices: Vec<Chosen>,
}

/// What is to run at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// The collective.
    pub collective: Collective,
    /// Communicator size.
    pub procs: u32,
    /// Message size.
    pub bytes: u64,
    /// What to load; [`Method::Default`] where the library is left alone.
    pub method: Method,
    /// Its time, as it is believed or was measured.
    pub seconds: f64,
    /// The default's time, as it is believed or was measured.
    pub default_seconds: f64,
    /// What these times rest on.
    pub rests_on: Evidence,
    /// Standard deviation of the logarithm of `default_seconds / seconds`, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<f64>,
    /// The next best method, where another one was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<RunnerUp>,
    /// Why the point is left to the default, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_because: Option<String>,
}

/// What a choice rests on, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// A model's prediction.
    Predicted,
    /// Times of the method, forced.
    Measured,
    /// Times of the default with the choice loaded, in jobs that had no part in choosing it.
    Confirmed,
}

/// The method that came next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunnerUp {
    /// Which.
    pub method: Method,
    /// Its time, as it is believed or was measured.
    pub seconds: f64,
}

impl Chosen {
    /// Where.
    pub fn point(&self) -> Point {
        let Chosen { collective, procs, bytes, .. } = *self;
        Point { collective, procs, bytes }
    }

    fn validate(&self) -> Result<(), (&'static str, String)> {
        for (field, seconds) in [
            ("seconds", Some(self.seconds)),
            ("default_seconds", Some(self.default_seconds)),
            ("next.seconds", self.next.as_ref().map(|next| next.seconds)),
        ] {
            if seconds.is_some_and(|seconds| !(seconds.is_finite() && seconds > 0.0)) {
                return Err((field, "wanted a time above 0".into()));
            }
        }
        if self.procs == 0 {
            return Err(("procs", "wanted at least 1".into()));
        }
        match self.doubt {
            Some(doubt) if !(doubt.is_finite() && doubt >= 0.0) => {
                Err(("doubt", "wanted a standard deviation of 0 or more".into()))
            }
            _ => Ok(()),
        }
    }
}

impl Choices {
    /// What was confirmed for a way of loading; nothing where nothing was.
    pub fn confirmed(&self, way: Way) -> Option<&[Chosen]> {
        let of_way = self.confirmed.iter().find(|confirmed| confirmed.way == way);
        of_way.map(|confirmed| confirmed.choices.as_slice())
    }
}

impl Document for Choices {
    const SCHEMA: &'static str = "colibri/choices/1";

    fn validate(&self) -> Result<(), (String, String)> {
        validate("choices", &self.choices)?;
        let confirmed = self.confirmed.iter().enumerate();
        confirmed.into_iter().try_for_each(|(index, confirmed)| {
            validate(&format!("confirmed[{index}].choices"), &confirmed.choices)
        })
    }
}

fn validate(field: &str, choices: &[Chosen]) -> Result<(), (String, String)> {
    let mut points = BTreeSet::new();
    for (index, chosen) in choices.iter().enumerate() {
        let wrong = |(inner, problem)| (format!("{field}[{index}].{inner}"), problem);
        chosen.validate().map_err(wrong)?;
        if !points.insert(chosen.point()) {
            return Err((format!("{field}[{index}]"), "this point was chosen for before".into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::document;

    fn chosen(bytes: u64) -> Chosen {
        Chosen {
            collective: Collective::Bcast,
            procs: 8,
            bytes,
            method: "own:pipeline,segment=8KiB".parse().unwrap(),
            seconds: 0.01,
            default_seconds: 0.04,
            rests_on: Evidence::Confirmed,
            doubt: Some(0.02),
            next: Some(RunnerUp { method: Method::Default, seconds: 0.04 }),
            default_because: None,
        }
    }

    fn choices(chosen: Vec<Chosen>) -> Choices {
        let confirmed = vec![Confirmed { way: Way::Preload, choices: chosen.clone() }];
        let message_size = BTreeMap::new();
        Choices { platform: Platform::default(), message_size, choices: chosen, confirmed }
    }

    #[test]
    fn it_reads_back_and_a_way_is_found() {
        let written = choices(vec![chosen(64), chosen(128)]);
        let text = document::text(&written).unwrap();
        let read: Choices = document::parse(&text, Path::new("x")).unwrap();
        assert_eq!(read, written);
        assert_eq!(read.confirmed(Way::Preload).unwrap().len(), 2);
        assert_eq!(read.confirmed(Way::Rules), None);
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_field() {
        let cases: [(&str, Vec<Chosen>); 4] = [
            ("choices[0].seconds", vec![Chosen { seconds: 0.0, ..chosen(1) }]),
            ("choices[0].procs", vec![Chosen { procs: 0, ..chosen(1) }]),
            ("choices[0].doubt", vec![Chosen { doubt: Some(-1.0), ..chosen(1) }]),
            ("choices[1]: this point", vec![chosen(1), chosen(1)]),
        ];
        for (wanted, chosen) in cases {
            let text = document::text(&choices(chosen)).unwrap();
            let error = document::parse::<Choices>(&text, Path::new("x")).unwrap_err().to_string();
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
    }
}
