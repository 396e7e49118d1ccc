//! What of a job's time goes to disturbance: to waiting for others to end, and to measuring again.

/// At most this part of all that has passed.
const PART: f64 = 0.25;
/// The first wait of a row of disturbed stretches, in seconds; each is twice as long as the one before.
const FIRST_WAIT: f64 = 0.5;
const LONGEST_WAIT: f64 = 8.0;

/// What has gone to disturbance so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct DisturbanceAllowance {
    /// Disturbed stretches in a row.
    row: u32,
    waited_seconds: f64,
    again_seconds: f64,
}

impl DisturbanceAllowance {
    /// Seconds that may still go to disturbance, `elapsed` seconds after the start of the job.
    pub fn left(&self, elapsed: f64) -> f64 {
        PART * elapsed - self.waited_seconds - self.again_seconds
    }

    /// So many seconds of measuring were, or will be, made again.
    pub fn made_again(&mut self, seconds: f64) {
        self.again_seconds += seconds;
    }

    /// A stretch is over; how long it should be waited for others to end. Of several disturbed ones in a
    /// row the end is awaited, as they last.
    pub fn close(&mut self, disturbed: bool, elapsed: f64) -> Option<f64> {
        self.row = if disturbed { self.row + 1 } else { 0 };
        let doublings = self.row.checked_sub(2)?;
        let wait = FIRST_WAIT * 2.0_f64.powi(doublings.min(16) as i32);
        Some(wait.min(LONGEST_WAIT).min(self.left(elapsed))).filter(|wait| *wait > 0.0)
    }

    /// It was waited; gives how long in all.
    pub fn waited(&mut self, seconds: f64) -> f64 {
        self.waited_seconds += seconds;
        self.waited_seconds
    }
}
