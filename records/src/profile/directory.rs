//! A directory of profiles.

use std::path::Path;

use super::{Profile, pgtune};
use crate::{FileError, document, reading};

/// What a directory of profiles holds.
#[derive(Debug, Default)]
pub struct Directory {
    /// Those that can be used, in the order of their names.
    pub profiles: Vec<Profile>,
    /// Why others can't.
    pub unusable: Vec<FileError>,
}

/// Every profile in a directory: Colibri's (`*.json`) and pgtune's (`*.prf`), in the order of
/// their names. Other files are left alone. One that can't be read, that `check` refuses, or that
/// speaks of the same collective, processes and nodes as one before it, is unusable by itself.
///
/// # Errors
/// The directory cannot be read, or it holds no profile at all.
pub fn read_directory(
    directory: &Path,
    check: impl Fn(&Profile) -> Result<(), String>,
) -> Result<Directory, FileError> {
    let mut found = Directory::default();
    for path in &reading::entries(directory)? {
        let profile = match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => document::read::<Profile>(path),
            Some("prf") => pgtune::read(path),
            _ => continue,
        };
        match profile.and_then(|profile| usable(profile, path, &found.profiles, &check)) {
            Ok(profile) => found.profiles.push(profile),
            Err(error) => found.unusable.push(error),
        }
    }
    if found.profiles.is_empty() && found.unusable.is_empty() {
        let problem = "holds no profile (*.json, or *.prf of pgtune)";
        return Err(FileError::new(directory, problem));
    }
    Ok(found)
}

fn usable(
    profile: Profile,
    path: &Path,
    before: &[Profile],
    check: impl Fn(&Profile) -> Result<(), String>,
) -> Result<Profile, FileError> {
    check(&profile).map_err(|problem| FileError::new(path, problem))?;
    let key =
        |profile: &Profile| (profile.collective, profile.procs, profile.nodes, profile.layout);
    match before.iter().any(|other| key(other) == key(&profile)) {
        true => {
            let (collective, procs) = (profile.collective, profile.procs);
            let problem =
                format!("is a second profile of {collective} at {procs} ranks in this directory");
            Err(FileError::new(path, problem))
        }
        false => Ok(profile),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::Collective;

    fn profile(procs: u32) -> Profile {
        Profile::new(Collective::Bcast, procs, crate::Ranges::default())
    }

    #[test]
    fn a_directory_is_read_and_what_is_unusable_costs_itself_alone() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, profile: &Profile| {
            document::write(&directory.path().join(name), profile).unwrap();
        };
        let read = || {
            read_directory(directory.path(), |profile| match profile.procs {
                32 => Err("is too much".into()),
                _ => Ok(()),
            })
        };
        let error = read().unwrap_err().to_string();
        assert!(error.contains("holds no profile"), "{error}");
        write("a.json", &profile(8));
        write("b.json", &profile(16));
        std::fs::write(directory.path().join("notes.txt"), "x").unwrap();
        let text = "MPI_Scatter\n8\n1\n2 scatter_as_bcast\n1\n1 1 2\n";
        std::fs::write(directory.path().join("c.prf"), text).unwrap();
        write("d.json", &profile(8));
        std::fs::write(directory.path().join("e.json"), "{").unwrap();
        write("f.json", &profile(32));
        let pipe = directory.path().join("g.json");
        assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        let found = read().unwrap();
        let procs: Vec<u32> = found.profiles.iter().map(|profile| profile.procs).collect();
        assert_eq!(procs, [8, 16, 8]);
        let said: Vec<String> = found.unusable.iter().map(ToString::to_string).collect();
        let wanted = ["second profile", "truncated", "f.json: is too much", "named pipe"];
        assert_eq!(said.len(), wanted.len(), "{said:?}");
        for (said, wanted) in said.iter().zip(wanted) {
            assert!(said.contains(wanted), "{said}");
        }
    }
}
