//! The check itself, on trees that are made up.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use imports::{Imports, imports, layer_problems, problems};

/// What is wrong with a package of these files.
fn told(files: &[(&str, &str)], known: &[(&str, &str)]) -> Vec<String> {
    problems(&made(files), known)
}

/// The imports of a package of these files.
fn made(files: &[(&str, &str)]) -> Imports {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join("src").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    imports(dir.path(), dir.path()).unwrap()
}

#[test]
fn one_way_is_right() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::A;"),
        ("a.rs", "mod c; use crate::b::B; pub struct A(B, c::C);"),
        ("a/c.rs", "use crate::b; pub struct C(b::B); #[cfg(test)] mod tests { use crate::A; }"),
        ("b.rs", "pub struct B; // use crate::a::A;"),
    ];
    assert_eq!(told(&files, &[]), [""; 0]);
}

#[test]
fn a_circle_is_told_with_its_files() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B; fn f() { crate::c::g() }"),
        ("c.rs", "use super::{a::A as Other}; pub fn g() {}"),
    ];
    let circle = "imports go in a circle: src/a.rs -> src/b.rs -> src/c.rs -> src/a.rs";
    let [problem] = told(&files, &[]).try_into().unwrap();
    assert!(problem.starts_with(circle), "{problem}");
    assert_eq!(told(&files, &[("src/c.rs", "src/a.rs")]), [""; 0], "it is known");
}

#[test]
fn a_parent_and_its_child_use_each_other_not_both_ways() {
    let child = ("a/c.rs", "use super::A; pub struct C(A);");
    let hands_on =
        [("lib.rs", "mod a;"), ("a/mod.rs", "mod c; pub use c::C; pub struct A;"), child];
    assert_eq!(told(&hands_on, &[]), [""; 0]);
    let uses = [("lib.rs", "mod a;"), ("a/mod.rs", "mod c; use c::C; pub struct A(C);"), child];
    let [problem] = told(&uses, &[]).try_into().unwrap();
    assert!(problem.contains("src/a/c.rs -> src/a/mod.rs -> src/a/c.rs"), "{problem}");
}

#[test]
fn what_is_handed_on_is_imported_from_where_it_is_defined() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
        ("a.rs", "use crate::B; pub struct A(B);"),
        ("b.rs", "use crate::A; pub struct B(A);"),
    ];
    let [problem] = told(&files, &[]).try_into().unwrap();
    assert!(problem.contains("src/a.rs -> src/b.rs -> src/a.rs"), "{problem}");
}

#[test]
fn the_list_of_what_is_known_can_only_shrink() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B;"),
    ];
    let no_more = told(&files, &[("src/b.rs", "src/a.rs")]);
    assert_eq!(no_more, ["src/b.rs imports src/a.rs no more: take it off the list"]);
    let not_needed = told(&files, &[("src/a.rs", "src/b.rs")]);
    let wanted = "no circle holds the import of src/b.rs by src/a.rs: take it off the list";
    assert_eq!(not_needed, [wanted]);
}

/// A package in layers whose stage and command are given.
fn layered(stage: &str, command: &str, shared: &str) -> Vec<String> {
    layer_problems(&made(&[
        ("main.rs", "mod commands; mod site; mod stages; fn main() { commands::a::run() }"),
        ("commands/mod.rs", "pub mod a; pub mod b; mod shared;"),
        ("commands/a.rs", command),
        ("commands/b/mod.rs", "mod text; pub fn run() { text::told() } pub struct B;"),
        ("commands/b/text.rs", "pub fn told() {}"),
        ("commands/shared/mod.rs", "pub mod output;"),
        ("commands/shared/output.rs", shared),
        ("stages/mod.rs", "pub mod fit;"),
        ("stages/fit.rs", stage),
        ("site/mod.rs", "pub mod launch; pub mod place;"),
        ("site/launch.rs", "pub fn launch() {}"),
        ("site/place.rs", "use super::launch::launch; pub struct Place;"),
    ]))
}

#[test]
fn layers_and_shared_modules_are_used_downwards() {
    let (stage, shared) = ("use crate::site::launch; pub fn fit() {}", "pub fn print() {}");
    let command = "use super::shared::output; use crate::{site::place::Place, stages::fit::fit};";
    assert_eq!(layered(stage, command, shared), [""; 0]);
}

#[test]
fn an_import_upwards_or_across_is_told() {
    let (stage, command, shared) = ("pub fn fit() {}", "pub fn run() {}", "pub fn print() {}");
    assert_eq!(
        layered("use crate::commands::shared::output::print;", command, shared),
        ["src/stages/fit.rs imports src/commands/shared/output.rs, which is a layer above it"]
    );
    let across = ["src/commands/a.rs imports another command's src/commands/b/mod.rs; what two \
                   need is shared"];
    assert_eq!(layered(stage, "use super::b::B; pub fn run() {}", shared), across);
    assert_eq!(layered(stage, "pub fn run() { crate::commands::b::run() }", shared), across);
    assert_eq!(
        layered(stage, command, "use crate::commands::a::run;"),
        ["src/commands/shared/output.rs is shared, but imports a command's src/commands/a.rs"]
    );
}
