//! A limit to the scratch memory of a call.

use std::sync::Arc;

use schedules::{Call, NodesOfRanks, Round};

use crate::{Error, Result, ScheduledMethod, agreed::UniformArguments, element_rows::ElementRows};

/// The limit, and what earlier calls needed: programs call the same collectives again and again,
/// and all ranks have to be looked at.
#[derive(Debug)]
pub(crate) struct Limit {
    bytes: u64,
    /// Whether it holds for whatever is carried out; else for elements alone that take much more
    /// memory than their data.
    for_all: bool,
    known: Vec<Needed>,
    /// Which of those is replaced next.
    oldest: usize,
}

/// What a schedule needs of a call.
#[derive(Debug)]
struct Needed {
    method: ScheduledMethod,
    call: Call<'static>,
    counts: Vec<u64>,
    nodes: Option<Arc<NodesOfRanks>>,
    elements: u64,
}

impl Limit {
    /// Where nobody says otherwise.
    pub const USUAL_BYTES: usize = 64 << 20;
    /// As many calls, by turns, are each found again.
    const KNOWN: usize = 8;

    pub fn new(bytes: u64) -> Self {
        Limit { bytes, for_all: true, known: Vec::new(), oldest: 0 }
    }

    /// For what takes much more memory than its data, which nobody expects.
    pub fn usual() -> Self {
        Limit { for_all: false, ..Limit::new(Self::USUAL_BYTES as u64) }
    }

    /// # Errors
    /// What some rank may need exceeds the limit.
    pub fn check(
        &mut self,
        method: &ScheduledMethod,
        call: &Call<'_>,
        agreed: &UniformArguments,
    ) -> Result<()> {
        if !self.for_all {
            return match agreed.layout.is_compact() || method.is_node_aware() {
                true => Ok(()),
                false => self.check_bytes(method, call, agreed, None),
            };
        }
        if agreed.packed.is_none() {
            return Err(Error::Refused(format!(
                "the memory that {method} of {} needs depends on counts that only the root knows, \
                 so it takes no limit on scratch memory",
                method.collective()
            )));
        }
        if method.is_node_aware() {
            return Err(Error::Refused(format!(
                "the memory that {method} needs depends on the nodes of the ranks, so it takes no \
                 limit on scratch memory"
            )));
        }
        self.check_bytes(method, call, agreed, None)
    }

    /// As [`Limit::check`], of a method that looks at nodes, once these are known.
    ///
    /// # Errors
    /// As [`Limit::check`].
    pub fn check_on_nodes(
        &mut self,
        method: &ScheduledMethod,
        call: &Call<'_>,
        agreed: &UniformArguments,
        nodes: &Arc<NodesOfRanks>,
    ) -> Result<()> {
        match agreed.layout.is_compact() {
            true => Ok(()),
            false => self.check_bytes(method, call, agreed, Some(nodes)),
        }
    }

    fn check_bytes(
        &mut self,
        method: &ScheduledMethod,
        call: &Call<'_>,
        agreed: &UniformArguments,
        nodes: Option<&Arc<NodesOfRanks>>,
    ) -> Result<()> {
        let elements = self.elements(method, call, nodes);
        let disjoint = call.disjoint(method.collective());
        let rows = ElementRows::new(&agreed.layout, elements, disjoint)
            .map_err(|error| Error::Refused(format!("{method}: {error}")))?;
        let bytes = (rows.bytes() as u64).saturating_add(agreed.packed.unwrap_or(0));
        if bytes <= self.bytes {
            return Ok(());
        }
        let limit = self.bytes;
        Err(Error::Refused(format!(
            "{method} may need {bytes} bytes of scratch memory; the limit is {limit}"
        )))
    }

    /// On the rank that needs most, in place or not, which for a root others don't know.
    fn elements(
        &mut self,
        method: &ScheduledMethod,
        call: &Call<'_>,
        nodes: Option<&Arc<NodesOfRanks>>,
    ) -> u64 {
        let scalars = Call { counts: &[], displacements: &[], header: &[], nodes: None, ..*call };
        let is_it = |known: &&Needed| {
            known.method == *method
                && known.call == scalars
                && known.counts == call.counts
                && known.nodes.as_ref().map(Arc::as_ptr) == nodes.map(Arc::as_ptr)
        };
        if let Some(known) = self.known.iter().find(is_it) {
            return known.elements;
        }
        let call = Call { nodes: nodes.map(|nodes| &**nodes), ..*call };
        let mut scratch = Round::of_one_call();
        let mut needs = |rank, in_place| {
            method.entry.needs_in(&Call { in_place, ..call }, rank, &mut scratch).temporary
        };
        let most = (0..call.ranks).map(|rank| needs(rank, false).max(needs(rank, true)));
        let elements = most.max().unwrap_or(0);
        let (counts, nodes) = (call.counts.to_vec(), nodes.cloned());
        let needed = Needed { method: *method, call: scalars, counts, nodes, elements };
        match self.known.get_mut(self.oldest) {
            Some(oldest) => *oldest = needed,
            None => self.known.push(needed),
        }
        self.oldest = (self.oldest + 1) % Self::KNOWN;
        elements
    }
}
