//! The two small shell scripts of a testbed: `enter` runs a command in a place, `agent` is what Open
//! MPI calls in the place of ssh.
//!
//! They are run as `/bin/sh SCRIPT`, since `/run` is commonly mounted so that nothing in it may be
//! executed.

use std::path::{Path, PathBuf};

use records::document;

use crate::{
    TestbedError,
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

pub(crate) fn write(name: &str, tools: &Tools) -> Result<(), TestbedError> {
    document::write_text(&enter_path(name), &enter(name, tools))?;
    document::write_text(&agent_path(name), &agent(name))?;
    Ok(())
}

fn enter(name: &str, tools: &Tools) -> String {
    let (nsenter, unshare) = (quoted(&tools.nsenter), quoted(&tools.unshare));
    let host = spec::host(name, "$place");
    let set_host = r#"'echo "$0" > /proc/sys/kernel/hostname && exec "$@"'"#;
    format!(
        "#!/bin/sh\n\
         # enter PLACE COMMAND...: runs the command in a node (n0, n1, ...) or in the head.\n\
         place=$1\n\
         shift\n\
         export {MARKER}={name}\n\
         exec {nsenter} --net={NAMESPACES}/{PREFIX}{name}-\"$place\" -- {unshare} --uts -- \\\n\
         \x20   /bin/sh -c {set_host} \"{host}\" \"$@\"\n"
    )
}

fn agent(name: &str) -> String {
    format!(
        "#!/bin/sh\n\
         # agent HOST COMMAND...: as ssh does, hands the words, joined by blanks, to a shell there.\n\
         host=$1\n\
         shift\n\
         exec /bin/sh {} \"${{host#{name}-}}\" /bin/sh -c \"$*\"\n",
        quoted(&enter_path(name))
    )
}

/// A path as one word of the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
