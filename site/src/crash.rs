//! Which rank crashed, or which node is lost, from what launchers say of it.

/// In a few words, from a line that a launcher printed; nothing where it tells of no crash.
pub fn in_line(line: &str) -> Option<String> {
    by_srun(line)
        .or_else(|| by_open_mpi(line))
        .or_else(|| by_hydra(line))
        .or_else(|| lost_node(line))
}

/// `srun: error: v1: task 3: Segmentation fault (core dumped)`; tasks that were ended because of it are
/// `Killed` or `Terminated`.
fn by_srun(line: &str) -> Option<String> {
    let (host, rest) = line.trim().strip_prefix("srun: error: ")?.split_once(": task ")?;
    let (rank, how) = rest.split_once(": ")?;
    rank.parse::<u32>().ok()?;
    let ended = how.starts_with("Terminated") || how.starts_with("Killed");
    let by_itself = how.starts_with("Exited with");
    (!ended && !by_itself).then(|| format!("rank {rank} on {host} crashed: {how}"))
}

/// `mpirun noticed that process rank 3 with PID 0 on node v1 exited on signal 11 (Segmentation fault).`
fn by_open_mpi(line: &str) -> Option<String> {
    let rest = line.split_once("noticed that process rank ")?.1;
    let (rank, rest) = rest.split_once(" with PID ")?;
    let (host, how) = rest.split_once(" on node ")?.1.split_once(" exited on ")?;
    let (rank, how) = (rank.parse::<u32>().ok()?, how.trim_end_matches('.'));
    Some(format!("rank {rank} on {host} crashed: {how}"))
}

/// `YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)`
fn by_hydra(line: &str) -> Option<String> {
    let how = line.split_once("TERMINATED WITH THE EXIT STRING: ")?.1.trim();
    let ended = how.starts_with("Terminated") || how.starts_with("Killed");
    (!ended).then(|| format!("a rank crashed: {how}"))
}

/// `srun: error: Task launch for StepId=8.4 failed on node v3: Communication connection failure`; `srun: error:
/// Node failure on v3`. Slurm takes a while to see itself that a node is lost.
fn lost_node(line: &str) -> Option<String> {
    let said = line.trim().strip_prefix("srun: error: ")?;
    let node = match said.strip_prefix("Node failure on ") {
        Some(node) => node,
        None => {
            let (node, why) = said
                .strip_prefix("Task launch for ")?
                .split_once(" failed on node ")?
                .1
                .split_once(": ")?;
            why.contains("onnection").then_some(node)?
        }
    };
    Some(format!("node {} does not answer", node.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_launchers_words_are_understood() {
        for (line, wanted) in [
            (
                "srun: error: v1: task 3: Segmentation fault (core dumped)",
                Some("rank 3 on v1 crashed: Segmentation fault (core dumped)"),
            ),
            ("srun: error: v1: task 3: Terminated", None),
            ("srun: error: v1: tasks 4-5: Terminated", None),
            ("srun: error: v1: task 3: Exited with exit code 1", None),
            (
                "mpirun noticed that process rank 3 with PID 812 on node v1 exited on signal 11 \
                 (Segmentation fault).",
                Some("rank 3 on v1 crashed: signal 11 (Segmentation fault)"),
            ),
            (
                "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Aborted (signal 6)",
                Some("a rank crashed: Aborted (signal 6)"),
            ),
            (
                "srun: error: Task launch for StepId=8.4 failed on node v3: Communication connection \
                 failure",
                Some("node v3 does not answer"),
            ),
            ("srun: error: Node failure on v3", Some("node v3 does not answer")),
            ("srun: error: Task launch for StepId=8.4 failed on node v3: Invalid argument", None),
            ("an error", None),
        ] {
            assert_eq!(in_line(line).as_deref(), wanted, "{line}");
        }
    }
}
