//! What is known of an algorithm without running it.

use std::fmt;

use records::{Algorithm, Collective, OwnMethod};

use crate::{
    Call, Needs, NodesOfRanks, Program, Round,
    program::{Functions, Header},
    shared,
};

/// What an algorithm asks of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requirements {
    /// The operation must be commutative.
    pub commutative: bool,
    /// The number of ranks must be even (or 1).
    pub even: bool,
}

/// Why an algorithm that looks at nodes can't serve a call, if it can't.
#[derive(Clone, Copy)]
pub(crate) struct NodeChecks {
    /// Whatever the nodes.
    pub on_any: fn(&Entry, &Call<'_>) -> Option<String>,
    /// On those of the call.
    pub on_these: fn(&Call<'_>) -> Option<String>,
}

/// One algorithm of one collective.
#[derive(Clone, Copy)]
pub struct Entry {
    pub collective: Collective,
    pub algorithm: Algorithm,
    pub name: &'static str,
    /// What it does, in a line.
    pub description: &'static str,
    /// What it asks of a call.
    pub requirements: Requirements,
    /// Whether [`Call::segment`] matters.
    pub segmented: bool,
    /// Whether [`Call::fan_out`] matters.
    pub fanned: bool,
    node_checks: Option<NodeChecks>,
    shares_memory: bool,
    pub(crate) functions: Functions,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.collective, self.name)
    }
}

/// A call that an algorithm can't serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{collective} {name}: {problem}")]
pub struct CallError {
    collective: Collective,
    name: &'static str,
    problem: String,
}

impl Entry {
    /// An algorithm that asks nothing of a call.
    pub const fn new<P: Program>(
        collective: Collective,
        algorithm: Algorithm,
        description: &'static str,
    ) -> Self {
        Entry {
            collective,
            algorithm,
            name: algorithm.name(),
            description,
            requirements: Requirements { commutative: false, even: false },
            segmented: false,
            fanned: false,
            node_checks: None,
            shares_memory: false,
            functions: Functions::of::<P>(),
        }
    }

    /// It asks for a commutative operation.
    pub const fn commutative(self) -> Self {
        Entry { requirements: Requirements { commutative: true, ..self.requirements }, ..self }
    }

    /// It asks for an even number of ranks.
    pub const fn even(self) -> Self {
        Entry { requirements: Requirements { even: true, ..self.requirements }, ..self }
    }

    /// The segment size matters.
    pub const fn segmented(self) -> Self {
        Entry { segmented: true, ..self }
    }

    /// The fan-out matters.
    pub const fn fanned(self) -> Self {
        Entry { fanned: true, ..self }
    }

    /// It looks at the nodes.
    pub(crate) const fn node_aware(self, checks: NodeChecks) -> Self {
        Entry { node_checks: Some(checks), ..self }
    }

    /// It works through shared memory.
    pub(crate) const fn shared(self) -> Self {
        Entry { shares_memory: true, ..self }
    }

    /// Whether its ranks, all on one node, use [`Call::shared`] elements of memory, and no messages.
    pub const fn shares_memory(&self) -> bool {
        self.shares_memory
    }

    /// Whether a call of it takes shared memory, in all of it or inside nodes.
    pub fn uses_shared_memory(&self, call: &Call<'_>) -> bool {
        let inside = call.intra.filter(|_| self.is_node_aware());
        self.shares_memory || inside.is_some_and(Algorithm::shares_memory)
    }

    /// Whether it looks at [`Call::nodes`].
    pub const fn is_node_aware(&self) -> bool {
        self.node_checks.is_some()
    }

    /// The smallest [`Call::fan_out`] that means anything, but for 0 where [`OwnMethod::standard_fan_out`] is that.
    pub const fn min_fan_out(&self) -> u32 {
        match self.algorithm {
            Algorithm::Fitted | Algorithm::Circulant | Algorithm::KChain | Algorithm::KRing => 1,
            _ => 2,
        }
    }

