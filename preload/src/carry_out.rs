//! One call of the application: by a method of ours or by the library.

use std::{
    ffi::{c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    time::Instant,
};

use records::Collective;
use runner::{Arguments, Block, Error, Handle, Reduction};

use crate::{
    choice::{Carrier, Choice, Plan},
    communicators::{self, Place},
    job::{Job, lock, say},
    library::Family,
    signature::message_bytes,
};

/// Whether a call is known to be the MPI library's, as it came, by what is at hand: nothing is called
/// here, so that what stands before the library's function keeps its arguments in registers and ends in
/// a jump. Where it is false, [`choose`] tells.
///
/// # Safety
/// As [`choose`].
#[inline(always)]
pub unsafe fn is_left_alone(arguments: &Arguments, comm: Handle) -> bool {
    let Some(place) = communicators::find_at_once(comm) else { return false };
    let plan = place.plans.of(arguments.collective());
    if place.plans.watched {
        return false;
    }
    if plan.is_empty() {
        return true;
    }
    let Some(job) = Job::current() else { return false };
    let size = |datatype| job.types.known(&job.library, datatype);
    // SAFETY: the caller vouches for the arguments.
    match unsafe { message_bytes(job, arguments, place, size) } {
        Some(0) => !matches!(arguments, Arguments::Barrier),
        Some(bytes) => plan.has_none(bytes),
        None => false,
    }
}

/// The call if it is to be carried out or noted here; nothing where it is the MPI library's, as it
/// came.
///
/// # Safety
/// The arguments must be the application's, between `MPI_Init` and `MPI_Finalize` or not.
#[inline(always)]
pub unsafe fn choose(arguments: Arguments, comm: Handle) -> Option<Call> {
    // SAFETY: the caller vouches for the arguments.
    unsafe {
        let place = communicators::find(comm)?;
        let plan = place.plans.of(arguments.collective());
        if plan.is_empty() && !place.plans.watched {
            return None;
        }
        let job = Job::current()?;
        let size = |datatype| job.types.bytes(&job.library, datatype);
        let bytes = message_bytes(job, &arguments, place, size)?;
        let choice = look_up(plan, &arguments, bytes);
        if choice.is_none() && !place.plans.watched {
            return None;
        }
        Some(Call { job, arguments, comm, place, bytes, choice })
    }
}

/// Messages without data are the library's: there is nothing to gain, and ranks may then pass
/// what they like as the type.
#[inline(always)]
fn look_up<'a>(plan: &'a Plan, arguments: &Arguments, bytes: u64) -> Option<&'a Choice> {
    match bytes > 0 || matches!(arguments, Arguments::Barrier) {
        true => plan.find(bytes),
        false => None,
    }
}

/// A call whose method may not be the library's, or that is noted.
#[derive(Clone, Copy)]
pub struct Call {
    job: &'static Job,
    arguments: Arguments,
    comm: Handle,
    place: Place,
    bytes: u64,
    choice: Option<&'static Choice>,
}

impl Call {
    /// The code of a method of ours, or of `library`: the MPI library's own function with the same
    /// arguments.
    ///
    /// # Safety
    /// As [`choose`].
    #[inline(never)]
    pub unsafe fn carry_out(self, library: &dyn Fn() -> c_int) -> c_int {
        let started = self.place.plans.watched.then(Instant::now);
        // SAFETY: the caller vouches for the arguments.
        let ours = self.choice.and_then(|choice| unsafe { self.guarded(&choice.carrier) });
        let code = ours.unwrap_or_else(library);
        if let Some(started) = started {
            let ran = self.choice.filter(|_| ours.is_some());
            let collective = self.arguments.collective();
            let procs = self.place.plans.procs;
            self.job.usage.note(collective, procs, self.bytes, ran, started.elapsed());
        }
        code
    }

    /// A panic of ours ends the job: the other ranks would wait forever.
    unsafe fn guarded(&self, carrier: &Carrier) -> Option<c_int> {
        // SAFETY: the caller vouches for the arguments.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { self.by(carrier) }));
        outcome.unwrap_or_else(|_| {
            say(&format!("a fault in {}; the job ends", c_name(self.arguments.collective())));
            let library = &self.job.library;
            // SAFETY: MPI is initialised.
            unsafe { (library.call.abort)(library.world, 3) };
            std::process::abort()
        })
    }

    /// The code, or nothing if the call is the library's. That is decided by what is equal on all
    /// ranks, or by what is wrong by MPI's rules.
    unsafe fn by(&self, carrier: &Carrier) -> Option<c_int> {
        // SAFETY: the caller vouches for the arguments.
        unsafe {
            let arguments = self.in_place_where_shared();
            if !(Call { arguments, ..*self }).is_sound() || self.breaks_library(carrier) {
                return None;
            }
            let mut worker = self.job.worker();
            let outcome = worker.carry_out(carrier, &arguments, self.comm);
            self.job.give_back(worker);
            let code = match outcome {
                Ok(()) => return Some(0),
                // Nothing was sent, here or on any other rank, or it is wrong by MPI's rules.
                Err(Error::Invalid(_) | Error::Refused(_)) => return None,
                Err(Error::Mpi { code, .. }) => code,
                Err(Error::Memory(_)) => self.job.library.error_memory,
                Err(Error::Packing { .. }) => self.job.library.error_other,
            };
            (self.job.library.call.comm_call_errhandler)(self.comm, code);
            Some(code)
        }
    }

