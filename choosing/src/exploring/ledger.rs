//! What exploring may cost, and what it has cost: all in seconds of a rank, the mean of the ranks.

/// What reading the clock twice takes at each timed call, in seconds (measured: 58 ns).
pub(super) const TIMING_SECONDS: f64 = 60e-9;
/// What a call takes longer that is asked for, not left alone, in seconds (measured: 80 to 110 ns, since what it needs
/// is no longer in the nearest cache).
pub(super) const ASKING_SECONDS: f64 = 100e-9;
/// Of what may be spent, so much is planned with: the rest is for what nobody measures and for costs that were
/// foreseen too low.
const SHARE_PLANNED: f64 = 0.9;
/// The weight of the last agreement in what one is expected to take: the first ones make connections.
const WEIGHT_OF_LAST: f64 = 0.25;

/// The books of one communicator.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    /// The share of the time in collectives that may be spent.
    share: f64,
    spent: f64,
    /// Of that, what watching cost that was chosen.
    watching: f64,
    gained: f64,
    /// What an agreement takes, once known.
    agreement_seconds: Option<f64>,
    /// What was assumed that the agreement before the last, and the last, cost: each tells at the next.
    assumed: [f64; 2],
}

impl Ledger {
    pub fn new(share: f64) -> Self {
        // A share that is no number or below 0 allows nothing.
        let share = if share > 0.0 { share } else { 0.0 };
        Ledger { share, ..Ledger::default() }
    }

    pub fn spend(&mut self, seconds: f64) {
        self.spent += seconds.max(0.0);
    }

    /// Books so many seconds that watching what was chosen has cost: what that gains pays for it.
    pub fn spend_on_watching(&mut self, seconds: f64) {
        self.spend(seconds);
        self.watching += seconds.max(0.0);
    }

    /// What watching and checking what was chosen has cost.
    pub fn watching(&self) -> f64 {
        self.watching
    }

    pub fn gain(&mut self, seconds: f64) {
        self.gained += seconds.max(0.0);
    }

    pub fn gained(&self) -> f64 {
        self.gained
    }

    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// An agreement begins, expected to take so long; where it is there to watch what was chosen, what that gains
    /// pays for it.
    pub fn begin_agreement(&mut self, expected_seconds: f64, is_watch: bool) {
        self.spent += expected_seconds;
        self.assumed[1] = expected_seconds;
        if is_watch {
            self.watching += expected_seconds;
        }
    }

    /// The last agreement tells what the one before it took; there was none before the first.
    pub fn agreement_before_took(&mut self, seconds: f64) {
        let [before, last] = self.assumed;
        self.assumed = [last, 0.0];
        if before > 0.0 {
            self.spent += seconds - before;
            let usual = self.agreement_seconds.unwrap_or(seconds);
            self.agreement_seconds = Some(usual + WEIGHT_OF_LAST * (seconds - usual));
        }
    }

    /// What an agreement takes, where one was timed.
    pub fn agreement_seconds(&self) -> Option<f64> {
        self.agreement_seconds
    }

    /// What all that went into collectives allows.
    pub fn earned(&self, collectives: f64) -> f64 {
        self.share * collectives
    }

    /// What may still be spent where so much time went into collectives; below 0 when overdrawn.
    pub fn balance(&self, collectives: f64) -> f64 {
        SHARE_PLANNED * self.share * collectives - self.spent + self.watching.min(self.gained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_grows_with_the_time_in_collectives() {
        let mut ledger = Ledger::new(0.01);
        assert!((ledger.balance(100.0) - 0.9).abs() < 1e-12);
        ledger.spend(3.0);
        ledger.spend(-5.0);
        assert!(
            (ledger.balance(100.0) + 2.1).abs() < 1e-12,
            "an overdraft; nothing is earned by a trial"
        );
        assert!(ledger.balance(334.0) > 0.0, "repaid");
        assert_eq!(Ledger::new(f64::NAN).balance(100.0), 0.0);
    }

    #[test]
    fn agreements_cost_what_they_took() {
        let mut ledger = Ledger::new(0.01);
        ledger.begin_agreement(0.5, false);
        assert_eq!(ledger.spent(), 0.5);
        ledger.agreement_before_took(0.0);
        assert_eq!(ledger.agreement_seconds(), None, "there was none before the first");
        ledger.begin_agreement(0.5, false);
        ledger.agreement_before_took(0.2);
        assert!((ledger.spent() - 0.7).abs() < 1e-12, "{}", ledger.spent());
        assert_eq!(ledger.agreement_seconds(), Some(0.2));
    }

    #[test]
    fn what_was_gained_pays_for_watching_it() {
        let mut ledger = Ledger::new(0.01);
        ledger.begin_agreement(0.4, true);
        assert!((ledger.balance(100.0) - 0.5).abs() < 1e-12);
        ledger.gain(0.3);
        assert!((ledger.balance(100.0) - 0.8).abs() < 1e-12);
        ledger.gain(3.0);
        assert!((ledger.balance(100.0) - 0.9).abs() < 1e-12);
    }
}
