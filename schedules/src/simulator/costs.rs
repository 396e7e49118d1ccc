//! What things cost.

/// The parameters of a model. All times are seconds.
pub trait Costs {
    /// The sender's processor is busy.
    fn send_overhead(&self, bytes: u64) -> f64;

    /// The receiver's processor is busy.
    fn receive_overhead(&self, bytes: u64) -> f64;

    /// Least time between the starts of this message and the next one on the same outgoing port.
    /// `destinations` is the number of ranks that the sender keeps sending to
    /// ([`Round::destinations`](crate::Round::destinations)).
    fn gap(&self, bytes: u64, destinations: u32) -> f64;

    /// Least time between the starts of this message and the next one on the same incoming port.
    fn receive_gap(&self, bytes: u64) -> f64 {
        self.gap(bytes, 1)
    }

    /// From when the sender's processor has done its part until the message lies ready for the
    /// receiver's, when no port is in the way.
    fn flight(&self, bytes: u64) -> f64;

    /// Combining two operands of so many bytes.
    fn combine(&self, bytes: u64) -> f64;

    /// Copying in memory; the models have it free.
    fn copy(&self, _bytes: u64) -> f64 {
        0.0
    }
}

/// `LogGP`: one message takes L + 2 o + (m - 1) G.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogGpCosts {
    /// L, in seconds.
    pub latency: f64,
    /// o, of the sender and of the receiver, in seconds.
    pub overhead: f64,
    /// g, between short messages, in seconds.
    pub gap: f64,
    /// G, in seconds per byte.
    pub gap_per_byte: f64,
    /// gamma, in seconds per byte.
    pub combine_per_byte: f64,
}

impl LogGpCosts {
    /// (m - 1) G, and nothing for a message of no bytes.
    #[inline]
    fn bytes_after_the_first(&self, bytes: u64) -> f64 {
        bytes.saturating_sub(1) as f64 * self.gap_per_byte
    }
}

impl Costs for LogGpCosts {
    #[inline]
    fn send_overhead(&self, _bytes: u64) -> f64 {
        self.overhead
    }

    #[inline]
    fn receive_overhead(&self, _bytes: u64) -> f64 {
        self.overhead
    }

    #[inline]
    fn gap(&self, bytes: u64, _destinations: u32) -> f64 {
        self.gap + self.bytes_after_the_first(bytes)
    }

    #[inline]
    fn flight(&self, bytes: u64) -> f64 {
        self.latency + self.bytes_after_the_first(bytes)
    }

    #[inline]
    fn combine(&self, bytes: u64) -> f64 {
        bytes as f64 * self.combine_per_byte
    }
}

/// The size-dependent parameters of [`PLogPCosts`] at one message size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostKnot {
    pub bytes: u64,
    /// os(m), in seconds.
    pub send_overhead: f64,
    /// or(m), in seconds.
    pub receive_overhead: f64,
    /// g(m), in seconds.
    pub gap: f64,
}

/// `PLogP`: one message takes L + g(m), its overheads included.
#[derive(Debug, Clone, PartialEq)]
pub struct PLogPCosts {
    latency: f64,
    knots: Vec<CostKnot>,
    combine_per_byte: f64,
}

impl PLogPCosts {
    /// L (end to end) in seconds, the parameters at some sizes (linear between them; beyond the last
    /// the last stretch goes on unless it falls, then the last knot holds; below the first the
    /// first holds), gamma in seconds per byte.
    ///
    /// # Errors
    /// No knots, sizes that don't ascend, or a time that isn't a number from 0 on.
    pub fn new(latency: f64, knots: Vec<CostKnot>, combine_per_byte: f64) -> Result<Self, String> {
        if knots.is_empty() {
            return Err("PLogP without knots; expected at least one message size".into());
        }
        if let Some(pair) = knots.windows(2).find(|pair| pair[0].bytes >= pair[1].bytes) {
            let (first, second) = (pair[0].bytes, pair[1].bytes);
            return Err(format!("PLogP knots at {first}, then {second} bytes; expected ascending"));
        }
        let of_knots = knots.iter().flat_map(|k| [k.send_overhead, k.receive_overhead, k.gap]);
        let bad = |time: &f64| !(time.is_finite() && *time >= 0.0);
        match of_knots.chain([latency, combine_per_byte]).find(bad) {
            Some(time) => Err(format!("PLogP with a time of {time}; expected 0 or more")),
            None => Ok(PLogPCosts { latency, knots, combine_per_byte }),
        }
    }

    fn at(&self, bytes: u64, of: impl Fn(&CostKnot) -> f64) -> f64 {
        let above = self.knots.partition_point(|knot| knot.bytes < bytes);
        let (Some(last), true) = (above.min(self.knots.len() - 1).checked_sub(1), above > 0) else {
            return of(&self.knots[above.min(self.knots.len() - 1)]);
        };
        let (a, b) = (&self.knots[last], &self.knots[last + 1]);
        let part = (bytes as f64 - a.bytes as f64) / (b.bytes - a.bytes) as f64;
        let rise = of(b) - of(a);
        // That a cost falls between two sizes is noise, or another protocol: it does not go on.
        if part > 1.0 && rise < 0.0 { of(b) } else { of(a) + part * rise }
    }
}

impl Costs for PLogPCosts {
    #[inline]
    fn send_overhead(&self, bytes: u64) -> f64 {
        self.at(bytes, |knot| knot.send_overhead)
    }

    #[inline]
    fn receive_overhead(&self, bytes: u64) -> f64 {
        self.at(bytes, |knot| knot.receive_overhead)
    }

    #[inline]
    fn gap(&self, bytes: u64, _destinations: u32) -> f64 {
        self.at(bytes, |knot| knot.gap)
    }

    /// What the overheads leave of L + g(m); nothing if they take more.
    #[inline]
    fn flight(&self, bytes: u64) -> f64 {
        let overheads = self.send_overhead(bytes) + self.receive_overhead(bytes);
        (self.latency + self.gap(bytes, 1) - overheads).max(0.0)
    }

    #[inline]
    fn combine(&self, bytes: u64) -> f64 {
        bytes as f64 * self.combine_per_byte
    }
}
