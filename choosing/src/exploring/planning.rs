//! What is tried next: what promises most for what it costs, as far as the budget allows.

use std::cmp::Ordering;

use records::learned::LogRatios;

use super::{
    Arm, Candidate, ClassIndex, Explorer,
    arm::ArmState,
    class::{Check, CheckReason, Class, TRIALS_TO_CHOOSE},
    ledger::TIMING_SECONDS,
    log_ratios::Certainty as _,
    time,
    trial::{LONGEST_RUN, Question, Trial},
};

/// A class that was called less often is not tried on.
const LEAST_CALLS: u64 = 20;
/// An untried method is taken to be no slower than by this factor. That others were slower yet says nothing: one that
/// made a very short call a hundred times slower may be fast in long ones.
pub(super) const FIRST_FACTOR: f64 = 8.0;
/// A method's first call may take so much longer, in seconds, since areas of shared memory are made there (where the
/// time of a call was not predicted; measured: 0.2 to 1 ms); or as what the worst first call took that was seen, up to
/// the second: one hiccup of the machine must not end all trials.
pub(super) const FIRST_CALL_SECONDS: f64 = 5e-4;
pub(super) const MOST_FIRST_CALL_SECONDS: f64 = 2e-3;
/// And by so many agreements, since connections are.
pub(super) const FIRST_CALL: f64 = 4.0;
/// A method that may be slower than by this is called once first.
pub(super) const CAREFUL_FACTOR: f64 = 2.0;
/// The gain that is expected of a method that nothing is known of has this deviation (of the logarithm of the
/// ratio); of one that a neighbouring class has shown, this one.
const UNKNOWN_DEVIATION: f64 = 0.5;
const NEIGHBOUR_DEVIATION: f64 = 0.25;
/// Each further candidate is expected to gain so much less.
const ORDER: f64 = 0.95;
/// A choice of other jobs is checked early: this share of what it is said to gain may be spent on that, beside the
/// budget.
const CHECKING_SHARE_OF_GAIN: f64 = 0.1;
/// Nor more than this share of the time in collectives, so that a job is not much slower while it checks; but where
/// calls don't take what they took there, a check can't wait.
const CHECKING_SHARE_OF_TIME: f64 = 0.02;
/// Nor before so many calls of the class.
const CALLS_BEFORE_CHECK: u64 = 4;
/// A trial is given up after so many calls that are asked for, of all classes, and more where it is long.
const PATIENCE: u64 = 300;
const PATIENCE_PER_CALL: u64 = 20;
/// What a trial pays of the agreement that others pay, too.
const SHARE_OF_AGREEMENT: f64 = 0.25;
/// So many trials at a time, each of another class.
const MOST_TRIALS: usize = 16;

/// A trial that could come next.
#[derive(Debug, Clone, Copy)]
struct Plan {
    class: ClassIndex,
    arm: Arm,
    question: Question,
    run: u32,
    /// What it may cost, in seconds, apart from agreements.
    cost: f64,
    urgency: Urgency,
    /// Of several of one urgency the greatest comes first.
    rank: f64,
}

/// What comes first, the most urgent last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// What may be faster than what is used.
    Trial,
    /// Whether what is used is faster than the default.
    Check,
    /// The same, where that is in doubt.
    Doubt,
}

impl Plan {
    fn order(&self, other: &Plan) -> Ordering {
        self.urgency.cmp(&other.urgency).then(self.rank.total_cmp(&other.rank))
    }
}

/// What a method has shown in another class.
#[derive(Debug, Clone, Copy)]
struct Neighbour {
    /// How many classes of size lie between, plus one.
    distance: u32,
    ratios: LogRatios,
}

