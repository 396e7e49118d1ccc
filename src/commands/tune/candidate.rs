//! What was chosen, as it can be loaded in one way.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use records::{
    Method, Point, document, openmpi,
    summary::{Gain, Loading, NotLoaded, TakenOut, Way},
    usage::Usage,
};
use verification::{confirmation::Confirmation, selection::Choice, statistics::geometric_mean};

use super::confirm::Round;
use crate::stages::{
    export::{Format, replacement},
    exporting::format,
};

/// One way to load what was chosen, with what is left of the choices.
pub struct Candidate {
    /// At every point.
    pub choices: Vec<Choice>,
    /// What is told of it.
    pub loading: Loading,
    /// What is believed of its gains.
    confirmation: Confirmation,
}

/// Doubt of the gains of all choices of one method together, as a standard deviation of the
/// logarithm: what was measured with a method forced may not hold where a file makes the library
/// take it. Over all choices of a method, jobs with rules loaded gained what hundreds of visits with it
/// forced had shown but for 0.03 (root mean square), once what the jobs differed by elsewhere was taken
/// off.
const SAME_IMPLEMENTATION: f64 = 0.03;
/// The same where Colibri's schedules are loaded, and the library's algorithms of the same names
/// were measured.
const OTHER_IMPLEMENTATION: f64 = 0.15;

impl Candidate {
    /// The choices, as far as they can be loaded in this way. `doubts` are standard deviations of
    /// the logarithms of what they gain.
    pub fn new(way: Way, choices: &[Choice], doubts: &BTreeMap<Point, f64>) -> Self {
        let mut choices = choices.to_vec();
        let mut unexpressed = Vec::new();
        for choice in &mut choices {
            let told = match way {
                Way::Rules => Ok(choice.method.clone()),
                Way::Preload => replacement(choice.point, &choice.method),
            };
            let Point { collective, procs, bytes } = choice.point;
            let taken = told.unwrap_or_else(|reason| {
                let method = choice.method.clone();
                unexpressed.push(NotLoaded { collective, procs, bytes, method, reason });
                Method::Default
            });
            choice.method = taken;
        }
        let loading = Loading {
            way,
            file: file(way).into(),
            gains: Vec::new(),
            taken_out: Vec::new(),
            unexpressed,
            mean_speed_up: 1.0,
            calls_observed: 0,
            calls_as_told: 0,
            harm: None,
            application_seconds: None,
        };
        let other = match way {
            Way::Rules => SAME_IMPLEMENTATION,
            Way::Preload => OTHER_IMPLEMENTATION,
        };
        let confirmation = Confirmation::new(&choices, doubts, other);
        Candidate { choices, loading, confirmation }
    }

