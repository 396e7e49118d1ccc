//! What can be checked.

use records::Collective;

use crate::{Call, CallError, Entry, Needs, Round};

/// Whatever can be checked: an [`Entry`], or a schedule that isn't registered.
pub trait CheckedSchedule {
    /// The collective that it is to carry out.
    fn collective(&self) -> Collective;
    /// As [`Entry::check_everywhere`].
    ///
    /// # Errors
    /// The call can't be served.
    fn check(&self, call: &Call<'_>) -> Result<(), CallError>;
    /// As [`Entry::round`].
    fn round(&self, call: &Call<'_>, rank: u32, index: u64, out: &mut Round) -> bool;
    /// As [`Entry::needs`].
    fn needs(&self, call: &Call<'_>, rank: u32) -> Needs;
}

impl CheckedSchedule for Entry {
    fn collective(&self) -> Collective {
        self.collective
    }

    fn check(&self, call: &Call<'_>) -> Result<(), CallError> {
        self.check_everywhere(call)
    }

    fn round(&self, call: &Call<'_>, rank: u32, index: u64, out: &mut Round) -> bool {
        Entry::round(self, call, rank, index, out)
    }

    fn needs(&self, call: &Call<'_>, rank: u32) -> Needs {
        Entry::needs(self, call, rank)
    }
}
