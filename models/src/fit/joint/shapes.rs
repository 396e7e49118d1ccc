//! What calls take of a start-up time and a rate, between nodes and inside, and of a combining rate, by
//! the simulation of their schedules; of long schedules by their refined forms.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use nalgebra::SVector;
use records::{Algorithm, Collective, Layout, Method, OwnMethod, Point, RankPlacement};
use schedules::Entry;

use crate::{
    Forms,
    closed_forms::{CallShape, ClosedForm, refined},
    parameters::{Combining, LogGp, Network, PointToPointParameters},
    predict::native_schedule,
    simulated::{LevelledNetwork, SimulatedCall},
};

/// The size at which the time per byte of an algorithm without segments is looked at.
const PROBE_BYTES: u64 = 1 << 20;

/// Steps up to which a schedule is simulated though its algorithm has a form: they take some 20 ms, and a
/// record has thousands of calls. On 8,192 ranks a ring has 2.7e8.
const MAX_SIMULATED_STEPS: f64 = (1_u64 << 18) as f64;

/// Parts of a time: start-up times and bytes between nodes, combined bytes, and start-up times and bytes inside
/// nodes.
pub(super) const PARTS: usize = 5;

/// How much of each part a call takes. The parts inside are 0 where each rank has a node of its own.
pub(super) type Shape = SVector<f64, PARTS>;

/// What a shape depends on: collective, schedule (by its address), layout, bytes, bytes of a segment.
type ShapeKey = (Collective, usize, Layout, u64, u64);

/// How much of each parameter calls take, which is found once for each: copies of this know the same.
#[derive(Debug, Clone)]
pub struct Shapes {
    known: Rc<RefCell<HashMap<ShapeKey, Option<Shape>>>>,
    /// Longer schedules are evaluated by forms.
    max_steps: f64,
}

impl Default for Shapes {
    fn default() -> Self {
        Shapes { known: Rc::default(), max_steps: MAX_SIMULATED_STEPS }
    }
}

impl Shapes {
    /// The shape of a call; none where no schedule of the method is known or it is too long.
    pub(super) fn look_up(&self, point: Point, method: &Method) -> Option<Shape> {
        let entry = schedule(point.collective, method)?;
        let segment = method.segment_bytes();
        let Point { layout, bytes, .. } = point;
        // All messages of one node have one level.
        let layout = if layout.nodes() == 1 { Layout::flat(layout.procs()) } else { layout };
        // Without segments the time per byte is the same at all sizes.
        let probed = if segment == 0 { PROBE_BYTES } else { bytes };
        let scale = if segment == 0 { bytes as f64 / probed as f64 } else { 1.0 };
        let found = self.of_schedule(entry, layout, probed, segment);
        found.map(|it| it.component_mul(&Shape::from([1.0, scale, scale, 1.0, scale])))
    }

    fn of_schedule(
        &self,
        entry: &'static Entry,
        layout: Layout,
        bytes: u64,
        segment: u64,
    ) -> Option<Shape> {
        let key = (entry.collective, std::ptr::from_ref(entry).addr(), layout, bytes, segment);
        let known = self.known.borrow().get(&key).copied();
        known.unwrap_or_else(|| {
            let made = self.make(entry, layout, bytes, segment);
            self.known.borrow_mut().insert(key, made);
            made
        })
    }

    /// By simulation where that is short or no form is known, else by the form. That knows no nodes: where
    /// these hold several ranks, it tells how what is simulated on fewer nodes goes on.
    fn make(
        &self,
        entry: &'static Entry,
        layout: Layout,
        bytes: u64,
        segment: u64,
    ) -> Option<Shape> {
        let run = call(entry, layout, bytes, segment);
        let by_form = |layout: Layout| {
            let call = CallShape::new(layout.procs(), bytes, segment)
                .with_fan_out(OwnMethod::standard_fan_out(entry.algorithm));
            Some(of_form(form(entry, layout.procs())?, &call))
        };
        if run.steps().ok()? <= self.max_steps {
            return simulated(&run);
        }
        if layout.is_flat() {
            return by_form(layout).or_else(|| simulated(&run));
        }
        let (Some(half), Some(here)) = (half_of(layout), by_form(layout)) else {
            return simulated(&run);
        };
        let Some((quarter, of_half)) = half_of(half).zip(by_form(half)) else {
            return simulated(&run);
        };
        let of_quarter = by_form(quarter)?;
        let of = |layout| self.of_schedule(entry, layout, bytes, segment);
        let (half, quarter) = (of(half)?, of(quarter)?);
        Some(Shape::from_fn(|part, _| {
            let of_form = part % FLAT_PARTS;
            let grown = of_half[of_form] - of_quarter[of_form];
            let grows = here[of_form] - of_half[of_form];
            let times = if grown > 0.0 { grows / grown } else { 0.0 };
            (half[part] + times * (half[part] - quarter[part])).max(0.0)
        }))
    }
}