    /// Why the algorithm can't have a fan-out.
    pub fn fan_out_problem(&self, fan_out: u32) -> Option<String> {
        let least = self.min_fan_out();
        let is_standard = fan_out == OwnMethod::standard_fan_out(self.algorithm);
        (fan_out < least && !is_standard)
            .then(|| format!("fan-out {fan_out}; expected at least {least}"))
    }

    /// Whether the algorithm serves the call.
    ///
    /// # Errors
    /// No ranks, a root that is none of them, an operation or a number of ranks that the algorithm
    /// can't do, a fan-out of 0 (radix below 2), counts that don't belong to the ranks, or more
    /// elements than 64 bits count. A node-aware algorithm asks for the nodes of all ranks.
    pub fn check(&self, call: &Call<'_>) -> Result<(), CallError> {
        self.check_on_any_nodes(call)?;
        let problem = self.node_checks.and_then(|checks| (checks.on_these)(call));
        match problem.or_else(|| self.memory_problem(call)) {
            Some(problem) => {
                Err(CallError { collective: self.collective, name: self.name, problem })
            }
            None => Ok(()),
        }
    }

    /// As [`Entry::check`], whatever nodes the ranks are on: what this serves, that does.
    ///
    /// # Errors
    /// As [`Entry::check`], and a node-aware algorithm of an operation that is not commutative: it
    /// may change the order of operands.
    pub fn check_on_any_nodes(&self, call: &Call<'_>) -> Result<(), CallError> {
        let problem = if call.ranks == 0 {
            "0 ranks; a communicator has at least 1".into()
        } else if self.collective.is_rooted() && call.root >= call.ranks {
            format!("root {} of {} ranks; expected 0 to {}", call.root, call.ranks, call.ranks - 1)
        } else if self.requirements.commutative && !call.commutative {
            "the operation is not commutative; this algorithm changes the order of operands".into()
        } else if self.requirements.even && call.ranks > 1 && call.ranks % 2 == 1 {
            format!("{} ranks; this algorithm needs an even number", call.ranks)
        } else if let (true, Some(problem)) = (self.fanned, self.fan_out_problem(call.fan_out)) {
            problem
        } else if call.ranks > 1 << 30 {
            format!("{} ranks; expected at most {}", call.ranks, 1 << 30)
        } else if call.count.checked_mul(2 * u64::from(call.ranks)).is_none() {
            format!("{} elements for each of {} ranks overflow", call.count, call.ranks)
        } else if let Some(problem) = self.counts_problem(call) {
            problem
        } else if let Some(problem) =
            self.node_checks.and_then(|checks| (checks.on_any)(self, call))
        {
            problem
        } else {
            return Ok(());
        };
        Err(CallError { collective: self.collective, name: self.name, problem })
    }

    /// As [`Entry::check`], for a call that stands for all ranks at once: it must hold the counts
    /// of all.
    ///
    /// # Errors
    /// As [`Entry::check`], or counts are missing.
    pub fn check_everywhere(&self, call: &Call<'_>) -> Result<(), CallError> {
        self.check(call)?;
        let in_part = self.collective.has_counts() && self.collective.is_rooted();
        if in_part && call.counts.len() != call.ranks as usize {
            let problem = format!("{} counts for {} ranks", call.counts.len(), call.ranks);
            return Err(CallError { collective: self.collective, name: self.name, problem });
        }
        Ok(())
    }

    /// Why the memory that the ranks of a node share won't do.
    fn memory_problem(&self, call: &Call<'_>) -> Option<String> {
        if !self.uses_shared_memory(call) {
            return None;
        }
        if self.shares_memory && call.nodes.is_some_and(|nodes| nodes.count() > 1) {
            return Some("the ranks are on several nodes, which share no memory".into());
        }
        let ranks = call.nodes.map_or(call.ranks, NodesOfRanks::most);
        let least = shared::min_elements(ranks);
        let most = shared::max_elements(call.shared, ranks);
        // Inside nodes a phase may move the blocks of all.
        let all = if self.shares_memory { 1 } else { u64::from(call.ranks) };
        match call.shared {
            0 => Some("the ranks share no memory".into()),
            elements if elements < least => {
                Some(format!("{elements} elements of shared memory; expected at least {least}"))
            }
            _ if call.count.saturating_mul(all) > most => Some(format!(
                "{} elements; through this memory go at most {}",
                call.count,
                most / all
            )),
            _ => None,
        }
    }

