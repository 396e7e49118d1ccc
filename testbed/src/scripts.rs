//! The small shell scripts of a testbed: `enter` runs a command in a place, `agent` is what launchers
//! call in the place of ssh, `rank` runs a rank's program where ranks have a network of their own.
//!
//! They are run as `/bin/sh SCRIPT`, since `/run` is commonly mounted so that nothing in it may be
//! executed.

use std::path::{Path, PathBuf};

use records::document;

use crate::{
    NETWORK, Spec, TestbedError,
    spec::{self, PREFIX},
    state,
    system::{NAMESPACES, Tools},
};

/// In the environment of every process that was started in a testbed: its name. By this a process is
/// found even when its namespace has lost its name.
pub(crate) const MARKER: &str = "COLIBRI_TESTBED";

pub(crate) fn enter_path(name: &str) -> PathBuf {
    state::directory(name).join("enter")
}

pub(crate) fn agent_path(name: &str) -> PathBuf {
    state::directory(name).join("agent")
}

pub(crate) fn rank_path(name: &str) -> PathBuf {
    state::directory(name).join("rank")
}

pub(crate) fn write(spec: &Spec, tools: &Tools) -> Result<(), TestbedError> {
    let name = &spec.name;
    document::write_text(&enter_path(name), &enter(name, tools))?;
    document::write_text(&agent_path(name), &agent(spec))?;
    if spec.has_inside() {
        document::write_text(&rank_path(name), &rank(tools))?;
    }
    Ok(())
}

/// The mode of its security that PMIx needs no service for: of one that it finds left over on the host (munge's) each
/// daemon waits seconds for an answer.
fn enter(name: &str, tools: &Tools) -> String {
    let (nsenter, unshare) = (quoted(&tools.nsenter), quoted(&tools.unshare));
    let host = spec::host(name, "$place");
    let set_host = r#"'echo "$0" > /proc/sys/kernel/hostname && exec "$@"'"#;
    format!(
        "#!/bin/sh\n\
         # enter PLACE COMMAND...: runs the command in a node (n0, n1, ...) or in the head.\n\
         place=$1\n\
         shift\n\
         export {MARKER}={name} PMIX_MCA_psec=native\n\
         exec {nsenter} --net={NAMESPACES}/{PREFIX}{name}-\"$place\" -- {unshare} --uts -- \\\n\
         \x20   /bin/sh -c {set_host} \"{host}\" \"$@\"\n"
    )
}

/// Where ranks have networks of their own, a node's daemon must listen to them by its address, not by
/// its loopback, in which they are not: PMIx takes the network that it is told.
fn agent(spec: &Spec) -> String {
    let name = &spec.name;
    let listen = match spec.has_inside() {
        true => format!("export PMIX_MCA_ptl_base_if_include={NETWORK}\n"),
        false => String::new(),
    };
    format!(
        "#!/bin/sh\n\
         # agent [OPTIONS] HOST COMMAND...: as ssh does, hands the words, joined by blanks, to a shell there.\n\
         while :; do case $1 in -*) shift ;; *) break ;; esac; done\n\
         host=$1\n\
         shift\n\
         {listen}\
         exec /bin/sh {} \"${{host#{name}-}}\" /bin/sh -c \"$*\"\n",
        quoted(&enter_path(name))
    )
}

/// The host name stays the node's: only the network is another.
fn rank(tools: &Tools) -> String {
    let nsenter = quoted(&tools.nsenter);
    format!(
        "#!/bin/sh\n\
         # rank COMMAND...: runs the command in the network of the rank that this is started as.\n\
         read -r host < /proc/sys/kernel/hostname\n\
         local=${{OMPI_COMM_WORLD_LOCAL_RANK:-${{MPI_LOCALRANKID:-$SLURM_LOCALID}}}}\n\
         exec {nsenter} --net={NAMESPACES}/{PREFIX}\"${{host}}r$local\" -- \"$@\"\n"
    )
}

/// A path as one word of the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
