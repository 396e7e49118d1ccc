//! What the headers of MPI libraries define differently: handles and constants.

use std::{
    ffi::{CStr, c_int, c_void},
    fmt,
};

use crate::ArithmeticHandles;

/// A handle of MPI (communicator, datatype, operation, request) as a machine word.
///
/// Open MPI and the standard ABI have pointers. MPICH has ints; these travel in the lower half of
/// a word, whose upper half the callee ignores, and are written into the lower half of a word that
/// was zero.
pub type Handle = usize;

/// An MPI library has no such function or variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the MPI library has no {0}; expected one of MPI 3.0 or later")]
pub struct MissingSymbol(pub String);

/// The kinds of MPI library, by how their headers define handles and constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbiFamily {
    /// Handles are addresses of variables.
    OpenMpi,
    /// Handles are ints: MPICH, Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    /// The ABI of MPI 5: handles are addresses, named ones are small numbers.
    Standard,
}

impl fmt::Display for AbiFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AbiFamily::OpenMpi => "Open MPI",
            AbiFamily::Mpich => "MPICH",
            AbiFamily::Standard => "the ABI of MPI 5",
        })
    }
}

/// Values that the headers of MPI libraries define differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpiConstants {
    /// `MPI_IN_PLACE` as an address: 1 in Open MPI and the standard ABI, -1 in MPICH.
    pub in_place: usize,
    /// `MPI_STATUS_IGNORE` as an address: 0 in Open MPI and the standard ABI, 1 in MPICH.
    pub status_ignore: usize,
    /// `MPI_BYTE`, or another named type of one byte.
    pub byte: Handle,
    /// `MPI_DOUBLE`.
    pub double: Handle,
    /// `MPI_BOR`.
    pub bitwise_or: Handle,
    /// `MPI_BXOR`.
    pub bitwise_xor: Handle,
    /// `MPI_SUM`.
    pub sum: Handle,
    /// `MPI_PACKED`.
    pub packed: Handle,
    /// `MPI_ERRORS_RETURN`.
    pub errors_return: Handle,
    /// `MPI_COMM_WORLD`.
    pub world: Handle,
    /// `MPI_TAG_UB`, the key of an attribute of the world.
    pub tag_ub: c_int,
    /// Of datatypes that are numbers, and of operations on them.
    pub arithmetic: ArithmeticHandles,
}

/// A name that Intel's library alone defines. Its `mpi_abi.h` (2021.19) has `MPI_ERRORS_RETURN` where the ABI has
/// `MPI_ERRORS_ABORT`, and the other way round: a program built by another header ends where errors are to return.
const OF_INTEL: &CStr = c"I_MPI_Check_image_status";

impl MpiConstants {
    /// Of a family; `variable` gives the address of a variable of the library, in which Open MPI
    /// keeps its handles; null where there is none.
    ///
    /// # Errors
    /// Open MPI lacks a variable.
    pub fn new(
        family: AbiFamily,
        variable: impl Fn(&CStr) -> *const c_void,
    ) -> Result<Self, MissingSymbol> {
        let at = |name: &CStr| match variable(name) {
            address if address.is_null() => {
                Err(MissingSymbol(format!("variable {}", name.to_string_lossy())))
            }
            address => Ok(address.addr()),
        };
        let arithmetic = ArithmeticHandles::new(family, &variable);
        Ok(match family {
            AbiFamily::OpenMpi => MpiConstants {
                in_place: 1,
                status_ignore: 0,
                byte: at(c"ompi_mpi_byte")?,
                packed: at(c"ompi_mpi_packed")?,
                double: at(c"ompi_mpi_double")?,
                bitwise_or: at(c"ompi_mpi_op_bor")?,
                bitwise_xor: at(c"ompi_mpi_op_bxor")?,
                sum: at(c"ompi_mpi_op_sum")?,
                errors_return: at(c"ompi_mpi_errors_return")?,
                world: at(c"ompi_mpi_comm_world")?,
                tag_ub: 0,
                arithmetic,
            },
            AbiFamily::Mpich => MpiConstants {
                in_place: usize::MAX,
                status_ignore: 1,
                byte: 0x4c00_010d,
                packed: 0x4c00_010f,
                double: 0x4c00_080b,
                bitwise_or: 0x5800_0008,
                bitwise_xor: 0x5800_000a,
                sum: 0x5800_0003,
                errors_return: 0x5400_0001,
                world: 0x4400_0000,
                tag_ub: 0x6440_0001,
                arithmetic,
            },
            AbiFamily::Standard => MpiConstants {
                in_place: 1,
                status_ignore: 0,
                byte: 0x247,
                packed: 0x207,
                double: 0x214,
                bitwise_or: 0x29,
                bitwise_xor: 0x2a,
                sum: 0x21,
                errors_return: match variable(OF_INTEL).is_null() {
                    true => 0x143,
                    false => 0x142,
                },
                world: 0x101,
                tag_ub: 501,
                arithmetic,
            },
        })
    }
}
