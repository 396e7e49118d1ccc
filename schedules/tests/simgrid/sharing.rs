//! SimGrid as it is used: messages that are under way at once share a link.

use std::error::Error;

use colibri_schedules::{
    Call, find,
    simulator::{CostKnot, Costs, Options, PLogPCosts, simulate},
};
use records::{Algorithm, Collective};

use crate::harness::{ENVELOPE, LATENCY, SECONDS_PER_BYTE, SimGrid};

const PLATFORM: &str = "latency.xml";

/// Messages cost what Hockney says, don't disturb each other's links, and every send waits for its
/// receive.
const NEUTRAL: &[&str] =
    &["network/model:CM02", "network/crosstraffic:0", "smpi/send-is-detached-thresh:0"];

/// SimGrid's name, and ours; both have segments of 128 KiB where there are any.
const ALGORITHMS: &[(Collective, &str, Algorithm)] = &[
    (Collective::Bcast, "binomial_tree", Algorithm::Binomial),
    (Collective::Bcast, "ompi_pipeline", Algorithm::Pipeline),
    (Collective::Bcast, "scatter_rdb_allgather", Algorithm::ScatterAllgather),
    (Collective::Reduce, "flat_tree", Algorithm::Linear),
    (Collective::Reduce, "binomial", Algorithm::Binomial),
    (Collective::Barrier, "ompi_bruck", Algorithm::Bruck),
    (Collective::Barrier, "ompi_recursivedoubling", Algorithm::RecursiveDoubling),
];
const SEGMENT: u64 = 128 << 10;

/// The port is busy until the message is there.
struct Blocking(PLogPCosts);

impl Costs for Blocking {
    fn send_overhead(&self, _bytes: u64) -> f64 {
        0.0
    }

    fn receive_overhead(&self, _bytes: u64) -> f64 {
        0.0
    }

    fn gap(&self, bytes: u64, destinations: u32) -> f64 {
        self.0.gap(bytes, destinations)
    }

    fn flight(&self, bytes: u64) -> f64 {
        self.0.gap(bytes, 1)
    }

    fn combine(&self, _bytes: u64) -> f64 {
        0.0
    }
}

fn blocking(times: impl Iterator<Item = (u64, f64)>) -> Result<Blocking, Box<dyn Error>> {
    let knot = |(bytes, gap)| CostKnot { bytes, send_overhead: 0.0, receive_overhead: 0.0, gap };
    Ok(Blocking(PLogPCosts::new(0.0, times.map(knot).collect(), 0.0)?))
}

/// Seconds by our simulator.
fn ours(
    (collective, algorithm): (Collective, Algorithm),
    ranks: u32,
    bytes: u64,
    costs: &Blocking,
) -> Result<f64, Box<dyn Error>> {
    let entry = find(collective, algorithm).ok_or("no such schedule")?;
    let segment = if entry.segmented && algorithm == Algorithm::Pipeline { SEGMENT } else { 0 };
    let call = Call { segment, ..Call::new(ranks, bytes) };
    let options = Options { rendezvous_bytes: Some(0), handshake: Some(0.0), ..Options::default() };
    Ok(simulate(entry, &call, costs, options)?.seconds)
}

/// To 1e-6: one message takes 50 us + 8 ns (m + 16).
#[test]
fn in_neutral_mode_both_simulators_agree() -> Result<(), Box<dyn Error>> {
    let Some(simgrid) = SimGrid::build("neutral")? else { return Ok(()) };
    let hockney = |bytes: u64| LATENCY + SECONDS_PER_BYTE * (bytes + ENVELOPE) as f64;
    let costs = blocking([0, 1 << 30].map(|bytes| (bytes, hockney(bytes))).into_iter())?;
    for &(collective, name, algorithm) in ALGORITHMS {
        let sizes: &[u64] = if collective == Collective::Barrier { &[0] } else { &[8192, 1 << 20] };
        for ranks in [32, 256] {
            let chosen = (collective.name(), Some(name));
            for &bytes in sizes {
                let theirs = simgrid.collective(NEUTRAL, PLATFORM, chosen, ranks, bytes)?;
                let ours = ours((collective, algorithm), ranks, bytes, &costs)?;
                assert!(
                    (ours / theirs - 1.0).abs() < 1e-6,
                    "{collective} {algorithm}, {ranks} ranks, {bytes} bytes: {ours} s, {theirs} s"
                );
            }
        }
    }
    Ok(())
}

