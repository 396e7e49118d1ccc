//! How the messages of a call get through ports.

use records::Algorithm;
use schedules::simulator::Ports;

use super::SimulatedCall;
use crate::parameters::Network;

impl SimulatedCall {
    /// How its messages get through ports: by frames, if the network has them and some message may be longer.
    pub(super) fn ports(&self, network: &Network) -> Ports {
        match network.frame().filter(|frame| *frame < self.longest_message()) {
            Some(frame) => Ports::Frames(frame),
            None => Ports::InTurn,
        }
    }

    /// Whether messages that leave at once share ports by frames.
    pub(crate) fn has_frames(&self, network: &Network) -> bool {
        self.ports(network) != Ports::InTurn
    }

    /// At least the bytes of its longest message.
    fn longest_message(&self) -> u64 {
        // These send something without segments, too.
        let also_whole =
            matches!(self.entry.algorithm, Algorithm::SplittedBinary | Algorithm::SegmentedRing);
        let segment = self.method.segment_bytes;
        if self.entry.segmented && segment > 0 && !also_whole {
            return segment.min(self.bytes);
        }
        self.entry.collective.data_bytes(self.bytes, self.procs)
    }
}
