//! Decisions where nothing was measured, from what was: at a size between measured ones, or on more
//! processes.
//!
//! # What is computed
//! A method's time at another size than those measured on as many processes is that of a curve through
//! its own times: a + b m, and what remains of it interpolated over ln m (`curve.rs`). Beyond the greatest size a
//! line through few times misses how many ranks copy or send at once: it is what the structure gives, times the
//! root of measured / predicted at the greatest size. What has no structure stays on its line.
//!
//! On more processes it is the time at the nearest smaller number with the same bytes in all, times
//! the growth that the structure gives, of which half is believed: machines of other shapes at other sizes
//! break it. What has no structure grows as the middle one of those that have.
//!
//! # Doubt
//! On more processes, the median of |change of ln(time / default's time)| over all methods from one
//! number of processes to the next, as far as such steps were measured, else a usual doubt: the default is
//! kept where the gain is smaller. At another size the default's curve is as doubtful as the others', and is not
//! preferred; how far a time may be off is given by [`Transfer::at_size`].

use std::collections::{BTreeMap, btree_map::Range};

use records::{BufferContent, Collective, Layout, Method, Point};
use statistics::{DEVIATIONS_PER_MEDIAN, median};

use crate::{
    curve::{SizeCurve, TimeAtSize},
    fit::MethodTime,
};

/// What a model predicts for a method at a point, in seconds; none where it does not know the method.
pub type Structure<'a> = dyn Fn(Point, &Method) -> Option<f64> + 'a;

/// How much is believed of the structure's growth on more processes, and of measured / predicted at the greatest size,
/// as logarithms.
const BELIEVED: f64 = 0.5;
/// Doubt of ln(time / default's time) on more processes where no such step was measured.
const UNSEEN: f64 = 0.35;

/// A decision where nothing was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct TransferredDecision {
    pub method: Method,
    /// The time believed, in seconds.
    pub seconds: f64,
    /// Doubt of the logarithm of its ratio to the default's time.
    pub doubt: f64,
    /// From which number of processes.
    pub from_procs: u32,
}

/// Seconds of each method at each size, in bytes.
type TimesBySize<'a> = BTreeMap<u64, BTreeMap<&'a Method, f64>>;

/// Measured times, by what they can be taken from.
pub struct Transfer<'a> {
    times: BTreeMap<(Collective, Layout), TimesBySize<'a>>,
    curves: BTreeMap<(Collective, Layout, &'a Method), SizeCurve>,
    /// Of what remains of a curve, per root of a unit of ln m.
    width: f64,
    structure: Option<&'a Structure<'a>>,
}

/// Bytes of the blocks of all ranks together; of a vector its bytes.
pub fn total_bytes(point: Point) -> u64 {
    let is_of_all = |held| matches!(held, BufferContent::All | BufferContent::AllAtRoot);
    let by_block = is_of_all(point.collective.sends()) || is_of_all(point.collective.receives());
    if by_block { point.bytes.saturating_mul(point.procs().into()) } else { point.bytes }
}

/// The point of another layout with as many bytes in all.
fn with_layout(point: Point, layout: Layout) -> Point {
    let total = total_bytes(point);
    let bytes = if total == point.bytes { total } else { total / u64::from(layout.procs()) };
    Point { layout, bytes, ..point }
}

impl<'a> Transfer<'a> {
    /// By these times, one for each point and method.
    pub fn new(known: &'a [MethodTime], structure: Option<&'a Structure<'a>>) -> Self {
        let mut times: BTreeMap<_, BTreeMap<u64, BTreeMap<&Method, f64>>> = BTreeMap::new();
        for time in known {
            let at = times
                .entry(time.point.line())
                .or_default()
                .entry(total_bytes(time.point))
                .or_default();
            at.insert(&time.method, time.seconds);
        }
        let (mut curves, mut distances) = (BTreeMap::new(), Vec::new());
        for ((collective, procs), sizes) in &times {
            for (method, timed) in by_method(sizes) {
                distances.extend(SizeCurve::leave_one_out(&timed));
                let curve = SizeCurve::fit(&timed);
                curves.extend(curve.map(|curve| ((*collective, *procs, method), curve)));
            }
        }
        let width = median(&distances).map_or(UNSEEN, |distance| distance * DEVIATIONS_PER_MEDIAN);
        Transfer { times, curves, width, structure }
    }