    /// A rank other than the root may know its own count only.
    fn counts_problem(&self, call: &Call<'_>) -> Option<String> {
        if !self.collective.has_counts() {
            return None;
        }
        let least = if self.collective.is_rooted() { 1 } else { call.ranks as usize };
        let (counts, places) = (call.counts.len(), call.displacements.len());
        let ends = call.counts.iter().zip(call.displacements);
        if ![least, call.ranks as usize].contains(&counts) {
            Some(format!("{counts} counts for {} ranks; expected as many", call.ranks))
        } else if counts != places {
            Some(format!("{counts} counts but {places} displacements; expected as many"))
        } else if ends.into_iter().any(|(count, place)| count.checked_add(*place).is_none()) {
            Some("a block's end overflows".into())
        } else if call.counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count)).is_none()
        {
            Some("the counts are too many elements together".into())
        } else if self.collective == Collective::ReduceScatter && !is_contiguous(call) {
            Some("the blocks don't follow each other from element 0 on".into())
        } else {
            None
        }
    }

    /// What `rank` needs to execute its program. The call is as for [`Entry::round`]; where there
    /// is a header, how much scratch memory is needed is known after round 0, with the header in the call.
    pub fn needs(&self, call: &Call<'_>, rank: u32) -> Needs {
        self.needs_in(call, rank, &mut Round::default())
    }

    /// [`Entry::needs`], by help of the memory in which the rounds are made: what a v-form sorts for
    /// this is not sorted again for its rounds.
    pub fn needs_in(&self, call: &Call<'_>, rank: u32, scratch: &mut Round) -> Needs {
        (self.functions.needs)(&self.normal(call), rank, scratch)
    }

    /// Puts the steps of round `index` of `rank` into `out`, in place of what was there.
    ///
    /// Returns false, and leaves `out` empty, if the program has no such round: it has ended. The
    /// call must satisfy [`Entry::check`], and be what this rank knows: `in_place`, `counts`,
    /// `displacements` and `header` are its own.
    pub fn round(&self, call: &Call<'_>, rank: u32, index: u64, out: &mut Round) -> bool {
        (self.functions.round)(&self.normal(call), rank, index, out)
    }

    /// The counts that round 0 brings, for a call that [`Entry::normal`] has seen.
    pub(crate) fn normal_header(&self, call: &Call<'_>, rank: u32) -> Header {
        (self.functions.header)(call, rank)
    }

    /// [`Entry::round`] for a call that [`Entry::normal`] has seen.
    #[inline]
    pub(crate) fn normal_round(
        &self,
        call: &Call<'_>,
        rank: u32,
        index: u64,
        out: &mut Round,
    ) -> bool {
        (self.functions.round)(call, rank, index, out)
    }

    /// Where the collective has no root, its programs (some of them made of rooted ones) take 0.
    pub(crate) fn normal<'a>(&self, call: &Call<'a>) -> Call<'a> {
        Call { root: if self.collective.is_rooted() { call.root } else { 0 }, ..*call }
    }
}

/// Whether the blocks follow each other in rank order, as those of `reduce_scatter` must.
fn is_contiguous(call: &Call<'_>) -> bool {
    let mut end = 0;
    call.counts.iter().zip(call.displacements).all(|(count, place)| {
        let follows = *place == end;
        end = place + count;
        follows
    })
}

/// What a rank knows of the call: its own `in_place`, and of the counts what MPI tells it.
#[inline]
pub(crate) fn known_to<'a>(collective: Collective, call: &Call<'a>, rank: u32) -> Call<'a> {
    let mut known = *call;
    if collective.is_rooted() && rank != call.root {
        known.in_place = false;
        if collective.has_counts() {
            known.counts = &call.counts[rank as usize..=rank as usize];
            known.displacements = &call.displacements[rank as usize..=rank as usize];
        }
    }
    known
}
