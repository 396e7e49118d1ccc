/// Hockney's parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hockney {
    /// alpha, in seconds.
    pub alpha: f64,
    /// beta, in seconds per byte.
    pub beta: f64,
}

impl Hockney {
    /// Time of a message of `bytes`: alpha + beta m.
    #[inline]
    pub fn message(&self, bytes: f64) -> f64 {
        self.alpha + self.beta * bytes
    }
}

/// LogGP's parameters; LogP's with `gap_per_byte` 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogGp {
    /// L, in seconds.
    pub latency: f64,
    /// o, of the sender and of the receiver, in seconds.
    pub overhead: f64,
    /// g, between short messages, in seconds.
    pub gap: f64,
    /// G, in seconds per byte.
    pub gap_per_byte: f64,
}

impl LogGp {
    /// (m - 1) G, and 0 for an empty message.
    #[inline]
    pub fn stream(&self, bytes: f64) -> f64 {
        (bytes - 1.0).max(0.0) * self.gap_per_byte
    }

    /// Time between two messages of `bytes`: g + (m - 1) G.
    #[inline]
    pub fn gap(&self, bytes: f64) -> f64 {
        self.gap + self.stream(bytes)
    }

    /// Time of a message of `bytes`: L + 2 o + (m - 1) G.
    #[inline]
    pub fn message(&self, bytes: f64) -> f64 {
        self.latency + 2.0 * self.overhead + self.stream(bytes)
    }
}
