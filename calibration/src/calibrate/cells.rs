//! What is measured.

use records::{
    calibration::Operation, group_observation::GroupKind, observation::PointToPointKind,
    quantity::format_bytes,
};
use schedules::shared::{DEFAULT_NODE_BYTES, turn_bytes};
use serde::{Deserialize, Serialize};
use statistics::stopping::Rule;

/// Something that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Experiment {
    /// The message forward, an empty one back: the round trip, and in it the send's own time.
    RoundTrip,
    /// An empty message forward, the message back, taken when it has long arrived.
    ReceiveOverhead,
    /// A number of messages in a row, then one empty back; and twice as many. The difference of the two
    /// trains is the time of the additional messages alone, without the way there and back. A visit
    /// times both: what the machine does meanwhile is the same for them then.
    Trains,
    /// The message forward, one as long back.
    SpacedOne,
    /// Several messages, so far apart that each finds the way free, then one as long back.
    SpacedTrain,
    /// Flat-tree barriers in a row.
    FlatBarrier,
    /// Flat-tree barriers in a row, with receives posted together.
    PostedBarrier,
    /// One message handed from rank to rank.
    ChainBcast,
    /// Messages from the root to all others at once, and twice as many.
    FanOut,
    /// Messages from all others to the root at once, and twice as many.
    FanIn,
    /// A message from the root to one rank, or to several at once, of which the first answers.
    FirstServed,
    /// Messages from ranks of one node to as many of another, through one port, and twice as many.
    PairStreams,
    /// Messages both ways between ranks of two nodes, through one port of each, and twice as many.
    PairExchanges,
    /// Rounds among several ranks of one node, and twice as many. In each, every rank sends to one and receives
    /// from another, as in collectives: each round waits for the last one and has other partners.
    Shifts,
    /// Copying within the memory of each rank, on several ranks of one node at once, and twice as often.
    Copies,
    /// Barriers by flags in memory that ranks of one node share, and twice as many.
    SharedFlags,
    /// Rounds in which the root writes to shared memory, all others copy that, and a barrier follows; and twice as
    /// many.
    SharedReads,
    /// Combining messages, on the root alone.
    Combine(Operation),
}

/// A kind of observation, with what keeps apart those of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObservedKind {
    /// Between two ranks.
    Pair(PointToPointKind),
    /// Among more, or on one.
    Group(GroupKind, Option<Operation>),
}

impl Experiment {
    /// Those of every size between two ranks, in the order in which a size is first measured: the
    /// wait of [`ReceiveOverhead`](Self::ReceiveOverhead) is taken from the round trip.
    pub const OF_SIZE: [Experiment; 3] =
        [Experiment::RoundTrip, Experiment::ReceiveOverhead, Experiment::Trains];

    /// The kinds of observation that one repetition makes.
    pub fn kinds(self) -> impl Iterator<Item = ObservedKind> {
        use PointToPointKind as Pair;
        let alone = |kind| [Some(kind), None];
        let kinds = match self {
            Experiment::RoundTrip => [
                Some(ObservedKind::Pair(Pair::RoundTrip)),
                Some(ObservedKind::Pair(Pair::SendOverhead)),
            ],
            Experiment::ReceiveOverhead => alone(ObservedKind::Pair(Pair::ReceiveOverhead)),
            Experiment::Trains => alone(ObservedKind::Pair(Pair::Train)),
            Experiment::SpacedOne | Experiment::SpacedTrain => {
                alone(ObservedKind::Pair(Pair::SpacedTrain))
            }
            Experiment::FlatBarrier => alone(ObservedKind::Group(GroupKind::FlatBarrier, None)),
            Experiment::PostedBarrier => alone(ObservedKind::Group(GroupKind::PostedBarrier, None)),
            Experiment::ChainBcast => alone(ObservedKind::Group(GroupKind::ChainBcast, None)),
            Experiment::FanOut => alone(ObservedKind::Group(GroupKind::FanOut, None)),
            Experiment::FanIn => alone(ObservedKind::Group(GroupKind::FanIn, None)),
            Experiment::FirstServed => alone(ObservedKind::Group(GroupKind::FirstServed, None)),
            Experiment::PairStreams => alone(ObservedKind::Group(GroupKind::PairStreams, None)),
            Experiment::PairExchanges => alone(ObservedKind::Group(GroupKind::PairExchanges, None)),
            Experiment::Shifts => alone(ObservedKind::Group(GroupKind::Shifts, None)),
            Experiment::Copies => alone(ObservedKind::Group(GroupKind::Copies, None)),
            Experiment::SharedFlags => alone(ObservedKind::Group(GroupKind::SharedFlags, None)),
            Experiment::SharedReads => alone(ObservedKind::Group(GroupKind::SharedReads, None)),
            Experiment::Combine(operation) => {
                alone(ObservedKind::Group(GroupKind::Combine, Some(operation)))
            }
        };
        kinds.into_iter().flatten()
    }

