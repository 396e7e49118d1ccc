//! Every collective by every algorithm against the library's own: all of the memory is compared,
//! gaps between elements too.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use colibri_runner::{Arguments, Counts, Error, Executor, Handle, RankArray, Side};
use records::Collective;

use crate::{
    kinds::{Kind, address},
    launched::aside,
    library::Library,
    methods::{can, collectives, methods, shared_methods},
};

/// A communicator with what the tests know of it.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    pub library: &'a Library,
    pub comm: Handle,
    pub rank: u32,
    pub size: u32,
}

/// An operation on a kind.
#[derive(Debug, Clone, Copy)]
pub struct Operator {
    pub kind: Kind,
    pub handle: Handle,
    pub commutative: bool,
}

/// What is called.
#[derive(Debug, Clone, Copy)]
enum Data<'a> {
    /// Ranks may have different kinds: here those from `first` on, by turns.
    Moved {
        kinds: &'a [Kind; 7],
        first: usize,
    },
    Combined(Operator),
}

#[derive(Debug, Clone, Copy)]
struct Case<'a> {
    collective: Collective,
    data: Data<'a>,
    pairs: usize,
    root: u32,
    in_place: bool,
}

/// A side of a call that MPI must not look at: not an address, not a count, not a type.
const POISON: Side = Side::uniform(ptr::without_provenance_mut(4), -9, usize::MAX);

/// The same with a count for each rank.
const POISONED: Side = Side {
    counts: Counts::PerRank {
        counts: RankArray::Int(ptr::without_provenance(4)),
        displacements: Some(RankArray::Int(ptr::without_provenance(4))),
    },
    ..POISON
};

/// Memory of one call on one rank.
#[derive(Clone, PartialEq)]
struct Memory {
    send: Vec<u32>,
    receive: Vec<u32>,
}

/// Pairs of the block of each rank, and where it is: out of order, with pairs between that are
/// nobody's, and from below the address on.
struct Vectors {
    pairs: Vec<usize>,
    counts: Vec<c_int>,
    displacements: Vec<c_int>,
}

impl Vectors {
    fn new(case: &Case<'_>, kind: &Kind, ranks: u32) -> Self {
        let pairs: Vec<usize> = (0..ranks as usize)
            .map(|rank| match case.pairs {
                0 => 0,
                pairs => (rank * 5 + pairs) % (pairs + 2),
            })
            .collect();
        let mut displacements = vec![0; pairs.len()];
        let mut end = 0;
        for rank in (0..pairs.len()).rev() {
            displacements[rank] = (end * kind.per_pair as usize) as c_int;
            end += pairs[rank] + 1;
        }
        let counts = pairs.iter().map(|pairs| (*pairs as i64 * kind.per_pair) as c_int).collect();
        Vectors { pairs, counts, displacements }
    }

    fn total(&self) -> usize {
        self.pairs.iter().map(|pairs| pairs + 1).sum()
    }

    fn blocks(&self, memory: &mut [u32], kind: &Kind) -> Side {
        let counts = Counts::PerRank {
            counts: RankArray::Int(self.counts.as_ptr()),
            displacements: Some(RankArray::Int(self.displacements.as_ptr())),
        };
        Side { address: address(memory), counts, datatype: kind.datatype }
    }
}

