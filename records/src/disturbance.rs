//! What others took from the processors while a record was made, and what follows from it.
//!
//! A record has, between its observations, lines `#@disturbance={...}`. Each tells of the observations
//! since the one before: the *stretch* that it closes. A virtual machine's host may give the processors
//! to other guests (*stolen* time), and other processes may use them. What was measured meanwhile tells of
//! them and not of the network, so that observations of a stretch of which more than [`MOST_TAKEN`]
//! was taken are [`Disturbed`](crate::observation::ObservationStatus::Disturbed).

use serde::{Deserialize, Serialize};

use crate::number::check_reading;

/// The key of a stretch's line.
pub const KEY: &str = "disturbance";
/// The key of the line that tells how long was waited for others to end.
pub const WAITED: &str = "waited_seconds";

/// More than this share of the processors taken by others disturbs what is measured: see
/// docs/methods/noise.md for what a share costs.
pub const MOST_TAKEN: f64 = 0.05;

/// From this share of the time on that was disturbed, results begin with a warning.
const OFTEN: f64 = 0.05;

/// What was seen on the machine from which most was taken during a stretch of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stretch {
    /// How long it was.
    pub seconds: f64,
    /// Name of the machine.
    pub host: String,
    pub processors: u32,
    /// Ranks of the job on it.
    pub ranks: u32,
    /// Share of its processors' time that its hypervisor gave to others; absent where the kernel does
    /// not tell.
    pub stolen: Option<f64>,
    /// Share of its processors' time that processes other than the job's used; absent where the
    /// kernel does not say.
    pub others: Option<f64>,
    /// How often the system took the processor from a rank that had not finished; of all ranks the
    /// one to which it happened most.
    pub involuntary_switches: u64,
    /// Greatest one-minute load average of any machine of the job; absent where the kernel does not say.
    pub load: Option<f64>,
}

impl Stretch {
    /// From a line's value.
    ///
    /// # Errors
    /// It is none; says what is wrong.
    pub fn parse(value: &str) -> Result<Self, String> {
        let stretch: Stretch = serde_json::from_str(value).map_err(|error| error.to_string())?;
        check_reading(stretch.seconds).map_err(|problem| format!("seconds {problem}"))?;
        if stretch.seconds < 0.0 {
            return Err("seconds is below 0".into());
        }
        for (name, share) in [("stolen", stretch.stolen), ("others", stretch.others)] {
            if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
                return Err(format!("{name}: expected a share from 0 to 1"));
            }
        }
        Ok(stretch)
    }

    /// Share of the processors' time that was taken from the ranks. What other processes use of
    /// processors that the ranks leave free is not. Absent where neither is known.
    pub fn taken(&self) -> Option<f64> {
        let free = 1.0 - f64::from(self.ranks) / f64::from(self.processors.max(1));
        let from_ranks = |others: f64| (others - free.max(0.0)).max(0.0);
        match (self.stolen, self.others.map(from_ranks)) {
            (None, None) => None,
            (stolen, others) => Some(stolen.unwrap_or(0.0) + others.unwrap_or(0.0)),
        }
    }

    /// Whether what was measured meanwhile is not to be believed.
    pub fn is_disturbed(&self) -> bool {
        self.taken().is_some_and(|taken| taken > MOST_TAKEN)
    }
}

/// How much was taken by others while all records of a run were made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// How long was measured in stretches of which something is recorded.
    pub seconds: f64,
    /// Mean share of the processors' time that others took; absent where the kernel does not say.
    pub taken: Option<f64>,
    /// Share of the time in which they took more than `most_taken`.
    pub disturbed: f64,
    /// Above which share observations are left out and made again.
    pub most_taken: f64,
    /// How often a second the system took the processor from the rank to which that happened most.
    pub involuntary_switches_per_second: f64,
    /// How long was waited for others to end.
    pub waited_seconds: f64,
}

impl Disturbance {
    /// Of a run's stretches; nothing of none.
    pub fn from_stretches(stretches: &[Stretch], waited_seconds: f64) -> Option<Self> {
        let sum = |of: &dyn Fn(&Stretch) -> f64| stretches.iter().map(of).sum::<f64>();
        let seconds = sum(&|stretch| stretch.seconds);
        let known = sum(&|stretch| stretch.taken().map_or(0.0, |_| stretch.seconds));
        let taken = sum(&|stretch| stretch.taken().unwrap_or(0.0) * stretch.seconds);
        let disturbed = sum(&|stretch| f64::from(stretch.is_disturbed()) * stretch.seconds);
        (seconds > 0.0).then(|| Disturbance {
            seconds,
            taken: (known > 0.0).then(|| taken / known),
            disturbed: disturbed / seconds,
            most_taken: MOST_TAKEN,
            involuntary_switches_per_second: sum(&|of| of.involuntary_switches as f64) / seconds,
            waited_seconds,
        })
    }

