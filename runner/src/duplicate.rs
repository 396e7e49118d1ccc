//! The table in use, and the communicators on which our messages travel.

use std::{
    any::Any,
    ffi::{c_int, c_void},
    ptr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicI32, AtomicU64, Ordering},
    },
};

use schedules::NodesOfRanks;

use crate::{
    Error, Handle, Mpi, Result, ScheduledMethod,
    error::check,
    memory::{self, AreaLimits, SharedArea},
    tags::{CallNumbers, greatest_tag},
    types::NamedTypes,
};

/// A table of MPI functions in use by this process, by all of its threads.
///
/// Every communicator of the application that is used gets a communicator of the same ranks, so
/// that no receive of the application's can catch our messages. It hangs on the application's as
/// an attribute and is freed with it. It is made by `MPI_Comm_split`, which, unlike
/// `MPI_Comm_dup`, doesn't run the copy functions of the application's own attributes.
#[derive(Debug)]
pub struct Session {
    pub(crate) mpi: Mpi,
    pub(crate) types: NamedTypes,
    /// Set once, before anyone has the session.
    keyval: AtomicI32,
    packs_plainly: OnceLock<bool>,
    released: AtomicU64,
    greatest_tag: c_int,
    /// Of the memory that ranks of a node share.
    area_limits: Mutex<AreaLimits>,
    /// See [`Session::why_nothing_is_shared`].
    why_nothing_is_shared: OnceLock<String>,
    /// Of communicators that are no more; they live as long as the process, and are used again.
    spare_numbers: Mutex<Vec<&'static CallNumbers>>,
}

/// A rank of a communicator of the application's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommunicatorMember {
    pub rank: u32,
    pub size: u32,
    ours: Option<Duplicate>,
}

impl CommunicatorMember {
    /// Whether there is a duplicate of the communicator.
    pub fn has_duplicate(self) -> bool {
        self.ours.is_some()
    }

    /// A root as an application passes it.
    pub fn root(self, root: c_int) -> Result<u32> {
        u32::try_from(root)
            .ok()
            .filter(|root| *root < self.size)
            .ok_or_else(|| Error::Invalid(format!("root {root}; expected 0 to {}", self.size - 1)))
    }
}

/// A communicator of ours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Duplicate {
    pub comm: Handle,
    pub rank: u32,
    pub size: u32,
    /// Of the calls on it.
    pub numbers: &'static CallNumbers,
}

