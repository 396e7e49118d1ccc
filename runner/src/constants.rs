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

/// A name that Intel's library alone defines. Its `mpi_abi.h` (2021.19) has `MPI_ERRORS_RETURN` where the ABI has
/// `MPI_ERRORS_ABORT`, and the other way round: a program built by another header ends where errors are to return.
const OF_INTEL: &CStr = c"I_MPI_Check_image_status";

/// Defines the constants of which each family has its own: the name, what MPI calls it, the variable of Open MPI whose
/// address it is, or its value there, and its values in MPICH and in the ABI of MPI 5.
macro_rules! constants {
    (handles { $($handle:ident $mpi:ident $variable:literal $of_mpich:literal $of_standard:literal;)* }
     numbers { $($number:ident $type:ty, $named:ident $values:expr;)* }) => {
        /// Values that the headers of MPI libraries define differently.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct MpiConstants {
            /// Whose they are.
            pub family: AbiFamily,
            $(
                #[doc = concat!("`", stringify!($mpi), "`.")]
                pub $handle: Handle,
            )*
            $(
                #[doc = concat!("`", stringify!($named), "`.")]
                pub $number: $type,
            )*
            /// The bits of a word that make up a handle: MPICH's are ints, and the rest of the word in
            /// which one is passed may hold anything.
            pub handle_bits: usize,
            /// Of datatypes that are numbers, and of operations on them.
            pub arithmetic: ArithmeticHandles,
            pub(crate) named_operations: NamedOperations,
        }

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
                let handle = |name: &CStr, of_mpich, of_standard| match family {
                    AbiFamily::OpenMpi => at(name),
                    AbiFamily::Mpich => Ok(of_mpich),
                    AbiFamily::Standard => Ok(of_standard),
                };
                let mut constants = MpiConstants {
                    family,
                    $($handle: handle($variable, $of_mpich, $of_standard)?,)*
                    $($number: $values[family as usize],)*
                    handle_bits: match family {
                        AbiFamily::Mpich => u32::MAX as usize,
                        AbiFamily::OpenMpi | AbiFamily::Standard => usize::MAX,
                    },
                    arithmetic: ArithmeticHandles::new(family, &variable),
                    named_operations: NamedOperations::new(family, at)?,
                };
                if family == AbiFamily::Standard && !variable(OF_INTEL).is_null() {
                    constants.errors_return = 0x142;
                }
                Ok(constants)
            }
        }
    };
}

constants! {
    handles {
        byte MPI_BYTE c"ompi_mpi_byte" 0x4c00_010d 0x247;
        packed MPI_PACKED c"ompi_mpi_packed" 0x4c00_010f 0x207;
        double MPI_DOUBLE c"ompi_mpi_double" 0x4c00_080b 0x214;
        no_type MPI_DATATYPE_NULL c"ompi_mpi_datatype_null" 0x0c00_0000 0x200;
        bitwise_and MPI_BAND c"ompi_mpi_op_band" 0x5800_0006 0x28;
        bitwise_or MPI_BOR c"ompi_mpi_op_bor" 0x5800_0008 0x29;
        bitwise_xor MPI_BXOR c"ompi_mpi_op_bxor" 0x5800_000a 0x2a;
        sum MPI_SUM c"ompi_mpi_op_sum" 0x5800_0003 0x21;
        no_operation MPI_OP_NULL c"ompi_mpi_op_null" 0x1800_0000 0x20;
        world MPI_COMM_WORLD c"ompi_mpi_comm_world" 0x4400_0000 0x101;
        own MPI_COMM_SELF c"ompi_mpi_comm_self" 0x4400_0001 0x102;
        no_comm MPI_COMM_NULL c"ompi_mpi_comm_null" 0x0400_0000 0x100;
        no_info MPI_INFO_NULL c"ompi_mpi_info_null" 0x1c00_0000 0x130;
        errors_return MPI_ERRORS_RETURN c"ompi_mpi_errors_return" 0x5400_0001 0x143;
    }
    // In the order of the families.
    numbers {
        in_place usize, MPI_IN_PLACE [1, usize::MAX, 1];
        status_ignore usize, MPI_STATUS_IGNORE [0, 1, 0];
        tag_ub c_int, MPI_TAG_UB [0, 0x6440_0001, 501];
        no_rank c_int, MPI_PROC_NULL [-2, -1, -3];
        error_truncate c_int, MPI_ERR_TRUNCATE [15, 14, 15];
        error_other c_int, MPI_ERR_OTHER [16, 15, 16];
        error_memory c_int, MPI_ERR_NO_MEM [39, 34, 39];
    }
}

/// How named operations are distinguished from the application's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedOperations {
    /// One of these addresses.
    Among([usize; 14]),
    /// These bits of the handle have this value.
    Bits(usize, usize),
    /// Below this number.
    Below(usize),
}

impl NamedOperations {
    fn new(
        family: AbiFamily,
        at: impl Fn(&CStr) -> Result<Handle, MissingSymbol>,
    ) -> Result<Self, MissingSymbol> {
        Ok(match family {
            AbiFamily::OpenMpi => NamedOperations::Among([
                at(c"ompi_mpi_op_max")?,
                at(c"ompi_mpi_op_min")?,
                at(c"ompi_mpi_op_sum")?,
                at(c"ompi_mpi_op_prod")?,
                at(c"ompi_mpi_op_land")?,
                at(c"ompi_mpi_op_band")?,
                at(c"ompi_mpi_op_lor")?,
                at(c"ompi_mpi_op_bor")?,
                at(c"ompi_mpi_op_lxor")?,
                at(c"ompi_mpi_op_bxor")?,
                at(c"ompi_mpi_op_maxloc")?,
                at(c"ompi_mpi_op_minloc")?,
                at(c"ompi_mpi_op_replace")?,
                at(c"ompi_mpi_op_no_op")?,
            ]),
            // The two highest bits of a handle are 01 in what is built in.
            AbiFamily::Mpich => NamedOperations::Bits(0xc000_0000, 0x4000_0000),
            // Named handles of all kinds fit into ten bits.
            AbiFamily::Standard => NamedOperations::Below(1 << 10),
        })
    }
}

impl MpiConstants {
    /// Whether the operation is one of MPI's own, which are defined for some datatypes only.
    pub fn is_named_operation(&self, operation: Handle) -> bool {
        let operation = operation & self.handle_bits;
        match self.named_operations {
            NamedOperations::Among(named) => named.contains(&operation),
            NamedOperations::Bits(mask, value) => operation & mask == value,
            NamedOperations::Below(end) => operation < end,
        }
    }
}
