//! Calls: what the ranks have in common, their buffers before and after, and their arguments.

use std::{ffi::c_void, ptr};

use records::Collective;

use super::methods::Tried;
use crate::{
    Arguments, Counts, Handle, RankArray, Side,
    fake::{self, FakeType},
    mockups::Mockup,
};

/// Bytes around a buffer's data in which nothing may change.
const AROUND: isize = 24;
/// Longer buffers are not tried.
pub const LONGEST_BUFFER: isize = 1 << 20;

/// What the ranks of a call have in common.
#[derive(Debug, Clone)]
pub struct Shape {
    pub element: FakeType,
    pub ranks: u32,
    pub root: u32,
    /// Of reduce_scatter the most that a rank gets.
    pub count: usize,
    pub in_place: bool,
    pub commutative: bool,
}

impl Shape {
    /// Elements of each rank's block.
    pub fn counts(&self, collective: Collective) -> Vec<usize> {
        let uneven = |rank: u32| (rank as usize * 7 + 3) % (self.count + 1);
        let count = |rank| match collective {
            Collective::ReduceScatter if rank != self.root => uneven(rank),
            _ => self.count,
        };
        (0..self.ranks).map(count).collect()
    }

    /// Elements that this rank sends and receives; nothing where it has no such buffer.
    fn lengths(&self, collective: Collective, rank: u32) -> (usize, Option<usize>) {
        let counts = self.counts(collective);
        let (own, all) = (counts[rank as usize], counts.iter().sum());
        let is_root = rank == self.root;
        match collective {
            Collective::Bcast => (0, Some(own)),
            Collective::Gather => (own, is_root.then_some(all)),
            Collective::Allgather => (own, Some(all)),
            Collective::Scatter => (if is_root { all } else { 0 }, Some(own)),
            Collective::Alltoall => (all, Some(all)),
            Collective::Reduce => (own, is_root.then_some(own)),
            Collective::Exscan => (own, (rank > 0).then_some(own)),
            Collective::ReduceScatter | Collective::ReduceScatterBlock => (all, Some(own)),
            _ => (own, Some(own)),
        }
    }

    /// Whether MPI allows such a call: nowhere are elements received that overlap.
    pub fn is_legal(&self, collective: Collective) -> bool {
        let total = self.counts(collective).iter().sum::<usize>() as isize;
        let fits = |count: isize| {
            (count - 1).checked_mul(self.element.extent.abs()).is_some_and(|b| b < LONGEST_BUFFER)
        };
        let (sent, received) = match collective {
            Collective::Gather | Collective::Allgather | Collective::Alltoall => (total, total),
            // In place they lie where the blocks are that are sent.
            Collective::Scatter | Collective::ReduceScatter | Collective::ReduceScatterBlock => {
                (total, self.count as isize)
            }
            _ => (self.count as isize, self.count as isize),
        };
        fits(sent) && !self.element.overlap(received as usize)
    }

    /// Whether the calls inside a mock-up would have to receive more elements than a rank receives, which
    /// may overlap, or for which there is no memory.
    fn is_too_long_inside(&self, mockup: &Mockup) -> bool {
        let (first, end) = self.element.true_bounds();
        let extent = self.element.extent.abs();
        (extent < end - first || extent > LONGEST_BUFFER)
            && match mockup.name {
                "allreduce_as_reduce_scatter_block_allgather"
                | "reduce_as_reduce_scatter_block_gather" => {
                    !self.count.is_multiple_of(self.ranks as usize)
                }
                _ => false,
            }
    }

    /// Whether a method must say of such a call that it can't.
    pub fn is_refused(&self, method: &Tried) -> bool {
        match method {
            Tried::Own(method) => {
                let asks = method.entry.requirements;
                let combines = method.collective().combines();
                let is_ordered = !self.commutative && combines;
                (method.uses_shared_memory() && combines && !self.element.is_dense())
                    // The first two ranks are on one node, the next on another.
                    || (method.entry.shares_memory() && self.ranks > 2)
                    || (is_ordered && (asks.commutative || method.is_node_aware()))
                    || (asks.even && self.ranks > 1 && self.ranks % 2 == 1)
            }
            Tried::Mockup(mockup) => {
                let scatters = mockup.functions().iter().any(|name| name.starts_with("reduce_sc"));
                (scatters && !self.commutative) || self.is_too_long_inside(mockup)
            }
        }
    }
}

/// Elements with what lies around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    pub memory: Vec<u8>,
    /// Where element 0 is.
    base: isize,
    element: FakeType,
}

impl Buffer {
    fn new(element: &FakeType, count: usize, salt: u32) -> Self {
        let (first, end) = element.true_bounds();
        let reach = (count.max(1) as isize - 1) * element.extent;
        let base = AROUND - first - reach.min(0);
        let bytes = base + reach.max(0) + end + AROUND;
        let byte = |place: u32| (place.wrapping_mul(2_654_435_761) ^ salt).rotate_left(9) as u8 | 1;
        let memory = (0..bytes as u32).map(|place| byte(place.wrapping_add(salt))).collect();
        Buffer { memory, base, element: element.clone() }
    }

    fn address(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().wrapping_offset(self.base).cast()
    }

    fn places(&self, first: usize, count: usize) -> Vec<usize> {
        let begin = self.base + first as isize * self.element.extent;
        self.element.offsets(count).map(|offset| (begin + offset) as usize).collect()
    }

