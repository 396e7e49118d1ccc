//! The violations of several runs side by side, as PGMPI's tables show them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Result;
use records::{
    Collective, Layout, document, quantity,
    violations::{Class, JudgedGuideline, Violations},
};

use crate::commands::shared::output;
use site::{run_directory::RunDirectory, usage};

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ViolationTable {
    /// How many collectives (of patterns: guidelines) have a violation at any size
    Classes,
    /// Which pattern guidelines are violated at any size
    Patterns,
    /// At which sizes each guideline is violated
    Sizes,
}

/// A run by its name.
pub struct NamedViolations {
    name: String,
    found: Violations,
}

impl NamedViolations {
    /// What was found in a run, under its directory's name.
    pub fn new(directory: &Path, found: Violations) -> Self {
        let name = directory.file_name().unwrap_or(directory.as_os_str());
        NamedViolations { name: name.to_string_lossy().into_owned(), found }
    }

    /// What a run's violations.json says.
    ///
    /// # Errors
    /// It is not there, cannot be read, or does not tell what was judged.
    pub fn read(directory: &Path) -> Result<Self> {
        let run = RunDirectory::read(directory)?;
        let found: Violations = document::read(&run.violations())?;
        if found.judged.is_empty() && !found.counts.is_empty() {
            usage!(
                "{}: does not name the guidelines that were judged; judge them again by colibri \
                 guidelines {} --from-record",
                run.violations().display(),
                directory.display()
            );
        }
        Ok(NamedViolations::new(run.path(), found))
    }
}

/// The table of some runs.
pub fn table(comparison: ViolationTable, runs: &[NamedViolations]) -> String {
    let mut text = match comparison {
        ViolationTable::Classes => classes(runs),
        ViolationTable::Patterns => patterns(runs),
        ViolationTable::Sizes => runs.iter().map(sizes).collect::<Vec<String>>().join("\n"),
    };
    text.push('\n');
    for run in runs {
        let (jobs, platform) = (run.found.verdict.jobs, run.found.platform.summary());
        text += &format!("{}: {}, {platform}\n", run.name, records::counted(jobs, "job"));
    }
    text
}

const VIOLATED: &str = "x";
const KEPT: &str = ".";

fn mark(violated: bool) -> String {
    if violated { VIOLATED } else { KEPT }.into()
}

/// PGMPI's Table 2.
fn classes(runs: &[NamedViolations]) -> String {
    type Counted<'a> = BTreeMap<(Collective, &'a str), bool>;
    let mut rows: BTreeMap<(Layout, Class), Vec<Counted<'_>>> = BTreeMap::new();
    for (column, run) in runs.iter().enumerate() {
        for judged in &run.found.judged {
            let row = rows.entry((judged.layout, judged.class)).or_default();
            row.resize_with(runs.len(), BTreeMap::new);
            let violated = row[column].entry((judged.collective, &judged.right)).or_default();
            *violated |= !judged.violated.is_empty();
        }
    }
    let heading =
        ["procs", "guideline"].into_iter().chain(runs.iter().map(|run| run.name.as_str()));
    let cell = |counted: &Counted<'_>| match counted.len() {
        0 => "-".to_owned(),
        all => format!("{}/{all}", counted.values().filter(|violated| **violated).count()),
    };
    let row = |((layout, class), counted): (&(Layout, Class), &Vec<Counted<'_>>)| {
        let head = [layout.to_string(), class.name().to_owned()];
        head.into_iter().chain(counted.iter().map(cell)).collect()
    };
    output::aligned(&heading.collect::<Vec<&str>>(), rows.iter().map(row))
}

/// A pattern, with the communicator on which it was judged.
fn pattern(judged: &JudgedGuideline) -> (Layout, String) {
    (judged.layout, format!("{} <= {}", judged.collective, judged.right))
}

