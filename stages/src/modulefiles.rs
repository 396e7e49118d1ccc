//! Modulefiles that load what was exported: `module load colibri/CLUSTER-openmpi-4.1.4`. Each is
//! written twice, for Environment Modules (Tcl) and for Lmod (Lua, which Lmod prefers).

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use libraries::LibraryRelease;
use records::{
    FileError, document,
    platform::Platform,
    summary::{LoadWay, TuningSummary},
};

use crate::{
    export_formats::{Export, ExportFormat, Exporter},
    exporting, loading,
};
use site::{launcher, run_directory::RunDirectory, slurm, usage};

/// The folder of the modulefiles, and the first part of the modules' names.
const FOLDER: &str = "colibri";

/// A list that may hold something already, which stays.
const LIST: &str = "LD_PRELOAD";

/// The ends of the names of modules that load something beside the library's own form.
const PRELOAD: &str = "-preload";
const BOTH: &str = "-both";

/// What a module is to set.
pub struct Modulefile {
    /// The second part of its name.
    pub name: String,
    /// What it loads, in one line.
    pub about: String,
    /// Whether to load it, for its comments.
    pub verdict: String,
    /// Environment variables with their values.
    pub settings: Vec<(String, String)>,
}

/// The variables that load what an exporter has written into `file`, an absolute path.
///
/// # Errors
/// Variables that are the same for every job don't load it.
pub fn settings(
    exporter: &dyn Exporter,
    file: &Path,
    export: &Export<'_>,
) -> Result<Vec<(String, String)>> {
    match exporter.environment(&file.display().to_string(), export) {
        Some(settings) => Ok(settings),
        None => usage!(
            "no modulefile can load what is exported for {}: it takes more than environment \
             variables that are the same for every job; leave --modulefiles out",
            exporter.target()
        ),
    }
}

/// The second part of a module's name: the cluster, the MPI library and its version, and what is
/// loaded where that is not the library's own form, as in `hal-openmpi-4.1.4-preload`.
pub fn name(platform: &Platform, format: ExportFormat) -> String {
    let stem = stem(platform);
    match format.library() {
        Some(_) => stem,
        None => format!("{stem}{PRELOAD}"),
    }
}

/// What the names of all modules for a platform begin with.
fn stem(platform: &Platform) -> String {
    let library = LibraryRelease::said(&platform.mpi_library);
    let library = library.map_or("mpi".into(), |release| release.to_string());
    // Slurm's name is set on its login nodes too, where exports are made for all users.
    let of_slurm = launcher::is_srun(platform.launcher.split(' ').next().unwrap_or_default());
    let name = env::var("SLURM_CLUSTER_NAME").ok();
    let name = name.or_else(|| of_slurm.then(slurm::cluster_name).flatten());
    format!("{}-{library}", cluster(platform, name))
}

/// The cluster's name: Slurm's, or what its hosts' names begin with.
fn cluster(platform: &Platform, name: Option<String>) -> String {
    if !platform.testbed.is_empty() {
        return "testbed".into();
    }
    let short = platform.hosts.iter().map(|host| host.split('.').next().unwrap_or_default());
    let common = |one: String, other: &str| -> String {
        one.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
    };
    let first = short.clone().next().unwrap_or_default().to_owned();
    let of_hosts = short.fold(first, common);
    let of_hosts = of_hosts.trim_end_matches(|c: char| c.is_ascii_digit() || "-_".contains(c));
    let name = name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| of_hosts.into());
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.trim().chars().map(plain).collect();
    // A hidden file would not be found.
    let name = name.trim_start_matches('.');
    if name.is_empty() { "cluster".into() } else { name.into() }
}

impl Modulefile {
    /// Writes both forms below `directory`, which `module use` is given.
    ///
    /// # Errors
    /// The system refuses.
    pub fn write(&self, directory: &Path) -> Result<[PathBuf; 2]> {
        let folder = directory.join(FOLDER);
        fs::create_dir_all(&folder)
            .map_err(|error| FileError::io(&folder, "make this directory", &error))?;
        let paths = self.paths(directory);
        document::write_text(&paths[0], &self.tcl())?;
        document::write_text(&paths[1], &self.lua())?;
        Ok(paths)
    }

    /// Both forms' files below `directory`.
    pub fn paths(&self, directory: &Path) -> [PathBuf; 2] {
        let folder = directory.join(FOLDER);
        [folder.join(&self.name), folder.join(format!("{}.lua", self.name))]
    }

    /// How it is loaded.
    pub fn how_to_load(&self, directory: &Path) -> String {
        format!("module use {}; module load {FOLDER}/{}", directory.display(), self.name)
    }

    fn tcl(&self) -> String {
        let about = tcl_word(&self.about);
        let mut text = format!(
            "#%Module1.0\n# Written by colibri.\n# Verdict: {}\nproc ModulesHelp {{ }} {{\n    puts stderr {about}\n}}\n\
             module-whatis {about}\nconflict {FOLDER}\n",
            self.verdict
        );
        for (name, value) in &self.settings {
            let command = if name == LIST { "prepend-path" } else { "setenv" };
            text += &format!("{command} {name} {}\n", tcl_word(value));
        }
        text
    }

