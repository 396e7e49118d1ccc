//! Carries out our algorithms, and mock-ups made of the library's collectives.

use std::sync::Arc;

use crate::{
    Arguments, Executor, Handle, MemoryProgram, Result, Runnable, Session,
    mockups::{Limits, Mockups},
};

/// Carries out methods of ours, one at a time; keeps its memory from call to call.
#[derive(Debug)]
pub struct MethodRunner {
    executor: Executor,
    mockups: Mockups,
}

impl MethodRunner {
    /// In a session of this process, with this memory for mock-ups.
    pub fn new(session: &'static Session, limits: Limits) -> Self {
        let mockups = Mockups::new(session, limits);
        MethodRunner { executor: Executor::new(session), mockups }
    }

    /// See [`Executor::with_scratch_limit`].
    #[must_use]
    pub fn with_scratch_limit(self, bytes: u64) -> Self {
        MethodRunner { executor: self.executor.with_scratch_limit(bytes), ..self }
    }

    /// Gives up what is kept of communicators that have been freed.
    pub fn forget_freed_communicators(&mut self) {
        self.executor.forget_freed_communicators();
    }

    /// Carries out a call.
    ///
    /// # Safety
    /// The arguments must fulfil the call's contract (see [`Arguments`]) on `comm`, with handles of the
    /// session's library, and all ranks must call this with the same method and limits.
    ///
    /// # Errors
    /// As [`Executor::run`] and [`Mockups::run`].
    pub unsafe fn run(
        &mut self,
        method: &Runnable,
        arguments: &Arguments,
        comm: Handle,
    ) -> Result<()> {
        // SAFETY: executor and mock-ups rely on the call's contract, on one method and on one limit, which are
        // this function's contract.
        unsafe {
            match method {
                Runnable::Algorithm(method) => self.executor.run(method, arguments, comm),
                Runnable::Mockup(mockup) => self.mockups.run(mockup, arguments, comm),
            }
        }
    }

    /// The memory that mock-ups may use.
    pub fn limits(&self) -> Limits {
        self.mockups.limits()
    }

    /// See [`Executor::memory_program`]; of a mock-up there is none.
    pub fn memory_program(&self, method: &Runnable) -> Option<&Arc<MemoryProgram>> {
        match method {
            Runnable::Algorithm(_) => self.executor.memory_program(),
            Runnable::Mockup(_) => None,
        }
    }

    /// What the last call of a method was carried out by.
    pub fn ran(&self, method: &Runnable) -> Option<String> {
        match method {
            Runnable::Algorithm(_) => self.executor.ran().map(ToString::to_string),
            Runnable::Mockup(mockup) => Some(mockup.to_string()),
        }
    }
}