impl Explorer {
    /// Begins the trials that promise most for what they cost, as far as the budget allows them.
    pub(super) fn plan(&mut self) {
        self.next_plan = self.asked + 8 + self.asked / 32;
        if self.agreement.is_some() || self.has_given_up {
            return;
        }
        self.end_trials_in_the_way();
        let agreement = self.agreement_seconds();
        let trials = || self.classes.iter().filter_map(|class| class.trial.as_ref());
        let mut running = trials().count();
        // What nobody knows much of is tried one at a time: it may cost more than is foreseen.
        let mut has_unknown = trials().any(|trial| trial.question.is_of_unknown());
        let mut shares_agreement = trials().any(|trial| !trial.is_done());
        let reserved: f64 = trials().map(|trial| trial.reserved).sum();
        let mut balance = self.ledger.balance(self.time()) - reserved;
        let mut plans: Vec<Plan> = Vec::new();
        for index in 0..self.classes.len() {
            plans.extend(self.plan_class(index, balance, agreement));
        }
        plans.sort_by(|one, other| other.order(one));
        // What will have been earned when the job is twice as old.
        let within_reach = balance + self.ledger.earned(self.time());
        let mut is_saving = false;
        for mut plan in plans {
            if running >= MOST_TRIALS {
                return;
            }
            let share = if shares_agreement { SHARE_OF_AGREEMENT } else { 1.0 };
            plan.cost += share * agreement;
            let is_check = plan.question == Question::StillFaster;
            let is_unknown = plan.question.is_of_unknown();
            if !is_check && (is_saving || plan.cost > balance || (is_unknown && has_unknown)) {
                // What promises less for what it costs must not spend what this waits for.
                is_saving |= plan.cost > balance && plan.cost <= within_reach;
                continue;
            }
            balance -= plan.cost;
            running += 1;
            has_unknown |= is_unknown;
            shares_agreement = true;
            self.start(plan);
        }
    }

    /// Trials of classes that are hardly called any more, and of classes in which something else is more urgent.
    fn end_trials_in_the_way(&mut self) {
        let asked = self.asked;
        let mut has_ended = false;
        for class in &mut self.classes {
            class.count_time();
            let is_late = class.trial.as_ref().is_some_and(|trial| {
                asked - trial.began > PATIENCE + PATIENCE_PER_CALL * trial.calls_left() as u64
            });
            has_ended |= class.end_trial(is_late);
        }
        if has_ended {
            self.trial_is_done();
        }
    }

    /// The trial of a class that promises most for what it costs.
    fn plan_class(&mut self, index: ClassIndex, balance: f64, agreement: f64) -> Option<Plan> {
        let class = &self.classes[index];
        if class.trial.is_some() {
            return None;
        }
        if class.current != 0 && class.check.is_none() && class.calls() >= class.routine_at {
            self.begin_routine(index, balance, agreement);
        }
        let class = &self.classes[index];
        if let Some(check) = class.check {
            return self.plan_check(index, check);
        }
        if class.calls() < LEAST_CALLS
            || class.known_time() <= agreement
            || class.adopt_at.is_some()
        {
            return None;
        }
        let plans = (1..class.arms.len())
            .filter_map(|arm| self.plan_arm(index, arm as Arm, balance, agreement));
        plans.reduce(|best, plan| if plan.order(&best).is_gt() { plan } else { best })
    }