    /// What to take at a point, among methods; none where nothing near was measured.
    pub fn decide(&self, point: Point, methods: &[&'a Method]) -> Option<TransferredDecision> {
        let here = self.times.get(&(point.collective, point.layout));
        let (believed, doubt, from_procs) = match here {
            Some(_) => {
                let between = |method: &Method| Some(self.at_size(point, method)?.0);
                let at = |method: &&'a Method| {
                    let seconds = self.beyond(point, method).or_else(|| between(method))?;
                    Some((*method, seconds))
                };
                (methods.iter().filter_map(at).collect(), 0.0, point.procs())
            }
            None => self.below(point, methods)?,
        };
        let (method, seconds) = believed.iter().min_by(|a, b| a.1.total_cmp(b.1))?;
        let default = believed.get(&Method::Default);
        let keeps = default.is_some_and(|default| *default < seconds * doubt.exp());
        let (method, seconds) = match default.filter(|_| keeps) {
            Some(default) => (Method::Default, *default),
            None => ((*method).clone(), *seconds),
        };
        Some(TransferredDecision { method, seconds, doubt, from_procs })
    }

    /// The best of `methods` by the measured times alone: at a size between measured ones by the line between their
    /// logarithms, else what was least with the same bytes on the nearest smaller number of processes.
    pub fn nearest(&self, point: Point, methods: &[&Method]) -> Option<Method> {
        let believed = match self.times.get(&(point.collective, point.layout)) {
            Some(sizes) => interpolated(sizes, point, methods),
            None => {
                let total = total_bytes(point);
                let there = self.smaller(point).rev().find_map(|(_, sizes)| sizes.get(&total))?;
                let timed = methods.iter().map(|method| (*method, there.get(*method).copied()));
                timed.filter_map(|(method, seconds)| Some((method, seconds?))).collect()
            }
        };
        let least = believed.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        least.map(|(method, _)| method.clone())
    }

    /// What was measured on fewer processes, the fewest first.
    fn smaller(
        &self,
        Point { collective, layout, .. }: Point,
    ) -> Range<'_, (Collective, Layout), TimesBySize<'a>> {
        // One rank per node is the first layout of its number of processes.
        let fewer = Layout::flat(1)..Layout::flat(layout.procs());
        self.times.range((collective, fewer.start)..(collective, fewer.end))
    }

    fn structure(&self, point: Point, method: &Method) -> Option<f64> {
        self.structure?(point, method)
    }

    /// The time of a method at a size greater than all that were measured: the structure's, times the root of measured /
    /// predicted at the greatest.
    fn beyond(&self, point: Point, method: &Method) -> Option<f64> {
        let (greatest, there) = self.times.get(&point.line())?.last_key_value()?;
        let total = total_bytes(point);
        if total <= *greatest {
            return None;
        }
        // Blocks keep their share of all bytes.
        let bytes = u128::from(point.bytes) * u128::from(*greatest) / u128::from(total);
        let measured = Point { bytes: u64::try_from(bytes).ok()?, ..point };
        let off = there.get(method)? / self.structure(measured, method)?;
        Some(self.structure(point, method)? * off.powf(BELIEVED))
    }

    /// The time of a method at a size, from others measured on as many processes, in seconds, and
    /// the deviation of its logarithm.
    pub fn at_size(&self, point: Point, method: &Method) -> Option<(f64, f64)> {
        let curve = self.curves.get(&(point.collective, point.layout, method))?;
        let total = total_bytes(point);
        Some((curve.seconds(total), self.width * curve.deviation(total)))
    }

