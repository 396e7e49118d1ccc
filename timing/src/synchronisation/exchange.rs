//! Reading another rank's clock: the envelope of a number of round trips.

use crate::{
    clock::{Nanos, now},
    peers::{Peers, Tag},
};

/// Round trips of one sighting.
const ROUND_TRIPS: usize = 20;

/// Both ways carry as many bytes: else the longer message's time would pass for an offset.
const BYTES: usize = 16;

/// How far two clocks are apart, as one sighting tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// When, by what is compared of this rank's clock.
    pub local: Nanos,
    /// This rank's clock less the other's, in nanoseconds.
    pub offset: f64,
    /// The shortest way there and the shortest way back together: the offset is off by at most
    /// half of it.
    pub width: Nanos,
    /// Standard error of the other rank's clock as it says itself, in nanoseconds.
    pub theirs: f64,
}

/// One round trip: sent and received by this rank's clock, answered by the other's.
#[derive(Debug, Clone, Copy)]
struct RoundTrip {
    sent: Nanos,
    answered: Nanos,
    received: Nanos,
}

/// Reads the clock of rank `other`, which must [answer] meanwhile. `clock` makes of this rank's
/// clock what is compared.
///
/// # Errors
/// The MPI library refuses.
pub fn read<P: Peers>(
    comm: &P,
    other: u32,
    clock: impl Fn(Nanos) -> Nanos,
) -> Result<Reading, P::Error> {
    let mut message = [0_u8; BYTES];
    let mut trips = Vec::with_capacity(ROUND_TRIPS);
    for trip in 0..=ROUND_TRIPS {
        let sent = now();
        comm.send(&message, other, Tag::Clock)?;
        comm.receive(&mut message, other, Tag::Clock)?;
        let received = now();
        // The first waits for the other rank to come here.
        if trip > 0 {
            let (answered, _) = unpack(message);
            trips.push(RoundTrip { sent: clock(sent), answered, received: clock(received) });
        }
    }
    let (_, theirs) = unpack(message);
    Ok(Reading { theirs, ..envelope(&trips) })
}

/// Answers the round trips of rank `other` with what `clock` makes of this rank's, and with how
/// far that may be wrong.
///
/// # Errors
/// The MPI library refuses.
pub fn answer<P: Peers>(
    comm: &P,
    other: u32,
    clock: impl Fn(Nanos) -> (Nanos, f64),
) -> Result<(), P::Error> {
    let mut message = [0_u8; BYTES];
    for _ in 0..=ROUND_TRIPS {
        comm.receive(&mut message, other, Tag::Clock)?;
        let (time, error) = clock(now());
        message[..8].copy_from_slice(&time.to_le_bytes());
        message[8..].copy_from_slice(&error.to_le_bytes());
        comm.send(&message, other, Tag::Clock)?;
    }
    Ok(())
}

fn unpack(message: [u8; BYTES]) -> (Nanos, f64) {
    let (mut time, mut error) = ([0; 8], [0; 8]);
    time.copy_from_slice(&message[..8]);
    error.copy_from_slice(&message[8..]);
    (Nanos::from_le_bytes(time), f64::from_le_bytes(error))
}

/// What delays a message only ever makes its way longer, so the shortest way there and the
/// shortest way back are each the best of theirs, in whichever round trips they were (SKaMPI's
/// envelope; Worsch, Reussner and Augustin 2002). As the clocks drift, the offset between the two
/// is that of the instant in the middle.
fn envelope(trips: &[RoundTrip]) -> Reading {
    let there = |trip: &&RoundTrip| trip.answered - trip.sent;
    let back = |trip: &&RoundTrip| trip.received - trip.answered;
    let none = RoundTrip { sent: 0, answered: 0, received: 0 };
    let (out, home) = (trips.iter().min_by_key(there), trips.iter().min_by_key(back));
    let (out, home) = (out.unwrap_or(&none), home.unwrap_or(&none));
    let middle = |trip: &RoundTrip| trip.sent + (trip.received - trip.sent) / 2;
    Reading {
        local: middle(out) + (middle(home) - middle(out)) / 2,
        offset: (back(&home) - there(&out)) as f64 / 2.0,
        width: back(&home) + there(&out),
        theirs: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_survives_its_way() {
        let mut message = [0; BYTES];
        message[..8].copy_from_slice(&(-5_i64).to_le_bytes());
        message[8..].copy_from_slice(&1.5_f64.to_le_bytes());
        assert_eq!(unpack(message), (-5, 1.5));
    }

    proptest! {
        /// Whatever delays the messages, the true offset is within half the width.
        #[test]
        fn the_offset_is_within_the_envelope(
            offset in -3_000_000_i64..3_000_000,
            delays in prop::collection::vec((1_000_i64..500_000, 1_000_i64..500_000), 1..20),
        ) {
            let trips: Vec<RoundTrip> = delays
                .iter()
                .zip(0_i64..)
                .map(|(&(there, back), index)| {
                    let sent = index * 1_000_000;
                    RoundTrip { sent, answered: sent - offset + there, received: sent + there + back }
                })
                .collect();
            let Reading { offset: seen, width, .. } = envelope(&trips);
            prop_assert!((seen - offset as f64).abs() <= width as f64 / 2.0);
        }

        /// However long the other rank was away in between.
        #[test]
        fn drift_during_the_round_trips_is_no_error(
            drift in -2e-5_f64..2e-5,
            stalls in prop::collection::vec(0_i64..1_000_000_000, 2..20),
        ) {
            let mut begun = 0;
            let trips: Vec<RoundTrip> = stalls
                .iter()
                .map(|stall| {
                    begun += stall;
                    // The other's clock is right, this one gains.
                    let shown = |time: i64| time + (drift * time as f64).round() as i64;
                    RoundTrip {
                        sent: shown(begun),
                        answered: begun + 10_000,
                        received: shown(begun + 20_000),
                    }
                })
                .collect();
            let reading = envelope(&trips);
            let truth = drift * reading.local as f64 / (1.0 + drift);
            prop_assert!((reading.offset - truth).abs() < 5.0, "{reading:?} {truth}");
        }
    }
}
