//! One name, one meaning: no type name is defined twice in production code.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use imports::DefinedTypes;

/// Names that are defined more than once, and why that is right. The list can only shrink.
const ALLOWED: &[(&str, &str)] = &[
    ("Error", "each package's own, as in the standard library"),
    ("Result", "each package's, with its own error"),
    ("N", "the type of counts in the two uses of one macro"),
    ("Bruck", "the algorithm, by two collectives"),
    ("Linear", "the algorithm, by five collectives"),
    ("Pairwise", "the algorithm, by two collectives"),
    ("Rabenseifner", "the algorithm, by two collectives"),
    ("RecursiveDoubling", "the algorithm, by four collectives"),
    ("Synchronised", "the algorithm, by two collectives"),
];

/// Packages and folders that only tests use.
const OF_TESTS: [&str; 6] = ["benches", "examples", "fuzz", "target", "tests", "testing"];

/// The production files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if name.starts_with('.') || OF_TESTS.contains(&name.as_str()) {
            continue;
        }
        match path.extension().and_then(|end| end.to_str()) {
            _ if path.is_dir() => files(&path, found),
            Some("rs") => found.push(path),
            _ => {}
        }
    }
}

/// The files of a module that `file` declares.
fn files_of_module(file: &Path, name: &str) -> [PathBuf; 2] {
    let stem = file.file_stem().unwrap();
    let folder = match stem.to_str() {
        Some("mod" | "lib" | "main") => file.parent().unwrap().to_path_buf(),
        _ => file.with_extension(""),
    };
    [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")]
}

#[test]
fn no_type_name_is_defined_twice() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut found = Vec::new();
    files(&root, &mut found);
    let defined: Vec<(&Path, DefinedTypes)> = found
        .iter()
        .map(|path| (path.as_path(), DefinedTypes::read(&fs::read_to_string(path).unwrap())))
        .collect();
    let of_tests: BTreeSet<PathBuf> = defined
        .iter()
        .flat_map(|(path, defined)| {
            defined.test_modules.iter().flat_map(|name| files_of_module(path, name))
        })
        .collect();
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, defined) in defined.iter().filter(|(path, _)| !of_tests.contains(*path)) {
        for name in &defined.types {
            let place = path.strip_prefix(&root).unwrap().display().to_string();
            places.entry(name).or_default().push(place);
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    let allowed: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    places.retain(|_, places| places.len() > 1);
    let wrong: Vec<_> = places.iter().filter(|(name, _)| !allowed.contains(**name)).collect();
    assert!(wrong.is_empty(), "types with one name; give each its own: {wrong:#?}");
    let over: Vec<_> = allowed.iter().filter(|name| !places.contains_key(**name)).collect();
    assert!(over.is_empty(), "defined once now; take them off the list: {over:?}");
}
