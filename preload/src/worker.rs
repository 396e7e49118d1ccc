//! Carries out calls by our methods, one at a time.

use runner::{
    Arguments, Executor, Handle, Result, Runnable, Session,
    mockups::{Limits, Mockups},
};

use crate::settings::PreloadSettings;

/// Keeps memory from call to call.
pub struct Worker {
    session: &'static Session,
    limits: Limits,
    executor: Executor,
    /// Made when first needed.
    mockups: Option<Mockups>,
}

impl Worker {
    /// With the limits that the user has set.
    pub fn new(session: &'static Session, settings: &PreloadSettings) -> Self {
        let (limits, mut executor) = (settings.limits(), Executor::new(session));
        if let Some(bytes) = settings.memory_bytes {
            executor = executor.with_scratch_limit(bytes);
        }
        Worker { session, limits, executor, mockups: None }
    }

    /// # Safety
    /// The arguments must fulfil the call's contract (see [`Arguments`]) on `comm`, and all ranks must have the
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
        // SAFETY: executor and mock-ups rely on the call's contract, on one method and on one limit, which are
        // this function's contract.
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
