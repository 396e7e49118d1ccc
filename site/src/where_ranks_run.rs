//! What the first job reported, in words.

use std::collections::BTreeSet;

use anyhow::Result;
use records::{
    first_job::{FirstJob, NodeFacts, StartSpread, processors},
    quantity::format_seconds,
};
use timing::starts::scheme_for;

use crate::{allocation::Allocation, usage};

/// `8 ranks on 4 nodes, 2 on each, in blocks; Open MPI v4.1.4; pml ob1; btl self, tcp`.
pub fn line(first_job: &FirstJob) -> String {
    let counts: BTreeSet<usize> = first_job.nodes.iter().map(|node| node.ranks.len()).collect();
    let each = match (counts.first(), counts.last()) {
        (Some(least), Some(most)) if least != most => format!("{least} to {most} on each"),
        (Some(all), _) => format!("{all} on each"),
        _ => String::new(),
    };
    let dealt = if first_job.is_in_blocks() { "in blocks" } else { "dealt out" };
    let library = first_job.platform.library();
    let transport = match first_job.platform.transport.as_str() {
        "" => String::new(),
        transport => format!("; {transport}"),
    };
    let (ranks, nodes) = (first_job.platform.hosts.len(), first_job.nodes.len());
    let (ranks, nodes) = (records::counted(ranks, "rank"), records::counted(nodes, "node"));
    format!("{ranks} on {nodes}, {each}, {dealt}; {library}{transport}")
}

/// What makes times worth less, or loading fail.
pub fn warnings(first_job: &FirstJob, allocation: Option<&Allocation>) -> Vec<String> {
    let mut warnings = Vec::new();
    let used = first_job.nodes.len() as u32;
    if let Some((held, nodes)) = allocation.and_then(|held| Some((held, held.nodes?)))
        && used < nodes.min(first_job.platform.hosts.len() as u32)
    {
        warnings.push(format!(
            "the ranks are on {used} of the {nodes} nodes that {} gave (by host names); tell the launcher \
             to use them all, as by -N {{nodes}} or --host {{hosts}}",
            held.system.title()
        ));
    }
    let crowded = first_job.nodes.iter().filter(|node| node.ranks.len() > node.processors as usize);
    // A virtual cluster's nodes share one machine, which it takes into account.
    if let (Some(node), true) = (crowded.clone().next(), first_job.platform.testbed.is_empty()) {
        let count = crowded.count();
        let hold = if count == 1 { "node holds" } else { "nodes hold" };
        warnings.push(format!(
            "{count} {hold} more ranks than processors ({}: {} ranks, {} processors): the scheduler's time slices \
             add milliseconds to times",
            node.host,
            node.ranks.len(),
            node.processors
        ));
    }
    if let Some(node) = unbound(first_job) {
        warnings.push(format!(
            "the ranks are not bound to cores ({}: each may run on {} processors), so that times differ by 10 to 20 % \
             between jobs; bind them as applications are to be started, as by mpirun --bind-to core or srun \
             --cpu-bind=cores",
            node.host, node.processors
        ));
    }
    if let Some(blind) = blind(first_job) {
        warnings.push(format!("{blind} cannot see the directory of the run"));
    }
    warnings
}

/// Fewer processors leave the scheduler hardly a choice: two ranks on two of them stay where they are.
const MIN_PROCESSORS: u32 = 4;

/// A node of several ranks, each of which may run on all of its processors; a virtual cluster's nodes share one
/// machine.
fn unbound(first_job: &FirstJob) -> Option<&NodeFacts> {
    let may_move = |rank: &u32| {
        let allowed = first_job.allowed_processors.get(*rank as usize);
        allowed.map(|list| processors(list).count() as u32)
    };
    let is_unbound = |node: &&NodeFacts| {
        let all = Some(node.processors);
        node.processors >= MIN_PROCESSORS
            && node.ranks.len() > 1
            && node.ranks.iter().all(|rank| may_move(rank) >= all)
    };
    first_job.nodes.iter().find(is_unbound).filter(|_| first_job.platform.testbed.is_empty())
}

/// The nodes that do not see the directory of the run, in short; nothing where all do.
fn blind(first_job: &FirstJob) -> Option<String> {
    let blind = first_job.nodes.iter().filter(|node| !node.sees_run);
    let blind: Vec<&str> = blind.map(|node| node.host.as_str()).collect();
    match blind[..] {
        [] => None,
        [only] => Some(only.into()),
        [first, ..] => Some(format!("{} nodes ({first}, ...)", blind.len())),
    }
}

/// Whether what lies in the directory of the run can be loaded on all nodes. Where some read a file of
/// rules and others do not find it, they run different algorithms, and may wait for each other for ever.
///
/// # Errors
/// It can't.
pub fn check_loading(first_job: &FirstJob) -> Result<()> {
    if let Some(blind) = blind(first_job) {
        usage!(
            "{blind} cannot see the directory of the run, from which all ranks load what is tuned; name one \
             on a file system that all nodes share (`colibri verify` and `calibrate` need none)"
        );
    }
    Ok(())
}

