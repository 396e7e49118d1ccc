//! The rates of links.

use std::{fmt, str::FromStr};

use records::quoted;
use serde::{Deserialize, Serialize};

use crate::TestbedError;

/// The rate of a port of the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate {
    bits_per_second: u64,
}

impl Rate {
    /// What a network is told to be; one that is slowed down can be told more than this machine has.
    const RANGE: std::ops::RangeInclusive<u64> = 1_000_000..=1_000_000_000_000;
    /// What the virtual network can have.
    const POSSIBLE: std::ops::RangeInclusive<u64> = 1_000_000..=10_000_000_000;

    /// From bits per second, 1 Mbit/s to 1000 Gbit/s (of which at most 10 are left where it is slowed).
    ///
    /// # Errors
    /// Outside that range.
    pub fn new(bits_per_second: u64) -> Result<Rate, TestbedError> {
        if !Self::RANGE.contains(&bits_per_second) {
            let problem =
                format!("a rate of {bits_per_second} bit/s is not within 1mbit and 1000gbit");
            return Err(TestbedError::Spec(problem));
        }
        Ok(Rate { bits_per_second })
    }

    /// What is left of it where time is stretched by a factor.
    ///
    /// # Errors
    /// That is not within 1 Mbit/s and 10 Gbit/s.
    pub fn slowed(self, factor: u32) -> Result<Rate, TestbedError> {
        let bits_per_second = self.bits_per_second / u64::from(factor.max(1));
        if !Self::POSSIBLE.contains(&bits_per_second) {
            let what = match factor {
                0..=1 => format!("a rate of {self}"),
                _ => format!("{self} slowed down {factor} times"),
            };
            return Err(TestbedError::Spec(format!("{what} is not within 1mbit and 10gbit")));
        }
        Ok(Rate { bits_per_second })
    }

    /// In bits per second, of frames on the wire.
    pub fn bits_per_second(self) -> u64 {
        self.bits_per_second
    }

    /// How many bytes a port that was idle lets pass at once: as few as keep the rate.
    ///
    /// One packet, and what is due while the kernel is late to wake for the next one: what is lost
    /// by waking late beyond that is lost for good. 1600 bytes at 100 Mbit/s, 7 us of lateness, gave
    /// G = 0.091 to 0.096 us/byte on a quiet virtual machine of two processors where the wire has
    /// 0.0837; 2014 bytes, 40 us, gave 0.0839 to 0.0845, and two packets still don't pass at once.
    /// Where packets follow each other faster than timers wake, lateness adds up over many of them:
    /// at 1 Gbit/s 4800 bytes gave 0.0098 to 0.0142 and 160 us' worth 0.0085, wire 0.0084. More than
    /// needed would falsify small messages, which pass within the burst without any wire time.
    pub fn burst_bytes(self) -> u64 {
        const LATE_WAKE_UP_MICROSECONDS: u64 = 40;
        const LATE_WAKE_UPS_MICROSECONDS: u64 = 160;
        let late = match self.is_fast() {
            false => LATE_WAKE_UP_MICROSECONDS,
            true => LATE_WAKE_UPS_MICROSECONDS,
        };
        (PACKET + self.bits_per_second / 8 * late / 1_000_000).max(1600)
    }

    /// How many bytes of a message the kernel hands to a port as one, at most; nothing where that
    /// is left to it.
    ///
    /// It makes up to 64 KiB one, and what is larger than the burst is cut into packets by the port
    /// itself, which on fast links takes the processors: at 1 Gbit/s G came out 8 to 27 % above
    /// the wire's (a virtual machine of two processors, five runs), by units that pass whole, in
    /// between, 2 to 5 %. On slow links nothing is gained: a burst there holds one packet.
    pub fn largest_unit_bytes(self) -> Option<u64> {
        // With the headers of its packets it must be no more than the burst.
        self.is_fast()
            .then(|| self.burst_bytes() * PAYLOAD / PACKET - PACKET)
            .map(|bytes| bytes.min(65536))
    }

    /// Whether packets follow each other faster than timers wake.
    fn is_fast(self) -> bool {
        self.bits_per_second > 300_000_000
    }
}

/// A full packet of Ethernet, and what it carries of a message by TCP.
pub(crate) const PACKET: u64 = 1514;
pub(crate) const PAYLOAD: u64 = 1448;

const UNITS: [(&str, u64); 4] =
    [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];

impl FromStr for Rate {
    type Err = TestbedError;

    /// Reads `100mbit`, `1gbit`, `2500kbit` (decimal units, bits per second, a whole number).
    fn from_str(text: &str) -> Result<Rate, TestbedError> {
        let lower = text.trim().to_ascii_lowercase();
        let bits = UNITS.into_iter().find_map(|(unit, scale)| {
            lower.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?.checked_mul(scale)
        });
        match bits {
            Some(bits) => Rate::new(bits),
            None => Err(TestbedError::Spec(format!(
                "{} is not a rate from 1mbit to 10gbit; write bits per second as 10mbit, 100mbit \
                 or 1gbit",
                quoted(text)
            ))),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits_per_second;
        match UNITS.into_iter().find(|(_, scale)| bits.is_multiple_of(*scale)) {
            Some((unit, scale)) => write!(f, "{}{unit}", bits / scale),
            None => write!(f, "{bits}bit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_are_read() {
        for (text, bits) in [
            ("10mbit", 10_000_000),
            ("100mbit", 100_000_000),
            ("1gbit", 1_000_000_000),
            ("2500kbit", 2_500_000),
            (" 100 Mbit", 100_000_000),
        ] {
            assert_eq!(text.parse::<Rate>().unwrap().bits_per_second(), bits, "{text}");
        }
        for text in ["100", "100mb", "mbit", "1.5gbit", "-1gbit", "100mbps", "", "99999999999gbit"]
        {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}'")) && error.contains("100mbit"), "{error}");
        }
        for text in ["999kbit", "1001gbit", "0mbit", "1bit"] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains("1mbit and 1000gbit"), "{error}");
        }
    }

    #[test]
    fn bursts_are_those_that_were_tried() {
        let burst = |text: &str| text.parse::<Rate>().unwrap().burst_bytes();
        assert_eq!(burst("10mbit"), 1600);
        assert_eq!(burst("100mbit"), 2014);
        assert_eq!(burst("300mbit"), 3014);
        assert_eq!(burst("1gbit"), 21514);
        let largest_unit = |text: &str| text.parse::<Rate>().unwrap().largest_unit_bytes();
        assert_eq!(largest_unit("300mbit"), None);
        assert_eq!(largest_unit("1gbit"), Some(19062));
        assert_eq!(largest_unit("10gbit"), Some(65536));
    }

    proptest! {
        #[test]
        fn a_rate_reads_back(bits in 1_000_u64..=10_000_000) {
            let rate = Rate::new(bits * 1_000).unwrap();
            prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        }

        #[test]
        fn a_burst_holds_a_packet_and_what_is_due_within_a_wake_up(bits in 1_000_000_u64..=10_000_000_000) {
            let burst = Rate::new(bits).unwrap().burst_bytes();
            prop_assert!(burst >= 1514);
            prop_assert!(burst as f64 * 8.0 / bits as f64 >= 37e-6);
        }
    }
}
