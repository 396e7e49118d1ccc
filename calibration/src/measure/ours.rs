//! What we carry out ourselves: our algorithms, and mock-ups made of the library's collectives.

use records::{Collective, Method};
use runner::{
    Arguments, Executor,
    mockups::{self, Limits, Mockup, Mockups},
};

use crate::{Error, Result, exchange::Communicator, table};

/// A method of ours, as the runner knows it.
#[derive(Debug, Clone)]
pub enum Ours {
    /// An algorithm with its parameters.
    Algorithm(runner::Method),
    /// A composition of the library's collectives.
    Mockup(&'static Mockup),
}

impl Ours {
    /// What the runner carries out for a method; nothing where it is the library's affair.
    ///
    /// # Errors
    /// There is no such algorithm or mock-up; says what there is.
    pub fn of(collective: Collective, method: &Method) -> Result<Option<Self>> {
        match method {
            Method::Default | Method::Native(_) | Method::Plugin(_) => Ok(None),
            Method::Own { algorithm, segment_bytes } => {
                runner::Method::new(collective, *algorithm, *segment_bytes)
                    .map(|method| Some(Ours::Algorithm(method)))
                    .map_err(|error| Error::Unsupported(format!("{method}: {error}")))
            }
            Method::Mockup(name) => {
                let mockup = mockups::find(name).map_err(Error::Unsupported)?;
                if mockup.collective != collective {
                    let problem =
                        format!("{mockup} is a mock-up of {}, not {collective}", mockup.collective);
                    return Err(Error::Unsupported(problem));
                }
                Ok(Some(Ours::Mockup(mockup)))
            }
        }
    }

    /// Whether it can carry out calls of `bytes` on so many processes.
    ///
    /// # Errors
    /// It can't; says why.
    pub fn check(&self, procs: u32, bytes: u64) -> Result<()> {
        match self {
            Ours::Algorithm(method) => method
                .check_ranks(procs)
                .map_err(|error| Error::Unsupported(format!("{method}: {error}"))),
            // The preload library's limits, so that what is timed can be taken there.
            Ours::Mockup(mockup) => Limits::default()
                .allow(mockup, procs, bytes)
                .map_err(|error| Error::Unsupported(error.to_string())),
        }
    }
}

/// Carries them out; keeps its memory from call to call.
#[derive(Debug)]
pub struct Carrier {
    executor: Executor,
    mockups: Mockups,
}

impl Carrier {
    /// On the linked MPI library; once per process.
    ///
    /// # Errors
    /// The library refuses; there is no memory.
    pub fn start() -> Result<Self> {
        let session = table::session()?;
        let mockups = Mockups::new(session, Limits::default())?;
        Ok(Carrier { executor: Executor::new(session), mockups })
    }

    /// Carries out a call; before, [`forget`](Self::forget) makes sure that
    /// [`ran`](Self::ran) tells of this one.
    ///
    /// # Safety
    /// The arguments must be as MPI demands, on all ranks of `comm`, which must all call it with
    /// the same method.
    ///
    /// # Errors
    /// The runner or the library refuses.
    pub unsafe fn run(
        &mut self,
        ours: &Ours,
        arguments: &Arguments,
        comm: &Communicator,
    ) -> Result<()> {
        let comm = comm.raw().0 as usize;
        // SAFETY: the caller vouches for it.
        unsafe {
            match ours {
                Ours::Algorithm(method) => self.executor.run(method, arguments, comm)?,
                Ours::Mockup(mockup) => self.mockups.run(mockup, arguments, comm)?,
            }
        }
        Ok(())
    }

    /// Forgets what the executor ran.
    pub fn forget(&mut self) {
        self.executor.forget();
    }

    /// What the last call of a method was carried out by.
    pub fn ran(&self, ours: &Ours) -> Option<String> {
        match ours {
            Ours::Algorithm(_) => self.executor.ran().map(ToString::to_string),
            Ours::Mockup(mockup) => Some(mockup.to_string()),
        }
    }
}
