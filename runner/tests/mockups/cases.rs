//! Every case of every collective that has mock-ups, against what MPI defines.

use std::{collections::BTreeSet, ffi::c_int, ptr};

use colibri_runner::{
    Arguments, Counts, Error, Handle, RankArray, Side as CallSide,
    mockups::{self, Mockup, Mockups},
};
use records::Collective;

use super::{
    data::{self, Buffer, Kind},
    definition::{Combine, Datum},
    launched::aside,
    library::{Library, check, insignificant},
};

/// One rank of the ranks that call collectives.
pub struct Ranks<'a> {
    pub library: &'a Library,
    pub mockups: Mockups,
    pub comm: Handle,
    pub rank: usize,
    pub size: usize,
}

/// An operation and the kind of its operands.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub combine: Combine,
    pub handle: Handle,
    pub kind: Kind,
}

#[derive(Debug, Clone)]
pub struct Case {
    pub collective: Collective,
    pub count: usize,
    pub root: usize,
    pub in_place: bool,
    /// Which of the combinations of types and operations it has, the same on every rank.
    types: usize,
    pub send: Kind,
    pub receive: Kind,
    pub operation: Option<Operation>,
}

/// What came of a call; a text where the memory is not as MPI defines it.
pub type Outcome = Result<Result<(), String>, Error>;

/// How many of the cases are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseSelection {
    All,
    /// So many that each two values of count, root, place and types come together.
    Pairs,
    /// So many that each of these values occurs.
    Values,
}

/// Cases, and the types and operations that they need.
pub struct Cases {
    library: Library,
    kinds: Vec<Kind>,
    operations: [Handle; 2],
    pub list: Vec<Case>,
}

impl Cases {
    /// Of every collective, with so many combinations of types; the same list on every rank, but
    /// for the types.
    pub fn new(ranks: &Ranks<'_>, combinations: usize, counts: &[usize]) -> Self {
        use Collective::*;
        let library = ranks.library;
        let kinds = data::pairs(library);
        let mut list = Vec::new();
        let mut add = |collective: Collective, types, send, receive, operation| {
            let roots: &[usize] = match ranks.size {
                _ if !collective.is_rooted() => &[0],
                size if size <= 4 => &[0, 1, 2, 3][..size],
                size => &[0, size - 2],
            };
            for &root in roots {
                for in_place in [false, true] {
                    if in_place && collective == Bcast {
                        continue;
                    }
                    for &count in counts {
                        list.push(Case {
                            collective,
                            count,
                            root,
                            in_place,
                            types,
                            send,
                            receive,
                            operation,
                        });
                    }
                }
            }
        };
        // Every rank has other types; then all have one that mixes types.
        let mut sides: Vec<[Kind; 2]> = (0..combinations)
            .map(|shift| [ranks.rank + shift, 3 * ranks.rank + 2 * shift + 1])
            .map(|places| places.map(|place| kinds[place % kinds.len()]))
            .collect();
        sides.push([data::double_ints(library); 2]);
        for (types, [send, receive]) in sides.into_iter().enumerate() {
            for collective in [Allgather, Alltoall, Bcast, Gather, Scatter] {
                add(collective, types, send, receive, None);
            }
        }
        let compose = library.operation(data::compose, false);
        let add_multiply = library.operation(data::add_multiply, true);
        let derived = || kinds.iter().filter(|kind| kind.is_derived()).take(combinations.max(2));
        let mut operations = vec![
            (Combine::Sum, library.sum, data::numbers(library)),
            (Combine::SumOfDoubles, library.sum, data::doubles(library)),
            (Combine::MaxLoc, library.maxloc, data::double_ints(library)),
        ];
        operations.extend(derived().map(|kind| (Combine::Compose, compose, *kind)));
        operations.extend(derived().map(|kind| (Combine::AddMultiply, add_multiply, *kind)));
        for (types, (combine, handle, kind)) in operations.into_iter().enumerate() {
            for collective in [Allreduce, Reduce, ReduceScatter, ReduceScatterBlock, Scan] {
                add(collective, types, kind, kind, Some(Operation { combine, handle, kind }));
            }
        }
        Cases { library: *library, kinds, operations: [compose, add_multiply], list }
    }

    /// Keeps only so many.
    pub fn thin_out(&mut self, extent: CaseSelection) {
        // In the order in which they were made the first value of each would meet all the others'.
        const STEP: usize = 7919;
        let (mut seen, mut kept) =
            (BTreeSet::new(), vec![extent == CaseSelection::All; self.list.len()]);
        for index in (0..self.list.len()).map(|index| index * STEP % self.list.len()) {
            for together in self.list[index].together(extent) {
                kept[index] |= seen.insert(together);
            }
        }
        let mut kept = kept.into_iter();
        self.list.retain(|_| kept.next().unwrap());
    }
}

