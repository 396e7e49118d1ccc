//! What MPICH and Intel MPI do with what was exported for them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use super::{
    LayoutDecision, ModelDecision, decisions, export, export_of,
    libraries::{self, Library, LibraryCall},
    of, ran,
};
use crate::skipped::skipped;

/// Functions of MPICH that the test program watches.
const WATCHED: [&str; 12] = [
    "Bcast_intra_binomial",
    "Bcast_intra_scatter_recursive_doubling_allgather",
    "Bcast_intra_scatter_ring_allgather",
    "Reduce_intra_binomial",
    "Reduce_intra_reduce_scatter_gather",
    "Allreduce_intra_recursive_doubling",
    "Allreduce_intra_reduce_scatter_allgather",
    "Allgather_intra_brucks",
    "Allgather_intra_recursive_doubling",
    "Allgather_intra_ring",
    "Alltoall_intra_brucks",
    "Alltoall_intra_pairwise",
];

const MPICH: &[ModelDecision] = &[
    ("bcast", 3, 64, "own:scatter-allgather-ring"),
    ("bcast", 3, 512, "own:scatter-allgather-ring"),
    ("bcast", 3, 513, "own:scatter-allgather"),
    ("bcast", 3, 4096, "own:scatter-allgather"),
    ("reduce", 3, 800, "own:rabenseifner"),
    ("allreduce", 3, 800, "own:rabenseifner"),
    ("allreduce", 3, 801, "own:recursive-doubling"),
    ("allreduce", 3, 8000, "own:recursive-doubling"),
    // MPICH counts the blocks of all ranks.
    ("allgather", 2, 1000, "own:recursive-doubling"),
    ("allgather", 3, 1000, "own:ring"),
    ("allgather", 3, 1001, "own:bruck"),
    ("allgather", 3, 2000, "own:bruck"),
    ("alltoall", 3, 1000, "own:bruck"),
    ("alltoall", 3, 1001, "own:pairwise"),
    ("alltoall", 3, 2000, "own:pairwise"),
];

const MPICH_RAN: &[(&str, &str)] = &[
    // Left to the library on both sides of what was decided.
    ("bcast:63", "MPIR_Bcast_intra_binomial"),
    ("bcast:64", "MPIR_Bcast_intra_scatter_ring_allgather"),
    ("bcast:512", "MPIR_Bcast_intra_scatter_ring_allgather"),
    ("bcast:513", "MPIR_Bcast_intra_scatter_recursive_doubling_allgather"),
    ("bcast:4096", "MPIR_Bcast_intra_scatter_recursive_doubling_allgather"),
    ("bcast:4097", "MPIR_Bcast_intra_binomial"),
    ("reduce:800", "MPIR_Reduce_intra_reduce_scatter_gather"),
    ("allreduce:800", "MPIR_Allreduce_intra_reduce_scatter_allgather"),
    ("allreduce:808", "MPIR_Allreduce_intra_recursive_doubling"),
    ("allgather:1000", "MPIR_Allgather_intra_ring"),
    ("allgather:1001", "MPIR_Allgather_intra_brucks"),
    ("alltoall:1000", "MPIR_Alltoall_intra_brucks"),
    ("alltoall:1001", "MPIR_Alltoall_intra_pairwise"),
];

/// The test program in which MPICH's functions are seen; nothing where it can't be linked so.
pub fn watched_program(test: &str, library: &Library, folder: &Path) -> Option<PathBuf> {
    let found = Command::new("cc").arg("-print-file-name=libmpich.a").output().unwrap();
    let archive = String::from_utf8(found.stdout).unwrap().trim().to_owned();
    if !Path::new(&archive).is_absolute() {
        skipped(test, "no libmpich.a, without which nothing shows what ran");
        return None;
    }
    let notes = WATCHED.map(|name| format!("NOTE(MPIR_{name})")).join(" ");
    let wrapped = WATCHED.map(|name| format!("-Wl,--wrap=MPIR_{name}"));
    let linked = [archive.as_str(), "-lpthread", "-lhwloc", "-lucp", "-lucs", "-lm"];
    let flags = [format!("-DWRAPPED={notes}")].into_iter().chain(wrapped);
    let flags: Vec<String> = flags.chain(linked.map(Into::into)).collect();
    Some(library.program(folder, &flags))
}

/// The variables by which what was exported is loaded, as the export says them.
fn settings(said: &str) -> impl Iterator<Item = (&str, &str)> {
    let words = said.split_whitespace().filter(|word| word.starts_with("MPIR_"));
    words.map(|setting| setting.split_once('=').unwrap())
}

/// Starts programs that load it.
fn loading(library: &Library, said: &str) -> Command {
    let mut command = library.launcher();
    command.envs(settings(said));
    command
}

