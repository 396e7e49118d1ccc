//! What messages and copies cost ranks of one node, ready to be evaluated.

use records::calibration::{CopyTimes, MemoryParameters, SharedAccess, Slowdown};
use schedules::simulator::MemoryCosts;

use super::{Combining, End, at_end};

/// Costs of [`MemoryParameters`], and of combining: lines between measured sizes and numbers of busy ranks.
///
/// Beyond the last size a byte costs what it costs there, below the first one a message what the first one does.
/// Combining is slowed down as copying is.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeMemory {
    trip: Sizes,
    send: Sizes,
    receive: Sizes,
    /// By number of busy ranks, from 2 on, which is 1.
    slowdown: Vec<(f64, Sizes)>,
    copies: Vec<(f64, Sizes)>,
    combining: Combining,
    /// Seconds.
    combining_start: f64,
    /// Consecutive ranks that share a cache; 1: none do.
    ranks_per_cache: u32,
    /// See [`SharedAccess`].
    shared: Option<SharedCosts>,
}

/// Seconds of [`SharedAccess`].
#[derive(Debug, Clone, PartialEq)]
struct SharedCosts {
    /// Of the first flag that a rank looks at, and of each further one.
    flags: [f64; 2],
    reads: Vec<(f64, Sizes)>,
}

/// (bytes, value), ascending, at least one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sizes(pub(crate) Vec<(f64, f64)>);

impl Sizes {
    /// Between the measured sizes, and at the nearest one beyond them.
    fn within(&self, bytes: f64) -> f64 {
        let Sizes(knots) = self;
        let above = knots.partition_point(|(knot, _)| *knot <= bytes);
        match (above.checked_sub(1).map(|below| knots[below]), knots.get(above)) {
            (Some((low, from)), Some(&(high, to))) => {
                from + (to - from) * (bytes - low) / (high - low)
            }
            (Some((_, value)), None) | (None, Some(&(_, value))) => value,
            (None, None) => 0.0,
        }
    }

    /// Where the line through the first two sizes begins, from 0 up to the first one's value.
    fn start(&self) -> f64 {
        match *self.0 {
            [(first, value), (second, then), ..] => {
                let slope = (then - value).max(0.0) / (second - first);
                (value - slope * first).max(0.0)
            }
            _ => 0.0,
        }
    }

    /// Seconds at a size, by lines between the known ones; beyond the last one they grow with the size.
    pub(crate) fn growing(&self, bytes: f64) -> f64 {
        match self.0.last() {
            Some(&(last, seconds)) if bytes > last && last > 0.0 => seconds * bytes / last,
            _ => self.within(bytes),
        }
    }
}

/// Between rows, by number of busy ranks; that of the nearest row beyond them.
fn between_rows(rows: &[(f64, Sizes)], busy: f64, of: impl Fn(&Sizes) -> f64) -> f64 {
    let above = rows.partition_point(|(ranks, _)| *ranks <= busy);
    match (above.checked_sub(1).map(|below| &rows[below]), rows.get(above)) {
        (Some((low, from)), Some((high, to))) => {
            let from = of(from);
            from + (of(to) - from) * (busy - low) / (high - low)
        }
        (Some((_, row)), None) | (None, Some((_, row))) => of(row),
        (None, None) => 0.0,
    }
}

impl NodeMemory {
    /// The values, or all of an end of their intervals.
    pub(super) fn new(memory: &MemoryParameters, combining: Combining, end: Option<End>) -> Self {
        let MemoryParameters {
            messages,
            slowdown,
            copies,
            combining_start_seconds,
            ranks_per_cache,
            shared,
        } = memory;
        let of_messages = |of: &dyn Fn(usize) -> f64| {
            Sizes((0..messages.len()).map(|knot| (messages[knot].bytes as f64, of(knot))).collect())
        };
        let factors = |row: &Slowdown| {
            let knots = row.knots.iter().map(|knot| (knot.bytes as f64, at_end(knot.factor, end)));
            (f64::from(row.busy_ranks), Sizes(knots.collect()))
        };
        let seconds = |row: &CopyTimes| {
            let knots = row.knots.iter().map(|knot| (knot.bytes as f64, at_end(knot.seconds, end)));
            (f64::from(row.busy_ranks), Sizes(knots.collect()))
        };
        let mut rows: Vec<(f64, Sizes)> =
            slowdown.iter().filter(|row| row.busy_ranks > 2).map(factors).collect();
        rows.insert(0, (2.0, Sizes(vec![(0.0, 1.0)])));
        NodeMemory {
            trip: of_messages(&|knot| at_end(messages[knot].trip_seconds, end)),
            send: of_messages(&|knot| at_end(messages[knot].send_seconds, end)),
            receive: of_messages(&|knot| at_end(messages[knot].receive_seconds, end)),
            slowdown: rows,
            copies: copies.iter().map(seconds).collect(),
            combining,
            combining_start: combining_start_seconds.map_or(0.0, |start| at_end(start, end)),
            ranks_per_cache: ranks_per_cache.unwrap_or(1).max(1),
            shared: shared.as_ref().map(|shared| {
                let SharedAccess { flag_seconds, further_flag_seconds, reads } = shared;
                let flags = [flag_seconds, further_flag_seconds].map(|it| at_end(*it, end));
                SharedCosts { flags, reads: reads.iter().map(seconds).collect() }
            }),
        }
    }

