//! What all processes have done, for the user.

use std::{
    collections::BTreeSet,
    ffi::c_int,
    io::Write,
    ptr,
    sync::atomic::{AtomicBool, Ordering},
};

use records::{
    Method,
    usage::{Calls, Usage as Document},
};
use runner::{Handle, function_name, mockups::Limits};

use crate::{job::JobContext, say::say, trace};

/// Makes the communicator on which [`gather`] will be: on the application's, a message that it left behind
/// would be taken for ours. It is made while there is none yet.
///
/// # Safety
/// MPI must be initialised; all processes of the world must do this.
pub unsafe fn prepare(job: &JobContext) {
    let (mpi, world) = (job.library, job.library.constants.world);
    let mut comm: Handle = 0;
    // SAFETY: the world is MPI's own; the handle is written to a local.
    unsafe {
        if (mpi.comm_split)(world, 0, 0, &mut comm) == 0
            && (mpi.comm_set_errhandler)(comm, mpi.constants.errors_return) == 0
        {
            let _ = job.gathering.set(comm);
        }
    }
}

/// Brings what all processes have done to the first, which writes it.
///
/// # Safety
/// `comm` must be what [`prepare`] has made, which ends here; all processes of the world must do this.
pub unsafe fn gather(job: &JobContext, mut comm: Handle) {
    // SAFETY: `comm` is what `prepare` made, all its processes are here, and nobody uses it any more (contract
    // of this function).
    unsafe {
        let own = serde_json::to_vec(&job.usage.calls()).unwrap_or_default();
        if job.is_watched()
            && let Some(all) = bring_to_first(job, comm, &own)
        {
            write(job, all.len() as u32, all.iter().flat_map(|text| parse(text)));
        }
        if let Some(exploring) = &job.exploring {
            exploring.finish(job, comm);
        }
        (job.library.comm_free)(&mut comm);
    }
}

/// What every rank has, on rank 0, by rank; nothing on the others, and where MPI fails.
///
/// # Safety
/// `comm` must be a live communicator of ours, all of whose ranks do this.
pub unsafe fn bring_to_first(job: &JobContext, comm: Handle, own: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mpi = job.library;
    let (mut rank, mut size) = (0, 0);
    // SAFETY: the buffers hold as many bytes as is said; all processes are here.
    unsafe {
        if (mpi.comm_rank)(comm, &mut rank) | (mpi.comm_size)(comm, &mut size) != 0 {
            return None;
        }
        let is_first = rank == 0;
        let number = |count: usize| c_int::try_from(count).unwrap_or(c_int::MAX);
        let length = number(own.len());
        let mut lengths: Vec<c_int> = vec![0; if is_first { size as usize } else { 0 }];
        let bytes = size_of::<c_int>() as c_int;
        let (from, into) = (ptr::from_ref(&length).cast(), lengths.as_mut_ptr().cast());
        let byte = mpi.constants.byte;
        if (mpi.gather)(from, bytes, byte, into, bytes, byte, 0, comm) != 0 {
            return None;
        }
        let mut places = Vec::new();
        let mut end = 0_usize;
        for length in &lengths {
            places.push(number(end));
            end += *length as usize;
        }
        let mut all = vec![0_u8; end];
        let code = (mpi.gatherv)(
            own.as_ptr().cast(),
            length,
            byte,
            all.as_mut_ptr().cast(),
            lengths.as_ptr(),
            places.as_ptr(),
            byte,
            0,
            comm,
        );
        (code == 0 && is_first).then(|| {
            let ranks = places.iter().zip(&lengths).map(|(place, length)| {
                let place = *place as usize;
                all.get(place..place + *length as usize).unwrap_or_default().to_vec()
            });
            ranks.collect()
        })
    }
}

pub(crate) fn parse(text: &[u8]) -> Vec<Calls> {
    serde_json::from_slice(text).unwrap_or_default()
}

/// Whether the user has been warned that there will be no trace.
static WARNED: AtomicBool = AtomicBool::new(false);

/// Says before the application runs that its trace can't be written where it is wanted.
pub fn warn(job: &JobContext) {
    let Some(path) = &job.settings.trace else { return };
    if let Err(why) = trace::place(path) {
        WARNED.store(true, Ordering::Relaxed);
        say(&why);
    }
}

/// In the file, and as PGMPITuneLib's lines.
fn write(job: &JobContext, procs: u32, calls: impl Iterator<Item = Calls>) {
    let library = job.library.constants.family.to_string();
    let seconds = job.started.elapsed().as_secs_f64();
    let document = Document::of_all_ranks(procs, library, seconds, calls);
    if let Some(path) = &job.settings.trace {
        match trace::write(path, &document) {
            Ok(None) => {}
            Ok(Some(line)) => say(&line),
            Err(why) if WARNED.load(Ordering::Relaxed) => drop(why),
            Err(why) => say(&why),
        }
    }
    if job.settings.footer {
        // Sizes of communicators are not distinguished there.
        let mut lines = BTreeSet::new();
        for call in &document.calls {
            let method = match &call.method {
                Method::Mockup(name) => name.clone(),
                method => method.to_string(),
            };
            let name = function_name(call.point.collective);
            lines.insert((name, call.point.bytes, method));
        }
        let mut text = String::new();
        for (name, bytes, method) in lines {
            text.push_str(&format!("#@pgmpi alg {name} {bytes} {method}\n"));
        }
        let Limits { message_bytes, integer_bytes } = job.settings.limits();
        text.push_str(&format!("#@pgmpi config size_msg_buffer_bytes {message_bytes}\n"));
        text.push_str(&format!("#@pgmpi config size_int_buffer_bytes {integer_bytes}\n"));
        let mut out = std::io::stdout();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}
