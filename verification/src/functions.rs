//! Decision functions, asked at the points that were measured.

use std::collections::BTreeMap;

use records::{Method, Point, choices::Chosen};

use choosing::samples::Samples;

/// What a decision function takes at the points that were measured.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionFunction {
    /// What it is called in files and figures.
    pub name: String,
    /// Per point a method; in words where it is none that could have been measured.
    pub decided: BTreeMap<Point, Result<Method, String>>,
}

impl DecisionFunction {
    /// The library's own: whatever it takes when nothing is said.
    pub fn default(samples: &Samples) -> Self {
        let decided = samples.points().map(|point| (point, Ok(Method::Default))).collect();
        DecisionFunction { name: "default".into(), decided }
    }

    /// What was chosen by measurements, to be exported.
    pub fn measured(choices: &[Chosen]) -> Self {
        let decided = choices.iter().map(|choice| (choice.point, Ok(choice.method.clone())));
        DecisionFunction { name: "measured".into(), decided: decided.collect() }
    }

    /// What the library does with a rules file loaded.
    pub fn of_rules(
        name: &str,
        rules: impl Fn(Point) -> Result<Method, String>,
        samples: &Samples,
    ) -> Self {
        let decided = samples.points().map(|point| (point, rules(point))).collect();
        DecisionFunction { name: name.into(), decided }
    }

    /// What was chosen, at the points that were measured.
    pub fn of_chosen(name: &str, chosen: &[&Chosen], samples: &Samples) -> Self {
        let measured = chosen.iter().filter(|chosen| samples.at(chosen.point).next().is_some());
        let decided = measured.map(|chosen| (chosen.point, Ok(chosen.method.clone())));
        DecisionFunction { name: name.into(), decided: decided.collect() }
    }

    /// One for each model that has chosen at points that were measured.
    pub fn of_models(chosen: &[Chosen], samples: &Samples) -> Vec<Self> {
        let mut models: BTreeMap<&str, Vec<&Chosen>> = BTreeMap::new();
        for one in chosen {
            models.entry(one.model.as_deref().unwrap_or_default()).or_default().push(one);
        }
        let function = |(name, chosen): (&str, Vec<_>)| Self::of_chosen(name, &chosen, samples);
        let functions = models.into_iter().map(function);
        functions.filter(|function| !function.decided.is_empty()).collect()
    }
}