    /// Whether all costs but that of combining are the same.
    pub(crate) fn moves_as(&self, other: &NodeMemory) -> bool {
        let NodeMemory { trip, send, receive, slowdown, copies, ranks_per_cache, shared, .. } =
            self;
        (trip, send, receive) == (&other.trip, &other.send, &other.receive)
            && (slowdown, copies, ranks_per_cache, shared)
                == (&other.slowdown, &other.copies, &other.ranks_per_cache, &other.shared)
    }

    /// Of what others have just written; as copies within the own memory where that was not measured.
    fn reads(&self) -> &[(f64, Sizes)] {
        self.shared.as_ref().map_or(&self.copies, |shared| &shared.reads)
    }

    /// Whether it is known what algorithms of shared memory do.
    pub(crate) fn knows_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Whether some ranks share a cache.
    pub(crate) fn has_caches(&self) -> bool {
        self.ranks_per_cache > 1
    }

    /// The message sizes between which all costs are lines.
    pub(crate) fn knots(&self) -> impl Iterator<Item = u64> {
        self.trip.0.iter().map(|(bytes, _)| *bytes as u64)
    }

    /// The message sizes between which the slowdown is a line.
    pub(crate) fn knots_of_slowdown(&self) -> impl Iterator<Item = u64> {
        let rows = self.slowdown.iter().flat_map(|(_, Sizes(knots))| knots);
        rows.map(|(bytes, _)| *bytes as u64)
    }

    /// The numbers of busy ranks between which the slowdown is a line, of so many.
    pub(crate) fn rows_of_slowdown(&self, ranks: u32) -> impl Iterator<Item = f64> {
        let all = f64::from(ranks);
        let rows = self.slowdown.iter().map(|(busy, _)| *busy);
        rows.filter(move |busy| *busy < all).chain([all])
    }

    /// The least and the most by which the slowdown differs from another one's, as a factor.
    fn slowdown_relative_to(&self, other: &NodeMemory) -> [f64; 2] {
        let rows = self.slowdown.iter().zip(&other.slowdown);
        let pairs = rows.flat_map(|((_, this), (_, other))| this.0.iter().zip(&other.0));
        // No slowdown is below 1.
        let factors = pairs.map(|((_, this), (_, other))| this.max(1.0) / other.max(1.0));
        factors.fold([1.0; 2], |[least, most], factor| [least.min(factor), most.max(factor)])
    }

    /// Hands on costs beside the same costs of another one: each times the slowdown that belongs to it, at least and at
    /// most.
    pub(super) fn relative_to(&self, other: &NodeMemory, mut each: impl FnMut(f64, f64)) {
        let slowdown = self.slowdown_relative_to(other);
        let mut compare =
            |this: f64, other: f64| slowdown.iter().for_each(|factor| each(factor * this, other));
        compare(self.combining_start, other.combining_start);
        for (this, other) in
            [(&self.trip, &other.trip), (&self.send, &other.send), (&self.receive, &other.receive)]
        {
            this.0.iter().zip(&other.0).for_each(|((_, this), (_, other))| compare(*this, *other));
        }
        let copies = self.copies.iter().zip(&other.copies);
        let shared = self.shared.iter().zip(&other.shared);
        let of_shared = shared.flat_map(|(this, other)| this.reads.iter().zip(&other.reads));
        for ((_, this), (_, other)) in copies.chain(of_shared) {
            this.0.iter().zip(&other.0).for_each(|((_, this), (_, other))| compare(*this, *other));
        }
        for (this, other) in self.shared.iter().zip(&other.shared) {
            this.flags.iter().zip(&other.flags).for_each(|(this, other)| compare(*this, *other));
        }
    }
}

impl MemoryCosts for NodeMemory {
    fn trip(&self, bytes: u64) -> f64 {
        self.trip.growing(bytes as f64)
    }

    fn send(&self, bytes: u64) -> f64 {
        self.send.growing(bytes as f64)
    }

    fn receive(&self, bytes: u64) -> f64 {
        self.receive.growing(bytes as f64)
    }

    fn slowdown(&self, bytes: u64, busy: f64) -> f64 {
        between_rows(&self.slowdown, busy, |row| row.within(bytes as f64)).max(1.0)
    }

    fn is_near(&self, from: u32, to: u32) -> bool {
        from / self.ranks_per_cache == to / self.ranks_per_cache
    }

    fn copy(&self, bytes: u64, busy: f64) -> f64 {
        between_rows(&self.copies, busy, |row| row.growing(bytes as f64))
    }

    fn combine(&self, bytes: u64, busy: f64) -> f64 {
        let alone = self.copy(bytes, 1.0);
        let slowdown = if alone > 0.0 { (self.copy(bytes, busy) / alone).max(1.0) } else { 1.0 };
        self.combining_start + self.combining.at(bytes as f64) * slowdown
    }

    fn flag(&self) -> Option<[f64; 2]> {
        self.shared.as_ref().map(|shared| shared.flags)
    }

    fn read(&self, bytes: u64, busy: f64) -> f64 {
        between_rows(self.reads(), busy, |row| row.growing(bytes as f64))
    }

    fn read_start(&self, busy: f64) -> f64 {
        between_rows(self.reads(), busy, Sizes::start)
    }

    fn combine_at_hand(&self, bytes: u64) -> f64 {
        self.combining.at(bytes as f64)
    }
}
