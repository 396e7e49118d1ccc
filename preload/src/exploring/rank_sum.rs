//! Sums over the ranks of a communicator, beside the application's calls: by a nonblocking reduction, so that nobody
//! waits where it begins.

use std::ffi::{c_int, c_void};

use runner::Handle;

use crate::job::JobContext;

/// A sum over the ranks of one communicator, under way or ended.
#[derive(Debug, Default)]
pub struct RankSum {
    request: Option<Handle>,
    /// The library reads and writes these until the request has ended, so that nobody touches them before.
    own: Box<[f64]>,
    sums: Box<[f64]>,
    /// What has ended before it was asked for.
    ended: Option<Vec<f64>>,
}

impl RankSum {
    /// Begins to sum numbers. A sum that is under way is an error of ours, and is let end first.
    ///
    /// # Safety
    /// All ranks of the live communicator `ours` must begin the same sum, of as many numbers.
    pub unsafe fn begin(&mut self, job: &JobContext, ours: Handle, numbers: Vec<f64>) {
        // SAFETY: what is under way is under way on all ranks (contract of this function).
        unsafe { self.finish(job) };
        self.sums = vec![0.0; numbers.len()].into();
        self.own = numbers.into();
        let (mpi, count) = (job.library, c_int::try_from(self.own.len()).unwrap_or(0));
        let mut request = 0;
        // SAFETY: both buffers hold so many doubles, and live until `finish`; the communicator is live, and all its
        // ranks are here (contract of this function).
        let code = unsafe {
            (mpi.iallreduce)(
                self.own.as_ptr().cast(),
                self.sums.as_mut_ptr().cast(),
                count,
                mpi.constants.double,
                mpi.constants.sum,
                ours,
                &mut request,
            )
        };
        self.request = (code == 0).then_some(request);
    }

    /// Waits for the sums; nothing where none are under way, or MPI has failed.
    ///
    /// # Safety
    /// MPI must be initialised, and the communicator live; all ranks have begun.
    pub unsafe fn finish(&mut self, job: &JobContext) -> Option<Vec<f64>> {
        // SAFETY: as this function's contract says.
        unsafe { self.wait(job) };
        self.take_ended()
    }

    /// Lets what is under way end, and keeps the sums until they are asked for.
    ///
    /// # Safety
    /// As [`Self::finish`].
    pub unsafe fn wait(&mut self, job: &JobContext) {
        let Some(mut request) = self.request.take() else { return };
        let status = job.library.constants.status_ignore as *mut c_void;
        // SAFETY: the request is of `begin`, and waited for once.
        let code = unsafe { (job.library.wait)(&mut request, status) };
        self.ended = (code == 0).then(|| std::mem::take(&mut self.sums).into());
    }

    /// The sums that nobody has asked for.
    pub fn take_ended(&mut self) -> Option<Vec<f64>> {
        self.ended.take()
    }
}
