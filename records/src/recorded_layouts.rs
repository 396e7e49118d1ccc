//! Which communicators the numbers of processes in a record stand for.

use std::collections::BTreeMap;

use crate::{Layout, layout, observation::CollectiveCall, plan::Plan, platform::Platform};

/// Tells the layouts of a record whose job had several ranks on several nodes.
///
/// A number of processes stands for the job's first ranks where it is more than there are nodes, and,
/// in records of versions that knew no layouts, always.
#[derive(Debug, Clone, Copy)]
pub struct RecordedLayouts {
    job: Option<Layout>,
    /// Whether the version that began the record knew no layouts.
    is_old: bool,
}

impl RecordedLayouts {
    /// By a record's header: the hosts of its ranks tell.
    pub fn from_header(header: &BTreeMap<String, String>) -> Self {
        let platform = header.get("platform");
        let platform = platform.and_then(|text| serde_json::from_str::<Platform>(text).ok());
        RecordedLayouts {
            job: platform.and_then(|platform| platform.layout()),
            is_old: !header.contains_key(layout::TOLD),
        }
    }

    /// What a communicator of the record was.
    pub fn tell(self, layout: &mut Layout) {
        let Some(job) = self.job.filter(|_| layout.is_flat()) else { return };
        if self.is_old || layout.procs() > job.nodes() {
            *layout = job.of_first(layout.procs()).unwrap_or(*layout);
        }
    }

    /// The same of a plan, by which the record was made.
    pub fn tell_plan(self, plan: &mut Plan) {
        plan.cells.iter_mut().for_each(|cell| self.tell(&mut cell.layout));
    }

    /// The same of what was observed.
    pub fn tell_calls(self, calls: &mut [CollectiveCall]) {
        calls.iter_mut().for_each(|call| self.tell(&mut call.layout));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(hosts: &[&str], is_old: bool, layout: &str) -> String {
        let hosts = hosts.iter().map(|&host| host.into()).collect();
        let platform = Platform { hosts, ..Platform::default() };
        let mut header =
            BTreeMap::from([("platform".to_owned(), serde_json::to_string(&platform).unwrap())]);
        if !is_old {
            header.insert(layout::TOLD.into(), "2x2".into());
        }
        let mut layout = layout.parse().unwrap();
        RecordedLayouts::from_header(&header).tell(&mut layout);
        format!("{layout:#}")
    }

    #[test]
    fn numbers_of_processes_are_first_ranks_where_they_say_no_more() {
        let block = ["a", "a", "b", "b"];
        for (hosts, is_old, layout, expected) in [
            (block, true, "2", "1x2"),
            (block, true, "3", "2+1"),
            (block, true, "4", "2x2"),
            // What says its nodes stays.
            (block, true, "2x2", "2x2"),
            (block, false, "2", "2x1"),
            (block, false, "4", "2x2"),
            (["a", "b", "a", "b"], true, "2", "2x1"),
            (["a", "b", "a", "b"], true, "4", "2x2:cyclic"),
            // One node, and one rank per node: the number says all.
            (["a"; 4], true, "3", "3x1"),
            (["a", "b", "c", "d"], true, "3", "3x1"),
        ] {
            assert_eq!(told(&hosts, is_old, layout), expected, "{hosts:?} {layout}");
        }
    }
}
