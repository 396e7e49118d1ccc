//! What is done when MPI begins and when it ends.

use std::env;

use crate::{
    communicators, gpu,
    job::JobContext,
    report,
    roll_call::{self, Roll},
    say::{say, wait_until_read},
    settings::SettingFault,
};

const ON_GPU: &str = "a GPU's runtime is loaded (CUDA, HIP or Level Zero), so every call is left \
                      to the MPI library; COLIBRI_GPU=host says that all buffers are in the host's \
                      memory";

/// After `MPI_Init`.
///
/// # Safety
/// MPI must have just been initialised by this thread; all processes of the world must do this.
pub unsafe fn begin() {
    let (job, fault) = match JobContext::open() {
        Ok(opened) => opened,
        Err(why) => {
            if is_first_by_launcher() {
                say(&format!("{why}; the application runs untuned"));
            }
            return;
        }
    };
    // SAFETY: MPI has just been initialised.
    if let Roll::NotFull(reason) = unsafe { roll_call::call(job.library) } {
        if let Some(why) = reason {
            say(&format!("{why}; the application runs untuned"));
        }
        // SAFETY: it has not been used.
        unsafe { job.free() };
        return;
    }
    let job = job.enter();
    // SAFETY: all processes of the world are here.
    unsafe {
        let world = job.library.constants.world;
        communicators::open(job);
        let is_first = communicators::init_world(world);
        roll_call::over(job.library);
        let Some(first) = is_first else {
            communicators::leave_alone(job);
            return;
        };
        if job.is_watched() || job.exploring.is_some() {
            report::prepare(job);
        }
        if let (Some(exploring), Some(comm)) = (&job.exploring, job.gathering.get())
            && !gpu::is_agreed()
        {
            exploring.begin(job, *comm, first);
            communicators::explore(job, world);
        }
        match fault {
            Some(SettingFault::Untuned(why)) if first => {
                say(&format!("{why}; the application runs untuned"));
            }
            Some(SettingFault::Fatal(why)) => {
                if first {
                    say(&why);
                    wait_until_read();
                    (job.library.abort)(world, 2);
                }
                // The first process ends the job.
                (job.library.barrier)(world);
            }
            _ if first => {
                job.settings.warnings.iter().for_each(|warning| say(warning));
                report::warn(job);
                if gpu::is_agreed() {
                    say(ON_GPU);
                }
            }
            _ => {}
        }
        if !job.has_anything_to_do() {
            communicators::leave_alone(job);
        }
    }
}

/// Before `MPI_Finalize`.
///
/// # Safety
/// MPI must be initialised and not finalised; all processes of the world must do this.
pub unsafe fn end() {
    let Some(job) = JobContext::current() else { return };
    // SAFETY: as above; after this no call comes here any more.
    unsafe {
        communicators::finish_agreements(job);
        if let Some(comm) = job.gathering.get() {
            report::gather(job, *comm);
        }
        communicators::close(job);
        job.free();
    }
    JobContext::leave();
}

/// Whether the launcher calls this process the first; for what goes wrong before MPI can be asked.
fn is_first_by_launcher() -> bool {
    let ranks = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];
    ranks.into_iter().find_map(|name| env::var(name).ok()).is_none_or(|rank| rank == "0")
}