    /// The arguments, with `MPI_IN_PLACE` where a block that is moved lies where it is received. MPI
    /// forbids that, Open MPI lets it pass, and programs do it, in an allgather on every rank: were
    /// it found wrong, then on rank 0 alone, where both addresses are the same, and that rank would
    /// call the library while the others don't.
    unsafe fn in_place_where_shared(&self) -> Arguments {
        let (mut arguments, library) = (self.arguments, &self.job.library);
        if library.family != Family::OpenMpi {
            return arguments;
        }
        let in_place = ptr::without_provenance_mut(library.constants.in_place);
        let is_root = |root: c_int| root == self.place.rank;
        // SAFETY: the caller vouches for the datatypes.
        let own_of = |all: &Block, one: &Block| unsafe { self.is_own_block(all, one) };
        match &mut arguments {
            Arguments::Allgather { send, receive } if own_of(receive, send) => {
                send.buffer = in_place;
            }
            Arguments::Gather { send, receive, root }
                if is_root(*root) && own_of(receive, send) =>
            {
                send.buffer = in_place;
            }
            Arguments::Scatter { send, receive, root }
                if is_root(*root) && own_of(send, receive) =>
            {
                receive.buffer = in_place;
            }
            _ => {}
        }
        arguments
    }

    /// Whether `one` is this rank's block of `all`, of the same type.
    unsafe fn is_own_block(&self, all: &Block, one: &Block) -> bool {
        if all.datatype != one.datatype || all.count != one.count {
            return false;
        }
        let (mut lower, mut extent) = (0, 0);
        // SAFETY: the caller vouches for the datatype; outputs are locals.
        let code = unsafe {
            (self.job.library.call.type_get_extent)(all.datatype, &mut lower, &mut extent)
        };
        let before = extent.wrapping_mul(one.count as isize).wrapping_mul(self.place.rank as isize);
        code == 0 && all.buffer.wrapping_byte_offset(before) == one.buffer
    }

    /// Whether a mock-up would bring the application to a place where MPICH crashes by itself, and
    /// to which it doesn't go without us. Seen in 4.0.2 on 2 ranks: Reduce_scatter_block with an
    /// operation that is not commutative, and Reduce in place of more than 2 KiB where the root is
    /// not rank 0. The same on all ranks.
    unsafe fn breaks_library(&self, carrier: &Carrier) -> bool {
        let library = &self.job.library;
        let (Carrier::Mockup(mockup), Family::Mpich) = (carrier, library.family) else {
            return false;
        };
        let inner = mockup.name.split_once("_as_").map_or("", |(_, inner)| inner);
        match &self.arguments {
            Arguments::Allreduce { data, .. } | Arguments::Reduce { data, .. } => {
                let mut commutative = 1;
                // SAFETY: the caller vouches for the operation.
                unsafe { (library.call.op_commutative)(data.operation, &mut commutative) };
                commutative == 0 && inner.starts_with("reduce_scatter_block")
            }
            Arguments::Gather { root, .. } => *root != 0 && inner == "reduce",
            _ => false,
        }
    }

    /// Whether the arguments hold by MPI's rules, as far as libraries check them and a method of
    /// ours would not find out the same; what doesn't is the library's, with its own error.
    unsafe fn is_sound(&self) -> bool {
        let place = self.place;
        let is_root = |root: c_int| root == place.rank;
        // SAFETY: the caller vouches for the arguments.
        unsafe {
            match &self.arguments {
                Arguments::Bcast { data, .. } => !self.is_in_place(data.buffer) && self.holds(data),
                Arguments::Allgather { send, receive } | Arguments::Alltoall { send, receive } => {
                    self.both_hold(send, receive)
                }
                Arguments::Gather { send, receive, root } if is_root(*root) => {
                    self.both_hold(send, receive)
                }
                Arguments::Gather { send, .. } => {
                    !self.is_in_place(send.buffer) && self.holds(send)
                }
                Arguments::Scatter { send, receive, root } if is_root(*root) => {
                    // Here it is the receiving side that may be in place.
                    self.both_hold(receive, send)
                }
                Arguments::Scatter { receive, .. } => {
                    !self.is_in_place(receive.buffer) && self.holds(receive)
                }
                Arguments::Reduce { data, count, root } => {
                    let in_place = self.is_in_place(data.send.cast_mut());
                    let is_root = is_root(*root);
                    (is_root || !in_place) && self.combines(data, *count, is_root)
                }
                Arguments::Allreduce { data, count }
                | Arguments::Scan { data, count }
                | Arguments::ReduceScatterBlock { data, count } => {
                    self.combines(data, *count, true)
                }
                // Who gets nothing may pass any address.
                Arguments::Exscan { data, count } => {
                    let gets = place.rank != 0 || self.is_in_place(data.send.cast_mut());
                    self.combines(data, *count, gets)
                }
                Arguments::ReduceScatter { data, counts } => {
                    let gets = counts.get(place.rank as usize) > 0
                        || self.is_in_place(data.send.cast_mut());
                    self.combines(data, 1, gets)
                }
                _ => true,
            }
        }
    }

