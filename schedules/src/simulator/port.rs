//! An incoming port, which one message passes at a time, in the order in which they come.

/// How much of a time its rounding may be: messages that leave at times that differ by less come
/// at once, and then pass in the order in which they are waited for.
pub const ROUNDING: f64 = 1e-12;

/// Times are those of messages that have left their sender's processor; the flight, the same for
/// messages of a size, comes on top.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SimulatedPort {
    free: f64,
    /// When the last of the messages left that have passed.
    latest: f64,
    /// The last idle stretch.
    idle_from: f64,
    idle_to: f64,
    /// As `latest`, of those before that stretch.
    latest_before: f64,
}

/// The later of two times: these are numbers, so that one comparison does, which [`f64::max`] may
/// not assume.
#[inline]
pub(crate) const fn later(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// Whether a time is before another one, by more than their rounding.
#[inline]
pub const fn is_before(a: f64, b: f64) -> bool {
    a < b - b * ROUNDING
}

impl SimulatedPort {
    /// When a message that has left at `left` begins to pass; the port is busy for `gap`. All that
    /// came before it have passed.
    #[inline]
    pub fn pass(&mut self, left: f64, gap: f64) -> f64 {
        let begin = later(left, self.free);
        self.free = begin + gap;
        begin
    }

    /// As [`SimulatedPort::pass`], where messages are reported in the order in which they are waited for; none
    /// if that says too little.
    ///
    /// One that came earlier than another one that was reported before it has passed in the last idle
    /// stretch, if it fits: then it has held nobody up.
    #[inline]
    pub fn pass_in_turn(&mut self, left: f64, gap: f64) -> Option<f64> {
        if is_before(left, self.latest) {
            return self.pass_before(left, gap);
        }
        let begin = later(left, self.free);
        if begin > self.free {
            (self.idle_from, self.idle_to) = (self.free, begin);
            self.latest_before = self.latest;
        }
        self.latest = later(self.latest, left);
        self.free = begin + gap;
        Some(begin)
    }

    fn pass_before(&mut self, left: f64, gap: f64) -> Option<f64> {
        let begin = later(left, self.idle_from);
        let end = begin + gap;
        let fits = !is_before(left, self.latest_before) && !is_before(self.idle_to, end);
        fits.then(|| {
            (self.idle_from, self.latest_before) = (end, left);
            begin
        })
    }
}

/// The two directions of a port that the ranks of a node share.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NodePort {
    pub outgoing: SimulatedPort,
    pub incoming: SimulatedPort,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_pass_one_at_a_time_in_the_order_in_which_they_come() {
        let mut port = SimulatedPort::default();
        assert_eq!(port.pass(10.0, 2.0), 10.0);
        assert_eq!(port.pass(10.5, 2.0), 12.0);
        assert_eq!(port.pass(20.0, 2.0), 20.0);
    }

    #[test]
    fn early_ones_that_are_told_late_passed_before_if_they_held_nobody_up() {
        let mut port = SimulatedPort::default();
        assert_eq!(port.pass_in_turn(10.0, 2.0), Some(10.0));
        assert_eq!(port.pass_in_turn(10.5, 2.0), Some(12.0));
        assert_eq!(port.pass_in_turn(10.2, 2.0), None, "it comes between the two");
        assert_eq!(port.pass_in_turn(3.0, 2.0), Some(3.0));
        assert_eq!(port.pass_in_turn(3.0, 2.0), Some(5.0));
        assert_eq!(port.pass_in_turn(2.0, 1.0), None, "it comes before the two");
        assert_eq!(port.pass_in_turn(9.0, 2.0), None, "it holds up the one at 10");
        assert_eq!(port.pass_in_turn(8.0, 2.0), Some(8.0), "it is through when that comes");
        let nearly = 14.0 * (1.0 - 1e-15);
        assert_eq!(port.pass_in_turn(14.0, 2.0), Some(14.0));
        assert_eq!(port.pass_in_turn(nearly, 2.0), Some(16.0), "they come at once");
    }
}
