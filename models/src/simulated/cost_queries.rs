//! Which costs a schedule asks for: where two networks answer alike, its time is the same.
//!
//! With each parameter at the ends of its interval most of PLogP's knots are of message sizes that a schedule does not
//! have. What is asked follows from the schedule, not from the times.

use std::{cell::RefCell, collections::HashSet};

use schedules::simulator::{Costs, LevelledCosts};

/// A question to a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CostQuery {
    OfLevel(usize, MessageQuery),
    PortGap { bytes: u64, destinations: u32 },
    PortReceiveGap { bytes: u64 },
}

/// A question of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum MessageQuery {
    SendOverhead { bytes: u64 },
    ReceiveOverhead { bytes: u64 },
    Gap { bytes: u64, destinations: u32 },
    ReceiveGap { bytes: u64 },
    Flight { bytes: u64 },
    Combine { bytes: u64 },
    Copy { bytes: u64 },
}

impl MessageQuery {
    fn ask(self, costs: &impl Costs) -> f64 {
        match self {
            MessageQuery::SendOverhead { bytes } => costs.send_overhead(bytes),
            MessageQuery::ReceiveOverhead { bytes } => costs.receive_overhead(bytes),
            MessageQuery::Gap { bytes, destinations } => costs.gap(bytes, destinations),
            MessageQuery::ReceiveGap { bytes } => costs.receive_gap(bytes),
            MessageQuery::Flight { bytes } => costs.flight(bytes),
            MessageQuery::Combine { bytes } => costs.combine(bytes),
            MessageQuery::Copy { bytes } => costs.copy(bytes),
        }
    }
}

impl CostQuery {
    fn ask(self, costs: &impl LevelledCosts) -> f64 {
        match self {
            CostQuery::OfLevel(level, query) => query.ask(costs.of_level(level)),
            CostQuery::PortGap { bytes, destinations } => costs.port_gap(bytes, destinations),
            CostQuery::PortReceiveGap { bytes } => costs.port_receive_gap(bytes),
        }
    }
}

/// All that a schedule has asked.
#[derive(Debug, Default)]
pub(super) struct CostQueries(RefCell<HashSet<CostQuery>>);

impl CostQueries {
    fn note(&self, query: CostQuery) {
        self.0.borrow_mut().insert(query);
    }

    /// Whether two networks answer alike, to the last bit.
    pub(super) fn are_answered_alike<C: LevelledCosts>(&self, one: &C, other: &C) -> bool {
        let is_alike = |query: &CostQuery| query.ask(one).to_bits() == query.ask(other).to_bits();
        self.0.borrow().iter().all(is_alike)
    }
}

/// Costs that note what they are asked.
pub(super) struct NotedCosts<'a, C: LevelledCosts> {
    costs: &'a C,
    queries: &'a CostQueries,
    levels: [NotedLevel<'a, C::LevelCosts>; 2],
}

pub(super) struct NotedLevel<'a, C> {
    costs: &'a C,
    level: usize,
    queries: &'a CostQueries,
}

impl<'a, C: LevelledCosts> NotedCosts<'a, C> {
    pub(super) fn new(costs: &'a C, queries: &'a CostQueries) -> Self {
        let level = |level| NotedLevel { costs: costs.of_level(level), level, queries };
        NotedCosts { costs, queries, levels: [level(0), level(1)] }
    }

    fn answer(&self, query: CostQuery) -> f64 {
        self.queries.note(query);
        query.ask(self.costs)
    }
}

impl<C: Costs> NotedLevel<'_, C> {
    fn answer(&self, query: MessageQuery) -> f64 {
        self.queries.note(CostQuery::OfLevel(self.level, query));
        query.ask(self.costs)
    }
}

impl<C: Costs> Costs for NotedLevel<'_, C> {
    fn send_overhead(&self, bytes: u64) -> f64 {
        self.answer(MessageQuery::SendOverhead { bytes })
    }

    fn receive_overhead(&self, bytes: u64) -> f64 {
        self.answer(MessageQuery::ReceiveOverhead { bytes })
    }

    fn gap(&self, bytes: u64, destinations: u32) -> f64 {
        self.answer(MessageQuery::Gap { bytes, destinations })
    }

    fn receive_gap(&self, bytes: u64) -> f64 {
        self.answer(MessageQuery::ReceiveGap { bytes })
    }

    fn flight(&self, bytes: u64) -> f64 {
        self.answer(MessageQuery::Flight { bytes })
    }

    fn combine(&self, bytes: u64) -> f64 {
        self.answer(MessageQuery::Combine { bytes })
    }

    fn copy(&self, bytes: u64) -> f64 {
        self.answer(MessageQuery::Copy { bytes })
    }
}

impl<'a, C: LevelledCosts> LevelledCosts for NotedCosts<'a, C> {
    type LevelCosts = NotedLevel<'a, C::LevelCosts>;

    fn ranks(&self) -> Option<u32> {
        self.costs.ranks()
    }

    fn nodes(&self) -> u32 {
        self.costs.nodes()
    }

    fn node(&self, rank: u32) -> u32 {
        self.costs.node(rank)
    }

    fn level(&self, from: u32, to: u32) -> usize {
        self.costs.level(from, to)
    }

    fn of_level(&self, level: usize) -> &NotedLevel<'a, C::LevelCosts> {
        &self.levels[level]
    }

    fn shared_port(&self, rank: u32) -> Option<u32> {
        self.costs.shared_port(rank)
    }

    fn port_gap(&self, bytes: u64, destinations: u32) -> f64 {
        self.answer(CostQuery::PortGap { bytes, destinations })
    }

    fn port_receive_gap(&self, bytes: u64) -> f64 {
        self.answer(CostQuery::PortReceiveGap { bytes })
    }
}
