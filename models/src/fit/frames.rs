//! Whether messages that leave a rank at once share its port, and by which frames.
//!
//! A rank sends m bytes to another one, or to two at once, of which the first answers. Where messages leave in turn
//! the first is answered as soon as alone. Where the port sends frames of f bytes, each message's in its
//! turn, the first one's last frame leaves when all of the second one but a frame has left: (1 - f / m) g(m) later.
//! So f is m less what of the second one's gap the delay is.
//!
//! The sender's processor delays the answer, too, if it still hands over the second message when the answer is there.
//! Nothing is determined where it may have taken as long as the port.

use records::{
    calibration::{PLogPEstimates, PortSharing, PortSharingKnot},
    group_observation::GroupKind,
};

use super::{
    centres::{GroupCentres, GroupKey},
    percentiles,
};
use crate::parameters::PLogP;

/// A delay of more than this part of a message's gap is one of sharing.
const SHARED: f64 = 0.5;
/// A frame is determined by the least size at which the delay is more than this part: its error is a part of the
/// message.
const DETERMINING_SHARE: f64 = 0.25;

/// A size at which it was measured.
struct ServedSize {
    bytes: u64,
    alone: GroupKey,
    beside: GroupKey,
    /// g(m), in seconds.
    gap: f64,
}

impl ServedSize {
    /// What part of the second message leaves before the end of the first.
    fn share(&self, centres: &GroupCentres) -> f64 {
        (centres[&self.beside] - centres[&self.alone]) / self.gap
    }
}

/// From times of [`GroupKind::FirstServed`]; nothing where there are none. No
/// frame is determined where at the largest size the delay is not surely one of sharing.
pub(super) fn port_sharing(
    centres: &GroupCentres,
    redrawn: &[GroupCentres],
    plogp: &PLogPEstimates,
) -> Option<PortSharing> {
    let sizes = sizes(centres, plogp);
    let estimate = |of: &dyn Fn(&GroupCentres) -> f64| percentiles(centres, redrawn, of);
    let knot = |size: &ServedSize| PortSharingKnot {
        bytes: size.bytes,
        alone_seconds: estimate(&|centres: &GroupCentres| centres[&size.alone]),
        beside_seconds: estimate(&|centres: &GroupCentres| centres[&size.beside]),
    };
    let largest = sizes.last()?;
    let is_shared = estimate(&|centres: &GroupCentres| largest.share(centres)).low > SHARED;
    let determining =
        sizes.iter().find(|size| size.share(centres) > DETERMINING_SHARE).filter(|_| is_shared);
    let frame = |size: &ServedSize| {
        let bytes = |centres: &GroupCentres| size.bytes as f64 * (1.0 - size.share(centres));
        estimate(&|centres: &GroupCentres| bytes(centres).max(1.0))
    };
    Some(PortSharing {
        frame_bytes: determining.map(frame),
        knots: sizes.iter().map(knot).collect(),
    })
}

fn sizes(centres: &GroupCentres, plogp: &PLogPEstimates) -> Vec<ServedSize> {
    let network = PLogP::at_ends(plogp, [None; 4]);
    let alone = |key: &&GroupKey| (key.0, key.2) == (GroupKind::FirstServed, 2);
    let size = |alone: &GroupKey| {
        let &(kind, operation, procs, bytes, messages) = alone;
        let beside = (kind, operation, procs + 1, bytes, messages);
        let (gap, send) = (network.gap(bytes as f64), network.at(bytes as f64).send);
        let is_of_port = gap > 0.0 && send < gap * (1.0 - SHARED) / 2.0;
        let is_there = is_of_port && centres.contains_key(&beside);
        is_there.then_some(ServedSize { bytes, alone: *alone, beside, gap })
    };
    centres.keys().filter(alone).filter_map(size).collect()
}