    fn get(&self, first: usize, count: usize) -> Vec<u8> {
        self.places(first, count).into_iter().map(|place| self.memory[place]).collect()
    }

    fn put(&mut self, first: usize, bytes: &[u8]) {
        let count = bytes.len() / self.element.places.len();
        for (place, byte) in self.places(first, count).into_iter().zip(bytes) {
            self.memory[place] = *byte;
        }
    }
}

/// One rank's buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    pub send: Buffer,
    pub receive: Buffer,
}

impl Shape {
    fn is_in_place(&self, collective: Collective, rank: u32) -> bool {
        let can = collective != Collective::Bcast;
        self.in_place && can && (!collective.is_rooted() || rank == self.root)
    }

    pub fn before(&self, collective: Collective, rank: u32) -> Memory {
        let (sent, received) = self.lengths(collective, rank);
        let operands = match self.is_in_place(collective, rank) {
            true => received.unwrap_or(0).max(sent),
            false => received.unwrap_or(0),
        };
        Memory {
            send: Buffer::new(&self.element, sent, rank + 1),
            receive: Buffer::new(&self.element, operands, 1000 + rank),
        }
    }

    /// What a rank gives, as bytes.
    fn given(&self, collective: Collective, rank: u32, memory: &Memory) -> Vec<u8> {
        let (sent, _) = self.lengths(collective, rank);
        let own = self.counts(collective)[rank as usize];
        match (collective, self.is_in_place(collective, rank)) {
            (Collective::Bcast, _) => memory.receive.get(0, own),
            (Collective::Gather | Collective::Allgather, true) => {
                memory.receive.get(rank as usize * own, own)
            }
            // What is scattered lies in the send buffer all the same.
            (Collective::Scatter, _) | (_, false) => memory.send.get(0, sent),
            (_, true) => memory.receive.get(0, sent),
        }
    }

    /// What a rank must have afterwards, from what all had before.
    pub fn after(&self, collective: Collective, rank: u32, before: &[Memory]) -> Memory {
        use Collective::*;
        let given = |rank: u32| self.given(collective, rank, &before[rank as usize]);
        let sum = |end: u32| {
            let operation = self.operation();
            (0..end).map(given).reduce(|a, b| fake::combine(operation, &a, &b)).unwrap()
        };
        let counts = self.counts(collective);
        let size = self.element.places.len();
        let block = |of: u32| {
            let begin: usize = counts[..of as usize].iter().sum();
            begin * size..(begin + counts[of as usize]) * size
        };
        let mut memory = before[rank as usize].clone();
        let (_, received) = self.lengths(collective, rank);
        let receive = &mut memory.receive;
        match collective {
            _ if received.is_none() => {}
            Bcast => receive.put(0, &given(self.root)),
            Scatter if self.is_in_place(collective, rank) => {}
            Scatter => receive.put(0, &given(self.root)[block(rank)]),
            Gather | Allgather => {
                (0..self.ranks).for_each(|of| receive.put(of as usize * self.count, &given(of)));
            }
            Alltoall => {
                let own = block(rank);
                (0..self.ranks)
                    .for_each(|of| receive.put(of as usize * self.count, &given(of)[own.clone()]));
            }
            Reduce | Allreduce => receive.put(0, &sum(self.ranks)),
            Scan => receive.put(0, &sum(rank + 1)),
            Exscan => receive.put(0, &sum(rank)),
            ReduceScatter | ReduceScatterBlock => receive.put(0, &sum(self.ranks)[block(rank)]),
            other => panic!("{other}"),
        }
        memory
    }

    fn operation(&self) -> Handle {
        if self.commutative { fake::XOR } else { fake::COMPOSE }
    }
}

/// The arguments of a rank's call.
pub fn arguments(
    shape: &Shape,
    collective: Collective,
    rank: u32,
    (memory, datatype): (&mut Memory, Handle),
    counts: &[i32],
) -> Arguments {
    let in_place = ptr::without_provenance_mut(fake::IN_PLACE);
    let is_in_place = shape.is_in_place(collective, rank);
    let (_, received) = shape.lengths(collective, rank);
    let count = shape.count as i64;
    // Not significant.
    let none = Side::uniform(ptr::without_provenance_mut(8), -3, 0);
    let own = Side::uniform(memory.send.address(), count, datatype);
    let into = Side::uniform(memory.receive.address(), count, datatype);
    let given_in_place = Side { address: in_place, ..none };
    let (into_if_any, root) = (if received.is_some() { into } else { none }, shape.root as i32);
    if collective.combines() {
        let counts = match collective {
            Collective::ReduceScatter => Counts::in_a_row(RankArray::Int(counts.as_ptr())),
            _ => Counts::Uniform(count),
        };
        let send = if is_in_place { in_place } else { own.address };
        let receive = if is_in_place { into.address } else { into_if_any.address };
        let operation = shape.operation();
        return Arguments::combining(collective, send, receive, counts, datatype, operation, root);
    }
    match collective {
        Collective::Bcast => Arguments::bcast(into, root),
        Collective::Scatter => {
            let send = if rank == shape.root { own } else { none };
            let receive = if is_in_place { given_in_place } else { into };
            Arguments::moving(collective, send, receive, root)
        }
        _ => {
            let send = if is_in_place { given_in_place } else { own };
            Arguments::moving(collective, send, into_if_any, root)
        }
    }
}
