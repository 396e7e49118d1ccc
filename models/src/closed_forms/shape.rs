//! A call, as the forms see it.

use records::{Algorithm, OwnMethod};

/// What a closed form needs to know of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
// What the forms read together is kept apart: a compiler that reads two neighbours at once makes
// the processor wait until both have been written.
#[repr(C)]
pub struct CallShape {
    pub(super) segments: u64,
    pub(super) procs: u32,
    pub(super) fan_out: u32,
    pub(super) segment_bytes: u64,
    pub(super) bytes: u64,
}

impl CallShape {
    /// `segment_bytes` 0, or of at least `bytes`, is one segment.
    #[inline]
    pub fn new(procs: u32, bytes: u64, segment_bytes: u64) -> Self {
        let whole = segment_bytes == 0 || segment_bytes >= bytes;
        let (segments, segment_bytes) =
            if whole { (1, bytes) } else { (bytes.div_ceil(segment_bytes), segment_bytes) };
        CallShape { procs, fan_out: OwnMethod::STANDARD_FAN_OUT, bytes, segments, segment_bytes }
    }

    /// This call with another fan-out.
    #[inline]
    pub(crate) fn with_fan_out(self, fan_out: u32) -> Self {
        CallShape { fan_out, ..self }
    }

    /// This call cut into other segments; bytes, as [`CallShape::new`] takes them.
    #[inline]
    pub(crate) fn cut(&self, segment_bytes: u64) -> Self {
        CallShape::new(self.procs, self.bytes, segment_bytes).with_fan_out(self.fan_out)
    }

    /// A call of so many segments of so many bytes, whatever the message: a bound of others.
    #[inline]
    pub(crate) fn with_segments(&self, segments: u64, segment_bytes: u64) -> Self {
        CallShape { segments, segment_bytes, ..*self }
    }

    /// Whether an algorithm makes sense for the call, and so may be decided for. A form can be evaluated in any case.
    pub(crate) fn suits(&self, algorithm: Algorithm) -> bool {
        match algorithm {
            // Each half of the message needs a segment of its own.
            Algorithm::SplittedBinary => self.segments >= 2 && self.bytes >= 2,
            // So does each stream of segments, of which there may be more than one in bcast and reduce.
            Algorithm::Circulant => {
                let streams = u64::from(self.fan_out);
                streams == 1 || streams <= self.segments
            }
            _ => true,
        }
    }

    /// P, as it was given.
    pub(crate) fn ranks(&self) -> u32 {
        self.procs
    }

    /// Chains, radix, or most children (0: any number).
    pub(crate) fn fan_out(&self) -> u32 {
        self.fan_out
    }

    /// m_s, as it is to be given: 0 where the message is whole.
    pub(crate) fn segment(&self) -> u64 {
        if self.segments > 1 { self.segment_bytes } else { 0 }
    }

    /// m, as it was given.
    pub(crate) fn whole_bytes(&self) -> u64 {
        self.bytes
    }

    /// P.
    #[inline]
    pub fn procs(&self) -> f64 {
        f64::from(self.procs)
    }

    /// m.
    #[inline]
    pub fn bytes(&self) -> f64 {
        self.bytes as f64
    }

    /// n_s.
    #[inline]
    pub fn segments(&self) -> f64 {
        self.segments as f64
    }

    /// ceil(n_s / 2): the segments of one half of the message.
    #[inline]
    pub fn half_segments(&self) -> f64 {
        self.segments.div_ceil(2) as f64
    }

    /// m_s.
    #[inline]
    pub fn segment_bytes(&self) -> f64 {
        self.segment_bytes as f64
    }

    /// ceil(lg P): rounds of a binomial tree or a dissemination.
    #[inline]
    pub fn rounds(&self) -> f64 {
        f64::from(u32::BITS - self.procs.saturating_sub(1).leading_zeros())
    }

    /// ceil(lg(P + 1)) - 1: edges from the root of a binary tree to its deepest leaf.
    #[inline]
    pub fn depth(&self) -> f64 {
        // ceil(lg(P + 1)) is the number of P's binary digits.
        f64::from(self.procs.max(1).ilog2())
    }

    /// floor(lg P) + 2, or lg P where P is a power of two: rounds of recursive doubling.
    #[inline]
    pub fn doubling_rounds(&self) -> f64 {
        let log = f64::from(self.procs.max(1).ilog2());
        if self.procs.is_power_of_two() { log } else { log + 2.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_at_the_edges() {
        let one = CallShape::new(2, 100, 0);
        assert_eq!(one, CallShape::new(2, 100, 100));
        assert_eq!(one, CallShape::new(2, 100, 1 << 40));
        assert_eq!((one.segments(), one.segment_bytes()), (1.0, 100.0));
        let empty = CallShape::new(2, 0, 8);
        assert_eq!((empty.segments(), empty.segment_bytes()), (1.0, 0.0));
        let odd = CallShape::new(2, 101, 20);
        assert_eq!((odd.segments(), odd.half_segments(), odd.segment_bytes()), (6.0, 3.0, 20.0));
    }

    #[test]
    fn logarithms_are_those_of_the_tables() {
        for procs in 2..=4097_u32 {
            let shape = CallShape::new(procs, 0, 0);
            let log = f64::from(procs).log2();
            assert_eq!(shape.rounds(), log.ceil(), "{procs}");
            assert_eq!(shape.depth(), (f64::from(procs) + 1.0).log2().ceil() - 1.0, "{procs}");
            let doubling = if log.fract() == 0.0 { log } else { log.floor() + 2.0 };
            assert_eq!(shape.doubling_rounds(), doubling, "{procs}");
        }
    }
}
