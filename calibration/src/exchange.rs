//! Point-to-point messages on raw MPI: every return code is checked, which rsmpi does not do, and
//! nothing is allocated in the calls that are timed.

use std::{ffi::c_int, mem::MaybeUninit, ptr};

use mpi::{
    Threading,
    environment::{self, Universe},
    ffi,
    topology::SimpleCommunicator,
    traits::{AsRaw, Communicator as _, Equivalence},
};
use runner::Handle;
use serde::{Serialize, de::DeserializeOwned};
use timing::peers::Peers;

use crate::{Error, Result, polling_pause::PollingPause, sleep::sharpen_timers};

pub use timing::peers::Tag;

/// A communicator of which this process is a member. Copies name the same communicator.
#[derive(Debug, Clone, Copy)]
pub struct Communicator {
    raw: ffi::MPI_Comm,
    rank: c_int,
    size: c_int,
}

/// Turns a return code into an error with the library's own words.
///
/// # Errors
/// The code is not MPI_SUCCESS.
#[inline]
pub fn check(call: &'static str, code: c_int) -> Result<()> {
    let refused = || Error::Mpi { call, reason: reason(code) };
    if code == ffi::MPI_SUCCESS as c_int { Ok(()) } else { Err(refused()) }
}

/// What the MPI library says of a return code.
#[cold]
pub fn reason(code: c_int) -> String {
    let mut text = [0_u8; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length: c_int = 0;
    // SAFETY: the buffer has the size that MPI demands, and one byte more.
    let known = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut length) } == 0;
    match usize::try_from(length) {
        Ok(length) if known => String::from_utf8_lossy(&text[..length]).into_owned(),
        _ => format!("error {code}"),
    }
}

fn count(bytes: usize) -> Result<c_int> {
    c_int::try_from(bytes).map_err(|_| {
        Error::Usage(format!("a message of {bytes} bytes; MPI counts to {}", c_int::MAX))
    })
}

fn byte_type() -> ffi::MPI_Datatype {
    u8::equivalent_datatype().as_raw()
}

impl Communicator {
    /// MPI_COMM_WORLD, with errors returned. MPI must have been initialised.
    ///
    /// # Errors
    /// The library refuses.
    pub fn world() -> Result<Self> {
        Self::wrap(SimpleCommunicator::world().as_raw())
    }

