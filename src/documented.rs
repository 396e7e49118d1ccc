//! Every `colibri` command on a page of the documentation is one that the command line takes.

use std::{fs, path::Path};

use clap::Parser as _;

use crate::Cli;

/// The commands of a page: indented lines that begin with `colibri`, with what follows a `\`.
fn commands(page: &str) -> Vec<Vec<String>> {
    let joined = page.replace("\\\n", " ");
    let lines = joined.lines().filter_map(|line| line.strip_prefix("    ")).map(str::trim);
    let ours = lines.filter(|line| line.starts_with("colibri ") && !line.contains('$'));
    ours.map(|line| {
        let words = shlex::split(line).unwrap_or_else(|| panic!("a quote is not closed: {line}"));
        let ends = |word: &String| matches!(word.as_str(), "&&" | "|" | ">" | ";");
        words.into_iter().take_while(|word| !ends(word)).collect()
    })
    .collect()
}

fn pages(folder: &Path, pages: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension().and_then(|end| end.to_str()) {
            Some("md") => pages.push(path),
            _ if path.is_dir() => self::pages(&path, pages),
            _ => {}
        }
    }
}

#[test]
fn every_command_of_the_documentation_is_taken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = vec![root.join("README.md")];
    pages(&root.join("docs"), &mut all);
    let mut count = 0;
    for page in all {
        for words in commands(&fs::read_to_string(&page).unwrap()) {
            let shown = words.join(" ");
            if let Err(error) = Cli::try_parse_from(words) {
                panic!("{}: {shown}\n{error}", page.display());
            }
            count += 1;
        }
    }
    assert!(count > 100, "{count} commands");
}

#[test]
fn a_command_with_an_option_that_is_gone_is_found() {
    let page = "Text\n\n    colibri predict --calibration \\\n        preset:frodo --gone  # why\n";
    let words = commands(page).remove(0);
    assert_eq!(words, ["colibri", "predict", "--calibration", "preset:frodo", "--gone"]);
    let error = Cli::try_parse_from(words).unwrap_err().to_string();
    assert!(error.contains("'--gone'"), "{error}");
}