impl Drop for Cases {
    fn drop(&mut self) {
        for mut operation in self.operations {
            // SAFETY: made by `new`.
            check(unsafe { (self.library.op_free)(&mut operation) });
        }
        for kind in self.kinds.iter().filter(|kind| kind.is_derived()) {
            self.library.free_type(kind.datatype);
        }
    }
}

/// Which of two buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Send,
    Receive,
}

/// A rank's buffers in a call.
struct Memory {
    send: Buffer,
    receive: Buffer,
}

impl Memory {
    fn copied(&self, library: &Library) -> Self {
        Memory { send: self.send.copied(library), receive: self.receive.copied(library) }
    }
}

impl Case {
    pub fn is_rooted(&self) -> bool {
        self.collective.is_rooted()
    }

    /// Whether a rank's operand lies where its result will (with scatter, its result where the
    /// data lie).
    pub fn is_in_place(&self, rank: usize) -> bool {
        self.in_place && (!self.is_rooted() || rank == self.root)
    }

    /// Bytes of all that a call is about on one rank.
    pub fn bytes(&self) -> usize {
        self.count * self.receive.bytes()
    }

    /// The values of two of its properties, or of one, in all ways.
    fn together(&self, extent: CaseSelection) -> Vec<(Collective, [(usize, usize); 2])> {
        let values = [self.count, self.root, self.in_place.into(), self.types];
        let values: Vec<(usize, usize)> = values.into_iter().enumerate().collect();
        let is_wanted = |one: usize, other: usize| match extent {
            CaseSelection::All => false,
            CaseSelection::Pairs => one < other,
            CaseSelection::Values => one == other,
        };
        let pairs = values.iter().flat_map(|one| values.iter().map(move |other| [*one, *other]));
        let pairs = pairs.filter(|[one, other]| is_wanted(one.0, other.0));
        pairs.map(|pair| (self.collective, pair)).collect()
    }

    /// Elements of each rank's part of a reduce_scatter.
    pub fn parts(&self, size: usize) -> Vec<c_int> {
        (0..size).map(|rank| (self.count * ((rank + 1) % 3)) as c_int).collect()
    }

    fn salt(&self, rank: usize, side: Side) -> u64 {
        let of_side = if side == Side::Send { 0 } else { 1000 };
        7 * rank as u64 + self.count as u64 + of_side
    }

    pub fn sent_by(&self, rank: usize, index: usize) -> Datum {
        self.send.datum(self.salt(rank, Side::Send), index)
    }

    /// What is in a rank's receive buffer before the call.
    pub fn received_by(&self, rank: usize, index: usize) -> Datum {
        self.receive.datum(self.salt(rank, Side::Receive), index)
    }

    fn memory(&self, ranks: &Ranks<'_>) -> Memory {
        let (n, all) = (self.count, self.count * ranks.size);
        let (send, receive) = match self.collective {
            Collective::Allgather | Collective::Gather => (n, all),
            Collective::Scatter => (all, n),
            Collective::Alltoall | Collective::ReduceScatterBlock => (all, all),
            Collective::ReduceScatter => {
                let total = self.parts(ranks.size).iter().sum::<c_int>() as usize;
                (total, total)
            }
            _ => (n, n),
        };
        let buffer =
            |kind, data, side| Buffer::new(ranks.library, kind, data, self.salt(ranks.rank, side));
        Memory {
            send: buffer(self.send, send, Side::Send),
            receive: buffer(self.receive, receive, Side::Receive),
        }
    }

    /// The arguments of this rank; what is not significant is nothing that may be used.
    fn arguments(&self, ranks: &Ranks<'_>, memory: &mut Memory, parts: &[c_int]) -> Arguments {
        let Memory { send, receive } = memory;
        let in_place = ptr::without_provenance_mut(ranks.library.mpi.constants.in_place);
        let (nothing, at_root) = (insignificant(ranks.library), ranks.rank == self.root);
        let (here, is_here) =
            (CallSide { address: in_place, ..nothing }, self.is_in_place(ranks.rank));
        let (n, root, collective) = (self.count, self.root as c_int, self.collective);
        if let Some(Operation { handle, kind, .. }) = self.operation {
            let has_result = at_root || collective != Collective::Reduce;
            let from = if is_here { in_place } else { send.address() };
            let into = if has_result { receive.address() } else { nothing.address };
            let counts = match collective {
                Collective::ReduceScatter => Counts::in_a_row(RankArray::Int(parts.as_ptr())),
                _ => Counts::Uniform(n as i64),
            };
            let datatype = kind.datatype;
            return Arguments::combining(collective, from, into, counts, datatype, handle, root);
        }
        let (from, into) = match collective {
            Collective::Bcast => return Arguments::bcast(receive.block(n), root),
            Collective::Scatter => (
                if at_root { send.block(n) } else { nothing },
                if is_here { here } else { receive.block(n) },
            ),
            _ => (
                if is_here { here } else { send.block(n) },
                match at_root || collective != Collective::Gather {
                    true => receive.block(n),
                    false => nothing,
                },
            ),
        };
        Arguments::moving(collective, from, into, root)
    }