    /// The share of the processors' time that others took, where they disturbed often; nothing where the machines
    /// were calm.
    pub fn often_taken(&self) -> Option<f64> {
        self.taken.filter(|_| self.disturbed >= OFTEN)
    }

    /// What results have to begin with; nothing where the machines were calm.
    pub fn warning(&self) -> Option<String> {
        let Disturbance { disturbed, most_taken, .. } = *self;
        let taken = self.often_taken()?;
        let mut text = format!(
            "Other processes used {:.0} % of the processors' time: repeat on a calm machine. (During {:.0} % \
             of the time it was more than {:.0} %; calls timed then are used only where none was timed undisturbed",
            taken * 100.0,
            disturbed * 100.0,
            most_taken * 100.0
        );
        if self.waited_seconds >= 0.5 {
            text += &format!("; waiting for calm took {:.0} s", self.waited_seconds);
        }
        Some(text + ".)")
    }

    /// How calm the machines were, in a sentence.
    pub fn sentence(&self) -> String {
        let Some(taken) = self.taken else {
            return "What others took of the processors is not known: the kernel does not report it."
                .into();
        };
        format!(
            "Others took {:.1} % of the processors on average, in {:.0} % of the time more than {:.0} %; \
             a rank lost its processor to others {:.0} times a second at most.",
            taken * 100.0,
            self.disturbed * 100.0,
            self.most_taken * 100.0,
            self.involuntary_switches_per_second
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(stolen: Option<f64>, others: Option<f64>) -> Stretch {
        Stretch {
            seconds: 0.5,
            host: "n1".into(),
            processors: 4,
            ranks: 4,
            stolen,
            others,
            involuntary_switches: 3,
            load: Some(4.0),
        }
    }

    #[test]
    fn what_is_not_known_is_not_zero() {
        assert_eq!(stretch(None, None).taken(), None);
        assert!(!stretch(None, None).is_disturbed());
        assert_eq!(stretch(Some(0.0), None).taken(), Some(0.0));
        let unknown = Disturbance::from_stretches(&[stretch(None, None)], 0.0).unwrap();
        assert_eq!(unknown.taken, None);
        assert!(unknown.sentence().contains("not known"), "{}", unknown.sentence());
        assert_eq!(unknown.warning(), None);
        assert_eq!(Disturbance::from_stretches(&[], 0.0), None);
    }

    #[test]
    fn processors_that_the_ranks_leave_free_may_be_used_by_others() {
        let half = Stretch { ranks: 2, ..stretch(Some(0.01), Some(0.52)) };
        assert!((half.taken().unwrap() - 0.03).abs() < 1e-9);
        let crowded = Stretch { ranks: 16, ..half };
        assert!((crowded.taken().unwrap() - 0.53).abs() < 1e-9);
    }

    #[test]
    fn a_third_of_the_time_disturbed_is_told_and_a_hiccup_is_not() {
        let calm = || stretch(Some(0.0), Some(0.01));
        let busy = || stretch(Some(0.02), Some(0.5));
        let found = Disturbance::from_stretches(&[calm(), calm(), busy()], 12.0).unwrap();
        assert!((found.disturbed - 1.0 / 3.0).abs() < 1e-9);
        let told = found.warning().unwrap();
        assert!(told.starts_with(
            "Other processes used 18 % of the processors' time: repeat on a calm machine"
        ));
        assert!(
            told.contains("33 % of the time") && told.contains("waiting for calm took 12 s"),
            "{told}"
        );
        let mut mostly = vec![calm(); 99];
        mostly.push(busy());
        assert_eq!(Disturbance::from_stretches(&mostly, 0.0).unwrap().warning(), None);
    }

    #[test]
    fn a_share_is_one() {
        let text = serde_json::to_string(&stretch(Some(0.1), None)).unwrap();
        assert_eq!(Stretch::parse(&text).unwrap(), stretch(Some(0.1), None));
        let error = Stretch::parse(&text.replace("0.1", "1.5")).unwrap_err();
        assert_eq!(error, "stolen: expected a share from 0 to 1");
        assert!(Stretch::parse("9 %").is_err());
        let error = Stretch::parse(&text.replace("0.5", "1e400")).unwrap_err();
        assert!(error.contains("number") || error.contains("seconds"), "{error}");
    }
}
