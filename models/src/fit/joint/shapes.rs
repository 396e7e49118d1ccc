//! What calls take of a start-up time and a rate, between nodes and inside, and of a combining rate, by
//! the simulation of their schedules.

use std::{cell::RefCell, collections::HashMap};

use nalgebra::SVector;
use records::{Collective, Layout, Method, Point};
use schedules::Entry;

use crate::{
    parameters::{Combining, LogGp, Network, PointToPointParameters},
    predict::native_schedule,
    simulated::{CallLevels, LevelledNetwork, SimulatedCall},
};

/// The size at which the time per byte of an algorithm without segments is looked at.
const PROBE_BYTES: u64 = 1 << 20;

/// Parts of a time: start-up times and bytes between nodes, combined bytes, and start-up times and bytes inside
/// nodes.
pub(super) const PARTS: usize = 5;

/// How much of each part a call takes. The parts inside are 0 where each rank has a node of its own.
pub(super) type Shape = SVector<f64, PARTS>;

/// What a shape depends on: collective, schedule (by its address), layout, bytes, bytes of a segment.
type ShapeKey = (Collective, usize, Layout, u64, u64);

/// Shapes are looked up again and again.
#[derive(Debug, Clone, Default)]
pub(super) struct Shapes {
    known: RefCell<HashMap<ShapeKey, Option<Shape>>>,
}

impl Shapes {
    /// The shape of a call; none where no schedule of the method is known or it is too long.
    pub(super) fn look_up(&self, point: Point, method: &Method) -> Option<Shape> {
        let entry = schedule(point.collective, method)?;
        let segment = method.segment_bytes();
        let Point { collective, layout, bytes } = point;
        // Where all ranks share one node there is one level.
        let layout = if layout.nodes() == 1 { Layout::flat(layout.procs()) } else { layout };
        // Without segments the time per byte is the same at all sizes.
        let probed = if segment == 0 { PROBE_BYTES } else { bytes };
        let key = (collective, std::ptr::from_ref(entry).addr(), layout, probed, segment);
        let known = self.known.borrow().get(&key).copied();
        let found = known.unwrap_or_else(|| {
            let made = shape(entry, layout, probed, segment);
            self.known.borrow_mut().insert(key, made);
            made
        });
        let scale = if segment == 0 { bytes as f64 / probed as f64 } else { 1.0 };
        found.map(|it| it.component_mul(&Shape::from([1.0, scale, scale, 1.0, scale])))
    }
}

/// The schedule of a method, where one is known.
fn schedule(collective: Collective, method: &Method) -> Option<&'static Entry> {
    match method {
        Method::Native(native) => native_schedule(collective, native),
        Method::Own { algorithm, .. } => schedules::find(collective, *algorithm),
        _ => None,
    }
}

fn shape(entry: &'static Entry, layout: Layout, bytes: u64, segment_bytes: u64) -> Option<Shape> {
    let levels = CallLevels {
        layout: Some(layout).filter(|layout| !layout.is_flat()),
        ..CallLevels::default()
    };
    let run = SimulatedCall {
        entry,
        procs: layout.procs(),
        root: 0,
        fan_out: None,
        pace: records::TreePace::EVEN,
        bytes,
        segment_bytes,
        levels,
    };
    let mut shape = Shape::zeros();
    let parts = if layout.is_flat() { PARTS - 2 } else { PARTS };
    for part in 0..parts {
        let mut one = [0.0; PARTS];
        one[part] = 1.0;
        let [start, per_byte, combining, start_inside, per_byte_inside] = one;
        let network = LevelledNetwork {
            inside: network(start_inside, per_byte_inside, combining),
            between: network(start, per_byte, combining),
            port: None,
        };
        shape[part] = *run.seconds_on_levels(&[&network]).ok()?.first()?;
    }
    Some(shape)
}

fn network(start: f64, per_byte: f64, combining: f64) -> Network {
    let model = PointToPointParameters::LogGp(LogGp {
        latency: start,
        overhead: 0.0,
        gap: start,
        gap_per_byte: per_byte,
    });
    Network { model, combining: Combining::per_byte(combining) }
}
