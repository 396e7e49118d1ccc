//! What a processor does alone: overheads of messages, copies, combinations.

use super::{Link, Machine, MemoryCosts, ROUNDING};
use crate::{
    Buffer, Range,
    simulator::{Activity, ActivityKind, LevelledCosts, event_queue::Event},
};

/// Where the operand lies that a processor works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operand {
    /// In the rank's own memory.
    Own,
    /// In what this rank writes for all to read.
    Written,
    /// In what another rank has written for all to read.
    Shared,
    /// There, too, and it has been read from just before.
    Further,
    /// Beside a flag of this rank.
    Line,
    /// Beside a flag of another rank, which has come with it.
    OtherLine,
}

/// What a processor has to do alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub kind: ActivityKind,
    pub bytes: u64,
    /// Whether others slow it down, and it them.
    pub link: Link,
    pub operand: Operand,
    /// That it sends, in one piece.
    pub sends: Option<u32>,
}

impl Task {
    /// A message in one piece, sent or received.
    pub(super) fn message(kind: ActivityKind, bytes: u64, link: Link) -> Self {
        Task { kind, bytes, link, operand: Operand::Own, sends: None }
    }

    /// A copy or a combination.
    pub(super) fn on(operand: Operand, kind: ActivityKind, bytes: u64) -> Self {
        let in_line = matches!(operand, Operand::Line | Operand::OtherLine);
        let link = if in_line { Link::Cache } else { Link::Memory };
        Task { kind, bytes, link, operand, sends: None }
    }
}

/// A task under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub task: Task,
    pub begun: f64,
    /// What is left of it, 1 at first, at this time.
    pub left: f64,
    pub since: f64,
    /// What it takes altogether as many as are busy now.
    pub seconds: f64,
    /// When it is to be looked at.
    pub due: f64,
}

impl<M: MemoryCosts, C: LevelledCosts, O: FnMut(Activity)> Machine<'_, M, C, O> {
    /// Its processor is busy from now on.
    pub(super) fn work(&mut self, rank: u32, task: Task) {
        let seconds = self.seconds_of(rank, task);
        self.begin(rank, task, seconds);
    }

    pub(super) fn begin(&mut self, rank: u32, task: Task, seconds: f64) {
        let now = self.events.now();
        let due = now + seconds;
        let work = Work { task, begun: now, left: 1.0, since: now, seconds, due };
        self.count_busy_of(rank, |own| own.work = Some(work));
        self.events.put(due, u64::from(rank), Event::Turn(rank));
    }

    /// What a processor takes while as many are busy as are now.
    pub(super) fn seconds_of(&mut self, rank: u32, task: Task) -> f64 {
        let Task { kind, bytes, link, operand, .. } = task;
        let (memory, busy) = (self.memory, self.node_of(rank).slowed_by);
        let slowed = link == Link::Memory;
        match kind {
            ActivityKind::Flag { .. } => 0.0,
            ActivityKind::Send { .. } if link == Link::Network => self.send_overhead(bytes),
            ActivityKind::Receive { .. } if link == Link::Network => self.receive_overhead(bytes),
            ActivityKind::Send { .. } | ActivityKind::Receive { .. } => {
                let costs = self.message_costs(bytes);
                let is_send = matches!(kind, ActivityKind::Send { .. });
                let seconds = if is_send { costs.send } else { costs.receive };
                seconds * if slowed { self.slowdown(bytes, busy) } else { 1.0 }
            }
            ActivityKind::Combine => match operand {
                Operand::Own | Operand::Written => memory.combine(bytes, busy),
                Operand::Shared | Operand::Further => {
                    self.read(bytes, busy, operand) + memory.combine_at_hand(bytes)
                }
                Operand::Line | Operand::OtherLine => memory.combine_at_hand(bytes),
            },
            ActivityKind::Copy => match operand {
                Operand::Own => memory.copy(bytes, busy),
                Operand::Written => self.write(bytes, busy),
                Operand::Shared | Operand::Further => self.read(bytes, busy, operand),
                Operand::Line => 0.0,
                Operand::OtherLine => memory.copy(bytes, 1.0),
            },
            ActivityKind::Wait => 0.0,
        }
    }

    /// Copying into what others have read in an earlier call: from their caches each line comes back as if it were read,
    /// but nothing waits for the first.
    fn write(&self, bytes: u64, busy: f64) -> f64 {
        let copied = at_rate_of(bytes, self.volume, |bytes| self.memory.copy(bytes, busy));
        copied.max(self.read(bytes, busy, Operand::Further))
    }

    /// Copying what others have written.
    fn read(&self, bytes: u64, busy: f64, operand: Operand) -> f64 {
        let memory = self.memory;
        let start = memory.read_start(busy);
        let moved = at_rate_of(bytes, self.volume, |bytes| memory.read(bytes, busy) - start);
        if operand == Operand::Further { moved } else { start + moved }
    }

    /// Where what a rank copies or combines lies.
    pub(super) fn operand(&mut self, rank: u32, ranges: [Range; 2]) -> Operand {
        let shared = ranges.iter().filter_map(|range| match range.buffer {
            Buffer::Line { owner, .. } if owner == rank => Some(Operand::Line),
            Buffer::Line { .. } => Some(Operand::OtherLine),
            Buffer::Shared { owner, .. } if owner == rank => Some(Operand::Written),
            Buffer::Shared { .. } => Some(Operand::Shared),
            _ => None,
        });
        let found = shared.max().unwrap_or(Operand::Own);
        let own = &mut self.ranks[rank as usize];
        match found {
            Operand::Shared if std::mem::replace(&mut own.reads, true) => Operand::Further,
            found => found,
        }
    }

    /// A processor may have done what it does alone.
    pub(super) fn look_at_work(&mut self, rank: u32) {
        let now = self.events.now();
        let Some(work) = &mut self.ranks[rank as usize].work else { return };
        if now < work.due {
            return;
        }
        let end = work.since + work.left * work.seconds;
        if end > now * (1.0 + ROUNDING) {
            work.due = end;
            self.events.put(end, u64::from(rank), Event::Turn(rank));
            return;
        }
        let Work { task: Task { kind, bytes, sends, .. }, begun, .. } = *work;
        (self.observe)(Activity { rank, kind, begin: begun, end: now, bytes });
        if let Some(message) = sends {
            self.messages[message as usize].begun = now;
            let at = now + self.message_costs(bytes).flight();
            self.events.put(at, u64::from(rank), Event::Arrival(message));
        }
        self.count_busy_of(rank, |own| own.work = None);
        self.ready.push_back(rank);
    }
}

/// What some bytes take; no less than their part of what the whole takes in one piece.
fn at_rate_of(bytes: u64, whole: u64, seconds: impl Fn(u64) -> f64) -> f64 {
    let alone = seconds(bytes);
    match whole > bytes {
        true => alone.max(seconds(whole) * bytes as f64 / whole as f64),
        false => alone,
    }
}
