//! What an algorithm must not be used for.

use std::fmt;

use records::{Algorithm, Collective};

/// An algorithm that must not be used for some calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Danger {
    pub collective: Collective,
    pub algorithm: Algorithm,
    /// For which calls.
    pub unsafe_for: UnsafeFor,
    /// What comes of it.
    pub damage: Damage,
    /// Where that was seen or read.
    pub source: &'static str,
}

/// Calls for which an algorithm must not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsafeFor {
    /// With an operation that is not commutative.
    NotCommutative,
    /// With an operation of the user's, or fewer elements than the greatest power of two that is
    /// not above the number of ranks.
    UserOperationOrFewElements,
    /// With `MPI_IN_PLACE`.
    InPlace,
    /// On any number of ranks but two.
    NotTwoRanks,
    /// On numbers of ranks that are not powers of two.
    NotPowerOfTwo,
}

impl fmt::Display for UnsafeFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnsafeFor::NotCommutative => "with operations that are not commutative",
            UnsafeFor::UserOperationOrFewElements => {
                "with user-defined operations, or fewer elements than ranks (rounded down to a power of two)"
            }
            UnsafeFor::InPlace => "with MPI_IN_PLACE",
            UnsafeFor::NotTwoRanks => "except on two ranks",
            UnsafeFor::NotPowerOfTwo => "on numbers of ranks that are not powers of two",
        })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Damage::WrongResults => "gives wrong results",
            Damage::Failure => "fails",
        })
    }
}

/// What comes of a dangerous algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    WrongResults,
    /// The program ends, or its results are wrong.
    Failure,
}
