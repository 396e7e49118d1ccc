//! One comparison of two methods, in runs of calls by turns.

use super::{Arm, log_ratios::winsorised_sum};

/// The longest run, in calls.
pub(super) const LONGEST_RUN: u32 = 8;
/// In a run of at least so many calls the first is not compared: it may pay for what the method before left undone.
const RUN_WITH_A_START: u32 = 4;

/// What a trial is to find out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Its first call, in which a method may make what it needs: what it costs, nothing else.
    FirstCall,
    /// Whether it is slower by far: one call of each.
    FarSlower,
    /// How it compares with what is used.
    Faster,
    /// Whether what is used is still faster than the default.
    StillFaster,
}

impl Question {
    /// Whether the method may be slower than anybody foresees.
    pub fn is_of_unknown(self) -> bool {
        matches!(self, Question::FirstCall | Question::FarSlower)
    }
}

/// One call of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    arm: Arm,
    use_of: Use,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It only puts the trial off.
    Gap,
    /// Its time counts among what the trial cost.
    Cost,
    /// Its time is compared, too.
    Compared,
}

/// Calls of two methods by turns, and their times on this rank.
#[derive(Debug)]
pub(super) struct Trial {
    pub question: Question,
    /// The method in question.
    pub arm: Arm,
    /// What it is compared with.
    pub other: Arm,
    /// What it may cost, in seconds, and when it began, in calls that were asked for.
    pub reserved: f64,
    pub began: u64,
    steps: Vec<Step>,
    done: usize,
    /// Seconds of the compared calls of either.
    of_arm: Vec<f64>,
    of_other: Vec<f64>,
    /// Seconds of the tried method's calls that are not compared.
    not_compared: f64,
    declined: f64,
}

/// What a trial tells: of one rank, or the sums of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TrialNumbers {
    pub of_arm: f64,
    pub of_other: f64,
    pub not_compared: f64,
    /// Calls that a rank could not carry out by the method.
    pub declined: f64,
}

/// How many calls the numbers of a trial are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrialCounts {
    pub of_arm: usize,
    pub of_other: usize,
    pub not_compared: usize,
}

impl Trial {
    /// `run`: calls in a row; `random`: bits that are the same on all ranks; `has_run`: whether a method has been
    /// called before.
    pub fn new(
        question: Question,
        [arm, other]: [Arm; 2],
        run: u32,
        random: u64,
        has_run: impl Fn(Arm) -> bool,
    ) -> Self {
        let mut trial = Trial {
            question,
            arm,
            other,
            reserved: 0.0,
            began: 0,
            steps: Vec::new(),
            done: 0,
            of_arm: Vec::new(),
            of_other: Vec::new(),
            not_compared: 0.0,
            declined: 0.0,
        };
        // Odd lengths, so that trials do not beat with what the application repeats.
        let current = if question == Question::StillFaster { arm } else { other };
        let gap = Step { arm: current, use_of: Use::Gap };
        trial.steps.extend(std::iter::repeat_n(gap, (random >> 1) as usize % 3));
        let is_swapped = random & 1 == 1;
        let [first, second] = if is_swapped { [other, arm] } else { [arm, other] };
        let order: &[Arm] = match question {
            Question::FirstCall => &[],
            Question::FarSlower => &[first, second],
            Question::Faster | Question::StillFaster => &[first, second, second, first],
        };
        for of in [arm, other] {
            if !has_run(of) {
                trial.steps.push(Step { arm: of, use_of: Use::Cost });
            }
        }
        for of in order {
            for call in 0..run {
                let is_start = call == 0 && run >= RUN_WITH_A_START;
                let use_of = if is_start { Use::Cost } else { Use::Compared };
                trial.steps.push(Step { arm: *of, use_of });
            }
        }
        trial
    }

    /// What the next call is carried out by, and whether it is timed. Nothing where all is done.
    pub fn turn(&self) -> Option<(Arm, bool)> {
        self.steps.get(self.done).map(|step| (step.arm, step.use_of != Use::Gap))
    }

    /// The method whose calls are those that cost more than calls usually do.
    pub fn tried(&self) -> Arm {
        if self.question == Question::StillFaster { self.other } else { self.arm }
    }

    /// The next call has ended.
    pub fn ended(&mut self, seconds: Option<f64>, was_declined: bool) {
        let Some(step) = self.steps.get(self.done).copied() else { return };
        self.done += 1;
        // A time that is no number must not reach the others.
        let seconds = seconds.filter(|seconds| seconds.is_finite()).unwrap_or(0.0).max(0.0);
        match step.use_of {
            Use::Gap => return,
            Use::Compared if step.arm == self.arm => self.of_arm.push(seconds),
            Use::Compared => self.of_other.push(seconds),
            Use::Cost if step.arm == self.tried() => self.not_compared += seconds,
            Use::Cost => {}
        }
        if was_declined && step.arm == self.arm {
            self.declined += 1.0;
        }
    }