    /// Whether it is among ranks that share the ports of two nodes, or the memory of one.
    pub fn is_of_sharing(self) -> bool {
        use Experiment::{Copies, PairExchanges, PairStreams, Shifts};
        self.is_in_shared_memory() || matches!(self, PairStreams | PairExchanges | Shifts | Copies)
    }

    /// Whether it works through memory that ranks share, without messages.
    pub fn is_in_shared_memory(self) -> bool {
        matches!(self, Experiment::SharedFlags | Experiment::SharedReads)
    }

    /// Whether it is between the sender and the mirror.
    pub fn is_of_pair(self) -> bool {
        self.kinds().all(|kind| matches!(kind, ObservedKind::Pair(_)))
    }
}

/// Messages in the short train of a size: about 64 KiB in all, but 1 to 128 messages.
///
/// Small messages need many, or the way there and back hides them; large ones need few, or the
/// train takes too long.
fn train_length(bytes: u64) -> u32 {
    fitting(64 << 10, bytes, 128)
}

/// As many messages as make up `whole` bytes, but 1 to `most`.
fn fitting(whole: u64, bytes: u64, most: u32) -> u32 {
    u32::try_from(whole / bytes.max(1)).unwrap_or(most).clamp(1, most)
}

/// An experiment at one message size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SizedExperiment {
    /// What is timed.
    pub experiment: Experiment,
    /// Ranks that take part: 2 between two, 1 for the root alone.
    pub procs: u32,
    /// Bytes of one message.
    pub bytes: u64,
    /// Messages, rounds or calls in a row; 1 where it is no row.
    pub messages: u32,
}

impl SizedExperiment {
    /// Barriers in a row: the clock and the last release are spread over them.
    const BARRIERS: u32 = 8;
    /// Messages of a spaced train, as Netgauge has.
    const SPACED: u32 = 10;
    /// Processes are fitted up to every number of them; beyond, to about half steps of a power.
    const EVERY: u32 = 8;
    /// Message sizes of the exchanges with several ranks at once.
    const SHARED_SIZES: [u64; 4] = [1, 1 << 10, 8 << 10, 64 << 10];
    /// What is read from shared memory in one piece: from what waits for the first bytes alone to what no cache
    /// of a processor holds beside a copy of it.
    const READ_SIZES: [u64; 5] = [256, 4 << 10, 32 << 10, 128 << 10, 512 << 10];
    /// Message sizes at which ranks of a node slow each other down: up to beyond the caches of a processor.
    const MEMORY_SIZES: [u64; 5] = [1, 4 << 10, 64 << 10, 256 << 10, 1 << 20];
    /// Message sizes at which it is measured whether messages at once share a port: of some frames, as far as a
    /// frame is known.
    const FIRST_SERVED_SIZES: [u64; 2] = [4 << 10, 16 << 10];
    /// Message sizes of combining: from a few elements to beyond the caches.
    const COMBINED_SIZES: [u64; 7] = [8, 64, 1 << 10, 8 << 10, 64 << 10, 1 << 20, 16 << 20];

