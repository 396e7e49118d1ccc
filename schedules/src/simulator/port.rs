//! An incoming port, which one message passes at a time.

/// Times are those of messages that have left their sender's processor; the flight, the same for
/// messages of a size, comes on top.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Port {
    free: f64,
    /// The last idle stretch before that.
    idle_from: f64,
    idle_to: f64,
}

/// The later of two times: these are numbers, so that one comparison does, which [`f64::max`] may
/// not assume.
#[inline]
pub(super) const fn later(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

impl Port {
    /// When a message that has left at `left` begins to pass; the port is busy for `gap`.
    ///
    /// Messages are let through in the order in which the program waits for them. One that is
    /// waited for late but came early passed long ago, if the port was idle then.
    #[inline]
    pub fn pass(&mut self, left: f64, gap: f64) -> f64 {
        let early = later(left, self.idle_from);
        if early + gap <= self.idle_to {
            self.idle_from = early + gap;
            return early;
        }
        let begin = later(left, self.free);
        if begin > self.free {
            (self.idle_from, self.idle_to) = (self.free, begin);
        }
        self.free = begin + gap;
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_pass_one_at_a_time_and_early_ones_passed_before() {
        let mut port = Port::default();
        assert_eq!(port.pass(10.0, 2.0), 10.0);
        assert_eq!(port.pass(10.5, 2.0), 12.0);
        assert_eq!(port.pass(3.0, 2.0), 3.0);
        assert_eq!(port.pass(3.0, 2.0), 5.0);
        assert_eq!(port.pass(3.0, 4.0), 14.0);
    }
}