    fn lua(&self) -> String {
        let about = lua_string(&self.about);
        let mut text = format!(
            "-- Written by colibri.\n-- Verdict: {}\nhelp({about})\nwhatis({about})\n",
            self.verdict
        );
        for (name, value) in &self.settings {
            let command = if name == LIST { "prepend_path" } else { "setenv" };
            text += &format!("{command}({}, {})\n", lua_string(name), lua_string(value));
        }
        text
    }
}

/// A word in Tcl in which nothing is replaced.
fn tcl_word(text: &str) -> String {
    quoted(text, "\\\"$[]{}")
}

fn lua_string(text: &str) -> String {
    quoted(text, "\\\"")
}

fn quoted(text: &str, special: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '\n' => quoted += "\\n",
            c if special.contains(c) => quoted.extend(['\\', c]),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// A module for each way in which what a run has tuned is faster; it loads the run's files where they lie now.
/// `name` is what the names begin with, if not with the platform's.
///
/// # Errors
/// The variables of a way are not known.
pub fn of_run(
    run: &RunDirectory,
    summary: &TuningSummary,
    name: Option<&str>,
) -> Result<Vec<Modulefile>> {
    let stem = name.map_or_else(|| stem(&summary.platform), ToOwned::to_owned);
    let mut modules = Vec::new();
    for loading in summary.loadings().filter(|loading| loading.counts.replaced() > 0) {
        let path = std::path::absolute(run.file(&loading.file))?;
        let (mut all, mut about_it) = (Some(Vec::new()), String::new());
        for (target, file) in loading::parts_at(loading.way, &path, &summary.platform) {
            let settings = exporting::environment(&target, &file.display().to_string())?;
            all = all.zip(settings).map(|(all, more)| [all, more].concat());
            let exporter = target.exporter(true)?;
            about_it = about(&*exporter, &summary.platform);
        }
        // What takes more than variables, or other ones for other jobs, no module loads.
        let Some(settings) = all else { continue };
        let verdict = loading.verdict.to_string();
        let name = format!("{stem}{}", end(loading.way));
        modules.push(Modulefile { name, about: about_it, verdict, settings });
    }
    Ok(modules)
}

/// How the name of a way's module ends.
fn end(way: LoadWay) -> &'static str {
    match way {
        LoadWay::Rules => "",
        LoadWay::Preload => PRELOAD,
        LoadWay::Both => BOTH,
    }
}

/// Writes the modules of a run into it, in place of what was there; gives how each is loaded.
///
/// # Errors
/// As [`of_run`]; the system refuses.
pub fn write_into_run(run: &RunDirectory, summary: &TuningSummary) -> Result<Vec<String>> {
    let directory = run.file("modulefiles");
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(|e| FileError::io(&directory, "empty", &e))?;
    }
    let directory = std::path::absolute(&directory).unwrap_or(directory);
    let written = of_run(run, summary, None)?.into_iter().map(|module| {
        module.write(&directory)?;
        Ok(module.how_to_load(&directory))
    });
    written.collect()
}

/// What a module loads, for its users.
pub fn about(exporter: &dyn Exporter, platform: &Platform) -> String {
    format!("Tuned collectives for {}, tuned on {}", exporter.target(), platform.summary())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export_formats::LoadTarget;

    fn platform(hosts: &[&str]) -> Platform {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mpi_library = "Open MPI v4.1.4, package: x".into();
        Platform { hosts, mpi_library, ..Platform::default() }
    }

    #[test]
    fn a_cluster_is_named_by_slurm_or_by_its_hosts() {
        let of = |hosts: &[&str], told: Option<&str>| {
            cluster(&platform(hosts), told.map(ToOwned::to_owned))
        };
        assert_eq!(of(&["n1", "n2"], Some("hal")), "hal");
        assert_eq!(of(&["n1", "n2"], Some(" ")), "n");
        assert_eq!(of(&["node01.x.org", "node01.x.org", "node12.x.org"], None), "node");
        assert_eq!(of(&["hal-cn-1"], None), "hal-cn");
        assert_eq!(of(&["a", "b"], None), "cluster");
        assert_eq!(of(&[], Some("../my cluster")), "-my-cluster");
        let virtual_one = Platform { testbed: "8 nodes".into(), ..platform(&["n1"]) };
        assert_eq!(cluster(&virtual_one, Some("hal".into())), "testbed");
    }

    #[test]
    fn names_tell_cluster_library_and_way() {
        let platform = Platform { testbed: "4 nodes".into(), ..platform(&["n1"]) };
        let rules = LoadTarget::new(LoadWay::Rules, &platform).format();
        assert_eq!(name(&platform, rules), "testbed-openmpi-4.1.4");
        let profiles = LoadTarget::new(LoadWay::Preload, &platform).format();
        assert_eq!(name(&platform, profiles), "testbed-openmpi-4.1.4-preload");
    }

    #[test]
    fn what_is_special_to_either_language_is_kept() {
        assert_eq!(tcl_word(r#"/a b/$x[y]{"\"#), r#""/a b/\$x\[y\]\{\"\\""#);
        assert_eq!(lua_string("/a \"b\"\\$x\n"), r#""/a \"b\"\\$x\n""#);
    }
}