    /// An experiment between two ranks at a size.
    pub fn of_pair(experiment: Experiment, bytes: u64) -> Self {
        let messages = match experiment {
            Experiment::Trains => train_length(bytes),
            Experiment::SpacedTrain => Self::SPACED,
            _ => 1,
        };
        SizedExperiment { experiment, procs: 2, bytes, messages }
    }

    /// Every cell between two ranks, by size and then by experiment.
    pub fn all_of_pair(sizes: &[u64]) -> Vec<SizedExperiment> {
        let spaced = sizes.iter().copied().find(|bytes| *bytes > 0);
        let of_size = |&bytes: &u64| {
            let spaced = [Experiment::SpacedOne, Experiment::SpacedTrain]
                .into_iter()
                .filter(move |_| Some(bytes) == spaced);
            Experiment::OF_SIZE
                .into_iter()
                .chain(spaced)
                .map(move |one| SizedExperiment::of_pair(one, bytes))
        };
        sizes.iter().flat_map(of_size).collect()
    }

    /// Every cell of groups of ranks, by size: `sizes` are those of the chains,
    /// `ranks` all that there are.
    pub fn all_of_groups(sizes: &[u64], ranks: u32) -> Vec<SizedExperiment> {
        let mut cells = Vec::new();
        // Two numbers of processes lie on any line.
        if ranks > 3 {
            let swept = swept(ranks);
            let at = |experiment, bytes, messages| {
                swept.iter().map(move |&procs| SizedExperiment {
                    experiment,
                    procs,
                    bytes,
                    messages,
                })
            };
            cells.extend(at(Experiment::FlatBarrier, 0, Self::BARRIERS));
            cells.extend(at(Experiment::PostedBarrier, 0, Self::BARRIERS));
            cells.extend(sizes.iter().flat_map(|&bytes| at(Experiment::ChainBcast, bytes, 1)));
        }
        let rounds = |bytes, partners| fitting(64 << 10, bytes * u64::from(partners), 32);
        let largest = sizes.last().copied().unwrap_or_default();
        for bytes in Self::SHARED_SIZES.into_iter().filter(|bytes| *bytes <= largest) {
            for partners in partners(ranks) {
                for experiment in [Experiment::FanOut, Experiment::FanIn] {
                    let procs = partners + 1;
                    let short = rounds(bytes, partners);
                    cells.extend([short, 2 * short].map(|messages| SizedExperiment {
                        experiment,
                        procs,
                        bytes,
                        messages,
                    }));
                }
            }
        }
        let served = Self::FIRST_SERVED_SIZES.into_iter().filter(|bytes| *bytes <= largest);
        cells.extend(served.filter(|_| ranks > 2).flat_map(|bytes| {
            let experiment = Experiment::FirstServed;
            [2, 3].map(|procs| SizedExperiment { experiment, procs, bytes, messages: 1 })
        }));
        cells.sort_by_key(|cell| cell.bytes);
        cells
    }

    /// Every cell of combining, by size.
    pub fn all_of_combining() -> Vec<SizedExperiment> {
        let mut cells = Vec::new();
        for operation in Operation::ALL {
            cells.extend(Self::COMBINED_SIZES.map(|bytes| {
                let messages = fitting(256 << 10, bytes, 1024);
                SizedExperiment {
                    experiment: Experiment::Combine(operation),
                    procs: 1,
                    bytes,
                    messages,
                }
            }));
        }
        cells.sort_by_key(|cell| cell.bytes);
        cells
    }

