//! Exported files, loaded by the real MPI library: that the algorithms they name ran.

mod forced;
pub mod libraries;
mod pypi;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    skipped::skipped,
    support::{can_make_a_testbed, run},
};
use libraries::{Library, Told};

/// (collective, processes, bytes, method): what a model may have decided.
type Decision = (&'static str, u32, u64, &'static str);

fn decisions(folder: &Path, decisions: &[Decision]) -> String {
    let rows: Vec<Value> = decisions
        .iter()
        .map(|(collective, procs, bytes, method)| {
            json!({
                "collective": collective, "model": "plogp", "procs": procs, "bytes": bytes,
                "method": method, "seconds": 1e-3, "low_seconds": 1e-3, "high_seconds": 1e-3,
                "ties": [],
            })
        })
        .collect();
    let document = json!({
        "schema": "colibri/decisions/1", "calibration": "preset:frodo", "forms": "corrected",
        "parameters": "measured", "message_size": {}, "decisions": rows,
    });
    let path = folder.join("decisions.json");
    fs::write(&path, document.to_string()).unwrap();
    path.display().to_string()
}

/// Exports decisions to `folder`; gives the file, its companion and what was said on stderr.
fn export(folder: &Path, wanted: &[Decision], arguments: &[&str]) -> (PathBuf, Value, String) {
    let decisions = decisions(folder, wanted);
    let file = folder.join("exported");
    let path = file.display().to_string();
    let from = ["export", "--decisions", &decisions, "--calibration", "preset:frodo"];
    let to = ["--model", "plogp", "--output", &path];
    let (_, stderr) = run(0, &[&from[..], &to, arguments].concat());
    let report = fs::read_to_string(format!("{path}.export.json")).unwrap();
    (file, serde_json::from_str(&report).unwrap(), stderr)
}

fn tracer() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.parent().and_then(Path::parent).unwrap().join("libcolibri_tracer.so");
    assert!(library.is_file(), "{} is not there", library.display());
    library
}

/// Which call ran what.
fn ran(told: &[Told]) -> Vec<(&str, &str)> {
    told.iter().map(|told| (told.call.as_str(), told.ran.as_str())).collect()
}

/// What is wanted of those calls that were not set aside.
fn of<'a>(wanted: &[(&'a str, &'a str)], told: &[Told]) -> Vec<(&'a str, &'a str)> {
    let is_told = |call: &str| told.iter().any(|told| told.call == call);
    wanted.iter().copied().filter(|(call, _)| is_told(call)).collect()
}

const OPEN_MPI: &[Decision] = &[
    ("bcast", 4, 64, "own:binomial"),
    ("bcast", 4, 1000, "own:binomial"),
    ("bcast", 4, 1001, "own:pipeline,segment=1KiB"),
    ("bcast", 4, 100_000, "own:k-chain,segment=8KiB"),
    ("reduce", 4, 800, "own:rabenseifner"),
    ("allreduce", 4, 800, "own:recursive-doubling"),
    ("allreduce", 4, 80_000, "own:segmented-ring,segment=1KiB"),
    // Open MPI counts the blocks of all ranks.
    ("allgather", 2, 8, "native:openmpi:two-procs"),
    ("allgather", 4, 0, "own:neighbor-exchange"),
    ("allgather", 4, 1000, "own:neighbor-exchange"),
    ("allgather", 4, 1001, "own:ring"),
    ("allgather", 4, 2000, "own:ring"),
    ("alltoall", 4, 1000, "own:bruck"),
    ("alltoall", 4, 1001, "own:pairwise"),
    ("gather", 4, 8, "own:binomial"),
    ("gather", 4, 1000, "own:binomial"),
    ("gather", 4, 2000, "own:linear"),
    ("scatter", 4, 1000, "own:binomial"),
    ("reduce_scatter", 4, 800, "own:ring"),
    ("reduce_scatter_block", 4, 800, "own:recursive-halving"),
    ("scan", 4, 800, "own:recursive-doubling"),
    ("exscan", 4, 800, "own:linear"),
    ("barrier", 2, 0, "own:recursive-doubling"),
    ("barrier", 4, 0, "own:double-ring"),
];

