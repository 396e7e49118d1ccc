//! The file of a trace: a regular one, that takes no other's place.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use records::{document, usage::Usage};

/// Where a trace goes: the path, or what a symbolic link there points to.
///
/// # Errors
/// What is there is no regular file: a pipe may have no reader, and a device keeps nothing.
pub fn place(path: &Path) -> Result<PathBuf, String> {
    let refused =
        |problem: &str| format!("COLIBRI_TRACE={}: {problem}; no trace is written", path.display());
    match fs::symlink_metadata(path) {
        Err(_) => Ok(path.into()),
        Ok(there) if there.is_symlink() => {
            let place = fs::canonicalize(path);
            let place = place.map_err(|_| refused("this symbolic link points to nothing"))?;
            self::place(&place).map_err(|_| refused("it does not point to a regular file"))
        }
        Ok(there) if there.is_file() => Ok(path.into()),
        Ok(_) => Err(refused("this is not a regular file")),
    }
}

/// Writes a trace; what was there before is kept under another name, which is printed.
///
/// # Errors
/// As [`place`], or the system refuses.
pub fn write(path: &Path, trace: &Usage) -> Result<Option<String>, String> {
    let place = place(path)?;
    let kept = keep(&place).map_err(|error| {
        format!(
            "{}: cannot be kept under another name ({error}); no trace is written",
            path.display()
        )
    })?;
    document::write(&place, trace).map_err(|error| error.to_string())?;
    Ok(kept.map(|kept| {
        format!("{}: the file that was there is now {}", path.display(), kept.display())
    }))
}

/// Gives a file the first of the names `FILE.1`, `FILE.2`, ... that is free. Nothing where there is no
/// file, or an empty one.
fn keep(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::metadata(path) {
        Ok(there) if there.len() > 0 => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    for number in 1_u32.. {
        let mut name = path.as_os_str().to_os_string();
        name.push(format!(".{number}"));
        let other = PathBuf::from(name);
        // A second name is given only if it is free, whatever other jobs do at the same time.
        match fs::hard_link(path, &other) {
            Ok(()) => return Ok(Some(other)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // A file system without second names.
            Err(_) if fs::symlink_metadata(&other).is_err() => {
                fs::rename(path, &other)?;
                return Ok(Some(other));
            }
            Err(_) => {}
        }
    }
    Err(io::Error::other("no name is free"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::fs::symlink, process::Command};

    fn usage() -> Usage {
        Usage::of_all_ranks(1, "Open MPI".into(), 1.0, std::iter::empty())
    }

    #[test]
    fn an_older_trace_is_kept_under_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage.json");
        assert_eq!(write(&path, &usage()).unwrap(), None);
        for number in [1, 2] {
            fs::write(&path, format!("older {number}")).unwrap();
            let told = write(&path, &usage()).unwrap().unwrap();
            assert!(told.contains(&format!("usage.json.{number}")), "{told}");
        }
        for number in [1, 2] {
            let kept = fs::read_to_string(folder.path().join(format!("usage.json.{number}")));
            assert_eq!(kept.unwrap(), format!("older {number}"));
        }
        document::read::<Usage>(&path).unwrap();
        fs::write(&path, "").unwrap();
        assert_eq!(write(&path, &usage()).unwrap(), None, "nothing was there");
    }

    #[test]
    fn a_symbolic_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let [path, place] = ["link", "place.json"].map(|name| folder.path().join(name));
        symlink(&place, &path).unwrap();
        let told = write(&path, &usage()).unwrap_err();
        assert!(told.contains("points to nothing"), "{told}");
        fs::write(&place, "older").unwrap();
        assert!(write(&path, &usage()).unwrap().unwrap().contains("place.json.1"));
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
        document::read::<Usage>(&place).unwrap();
    }

    #[test]
    fn what_is_no_regular_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        for path in [&*path, folder.path(), Path::new("/dev/null")] {
            let told = write(path, &usage()).unwrap_err();
            assert!(told.contains("regular file"), "{told}");
        }
    }
}