    /// Every cell of so many pairs of ranks that share two nodes' ports, by size, none of more than
    /// `largest` bytes.
    pub fn all_of_ports(pairs: u32, largest: u64) -> Vec<SizedExperiment> {
        let mut cells = Vec::new();
        for bytes in Self::SHARED_SIZES.into_iter().filter(|bytes| *bytes <= largest && pairs > 1) {
            for sending in std::iter::once(1).chain(partners(pairs + 1)) {
                let short = fitting(16 << 10, bytes * u64::from(sending), 32);
                for experiment in [Experiment::PairStreams, Experiment::PairExchanges] {
                    let procs = 2 * sending;
                    cells.extend([short, 2 * short].map(|messages| SizedExperiment {
                        experiment,
                        procs,
                        bytes,
                        messages,
                    }));
                }
            }
        }
        cells
    }

    /// Every cell of so many ranks that share the memory of a node, by size, none of more than `largest` bytes.
    pub fn all_of_memory(ranks: u32, largest: u64) -> Vec<SizedExperiment> {
        // What two do is what others are compared with: with nobody else there is nothing to tell.
        if ranks <= 3 {
            return Vec::new();
        }
        let mut cells = Vec::new();
        let several = partners(ranks + 1);
        for &procs in &several {
            let row = |messages| SizedExperiment {
                experiment: Experiment::SharedFlags,
                procs,
                bytes: 0,
                messages,
            };
            cells.extend([64, 128].map(row));
        }
        let room = turn_bytes(DEFAULT_NODE_BYTES, ranks as usize) as u64;
        let sizes = Self::READ_SIZES.into_iter().filter(|bytes| *bytes <= largest.min(room));
        for (bytes, &procs) in sizes.flat_map(|bytes| several.iter().map(move |it| (bytes, it))) {
            let short = fitting(2 << 20, bytes, 32);
            cells.extend([short, 2 * short].map(|messages| SizedExperiment {
                experiment: Experiment::SharedReads,
                procs,
                bytes,
                messages,
            }));
        }
        for bytes in Self::MEMORY_SIZES.into_iter().filter(|bytes| *bytes <= largest) {
            let mut add = |experiment, procs: u32, whole: u64| {
                let short = fitting(whole, bytes, 64);
                cells.extend([short, 2 * short].map(|messages| SizedExperiment {
                    experiment,
                    procs,
                    bytes,
                    messages,
                }));
            };
            // Of the longest messages, too, there are two rounds: one alone has no change of partners.
            several.iter().for_each(|&procs| add(Experiment::Shifts, procs, 2 << 20));
            if bytes > 1 {
                let copying = std::iter::once(1).chain(several.iter().copied());
                copying.for_each(|procs| add(Experiment::Copies, procs, 1 << 20));
            }
        }
        cells.sort_by_key(|cell| cell.bytes);
        cells
    }

    /// Whether parameters hang on it that are differences (L of a round trip, g of two trains), and so
    /// magnify its errors: the smallest messages.
    pub fn is_decisive(&self) -> bool {
        self.experiment.is_of_pair() && self.bytes <= 1
    }

    /// Whether the two are of one size and of no use without each other: what is observed between
    /// two ranks, a chain over all numbers of ranks, messages from and to all others.
    pub fn is_looked_at_with(&self, other: &SizedExperiment) -> bool {
        let kind = |cell: &SizedExperiment| match cell.experiment {
            experiment if experiment.is_of_pair() => Experiment::RoundTrip,
            Experiment::FanIn => Experiment::FanOut,
            Experiment::PairExchanges => Experiment::PairStreams,
            experiment => experiment,
        };
        self.bytes == other.bytes && kind(self) == kind(other)
    }

    /// Whether the root does it without any other rank, in a group of its own.
    pub fn is_alone(&self) -> bool {
        matches!(self.experiment, Experiment::Combine(_))
    }

    /// How much more certain than others a cell shall be known: those that parameters are differences
    /// of. Half of the intercept of the barriers' line is the fitted L.
    pub fn fineness(&self) -> f64 {
        let fine = self.is_decisive() || self.experiment == Experiment::FlatBarrier;
        if fine { 2.5 } else { 1.0 }
    }

