//! What is measured between two ranks.

use records::observation::PointToPointKind;
use serde::{Deserialize, Serialize};

/// An exchange of messages that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Experiment {
    /// The message forward, an empty one back: the round trip, and in it the send's own time.
    RoundTrip,
    /// An empty message forward, the message back, taken when it has long arrived.
    ReceiveOverhead,
    /// A number of messages in a row, then one empty back.
    ShortTrain,
    /// Twice as many. The difference of the two trains is the time of the additional messages
    /// alone, without the way there and back.
    LongTrain,
}

impl Experiment {
    /// All of them, in the order in which a size is first measured: the wait of
    /// [`ReceiveOverhead`](Self::ReceiveOverhead) is taken from the round trip.
    pub const ALL: [Experiment; 4] = [
        Experiment::RoundTrip,
        Experiment::ReceiveOverhead,
        Experiment::ShortTrain,
        Experiment::LongTrain,
    ];

    /// The kinds of observation that one repetition makes.
    pub const fn kinds(self) -> &'static [PointToPointKind] {
        match self {
            Experiment::RoundTrip => &[PointToPointKind::RoundTrip, PointToPointKind::SendOverhead],
            Experiment::ReceiveOverhead => &[PointToPointKind::ReceiveOverhead],
            Experiment::ShortTrain | Experiment::LongTrain => &[PointToPointKind::Train],
        }
    }

    const fn messages(self, bytes: u64) -> u32 {
        match self {
            Experiment::RoundTrip | Experiment::ReceiveOverhead => 1,
            Experiment::ShortTrain => train_length(bytes),
            Experiment::LongTrain => 2 * train_length(bytes),
        }
    }
}

/// Messages in the short train of a size: about 64 KiB in all, but 1 to 128 messages.
///
/// Small messages need many, or the way there and back hides them; large ones need few, or the
/// train takes too long.
const fn train_length(bytes: u64) -> u32 {
    const WHOLE: u64 = 64 << 10;
    const MOST: u64 = 128;
    let fitting = WHOLE / if bytes == 0 { 1 } else { bytes };
    match fitting {
        0 => 1,
        1..MOST => fitting as u32,
        _ => MOST as u32,
    }
}

/// An experiment at one message size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// The exchange.
    pub experiment: Experiment,
    /// Bytes of one message.
    pub bytes: u64,
    /// Messages in a row; 1 where it is no train.
    pub messages: u32,
}

impl Cell {
    /// The experiment at a size.
    pub const fn new(experiment: Experiment, bytes: u64) -> Self {
        Cell { experiment, bytes, messages: experiment.messages(bytes) }
    }

    /// Every cell, by size and then by experiment.
    pub fn all(sizes: &[u64]) -> Vec<Cell> {
        let of_size = |&bytes| Experiment::ALL.map(move |experiment| Cell::new(experiment, bytes));
        sizes.iter().flat_map(of_size).collect()
    }

    /// For people: `train of 128 messages of 64 B`.
    pub fn describe(&self) -> String {
        let size = records::quantity::format_bytes(self.bytes);
        match self.experiment {
            Experiment::RoundTrip => format!("round trip of {size}"),
            Experiment::ReceiveOverhead => format!("receive overhead of {size}"),
            Experiment::ShortTrain | Experiment::LongTrain => {
                format!("train of {} messages of {size}", self.messages)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trains_are_long_for_small_messages_and_short_for_large_ones() {
        let lengths = [0, 1, 512, 1024, 8192, 65_536, 1 << 20, 1 << 40].map(train_length);
        assert_eq!(lengths, [128, 128, 128, 64, 8, 1, 1, 1]);
        assert_eq!(Cell::new(Experiment::LongTrain, 1 << 20).messages, 2);
    }

    #[test]
    fn cells_of_a_size_stand_together() {
        let cells = Cell::all(&[0, 8]);
        assert_eq!(cells.len(), 8);
        assert!(cells[..4].iter().all(|cell| cell.bytes == 0));
    }
}
