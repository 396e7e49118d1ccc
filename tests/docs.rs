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
fn a_link_that_leads_nowhere_is_found() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = "[a](docs/tune.md#by-hand) [b](docs/nowhere.md) [c](docs/tune.md#nowhere)";
    assert_eq!(broken(&readme, text), ["docs/nowhere.md", "docs/tune.md#nowhere"]);
}