    /// For the names of files.
    pub fn name(&self) -> &'static str {
        match self.loading.way {
            Way::Rules => "rules",
            Way::Preload => "preload",
        }
    }

    /// The file or directory that is loaded.
    pub fn file(&self) -> &'static str {
        file(self.loading.way)
    }

    pub fn format(&self) -> Format {
        format(self.loading.way)
    }

    /// The points at which the default is replaced.
    pub fn replaced(&self) -> impl Iterator<Item = &Choice> {
        self.choices.iter().filter(|choice| choice.method != Method::Default)
    }

    /// Leaves to the default what [a round](Confirmation::taken_out) does not confirm, and what the
    /// last one shows to be significantly slower.
    pub fn take_out(&mut self, round: &Round, is_last: bool) {
        let Some(loaded) = round.loaded(self.loading.way) else { return };
        let replaced = self.replaced().map(|choice| choice.point).collect();
        self.confirmation.observe(&round.default, loaded, &replaced);
        if is_last {
            // The rounds before took part in choosing.
            self.loading.harm = round.harm(self.loading.way, self.replaced());
        }
        for choice in self.choices.iter_mut().filter(|choice| choice.method != Method::Default) {
            let harm = self.loading.harm.as_ref().and_then(|harm| harm.speed_up(choice.point));
            let taken_out = || self.confirmation.taken_out(choice.point, is_last);
            let Some(speed_up) = harm.or_else(taken_out) else { continue };
            self.loading.taken_out.push(TakenOut {
                collective: choice.point.collective,
                procs: choice.point.procs,
                bytes: choice.point.bytes,
                method: std::mem::replace(&mut choice.method, Method::Default),
                speed_up,
            });
        }
    }

    /// Books what a round shows to be gained, and whether what was loaded was obeyed; gives what a
    /// reader must know. `trace` is what the preload library saw.
    ///
    /// # Errors
    /// The trace is there and cannot be read.
    pub fn tell(&mut self, round: &Round, trace: &Path) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        let way = self.loading.way;
        for choice in self.choices.iter_mut().filter(|choice| choice.method != Method::Default) {
            let Point { collective, procs, bytes } = choice.point;
            let Some((default_seconds, tuned_seconds)) = round.times(way, choice.point) else {
                warnings.push(format!(
                    "{collective} of {bytes} bytes on {procs}: the budget ended before {} was \
                     confirmed there, so it is left to the default",
                    self.loading.file
                ));
                choice.method = Method::Default;
                continue;
            };
            let speed_up = default_seconds / tuned_seconds;
            if speed_up <= 1.0 {
                self.loading.taken_out.push(TakenOut {
                    collective,
                    procs,
                    bytes,
                    method: std::mem::replace(&mut choice.method, Method::Default),
                    speed_up,
                });
                continue;
            }
            (choice.default_seconds, choice.seconds) = (default_seconds, tuned_seconds);
            self.loading.gains.push(Gain {
                collective,
                procs,
                bytes,
                method: choice.method.clone(),
                default_seconds,
                tuned_seconds,
                speed_up,
            });
        }
        let gains = self.loading.gains.iter().map(|gain| gain.speed_up);
        let left_alone = self.choices.len() - self.loading.gains.len();
        let all: Vec<f64> = gains.chain(std::iter::repeat_n(1.0, left_alone)).collect();
        self.loading.mean_speed_up = geometric_mean(&all).unwrap_or(1.0);
        let (observed, as_told) = match way {
            Way::Rules => self.ran_by_rules(round),
            Way::Preload if trace.exists() => self.ran_by_profiles(&document::read(trace)?),
            Way::Preload => (0, 0),
        };
        (self.loading.calls_observed, self.loading.calls_as_told) = (observed, as_told);
        if as_told < observed {
            warnings.push(format!(
                "with {} loaded {} of {observed} calls ran another method than it names",
                self.loading.file,
                observed - as_told,
            ));
        }
        Ok(warnings)
    }

    /// Calls of which the tracer saw what ran, and those that ran what the rules say.
    fn ran_by_rules(&self, round: &Round) -> (u64, u64) {
        let (mut observed, mut as_told) = (0, 0);
        for choice in self.replaced() {
            let Point { collective, procs, bytes } = choice.point;
            let rows = round.rows(Way::Rules).filter(|row| {
                (row.collective, row.procs, row.bytes) == (collective, procs, bytes)
                    && !row.ran.is_empty()
            });
            for row in rows {
                observed += 1;
                as_told += u64::from(openmpi::ran_as_asked(collective, &choice.method, &row.ran));
            }
        }
        (observed, as_told)
    }

    /// The same by what the preload library says that it did.
    fn ran_by_profiles(&self, usage: &Usage) -> (u64, u64) {
        let (mut observed, mut as_told) = (0, 0);
        for choice in self.replaced() {
            let Point { collective, procs, bytes } = choice.point;
            let here = usage.calls.iter().filter(|calls| {
                (calls.collective, calls.procs, calls.bytes) == (collective, procs, bytes)
            });
            for calls in here {
                observed += calls.calls;
                as_told += if calls.method == choice.method { calls.calls } else { 0 };
            }
        }
        (observed, as_told)
    }
}

fn file(way: Way) -> &'static str {
    match way {
        Way::Rules => "openmpi.rules",
        Way::Preload => "profiles",
    }
}
