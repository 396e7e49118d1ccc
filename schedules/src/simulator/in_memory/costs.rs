//! What messages and copies cost ranks of one node.

/// What messages and copies cost ranks that share the memory of one node. All times are seconds; `busy` is how many
/// ranks of the node are at it at the same time.
pub trait MemoryCosts {
    /// From the start of a send to the end of its receive, while the other ranks are idle.
    fn trip(&self, bytes: u64) -> f64;

    /// What of that the sender's processor is busy.
    fn send(&self, bytes: u64) -> f64;

    /// What of that the receiver's processor is busy.
    fn receive(&self, bytes: u64) -> f64;

    /// By what factor all of these grow; 1 for the two of one message.
    fn slowdown(&self, bytes: u64, busy: f64) -> f64;

    /// Whether two ranks share a cache through which their messages go, by their places on the node.
    fn is_near(&self, from: u32, to: u32) -> bool;

    /// Copying within the memory of one rank.
    fn copy(&self, bytes: u64, busy: f64) -> f64;

    /// Combining two operands of so many bytes.
    fn combine(&self, bytes: u64, busy: f64) -> f64;

    /// From raising a flag until another rank sees it, and what each further flag takes that a rank looks at; none: not
    /// known, and calls that share memory themselves are refused.
    fn flag(&self) -> Option<[f64; 2]> {
        None
    }

    /// Copying what another rank has just written.
    fn read(&self, bytes: u64, busy: f64) -> f64 {
        self.copy(bytes, busy)
    }

    /// What of that is until the first bytes are there.
    fn read_start(&self, _busy: f64) -> f64 {
        0.0
    }

    /// Combining two operands that are at hand.
    fn combine_at_hand(&self, bytes: u64) -> f64 {
        self.combine(bytes, 1.0)
    }
}
