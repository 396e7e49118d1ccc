//! The documentation's links lead somewhere.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Every page of the repository.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)).into();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|end| end.to_str()) {
                Some("md") => pages.push(path),
                _ if path.is_dir() => folders.push(path),
                _ => {}
            }
        }
    }
    pages
}

/// What `[text](target)` names in a page.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// The anchors of a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

/// The links of a page that lead nowhere.
fn broken(page: &Path, text: &str) -> Vec<String> {
    let leads = |target: &&str| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = match file {
            "" => page.to_path_buf(),
            file => page.parent().unwrap().join(file),
        };
        match fs::read(&path) {
            Ok(_) if anchor.is_empty() => true,
            Ok(bytes) => anchors(&String::from_utf8_lossy(&bytes)).contains(anchor),
            Err(_) => false,
        }
    };
    let inside = targets(text).filter(|target| !target.contains("://"));
    inside.filter(|target| !leads(target)).map(Into::into).collect()
}

#[test]
fn every_link_leads_to_a_page_and_a_heading() {
    let pages = pages();
    assert!(pages.len() > 10, "{pages:?}");
    for page in pages {
        let broken = broken(&page, &fs::read_to_string(&page).unwrap());
        assert!(broken.is_empty(), "{}: {broken:?}", page.display());
    }
}

#[test]
fn the_index_lists_every_page_of_docs() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let index = docs.join("README.md");
    let text = fs::read_to_string(&index).unwrap();
    let listed: BTreeSet<PathBuf> = targets(&text).map(|target| docs.join(target)).collect();
    let is_missing = |page: &PathBuf| *page != index && !listed.contains(page);
    let of_docs = pages().into_iter().filter(|page| page.starts_with(&docs));
    let missing: Vec<PathBuf> = of_docs.filter(is_missing).collect();
    assert!(missing.is_empty(), "not in docs/README.md: {missing:?}");
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = "[a](docs/tune.md#what-happens) [b](docs/nowhere.md) [c](docs/tune.md#nowhere)";
    assert_eq!(broken(&readme, text), ["docs/nowhere.md", "docs/tune.md#nowhere"]);
}

/// The sources of all packages, without what was built.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        match path.extension().and_then(|end| end.to_str()) {
            Some("rs") => *text += &fs::read_to_string(&path).unwrap(),
            _ if path.is_dir() && name != "target" && !name.starts_with('.') => {
                sources(&path, text);
            }
            _ => {}
        }
    }
}

/// The tests that the last column of a page's tables names.
fn named_tests(page: &str) -> Vec<&str> {
    let last_cells = page.lines().filter_map(|line| line.strip_suffix(" |")?.rsplit('|').next());
    let words = last_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let is_test = |word: &&str| word.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    words.filter(is_test).collect()
}

#[test]
fn every_test_that_stands_for_another_tools_feature_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = String::new();
    sources(root, &mut code);
    let page = fs::read_to_string(root.join("docs/other-tools.md")).unwrap();
    let named = named_tests(&page);
    assert!(named.len() >= 30, "{named:?}");
    for test in named {
        let forms = [format!("fn {test}("), format!("{test}: test")];
        assert!(forms.iter().any(|form| code.contains(form)), "{test} is no test");
    }
    assert_eq!(named_tests("| a `b` | `c --d` | [e](f.md), `g_h`, `i j` |"), ["g_h"]);
}
