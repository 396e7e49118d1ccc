use std::{fmt, str::FromStr};

use records::unknown;

/// What times are predicted by: the parameters of a model of the network, and an evaluator. Each
/// pair in use has a name of its own, which files and flags take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Model {
    /// Hockney: a message of m bytes takes alpha + beta m.
    Hockney,
    /// LogP: LogGP with G = 0. It knows no message size.
    LogP,
    /// LogGP: a message of m bytes takes L + 2 o + (m - 1) G.
    LogGp,
    /// PLogP: a message of m bytes takes L + g(m).
    PLogP,
    /// PLogP's parameters, g(m, k) among them, under [`Evaluator::Refined`].
    Refined,
    /// PLogP's parameters, g(m, k) among them, under [`Evaluator::Simulation`].
    Simulated,
}

/// A model of the network: what point-to-point messages cost by some parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkModel {
    /// alpha and beta.
    Hockney,
    /// L, o and g.
    LogP,
    /// L, o, g and G.
    LogGp,
    /// L, and os, or and g as functions of the size.
    PLogP,
}

/// How the time of a collective is found from the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evaluator {
    /// By the closed forms of the paper's tables.
    Tables,
    /// By forms that are derived from the schedules in use
    /// ([`closed_forms::refined`](crate::closed_forms::refined)); by simulation where there is none.
    Refined,
    /// By the simulator: the schedules message by message.
    Simulation,
}

impl Evaluator {
    /// Whether it follows the schedules, and so knows what has one and nothing else.
    pub const fn follows_schedules(self) -> bool {
        !matches!(self, Evaluator::Tables)
    }
}

impl Model {
    /// All of them.
    pub const ALL: [Model; 6] =
        [Model::Hockney, Model::LogP, Model::LogGp, Model::PLogP, Model::Refined, Model::Simulated];

    /// Those of the paper's tables.
    pub const TABLES: [Model; 4] = [Model::Hockney, Model::LogP, Model::LogGp, Model::PLogP];

    /// The model of the network whose parameters it takes.
    #[inline]
    pub const fn network(self) -> NetworkModel {
        match self {
            Model::Hockney => NetworkModel::Hockney,
            Model::LogP => NetworkModel::LogP,
            Model::LogGp => NetworkModel::LogGp,
            Model::PLogP | Model::Refined | Model::Simulated => NetworkModel::PLogP,
        }
    }

    /// How it finds times from them.
    #[inline]
    pub const fn evaluator(self) -> Evaluator {
        match self {
            Model::Hockney | Model::LogP | Model::LogGp | Model::PLogP => Evaluator::Tables,
            Model::Refined => Evaluator::Refined,
            Model::Simulated => Evaluator::Simulation,
        }
    }

    /// The name used in files and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Model::Hockney => "hockney",
            Model::LogP => "logp",
            Model::LogGp => "loggp",
            Model::PLogP => "plogp",
            Model::Refined => "refined",
            Model::Simulated => "simulated",
        }
    }
}

/// Which version of the closed forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Forms {
    /// As the paper prints them, garbled characters resolved.
    Printed,
    /// Repaired where the printed form contradicts its own model or a message-level evaluation.
    #[default]
    Corrected,
}

impl Forms {
    /// Both.
    pub const ALL: [Forms; 2] = [Forms::Printed, Forms::Corrected];

    /// The name used in files and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Forms::Printed => "printed",
            Forms::Corrected => "corrected",
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Forms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Model {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        by_name("model", text, &Self::ALL.map(|model| (model.name(), model)))
    }
}

impl FromStr for Forms {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        by_name("forms", text, &Self::ALL.map(|forms| (forms.name(), forms)))
    }
}

/// The value of that name; else an error that offers the nearest name and lists all.
pub(crate) fn by_name<T: Copy>(
    what: &str,
    given: &str,
    known: &[(&'static str, T)],
) -> Result<T, String> {
    known.iter().find(|(name, _)| *name == given).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        unknown(what, given, &names)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for model in Model::ALL {
            assert_eq!(model.to_string().parse(), Ok(model));
        }
        for forms in Forms::ALL {
            assert_eq!(forms.to_string().parse(), Ok(forms));
        }
        assert_eq!(Forms::default(), Forms::Corrected);
    }

    #[test]
    fn wrong_names_are_answered_with_the_nearest() {
        let error = "hockny".parse::<Model>().unwrap_err();
        assert!(error.contains("did you mean 'hockney'?"), "{error}");
        let error = "print".parse::<Forms>().unwrap_err();
        assert!(error.contains("did you mean 'printed'?"), "{error}");
        let error = "xyzzy".parse::<Model>().unwrap_err();
        assert!(
            error.contains("known: hockney, logp, loggp, plogp, refined, simulated"),
            "{error}"
        );
    }
}