impl Case<'_> {
    fn kinds(&self, group: &Group<'_>) -> (Kind, Kind) {
        match self.data {
            Data::Moved { kinds, first } => {
                let kind =
                    |shift: usize| kinds[(first + shift + group.rank as usize) % kinds.len()];
                (kind(0), kind(3))
            }
            Data::Combined(operator) => (operator.kind, operator.kind),
        }
    }

    fn is_root(&self, group: &Group<'_>) -> bool {
        group.rank == self.root
    }

    fn in_place_here(&self, group: &Group<'_>) -> bool {
        self.in_place && (!self.collective.is_rooted() || self.is_root(group))
    }

    /// Pairs in the longest buffer of any rank.
    fn longest(&self, group: &Group<'_>, vectors: &Vectors) -> usize {
        vectors.total().max(self.pairs * group.size as usize)
    }

    fn memory(&self, group: &Group<'_>, vectors: &Vectors) -> Memory {
        let (send, receive) = self.kinds(group);
        let longest = self.longest(group, vectors);
        Memory {
            send: send.memory(longest, group.rank + 1),
            receive: receive.memory(longest, group.rank + 99),
        }
    }

    /// The arguments of the call on this rank; what is not significant is poison if so wished.
    fn arguments(
        &self,
        group: &Group<'_>,
        memory: &mut Memory,
        vectors: &Vectors,
        poison: bool,
    ) -> Arguments {
        let (send_kind, receive_kind) = self.kinds(group);
        let (root, is_root) = (self.root as c_int, self.is_root(group));
        let nothing = Side { address: ptr::null_mut(), ..receive_kind.block(&mut [], 0) };
        let unseen = if poison { POISON } else { nothing };
        let in_place = ptr::without_provenance_mut(group.library.constants.in_place);
        let own = Side { address: in_place, ..unseen };
        let mine = vectors.pairs[group.rank as usize];
        let mut send = |pairs: usize| send_kind.block(&mut memory.send, pairs);
        let mut receive = |pairs: usize| receive_kind.block(&mut memory.receive, pairs);
        let hidden = self.in_place_here(group);
        match self.collective {
            Collective::Barrier => Arguments::BARRIER,
            Collective::Bcast => Arguments::bcast(receive(self.pairs), root),
            Collective::Allgather | Collective::Alltoall | Collective::Gather => {
                let send = if hidden { own } else { send(self.pairs) };
                let is_seen = is_root || self.collective != Collective::Gather;
                let receive = if is_seen { receive(self.pairs) } else { unseen };
                Arguments::moving(self.collective, send, receive, root)
            }
            Collective::Scatter => {
                let send = if is_root { send(self.pairs) } else { unseen };
                let receive = if hidden { own } else { receive(self.pairs) };
                Arguments::moving(self.collective, send, receive, root)
            }
            Collective::Gatherv => {
                let send = if hidden { own } else { send(mine) };
                let receive = match is_root || !poison {
                    true => vectors.blocks(&mut memory.receive, &receive_kind),
                    false => POISONED,
                };
                Arguments::moving(self.collective, send, receive, root)
            }
            Collective::Scatterv => {
                let send = match is_root || !poison {
                    true => vectors.blocks(&mut memory.send, &send_kind),
                    false => POISONED,
                };
                let receive = if hidden { own } else { receive(mine) };
                Arguments::moving(self.collective, send, receive, root)
            }
            _ => self.reduction(group, memory, vectors, poison),
        }
    }

    fn reduction(
        &self,
        group: &Group<'_>,
        memory: &mut Memory,
        vectors: &Vectors,
        poison: bool,
    ) -> Arguments {
        let Data::Combined(operator) = self.data else { panic!("{self:?}") };
        let send: *const c_void = match self.in_place_here(group) {
            true => ptr::without_provenance(group.library.constants.in_place),
            false => address(&mut memory.send).cast_const(),
        };
        let has_result = self.collective != Collective::Reduce || self.is_root(group);
        let receive = match (has_result, poison) {
            (true, _) => address(&mut memory.receive),
            (false, true) => POISON.address,
            (false, false) => ptr::null_mut(),
        };
        let counts = match self.collective {
            Collective::ReduceScatter => Counts::in_a_row(RankArray::Int(vectors.counts.as_ptr())),
            _ => Counts::Uniform(self.pairs as i64 * operator.kind.per_pair),
        };
        Arguments::combining(
            self.collective,
            send,
            receive,
            counts,
            operator.kind.datatype,
            operator.handle,
            self.root as c_int,
        )
    }

    /// What of the memory the collective defines: all of it, as a rule.
    fn result(&self, group: &Group<'_>, memory: &Memory, vectors: &Vectors) -> Vec<u32> {
        let kind = self.kinds(group).1;
        let block = match self.collective {
            Collective::ReduceScatter => vectors.pairs[group.rank as usize],
            _ => self.pairs,
        };
        match self.collective {
            Collective::Exscan if group.rank == 0 && !self.in_place => Vec::new(),
            Collective::ReduceScatter | Collective::ReduceScatterBlock if self.in_place => {
                kind.numbers(&memory.receive, 0, block)
            }
            _ => memory.receive.clone(),
        }
    }

    /// By the library. MPICH 4.0 writes beyond its scratch memory in reduce-scatter, if data begin
    /// above the address of an element: there, its allreduce.
    fn carry_out(&self, group: &Group<'_>, memory: &mut Memory, vectors: &Vectors) {
        let blocks = match self.collective {
            Collective::ReduceScatterBlock => &vec![self.pairs; group.size as usize],
            _ => &vectors.pairs,
        };
        let scatters =
            matches!(self.collective, Collective::ReduceScatter | Collective::ReduceScatterBlock);
        if !(scatters && group.library.is_mpich()) {
            let arguments = self.arguments(group, memory, vectors, false);
            return group.library.collective(&arguments, group.comm);
        }
        let (mut all, kind) = (memory.clone(), self.kinds(group).0);
        let whole = Case { collective: Collective::Allreduce, pairs: blocks.iter().sum(), ..*self };
        let arguments = whole.arguments(group, &mut all, vectors, false);
        group.library.collective(&arguments, group.comm);
        let (before, own) = (&blocks[..group.rank as usize], blocks[group.rank as usize]);
        let numbers = kind.numbers(&all.receive, before.iter().sum(), own);
        kind.put(&mut memory.receive, &numbers);
    }

    /// The same on every rank.
    fn name(&self) -> String {
        let Case { collective, data, pairs, root, in_place } = self;
        let data = match data {
            Data::Moved { first, .. } => format!("kinds from {first}"),
            Data::Combined(operator) if operator.commutative => "commutative".into(),
            Data::Combined(_) => "not commutative".into(),
        };
        let place = if *in_place { ", in place" } else { "" };
        format!("{collective} of {pairs} pairs, root {root}, {data}{place}")
    }

    /// Compares all algorithms with the library; each is called so often, with memory of its own.
    fn check(&self, executor: &mut Executor, group: &Group<'_>, times: usize) {
        if !aside::begins(&self.name()) {
            return;
        }
        let kind = match (self.collective, self.kinds(group)) {
            (Collective::Scatterv, (send, _)) => send,
            (_, (_, receive)) => receive,
        };
        let vectors = Vectors::new(self, &kind, group.size);
        let before = self.memory(group, &vectors);
        let mut wanted = before.clone();
        self.carry_out(group, &mut wanted, &vectors);
        if aside::is_native() {
            return;
        }
        let commutative = match self.data {
            Data::Moved { .. } => true,
            Data::Combined(operator) => operator.commutative,
        };
        let has_gaps = match self.data {
            Data::Moved { .. } => false,
            Data::Combined(operator) => !operator.kind.is_dense(),
        };
        for method in methods(self.collective).into_iter().chain(shared_methods(self.collective)) {
            let what = || format!("{method} on {} of {}: {self:?}", group.rank, group.size);
            let mut memories = vec![before.clone(); times];
            for found in &mut memories {
                let arguments = self.arguments(group, found, &vectors, true);
                let outcome = unsafe { executor.run(&method, &arguments, group.comm) };
                if can(&method, has_gaps, commutative, group.size) {
                    outcome.unwrap_or_else(|error| panic!("{}: {error}", what()));
                    let result = |memory| self.result(group, memory, &vectors);
                    assert!(result(&wanted) == result(found), "{}", what());
                    assert!(found.send == before.send, "the send buffer has changed: {}", what());
                } else {
                    assert!(matches!(outcome, Err(Error::Refused(_))), "{}: {outcome:?}", what());
                }
            }
        }
    }
}

