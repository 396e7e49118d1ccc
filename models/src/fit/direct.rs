//! LogGP by itself, from Netgauge's exchanges.

use records::observation::PointToPointKind;

use super::samples::Centres;
use crate::parameters::LogGp;

/// Where the centres of the spaced trains stand, of the smallest size that has both.
#[derive(Debug)]
pub(super) struct Direct {
    bytes: u64,
    /// The single message.
    one: usize,
    /// The row: (messages, place).
    row: (u32, usize),
}

impl Direct {
    /// None where no size was sent singly and in a row.
    pub(super) fn new(centres: &Centres) -> Option<Self> {
        let spaced: Vec<(u64, u32, usize)> = centres
            .keys()
            .filter(|((kind, ..), _)| *kind == PointToPointKind::SpacedTrain)
            .map(|((_, bytes, messages), place)| (bytes, messages, place))
            .collect();
        // The keys ascend by size, then by length.
        spaced.windows(2).find_map(|pair| match *pair {
            [(bytes, 1, one), (same, messages, row)] if bytes == same && messages > 1 => {
                Some(Direct { bytes, one, row: (messages, row) })
            }
            _ => None,
        })
    }

    /// Hoefler et al. (2007): PRTT(n, d, s) without the waits d is PRTT(1, 0, s) + (n - 1) o, and
    /// PRTT(1, 0, s) = 2 (L + 2 o + (s - 1) G). `seconds` gives the time at a place, `receive` is
    /// or(1); o is the mean of both sides'.
    ///
    /// Where the overheads sum to more than a message takes, L is 0 and o half of the message's
    /// time, as in [`LinearGap`](crate::parameters::LinearGap).
    pub(super) fn loggp(
        &self,
        seconds: impl Fn(usize) -> f64,
        receive: f64,
        gap: f64,
        gap_per_byte: f64,
    ) -> LogGp {
        let one = seconds(self.one);
        let (messages, row) = self.row;
        let send = ((seconds(row) - one) / f64::from(messages - 1)).max(0.0);
        let stream = self.bytes.saturating_sub(1) as f64 * gap_per_byte;
        let message = (one / 2.0 - stream).max(0.0);
        LogGp {
            latency: (message - send - receive).max(0.0),
            overhead: (send + receive).min(message) / 2.0,
            gap,
            gap_per_byte,
        }
    }
}