/// What hangs on a communicator of the application's.
#[derive(Debug, Default)]
struct CommunicatorRecord {
    /// Made when a method is first to be carried out on it.
    duplicate: OnceLock<Duplicate>,
    /// Found when a method first asks for them.
    nodes: OnceLock<Arc<NodesOfRanks>>,
    /// Made when a method first asks for it; or why it can't be.
    area: OnceLock<std::result::Result<Arc<SharedArea>, String>>,
    /// See [`Session::keep`].
    kept: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Session {
    /// Bytes that ranks of a node share at most, of all communicators of a process, if nobody says otherwise.
    pub const SHARED_MEMORY_BYTES: u64 = schedules::shared::DEFAULT_NODE_BYTES;

    /// Takes the table into use, once per process: MPI holds on to the session until the process
    /// ends. MPI must have been initialised.
    ///
    /// # Errors
    /// MPI refuses to make the attribute, or to tell of its types.
    pub fn open(mpi: Mpi) -> Result<&'static Session> {
        let session: &'static Session = Box::leak(Box::new(Session {
            mpi,
            types: NamedTypes::new(&mpi)?,
            keyval: AtomicI32::new(0),
            packs_plainly: OnceLock::new(),
            released: AtomicU64::new(0),
            greatest_tag: greatest_tag(&mpi),
            area_limits: Mutex::new(AreaLimits {
                bytes: Session::SHARED_MEMORY_BYTES,
                is_crowd_allowed: false,
            }),
            why_nothing_is_shared: OnceLock::new(),
            spare_numbers: Mutex::default(),
        }));
        let state = ptr::from_ref(session).cast_mut();
        let mut keyval = 0;
        // SAFETY: both functions have the types that MPI wants; `state` lives on, and is only read.
        let code =
            unsafe { (mpi.comm_create_keyval)(copy, delete, &mut keyval, state.cast::<c_void>()) };
        check("MPI_Comm_create_keyval", code)?;
        session.keyval.store(keyval, Ordering::Relaxed);
        Ok(session)
    }

    fn keyval(&self) -> c_int {
        self.keyval.load(Ordering::Relaxed)
    }

    /// The table in use.
    pub fn mpi(&self) -> &Mpi {
        &self.mpi
    }

    /// How many duplicates MPI has given up. As long as it stays the same, what was found of a
    /// communicator that has one holds.
    pub(crate) fn released(&self) -> u64 {
        self.released.load(Ordering::Acquire)
    }

    /// This rank's place in the application's communicator; an inter-communicator is refused.
    ///
    /// # Safety
    /// `comm` must be a communicator or a handle that MPI refuses.
    pub(crate) unsafe fn member(&self, comm: Handle) -> Result<CommunicatorMember> {
        // SAFETY: `comm` is a communicator or refused (contract of this function); the record is copied at once.
        let record = unsafe { self.record(comm)? };
        if let Some(ours) = record.and_then(|record| record.duplicate.get()) {
            let Duplicate { rank, size, .. } = *ours;
            return Ok(CommunicatorMember { rank, size, ours: Some(*ours) });
        }
        let (mut is_inter, mut rank, mut size) = (0, 0, 0);
        // SAFETY: `comm` is a communicator, as MPI has looked for an attribute of it; outputs are locals.
        unsafe {
            check("MPI_Comm_test_inter", (self.mpi.comm_test_inter)(comm, &mut is_inter))?;
            check("MPI_Comm_rank", (self.mpi.comm_rank)(comm, &mut rank))?;
            check("MPI_Comm_size", (self.mpi.comm_size)(comm, &mut size))?;
        }
        match is_inter {
            0 => Ok(CommunicatorMember { rank: rank as u32, size: size as u32, ours: None }),
            _ => Err(Error::Refused("the communicator is an inter-communicator".into())),
        }
    }

    /// Our communicator of the ranks of the application's. The first call is collective.
    ///
    /// # Safety
    /// `member` must be of `comm`, which must be a live communicator of the session's library; where it has no
    /// duplicate yet, all its ranks must come here.
    pub(crate) unsafe fn duplicate(
        &self,
        comm: Handle,
        member: CommunicatorMember,
    ) -> Result<Duplicate> {
        let CommunicatorMember { rank, size, ours } = member;
        if let Some(ours) = ours {
            return Ok(ours);
        }
        let mpi = &self.mpi;
        let mut ours: Handle = 0;
        // SAFETY: `comm` is live, and all its ranks come here (contract of this function); outputs are locals.
        unsafe {
            check("MPI_Comm_split", (mpi.comm_split)(comm, 0, rank as c_int, &mut ours))?;
            let code = (mpi.comm_set_errhandler)(ours, mpi.constants.errors_return);
            check("MPI_Comm_set_errhandler", code)?;
            let made = Duplicate { comm: ours, rank, size, numbers: self.numbers() };
            Ok(*self.record_or_new(comm)?.duplicate.get_or_init(|| made))
        }
    }

    /// Makes our communicator of the ranks of the application's, where there is none. Collective; a call by
    /// [`crate::Executor::run`] needs none before.
    ///
    /// # Safety
    /// `comm` must be a live communicator of the session's library, all of whose ranks do this.
    ///
    /// # Errors
    /// MPI refuses, or it is an inter-communicator.
    pub unsafe fn prepare(&self, comm: Handle) -> Result<Handle> {
        // SAFETY: `comm` is live, and all its ranks are here (contract of this function).
        unsafe { self.duplicate(comm, self.member(comm)?).map(|ours| ours.comm) }
    }

    /// Those of a new communicator, from the beginning.
    fn numbers(&self) -> &'static CallNumbers {
        let spare = self.spare_numbers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match spare {
            Some(numbers) => {
                numbers.reset();
                numbers
            }
            None => Box::leak(Box::new(CallNumbers::new(self.greatest_tag))),
        }
    }

    /// The nodes of a communicator's ranks, where a method looks at them. The first time is
    /// collective: processor names tell nodes apart.
    ///
    /// # Safety
    /// `ours` must be the duplicate of `comm`, which must be live; all ranks ask for the same method.
    pub(crate) unsafe fn nodes_for(
        &self,
        method: &ScheduledMethod,
        comm: Handle,
        ours: Duplicate,
    ) -> Result<Option<Arc<NodesOfRanks>>> {
        if !method.is_node_aware() && !method.uses_shared_memory() {
            return Ok(None);
        }
        // SAFETY: `comm` is live (contract of this function).
        let Some(record) = (unsafe { self.record(comm)? }) else {
            // SAFETY: `ours` is live, and all its ranks ask for this method (contract of this function); none
            // has found the attribute.
            return Ok(Some(Arc::new(unsafe { self.find_nodes(ours)? })));
        };
        if let Some(nodes) = record.nodes.get() {
            return Ok(Some(Arc::clone(nodes)));
        }
        // SAFETY: `ours` is live, and all its ranks ask for this method (contract of this function); none knows
        // the nodes yet.
        let found = Arc::new(unsafe { self.find_nodes(ours)? });
        Ok(Some(Arc::clone(record.nodes.get_or_init(|| found))))
    }

    /// # Safety
    /// As [`Session::nodes_for`].
    unsafe fn find_nodes(&self, ours: Duplicate) -> Result<NodesOfRanks> {
        // SAFETY: `ours` is live, and all its ranks are here (contract of this function).
        Ok(NodesOfRanks::new(&unsafe { self.nodes_by_number(ours.comm, ours.size)? }))
    }

    /// A number of each rank's node, the same where ranks are on one: all are asked for the names of their
    /// processors. Collective.
    ///
    /// # Safety
    /// The communicator must be a live one of the session's library, of so many ranks, all of which call this.
    ///
    /// # Errors
    /// MPI fails.
    pub unsafe fn nodes_by_number(&self, comm: Handle, size: u32) -> Result<Vec<u64>> {
        // MPI_MAX_PROCESSOR_NAME is at most 256 in the libraries that are known.
        let mut name = [0_u8; 1024];
        let (mpi, mut length) = (&self.mpi, 0);
        // SAFETY: the name has room, and its length is written to a local.
        let code = unsafe { (mpi.get_processor_name)(name.as_mut_ptr().cast(), &mut length) };
        check("MPI_Get_processor_name", code)?;
        let length = usize::try_from(length).unwrap_or_default().min(name.len());
        let own = hash(&name[..length]);
        let mut numbers = vec![0_u64; size as usize];
        let (bytes, byte) = (size_of::<u64>() as c_int, mpi.constants.byte);
        // SAFETY: `own` has 8 bytes, `numbers` 8 for each rank, and all ranks of the live `comm` are here (contract
        // of this function).
        let code = unsafe {
            let (from, into) = (ptr::from_ref(&own).cast(), numbers.as_mut_ptr().cast());
            (mpi.allgather)(from, bytes, byte, into, bytes, byte, comm)
        };
        check("MPI_Allgather", code)?;
        Ok(numbers)
    }

    /// What hangs on a communicator of the application's, if there is something.
    ///
    /// # Safety
    /// `comm` must be a communicator or a handle that MPI refuses, and is not freed while the record is looked at.
    unsafe fn record<'a>(&self, comm: Handle) -> Result<Option<&'a CommunicatorRecord>> {
        let mut value: *mut c_void = ptr::null_mut();
        let mut there = 0;
        let place = ptr::from_mut(&mut value).cast();
        // SAFETY: MPI writes a pointer into `value` where it finds the attribute. An attribute of our keyval is a
        // `CommunicatorRecord` that `record_or_new` boxed, and lives until `delete`.
        unsafe {
            let code = (self.mpi.comm_get_attr)(comm, self.keyval(), place, &mut there);
            check("MPI_Comm_get_attr", code)?;
            Ok((there != 0).then(|| &*value.cast::<CommunicatorRecord>()))
        }
    }

    /// The record of a communicator, made if there is none yet.
    ///
    /// # Safety
    /// `comm` must be live, and is not freed while the record is looked at.
    unsafe fn record_or_new<'a>(&self, comm: Handle) -> Result<&'a CommunicatorRecord> {
        // SAFETY: `comm` is live (contract of this function). The attribute is given up to MPI, which hands it to
        // `delete` once.
        unsafe {
            if let Some(record) = self.record(comm)? {
                return Ok(record);
            }
            let attribute = Box::into_raw(Box::<CommunicatorRecord>::default());
            let code = (self.mpi.comm_set_attr)(comm, self.keyval(), attribute.cast());
            check("MPI_Comm_set_attr", code)?;
            Ok(&*attribute)
        }
    }

    /// What whoever uses the session keeps of a communicator of the application's, if there is something.
    ///
    /// # Safety
    /// `comm` must be a communicator or a handle that MPI refuses, and is not freed while this is looked at.
    ///
    /// # Errors
    /// MPI refuses.
    pub unsafe fn kept<'a, T: Any>(&self, comm: Handle) -> Result<Option<&'a T>> {
        // SAFETY: `comm` is a communicator or refused (contract of this function).
        let record = unsafe { self.record(comm)? };
        Ok(record.and_then(|record| record.kept.get()?.downcast_ref()))
    }

    /// Keeps something of a communicator of the application's, which is dropped when that is freed. What is kept
    /// already stays.
    ///
    /// # Safety
    /// `comm` must be live, and is not freed while this is looked at. A panic when it is dropped ends the process.
    ///
    /// # Errors
    /// MPI refuses, or something of another type is kept.
    pub unsafe fn keep<'a, T: Any + Send + Sync>(
        &self,
        comm: Handle,
        make: impl FnOnce() -> T,
    ) -> Result<&'a T> {
        // SAFETY: `comm` is live (contract of this function).
        let record: &'a CommunicatorRecord = unsafe { self.record_or_new(comm)? };
        let kept = record.kept.get_or_init(|| Box::new(make()));
        let other = || Error::Refused("something else is kept of the communicator".into());
        kept.downcast_ref().ok_or_else(other)
    }

    /// How much memory the ranks of a node may share, in bytes of all communicators of a process, and whether they
    /// do even where they outnumber the processors. The same on all ranks; for communicators whose ranks share none yet.
    pub fn set_shared_memory(&self, bytes: u64, is_crowd_allowed: bool) {
        let limits = AreaLimits { bytes, is_crowd_allowed };
        *self.area_limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// The memory that the ranks of this node share, where a method asks for it. The first time is collective.
    ///
    /// # Safety
    /// As [`Session::nodes_for`]; `nodes` are the communicator's.
    ///
    /// # Errors
    /// MPI fails, or no memory is shared: refused on all ranks.
    pub(crate) unsafe fn area_for(
        &self,
        method: &ScheduledMethod,
        comm: Handle,
        ours: Duplicate,
        nodes: Option<&NodesOfRanks>,
    ) -> Result<Option<Arc<SharedArea>>> {
        let Some(nodes) = nodes.filter(|_| method.uses_shared_memory()) else { return Ok(None) };
        let limits = *self.area_limits.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `comm` and `ours` are live, and all ranks ask for this method (contract of this function).
        let made = unsafe {
            let create = || Ok(memory::create(&self.mpi, ours, nodes, limits)?.map(Arc::new));
            match self.record(comm)? {
                None => create()?,
                Some(record) => match record.area.get() {
                    Some(known) => known.clone(),
                    None => {
                        let made = create()?;
                        record.area.get_or_init(|| made).clone()
                    }
                },
            }
        };
        made.map(Some).map_err(|why| {
            let why = format!("{method}: {why}");
            // Who allows no memory knows why there is none.
            if ours.rank == 0 && limits.bytes > 0 {
                self.why_nothing_is_shared.get_or_init(|| why.clone());
            }
            Error::Refused(why)
        })
    }

    /// What to tell the user, once: why ranks that a method wanted to share memory do not. Of the first communicator
    /// where that was so and whose rank 0 this is.
    pub fn why_nothing_is_shared(&self) -> Option<&str> {
        self.why_nothing_is_shared.get().map(String::as_str)
    }

    /// Gives up all that hangs on a communicator of the application's before that is freed, as has to be done for
    /// MPI's own communicators before `MPI_Finalize`. Collective where it has one of ours; nothing where nothing
    /// hangs on it.
    ///
    /// # Safety
    /// `comm` must be a live communicator, all of whose ranks do this, and no call of ours on it may be under
    /// way.
    ///
    /// # Errors
    /// MPI refuses.
    pub unsafe fn release(&self, comm: Handle) -> Result<()> {
        // SAFETY: `comm` is live, and nothing is under way on its duplicate, which `delete` frees (contract of
        // this function).
        unsafe {
            if self.record(comm)?.is_some() {
                check("MPI_Comm_delete_attr", (self.mpi.comm_delete_attr)(comm, self.keyval()))?;
            }
        }
        Ok(())
    }

    /// That the library packs data as its plain bytes, on which messages of ours rest that are cut
    /// between any two bytes. All ranks have the same library, so that all refuse or none.
    ///
    /// # Safety
    /// `comm` must be a live communicator.
    pub(crate) unsafe fn check_packing(&self, comm: Handle) -> Result<()> {
        // SAFETY: `comm` is live (contract of this function), which is all that `packs_plainly` relies on.
        let packs = || unsafe { packs_plainly(&self.mpi, comm) };
        match *self.packs_plainly.get_or_init(packs) {
            true => Ok(()),
            false => {
                Err(Error::Refused("the MPI library packs data as more than its bytes".into()))
            }
        }
    }
}