    /// Whether the memory is what MPI defines after a call.
    fn compared(
        &self,
        library: &Library,
        before: &Memory,
        found: &Memory,
        defined: &[Datum],
    ) -> Result<(), String> {
        let mut wanted = before.receive.copied(library);
        let is_cut =
            matches!(self.collective, Collective::ReduceScatter | Collective::ReduceScatterBlock);
        if self.in_place && is_cut {
            // What is left of operands in place is nobody's affair.
            wanted.take(&found.receive);
        }
        for (index, datum) in defined.iter().enumerate() {
            wanted.put(index, *datum);
        }
        match (found.send.difference(&before.send), found.receive.difference(&wanted)) {
            (Some(byte), _) => Err(format!("byte {byte} of the send buffer has changed")),
            (_, Some(byte)) => Err(format!("byte {byte} is wrong")),
            (None, None) => Ok(()),
        }
    }

    /// Calls something with arguments of its own, and judges what it leaves.
    fn judged<E>(
        &self,
        ranks: &mut Ranks<'_>,
        before: &Memory,
        defined: &[Datum],
        call: impl FnOnce(&mut Ranks<'_>, &Arguments) -> Result<(), E>,
    ) -> Result<Result<(), String>, E> {
        if let Some(operation) = &self.operation {
            data::operate_on(&operation.kind);
        }
        let parts = self.parts(ranks.size);
        let mut found = before.copied(ranks.library);
        let arguments = self.arguments(ranks, &mut found, &parts);
        let outcome = call(ranks, &arguments);
        outcome.map(|()| self.compared(ranks.library, before, &found, defined))
    }

    /// The same on every rank, whose types differ.
    pub fn name(&self) -> String {
        let Case { collective, count, root, in_place, types, operation, .. } = self;
        let operation = operation.map_or("", |operation| operation.combine.name());
        let place = if *in_place { ", in place" } else { "" };
        format!("{collective} of {count}, types {types}, root {root}{place} {operation}")
    }

    /// Calls every mock-up of the collective, but for those that lead to one which the library gets
    /// wrong by itself.
    pub fn run(&self, ranks: &mut Ranks<'_>, mut judge: impl FnMut(&'static Mockup, Outcome)) {
        let (before, defined) = (self.memory(ranks), self.defined(ranks.rank, ranks.size));
        let leads_aside = |mockup: &Mockup| {
            let inner = mockup.name.split_once("_as_").map_or("", |(_, inner)| inner);
            aside::is_in(|case| inner.contains(case.split(' ').next().unwrap_or_default()))
        };
        for mockup in mockups::of_collective(self.collective) {
            if leads_aside(mockup) {
                continue;
            }
            let outcome = self.judged(ranks, &before, &defined, |ranks, arguments| {
                // SAFETY: buffers of the right size, handles of the library; the ranks have the
                // same cases in the same order.
                unsafe { ranks.mockups.run(mockup, arguments, ranks.comm) }
            });
            judge(mockup, outcome);
        }
    }

    /// Calls the library's own collective; a text where what it leaves is not what MPI defines.
    pub fn run_native(&self, ranks: &mut Ranks<'_>) -> Result<(), String> {
        let (before, defined) = (self.memory(ranks), self.defined(ranks.rank, ranks.size));
        let outcome = self.judged(ranks, &before, &defined, |ranks, arguments| {
            // SAFETY: as above.
            match unsafe { ranks.library.call(arguments, ranks.comm) } {
                0 => Ok(()),
                code => Err(format!("error {code}")),
            }
        });
        outcome.flatten()
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { collective, count, root, in_place, send, receive, operation, .. } = self;
        let place = if *in_place { ", in place" } else { "" };
        let (send, receive) = (send.name, receive.name);
        write!(f, "{collective} of {count} {send} to {receive}, root {root}{place}")?;
        match operation {
            Some(operation) => write!(f, ", {}", operation.combine.name()),
            None => Ok(()),
        }
    }
}
