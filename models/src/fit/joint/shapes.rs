//! What calls take of a start-up time, a rate and a combining rate, by the simulation of their schedules.

use std::{cell::RefCell, collections::HashMap};

use nalgebra::Vector3;
use records::{Algorithm, Collective, Method, Point};

use crate::{
    parameters::{Combining, LogGp, Network, PointToPointParameters},
    simulated::{Run, RunLevels},
};

/// The size at which the time per byte of an algorithm without segments is looked at.
const PROBE_BYTES: u64 = 1 << 20;

/// a, b and c of a call.
pub(super) type Shape = Vector3<f64>;

/// What a shape depends on: collective, algorithm, processes, bytes, bytes of a segment.
type ShapeKey = (Collective, Algorithm, u32, u64, u64);

/// Shapes are looked up again and again.
#[derive(Debug, Clone, Default)]
pub(super) struct Shapes {
    known: RefCell<HashMap<ShapeKey, Option<Shape>>>,
}

impl Shapes {
    /// The shape of a call; none where no schedule of the method is known or it is too long.
    pub(super) fn of(&self, point: Point, method: &Method) -> Option<Shape> {
        let algorithm = algorithm(point.collective, method)?;
        let segment = method.segment_bytes();
        let Point { collective, bytes, .. } = point;
        let procs = point.procs();
        // Without segments the time per byte is the same at all sizes.
        let probed = if segment == 0 { PROBE_BYTES } else { bytes };
        let key = (collective, algorithm, procs, probed, segment);
        let known = self.known.borrow().get(&key).copied();
        let found = known.unwrap_or_else(|| {
            let made = shape(collective, algorithm, procs, probed, segment);
            self.known.borrow_mut().insert(key, made);
            made
        });
        let scale = if segment == 0 { bytes as f64 / probed as f64 } else { 1.0 };
        found.map(|it| Vector3::new(it[0], it[1] * scale, it[2] * scale))
    }
}

/// What a method really does, where a schedule of it is known.
fn algorithm(collective: Collective, method: &Method) -> Option<Algorithm> {
    match method {
        Method::Native(native) => {
            let unlike = libraries::unlike_its_name(collective, native);
            Some(unlike.map_or(native.algorithm, |(like, _)| like))
        }
        Method::Own { algorithm, .. } => Some(*algorithm),
        _ => None,
    }
}

fn shape(
    collective: Collective,
    algorithm: Algorithm,
    procs: u32,
    bytes: u64,
    segment_bytes: u64,
) -> Option<Shape> {
    let entry = schedules::find_named(collective, algorithm.name()).ok()?;
    let run = Run {
        entry,
        procs,
        root: 0,
        fan_out: None,
        pace: records::TreePace::EVEN,
        bytes,
        segment_bytes,
        levels: RunLevels::default(),
    };
    let with = |start: f64, per_byte: f64, combining: f64| {
        let model = PointToPointParameters::LogGp(LogGp {
            latency: start,
            overhead: 0.0,
            gap: start,
            gap_per_byte: per_byte,
        });
        run.seconds(&Network { model, combining: Combining::per_byte(combining) }).ok()
    };
    Some(Vector3::new(with(1.0, 0.0, 0.0)?, with(0.0, 1.0, 0.0)?, with(0.0, 0.0, 1.0)?))
}