const OPEN_MPI_RAN: &[(&str, &str)] = &[
    ("bcast:64", "bcast_intra_binomial(segment=0)"),
    ("bcast:1000", "bcast_intra_binomial(segment=0)"),
    ("bcast:1001", "bcast_intra_pipeline(segment=1024)"),
    ("bcast:100000", "bcast_intra_chain(segment=8192,fanout=4)"),
    ("reduce:800", "reduce_intra_redscat_gather()"),
    ("allreduce:800", "allreduce_intra_recursivedoubling()"),
    ("allreduce:80000", "allreduce_intra_ring_segmented(segment=1024)"),
    ("allgather:1000", "allgather_intra_neighborexchange()"),
    ("allgather:1001", "allgather_intra_ring()"),
    ("alltoall:1000", "alltoall_intra_bruck()"),
    ("alltoall:1001", "alltoall_intra_pairwise()"),
    ("gather:8", "gather_intra_binomial()"),
    ("gather:2000", "gather_intra_binomial()"),
    ("gather:2000:in-place", "gather_intra_binomial()"),
    ("scatter:1000", "scatter_intra_binomial()"),
    ("scatter:100000", "scatter_intra_binomial()"),
    ("reduce_scatter:800", "reduce_scatter_intra_ring()"),
    ("reduce_scatter_block:800", "reduce_scatter_block_intra_recursivehalving()"),
    ("scan:800", "scan_intra_recursivedoubling()"),
    ("exscan:800", "exscan_intra_linear()"),
    ("barrier:0", "barrier_intra_doublering()"),
];

/// Loads the rules, runs every decided call, and has the tracer say what ran.
fn open_mpi_runs_what_its_rules_name(library: &Library, version: &str) {
    let dir = tempfile::tempdir().unwrap();
    let program = library.program(dir.path(), &[]);
    let (rules, report, stderr) = export(
        dir.path(),
        OPEN_MPI,
        &["--format", "openmpi", "--target-version", version, "--commutative"],
    );
    let command = || {
        let mut command = library.launcher();
        command
            .args(["--mca", "coll_tuned_use_dynamic_rules", "1"])
            .args(["--mca", "coll_tuned_dynamic_rules_filename", rules.to_str().unwrap()])
            .args(["-x", &format!("LD_PRELOAD={}", tracer().display())]);
        command
    };
    let calls: Vec<&str> = OPEN_MPI_RAN.iter().map(|(call, _)| *call).collect();
    let told = libraries::run(library, command, 4, &program, &calls);
    let wanted = of(OPEN_MPI_RAN, &told);
    assert_eq!(ran(&told), wanted, "{}", fs::read_to_string(&rules).unwrap());

    // In place its size is 0, which the rules leave to the library.
    let in_place = libraries::run(library, command, 4, &program, &["allgather:1000:in-place"]);
    let unwanted = "allgather_intra_neighborexchange()";
    assert!(in_place.iter().all(|told| told.ran != unwanted), "{in_place:?}");
    // An algorithm for two processes ends the program where there are three.
    let two = libraries::run(library, command, 2, &program, &["allgather:8", "barrier:0"]);
    let wanted = [
        ("allgather:8", "allgather_intra_two_procs()"),
        ("barrier:0", "barrier_intra_recursivedoubling()"),
    ];
    assert_eq!(ran(&two), of(&wanted, &two));
    let three = libraries::run(library, command, 3, &program, &["allgather:8", "barrier:0"]);
    let other = ran(&three);
    assert!(!other.contains(&wanted[0]), "{other:?}");
    assert!(!three.iter().any(|told| told.call == wanted[1].0) || other.contains(&wanted[1]));

    // One method for all sizes of gather: what that costs is booked, and told.
    let unexpressed = report["unexpressed"].as_array().unwrap();
    let [gather] = unexpressed.as_slice() else { panic!("{unexpressed:?}") };
    assert_eq!(gather["exported"], "native:openmpi:binomial");
    assert!(gather["reason"].as_str().unwrap().contains("not significant on every rank"));
    assert!(stderr.contains("1 of 24 decisions cannot be expressed"), "{stderr}");
    assert_eq!(report["message_size_in_target"]["allgather"], "the blocks of all ranks together");
}

#[test]
fn open_mpi_4_1_runs_what_its_rules_name() {
    if let Some(library) = libraries::open_mpi_4_1("open_mpi_4_1_runs_what_its_rules_name") {
        open_mpi_runs_what_its_rules_name(&library, "4.1");
    }
}

#[test]
fn open_mpi_5_0_runs_what_its_rules_name() {
    if let Some(library) = libraries::open_mpi_5_0("open_mpi_5_0_runs_what_its_rules_name") {
        open_mpi_runs_what_its_rules_name(&library, "5.0");
    }
}

/// Takes its virtual cluster down when the test ends, however it ends.
struct Cluster(testbed::Testbed);

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = testbed::down(&self.0.spec().name) {
            eprintln!("{error}");
        }
    }
}

