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

    fn gaps(&self, bytes: u64, by_destinations: &mut [f64]) {
        match &self.model {
            PointToPointParameters::PLogP(net) => net.gaps_each(bytes as f64, by_destinations),
            _ => by_destinations.fill(self.gap(bytes, 1)),
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

    fn gaps(&self, bytes: u64, by_destinations: &mut [f64]) {
        self.value.gaps(bytes, by_destinations);
        let mut at_end = vec![0.0; by_destinations.len()];
        self.end.gaps(bytes, &mut at_end);
        for (saved, at_end) in by_destinations.iter_mut().zip(at_end) {
            *saved -= at_end;
        }
    }

    fn flight(&self, bytes: u64) -> f64 {
        self.saved(|network| network.flight(bytes))
    }

    fn combine(&self, bytes: u64) -> f64 {
        self.saved(|network| Costs::combine(network, bytes))
    }
}

#[cfg(test)]
mod tests {
    use records::calibration::{Estimate, GapKnot, ManyGap};

    use super::*;
    use crate::{Model, presets::preset};

    /// Together they are what each is by itself, to the last digit.
    #[test]
    fn gaps_are_those_of_each_number_of_destinations() {
        let mut parameters = preset("frodo").unwrap().measured;
        let many = |partners: u32| {
            let knot = |(bytes, each): (u64, f64)| {
                let gap_seconds = Estimate::exact(f64::from(partners) * each);
                GapKnot { bytes, gap_seconds }
            };
            ManyGap { partners, knots: [(1, 2e-5), (4096, 5e-4)].map(knot).into() }
        };
        parameters.plogp.gap_by_destinations = [2, 7].map(many).into();
        let networks = [Model::Hockney, Model::LogGp, Model::PLogP]
            .map(|model| Network::new(model, &parameters).unwrap());
        fn check(costs: &impl Costs) {
            for bytes in [0, 1, 100, 5000, 1 << 20] {
                let mut gaps = [0.0; 20];
                costs.gaps(bytes, &mut gaps);
                for (destinations, gap) in (0..).zip(gaps) {
                    assert_eq!(gap, costs.gap(bytes, u32::max(destinations, 1)));
                }
            }
        }
        networks.iter().for_each(check);
        check(&Savings { value: &networks[2], end: &networks[1] });
    }
}
