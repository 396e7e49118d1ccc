//! Carries out our algorithms, and mock-ups made of the library's collectives.

use runner::{
    Arguments, Executor, Handle, Runnable, Session,
    mockups::{Limits, Mockups},
};

use crate::Result;

/// Carries out methods of ours; keeps its memory from call to call.
#[derive(Debug)]
pub struct MethodRunner {
    executor: Executor,
    mockups: Mockups,
    limits: Limits,
}

impl MethodRunner {
    /// On the session's MPI library, with the memory for mock-ups that the environment grants.
    ///
    /// # Errors
    /// The environment's limits are none; the library refuses; there is no memory.
    pub fn start(session: &'static Session) -> Result<Self> {
        let limits = Limits::of_environment()?;
        let mockups = Mockups::new(session, limits)?;
        Ok(MethodRunner { executor: Executor::new(session), mockups, limits })
    }

    /// Carries out a call; before, [`forget`](Self::forget) makes sure that
    /// [`ran`](Self::ran) tells of this one.
    ///
    /// # Safety
    /// The arguments must fulfil the call's contract (see [`Arguments`]) on `comm`, with handles of the
    /// session's library, and all ranks must call this with the same method.
    ///
    /// # Errors
    /// The runner or the library refuses.
    pub unsafe fn run(
        &mut self,
        ours: &Runnable,
        arguments: &Arguments,
        comm: Handle,
    ) -> Result<()> {
        // SAFETY: executor and mock-ups rely on the call's contract and on one method on all ranks, which are
        // this function's contract.
        unsafe {
            match ours {
                Runnable::Algorithm(method) => self.executor.run(method, arguments, comm)?,
                Runnable::Mockup(mockup) => self.mockups.run(mockup, arguments, comm)?,
            }
        }
        Ok(())
    }

    /// The memory that mock-ups may use.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Forgets what the executor ran.
    pub fn forget(&mut self) {
        self.executor.forget();
    }

    /// What the last call of a method was carried out by.
    pub fn ran(&self, ours: &Runnable) -> Option<String> {
        match ours {
            Runnable::Algorithm(_) => self.executor.ran().map(ToString::to_string),
            Runnable::Mockup(mockup) => Some(mockup.to_string()),
        }
    }
}
