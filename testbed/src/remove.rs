//! Removing a testbed, or what is left of one.

use std::fs;

use crate::{
    TestbedError, processes, spec, state, status, switch_process,
    system::{self, SystemStep, Tools},
};

/// What [`down`] found and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// Processes that were ended.
    pub processes: usize,
    /// Namespaces, with the links in them.
    pub namespaces: usize,
    /// Whether there was a state directory.
    pub directory: bool,
}

impl Removed {
    /// There was no testbed of that name, nor anything left of one.
    pub fn is_nothing(&self) -> bool {
        self.processes == 0 && self.namespaces == 0 && !self.directory
    }
}

/// Removes a testbed: ends every process in it (by SIGTERM, then SIGKILL), removes its namespaces and
/// its state directory with MPI's session directories.
///
/// Works as well on what a killed run left behind, whatever part of it is gone; that there is nothing
/// to remove is no error.
///
/// # Errors
/// Not root; a process that survives; a namespace that cannot be removed; being called from inside
/// the testbed.
pub fn down(name: &str) -> Result<Removed, TestbedError> {
    spec::check_name(name)?;
    system::require_root()?;
    let tools = Tools::find()?;
    // Last of the processes: the others may have something to say to each other before they end.
    let processes = end_processes(name)? + switch_process::end(name)?;
    let namespaces = status::namespaces_of(name)?;
    for namespace in &namespaces {
        let doing = &*format!("remove the network namespace {namespace}");
        SystemStep { doing, needs: "" }.run(&tools.ip, ["netns", "delete", namespace])?;
    }
    remove_shared_memory(name);
    // Last: as long as anything is left, the directory tells of it.
    let directory = state::remove(name)?;
    Ok(Removed { processes, namespaces: namespaces.len(), directory })
}

/// Ends every process of the testbed; tells how many there were.
pub(crate) fn end_processes(name: &str) -> Result<usize, TestbedError> {
    let places = status::places_of(name)?;
    processes::end(name, || processes::of_testbed(name, &places))
}

/// Killed ranks of one node leave behind the segments that they shared. Open MPI names them after the
/// host: `vader_segment.HOST.USER...` (4), `sm_segment.HOST.USER...` (5).
fn remove_shared_memory(name: &str) {
    let Ok(entries) = fs::read_dir("/dev/shm") else { return };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let host = file.to_str().and_then(|file| {
            let rest = ["vader_segment.", "sm_segment."].iter().find_map(|p| file.strip_prefix(p));
            rest?.split('.').next()
        });
        let ours = host.and_then(|host| {
            // A host is a namespace without the common prefix.
            let namespace = format!("{}{host}", spec::PREFIX);
            spec::of_namespace(&namespace).map(|(testbed, _)| testbed == name)
        });
        if ours == Some(true) {
            // A file that another process removed meanwhile is gone as well.
            let _ = fs::remove_file(entry.path());
        }
    }
}