    fn is_in_place(&self, buffer: *mut c_void) -> bool {
        buffer.addr() == self.job.library.constants.in_place
    }

    /// Two sides of which the first may be in place.
    unsafe fn both_hold(&self, own: &Block, other: &Block) -> bool {
        // SAFETY: the caller vouches for the arguments.
        unsafe {
            if self.is_in_place(other.buffer) || !self.holds(other) {
                return false;
            }
            if self.is_in_place(own.buffer) {
                return true;
            }
            // One address for both sides is wrong, unless their types name different bytes.
            let is_shared = own.buffer == other.buffer && own.count > 0 && other.count > 0;
            self.holds(own)
                && !(is_shared && self.is_named(own.datatype) && self.is_named(other.datatype))
        }
    }

    /// A count that can be, a committed type, and an address where the type has none of its own.
    unsafe fn holds(&self, block: &Block) -> bool {
        // SAFETY: the caller vouches for the arguments.
        block.count >= 0 && unsafe { self.is_there(block.buffer, block.count, block.datatype) }
    }

    unsafe fn is_there(&self, buffer: *mut c_void, count: i64, datatype: Handle) -> bool {
        let library = &self.job.library;
        if datatype & library.handle_bits == library.no_type {
            return false;
        }
        // SAFETY: the caller vouches for the arguments.
        unsafe {
            match self.is_named(datatype) {
                true => !buffer.is_null() || count == 0,
                false => self.is_committed(datatype),
            }
        }
    }

    unsafe fn combines(&self, data: &Reduction, count: i64, receives: bool) -> bool {
        let library = &self.job.library;
        let in_place = self.is_in_place(data.send.cast_mut());
        let (send, receive) = (data.send.cast_mut(), data.receive);
        if data.operation & library.handle_bits == library.no_operation
            || (receives && (self.is_in_place(receive) || (!in_place && send == receive)))
        {
            return false;
        }
        // SAFETY: the caller vouches for the arguments.
        unsafe {
            (in_place || self.is_there(send, count, data.datatype))
                && (!receives || self.is_there(receive, count, data.datatype))
                && self.is_defined(data.operation, data.datatype)
        }
    }

    unsafe fn is_named(&self, datatype: Handle) -> bool {
        // SAFETY: the caller vouches for the datatype.
        unsafe { self.job.types.is_named(&self.job.library, datatype) }
    }

    /// Asks the library by a message to nobody.
    unsafe fn is_committed(&self, datatype: Handle) -> bool {
        let library = &self.job.library;
        let mut request: Handle = 0;
        // SAFETY: what goes nowhere is not read; the address must not be null.
        unsafe {
            let (nowhere, alone) = (ptr::without_provenance(1 << 12), self.job.alone);
            // Without an element MPICH does not look at the type.
            let code =
                (library.call.isend)(nowhere, 1, datatype, library.no_rank, 0, alone, &mut request);
            let status = ptr::without_provenance_mut(library.constants.status_ignore);
            code == 0 && (library.call.wait)(&mut request, status) == 0
        }
    }

    /// Whether the operation is defined for the type. The library is asked once for each pair of
    /// its own: where they are combined piece by piece it would complain elsewhere than it does
    /// for the call. The application's operations are for what types it says.
    unsafe fn is_defined(&self, operation: Handle, datatype: Handle) -> bool {
        let library = &self.job.library;
        if !library.is_named_operation(operation) {
            return true;
        }
        // SAFETY: the caller vouches for the datatype.
        if !unsafe { self.is_named(datatype) } {
            return false;
        }
        let bits = library.handle_bits;
        let mut tried = lock(&self.job.tried);
        *tried.entry((operation & bits, datatype & bits)).or_insert_with(|| {
            // As much as the largest named type, a pair of a long double and an int, needs.
            let (from, mut into) = ([0_u128; 8], [0_u128; 8]);
            // SAFETY: room for one element; the communicator has this process alone, and the lock
            // lets one thread at a time use it so.
            let code = unsafe {
                let (from, into) = (from.as_ptr().cast(), into.as_mut_ptr().cast());
                let alone = self.job.alone;
                (library.call.allreduce)(from, into, 1, datatype, operation, alone)
            };
            code == 0
        })
    }
}

/// What a collective is called in C.
pub fn c_name(collective: Collective) -> String {
    let name = collective.name();
    format!("MPI_{}{}", name[..1].to_uppercase(), &name[1..])
}
