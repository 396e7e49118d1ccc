//! The layouts on which imported jobs ran.

use std::collections::{BTreeMap, HashMap};

use records::{FileError, Layout, counted};

/// The layouts that were found.
#[derive(Debug, Default)]
pub struct FoundLayouts {
    /// How many rows there are of each.
    rows: BTreeMap<Layout, u64>,
    /// Of the first `procs` ranks of a job.
    of_first: HashMap<(u32, Layout), Layout>,
    /// Whether any of so many pairs shares a node.
    shares_a_node: HashMap<(u32, Layout), bool>,
}

impl FoundLayouts {
    /// Takes in a row of a job and tells where its ranks lay: the first ones of the job. Where nobody tells the
    /// job's nodes, each rank is taken to have one of its own. Nothing where other layouts are wanted; `fault` makes
    /// an error of a field and a problem.
    ///
    /// # Errors
    /// The job cannot have had so many ranks.
    pub fn take(
        &mut self,
        procs: u32,
        job: Option<Layout>,
        wanted: Option<&[Layout]>,
        fault: impl Fn(&str, String) -> FileError,
    ) -> Result<Option<Layout>, FileError> {
        let Some(job) = job else {
            return Ok(wanted.is_none().then_some(Layout::flat(procs)));
        };
        let layout = match self.of_first.get(&(procs, job)) {
            Some(known) => *known,
            None => {
                let first = job.of_first(procs).ok_or_else(|| {
                    fault("procs", format!("is {procs}, but the job has {job:#} ranks"))
                })?;
                self.of_first.insert((procs, job), first);
                first
            }
        };
        *self.rows.entry(layout).or_default() += 1;
        Ok(wanted.is_none_or(|wanted| wanted.contains(&layout)).then_some(layout))
    }

    /// Whether ranks that send each other messages share a node. Rank i and rank i + `pairs` make a pair, in all tools.
    /// Where the pairs are not of a job's first ranks and the job has others, which ranks they are is not known: then
    /// only a job of one node says it.
    pub fn share_a_node(&mut self, pairs: u32, is_of_first: bool, job: Layout) -> bool {
        if job.nodes() == 1 {
            return true;
        }
        let ranks = pairs.saturating_mul(2);
        if job.procs() < ranks || (job.procs() != ranks && !is_of_first) {
            return false;
        }
        *self.shares_a_node.entry((pairs, job)).or_insert_with(|| {
            let nodes = job.nodes_of_ranks();
            let (first, second) = nodes.split_at(pairs as usize);
            first.iter().zip(second).any(|(one, other)| one == other)
        })
    }

    /// What was left out since other layouts were wanted.
    pub fn left_out(&self, wanted: &[Layout]) -> Vec<String> {
        let left_out = self.rows.iter().filter(|(layout, _)| !wanted.contains(layout));
        let in_words = |(layout, rows): (&Layout, &u64)| {
            let ranks = counted(layout.procs(), "rank");
            format!("left out: {ranks} as {layout:#} ({})", counted(*rows, "row"))
        };
        left_out.map(in_words).collect()
    }

    /// All layouts found, in words.
    pub fn all(&self) -> String {
        in_words(self.rows.keys())
    }
}

/// Layouts with their ranks per node, though there be one: `16x1, 4x4`.
pub fn in_words<'a>(layouts: impl IntoIterator<Item = &'a Layout>) -> String {
    let names: Vec<String> = layouts.into_iter().map(|layout| format!("{layout:#}")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> Layout {
        text.parse().unwrap()
    }

    fn fault(field: &str, problem: String) -> FileError {
        FileError::new(std::path::Path::new("f"), problem).in_field(field)
    }

    /// The first ranks of a job lie as its nodes are filled.
    #[test]
    fn parts_of_a_job_have_layouts_of_their_own() {
        let mut found = FoundLayouts::default();
        for (procs, of, wanted) in [
            (4, "16x1", "4x1"),
            (4, "4x4", "1x4"),
            (16, "16x1", "16x1"),
            (16, "4x4", "4x4"),
            (6, "4x4", "4+2"),
            (4, "4x4:cyclic", "4x1"),
        ] {
            let taken = found.take(procs, Some(layout(of)), None, fault).unwrap();
            assert_eq!(taken, Some(layout(wanted)), "{procs} of {of}");
        }
        assert_eq!(found.take(4, None, None, fault).unwrap(), Some(Layout::flat(4)));
        let error = found.take(17, Some(layout("4x4")), None, fault).unwrap_err().to_string();
        assert!(error.contains("field procs: is 17, but the job has 4x4 ranks"), "{error}");
        assert_eq!(found.all(), "4x1, 1x4, 4+2, 16x1, 4x4");
    }

    #[test]
    fn pairs_within_a_node_are_known() {
        let mut found = FoundLayouts::default();
        for (pairs, is_of_first, job, wanted) in [
            (1, true, "4x4", true),
            (1, true, "16x1", false),
            (1, true, "4x4:cyclic", false),
            (2, true, "4x4", true),
            // 0 and 3 are on one node, the other pairs on two.
            (3, true, "4x4", true),
            (4, true, "4x4", false),
            (8, true, "4x4", false),
            (1, false, "1x2", true),
            (1, false, "2x1", false),
            (8, false, "2x8", false),
            (8, false, "2x8:cyclic", true),
            (1, false, "2x32", false),
        ] {
            let told = found.share_a_node(pairs, is_of_first, layout(job));
            assert_eq!(told, wanted, "{pairs} of {job}");
        }
    }

    #[test]
    fn what_is_not_wanted_is_counted() {
        let mut found = FoundLayouts::default();
        let wanted = [layout("4x4")];
        let mut take =
            |job: Option<&str>| found.take(16, job.map(layout), Some(&wanted), fault).unwrap();
        assert_eq!(take(Some("16x1")), None);
        assert_eq!(take(Some("4x4")), Some(wanted[0]));
        assert_eq!(take(Some("16x1")), None);
        assert_eq!(take(None), None);
        assert_eq!(found.left_out(&wanted), ["left out: 16 ranks as 16x1 (2 rows)"]);
    }
}
