//! What MPI has told of datatypes.

use std::cell::Cell;

use crate::{Handle, Mpi, Result, layout::BufferLayout};

/// A datatype that was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Type {
    pub layout: BufferLayout,
    /// See [`BufferLayout::is_plain`].
    pub is_plain: bool,
}

/// The datatypes of the call under way and, of those before, the plain ones.
///
/// MPI is asked six times for one type, which takes longer than the rest of what we do beside a
/// short message. Plain types are named ones, and a named type keeps its handle for good; a derived
/// one may be freed after the call, and its handle be another's in the next.
#[derive(Debug, Default)]
pub(crate) struct DatatypeCache {
    known: Cell<[Option<Type>; 2]>,
    next: Cell<usize>,
}

impl DatatypeCache {
    /// What MPI says of a type.
    pub fn look_up(&self, mpi: &Mpi, datatype: Handle) -> Result<Type> {
        let mut known = self.known.get();
        if let Some(found) = known.iter().flatten().find(|known| known.layout.datatype == datatype)
        {
            return Ok(*found);
        }
        let layout = BufferLayout::from_datatype(mpi, datatype)?;
        let made = Type { layout, is_plain: layout.is_plain(mpi)? };
        let place = self.next.get();
        known[place] = Some(made);
        self.next.set((place + 1) % known.len());
        self.known.set(known);
        Ok(made)
    }

    /// Whether all that the call under way has asked for are plain.
    pub fn are_plain(&self) -> bool {
        self.known.get().iter().flatten().all(|known| known.is_plain)
    }

    /// Another call begins.
    pub fn begin_call(&self) {
        self.known.set(self.known.get().map(|known| known.filter(|known| known.is_plain)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn only_plain_types_outlive_a_call() {
        let (mpi, types) = (fake::table(), DatatypeCache::default());
        let kept = |types: &DatatypeCache| -> Vec<Handle> {
            types.known.get().iter().flatten().map(|known| known.layout.datatype).collect()
        };
        assert!(!types.look_up(&mpi, fake::SPREAD).unwrap().is_plain);
        assert!(types.look_up(&mpi, fake::BYTE).unwrap().is_plain);
        assert_eq!(types.look_up(&mpi, fake::SPREAD).unwrap().layout.size, 2);
        assert_eq!(kept(&types), [fake::SPREAD, fake::BYTE]);
        assert!(!types.are_plain());
        types.begin_call();
        assert_eq!(kept(&types), [fake::BYTE]);
        assert!(types.are_plain());
    }
}
