//! Every case of every collective that has mock-ups, against the library's own.

use std::{ffi::c_int, ptr};

use colibri_runner::{
    Arguments, Block, Counts, Error, Handle, Reduction,
    mockups::{self, Mockup, Mockups},
};
use records::Collective;

use super::{
    data::{self, Buffer, Kind},
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
    pub name: &'static str,
    pub handle: Handle,
    pub kind: Kind,
}

/// A call.
#[derive(Debug, Clone)]
pub struct Case {
    pub collective: Collective,
    pub count: usize,
    pub root: usize,
    pub in_place: bool,
    pub send: Kind,
    pub receive: Kind,
    pub operation: Option<Operation>,
}

/// What came of a call by a mock-up; a text where the memory is not as it should be.
pub type Outcome = Result<Result<(), String>, Error>;

/// Collectives with a root.
fn is_rooted(collective: Collective) -> bool {
    use Collective::{Bcast, Gather, Reduce, Scatter};
    matches!(collective, Bcast | Gather | Reduce | Scatter)
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
        let mut add = |collective, send, receive, operation| {
            let roots: &[usize] = match ranks.size {
                _ if !is_rooted(collective) => &[0],
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
                            send,
                            receive,
                            operation,
                        });
                    }
                }
            }
        };
        for shift in 0..combinations {
            // Every rank has other types.
            let send = kinds[(ranks.rank + shift) % kinds.len()];
            let receive = kinds[(3 * ranks.rank + 2 * shift + 1) % kinds.len()];
            for collective in [Allgather, Alltoall, Bcast, Gather, Scatter] {
                add(collective, send, receive, None);
            }
        }
        let compose = library.operation(data::compose, false);
        let add_multiply = library.operation(data::add_multiply, true);
        let mut operations: Vec<Operation> = vec![
            Operation { name: "sum", handle: library.sum, kind: data::numbers(library) },
            Operation { name: "sum", handle: library.sum, kind: data::doubles(library) },
            Operation { name: "maxloc", handle: library.maxloc, kind: data::double_ints(library) },
        ];
        for kind in kinds.iter().filter(|kind| kind.is_derived()).take(combinations) {
            operations.push(Operation { name: "compose", handle: compose, kind: *kind });
        }
        for kind in kinds.iter().filter(|kind| kind.is_derived()).take(2) {
            operations.push(Operation { name: "add_multiply", handle: add_multiply, kind: *kind });
        }
        for operation in operations {
            for collective in [Allreduce, Reduce, ReduceScatter, ReduceScatterBlock, Scan] {
                add(collective, operation.kind, operation.kind, Some(operation));
            }
        }
        Cases { library: *library, kinds, operations: [compose, add_multiply], list }
    }

    /// Keeps every so-manieth case. A step that shares no factor with the numbers of counts, roots
    /// and places takes these in turn.
    pub fn thin_out(&mut self, step: usize) {
        let mut index = 0;
        self.list.retain(|_| {
            index += 1;
            (index - 1) % step == 0
        });
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

/// How many data this rank has of what a case is about.
struct Sizes {
    send: usize,
    receive: usize,
    /// Of `receive`, those that are the result.
    result: usize,
}

impl Case {
    pub fn is_rooted(&self) -> bool {
        is_rooted(self.collective)
    }

    /// Elements of each rank's part of a reduce_scatter.
    fn parts(&self, size: usize) -> Vec<c_int> {
        (0..size).map(|rank| (self.count * ((rank + 1) % 3)) as c_int).collect()
    }

    fn sizes(&self, rank: usize, size: usize) -> Sizes {
        let (n, all, at_root) = (self.count, self.count * size, rank == self.root);
        let (send, receive, result) = match self.collective {
            Collective::Allgather => (n, all, all),
            Collective::Alltoall => (all, all, all),
            Collective::Gather => (n, all, if at_root { all } else { 0 }),
            Collective::Scatter => (all, n, if at_root && self.in_place { 0 } else { n }),
            Collective::Reduce => (n, n, if at_root { n } else { 0 }),
            Collective::ReduceScatterBlock => (all, all, n),
            Collective::ReduceScatter => {
                let parts = self.parts(size);
                let total = parts.iter().sum::<c_int>() as usize;
                (total, total, parts[rank] as usize)
            }
            _ => (n, n, n),
        };
        Sizes { send, receive, result }
    }

    /// The arguments of this rank; what is not significant is nothing that may be used.
    fn arguments(
        &self,
        ranks: &Ranks<'_>,
        send: &mut Buffer,
        receive: &mut Buffer,
        parts: &[c_int],
    ) -> Arguments {
        let in_place = ptr::without_provenance_mut(ranks.library.constants.in_place);
        let (nothing, at_root) = (insignificant(ranks.library), ranks.rank == self.root);
        let here = Block { buffer: in_place, ..nothing };
        let (n, root, count) = (self.count, self.root as c_int, self.count as i64);
        let data = self.operation.map(|Operation { handle, kind, .. }| {
            let is_local = self.in_place && (at_root || self.collective != Collective::Reduce);
            let has_result = at_root || self.collective != Collective::Reduce;
            Reduction {
                send: if is_local { in_place } else { send.address() },
                receive: if has_result { receive.address() } else { nothing.buffer },
                datatype: kind.datatype,
                operation: handle,
            }
        });
        match (self.collective, data) {
            (Collective::Allgather, _) => Arguments::Allgather {
                send: if self.in_place { here } else { send.block(n) },
                receive: receive.block(n),
            },
            (Collective::Alltoall, _) => Arguments::Alltoall {
                send: if self.in_place { here } else { send.block(n) },
                receive: receive.block(n),
            },
            (Collective::Bcast, _) => Arguments::Bcast { data: receive.block(n), root },
            (Collective::Gather, _) => Arguments::Gather {
                send: if self.in_place && at_root { here } else { send.block(n) },
                receive: if at_root { receive.block(n) } else { nothing },
                root,
            },
            (Collective::Scatter, _) => Arguments::Scatter {
                send: if at_root { send.block(n) } else { nothing },
                receive: if self.in_place && at_root { here } else { receive.block(n) },
                root,
            },
            (Collective::Allreduce, Some(data)) => Arguments::Allreduce { data, count },
            (Collective::Reduce, Some(data)) => Arguments::Reduce { data, count, root },
            (Collective::Scan, Some(data)) => Arguments::Scan { data, count },
            (Collective::ReduceScatterBlock, Some(data)) => {
                Arguments::ReduceScatterBlock { data, count }
            }
            (Collective::ReduceScatter, Some(data)) => {
                Arguments::ReduceScatter { data, counts: Counts::Int(parts.as_ptr()) }
            }
            other => panic!("{other:?}"),
        }
    }

    /// Calls the library's own collective and every mock-up of it.
    pub fn run(&self, ranks: &mut Ranks<'_>, mut judge: impl FnMut(&'static Mockup, Outcome)) {
        let library = ranks.library;
        if let Some(operation) = &self.operation {
            data::operate_on(&operation.kind);
        }
        let parts = self.parts(ranks.size);
        let sizes = self.sizes(ranks.rank, ranks.size);
        let salt = 7 * ranks.rank as u64 + self.count as u64;
        let mut send = Buffer::new(library, self.send, sizes.send, salt);
        let before = send.copied(library);
        let mut native = Buffer::new(library, self.receive, sizes.receive, salt + 1000);
        let initial = native.copied(library);
        let arguments = self.arguments(ranks, &mut send, &mut native, &parts);
        // SAFETY: buffers of the right size, handles of the library.
        check(unsafe { library.call(&arguments, ranks.comm) });
        for mockup in mockups::of_collective(self.collective) {
            let (mut send, mut found) = (before.copied(library), initial.copied(library));
            let arguments = self.arguments(ranks, &mut send, &mut found, &parts);
            // SAFETY: as above; the ranks have the same cases in the same order.
            let outcome = unsafe { ranks.mockups.run(mockup, &arguments, ranks.comm) };
            let memory = || {
                let mut wanted = initial.copied(library);
                wanted.take(&native, 0..sizes.result);
                // What is left of operands in place is nobody's affair.
                let is_cut = matches!(
                    self.collective,
                    Collective::ReduceScatter | Collective::ReduceScatterBlock
                );
                if self.in_place && is_cut {
                    wanted.take(&found, sizes.result..sizes.receive);
                }
                match (send.difference(&before), found.difference(&wanted)) {
                    (Some(byte), _) => Err(format!("byte {byte} of the send buffer has changed")),
                    (_, Some(byte)) => Err(format!("byte {byte} is wrong")),
                    (None, None) => Ok(()),
                }
            };
            judge(mockup, outcome.map(|()| memory()));
        }
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { collective, count, root, in_place, send, receive, operation } = self;
        let place = if *in_place { ", in place" } else { "" };
        let (send, receive) = (send.name, receive.name);
        write!(f, "{collective} of {count} {send} to {receive}, root {root}{place}")?;
        match operation {
            Some(operation) => write!(f, ", {}", operation.name),
            None => Ok(()),
        }
    }
}