/// Across nodes Open MPI 5.0 gives the call to coll/han, unless the way to load that the export
/// tells is followed to its end.
#[test]
fn open_mpi_5_0_across_nodes_obeys_without_han_alone() {
    let test = "open_mpi_5_0_across_nodes_obeys_without_han_alone";
    // The library takes a turn of its own.
    if can_make_a_testbed(test).is_none() {
        return;
    }
    let Some(library) = libraries::open_mpi_5_0(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let program = library.program(dir.path(), &[]);
    let wanted = [("bcast", 4, 20_000, "own:pipeline,segment=1KiB")];
    let format = ["--format", "openmpi", "--target-version", "5.0"];
    let (rules, _, stderr) = export(dir.path(), &wanted, &format);
    assert!(stderr.contains("--mca coll_han_priority 0"), "{stderr}");

    let name = format!("t{}-han", std::process::id());
    let spec = testbed::Spec::new(&name, 2, "1gbit".parse().unwrap()).unwrap();
    let spec = spec.with_ranks_per_node(testbed::RanksPerNode::Same(2)).unwrap();
    let cluster = Cluster(testbed::up(&spec).unwrap());
    let mpi = testbed::OpenMpi::at(library.launcher_path().as_ref()).unwrap();
    let shims = testbed::Shims::in_folder(tracer().parent().unwrap()).unwrap();
    let ran = |parameters: &[&str]| {
        let command = || {
            let mut command = cluster.0.mpirun(&mpi, 4, &shims, &[]).unwrap();
            command
                .args(["--mca", "coll_tuned_use_dynamic_rules", "1"])
                .args(["--mca", "coll_tuned_dynamic_rules_filename", rules.to_str().unwrap()])
                .args(parameters);
            command
        };
        let told = libraries::run(&library, command, 4, &program, &["bcast:20000"]);
        Some(told.into_iter().next()?.ran)
    };
    let pipeline = "bcast_intra_pipeline(segment=1024)";
    let [without, with] =
        ["0", "35"].map(|priority| ran(&["--mca", "coll_han_priority", priority]));
    assert!(without.is_none_or(|ran| ran == pipeline));
    assert!(with.is_none_or(|ran| ran != pipeline));
}

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

const MPICH: &[Decision] = &[
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
fn watched_program(test: &str, library: &Library, folder: &Path) -> Option<PathBuf> {
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

#[test]
fn mpich_4_0_runs_what_its_tuning_file_names() {
    let test = "mpich_4_0_runs_what_its_tuning_file_names";
    let Some(library) = libraries::mpich_4_0(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = watched_program(test, &library, dir.path()) else { return };
    let (file, report, stderr) =
        export(dir.path(), MPICH, &["--format", "mpich", "--target-version", "4.0"]);
    assert_eq!(report["unexpressed"], json!([]), "{stderr}");
    let settings: Vec<&str> =
        stderr.split_whitespace().filter(|word| word.starts_with("MPIR_")).collect();
    assert_eq!(settings.len(), 2, "the file and the device's: {stderr}");
    let command = || {
        let mut command = library.launcher();
        command.envs(settings.iter().map(|setting| setting.split_once('=').unwrap()));
        command
    };
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

/// MPICH 5.0 hides its functions: a pipeline of single bytes shows in the time, for the sizes for
/// which it was chosen and for no other.
#[test]
fn mpich_5_0_runs_what_its_tuning_file_names() {
    let test = "mpich_5_0_runs_what_its_tuning_file_names";
    let Some(library) = libraries::mpich_5_0(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let program = library.program(dir.path(), &[]);
    let slow = "own:pipeline,segment=1B";
    let wanted = [("bcast", 2, 30_000, slow), ("bcast", 2, 40_000, slow)];
    let own = library.directory().join("libmpi.so.12").display().to_string();
    let format = ["--format", "mpich", "--target-version", "5.0", "--target-library", &own];
    let (_, report, stderr) = export(dir.path(), &wanted, &format);
    assert_eq!(report["unexpressed"], json!([]), "{stderr}");
    let command = || {
        let mut command = library.launcher();
        let settings = stderr.split_whitespace().filter(|word| word.starts_with("MPIR_"));
        command.envs(settings.map(|setting| setting.split_once('=').unwrap()));
        command
    };
    let calls = ["bcast:29999", "bcast:30000", "bcast:40000", "bcast:40001"];
    assert_slow_inside(5.0, || libraries::run(&library, command, 2, &program, &calls));
}

/// The two calls in the middle are slower than those around them, by far. On a busy machine all may
/// be slow: it is tried several times. What has no effect is as fast each time.
#[track_caller]
fn assert_slow_inside(times: f64, mut run: impl FnMut() -> Vec<Told>) {
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
        .args(["export", "--decisions", &decisions, "--calibration", "preset:frodo"])
        .args(["--model", "plogp", "--format", "intel", "--target-version", "2021.19"])
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

#[test]
fn what_a_target_cannot_be_told_is_booked_with_its_cost() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = [
        ("bcast", 8, 4, "own:scatter-allgather"),
        ("bcast", 8, 65_536, "own:pipeline,segment=8KiB"),
        ("bcast", 8, 131_072, "own:binomial"),
    ];
    let (_, report, _) = export(dir.path(), &wanted, &["--format", "openmpi"]);
    let one = &report["unexpressed"][0];
    assert!(one["reason"].as_str().unwrap().contains("would not run"), "{report}");
    assert_eq!(one["bytes"], 4, "fewer elements than processes");

    let (_, report, stderr) = export(dir.path(), &wanted, &["--format", "intel"]);
    let unexpressed = report["unexpressed"].as_array().unwrap();
    assert_eq!(unexpressed.len(), 1, "{report}");
    assert_eq!(unexpressed[0]["exported"], "native:intel:binomial");
    let seconds = unexpressed[0]["exported_seconds"].as_f64().unwrap();
    let loss = unexpressed[0]["loss"].as_f64().unwrap();
    assert!((loss - (seconds / 1e-3 - 1.0)).abs() < 1e-9 && loss > 0.0, "{report}");
    assert!(stderr.contains("64 KiB on 8, binomial instead of pipeline 8 KiB"), "{stderr}");
}

#[test]
fn profiles_hold_what_replaces_the_default() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = [
        ("bcast", 8, 64, "default"),
        ("bcast", 8, 65, "mockup:bcast_as_scatter_allgather"),
        ("bcast", 8, 4096, "mockup:bcast_as_scatter_allgather"),
    ];
    let (directory, report, _) = export(dir.path(), &wanted, &["--format", "pgtune"]);
    let text = fs::read_to_string(directory.join("bcast-8.prf")).unwrap();
    assert!(text.contains("MPI_Bcast\n8 ") && text.contains("\n65 4096 1\n"), "{text}");
    assert_eq!(report["unexpressed"], json!([]));
    fs::remove_dir_all(&directory).unwrap();
    let (directory, _, _) = export(dir.path(), &wanted, &["--format", "profile"]);
    let profile = fs::read_to_string(directory.join("bcast-8.json")).unwrap();
    let profile: Value = serde_json::from_str(&profile).unwrap();
    assert_eq!(profile["schema"], "colibri/profile/1");
    assert_eq!(profile["ranges"][0]["first_bytes"], 65);
}

#[test]
fn wrong_targets_are_answered_with_right_ones() {
    let dir = tempfile::tempdir().unwrap();
    let decisions = decisions(dir.path(), &[("bcast", 8, 64, "own:binomial")]);
    let from = ["export", "--calibration", "preset:frodo", "--model", "plogp", "--decisions"];
    for (arguments, part) in [
        (&["--format", "openmpi", "--target-version", "6.0"][..], "openmpi-json"),
        (&["--format", "openmpi-json", "--target-version", "5.0"], "--format openmpi"),
        (&["--format", "mpich"], "--target-version 4.0"),
        (&["--format", "mpich", "--target-version", "9.9"], "the nearest is 5.0"),
        (&["--format", "openmpi", "--target-version", "4.1.x.y"], "is not a version"),
        (&["--format", "openmpi", "--target-version", "9.9"], "the nearest is 5.0"),
        (&["--format", "openmpi-json", "--target-version", "9.9"], "the nearest is 6.0"),
        (&["--format", "intel", "--target-version", "2022.3"], "the nearest is 2021.3"),
        (&["--format", "ucc", "--target-version", "1.3.x"], "is not a version"),
        (&["--format", "ucc", "--target-version", "1.1"], "1.3"),
        (&["--format", "openmpi", "--target-library", "x"], "mpich alone"),
        (&["--format", "ucc", "--compile", "x", "--output", "/dev/null"], "intel alone"),
    ] {
        let (_, stderr) = run(2, &[&from[..], &[&decisions], arguments].concat());
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
    let device = ["--format", "mpich", "--target-version", "4.0", "--target-library", "/dev/null"];
    let (_, stderr) = run(1, &[&from[..], &[&decisions], &device].concat());
    assert!(stderr.contains("/dev/null: is not a regular file"), "{stderr}");
}
