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
