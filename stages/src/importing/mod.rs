//! Makes a run of what other tools have measured.

mod batch;
mod collector;
mod layouts;
mod wanted;

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use import::{ImportHints, Lines, MeasuringTool, Script};
use records::{FileError, reading, record};

use self::collector::Collector;
pub use self::wanted::{Imported, WantedMethods, WantedRows};
use site::run_directory::RunDirectory;

/// Reads files of a tool into a new run at `directory`, which is there only when all is read.
///
/// # Errors
/// The directory is there and holds something, a file is broken, cut off or another tool's, or
/// files contradict each other. Nothing is left behind.
pub fn import(
    tool: &dyn MeasuringTool,
    files: &[PathBuf],
    hints: &ImportHints,
    wanted: WantedRows,
    directory: &Path,
) -> Result<Imported> {
    let of_system = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    let mut seen = HashSet::new();
    if let Some(twice) = files.iter().find(|path| !seen.insert(of_system(path))) {
        bail!("{}: is given twice; each file is imported once", twice.display());
    }
    let target = RunDirectory::at(directory)?.path().to_owned();
    if fs::read_dir(&target).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{}: already exists; name another directory", target.display());
    }
    let parent = target.parent().unwrap_or(Path::new("/"));
    let missing: Vec<&Path> = parent.ancestors().take_while(|path| !path.exists()).collect();
    fs::create_dir_all(parent)
        .map_err(|error| FileError::io(parent, "make this directory", &error))?;
    let result = into_new(tool, files, hints, wanted, parent, &target);
    if result.is_err() {
        // What was made for a run that does not begin goes again.
        missing.iter().for_each(|path| drop(fs::remove_dir(path)));
    }
    result
}

fn into_new(
    tool: &dyn MeasuringTool,
    files: &[PathBuf],
    hints: &ImportHints,
    wanted: WantedRows,
    parent: &Path,
    target: &Path,
) -> Result<Imported> {
    // Beside the run, so that it can be moved there in one step.
    let scratch = tempfile::Builder::new()
        .prefix(".colibri-import-")
        .tempdir_in(parent)
        .map_err(|error| FileError::io(parent, "write", &error))?;
    let run = RunDirectory::at(scratch.path())?;
    let mut collector = Collector::new(&run, tool.title(), wanted);
    for (file, name) in files.iter().zip(job_names(files)) {
        let hints = ImportHints { name: Some(name), ..with_script(hints, file)? };
        let input = reading::open(file).map_err(|error| FileError::io(file, "read", &error))?;
        collector.file(file);
        tool.read(&mut Lines::new(file, input), &hints, &mut collector)?;
    }
    let imported = collector.finish()?;
    // An empty directory that was there gives way.
    fs::rename(scratch.path(), target).map_err(|error| FileError::io(target, "write", &error))?;
    // What was moved is no scratch any more.
    let _ = scratch.keep();
    Ok(imported)
}

/// What each file's job is called where the file does not say it: the file's name, with as many of its directories as
/// tell it from the others. Two files of one name would become one job.
fn job_names(files: &[PathBuf]) -> Vec<String> {
    let whole = |path: &PathBuf| -> Vec<String> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let parent = fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
        let directories = parent.iter().map(|part| part.to_string_lossy().into_owned());
        directories.chain([record::name(path)]).collect()
    };
    let wholes: Vec<Vec<String>> = files.iter().map(whole).collect();
    let last =
        |parts: &[String], count: usize| parts[parts.len().saturating_sub(count)..].join("/");
    let mut names = vec![None; files.len()];
    let longest = wholes.iter().map(Vec::len).max().unwrap_or(0);
    for count in 1..=longest {
        let mut times: HashMap<String, u32> = HashMap::new();
        for parts in &wholes {
            *times.entry(last(parts, count)).or_default() += 1;
        }
        for (name, parts) in names.iter_mut().zip(&wholes).filter(|(name, _)| name.is_none()) {
            let called = last(parts, count);
            *name = (times[&called] == 1).then_some(called);
        }
        if names.iter().all(Option::is_some) {
            break;
        }
    }
    let named = names.into_iter().zip(&wholes);
    named.map(|(name, parts)| name.unwrap_or_else(|| parts.join("/"))).collect()
}

/// What is given of a file, with the script that lies beside it: `NAME.job.sh` or `NAME.sh` beside
/// `NAME.txt`.
fn with_script(hints: &ImportHints, file: &Path) -> Result<ImportHints> {
    if hints.script.is_some() {
        return Ok(hints.clone());
    }
    let beside = ["job.sh", "sh", "sbatch"].map(|end| file.with_extension(end));
    match beside.into_iter().find(|path| path.is_file() && path != file) {
        Some(path) => {
            let script = script(&path)?;
            if script.forces_any() && hints.method.is_none() {
                say!(
                    "note: {} forces algorithms of the MPI library: their calls are not its default",
                    path.display()
                );
            }
            Ok(ImportHints { script: Some(script), ..hints.clone() })
        }
        None => Ok(hints.clone()),
    }
}

/// A job's script.
///
/// # Errors
/// It cannot be read.
pub fn script(path: &Path) -> Result<Script> {
    let input = reading::open(path).map_err(|error| FileError::io(path, "read", &error))?;
    Ok(Script::read(Lines::of_script(path, input))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_name_are_told_apart_by_their_directories() {
        let names =
            |files: &[&str]| job_names(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(names(&["/none/a/x.txt", "/none/b/y.txt"]), ["x.txt", "y.txt"]);
        assert_eq!(
            names(&["/none/a/x.txt", "/none/b/x.txt", "/none/b/y.txt"]),
            ["a/x.txt", "b/x.txt", "y.txt"]
        );
        assert_eq!(names(&["/none/1/a/x.txt", "/none/2/a/x.txt"]), ["1/a/x.txt", "2/a/x.txt"]);
    }
}