    fn start(&mut self, plan: Plan) {
        let class = &mut self.classes[plan.class];
        class.forget_run();
        self.trials += 1;
        let random = (self.asked ^ self.trials << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let other = if plan.question == Question::StillFaster { 0 } else { class.current };
        let has_run = |arm: Arm| class.arms[arm as usize].has_run;
        let mut trial = Trial::new(plan.question, [plan.arm, other], plan.run, random, has_run);
        (trial.reserved, trial.began) = (plan.cost, self.asked);
        class.trial = Some(Box::new(trial));
    }

    /// The next trial of a choice against the default, and how it ranks: before trials of anything new, where most
    /// time goes first.
    fn plan_check(&self, class: ClassIndex, check: Check) -> Option<Plan> {
        let state = &self.classes[class];
        let agreement = self.agreement_seconds();
        let (run, urgency) = match check.reason {
            CheckReason::Learned => (if check.ratios.trials == 0 { 1 } else { 2 }, Urgency::Check),
            CheckReason::Suspicion | CheckReason::Unexpected => (2, Urgency::Doubt),
            CheckReason::Routine => (4, Urgency::Check),
        };
        let default_seconds = state.default_seconds.or(state.expected_seconds);
        // Before it was timed here it is as in the job before.
        let learned =
            || Some(state.expected_seconds? * state.arms[state.current as usize].before.mean.exp());
        let own_seconds = state.seconds.or_else(learned);
        let gain = default_seconds.zip(own_seconds).map(|(default, own)| default - own);
        // The default's first call is not compared.
        let first = u32::from(!state.arms[0].has_run);
        let cost = f64::from(2 * run + first) * gain.unwrap_or(0.0).max(0.0);
        if check.reason == CheckReason::Learned {
            let can_wait = state.gains_as_learned() != Some(false);
            let spent = self.ledger.watching() + agreement + cost;
            let is_early = state.calls() < CALLS_BEFORE_CHECK
                || can_wait && spent > CHECKING_SHARE_OF_TIME * self.time();
            if is_early || !self.can_check_learned(cost) {
                return None;
            }
        }
        let (arm, question, rank) = (state.current, Question::StillFaster, time(state, agreement));
        Some(Plan { class, arm, question, run, cost, urgency, rank })
    }

    /// Whether an agreement on what other jobs have chosen is worth it, and calls that take `cost` seconds longer: a
    /// wrong choice costs at each call, but one that gains little must not cost as much to check.
    pub(super) fn can_check_learned(&self, cost: f64) -> bool {
        let agreement = self.agreement_seconds();
        let cost = cost + agreement;
        let said_to_gain = |class: &Class| {
            let ratio = class.arms[class.current as usize].before.mean.exp();
            time(class, agreement) * (1.0 - ratio).max(0.0)
        };
        let unchecked = self.classes.iter().filter(|class| class.is_unchecked());
        let credit: f64 = unchecked.map(said_to_gain).sum();
        self.ledger.balance(self.time()) + CHECKING_SHARE_OF_GAIN * credit >= cost
    }

    /// Compares what is used with the default, where the budget allows.
    fn begin_routine(&mut self, index: ClassIndex, balance: f64, agreement: f64) {
        let class = &mut self.classes[index];
        let Some((seconds, default)) = class.seconds.zip(class.default_seconds) else { return };
        if balance >= agreement + 8.0 * (default - seconds).max(0.0) {
            class.check = Some(Check::new(CheckReason::Routine));
        }
    }

    /// A method's next trial, where the budget allows it and it is worth it.
    fn plan_arm(&self, index: ClassIndex, arm: Arm, balance: f64, agreement: f64) -> Option<Plan> {
        let class = &self.classes[index];
        let state = &class.arms[arm as usize];
        let seconds = class.seconds.filter(|seconds| *seconds > 0.0)?;
        if arm == class.current || !state.is_open(class.calls()) {
            return None;
        }
        let neighbour = self.neighbour(index, arm);
        let (prior, error) = belief(class, arm, neighbour);
        // As many calls are to come as came.
        let promise = class.known_time() * prior.plausible_gain(error);
        if promise <= agreement {
            return None;
        }
        let bound = self.factor_bound(index, arm, neighbour, prior, error);
        let (question, mut run) = if state.is_bounded || bound <= CAREFUL_FACTOR {
            (Question::Faster, state.run)
        } else if state.has_run {
            (Question::FarSlower, 1)
        } else {
            (Question::FirstCall, 0)
        };
        // A trial should not be long beside all calls so far.
        while run > 1 && u64::from(4 * run) > class.calls() / 8 {
            run /= 2;
        }
        let cost_of = |run: u32| {
            let of_arm = match question {
                Question::FirstCall | Question::FarSlower => 1,
                _ => 2 * run + u32::from(!state.has_run),
            };
            let timed = f64::from(2 * of_arm);
            let first_call = match &state.candidate {
                _ if state.has_run => 0.0,
                Some(Candidate { max_seconds: Some(_), .. }) => FIRST_CALL * agreement,
                _ => FIRST_CALL * agreement + self.worst_first_call,
            };
            f64::from(of_arm) * (bound - 1.0).max(0.0) * seconds
                + first_call
                + timed * TIMING_SECONDS
        };
        // With others it pays for a part of an agreement alone.
        let shared = SHARE_OF_AGREEMENT * agreement;
        while run > 1 && cost_of(run) + shared > balance {
            run /= 2;
        }
        let cost = cost_of(run);
        let trials = TRIALS_TO_CHOOSE.saturating_sub(state.against.trials).max(1) as f64;
        let timing = f64::from(2 * LONGEST_RUN) * TIMING_SECONDS;
        let to_come = trials * (agreement + timing) + cost;
        if to_come > promise {
            return None;
        }
        let rank = promise / (cost + agreement);
        Some(Plan { class: index, arm, question, run, cost, urgency: Urgency::Trial, rank })
    }

    /// What the method of an arm of which this class has shown nothing has shown in the nearest class of the collective.
    fn neighbour(&self, index: ClassIndex, arm: Arm) -> Option<Neighbour> {
        let own = &self.classes[index];
        let state = &own.arms[arm as usize];
        if [state.against, state.here, state.before].iter().any(|ratios| ratios.trials > 0) {
            return None;
        }
        let of = |other: &ClassIndex| {
            let class = &self.classes[*other];
            let is_same = |one: &&ArmState| one.identity == state.identity && one.here.trials > 0;
            let ratios = class.arms.iter().find(is_same)?.here;
            let distance = class.call.size.index().abs_diff(own.call.size.index()) as u32;
            (distance > 0).then_some(Neighbour { distance, ratios })
        };
        let others = &self.of_collective[own.call.collective as usize];
        others.iter().filter_map(of).min_by_key(|neighbour| neighbour.distance)
    }

    /// How many times as long as what is used a call by the method may take, as far as anybody knows.
    fn factor_bound(
        &self,
        index: ClassIndex,
        arm: Arm,
        neighbour: Option<Neighbour>,
        belief: LogRatios,
        error: f64,
    ) -> f64 {
        let class = &self.classes[index];
        let state = &class.arms[arm as usize];
        if state.against.trials > 0 {
            return (belief.mean + error).exp();
        }
        if let Some(seen) = state.seen_factor {
            return if state.is_bounded { seen } else { seen.min(FIRST_FACTOR) };
        }
        if state.here.trials > 0 || state.before.trials > 0 {
            return (belief.mean + 2.0 * error).exp();
        }
        if let Some(Neighbour { distance, ratios }) = neighbour {
            // A neighbouring class shows how slow it can be, less how fast it must be; a distant one not even that.
            let doubt = 2.0 * ratios.error().hypot(NEIGHBOUR_DEVIATION * f64::from(distance));
            return (belief.mean.max(0.0) + doubt.min(FIRST_FACTOR.ln())).exp();
        }
        let predicted = state.candidate.as_ref().and_then(|candidate| candidate.max_seconds);
        match predicted.filter(|predicted| *predicted > 0.0).zip(class.seconds) {
            Some((predicted, seconds)) => predicted / seconds,
            None => FIRST_FACTOR,
        }
    }
}

/// What is believed of ln(time of a method / time of what is used), and the standard error of that.
fn belief(class: &Class, arm: Arm, neighbour: Option<Neighbour>) -> (LogRatios, f64) {
    let state = &class.arms[arm as usize];
    let current = &class.arms[class.current as usize];
    if state.against.trials > 0 {
        return (state.against, state.against.error());
    }
    let of_current = current.shown().mean;
    let against = |ratios: LogRatios| LogRatios { mean: ratios.mean - of_current, ..ratios };
    if state.here.trials > 0 {
        return (against(state.here), state.here.error().max(0.1));
    }
    if state.before.trials > 0 {
        return (against(state.before), state.before.error().max(0.1));
    }
    if let Some(Neighbour { distance, ratios }) = neighbour {
        let error = (NEIGHBOUR_DEVIATION * f64::from(distance)).min(UNKNOWN_DEVIATION);
        return (against(ratios), error.hypot(ratios.error()));
    }
    let unknown = LogRatios::default();
    (against(unknown), UNKNOWN_DEVIATION * ORDER.powi(arm as i32))
}