    /// Nothing of it is left to do.
    pub fn is_done(&self) -> bool {
        self.done >= self.steps.len()
    }

    /// Leaves out what has not been done yet.
    pub fn cut_short(&mut self) {
        self.steps.truncate(self.done);
    }

    /// How many calls there are to come.
    pub fn calls_left(&self) -> usize {
        self.steps.len() - self.done
    }

    /// Calls that were timed.
    pub fn timed(&self) -> usize {
        self.steps[..self.done].iter().filter(|step| step.use_of != Use::Gap).count()
    }

    /// Of how many calls the numbers are.
    pub fn counts(&self) -> TrialCounts {
        let count = |arm: Arm, use_of: Use| {
            let is_meant = |step: &&Step| step.arm == arm && step.use_of == use_of;
            self.steps[..self.done].iter().filter(is_meant).count()
        };
        TrialCounts {
            of_arm: count(self.arm, Use::Compared),
            of_other: count(self.other, Use::Compared),
            not_compared: count(self.tried(), Use::Cost),
        }
    }

    /// What it tells on this rank.
    pub fn numbers(&mut self) -> TrialNumbers {
        TrialNumbers {
            of_arm: winsorised_sum(&mut self.of_arm),
            of_other: winsorised_sum(&mut self.of_other),
            not_compared: self.not_compared,
            declined: self.declined,
        }
    }
}

impl TrialNumbers {
    pub const COUNT: usize = 4;

    pub fn to_array(self) -> [f64; Self::COUNT] {
        [self.of_arm, self.of_other, self.not_compared, self.declined]
    }

    pub fn of(numbers: &[f64]) -> Option<Self> {
        let &[of_arm, of_other, not_compared, declined] = numbers else { return None };
        Some(TrialNumbers { of_arm, of_other, not_compared, declined })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(mut trial: Trial) -> Vec<(Arm, bool)> {
        let mut turns = Vec::new();
        while let Some(turn) = trial.turn() {
            turns.push(turn);
            trial.ended(Some(1.0), false);
        }
        turns
    }

    #[test]
    fn two_runs_of_each_stand_mirrored() {
        let trial = |random| Trial::new(Question::Faster, [2, 0], 2, random, |_| true);
        let arms = |random| turns(trial(random)).iter().map(|turn| turn.0).collect::<Vec<_>>();
        assert_eq!(arms(0), [2, 2, 0, 0, 0, 0, 2, 2]);
        assert_eq!(arms(1), [0, 0, 2, 2, 2, 2, 0, 0]);
        assert_eq!(arms(2), [0, 2, 2, 0, 0, 0, 0, 2, 2], "a call of what is used before");
    }

    #[test]
    fn a_first_call_and_the_start_of_a_long_run_are_not_compared() {
        let mut trial = Trial::new(Question::Faster, [2, 0], 4, 0, |arm| arm == 0);
        let mut calls = 0;
        while let Some((arm, _)) = trial.turn() {
            // The first calls of each run take long.
            let is_first = calls == 0 || (calls - 1) % 4 == 0;
            trial.ended(Some(if is_first { 50.0 } else { 1.0 + f64::from(arm) }), false);
            calls += 1;
        }
        assert_eq!(calls, 17);
        let counts = trial.counts();
        assert_eq!(counts, TrialCounts { of_arm: 6, of_other: 6, not_compared: 3 });
        let numbers = trial.numbers();
        assert_eq!(numbers.to_array(), [18.0, 6.0, 150.0, 0.0]);
    }

    #[test]
    fn a_check_costs_what_the_default_takes() {
        let mut trial = Trial::new(Question::StillFaster, [3, 0], 1, 0, |arm| arm == 3);
        assert_eq!(trial.tried(), 0);
        while let Some((arm, _)) = trial.turn() {
            trial.ended(Some(if arm == 0 { 5.0 } else { 2.0 }), arm == 3);
        }
        assert_eq!(trial.numbers().to_array(), [4.0, 10.0, 5.0, 2.0]);
        assert_eq!(trial.counts().not_compared, 1);
    }

    #[test]
    fn what_was_cut_short_counts_what_was_done() {
        let mut trial = Trial::new(Question::Faster, [1, 0], 2, 0, |_| true);
        for _ in 0..3 {
            trial.ended(Some(1.0), false);
        }
        assert_eq!(trial.calls_left(), 5);
        trial.cut_short();
        assert!(trial.is_done());
        assert_eq!(trial.counts(), TrialCounts { of_arm: 2, of_other: 1, not_compared: 0 });
    }
}