#[test]
fn mpich_4_0_runs_what_its_tuning_file_names() {
    let test = "mpich_4_0_runs_what_its_tuning_file_names";
    let Some(library) = libraries::mpich_4_0(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = watched_program(test, &library, dir.path()) else { return };
    let (file, report, stderr) =
        export(dir.path(), MPICH, &["--target", "mpich", "--target-version", "4.0"]);
    assert_eq!(report["unexpressed"], json!([]), "{stderr}");
    assert_eq!(settings(&stderr).count(), 2, "the file and the device's: {stderr}");
    let command = || loading(&library, &stderr);
    let calls: Vec<&str> = MPICH_RAN.iter().map(|(call, _)| *call).collect();
    let told = libraries::run(&library, command, 3, &program, &calls);
    let wanted = of(MPICH_RAN, &told);
    assert_eq!(ran(&told), wanted, "{}", fs::read_to_string(&file).unwrap());
    // Chosen at 2 for powers of two; what was not tuned is still there.
    let two =
        libraries::run(&library, command, 2, &program, &["allgather:1000", "scan:8", "gather:8"]);
    let wanted = "MPIR_Allgather_intra_recursive_doubling";
    assert!(two.iter().all(|told| told.call != "allgather:1000" || told.ran == wanted), "{two:?}");
}

/// What was chosen for 4 ranks by how they are on nodes.
const BY_NODES: &[LayoutDecision] = &[
    ("bcast", "4x1", 64, "own:scatter-allgather"),
    ("bcast", "4x1", 4096, "own:scatter-allgather"),
    ("bcast", "2x2", 64, "own:scatter-allgather-ring"),
    ("bcast", "2x2", 4096, "own:scatter-allgather-ring"),
    ("bcast", "2x2:cyclic", 64, "own:binomial"),
    ("bcast", "2x2:cyclic", 4096, "own:scatter-allgather"),
    ("allreduce", "4x1", 800, "own:rabenseifner"),
    ("allreduce", "2x2", 800, "own:recursive-doubling"),
];

/// MPICH is told by a variable how many nodes its ranks are to be on, and in which order.
#[test]
fn mpich_4_0_tells_ranks_per_node_and_their_order_apart() {
    let test = "mpich_4_0_tells_ranks_per_node_and_their_order_apart";
    let Some(library) = libraries::mpich_4_0(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = watched_program(test, &library, dir.path()) else { return };
    let (file, report, stderr) =
        export(dir.path(), BY_NODES, &["--target", "mpich", "--target-version", "4.0"]);
    assert_eq!(report["unexpressed"], json!([]), "{stderr}");
    let calls = ["bcast:64", "bcast:4096", "allreduce:800"];
    let doubling = "MPIR_Bcast_intra_scatter_recursive_doubling_allgather";
    let ring = "MPIR_Bcast_intra_scatter_ring_allgather";
    let halving = "MPIR_Allreduce_intra_reduce_scatter_allgather";
    let exchange = "MPIR_Allreduce_intra_recursive_doubling";
    for (nodes, by_block, wanted) in [
        ("4", "0", [doubling, doubling, halving]),
        ("2", "1", [ring, ring, exchange]),
        // Of allreduce nothing was chosen for ranks that are dealt in turn.
        ("2", "0", ["MPIR_Bcast_intra_binomial", doubling, exchange]),
    ] {
        let command = || {
            let mut command = loading(&library, &stderr);
            command.env("MPIR_CVAR_NUM_CLIQUES", nodes);
            command.env("MPIR_CVAR_CLIQUES_BY_BLOCK", by_block);
            command
        };
        let told = libraries::run(&library, command, 4, &program, &calls);
        let wanted: Vec<(&str, &str)> = calls.into_iter().zip(wanted).collect();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(ran(&told), of(&wanted, &told), "{nodes} nodes: {text}");
    }
}

/// MPICH 5.0 hides its functions: a pipeline of single bytes shows in the time, for the sizes for
/// which it was chosen and for no other.
#[test]
#[ignore = "takes minutes: make test-long"]
fn mpich_5_0_runs_what_its_tuning_file_names() {
    let test = "mpich_5_0_runs_what_its_tuning_file_names";
    let Some(library) = libraries::mpich_5_0(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let program = library.program(dir.path(), &[]);
    let slow = "own:pipeline,segment=1B";
    let wanted = [("bcast", 2, 30_000, slow), ("bcast", 2, 40_000, slow)];
    let own = library.directory().join("libmpi.so.12").display().to_string();
    let format = ["--target", "mpich", "--target-version", "5.0", "--target-library", &own];
    let (_, report, stderr) = export(dir.path(), &wanted, &format);
    assert_eq!(report["unexpressed"], json!([]), "{stderr}");
    let command = || loading(&library, &stderr);
    let calls = ["bcast:29999", "bcast:30000", "bcast:40000", "bcast:40001"];
    assert_slow_inside(5.0, || libraries::run(&library, command, 2, &program, &calls));
}

/// The two calls in the middle are slower than those around them, by far. On a busy machine all may
/// be slow: it is tried several times. What has no effect is as fast each time.
#[track_caller]
fn assert_slow_inside(times: f64, mut run: impl FnMut() -> Vec<LibraryCall>) {
    let mut is_slow_inside = || {
        let told = run();
        // Nothing is to be compared where the library fails in one of them by itself.
        let [below, first, last, above] = &told[..] else { return true };
        let (fast, slow) = (below.seconds.max(above.seconds), first.seconds.min(last.seconds));
        eprintln!("{told:?}");
        slow > times * fast
    };
    assert!((0..8).any(|_| is_slow_inside()));
}

/// Intel MPI hides its functions, too: the ring of 4 ranks, which take turns on few cores, shows
/// in the time; by the environment and by the tuning file that the library compiles of it.
#[test]
#[ignore = "takes minutes: make test-long"]
fn intel_mpi_runs_what_its_settings_name() {
    let test = "intel_mpi_runs_what_its_settings_name";
    let Some(library) = libraries::intel(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let program = library.program(dir.path(), &[]);
    let slow = "own:scatter-allgather-ring";
    let wanted = [("bcast", 4, 1000, slow), ("bcast", 4, 2000, slow)];
    let decisions = decisions(dir.path(), &wanted);
    let file = dir.path().join("intel.sh");
    let script = file.display().to_string();
    let compile = format!("{} -n 2 {} barrier:0", library.launcher_path(), program.display());
    let output = crate::support::colibri()
        .envs(library.environment().iter().cloned())
        .args(export_of(&decisions))
        .args(["--target", "intel", "--target-version", "2021.19"])
        .args(["--output", &script, "--compile", &compile])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let calls = ["bcast:999", "bcast:1000", "bcast:2000", "bcast:2001"];
    let by_environment = || library.launcher_behind(&["sh", &script, "4"]);
    assert_slow_inside(3.0, || libraries::run(&library, by_environment, 4, &program, &calls));
    let by_file = || {
        let mut command = library.launcher();
        command.env("I_MPI_TUNING_BIN", dir.path().join("intel.4-4.dat"));
        command
    };
    assert_slow_inside(3.0, || libraries::run(&library, by_file, 4, &program, &calls));
}

/// A choice for each collective of which MPICH has algorithms.
const OF_EACH: &[ModelDecision] = &[
    ("allgather", 2, 64, "own:ring"),
    ("allreduce", 2, 64, "own:recursive-doubling"),
    ("alltoall", 2, 64, "own:pairwise"),
    ("barrier", 2, 0, "own:bruck"),
    ("bcast", 2, 64, "own:scatter-allgather"),
    ("exscan", 2, 64, "own:recursive-doubling"),
    ("gather", 2, 64, "own:binomial"),
    ("reduce", 2, 64, "own:binomial"),
    ("reduce_scatter", 2, 64, "own:pairwise"),
    ("reduce_scatter_block", 2, 64, "own:pairwise"),
    ("scan", 2, 64, "own:recursive-doubling"),
    ("scatter", 2, 64, "own:binomial"),
];

/// It ends programs at once that ask for a message size where a collective has none (barrier), whoever calls it.
#[test]
#[ignore = "takes minutes: make test-long"]
fn mpich_loads_choices_of_every_collective() {
    let test = "mpich_loads_choices_of_every_collective";
    // One at a time: each is held while its programs run.
    let all = [
        (libraries::mpich_4_0 as fn(&str) -> Option<Library>, "4.0"),
        (libraries::mpich_5_0, "5.0"),
    ];
    for (library, version) in all {
        let Some(library) = library(test) else { return };
        let dir = tempfile::tempdir().unwrap();
        let program = library.program(dir.path(), &[]);
        let mut flags = vec!["--target", "mpich", "--target-version", version];
        let own = library.directory().join("libmpi.so.12").display().to_string();
        if version == "5.0" {
            flags.extend(["--target-library", &own]);
        }
        let (_, report, stderr) = export(dir.path(), OF_EACH, &flags);
        assert_eq!(report["unexpressed"], json!([]), "{stderr}");
        let command = || loading(&library, &stderr);
        let calls = OF_EACH.iter().map(|(name, _, bytes, _)| format!("{name}:{bytes}"));
        let calls: Vec<String> = calls.collect();
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        // Its ranks spin while they wait: no more than there are processors.
        let told = libraries::run(&library, command, 2, &program, &calls);
        assert_eq!(told.len(), calls.len(), "{version}: {told:?}");
    }
}