/// PGMPI's Table 3.
fn patterns(runs: &[NamedViolations]) -> String {
    let mut rows: BTreeMap<(Layout, String), Vec<String>> = BTreeMap::new();
    for (column, run) in runs.iter().enumerate() {
        for judged in run.found.judged.iter().filter(|judged| judged.class == Class::Pattern) {
            let row = rows.entry(pattern(judged)).or_default();
            row.resize(runs.len(), "-".into());
            row[column] = mark(!judged.violated.is_empty());
        }
    }
    let heading =
        ["procs", "guideline"].into_iter().chain(runs.iter().map(|run| run.name.as_str()));
    let row = |((layout, pattern), marks): (&(Layout, String), &Vec<String>)| {
        [layout.to_string(), pattern.clone()].into_iter().chain(marks.iter().cloned()).collect()
    };
    let table = output::aligned(&heading.collect::<Vec<&str>>(), rows.iter().map(row));
    format!("{table}{VIOLATED} violated at some size, {KEPT} at none, - not judged\n")
}

/// PGMPI's Table 4.
fn sizes(run: &NamedViolations) -> String {
    let judged = &run.found.judged;
    let sizes: BTreeSet<u64> = judged.iter().flat_map(|one| one.sizes.iter().copied()).collect();
    let names: Vec<String> = sizes.iter().map(|bytes| quantity::format_bytes(*bytes)).collect();
    let heading = ["procs", "guideline"].into_iter().chain(names.iter().map(String::as_str));
    let row = |one: &JudgedGuideline| {
        let name = match one.class {
            Class::Pattern => pattern(one).1,
            class => format!("{}, {}", one.collective, class.name()),
        };
        let at = |bytes: &u64| match one.sizes.contains(bytes) {
            true => mark(one.violated.contains(bytes)),
            false => String::new(),
        };
        [one.layout.to_string(), name].into_iter().chain(sizes.iter().map(at)).collect()
    };
    let table = output::aligned(&heading.collect::<Vec<&str>>(), judged.iter().map(row));
    format!("{}\n{table}{VIOLATED} violated, {KEPT} not\n", run.name)
}

#[cfg(test)]
mod tests {
    use records::violations::ViolationCriteria;

    use super::*;

    fn judged(class: Class, of: Collective, right: &str, violated: &[u64]) -> JudgedGuideline {
        JudgedGuideline {
            class,
            collective: of,
            layout: Layout::flat(8),
            right: right.into(),
            sizes: vec![1, 64],
            violated: violated.to_vec(),
        }
    }

    fn run(name: &str, judged: Vec<JudgedGuideline>) -> NamedViolations {
        let verdict = ViolationCriteria {
            unit: String::new(),
            jobs: 6,
            test: "rank-sum".into(),
            level: 0.05,
            least_gain: 0.05,
            split_tolerance: 0.05,
            comparisons: 1,
            least_p_value: 0.001,
        };
        let found = Violations {
            platform: ::fuzz::files::platform(),
            timing: String::new(),
            message_size: BTreeMap::new(),
            verdict,
            counts: Vec::new(),
            judged,
            violations: Vec::new(),
            warnings: Vec::new(),
        };
        NamedViolations::new(Path::new(name), found)
    }

    fn words(text: &str) -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn runs_stand_side_by_side() {
        let runs = [
            run(
                "one",
                vec![
                    judged(Class::Pattern, Collective::Bcast, "bcast_as_allgatherv", &[64]),
                    judged(Class::Pattern, Collective::Bcast, "scatter + allgather", &[]),
                    judged(Class::Monotony, Collective::Bcast, "", &[]),
                ],
            ),
            run(
                "two",
                vec![
                    judged(Class::Pattern, Collective::Bcast, "bcast_as_allgatherv", &[]),
                    judged(Class::Monotony, Collective::Bcast, "", &[1]),
                ],
            ),
        ];
        let of_classes = words(&table(ViolationTable::Classes, &runs));
        assert_eq!(
            of_classes[..3],
            ["procs guideline one two", "8 pattern 1/2 0/1", "8 monotony 0/1 1/1"]
        );
        let of_patterns = words(&table(ViolationTable::Patterns, &runs));
        assert_eq!(
            of_patterns[1..3],
            ["8 bcast <= bcast_as_allgatherv x .", "8 bcast <= scatter + allgather . -"]
        );
        let of_sizes = words(&table(ViolationTable::Sizes, &runs));
        assert_eq!(
            of_sizes[..3],
            ["one", "procs guideline 1 B 64 B", "8 bcast <= bcast_as_allgatherv . x"]
        );
        assert!(of_sizes.contains(&"8 bcast, monotony x .".to_owned()), "{of_sizes:?}");
    }
}
