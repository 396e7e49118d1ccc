//! The tuning file that a build of MPICH carries within its library.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use memchr::memmem;
use records::reading;
use serde_json::{Map, Value};

use crate::error::{Error, Result, fail, usage};

/// Names of the library: Debian's, and that of builds by hand and of PyPI.
const NAMES: [&str; 2] = ["libmpich.so.12", "libmpi.so.12"];

/// How the text begins in the library.
const BEGINNING: &[u8] = b"{\"collective=";

/// What a version chooses by itself.
pub struct BuiltIn {
    /// Algorithms of collectives.
    pub algorithms: Map<String, Value>,
    /// What the device makes of them, which comes before: whether a collective goes through the shared
    /// memory of nodes and among their first ranks, or straight to the algorithms. An older device has
    /// none.
    pub compositions: Option<Map<String, Value>>,
}

/// What a version chooses by itself: from `library`, or from the first one of that version beside
/// an `mpirun` on PATH or where the system keeps its libraries.
///
/// # Errors
/// There is none, or it holds no such text.
pub fn defaults(version: (u32, u32), library: Option<&Path>) -> Result<BuiltIn> {
    let (major, minor) = version;
    if let Some(path) = library {
        let bytes = reading::bytes(path)
            .map_err(|error| Error::Failed(format!("cannot read {}: {error}", path.display())))?;
        if !is_version(&bytes, version) {
            usage!("{} is not a library of MPICH {major}.{minor}", path.display());
        }
        return within(&bytes).map_err(|error| {
            Error::Failed(format!("{} holds no tuning of collectives: {error}", path.display()))
        });
    }
    let candidates = candidates();
    for path in &candidates {
        let Ok(bytes) = reading::bytes(path) else { continue };
        if let (true, Ok(tree)) = (is_version(&bytes, version), within(&bytes)) {
            return Ok(tree);
        }
    }
    let searched: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
    usage!(
        "MPICH's tuning file is made from its library's, but no library of MPICH {major}.{minor} \
         was found ({}); name it by --target-library, such as .../lib/libmpi.so.12",
        if searched.is_empty() { "there is no MPICH here".into() } else { searched.join(", ") }
    );
}

/// Whether the library says of itself that it is this version: a text such as `4.0.2`.
fn is_version(library: &[u8], (major, minor): (u32, u32)) -> bool {
    let beginning = format!("\0{major}.{minor}");
    memmem::find_iter(library, beginning.as_bytes()).any(|place| {
        let rest = &library[place + beginning.len()..];
        let rest = &rest[..rest.iter().take(16).position(|&byte| byte == 0).unwrap_or(0)];
        let ends = library.get(place + beginning.len()) == Some(&0);
        ends || (rest.first() == Some(&b'.') && rest.get(1).is_some_and(u8::is_ascii_digit))
            || rest.first().is_some_and(|byte| b"abr".contains(byte))
    })
}

/// The largest of the tunings in a library names algorithms; of the device's the one that names
/// compositions.
fn within(library: &[u8]) -> Result<BuiltIn> {
    let texts = memmem::find_iter(library, BEGINNING).filter_map(|place| {
        let rest = &library[place..];
        let text = &rest[..memchr::memchr(0, rest)?];
        let composes = memmem::find(text, b"\"composition=").is_some();
        Some((composes, serde_json::from_slice::<Map<String, Value>>(text).ok()?))
    });
    let (of_device, of_library): (Vec<_>, Vec<_>) = texts.partition(|(composes, _)| *composes);
    let largest = |of: Vec<(bool, Map<String, Value>)>| {
        of.into_iter().map(|(_, tree)| tree).max_by_key(Map::len)
    };
    let Some(algorithms) = largest(of_library) else {
        fail!("no text that begins with {}", String::from_utf8_lossy(BEGINNING));
    };
    Ok(BuiltIn { algorithms, compositions: largest(of_device) })
}

fn candidates() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let beside = env::split_paths(&path)
        .filter(|directory| directory.join("mpirun").is_file())
        .map(|directory| directory.join("../lib"));
    let library_path = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let directories = beside.chain(env::split_paths(&library_path));
    let named = directories.flat_map(|directory| NAMES.map(|name| directory.join(name)));
    let mut found: Vec<PathBuf> =
        named.chain(of_the_system()).filter(|path| path.is_file()).collect();
    found.dedup();
    found
}

/// What the system's linker knows.
fn of_the_system() -> Vec<PathBuf> {
    let known = Command::new("ldconfig").arg("-p").output();
    let known = known.or_else(|_| Command::new("/sbin/ldconfig").arg("-p").output());
    let text = known.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.trim().split_once(" => "));
    let ours = lines.filter(|(name, _)| NAMES.iter().any(|known| name.starts_with(known)));
    ours.map(|(_, path)| path.into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_tells_its_version_and_its_tuning() {
        let mut library = b"\x7fELF\x001.2.3\x004.0.2\0{\"collective=bcast\":{}}\0".to_vec();
        library.extend(
            b"junk{\"collective=bcast\":{\"comm_type=intra\":{}},\"collective=reduce\":{}}\0",
        );
        assert!(is_version(&library, (4, 0)));
        assert!(is_version(b"\x005.0.0b1\0", (5, 0)) && is_version(b"\x005.0\0", (5, 0)));
        assert!(!is_version(&library, (5, 0)) && !is_version(b"\x004.01\0", (4, 0)));
        let built_in = within(&library).unwrap();
        let keys: Vec<_> = built_in.algorithms.keys().collect();
        assert_eq!(keys, ["collective=bcast", "collective=reduce"]);
        assert_eq!(built_in.compositions, None);
        library.extend(
            br#"{"collective=bcast":{"composition=MPIDI_Bcast_intra_composition_alpha":{}}}"#,
        );
        library.push(0);
        assert_eq!(within(&library).unwrap().compositions.unwrap().len(), 1);
        assert!(within(b"nothing\0").is_err());
    }
}
