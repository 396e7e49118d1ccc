//! Decision functions, asked at the points that were measured.

use std::collections::BTreeMap;

use records::{Method, Point, choices::Chosen, decisions::Decision};

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

    /// One for each model in the list. Points that were not measured are left out.
    pub fn of_decisions(decisions: &[Decision], samples: &Samples) -> Vec<Self> {
        let mut functions: BTreeMap<&str, BTreeMap<_, _>> = BTreeMap::new();
        for decision in decisions {
            let point = decision.point;
            if samples.at(point).next().is_some() {
                let decided = functions.entry(&decision.model).or_default();
                decided.insert(point, Ok(decision.method.clone()));
            }
        }
        let function = |(name, decided): (&str, _)| DecisionFunction { name: name.into(), decided };
        functions.into_iter().map(function).collect()
    }
}