/// Half of the nodes, where all hold as many ranks and half are several. Of ranks dealt to nodes in turn
/// nothing is known: on how many nodes they are makes trees other ones.
fn half_of(layout: Layout) -> Option<Layout> {
    let placement = layout.placement().filter(|placement| *placement == RankPlacement::Block)?;
    let nodes = layout.nodes() / 2;
    (nodes > 1).then(|| Layout::even(nodes, layout.per_node()?, placement).ok()).flatten()
}

/// The schedule of a method, where one is known.
fn schedule(collective: Collective, method: &Method) -> Option<&'static Entry> {
    match method {
        Method::Native(native) => native_schedule(collective, native),
        Method::Own(own) if own.is_plain() => schedules::find(collective, own.algorithm),
        _ => None,
    }
}

/// The call of a method whose schedule is known, on one node or whatever its layout.
pub(in crate::fit) fn simulated_call(point: Point, method: &Method) -> Option<SimulatedCall> {
    let entry = schedule(point.collective, method)?;
    Some(call(entry, point.layout, point.bytes, method.segment_bytes()))
}

fn call(entry: &'static Entry, layout: Layout, bytes: u64, segment_bytes: u64) -> SimulatedCall {
    SimulatedCall {
        entry,
        procs: layout.procs(),
        root: 0,
        bytes,
        method: OwnMethod::plain(entry.algorithm).with_segment(segment_bytes),
        layout: Some(layout).filter(|layout| !layout.is_flat()),
        rendezvous: None,
    }
}

/// Networks on which one part alone costs anything: 1.
fn networks() -> [LevelledNetwork; PARTS] {
    std::array::from_fn(|part| {
        let [start, per_byte, combining, start_inside, per_byte_inside] =
            std::array::from_fn(|other| if other == part { 1.0 } else { 0.0 });
        LevelledNetwork {
            inside: network(start_inside, per_byte_inside, combining),
            between: network(start, per_byte, combining),
            port: None,
        }
    })
}

/// Parts of a call on as many nodes as ranks.
const FLAT_PARTS: usize = PARTS - 2;

fn simulated(run: &SimulatedCall) -> Option<Shape> {
    let parts = if run.layout.is_none() { FLAT_PARTS } else { PARTS };
    let mut shape = Shape::zeros();
    for (part, network) in networks().iter().enumerate().take(parts) {
        shape[part] = *run.seconds_on_levels(&[network]).ok()?.first()?;
    }
    Some(shape)
}

/// On as many nodes as ranks.
fn of_form(form: &ClosedForm, call: &CallShape) -> Shape {
    let mut shape = Shape::zeros();
    for (part, network) in networks().iter().enumerate().take(FLAT_PARTS) {
        shape[part] = form.seconds(&network.between, call, Forms::Corrected);
    }
    shape
}

/// The form that tells what a schedule takes; none where the algorithm has none, or the schedule's ranks stand
/// at other places than the form has them.
fn form(entry: &Entry, procs: u32) -> Option<&'static ClosedForm> {
    let plain = schedules::find(entry.collective, entry.algorithm);
    let is_plain = plain.is_some_and(|plain| std::ptr::eq(plain, entry));
    // Binomial trees on a power of two ranks have one shape.
    let is_alike = entry.algorithm == Algorithm::Binomial && procs.is_power_of_two();
    refined::form(entry.collective, entry.algorithm, procs).filter(|_| is_plain || is_alike)
}