/// How much is tried.
#[derive(Debug, Clone, Copy)]
pub struct TriedCases {
    /// Each call has one kind, by turns, and one in-place form of two.
    pub thrifty: bool,
    /// How often each call is made.
    pub times: usize,
}

/// All collectives, roots, counts and kinds, in place and not.
pub fn check_all(
    executor: &mut Executor,
    group: &Group<'_>,
    kinds: &[Kind; 7],
    operators: &[Operator],
    TriedCases { thrifty, times }: TriedCases,
) {
    let mut turn = 0;
    for collective in collectives() {
        let roots = if collective.is_rooted() { group.size } else { 1 };
        let combines = collective.combines();
        let number = if combines { operators.len() } else { kinds.len() };
        for (root, pairs) in (0..roots).flat_map(|root| [0, 1, 2, 37].map(|pairs| (root, pairs))) {
            for index in (0..number).filter(|index| !thrifty || index % number == turn % number) {
                let data = match combines {
                    true => Data::Combined(operators[index]),
                    false => Data::Moved { kinds, first: index },
                };
                if let Data::Combined(operator) = data {
                    operator.kind.is_operand();
                }
                let has_no_form = matches!(collective, Collective::Barrier | Collective::Bcast);
                let forms: &[bool] = match (has_no_form, thrifty) {
                    (true, _) => &[false],
                    (false, true) => &[&[false], &[true]][turn % 2][..],
                    (false, false) => &[false, true],
                };
                for &in_place in forms {
                    Case { collective, data, pairs, root, in_place }.check(executor, group, times);
                }
            }
            turn += 1;
        }
    }
}