    /// Its parts, which one visit times one after the other: the two trains.
    pub fn parts(self) -> impl Iterator<Item = SizedExperiment> {
        let trains = self.experiment == Experiment::Trains;
        let twice = trains.then_some(SizedExperiment { messages: 2 * self.messages, ..self });
        std::iter::once(self).chain(twice)
    }

    /// Every series of observations that a visit adds to: the kind, and the part.
    pub fn series(&self) -> impl Iterator<Item = (ObservedKind, SizedExperiment)> + use<> {
        self.parts().flat_map(|part| part.experiment.kinds().map(move |kind| (kind, part)))
    }

    /// The rule for this cell.
    pub fn rule(&self, rule: &Rule) -> Rule {
        Rule { relative_error: rule.relative_error / self.fineness(), ..*rule }
    }

    /// For people: `train of 128 messages of 64 B`.
    pub fn describe(&self) -> String {
        let size = format_bytes(self.bytes);
        let SizedExperiment { procs, messages, .. } = self;
        match self.experiment {
            Experiment::RoundTrip => format!("round trip of {size}"),
            Experiment::ReceiveOverhead => format!("receive overhead of {size}"),
            Experiment::Trains => {
                let train = records::counted(*messages, "message");
                format!("trains of {train} of {size}, and of twice as many")
            }
            Experiment::SpacedOne | Experiment::SpacedTrain => {
                format!("spaced train of {messages} messages of {size}")
            }
            Experiment::FlatBarrier => format!("flat-tree barrier of {procs}"),
            Experiment::PostedBarrier => format!("flat-tree barrier of {procs}, receives posted"),
            Experiment::ChainBcast => format!("chain of {size} over {procs}"),
            Experiment::FanOut => format!("{messages} times {size} from 1 to {}", procs - 1),
            Experiment::FanIn => format!("{messages} times {size} from {} to 1", procs - 1),
            Experiment::FirstServed => format!("first answer to {size} to {} at once", procs - 1),
            Experiment::PairStreams => {
                format!("{messages} times {size} from each of {} ranks of a node", procs / 2)
            }
            Experiment::PairExchanges => {
                format!("{messages} times {size} to and from each of {} ranks of a node", procs / 2)
            }
            Experiment::Shifts => format!("{messages} shifts of {size} among {procs} ranks"),
            Experiment::Copies => format!("{messages} copies of {size} on {procs} ranks at once"),
            Experiment::SharedFlags => {
                format!("{messages} barriers of {procs} ranks by shared memory")
            }
            Experiment::SharedReads => {
                format!("{messages} reads of {size} from shared memory by {} ranks", procs - 1)
            }
            Experiment::Combine(operation) => format!("{} of {size}", operation.name()),
        }
    }
}

/// Numbers of processes, ascending: every one up to 8, then 12, 16, 24, 32, ... and all.
fn swept(ranks: u32) -> Vec<u32> {
    let powers = std::iter::successors(Some(SizedExperiment::EVERY), |procs| procs.checked_mul(2));
    let steps = powers.flat_map(|procs| [procs + procs / 2, 2 * procs]);
    let steps = steps.take_while(|&procs| procs < ranks);
    let mut swept: Vec<u32> =
        (2..=ranks.min(SizedExperiment::EVERY)).chain(steps).chain([ranks]).collect();
    swept.dedup();
    swept
}