fn network(start: f64, per_byte: f64, combining: f64) -> Network {
    let model = PointToPointParameters::LogGp(LogGp {
        latency: start,
        overhead: 0.0,
        gap: start,
        gap_per_byte: per_byte,
    });
    Network { model, combining: Combining::per_byte(combining), memory: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far the form's parts may be from the simulation's, relative to that.
    fn tolerance(entry: &Entry, procs: u32) -> f64 {
        match (entry.collective, entry.algorithm) {
            // See the tolerances of the refined forms.
            (Collective::Bcast, Algorithm::SplittedBinary) => 0.35,
            (_, Algorithm::TwoTrees) => 0.1,
            _ if procs.is_power_of_two() => 1e-6,
            (Collective::Reduce, Algorithm::Binary | Algorithm::InOrderBinary) => 0.15,
            (_, Algorithm::RecursiveMultiplying) | (Collective::Alltoall, Algorithm::Bine) => 0.1,
            // Parts of a message are rounded to elements.
            (Collective::Allreduce | Collective::Bcast | Collective::Reduce, _) => 0.01,
            _ => 1e-6,
        }
    }

    #[test]
    fn a_long_schedule_takes_what_it_would_be_simulated_to_take() {
        let (mut compared, mut differ) = (0, Vec::new());
        for entry in schedules::ENTRIES {
            for (procs, segment) in [(64, 0), (64, 8192), (96, 0), (96, 8192)] {
                if form(entry, procs).is_none() || segment > 0 && !entry.segmented {
                    continue;
                }
                let of = |max_steps| {
                    let shapes = Shapes { max_steps, ..Shapes::default() };
                    shapes.of_schedule(entry, Layout::flat(procs), PROBE_BYTES, segment).unwrap()
                };
                let (simulated, told) = (of(f64::INFINITY), of(0.0));
                let limit = tolerance(entry, procs);
                let is_near = |part: usize| {
                    (told[part] - simulated[part]).abs() <= limit * f64::abs(simulated[part])
                };
                // What has no bytes is not asked for them.
                let parts = if entry.collective == Collective::Barrier { 1 } else { PARTS };
                if !(0..parts).all(is_near) {
                    let [told, simulated] = [told, simulated].map(|it| it.as_slice().to_vec());
                    differ
                        .push(format!("{entry:?}, {procs}, {segment}: {told:?} for {simulated:?}"));
                }
                compared += 1;
            }
        }
        assert!(differ.is_empty() && compared > 150, "{differ:#?} of {compared}");
    }

    /// Simulated on half of the nodes and a quarter, compared with what all are simulated to take.
    #[test]
    fn on_many_nodes_a_long_schedule_goes_on_as_on_fewer() {
        for (collective, algorithm, segment) in [
            (Collective::Allgather, Algorithm::NeighborExchange, 0),
            (Collective::Allgather, Algorithm::Ring, 0),
            (Collective::Allreduce, Algorithm::Ring, 0),
            (Collective::Allreduce, Algorithm::SegmentedRing, 4096),
            (Collective::Alltoall, Algorithm::Linear, 0),
            (Collective::Alltoall, Algorithm::Pairwise, 0),
            (Collective::Bcast, Algorithm::Binary, 1 << 16),
            (Collective::Bcast, Algorithm::Pipeline, 1 << 16),
            (Collective::Bcast, Algorithm::ScatterAllgatherRing, 0),
            (Collective::Reduce, Algorithm::Binomial, 1 << 16),
            (Collective::Reduce, Algorithm::Pipeline, 1 << 16),
            (Collective::ReduceScatterBlock, Algorithm::Pairwise, 0),
            (Collective::ReduceScatter, Algorithm::Ring, 0),
        ] {
            let entry = schedules::find(collective, algorithm).unwrap();
            for layout in ["32x4", "64x2", "24x6"].map(|it| it.parse::<Layout>().unwrap()) {
                let half = half_of(layout).unwrap();
                let max_steps = call(entry, half, PROBE_BYTES, segment).steps().unwrap();
                let of = |max_steps| {
                    let shapes = Shapes { max_steps, ..Shapes::default() };
                    shapes.of_schedule(entry, layout, PROBE_BYTES, segment).unwrap()
                };
                let (simulated, told) = (of(f64::INFINITY), of(max_steps));
                for part in 0..PARTS {
                    // Of messages inside nodes the few beside many between them are told less well.
                    let between =
                        if part < FLAT_PARTS { 0.0 } else { simulated[part % FLAT_PARTS] };
                    let limit = 0.15 * (simulated[part] + between);
                    let differs = (told[part] - simulated[part]).abs() > limit;
                    assert!(!differs, "{entry:?} on {layout}: {told} for {simulated}");
                }
            }
        }
    }

    /// Simulated, a ring takes 20 s there.
    #[test]
    fn methods_of_a_message_for_each_pair_of_ranks_are_known_at_once() {
        let begun = std::time::Instant::now();
        let shapes = Shapes::default();
        for (collective, name) in [
            (Collective::Allgather, "native:openmpi:ring"),
            (Collective::Allreduce, "native:openmpi:ring"),
            (Collective::Alltoall, "native:openmpi:pairwise"),
            (Collective::ReduceScatter, "native:openmpi:ring"),
        ] {
            let point = Point::flat(collective, 8192, 1 << 16);
            let starts = shapes.look_up(point, &name.parse().unwrap()).unwrap()[0];
            let rings = if collective == Collective::Allreduce { 2.0 } else { 1.0 };
            assert_eq!(starts, rings * 8191.0, "{collective}");
        }
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    }
}
