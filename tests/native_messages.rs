//! Who sends to whom when Open MPI runs an algorithm: what its methods are predicted by is what they
//! do. Open MPI's own component pml/monitoring writes the messages down.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use libraries::openmpi::algorithms;
use models::native_schedule;
use records::{Collective, Library, Native};
use schedules::{Call, Round, Step};

use crate::{
    skipped::skipped,
    support::{compiled_by_open_mpi, have_mpirun},
};

/// One call of the collective named.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#define IS(name) if (!strcmp(argv[1], name))
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int count = atoi(argv[2]), ranks;
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Comm_size(all, &ranks);
    char *in = calloc(count + 1, ranks), *out = calloc(count + 1, ranks);
    IS("bcast") MPI_Bcast(in, count, MPI_BYTE, 0, all);
    IS("reduce") MPI_Reduce(in, out, count, MPI_BYTE, MPI_BXOR, 0, all);
    IS("allreduce") MPI_Allreduce(in, out, count, MPI_BYTE, MPI_BXOR, all);
    IS("allgather") MPI_Allgather(in, count, MPI_BYTE, out, count, MPI_BYTE, all);
    IS("alltoall") MPI_Alltoall(in, count, MPI_BYTE, out, count, MPI_BYTE, all);
    IS("gather") MPI_Gather(in, count, MPI_BYTE, out, count, MPI_BYTE, 0, all);
    IS("scatter") MPI_Scatter(in, count, MPI_BYTE, out, count, MPI_BYTE, 0, all);
    MPI_Finalize();
    return 0;
}
"#;

/// Messages and bytes of each pair of ranks.
type SentMessages = BTreeMap<(u32, u32), (u64, u64)>;

/// What went from whom to whom; nothing where the component is not there.
fn seen(
    program: &Path,
    (collective, id): (Collective, u32),
    call: &Call<'_>,
) -> Option<SentMessages> {
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path().join("notes");
    let algorithm = format!("coll_tuned_{collective}_algorithm");
    let mut settings = vec![
        ("mpi_yield_when_idle".to_owned(), "1".to_owned()),
        ("pml_monitoring_enable".into(), "2".into()),
        ("pml_monitoring_enable_output".into(), "3".into()),
        ("pml_monitoring_filename".into(), notes.display().to_string()),
        ("coll_tuned_use_dynamic_rules".into(), "1".into()),
        (format!("{algorithm}_segmentsize"), call.segment.to_string()),
        (format!("{algorithm}_chain_fanout"), "4".into()),
    ];
    settings.push((algorithm, id.to_string()));
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-np", &call.ranks.to_string()]);
    for (name, value) in &settings {
        command.args(["--mca", name, value]);
    }
    command.arg(program).args([collective.name(), &call.count.to_string()]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut traffic = SentMessages::new();
    let mut is_written = false;
    for file in fs::read_dir(dir.path()).unwrap() {
        is_written = true;
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        // I: inside a collective; sender, receiver, bytes, the word, messages.
        for line in text.lines().filter(|line| line.starts_with('I')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |index: usize| words[index].parse::<u64>().unwrap();
            traffic.insert((number(1) as u32, number(2) as u32), (number(5), number(3)));
        }
    }
    is_written.then_some(traffic)
}

/// The same by the schedule.
fn scheduled(entry: &schedules::Entry, call: &Call<'_>) -> SentMessages {
    let mut traffic = SentMessages::new();
    let mut round = Round::default();
    for rank in 0..call.ranks {
        let mut index = 0;
        while entry.round(call, rank, index, &mut round) {
            for step in round.steps() {
                if let Step::Send { peer, range, .. } | Step::SendReady { peer, range, .. } = step {
                    let sum = traffic.entry((rank, *peer)).or_default();
                    *sum = (sum.0 + 1, sum.1 + range.count);
                }
            }
            index += 1;
        }
    }
    traffic
}

/// Algorithms of Open MPI whose messages are not those of the schedule on these ranks, and why.
fn differs(collective: Collective, algorithm: &str, ranks: u32) -> Option<&'static str> {
    match (collective, algorithm) {
        (Collective::Bcast, "scatter-allgather") if !ranks.is_power_of_two() => {
            Some("ranks beyond a power of two get what they lack from others")
        }
        // 1050 of the 8400 elements on each of 8 ranks, in segments of 100.
        (Collective::Allreduce, "segmented-ring") if ranks == 8 => {
            Some("a last segment of at most half goes with the one before")
        }
        (Collective::Allgather, "recursive-doubling") if !ranks.is_power_of_two() => {
            Some("another algorithm runs in its place")
        }
        (Collective::Allreduce | Collective::Reduce, "rabenseifner")
            if !ranks.is_power_of_two() =>
        {
            Some("ranks beyond a power of two are folded in by halves of the vector")
        }
        (Collective::Alltoall, "linear") => {
            Some("its requests are persistent, which pml/monitoring does not see")
        }
        _ => None,
    }
}

fn check(test: &str, ranks: u32, chosen: impl Fn(Collective) -> bool) {
    let Some(_turn) = have_mpirun(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compiled_by_open_mpi(dir.path(), PROGRAM) else {
        return skipped(test, "no mpicc here");
    };
    let openmpi = Library::new("openmpi").unwrap();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for collective in Collective::ALL.into_iter().filter(|collective| chosen(*collective)) {
        for row in algorithms(collective) {
            let native = Native { library: openmpi, algorithm: row.algorithm, segment_bytes: 0 };
            let Some(entry) = native_schedule(collective, &native) else { continue };
            // A multiple of all numbers of ranks, and of segments in both halves.
            let segment = if row.segmented { 100 } else { 0 };
            let call = Call { segment, ..Call::new(ranks, 8_400) };
            let name = row.algorithm.name();
            if entry.check(&call).is_err() || differs(collective, name, ranks).is_some() {
                continue;
            }
            let Some(seen) = seen(&program, (collective, row.id), &call) else {
                return skipped(test, "this Open MPI has no pml/monitoring");
            };
            compared += 1;
            let wanted = scheduled(entry, &call);
            if seen != wanted {
                wrong.push(format!(
                    "{collective} {name} on {ranks}:\n  seen {seen:?}\n  predicted by {wanted:?}"
                ));
            }
        }
    }
    assert!(compared > 0 && wrong.is_empty(), "{compared} compared\n{}", wrong.join("\n"));
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn broadcasts_and_reductions_of_open_mpi_send_what_they_are_predicted_by() {
    let test = "broadcasts_and_reductions_of_open_mpi_send_what_they_are_predicted_by";
    check(test, 8, |collective| matches!(collective, Collective::Bcast | Collective::Reduce));
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn other_collectives_and_odd_numbers_of_ranks_send_what_they_are_predicted_by() {
    let test = "other_collectives_and_odd_numbers_of_ranks_send_what_they_are_predicted_by";
    let others = [
        Collective::Allreduce,
        Collective::Allgather,
        Collective::Alltoall,
        Collective::Gather,
        Collective::Scatter,
    ];
    check(test, 8, |collective| others.contains(&collective));
    check(test, 7, |collective| {
        others.contains(&collective) || matches!(collective, Collective::Bcast | Collective::Reduce)
    });
}
