//! The MPI library of the process, found at run time.

use std::{
    ffi::{CStr, CString, c_int, c_void},
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicPtr, Ordering},
    },
};

use runner::{AbiFamily, Arguments, Handle, Mpi, MpiConstants, process};

/// A function that stands behind one of ours, looked up once.
pub struct LibraryFunction {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl LibraryFunction {
    pub const fn new(name: &'static CStr) -> Self {
        LibraryFunction { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Where it has been looked up and is there.
    #[inline(always)]
    pub fn known(&self) -> Option<*mut c_void> {
        Some(self.address.load(Ordering::Relaxed)).filter(|address| !address.is_null())
    }

    /// Null where the library has no such function.
    #[inline]
    pub fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if known.is_null() { self.look_up() } else { known }
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        let found = process::behind(self.name);
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// The functions of the library; its constants are not known yet.
///
/// # Errors
/// One is missing; says which.
fn functions() -> Result<Mpi, String> {
    let find = |name: &CStr| {
        let Ok(name) = CString::new([b"P", name.to_bytes()].concat()) else {
            return ptr::null();
        };
        process::behind(&name).cast_const()
    };
    let constants = MpiConstants::new(AbiFamily::Standard, |_| ptr::null());
    // SAFETY: these are the functions of these names; who takes the table for more than calls, which
    // look at no constant, sets the constants.
    constants
        .and_then(|constants| unsafe { Mpi::load(find, constants) })
        .map_err(|missing| missing.to_string())
}

/// The library's function with small counts for what has none with large ones; nothing if it lacks
/// that, too.
///
/// # Safety
/// The arguments must be the application's, which fulfil the call's contract (see [`Arguments`]) or are refused
/// by the library; counts of 64 bits must be as [`Mpi::call`] demands.
pub unsafe fn call_classic(arguments: &Arguments, comm: Handle) -> Option<c_int> {
    static FUNCTIONS: OnceLock<Option<Mpi>> = OnceLock::new();
    let functions = FUNCTIONS.get_or_init(|| functions().ok()).as_ref()?;
    // SAFETY: the arguments are the application's (contract of this function), of which `call` asks no more; it
    // looks at no constant.
    Some(unsafe { functions.call(arguments, comm) })
}

/// The library, with what its header says.
#[derive(Clone, Copy)]
pub struct LoadedLibrary {
    pub family: AbiFamily,
    pub mpi: Mpi,
    /// The bits of a word that make up a handle: MPICH's are ints, and the rest of the word in
    /// which one is passed may hold anything.
    pub handle_bits: usize,
    pub world: Handle,
    pub own: Handle,
    pub no_comm: Handle,
    pub no_type: Handle,
    pub no_operation: Handle,
    /// `MPI_INFO_NULL`.
    pub no_info: Handle,
    /// `MPI_BAND`.
    pub and: Handle,
    /// `MPI_PROC_NULL`.
    pub no_rank: c_int,
    /// `MPI_ERR_NO_MEM`.
    pub error_memory: c_int,
    /// `MPI_ERR_OTHER`.
    pub error_other: c_int,
    /// `MPI_ERR_TRUNCATE`; the classes of wrong arguments are below it.
    error_truncate: c_int,
    /// Where named operations end; see [`LoadedLibrary::is_named_operation`].
    operations: Operations,
}

/// How named operations are told from the application's own.
#[derive(Clone, Copy)]
enum Operations {
    /// One of these addresses.
    Among([usize; 14]),
    /// These bits of the handle have this value.
    Bits(usize, usize),
    /// Below this number.
    Below(usize),
}

impl LoadedLibrary {
    /// The library that the process has loaded.
    ///
    /// # Errors
    /// None, or one whose header isn't known; says which.
    pub fn find() -> Result<Self, String> {
        let functions = functions()?;
        // SAFETY: the function of this name, or null.
        let family = unsafe { process::family(process::behind(c"PMPI_Get_library_version"))? };
        let constants = MpiConstants::new(family, |name| process::first(name).cast_const())
            .map_err(|missing| missing.to_string())?;
        let mpi = Mpi { constants, ..functions };
        match family {
            AbiFamily::OpenMpi => open_mpi(mpi),
            AbiFamily::Mpich => Ok(mpich(mpi)),
            AbiFamily::Standard => Ok(standard(mpi)),
        }
    }

    /// Whether a call that returned this code was refused for its arguments, before anything was sent.
    ///
    /// # Safety
    /// MPI must be initialised.
    pub unsafe fn is_refusal(&self, code: c_int) -> bool {
        let mut class = 0;
        // SAFETY: MPI is initialised (contract of this function); the class is written to a local.
        code != 0
            && unsafe { (self.mpi.error_class)(code, &mut class) } == 0
            && class < self.error_truncate
    }

    /// Whether the operation is one of MPI's own, which are defined for some datatypes only.
    pub fn is_named_operation(&self, operation: Handle) -> bool {
        let operation = operation & self.handle_bits;
        match self.operations {
            Operations::Among(named) => named.contains(&operation),
            Operations::Bits(mask, value) => operation & mask == value,
            Operations::Below(end) => operation < end,
        }
    }
}

fn open_mpi(mpi: Mpi) -> Result<LoadedLibrary, String> {
    let at = |name: &CStr| match process::first(name) {
        address if address.is_null() => Err(format!("Open MPI has no {name:?}")),
        address => Ok(address.addr()),
    };
    let operations = Operations::Among([
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
    ]);
    Ok(LoadedLibrary {
        family: AbiFamily::OpenMpi,
        mpi,
        handle_bits: usize::MAX,
        world: at(c"ompi_mpi_comm_world")?,
        own: at(c"ompi_mpi_comm_self")?,
        no_comm: at(c"ompi_mpi_comm_null")?,
        no_type: at(c"ompi_mpi_datatype_null")?,
        no_operation: at(c"ompi_mpi_op_null")?,
        no_info: at(c"ompi_mpi_info_null")?,
        and: at(c"ompi_mpi_op_band")?,
        no_rank: -2,
        error_memory: 39,
        error_other: 16,
        error_truncate: 15,
        operations,
    })
}

fn mpich(mpi: Mpi) -> LoadedLibrary {
    LoadedLibrary {
        family: AbiFamily::Mpich,
        mpi,
        handle_bits: u32::MAX as usize,
        world: 0x4400_0000,
        own: 0x4400_0001,
        no_comm: 0x0400_0000,
        no_type: 0x0c00_0000,
        no_operation: 0x1800_0000,
        no_info: 0x1c00_0000,
        and: 0x5800_0006,
        no_rank: -1,
        error_memory: 34,
        error_other: 15,
        error_truncate: 14,
        // The two highest bits of a handle are 01 in what is built in.
        operations: Operations::Bits(0xc000_0000, 0x4000_0000),
    }
}

fn standard(mpi: Mpi) -> LoadedLibrary {
    LoadedLibrary {
        family: AbiFamily::Standard,
        mpi,
        handle_bits: usize::MAX,
        world: 0x101,
        own: 0x102,
        no_comm: 0x100,
        no_type: 0x200,
        no_operation: 0x20,
        no_info: 0x130,
        and: 0x28,
        no_rank: -3,
        error_memory: 39,
        error_other: 16,
        error_truncate: 15,
        // Named handles of all kinds fit into ten bits.
        operations: Operations::Below(1 << 10),
    }
}
