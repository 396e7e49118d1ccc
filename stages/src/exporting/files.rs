//! Writes an export's files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use records::{FileError, document};

use crate::export_formats::{Export, Exporter, File};
use site::usage;

/// Writes what an exporter makes of an export, into a file or, where the target loads several, a
/// directory; names what was written.
///
/// # Errors
/// The directory holds profiles that would stay and be loaded as well; the system refuses.
pub fn write_files(path: &Path, files: Vec<File>, exporter: &dyn Exporter) -> Result<Vec<String>> {
    if exporter.is_directory() {
        refuse_earlier(path, &files)?;
        fs::create_dir_all(path).map_err(|e| FileError::io(path, "make this directory", &e))?;
        if files.is_empty() {
            say!("nothing replaces the default, so there is no file to write");
        }
    }
    let mut written = Vec::new();
    for File { name, text } in files {
        let path = match exporter.is_directory() {
            true => path.join(name),
            false => beside(path, &name),
        };
        document::write_text(&path, &text)?;
        written.push(path.display().to_string());
    }
    Ok(written)
}

/// Whoever loads a directory loads all profiles in it, also those of an export before this one.
fn refuse_earlier(directory: &Path, files: &[File]) -> Result<()> {
    // What is no directory, or not there, whoever writes into it tells of.
    let held = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_earlier = |path: &PathBuf| {
        let is_profile = path.extension().is_some_and(|end| end == "json" || end == "prf");
        is_profile && !files.iter().any(|file| path.file_name() == Some(file.name.as_ref()))
    };
    match held.filter(is_earlier).min() {
        Some(path) => usage!(
            "{}: is of an earlier export and would be loaded with what is written now; remove {}, or \
             name another directory by --output",
            path.display(),
            directory.display()
        ),
        None => Ok(()),
    }
}

/// A file that goes with another one, by what follows that one's name.
fn beside(path: &Path, follows: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(follows);
    name.into()
}

/// Writes an export in place of what was there; no directory where nothing replaces the default.
///
/// # Errors
/// The system refuses.
pub fn write_anew(exporter: &dyn Exporter, export: &Export<'_>, path: &Path) -> Result<()> {
    let files = exporter.files(export)?;
    if exporter.is_directory() && path.exists() {
        fs::remove_dir_all(path).map_err(|e| FileError::io(path, "empty", &e))?;
    }
    if !files.is_empty() {
        write_files(path, files, exporter)?;
    }
    Ok(())
}
