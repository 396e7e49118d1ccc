//! Carries out calls by our methods, one at a time.

use runner::{
    Arguments, Executor, Handle, Result, Runnable, Session,
    mockups::{Limits, Mockups},
};

/// Keeps memory from call to call.
pub struct Worker {
    session: &'static Session,
    limits: Limits,
    executor: Executor,
    /// Made when first needed.
    mockups: Option<Mockups>,
}

impl Worker {
    /// `memory_bytes`: the limit to what a call may use for data, if the user has set one.
    pub fn new(session: &'static Session, memory_bytes: Option<u64>) -> Self {
        let (mut limits, mut executor) = (Limits::default(), Executor::new(session));
        if let Some(bytes) = memory_bytes {
            limits.message_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            executor = executor.with_scratch_limit(bytes);
        }
        Worker { session, limits, executor, mockups: None }
    }

    /// # Safety
    /// The arguments must be an application's, on all ranks of `comm`, and these must all have the
    /// same method and limits.
    ///
    /// # Errors
    /// `Refused` and `Invalid` come before anything was sent.
    pub unsafe fn carry_out(
        &mut self,
        method: &Runnable,
        arguments: &Arguments,
        comm: Handle,
    ) -> Result<()> {
        // SAFETY: the caller vouches for the arguments.
        unsafe {
            match method {
                Runnable::Algorithm(method) => self.executor.run(method, arguments, comm),
                Runnable::Mockup(mockup) => {
                    if self.mockups.is_none() {
                        self.mockups = Some(Mockups::new(self.session, self.limits)?);
                    }
                    match &mut self.mockups {
                        Some(mockups) => mockups.run(mockup, arguments, comm),
                        None => unreachable!("made above"),
                    }
                }
            }
        }
    }
}