/// Numbers of partners of one rank, ascending, from 2 on: doubling, and all.
fn partners(ranks: u32) -> Vec<u32> {
    let all = ranks.saturating_sub(1);
    let doubling = std::iter::successors(Some(2_u32), |partners| partners.checked_mul(2));
    let mut partners: Vec<u32> = doubling.take_while(|&partners| partners < all).collect();
    partners.extend((all >= 2).then_some(all));
    partners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trains_are_long_for_small_messages_and_short_for_large_ones() {
        let lengths = [0, 1, 512, 1024, 8192, 65_536, 1 << 20, 1 << 40].map(train_length);
        assert_eq!(lengths, [128, 128, 128, 64, 8, 1, 1, 1]);
        assert_eq!(SizedExperiment::of_pair(Experiment::Trains, 1 << 20).messages, 1);
    }

    #[test]
    fn cells_of_a_size_stand_together() {
        let cells = SizedExperiment::all_of_pair(&[0, 8, 16]);
        assert_eq!(cells.len(), 11, "the smallest message is sent in spaced trains too");
        assert!(cells[..3].iter().all(|cell| cell.bytes == 0));
        assert!(cells[3..8].iter().all(|cell| cell.bytes == 8));
        assert!(cells.iter().all(|cell| cell.experiment.is_of_pair()));
    }

    #[test]
    fn groups_of_all_sizes_are_measured_as_far_as_there_are_ranks() {
        assert_eq!(swept(3), [2, 3]);
        assert_eq!(swept(8), [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(swept(32), [2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32]);
        assert_eq!(swept(13), [2, 3, 4, 5, 6, 7, 8, 12, 13]);
        assert_eq!([1, 2, 3, 4, 8, 9].map(|ranks| partners(ranks).len()), [0, 0, 1, 2, 3, 3]);
        assert_eq!(partners(8), [2, 4, 7]);

        let cells = SizedExperiment::all_of_groups(&[0, 1, 65_536], 8);
        assert!(cells.is_sorted_by_key(|cell| cell.bytes));
        assert!(cells.iter().all(|cell| !cell.experiment.is_of_pair() && cell.procs <= 8));
        let count = |experiment| cells.iter().filter(|cell| cell.experiment == experiment).count();
        assert_eq!(count(Experiment::FlatBarrier), 7);
        assert_eq!(count(Experiment::PostedBarrier), 7);
        assert_eq!(count(Experiment::ChainBcast), 21);
        assert_eq!(count(Experiment::FanIn), 4 * 3 * 2);
        assert_eq!(count(Experiment::FirstServed), 2 * 2, "alone and beside another");
        assert_eq!(SizedExperiment::all_of_groups(&[0, 1], 2), []);
        let combining = SizedExperiment::all_of_combining();
        assert!(combining.iter().all(|cell| matches!(cell.experiment, Experiment::Combine(_))));
        assert!(combining.is_sorted_by_key(|cell| cell.bytes));
    }

    #[test]
    fn a_port_is_shared_by_one_pair_two_four_and_all() {
        let cells = SizedExperiment::all_of_ports(6, 1024);
        let mut procs: Vec<u32> = cells.iter().map(|cell| cell.procs).collect();
        procs.dedup();
        assert_eq!(procs, [2, 4, 8, 12, 2, 4, 8, 12], "of two sizes");
        assert_eq!(cells.len(), 2 * 4 * 2 * 2, "one way and both, in short and in long");
        assert!(cells.iter().all(|cell| cell.experiment.is_of_sharing()));
        assert_eq!(SizedExperiment::all_of_ports(1, 1024), [], "nobody to share it with");
    }
    #[test]
    fn memory_is_shared_by_one_pair_two_four_and_all() {
        let cells = SizedExperiment::all_of_memory(12, 64 << 10);
        let procs = |experiment| {
            let of = cells.iter().filter(|cell| cell.experiment == experiment);
            let mut procs: Vec<u32> =
                of.filter(|cell| cell.bytes == 4096).map(|cell| cell.procs).collect();
            procs.dedup();
            procs
        };
        assert_eq!(procs(Experiment::Shifts), [2, 4, 8, 12]);
        assert_eq!(procs(Experiment::Copies), [1, 2, 4, 8, 12]);
        assert_eq!(procs(Experiment::SharedReads), [2, 4, 8, 12]);
        assert!(cells.iter().all(|cell| cell.bytes <= 64 << 10 && cell.procs <= 12));
        assert!(cells.is_sorted_by_key(|cell| cell.bytes));
        assert_eq!(SizedExperiment::all_of_memory(3, 1024), [], "one pair alone tells nothing");
    }
}
