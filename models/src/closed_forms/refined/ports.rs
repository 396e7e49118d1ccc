//! Incoming ports, which let messages through in the order in which they come.

use super::costs::RefinedCosts;

/// A rank that takes in what its children send, one size of message. Its port lets messages
/// through in the order in which they come; its processor waits for them in an order of its own.
///
/// Times are those at which the sends begin.
pub(super) struct Head {
    /// When the processor is free.
    pub clock: f64,
    /// When the port is.
    pub port: f64,
}

impl Head {
    /// When the message that comes next begins to pass the port.
    pub fn pass(&mut self, sent: f64, gap: f64) -> f64 {
        let passes = sent.max(self.port);
        self.port = passes + gap;
        passes
    }

    /// Takes in and combines a message that has passed.
    pub fn wait(&mut self, costs: &RefinedCosts, passes: f64) {
        let ready = passes + costs.message - costs.receive;
        self.clock = self.clock.max(ready) + costs.receive + costs.combine;
    }

    /// So many messages that are sent at once come next and are awaited next.
    pub fn take(&mut self, costs: &RefinedCosts, sent: f64, messages: u32) {
        let (others, busy) = (f64::from(messages - 1), costs.receive + costs.combine);
        let passes = self.pass(sent, costs.gap);
        self.port += others * costs.gap;
        self.wait(costs, passes + others * (costs.gap - costs.last_frame * costs.gap));
        let last = passes + costs.message + costs.combine + others * costs.gap;
        self.clock = (self.clock + others * busy).max(last);
    }
}
