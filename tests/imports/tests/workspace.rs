//! The imports of this workspace.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use imports::{Imports, imports, layer_problems, order, order_problems, problems};

/// Imports that close circles and are still there. The list can only shrink.
const KNOWN: &[(&str, &str)] = &[];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folders of the workspace's packages, the root's as `src`.
fn packages() -> Vec<(String, PathBuf)> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.lines().find(|line| line.starts_with("members = [")).unwrap();
    let folders = members.split('"').skip(1).step_by(2);
    let mut packages: Vec<(String, PathBuf)> =
        folders.map(|folder| (folder.to_owned(), root().join(folder))).collect();
    packages.push(("src".into(), root()));
    packages
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let mut all = Imports::new();
    for (_, folder) in packages() {
        all.extend(imports(&root(), &folder).unwrap());
    }
    assert!(
        all.values().map(|targets| targets.len()).sum::<usize>() > 500,
        "few imports were found"
    );
    let problems = problems(&all, KNOWN);
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn packages_build_on_those_before_them_in_the_table() {
    let order = order(&fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap()).unwrap();
    let manifest = |(folder, path): (String, PathBuf)| {
        (folder, fs::read_to_string(path.join("Cargo.toml")).unwrap())
    };
    let packages: Vec<(String, String)> = packages().into_iter().map(manifest).collect();
    let problems = order_problems(&order, &packages);
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn layers_are_used_downwards_and_no_command_uses_another() {
    let all = imports(&root(), &root()).unwrap();
    let is_command = |file: &&String| file.starts_with("src/commands/");
    assert!(all.keys().filter(is_command).count() > 10, "few commands were found");
    let problems = layer_problems(&all);
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// A file that can be read at once; what is generated or data has another extension.
const MOST_LINES: usize = 600;

/// Every Rust file below a folder but what is built there.
fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_hidden = path.file_name().unwrap().to_string_lossy().starts_with('.');
        if path.is_dir() && !is_hidden && !path.ends_with("target") {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn no_file_is_longer_than_can_be_read_at_once() {
    let mut files = Vec::new();
    rust_files(&root(), &mut files);
    assert!(files.len() > 500, "only {} files were found", files.len());
    let lines = |path: &PathBuf| fs::read_to_string(path).unwrap().lines().count();
    let long: Vec<String> = files
        .iter()
        .map(|path| (path, lines(path)))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "more than {MOST_LINES} lines:\n{}", long.join("\n"));
}

/// The paths in the tables of CONTRIBUTING.md that are not there. In a row, they may be below the folder of
/// a path before them.
fn missing_paths(contributing: &str) -> Vec<String> {
    let is_path = |word: &&str| word.ends_with(".rs") || word.ends_with('/');
    let mut missing = Vec::new();
    for row in contributing.lines().filter(|line| line.starts_with("| ")) {
        let mut folders = vec![root()];
        for named in row.split('`').skip(1).step_by(2).filter(is_path) {
            match folders.iter().map(|folder| folder.join(named)).find(|path| path.exists()) {
                Some(path) if path.is_dir() => folders.push(path),
                Some(path) => folders.push(path.parent().unwrap().to_path_buf()),
                None => missing.push(named.to_owned()),
            }
        }
    }
    missing
}

#[test]
fn every_path_in_the_tables_of_contributing_exists() {
    let contributing = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    assert_eq!(missing_paths(&contributing), [""; 0]);
    let rows =
        "| a | `call` in `timing/src/scheme.rs`, `sleep.rs`, `gone.rs` |\n| `nowhere/` | b |";
    assert_eq!(missing_paths(rows), ["gone.rs", "nowhere/"]);
}
