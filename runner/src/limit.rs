//! A limit to the scratch memory of a call.

use schedules::{Call, Round};

use crate::{Error, OwnMethod, Result, agreed::UniformArguments};

/// The limit, and what the last call needed: programs call the same collective again and again,
/// and all ranks have to be looked at.
#[derive(Debug)]
pub(crate) struct Limit {
    bytes: u64,
    last: Option<Needed>,
}

/// What a schedule needs of a call.
#[derive(Debug)]
struct Needed {
    method: OwnMethod,
    call: Call<'static>,
    counts: Vec<u64>,
    elements: u64,
}

impl Limit {
    pub fn new(bytes: u64) -> Self {
        Limit { bytes, last: None }
    }

    /// # Errors
    /// What some rank may need exceeds the limit.
    pub fn check(
        &mut self,
        method: &OwnMethod,
        call: &Call<'_>,
        agreed: &UniformArguments,
    ) -> Result<()> {
        let Some(packed) = agreed.packed else {
            return Err(Error::Refused(format!(
                "the memory that {method} of {} needs depends on counts that only the root knows, \
                 so it takes no limit on scratch memory",
                method.collective()
            )));
        };
        if method.is_node_aware() {
            return Err(Error::Refused(format!(
                "the memory that {method} needs depends on the nodes of the ranks, so it takes no \
                 limit on scratch memory"
            )));
        }
        let elements = self.elements(method, call);
        let bytes = elements.saturating_mul(agreed.unit).saturating_add(packed);
        if bytes <= self.bytes {
            return Ok(());
        }
        let limit = self.bytes;
        Err(Error::Refused(format!(
            "{method} may need {bytes} bytes of scratch memory; the limit is {limit}"
        )))
    }

    /// On the rank that needs most, in place or not, which for a root others don't know.
    fn elements(&mut self, method: &OwnMethod, call: &Call<'_>) -> u64 {
        let scalars = Call { counts: &[], displacements: &[], header: &[], nodes: None, ..*call };
        if let Some(last) = &self.last
            && last.method == *method
            && last.call == scalars
            && last.counts == call.counts
        {
            return last.elements;
        }
        let mut scratch = Round::of_one_call();
        let mut needs = |rank, in_place| {
            method.entry.needs_in(&Call { in_place, ..*call }, rank, &mut scratch).temporary
        };
        let most = (0..call.ranks).map(|rank| needs(rank, false).max(needs(rank, true)));
        let elements = most.max().unwrap_or(0);
        let counts = call.counts.to_vec();
        self.last = Some(Needed { method: *method, call: scalars, counts, elements });
        elements
    }
}