/// Of a name, the same on all ranks (FNV-1a): two of a million names are taken for one once in some
/// million clusters.
fn hash(name: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    name.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Packs two pairs of bytes with a gap.
///
/// # Safety
/// `comm` must be a live communicator.
unsafe fn packs_plainly(mpi: &Mpi, comm: Handle) -> bool {
    let (pairs, mut packed) = ([1_u8, 9, 2, 3, 9, 4], [0_u8; 16]);
    let mut pair: Handle = 0;
    let mut end = 0;
    // SAFETY: the type has two bytes, at 0 and 2; the buffers are as long as is said.
    unsafe {
        let places = [0_isize, 2];
        let (from, into) = (pairs.as_ptr().cast(), packed.as_mut_ptr().cast());
        (mpi.type_create_hindexed)(
            2,
            [1, 1].as_ptr(),
            places.as_ptr(),
            mpi.constants.byte,
            &mut pair,
        ) == 0
            && (mpi.type_commit)(&mut pair) == 0
            && (mpi.pack)(from, 2, pair, into, packed.len() as c_int, &mut end, comm) == 0
            && (mpi.type_free)(&mut pair) == 0
            && end == 4
            && packed[..4] == [1, 2, 3, 4]
    }
}

/// A duplicate that the application makes gets one of its own, when it is used.
unsafe extern "C-unwind" fn copy(
    _comm: Handle,
    _keyval: c_int,
    _state: *mut c_void,
    _value: *mut c_void,
    _copied: *mut c_void,
    is_copied: *mut c_int,
) -> c_int {
    // SAFETY: MPI passes a place for the flag.
    unsafe { *is_copied = 0 };
    0
}

/// Called by MPI when the application frees its communicator.
unsafe extern "C-unwind" fn delete(
    _comm: Handle,
    _keyval: c_int,
    value: *mut c_void,
    state: *mut c_void,
) -> c_int {
    // SAFETY: `state` is the session that made the keyval, `value` was boxed by `record_or_new` and comes
    // here once. No panic can leave this function.
    unsafe {
        let session = &*state.cast::<Session>();
        let mut record = Box::from_raw(value.cast::<CommunicatorRecord>());
        let Some(mut duplicate) = record.duplicate.take() else { return 0 };
        session.released.fetch_add(1, Ordering::AcqRel);
        let numbers = duplicate.numbers;
        session.spare_numbers.lock().unwrap_or_else(PoisonError::into_inner).push(numbers);
        (session.mpi.comm_free)(&mut duplicate.comm)
    }
}
