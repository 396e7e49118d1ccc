//! The layouts on which imported jobs ran: a run holds one of each number of ranks.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use import::RanksOnNodes;
use records::{FileError, Layout, RankPlacement, counted};

/// The layouts that were found.
#[derive(Debug, Default)]
pub struct FoundLayouts {
    /// How many times each number of ranks has on each layout.
    times: BTreeMap<u32, BTreeMap<Layout, u64>>,
    /// Layouts by the ranks per node of the jobs that had them.
    by_ranks_per_node: BTreeMap<u32, BTreeSet<Layout>>,
    /// Of the first `procs` ranks of a job.
    of_first: HashMap<(u32, RanksOnNodes), Layout>,
    conflict: Option<FileError>,
}

/// What a row's layout means for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutUse {
    /// It goes into the run.
    Taken,
    /// Another layout was wanted.
    Unwanted,
    /// It is a second one of its number of ranks: no run will be made, and the others are only looked for.
    InConflict,
}

impl FoundLayouts {
    /// The layout of the first ranks of a job.
    ///
    /// # Errors
    /// A record cannot hold it.
    fn layout(&mut self, procs: u32, job: RanksOnNodes) -> Result<Layout, String> {
        if let Some(known) = self.of_first.get(&(procs, job)) {
            return Ok(*known);
        }
        let whole = Layout::even(job.nodes, job.ranks_per_node, RankPlacement::Block)?;
        let first = whole.of_first(procs);
        let layout = first.ok_or_else(|| format!("is {procs}, but the job has {job} ranks"))?;
        self.of_first.insert((procs, job), layout);
        Ok(layout)
    }

    /// Takes in a row of a job; `fault` makes an error of a field and a problem.
    ///
    /// # Errors
    /// The job cannot have had so many ranks.
    pub fn take(
        &mut self,
        procs: u32,
        job: Option<RanksOnNodes>,
        wanted: Option<&[Layout]>,
        fault: impl Fn(&str, String) -> FileError,
    ) -> Result<LayoutUse, FileError> {
        let Some(job) = job else {
            return Ok(if wanted.is_some() { LayoutUse::Unwanted } else { LayoutUse::Taken });
        };
        let layout = self.layout(procs, job).map_err(|problem| fault("procs", problem))?;
        if wanted.is_some_and(|wanted| !wanted.contains(&layout)) {
            *self.times.entry(procs).or_default().entry(layout).or_default() += 1;
            return Ok(LayoutUse::Unwanted);
        }
        self.by_ranks_per_node.entry(job.ranks_per_node).or_default().insert(layout);
        let of_procs = self.times.entry(procs).or_default();
        let is_kept = |other: &&Layout| {
            **other != layout && wanted.is_none_or(|wanted| wanted.contains(other))
        };
        let before = of_procs.keys().find(is_kept).copied();
        *of_procs.entry(layout).or_default() += 1;
        if let (Some(before), None) = (before, &self.conflict) {
            self.conflict = Some(fault(
                "layout",
                format!(
                    "{procs} ranks as {}, but as {} in an earlier row; a run holds one layout of each number of \
                     ranks",
                    named(&layout),
                    named(&before)
                ),
            ));
        }
        Ok(if self.conflict.is_some() { LayoutUse::InConflict } else { LayoutUse::Taken })
    }

    /// Nothing where each number of ranks has one layout.
    ///
    /// # Errors
    /// One has several.
    pub fn check(&mut self) -> Result<(), LayoutConflict> {
        let Some(first) = self.conflict.take() else { return Ok(()) };
        let several = self.times.iter().filter(|(_, layouts)| layouts.len() > 1);
        let times = several.map(|(procs, layouts)| (*procs, layouts.clone())).collect();
        let choices = self.by_ranks_per_node.values().map(|it| it.iter().copied().collect());
        Err(LayoutConflict { first: Box::new(first), times, choices: choices.collect() })
    }