    fn wrap(raw: ffi::MPI_Comm) -> Result<Self> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: `raw` is a communicator that the library handed out; the rest points to locals.
        unsafe {
            let code = ffi::MPI_Comm_set_errhandler(raw, ffi::RSMPI_ERRORS_RETURN);
            check("MPI_Comm_set_errhandler", code)?;
            check("MPI_Comm_rank", ffi::MPI_Comm_rank(raw, &mut rank))?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(raw, &mut size))?;
        }
        Ok(Communicator { raw, rank, size })
    }

    /// A communicator of the same ranks; all of them must call this.
    ///
    /// # Errors
    /// The library refuses.
    pub fn duplicate(&self) -> Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: `self.raw` is valid; on success the library has written the new handle.
        let raw = unsafe {
            check("MPI_Comm_dup", ffi::MPI_Comm_dup(self.raw, raw.as_mut_ptr()))?;
            raw.assume_init()
        };
        Self::wrap(raw)
    }

    /// A communicator of some of the ranks, in this order. Only these may call this; the others sleep on.
    ///
    /// # Errors
    /// The library refuses.
    pub fn of_ranks(&self, ranks: &[u32]) -> Result<Self> {
        let ranks: Vec<c_int> = ranks.iter().map(|&rank| rank as c_int).collect();
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the handles are valid, `ranks` holds as many as announced, and each output
        // is read only after its call succeeded.
        let raw = unsafe {
            let (mut all, mut some) = (MaybeUninit::uninit(), MaybeUninit::uninit());
            check("MPI_Comm_group", ffi::MPI_Comm_group(self.raw, all.as_mut_ptr()))?;
            let mut all = all.assume_init();
            let code =
                ffi::MPI_Group_incl(all, ranks.len() as c_int, ranks.as_ptr(), some.as_mut_ptr());
            check("MPI_Group_incl", code)?;
            let mut some = some.assume_init();
            let tag = Tag::Setup as c_int;
            let code = ffi::MPI_Comm_create_group(self.raw, some, tag, raw.as_mut_ptr());
            check("MPI_Comm_create_group", code)?;
            check("MPI_Group_free", ffi::MPI_Group_free(&mut some))?;
            check("MPI_Group_free", ffi::MPI_Group_free(&mut all))?;
            raw.assume_init()
        };
        Self::wrap(raw)
    }

    /// `MPI_Bcast` without data; all ranks must call this.
    ///
    /// # Errors
    /// The library refuses.
    pub fn broadcast_nothing(&self) -> Result<()> {
        // SAFETY: the communicator is valid; without elements no address is looked at.
        let code = unsafe { ffi::MPI_Bcast(ptr::null_mut(), 0, byte_type(), 0, self.raw) };
        check("MPI_Bcast", code)
    }

    /// The library's handle.
    pub fn raw(&self) -> ffi::MPI_Comm {
        self.raw
    }

    /// The communicator's handle as a machine word, as the runner takes it.
    pub fn handle(&self) -> Handle {
        self.raw.0 as Handle
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.rank as u32
    }

    /// Ranks in the communicator.
    pub fn size(&self) -> u32 {
        self.size as u32
    }

    /// MPI_Send.
    ///
    /// # Errors
    /// The library refuses.
    #[inline]
    pub fn send(&self, bytes: &[u8], to: u32, tag: Tag) -> Result<()> {
        let (length, to) = (count(bytes.len())?, to as c_int);
        let buffer = bytes.as_ptr().cast();
        // SAFETY: the buffer holds `length` bytes and is not changed during the call.
        let code =
            unsafe { ffi::MPI_Send(buffer, length, byte_type(), to, tag as c_int, self.raw) };
        check("MPI_Send", code)
    }

    /// MPI_Recv of at most `buffer.len()` bytes; a longer message is an error.
    ///
    /// # Errors
    /// The library refuses.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8], from: u32, tag: Tag) -> Result<()> {
        let (length, from) = (count(buffer.len())?, from as c_int);
        // SAFETY: the buffer has room for `length` bytes and is borrowed for the call.
        let code = unsafe {
            ffi::MPI_Recv(
                buffer.as_mut_ptr().cast(),
                length,
                byte_type(),
                from,
                tag as c_int,
                self.raw,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
        check("MPI_Recv", code)
    }

    /// Sends an empty message to one rank and receives one from another.
    ///
    /// # Errors
    /// The library refuses.
    pub fn exchange_signals(&self, to: u32, from: u32) -> Result<()> {
        let tag = Tag::Signal as c_int;
        // SAFETY: empty messages touch no buffer.
        let code = unsafe {
            ffi::MPI_Sendrecv(
                ptr::null(),
                0,
                byte_type(),
                to as c_int,
                tag,
                ptr::null_mut(),
                0,
                byte_type(),
                from as c_int,
                tag,
                self.raw,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
        check("MPI_Sendrecv", code)
    }

    /// Sends a value; for what is not timed.
    ///
    /// # Errors
    /// The library refuses.
    pub fn send_value<T: Serialize>(&self, value: &T, to: u32, tag: Tag) -> Result<()> {
        self.send(&serde_json::to_vec(value)?, to, tag)
    }

    /// Sends a value to all other ranks; for what is not timed.
    ///
    /// # Errors
    /// The library refuses.
    pub fn send_value_to_others<T: Serialize>(&self, value: &T, tag: Tag) -> Result<()> {
        let own = self.rank();
        (0..self.size())
            .filter(|rank| *rank != own)
            .try_for_each(|rank| self.send_value(value, rank, tag))
    }

    /// Receives a value, waiting inside MPI, which may spin: for a rank that is about to be timed.
    ///
    /// # Errors
    /// The library refuses; the message is not such a value.
    pub fn receive_value<T: DeserializeOwned>(&self, from: u32, tag: Tag) -> Result<T> {
        let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
        // SAFETY: `status` is written by a successful probe.
        let length = unsafe {
            let code = ffi::MPI_Probe(from as c_int, tag as c_int, self.raw, status.as_mut_ptr());
            check("MPI_Probe", code)?;
            length(status.assume_init_ref())?
        };
        self.receive_probed(length, from, tag)
    }

    /// Receives a value, sleeping until it is there.
    ///
    /// # Errors
    /// The library refuses; the message is not such a value.
    pub fn receive_value_asleep<T: DeserializeOwned>(
        &self,
        from: u32,
        tag: Tag,
        pause: PollingPause,
    ) -> Result<T> {
        loop {
            let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
            let mut there: c_int = 0;
            let (source, tag_value) = (from as c_int, tag as c_int);
            // SAFETY: outputs are locals; `status` is written where `there` is set.
            let length = unsafe {
                let code =
                    ffi::MPI_Iprobe(source, tag_value, self.raw, &mut there, status.as_mut_ptr());
                check("MPI_Iprobe", code)?;
                if there == 0 { None } else { Some(length(status.assume_init_ref())?) }
            };
            match length {
                Some(length) => return self.receive_probed(length, from, tag),
                None => pause.sleep(),
            }
        }
    }

    fn receive_probed<T: DeserializeOwned>(&self, length: usize, from: u32, tag: Tag) -> Result<T> {
        let mut bytes = vec![0; length];
        self.receive(&mut bytes, from, tag)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

impl Peers for Communicator {
    type Error = Error;

    fn rank(&self) -> u32 {
        self.rank()
    }

    fn size(&self) -> u32 {
        self.size()
    }

    #[inline]
    fn send(&self, bytes: &[u8], to: u32, tag: Tag) -> Result<()> {
        self.send(bytes, to, tag)
    }

    #[inline]
    fn receive(&self, buffer: &mut [u8], from: u32, tag: Tag) -> Result<()> {
        self.receive(buffer, from, tag)
    }

    #[inline]
    fn exchange_signals(&self, to: u32, from: u32) -> Result<()> {
        self.exchange_signals(to, from)
    }

    fn send_value<T: Serialize>(&self, value: &T, to: u32, tag: Tag) -> Result<()> {
        self.send_value(value, to, tag)
    }

    fn receive_value<T: DeserializeOwned>(&self, from: u32, tag: Tag) -> Result<T> {
        self.receive_value(from, tag)
    }

    fn wait_for<T: DeserializeOwned>(&self, from: u32, tag: Tag) -> Result<T> {
        self.receive_value_asleep(from, tag, PollingPause::for_participant())
    }
}

/// Bytes of the message that a probe found.
fn length(status: &ffi::MPI_Status) -> Result<usize> {
    let mut length: c_int = 0;
    // SAFETY: `status` was written by a probe.
    let code = unsafe { ffi::MPI_Get_count(status, byte_type(), &mut length) };
    check("MPI_Get_count", code)?;
    Ok(usize::try_from(length).unwrap_or_default())
}

/// Initialises MPI for one thread; it ends where what is given back is dropped, to which every rank
/// must come.
///
/// # Errors
/// It was initialised before.
pub fn initialize() -> Result<Universe> {
    sharpen_timers();
    let begun = mpi::initialize_with_threading(Threading::Single);
    let universe = begun.map(|(universe, _)| universe);
    universe
        .ok_or_else(|| Error::Unsupported("MPI was initialised before this program did it".into()))
}

/// Ends every rank of the job.
pub fn abort(code: u8) -> ! {
    if environment::is_initialized() && !environment::is_finalized() {
        SimpleCommunicator::world().abort(c_int::from(code))
    }
    std::process::exit(i32::from(code))
}

/// MPI_Wtime, in seconds from some instant.
pub fn wtime() -> f64 {
    mpi::time()
}
