//! Conversions between the models: by equating their point-to-point times.

use super::{Hockney, Knot, LogGp, MessageCosts};

/// LogGP's parameters made from PLogP's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearGap {
    /// The parameters; L is at least 0, and L + 2 o is one small message's time in both models.
    pub loggp: LogGp,
    /// How far L would have been below 0, in seconds; 0 where it is not.
    pub latency_below_zero: f64,
}

impl LinearGap {
    /// Kielmann, Bal and Verstoep (2000): one small message costs the same in both models, so
    /// L = L_p + g(1) - os(1) - or(1), o = (os(1) + or(1)) / 2, g = g(1).
    ///
    /// `latency` is L_p, `one_byte` os, or and g at m = 1, `gap_per_byte` G. The slope of g(m) at
    /// large m serves better as G than Kielmann's g(m) / m, which is too great by g / m.
    ///
    /// Where the overheads of single calls sum to more than a message takes (a message's transfer
    /// overlaps them), L is 0 and o half of the message's time.
    pub fn from_plogp(latency: f64, one_byte: MessageCosts, gap_per_byte: f64) -> Self {
        Self::from_message(latency + one_byte.gap, one_byte, gap_per_byte)
    }

    /// LogGP of PLogP where the time of one byte, from the call to send to its arrival, is known by
    /// itself: L = `message` - os(1) - or(1).
    pub fn from_message(message: f64, one_byte: MessageCosts, gap_per_byte: f64) -> Self {
        let MessageCosts { send, receive, gap } = one_byte;
        let latency = message - send - receive;
        let overhead = (send + receive).min(message) / 2.0;
        LinearGap {
            loggp: LogGp { latency: latency.max(0.0), overhead, gap, gap_per_byte },
            latency_below_zero: (-latency).max(0.0),
        }
    }
}

impl LogGp {
    /// PLogP with equal point-to-point times: L_p = L + 2 o - g, g(m) = g + (m - 1) G,
    /// os = or = o.
    ///
    /// `None` where g > L + 2 o: no end-to-end latency of at least 0 is left.
    pub fn to_plogp(&self) -> Option<(f64, Vec<Knot>)> {
        let latency = self.latency + 2.0 * self.overhead - self.gap;
        // An empty message costs as much as one byte, after that it is a line.
        let knots = [0, 1, 1 << 20].map(|bytes| Knot {
            bytes,
            costs: MessageCosts {
                send: self.overhead,
                receive: self.overhead,
                gap: self.gap(bytes as f64),
            },
        });
        (latency >= 0.0).then(|| (latency, knots.to_vec()))
    }

    /// Hockney with the same start-up time and rate: alpha = L + 2 o, beta = G.
    pub fn to_hockney(&self) -> Hockney {
        Hockney { alpha: self.latency + 2.0 * self.overhead, beta: self.gap_per_byte }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::PLogP;
    use proptest::prelude::*;

    #[test]
    fn a_gap_longer_than_a_message_has_no_plogp() {
        let loggp = LogGp { latency: 1.0, overhead: 1.0, gap: 4.0, gap_per_byte: 0.0 };
        assert_eq!(loggp.to_plogp(), None);
        let one_byte = MessageCosts { send: 2.0, receive: 2.0, gap: 1.0 };
        let converted = LinearGap::from_plogp(1.0, one_byte, 0.5);
        assert_eq!((converted.loggp.latency, converted.latency_below_zero), (0.0, 2.0));
        assert_eq!(converted.loggp.overhead, 1.0, "a message still takes 2");
    }

    proptest! {
        /// There and back changes nothing, and a message of any size costs the same in both.
        #[test]
        fn loggp_and_plogp_agree(
            latency in 0.0..1e-4_f64, overhead in 0.0..1e-5_f64,
            gap_part in 0.0..1.0_f64, gap_per_byte in 1e-11..1e-6_f64, bytes in 0_u32..1 << 30,
        ) {
            let gap = gap_part * (latency + 2.0 * overhead);
            let loggp = LogGp { latency, overhead, gap, gap_per_byte };
            let (plogp_latency, knots) = loggp.to_plogp().unwrap();
            let plogp = PLogP::new(plogp_latency, &knots).unwrap();
            let bytes = f64::from(bytes);
            let wanted = latency + overhead + overhead + (bytes - 1.0).max(0.0) * gap_per_byte;
            prop_assert!((plogp.message(bytes) - wanted).abs() <= 1e-9 * wanted);
            prop_assert!((loggp.message(bytes) - wanted).abs() <= 1e-12 * wanted);
            let back = LinearGap::from_plogp(plogp_latency, plogp.at(1.0), gap_per_byte);
            prop_assert!((back.loggp.latency - latency).abs() <= 1e-12);
            prop_assert!((back.loggp.gap - gap).abs() <= 1e-12);
            prop_assert!((back.loggp.overhead - overhead).abs() <= 1e-12);
        }
    }
}