    /// What was left out since other layouts were wanted.
    pub fn left_out(&self, wanted: &[Layout]) -> Vec<String> {
        let all = self.times.iter().flat_map(|(procs, layouts)| {
            layouts.iter().map(move |(layout, times)| (procs, layout, times))
        });
        all.filter(|(_, layout, _)| !wanted.contains(layout))
            .map(|(procs, layout, times)| {
                let ranks = counted(*procs, "rank");
                format!("left out: {ranks} as {} ({})", named(layout), counted(*times, "row"))
            })
            .collect()
    }

    /// All layouts found, as they were met by their numbers of ranks.
    pub fn all(&self) -> Vec<String> {
        self.times.values().flat_map(BTreeMap::keys).map(named).collect()
    }
}

/// Data of one number of ranks on several layouts.
#[derive(Debug)]
pub struct LayoutConflict {
    /// The first row that differs from one before.
    first: Box<FileError>,
    /// How many times there are on each layout, where there are several of a number of ranks.
    times: BTreeMap<u32, BTreeMap<Layout, u64>>,
    /// Layouts that can be imported together.
    choices: Vec<Vec<Layout>>,
}

impl LayoutConflict {
    /// Lists of layouts that can be imported together, as `--layouts` takes them.
    pub fn choices(&self) -> impl Iterator<Item = String> {
        self.choices.iter().map(|layouts| layouts.iter().map(named).collect::<Vec<_>>().join(","))
    }
}

/// A layout with its ranks per node, though there be one: `16x1`.
pub fn named(layout: &Layout) -> String {
    match layout.is_flat() {
        true => format!("{}x1", layout.procs()),
        false => layout.to_string(),
    }
}

impl std::error::Error for LayoutConflict {}

impl fmt::Display for LayoutConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.first)?;
        for (procs, layouts) in &self.times {
            let each = layouts
                .iter()
                .map(|(layout, times)| format!("{} ({})", named(layout), counted(*times, "row")));
            write!(f, "\n  {procs} ranks: {}", each.collect::<Vec<_>>().join(", "))?;
        }
        write!(f, "\nchoose some with --layouts, and import others into a run of their own")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(text: &str) -> Option<RanksOnNodes> {
        Some(text.parse().unwrap())
    }

    fn fault(field: &str, problem: String) -> FileError {
        FileError::new(std::path::Path::new("f"), problem).in_field(field)
    }

    /// The first ranks of a job lie as its nodes are filled.
    #[test]
    fn parts_of_a_job_have_layouts_of_their_own() {
        let mut found = FoundLayouts::default();
        for (procs, of) in [(4, "16x1"), (4, "4x1"), (16, "16x1"), (3, "4x1")] {
            let taken = found.take(procs, job(of), None, fault).unwrap();
            assert_eq!(taken, LayoutUse::Taken, "{procs} of {of}");
        }
        assert_eq!(found.take(4, job("4x4"), None, fault).unwrap(), LayoutUse::InConflict);
        assert_eq!(found.take(4, None, None, fault).unwrap(), LayoutUse::Taken);
        let told = found.take(17, job("4x4"), None, fault).unwrap_err().to_string();
        assert!(told.contains("field procs: is 17, but the job has 4x4 ranks"), "{told}");
        let conflict = found.check().unwrap_err();
        let wanted = "f, field layout: 4 ranks as 1x4, but as 4x1 in an earlier row";
        assert!(conflict.to_string().starts_with(wanted), "{conflict}");
        assert_eq!(conflict.choices().collect::<Vec<_>>(), ["3x1,4x1,16x1", "1x4"]);
    }

    #[test]
    fn what_is_not_wanted_is_counted() {
        let mut found = FoundLayouts::default();
        let wanted: Vec<Layout> = vec!["4x4".parse().unwrap()];
        for (of, is) in [
            ("16x1", LayoutUse::Unwanted),
            ("4x4", LayoutUse::Taken),
            ("16x1", LayoutUse::Unwanted),
        ] {
            assert_eq!(found.take(16, job(of), Some(&wanted), fault).unwrap(), is);
        }
        assert_eq!(found.take(16, None, Some(&wanted), fault).unwrap(), LayoutUse::Unwanted);
        assert!(found.check().is_ok());
        assert_eq!(found.left_out(&wanted), ["left out: 16 ranks as 16x1 (2 rows)"]);
    }
}
