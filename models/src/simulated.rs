//! Predictions by the simulator: an algorithm's schedule, message by message.

use records::{Collective, openmpi};
use schedules::{
    Call, Entry,
    simulator::{self, Costs, Options, SimulationError},
};

use crate::parameters::{Network, PointToPoint};

/// What messages cost under a model's parameters. Hockney's sender is busy until all has left, and
/// its receiver never.
///
/// LogGP: a message takes L + 2 o + (m - 1) G. PLogP: L + g(m), overheads included, and nothing
/// more than these if they take longer; a rank that keeps sending to k others starts a message
/// per g(m, k) / k.
impl Costs for Network {
    fn send_overhead(&self, bytes: u64) -> f64 {
        match &self.model {
            PointToPoint::Hockney(net) => net.message(bytes as f64),
            PointToPoint::LogGp(net) => net.overhead,
            PointToPoint::PLogP(net) => net.at(bytes as f64).send,
        }
    }

    fn receive_overhead(&self, bytes: u64) -> f64 {
        match &self.model {
            PointToPoint::Hockney(_) => 0.0,
            PointToPoint::LogGp(net) => net.overhead,
            PointToPoint::PLogP(net) => net.at(bytes as f64).receive,
        }
    }

    fn gap(&self, bytes: u64, destinations: u32) -> f64 {
        let size = bytes as f64;
        match &self.model {
            PointToPoint::Hockney(net) => net.message(size),
            PointToPoint::LogGp(net) => net.gap(size),
            PointToPoint::PLogP(net) if destinations > 1 => {
                net.gap_to(size, destinations) / f64::from(destinations)
            }
            PointToPoint::PLogP(net) => net.gap(size),
        }
    }

    fn flight(&self, bytes: u64) -> f64 {
        let size = bytes as f64;
        match &self.model {
            PointToPoint::Hockney(_) => 0.0,
            PointToPoint::LogGp(net) => net.latency + net.stream(size),
            PointToPoint::PLogP(net) => {
                let costs = net.at(size);
                (net.latency() + costs.gap - costs.send - costs.receive).max(0.0)
            }
        }
    }

    fn combine(&self, bytes: u64) -> f64 {
        Network::combine(self, bytes as f64)
    }
}

/// One call to simulate.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The algorithm.
    pub entry: &'static Entry,
    /// Number of processes.
    pub procs: u32,
    /// The root; 0 where the collective has none.
    pub root: u32,
    /// None: as [`Call::new`] has it.
    pub fan_out: Option<u32>,
    /// Message size; see [`Collective::message_size`].
    pub bytes: u64,
    /// 0: one segment.
    pub segment_bytes: u64,
}

/// The blocks of a call with one count per rank: all are alike.
#[derive(Debug, Default)]
pub struct Blocks {
    counts: Vec<u64>,
    displacements: Vec<u64>,
}

impl Run {
    /// The elements are those with which messages are measured.
    pub fn element_bytes(&self) -> u64 {
        openmpi::element_bytes(self.entry.collective, self.bytes)
    }

    fn count(&self) -> u64 {
        self.bytes / self.element_bytes()
    }

    /// See [`Blocks`]; empty where all blocks have the call's own count.
    pub fn blocks(&self) -> Blocks {
        let with_counts = [Collective::Gatherv, Collective::Scatterv, Collective::ReduceScatter];
        if !with_counts.contains(&self.entry.collective) {
            return Blocks::default();
        }
        let count = self.count();
        // What overflows here is refused by the check of the call.
        let displacements = (0..u64::from(self.procs)).map(|rank| rank.saturating_mul(count));
        Blocks { counts: vec![count; self.procs as usize], displacements: displacements.collect() }
    }

    /// The call in elements. A segment holds whole elements, at least one.
    pub fn call<'a>(&self, blocks: &'a Blocks) -> Call<'a> {
        let segment = match self.segment_bytes {
            0 => 0,
            bytes => (bytes / self.element_bytes()).max(1),
        };
        let plain = Call::new(self.procs, self.count());
        Call {
            root: self.root,
            segment,
            fan_out: self.fan_out.unwrap_or(plain.fan_out),
            counts: &blocks.counts,
            displacements: &blocks.displacements,
            ..plain
        }
    }

    /// Seconds until the last rank is done, all messages eager.
    ///
    /// # Errors
    /// The algorithm cannot serve the call.
    pub fn seconds(&self, network: &Network) -> Result<f64, SimulationError> {
        let blocks = self.blocks();
        let options = Options { element_bytes: self.element_bytes(), ..Options::default() };
        let outcome = simulator::simulate(self.entry, &self.call(&blocks), network, options)?;
        Ok(outcome.seconds)
    }
}
