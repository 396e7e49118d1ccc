//! Nodes with a network inside: both levels have a known truth.

use colibri_testbed::{InsideNetwork, Mpich};
use records::RankPlacement;

use super::*;

/// Nodes of ranks at 10 Mbit/s and 1 ms, inside 100 Mbit/s and 100 us.
fn nested(suffix: &str, ranks_per_node: &str, placement: RankPlacement) -> Standing {
    let inside: InsideNetwork = "100mbit,100us".parse().unwrap();
    let ranks_per_node: colibri_testbed::RanksPerNode = ranks_per_node.parse().unwrap();
    let nodes = ranks_per_node.to_string().split(',').count().max(2) as u32;
    let spec = Spec::new(&name(suffix), nodes, "10mbit".parse().unwrap()).unwrap();
    let spec = spec.with_ranks_per_node(ranks_per_node).unwrap();
    let spec = Spec { placement, ..spec };
    let links = LinkOptions { inside: Some(inside), ..links() };
    Standing { testbed: up(&spec.with_links(links).unwrap()).unwrap() }
}

/// A test's C program, built for Open MPI; none, said, where it can't be.
fn built_for_open_mpi(folder: &Path, program: &str) -> Option<(OpenMpi, String)> {
    match (OpenMpi::find(), built("mpicc", folder, program)) {
        (Ok(mpi), Some(program)) => Some((mpi, program)),
        _ => {
            skipped("ranks in a network inside nodes", "needs Open MPI");
            None
        }
    }
}

#[test]
fn ranks_of_a_node_share_its_name_and_each_has_a_port() {
    need!(can_make_taps(), "root and TAP devices");
    let Ok(mpi) = OpenMpi::find() else {
        return skipped("ranks in a network inside nodes", "needs Open MPI");
    };
    let standing = nested("in", "2,3,1", RankPlacement::Block);
    let name = standing.name().to_string();
    let told = status().unwrap().into_iter().find(|testbed| testbed.name == name).unwrap();
    assert_eq!((told.condition, told.nodes), (Condition::Standing, 3));
    // Ranks are 0 and 1, 2 to 4, 5; their ports come after the three nodes'.
    let tell = "echo $OMPI_COMM_WORLD_RANK $(uname -n) $(ip -4 -o address show dev eth0)";
    let text = standing.mpirun(&mpi, 6, &["sh", "-c", tell]);
    let mut seen: Vec<String> = text
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            format!("{} {} {}", words[0], words[1], words[5])
        })
        .collect();
    seen.sort_unstable();
    let place = |(rank, node): (u32, u32)| format!("{rank} {name}-n{node} 10.77.0.{}/24", 4 + rank);
    let expected: Vec<_> = [0, 0, 1, 1, 1, 2].into_iter().enumerate().collect();
    assert_eq!(seen, expected.iter().map(|(r, n)| place((*r as u32, *n))).collect::<Vec<_>>());
    assert_eq!(down(&name).unwrap().namespaces, 1 + 3 + 6);
    assert!(nothing_is_left_of(&name));
}

#[test]
fn ranks_are_dealt_to_nodes_in_turn_where_that_is_asked_for() {
    need!(can_make_taps(), "root and TAP devices");
    let folder = tempfile::tempdir().unwrap();
    let Some((mpi, who)) = built_for_open_mpi(folder.path(), "who") else { return };
    for (placement, nodes) in
        [(RankPlacement::Block, [0, 0, 1, 1, 1]), (RankPlacement::Cyclic, [0, 1, 0, 1, 1])]
    {
        let standing = nested("deal", "2,3", placement);
        let text = standing.mpirun(&mpi, 5, &[&who]);
        let mut seen: Vec<&str> = text.lines().collect();
        seen.sort_unstable();
        let count = |node| nodes.iter().filter(|other| **other == node).count();
        let place = |(rank, node): (usize, &usize)| {
            format!("{rank} {}-n{node} with {}", standing.name(), count(*node))
        };
        assert_eq!(seen, nodes.iter().enumerate().map(place).collect::<Vec<_>>());
    }
}

/// Coarse, and the least of many: other tests take the processors meanwhile. With two ranks on each of
/// two nodes, the first two ranks are on one node by block, on two in turn.
#[test]
fn both_levels_have_their_latency_and_their_rate() {
    need!(can_make_taps(), "root and TAP devices");
    let folder = tempfile::tempdir().unwrap();
    let Some((mpi, pingpong)) = built_for_open_mpi(folder.path(), "pingpong") else { return };
    for (placement, latency, rate) in
        [(RankPlacement::Block, 115e-6, 100e6), (RankPlacement::Cyclic, 1.264e-3, 10e6)]
    {
        let standing = nested("both", "2,2", placement);
        let attempts: Vec<(f64, f64)> = (0..3)
            .map(|_| {
                let text = standing.mpirun(&mpi, 2, &[&pingpong, "1", "65536", "262144"]);
                let times: Vec<f64> = text
                    .lines()
                    .map(|line| line.split(' ').nth(1).unwrap().parse().unwrap())
                    .collect();
                (times[0], (times[2] - times[1]) / 196_608.0)
            })
            .collect();
        let least = attempts.iter().map(|attempt| attempt.0).fold(f64::MAX, f64::min);
        assert!((latency..latency + 200e-6).contains(&least), "{placement}: {attempts:?}");
        let truth = 8.0 / rate * 1514.0 / 1448.0;
        let is_true = |per_byte: f64| (0.97..1.05).contains(&(per_byte / truth));
        assert!(
            attempts.iter().any(|attempt| is_true(attempt.1)),
            "{placement}: {attempts:?}, {truth}"
        );
    }
}

#[test]
fn more_ports_than_the_switch_has_are_refused() {
    let inside = Some("100mbit,100us".parse().unwrap());
    let spec = Spec::new("many", 40, "10mbit".parse().unwrap()).unwrap();
    let spec = spec.with_ranks_per_node("6".parse().unwrap()).unwrap();
    let error = spec.with_links(LinkOptions { inside, ..links() }).unwrap_err().to_string();
    assert!(error.contains("240 ranks") && error.contains("are 280 ports"), "{error}");
}

/// By MPICH nodes are told by their names alone where they have insides.
#[test]
fn mpich_starts_on_nodes_with_insides_and_without() {
    need!(can_make_taps(), "root and TAP devices");
    let folder = tempfile::tempdir().unwrap();
    let built = built("mpicc.mpich", folder.path(), "who");
    let (Some(who), Ok(mpi)) = (built, Mpich::find()) else {
        return skipped("MPICH on a virtual cluster", "needs MPICH");
    };
    let plain = Standing::up("mpich", 2, "100mbit", "2");
    let inside = nested("mpin", "2,2", RankPlacement::Cyclic);
    for (standing, nodes) in [(plain, [0, 0, 1, 1]), (inside, [0, 1, 0, 1])] {
        // Debian's MPICH now and then never comes out of MPI_Finalize over TCP; all has been said then.
        let mut command =
            standing.testbed.mpiexec(&mpi, 4, &Shims { tracer: None, ..shims() }, &[]).unwrap();
        let mut child = command.arg(&who).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen: Vec<String> = (0..4).map(|_| lines.next().unwrap().unwrap()).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        seen.sort_unstable();
        for (rank, node) in nodes.into_iter().enumerate() {
            let place = format!("{rank} {}-n{node} with", standing.name());
            assert!(seen[rank].starts_with(&place), "{seen:?}");
        }
    }
}
