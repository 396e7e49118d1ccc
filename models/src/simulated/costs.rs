//! What messages cost the simulator, and what they cost less at an end of a parameter's interval.

use schedules::simulator::Costs;

use crate::parameters::{Network, PointToPointParameters};

/// What messages cost under a model's parameters. Hockney's sender is busy until all has left, and
/// its receiver never.
///
/// LogGP: a message takes L + 2 o + (m - 1) G. PLogP: L + g(m), overheads included, and nothing
/// more than these if they take longer; a rank that keeps sending to k others starts a message
/// per g(m, k) / k. Under the models that follow schedules a message takes as long as it was seen to
/// take, where that is longer.
impl Costs for Network {
    fn send_overhead(&self, bytes: u64) -> f64 {
        match &self.model {
            PointToPointParameters::Hockney(net) => net.message(bytes as f64),
            PointToPointParameters::LogGp(net) => net.overhead,
            PointToPointParameters::PLogP(net) => net.at(bytes as f64).send,
        }
    }

    fn receive_overhead(&self, bytes: u64) -> f64 {
        match &self.model {
            PointToPointParameters::Hockney(_) => 0.0,
            PointToPointParameters::LogGp(net) => net.overhead,
            PointToPointParameters::PLogP(net) => net.at(bytes as f64).receive,
        }
    }

    fn gap(&self, bytes: u64, destinations: u32) -> f64 {
        let size = bytes as f64;
        match &self.model {
            PointToPointParameters::Hockney(net) => net.message(size),
            PointToPointParameters::LogGp(net) => net.gap(size),
            PointToPointParameters::PLogP(net) if destinations > 1 => {
                net.gap_to(size, destinations) / f64::from(destinations)
            }
            PointToPointParameters::PLogP(net) => net.gap(size),
        }
    }

    fn flight(&self, bytes: u64) -> f64 {
        let size = bytes as f64;
        match &self.model {
            PointToPointParameters::Hockney(_) => 0.0,
            PointToPointParameters::LogGp(net) => net.latency + net.stream(size),
            PointToPointParameters::PLogP(net) => {
                let costs = net.at(size);
                let whole = net.latency() + costs.gap + net.transit(size);
                (whole - costs.send - costs.receive).max(0.0)
            }
        }
    }

    fn combine(&self, bytes: u64) -> f64 {
        Network::combine(self, bytes as f64)
    }
}

/// By how much less each message costs at an end of a parameter's interval than at its value.
pub(super) struct Savings<'a> {
    pub value: &'a Network,
    pub end: &'a Network,
}

impl Savings<'_> {
    fn saved(&self, cost: impl Fn(&Network) -> f64) -> f64 {
        cost(self.value) - cost(self.end)
    }
}

impl Costs for Savings<'_> {
    fn send_overhead(&self, bytes: u64) -> f64 {
        self.saved(|network| network.send_overhead(bytes))
    }

    fn receive_overhead(&self, bytes: u64) -> f64 {
        self.saved(|network| network.receive_overhead(bytes))
    }

    fn gap(&self, bytes: u64, destinations: u32) -> f64 {
        self.saved(|network| network.gap(bytes, destinations))
    }

    fn flight(&self, bytes: u64) -> f64 {
        self.saved(|network| network.flight(bytes))
    }

    fn combine(&self, bytes: u64) -> f64 {
        self.saved(|network| Costs::combine(network, bytes))
    }
}

/// What messages cost where no port makes any of them wait.
pub(super) struct FreePorts<'a>(pub &'a Network);

impl Costs for FreePorts<'_> {
    fn send_overhead(&self, bytes: u64) -> f64 {
        self.0.send_overhead(bytes)
    }

    fn receive_overhead(&self, bytes: u64) -> f64 {
        self.0.receive_overhead(bytes)
    }

    fn gap(&self, _bytes: u64, _destinations: u32) -> f64 {
        0.0
    }

    fn flight(&self, bytes: u64) -> f64 {
        self.0.flight(bytes)
    }

    fn combine(&self, bytes: u64) -> f64 {
        Costs::combine(self.0, bytes)
    }
}