/// What both take at 32 ranks, in seconds.
struct Pair {
    collective: Collective,
    algorithm: Algorithm,
    bytes: u64,
    theirs: f64,
    ours: f64,
}

/// Broadcasts and reductions under SimGrid's own network model, with settings of it; a message of
/// ours costs what one of theirs does.
fn pairs(simgrid: &SimGrid, settings: &[&str]) -> Result<Vec<Pair>, Box<dyn Error>> {
    let knots: Vec<u64> = (0..=20).map(|power| 1 << power).collect();
    let half = |bytes: &u64| -> Result<_, Box<dyn Error>> {
        let both = simgrid.collective(settings, PLATFORM, ("message", None), 2, *bytes)?;
        Ok((*bytes, both / 2.0))
    };
    let costs = blocking(knots.iter().map(half).collect::<Result<Vec<_>, _>>()?.into_iter())?;
    let mut pairs = Vec::new();
    for &(collective, name, algorithm) in ALGORITHMS {
        if collective == Collective::Barrier {
            continue;
        }
        let chosen = (collective.name(), Some(name));
        for bytes in [8192, 1 << 20] {
            let theirs = simgrid.collective(settings, PLATFORM, chosen, 32, bytes)?;
            let ours = ours((collective, algorithm), 32, bytes, &costs)?;
            pairs.push(Pair { collective, algorithm, bytes, theirs, ours });
        }
    }
    Ok(pairs)
}

/// What clearly takes longer there takes longer here, but for one pair.
#[test]
fn in_default_mode_both_order_the_algorithms_alike() -> Result<(), Box<dyn Error>> {
    let Some(simgrid) = SimGrid::build("default")? else { return Ok(()) };
    let pairs = pairs(&simgrid, &[])?;
    let mut reversed = Vec::new();
    for (index, one) in pairs.iter().enumerate() {
        let Pair { collective, algorithm, bytes, theirs, ours } = *one;
        println!("{collective} {algorithm} {bytes}: SimGrid {theirs:.6} s, here {ours:.6} s");
        for other in &pairs[index..] {
            if (other.collective, other.bytes) == (collective, bytes) {
                let (theirs, ours) = (theirs / other.theirs, ours / other.ours);
                if theirs.max(1.0 / theirs) > 1.1 && (theirs > 1.0) != (ours > 1.0) {
                    reversed.push((collective, bytes, algorithm, other.algorithm));
                }
            }
        }
    }
    // There a rank's eager sends are all under way at once and share its link, so that the first
    // one of a binomial tree, which has the longest way to go, comes late.
    let expected = (Collective::Bcast, 8192, Algorithm::Binomial, Algorithm::ScatterAllgather);
    assert_eq!(reversed, [expected]);
    Ok(())
}

/// To 1e-3 (message times are interpolated): what is different in default mode comes of eager
/// sends that share their sender's link, and of the two directions of a link sharing it.
#[test]
fn where_no_link_is_shared_default_mode_agrees() -> Result<(), Box<dyn Error>> {
    let Some(simgrid) = SimGrid::build("unshared")? else { return Ok(()) };
    let settings = ["network/crosstraffic:0", "smpi/send-is-detached-thresh:0"];
    for Pair { collective, algorithm, bytes, theirs, ours } in pairs(&simgrid, &settings)? {
        assert!(
            (ours / theirs - 1.0).abs() < 1e-3,
            "{collective} {algorithm}, {bytes} bytes: {ours} s, {theirs} s"
        );
    }
    Ok(())
}