/// `ranks start 1.2 ms apart after a barrier, 80 us at an agreed instant: calls are timed by global`; nothing
/// where it was not tried.
pub fn starts(first_job: &FirstJob) -> Option<String> {
    let StartSpread { barrier_seconds, agreed_seconds } = first_job.start_spread?;
    Some(format!(
        "ranks start {} apart after a barrier, {} at an agreed instant of one clock: calls are timed by {}",
        format_seconds(barrier_seconds),
        format_seconds(agreed_seconds),
        scheme_for(barrier_seconds, agreed_seconds).name()
    ))
}

/// Says it on stderr.
pub fn tell(first_job: &FirstJob, allocation: Option<&Allocation>) {
    say!("platform: {}", line(first_job));
    if let Some(starts) = starts(first_job) {
        say!("platform: {starts}");
    }
    for warning in warnings(first_job, allocation) {
        say!("platform: {warning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::BatchSystem;
    use records::platform::Platform;

    fn told(ranks_of: &[&[u32]]) -> FirstJob {
        let node = |(index, ranks): (usize, &&[u32])| NodeFacts {
            host: format!("n{index}"),
            ranks: ranks.to_vec(),
            processors: 2,
            memory_bytes: None,
            memory_limit_bytes: None,
            sees_run: index != 1,
        };
        let ranks: usize = ranks_of.iter().map(|ranks| ranks.len()).sum();
        let platform = Platform {
            hosts: vec!["n".into(); ranks],
            mpi_library: "Open MPI v4.1.4, package: Debian".into(),
            transport: "pml ob1".into(),
            ..Platform::default()
        };
        let nodes = ranks_of.iter().enumerate().map(node).collect();
        FirstJob {
            platform,
            allowed_processors: vec!["0-1".into(); ranks],
            nodes,
            start_spread: None,
        }
    }

    #[test]
    fn placement_is_told() {
        let blocks = line(&told(&[&[0, 1], &[2, 3]]));
        assert_eq!(blocks, "4 ranks on 2 nodes, 2 on each, in blocks; Open MPI v4.1.4; pml ob1");
        let dealt = line(&told(&[&[0, 2], &[1]]));
        assert!(dealt.starts_with("3 ranks on 2 nodes, 1 to 2 on each, dealt out;"), "{dealt}");
    }

    #[test]
    fn what_goes_wrong_is_told() {
        assert_eq!(warnings(&told(&[&[0, 1]]), None), Vec::<String>::new());
        let nodes = Some(4);
        let held = Allocation { nodes, ..Allocation::unknown(BatchSystem::Pbs, "1".into()) };
        let all = warnings(&told(&[&[0, 1, 2], &[3]]), Some(&held));
        assert_eq!(all.len(), 3, "{all:?}");
        assert!(all[0].contains("2 of the 4 nodes that PBS gave"), "{all:?}");
        assert!(
            all[1].starts_with("1 node holds more ranks than processors (n0: 3 ranks, 2 "),
            "{all:?}"
        );
        assert!(all[2].contains("n1 cannot see the directory"), "{all:?}");
    }

    #[test]
    fn ranks_that_may_run_on_all_processors_of_a_node_are_not_bound() {
        let with = |processors: u32, allowed: [&str; 2]| {
            let mut told = told(&[&[0, 1]]);
            told.nodes[0].processors = processors;
            told.allowed_processors = allowed.map(str::to_owned).to_vec();
            warnings(&told, None)
        };
        let all = with(16, ["0-15", "0-15"]);
        assert!(
            all[0].starts_with("the ranks are not bound to cores (n0: each may run on 16 "),
            "{all:?}"
        );
        for (processors, bound) in [(16, ["0", "1"]), (16, ["0-7", "8-15"]), (2, ["0-1", "0-1"])] {
            assert_eq!(with(processors, bound), Vec::<String>::new());
        }
        let mut cluster = told(&[&[0, 1]]);
        cluster.nodes[0].processors = 16;
        cluster.allowed_processors = vec!["0-15".into(); 2];
        cluster.platform.testbed = "2 nodes at 100mbit".into();
        assert_eq!(warnings(&cluster, None), Vec::<String>::new());
    }

    #[test]
    fn what_some_nodes_do_not_see_is_not_loaded() {
        assert!(check_loading(&told(&[&[0, 1]])).is_ok());
        let error = check_loading(&told(&[&[0], &[1]])).unwrap_err().to_string();
        assert!(error.starts_with("n1 cannot see the directory"), "{error}");
        assert!(error.contains("file system that all nodes share"), "{error}");
    }
}
