//! What a testbed leaves in `/run/colibri/NAME`: `state.json`, its scripts, its temporary files.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use records::{
    FileError,
    document::{self, Document},
};
use serde::{Deserialize, Serialize};

use crate::{Spec, TestbedError, spec};

/// Where every testbed has a directory of its name; only root may look into it.
pub const STATE_DIRECTORY: &str = "/run/colibri";

/// How far a testbed has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It is being made, or its making was interrupted.
    Making,
    /// It is complete.
    Standing,
}

/// The content of `state.json`. It is written before the first namespace is made, and the names of
/// all resources follow from it: what an interrupted run left behind is always a part of what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    #[serde(flatten)]
    pub spec: Spec,
    pub burst_bytes: u64,
    pub phase: Phase,
    pub namespaces: Vec<String>,
}

impl State {
    pub fn new(spec: &Spec, phase: Phase) -> State {
        let namespaces = spec.places().map(|place| spec::namespace(&spec.name, &place)).collect();
        State {
            spec: spec.clone(),
            burst_bytes: spec.slowed(spec.rate).burst_bytes(),
            phase,
            namespaces,
        }
    }
}

impl Document for State {
    const SCHEMA: &'static str = "colibri/testbed/1";

    fn validate(&self) -> Result<(), (String, String)> {
        self.spec
            .check()
            .map_err(|error| ("name, nodes, rate, ranks_per_node".into(), error.to_string()))
    }
}

pub(crate) fn directory(name: &str) -> PathBuf {
    Path::new(STATE_DIRECTORY).join(name)
}

/// For sockets, session directories and whatever else MPI puts into a temporary directory.
pub(crate) fn temporary_directory(name: &str) -> PathBuf {
    directory(name).join("tmp")
}

fn file(name: &str) -> PathBuf {
    directory(name).join("state.json")
}

/// Makes the directory. That it can be made only once is what keeps two of one name apart.
pub(crate) fn claim(name: &str) -> Result<(), TestbedError> {
    let directory = directory(name);
    let made = make_private(&directory).or_else(|error| match error.kind() {
        // The last testbed's removal may have taken the common directory along just now.
        io::ErrorKind::NotFound => make_private(&directory),
        _ => Err(error),
    });
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            TestbedError::Exists { name: name.into(), what: directory.display().to_string() }
        }
        _ => FileError::io(&directory, "make the directory", &error).into(),
    })
}

fn make_private(directory: &Path) -> io::Result<()> {
    let private = |recursive| {
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700).recursive(recursive);
        builder
    };
    private(true).create(STATE_DIRECTORY)?;
    private(false).create(directory)
}

pub(crate) fn make_temporary_directory(name: &str) -> Result<(), TestbedError> {
    let temporary = temporary_directory(name);
    make_private(&temporary)
        .map_err(|error| FileError::io(&temporary, "make the directory", &error).into())
}

pub(crate) fn write(state: &State) -> Result<(), TestbedError> {
    Ok(document::write(&file(&state.spec.name), state)?)
}

pub(crate) fn read(name: &str) -> Result<State, TestbedError> {
    spec::check_name(name)?;
    let file = file(name);
    match file.exists() {
        true => Ok(document::read(&file)?),
        false if directory(name).exists() => Err(TestbedError::Incomplete { name: name.into() }),
        false => Err(TestbedError::Missing { name: name.into() }),
    }
}

/// Every name that has a directory.
pub(crate) fn names() -> Result<Vec<String>, TestbedError> {
    let root = Path::new(STATE_DIRECTORY);
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FileError::io(root, "list the directory", &error).into()),
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| spec::check_name(name).is_ok()).collect())
}

/// Removes the directory; tells whether there was one.
pub(crate) fn remove(name: &str) -> Result<bool, TestbedError> {
    let directory = directory(name);
    match fs::remove_dir_all(&directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(FileError::io(&directory, "remove the directory", &error).into()),
    }
    // The last one takes the common directory along; while another stands this is refused.
    let _ = fs::remove_dir(STATE_DIRECTORY);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_back_and_names_its_units() {
        let spec = Spec::new("a", 2, "100mbit".parse().unwrap()).unwrap();
        let state = State::new(&spec, Phase::Making);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        document::write(&path, &state).unwrap();
        assert_eq!(document::read::<State>(&path).unwrap(), state);
        let json: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(json["schema"], "colibri/testbed/1");
        assert_eq!(json["rate_bits_per_second"], 100_000_000);
        assert_eq!(json["burst_bytes"], 2014);
        assert_eq!(json["namespaces"][2], "colibri-a-n1");
    }

    #[test]
    fn a_state_that_no_testbed_can_have_is_refused() {
        let text = r#"{"schema":"colibri/testbed/1","name":"a","nodes":0,"ranks_per_node":1,
            "rate_bits_per_second":100000000,"burst_bytes":1600,"phase":"making","namespaces":[]}"#;
        let error = document::parse::<State>(text, Path::new("state.json")).unwrap_err();
        assert!(error.to_string().contains("0 nodes"), "{error}");
    }
}