    /// Times on more processes than were measured, their doubt, and from which number they are.
    fn below(
        &self,
        point: Point,
        methods: &[&'a Method],
    ) -> Option<(BTreeMap<&'a Method, f64>, f64, u32)> {
        let total = total_bytes(point);
        let mut smaller = self.smaller(point).rev();
        let with = smaller.find_map(|((_, layout), sizes)| Some((*layout, sizes.get(&total)?)));
        let (layout, there) = with?;
        let growth = |method: &Method| {
            let after = self.structure(point, method)?;
            Some((after / self.structure(with_layout(point, layout), method)?).ln())
        };
        let known: Vec<(&'a Method, f64, Option<f64>)> = methods
            .iter()
            .filter_map(|method| Some((*method, *there.get(*method)?, growth(method))))
            .collect();
        let usual: Vec<f64> = known.iter().filter_map(|(.., growth)| *growth).collect();
        let usual = median(&usual).unwrap_or(0.0);
        let believed = known.into_iter().map(|(method, seconds, growth)| {
            (method, seconds * (BELIEVED * growth.unwrap_or(usual)).exp())
        });
        Some((believed.collect(), self.doubt(), layout.procs()))
    }

    /// What ratios to the default changed from one number of processes to the next.
    fn doubt(&self) -> f64 {
        let mut changes = Vec::new();
        let mut before: Option<(&(Collective, Layout), &TimesBySize<'_>)> = None;
        for (key, sizes) in &self.times {
            if let Some((_, smaller)) = before.filter(|(before, _)| before.0 == key.0) {
                for (bytes, there) in sizes {
                    let Some(here) = smaller.get(bytes) else { continue };
                    let defaults = (here.get(&Method::Default), there.get(&Method::Default));
                    let (Some(before), Some(after)) = defaults else { continue };
                    let others = there.iter().filter(|(method, _)| ***method != Method::Default);
                    changes.extend(others.filter_map(|(method, seconds)| {
                        Some(((seconds / after).ln() - (here.get(method)? / before).ln()).abs())
                    }));
                }
            }
            before = Some((key, sizes));
        }
        median(&changes).unwrap_or(UNSEEN)
    }
}

/// The times of each method, in ascending order of their sizes.
fn by_method<'a>(sizes: &TimesBySize<'a>) -> BTreeMap<&'a Method, Vec<TimeAtSize>> {
    let mut of_methods: BTreeMap<&Method, Vec<TimeAtSize>> = BTreeMap::new();
    for (&bytes, there) in sizes {
        for (&method, &seconds) in there {
            of_methods.entry(method).or_default().push(TimeAtSize { bytes, seconds });
        }
    }
    of_methods
}

/// The line between the logarithms of the times at the sizes next to a point's.
fn interpolated<'a>(
    sizes: &TimesBySize<'a>,
    point: Point,
    methods: &[&'a Method],
) -> BTreeMap<&'a Method, f64> {
    let total = total_bytes(point);
    let scale = |bytes: u64| (bytes.max(1) as f64).ln();
    let of = |method: &&'a Method| {
        let at = |(&bytes, there): (&u64, &BTreeMap<&Method, f64>)| {
            Some((scale(bytes), there.get(*method)?.ln()))
        };
        let low = sizes.range(..=total).rev().find_map(at);
        let high = sizes.range(total..).find_map(at);
        let logarithm = match (low, high) {
            (Some((below, left)), Some((above, right))) if above > below => {
                left + (scale(total) - below) / (above - below) * (right - left)
            }
            (Some((_, value)), _) | (None, Some((_, value))) => value,
            (None, None) => return None,
        };
        Some((*method, logarithm.exp()))
    };
    methods.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(procs: u32, bytes: u64, method: &str, seconds: f64) -> MethodTime {
        let point = Point::flat(Collective::Allgather, procs, bytes);
        MethodTime { point, method: method.parse().unwrap(), seconds }
    }

    /// At 64 B and 4 KiB, where Bruck's takes so many seconds.
    fn ring_and_bruck(bruck_seconds: f64) -> [MethodTime; 4] {
        let (ring, bruck) = ("native:openmpi:ring", "native:openmpi:bruck");
        [
            time(8, 64, ring, 4e-6),
            time(8, 4096, ring, 16e-6),
            time(8, 64, bruck, 1e-6),
            time(8, 4096, bruck, bruck_seconds),
        ]
    }

    #[test]
    fn the_default_is_kept_where_the_gain_is_smaller_than_the_doubt() {
        let ring = "native:openmpi:ring";
        for (gain, wanted) in [(1.2, "default"), (2.0, ring)] {
            // The same 64 KiB in all.
            let known = [time(8, 8192, "default", gain * 1e-3), time(8, 8192, ring, 1e-3)];
            let methods = [&known[0].method, &known[1].method];
            let point = Point::flat(Collective::Allgather, 64, 1024);
            let decided = Transfer::new(&known, None).decide(point, &methods).unwrap();
            assert_eq!((decided.method.to_string().as_str(), decided.from_procs), (wanted, 8));
            assert_eq!(decided.doubt, UNSEEN);
        }
    }

    #[test]
    fn between_two_sizes_the_times_are_interpolated() {
        let (ring, bruck) = ("native:openmpi:ring", "native:openmpi:bruck");
        let known = ring_and_bruck(100e-6);
        let methods = [&known[0].method, &known[2].method];
        let decide = |bytes| {
            let point = Point::flat(Collective::Allgather, 8, bytes);
            Transfer::new(&known, None).decide(point, &methods).unwrap()
        };
        assert_eq!(decide(512).method.to_string(), ring);
        // 3.81 us and 2.98 ns a byte go through both times.
        let exact = 4e-6 + 12e-6 * (512.0 - 64.0) / (4096.0 - 64.0);
        assert!((decide(512).seconds / exact - 1.0).abs() < 1e-6, "{:?}", decide(512));
        assert_eq!(decide(128).method.to_string(), bruck);
        let elsewhere = Point::flat(Collective::Bcast, 8, 1);
        assert_eq!(Transfer::new(&known, None).decide(elsewhere, &methods), None);
    }

    #[test]
    fn beyond_the_measured_sizes_times_grow_as_the_structure_does() {
        let (ring, bruck) = ("native:openmpi:ring", "native:openmpi:bruck");
        let known = ring_and_bruck(15e-6);
        let methods = [&known[0].method, &known[2].method];
        let point = Point::flat(Collective::Allgather, 8, 16384);
        let line = Transfer::new(&known, None).decide(point, &methods).unwrap();
        assert_eq!(line.method.to_string(), ring);
        // By a model the ring takes 1 ns a byte, 4.1 us for 4 KiB; Bruck's as its root, four times as long as measured.
        let structure = |point: Point, method: &Method| {
            let bytes = point.bytes as f64;
            Some(if method.to_string() == ring {
                1e-9 * bytes
            } else {
                60e-6 * (bytes / 4096.0).sqrt()
            })
        };
        let grown = Transfer::new(&known, Some(&structure)).decide(point, &methods).unwrap();
        // 16 KiB take 16.4 us times the root of 16 / 4.1 by the ring, 120 us times the root of 15 / 60 by Bruck's.
        assert_eq!(grown.method.to_string(), ring);
        let expected = 16.384e-6 * (16.0_f64 / 4.096).sqrt();
        assert!((grown.seconds / expected - 1.0).abs() < 1e-9, "{grown:?}");
        // Without a structure of it a method stays on its line.
        let of_bruck = |_: Point, method: &Method| (method.to_string() == bruck).then_some(1e-3);
        let of_one = Transfer::new(&known, Some(&of_bruck)).decide(point, &methods).unwrap();
        assert_eq!((of_one.method.to_string().as_str(), of_one.seconds), (ring, line.seconds));
    }
}
