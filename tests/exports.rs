//! Exported files, loaded by the real MPI library: that the algorithms they name ran.

mod by_layout;
mod forced;
pub mod libraries;
mod mpich_and_intel;
pub mod pypi;

use std::{
    fs,
    path::{Path, PathBuf},
};

use records::{calibration::Calibration, document, platform::Platform};
use serde_json::{Value, json};

use crate::{
    frozen::LIBRARY_OF_MPICH,
    support::{levelled_calibration, run},
};
use libraries::{Library, LibraryCall};

/// (collective, ranks, bytes, method): what a model may have decided.
type ModelDecision = (&'static str, u32, u64, &'static str);

/// The same with a layout in words in place of the ranks.
type LayoutDecision = (&'static str, &'static str, u64, &'static str);

fn decisions<P: serde::Serialize>(
    folder: &Path,
    decisions: &[(&'static str, P, u64, &'static str)],
) -> String {
    let rows: Vec<Value> = decisions
        .iter()
        .map(|(collective, procs, bytes, method)| {
            json!({
                "collective": collective, "model": "plogp", "procs": procs, "bytes": bytes,
                "method": method, "seconds": 1e-3, "interval_seconds": [1e-3, 1e-3],
                "rests_on": "predicted",
            })
        })
        .collect();
    let document = json!({
        "schema": "colibri/choices/1", "platform": Platform::default(), "message_size": {},
        "prediction": {
            "calibration": "preset:frodo", "forms": "corrected", "parameters": "measured",
        },
        "choices": rows, "confirmed": [],
    });
    let path = folder.join("decisions.json");
    fs::write(&path, document.to_string()).unwrap();
    path.display().to_string()
}

/// The words that export a file of decisions, before the form that is wanted.
fn export_of(decisions: &str) -> Vec<&str> {
    let from = ["export", "--unconfirmed", "--decisions", decisions];
    [&from[..], &["--calibration", "preset:frodo", "--model", "plogp"]].concat()
}

/// Exports decisions to `folder`; gives the file, its companion and what was said on stderr.
fn export<P: serde::Serialize>(
    folder: &Path,
    wanted: &[(&'static str, P, u64, &'static str)],
    arguments: &[&str],
) -> (PathBuf, Value, String) {
    let decisions = decisions(folder, wanted);
    let file = folder.join("exported");
    let path = file.display().to_string();
    let to = ["--output", &path];
    let (_, stderr) = run(0, &[&export_of(&decisions)[..], &to, arguments].concat());
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
fn ran(told: &[LibraryCall]) -> Vec<(&str, &str)> {
    told.iter().map(|told| (told.call.as_str(), told.ran.as_str())).collect()
}

/// What is wanted of those calls that were not set aside.
fn of<'a>(wanted: &[(&'a str, &'a str)], told: &[LibraryCall]) -> Vec<(&'a str, &'a str)> {
    let is_told = |call: &str| told.iter().any(|told| told.call == call);
    wanted.iter().copied().filter(|(call, _)| is_told(call)).collect()
}

const OPEN_MPI: &[ModelDecision] = &[
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
    ("bcast:64", "bcast_intra_binomial"),
    ("bcast:1000", "bcast_intra_binomial"),
    ("bcast:1001", "bcast_intra_pipeline,segment=1KiB"),
    ("bcast:100000", "bcast_intra_chain,segment=8KiB,fan-out=4"),
    ("reduce:800", "reduce_intra_redscat_gather"),
    ("allreduce:800", "allreduce_intra_recursivedoubling"),
    ("allreduce:80000", "allreduce_intra_ring_segmented,segment=1KiB"),
    ("allgather:1000", "allgather_intra_neighborexchange"),
    ("allgather:1001", "allgather_intra_ring"),
    ("alltoall:1000", "alltoall_intra_bruck"),
    ("alltoall:1001", "alltoall_intra_pairwise"),
    ("gather:8", "gather_intra_binomial"),
    ("gather:2000", "gather_intra_binomial"),
    ("gather:2000:in-place", "gather_intra_binomial"),
    ("scatter:1000", "scatter_intra_binomial"),
    ("scatter:100000", "scatter_intra_binomial"),
    ("reduce_scatter:800", "reduce_scatter_intra_ring"),
    ("reduce_scatter_block:800", "reduce_scatter_block_intra_recursivehalving"),
    ("scan:800", "scan_intra_recursivedoubling"),
    ("exscan:800", "exscan_intra_linear"),
    ("barrier:0", "barrier_intra_doublering"),
];

/// Loads the rules, runs every decided call, and has the tracer say what ran.
fn open_mpi_runs_what_its_rules_name(library: &Library, version: &str) {
    let dir = tempfile::tempdir().unwrap();
    let program = library.program(dir.path(), &[]);
    let (rules, report, stderr) = export(
        dir.path(),
        OPEN_MPI,
        &["--target", "openmpi", "--target-version", version, "--commutative"],
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
    let unwanted = "allgather_intra_neighborexchange";
    assert!(in_place.iter().all(|told| told.ran != unwanted), "{in_place:?}");
    // An algorithm for two ranks ends the program where there are three.
    let two = libraries::run(library, command, 2, &program, &["allgather:8", "barrier:0"]);
    let wanted = [
        ("allgather:8", "allgather_intra_two_procs"),
        ("barrier:0", "barrier_intra_recursivedoubling"),
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

#[test]
fn what_a_target_cannot_be_told_is_booked_with_its_cost() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = [
        ("bcast", 8, 4, "own:scatter-allgather"),
        ("bcast", 8, 65_536, "own:pipeline,segment=8KiB"),
        ("bcast", 8, 131_072, "own:binomial"),
    ];
    let (_, report, _) = export(dir.path(), &wanted, &["--target", "openmpi"]);
    let one = &report["unexpressed"][0];
    assert!(one["reason"].as_str().unwrap().contains("would not run"), "{report}");
    assert_eq!(one["bytes"], 4, "fewer elements than ranks");

    let (_, report, stderr) = export(dir.path(), &wanted, &["--target", "intel"]);
    let unexpressed = report["unexpressed"].as_array().unwrap();
    assert_eq!(unexpressed.len(), 1, "{report}");
    assert_eq!(unexpressed[0]["exported"], "native:intel:binomial");
    let seconds = unexpressed[0]["exported_seconds"].as_f64().unwrap();
    let loss = unexpressed[0]["loss"].as_f64().unwrap();
    assert!((loss - (seconds / 1e-3 - 1.0)).abs() < 1e-9 && loss > 0.0, "{report}");
    assert!(stderr.contains("64 KiB on 8 ranks, binomial instead of pipeline 8 KiB"), "{stderr}");
}

#[test]
fn profiles_hold_what_replaces_the_default() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = [
        ("bcast", 8, 64, "default"),
        ("bcast", 8, 65, "mockup:bcast_as_scatter_allgather"),
        ("bcast", 8, 4096, "mockup:bcast_as_scatter_allgather"),
    ];
    let (directory, report, _) = export(dir.path(), &wanted, &["--target", "pgtune"]);
    let text = fs::read_to_string(directory.join("bcast-8.prf")).unwrap();
    assert!(text.contains("MPI_Bcast\n8 ") && text.contains("\n65 4096 1\n"), "{text}");
    assert_eq!(report["unexpressed"], json!([]));
    fs::remove_dir_all(&directory).unwrap();
    let (directory, _, _) = export(dir.path(), &wanted, &["--target", "profile"]);
    let profile = fs::read_to_string(directory.join("bcast-8.json")).unwrap();
    let profile: Value = serde_json::from_str(&profile).unwrap();
    assert_eq!(profile["schema"], "colibri/profile/1");
    assert_eq!(profile["ranges"][0]["first_bytes"], 65);
}

/// The library loads all that lies in the directory.
#[test]
fn profiles_of_an_earlier_export_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let of = |procs| [("bcast", procs, 64, "own:binomial"), ("bcast", procs, 65, "default")];
    let (directory, ..) = export(dir.path(), &of(8), &["--target", "profile"]);
    let earlier = directory.join("bcast-8.json");
    export(dir.path(), &of(8), &["--target", "profile"]);
    let path = directory.display().to_string();
    let to = ["--target", "profile", "--output", &path];
    for wanted in [&of(16)[..], &[("bcast", 8, 64, "default")]] {
        let decisions = decisions(dir.path(), wanted);
        let (_, stderr) = run(2, &[&export_of(&decisions)[..], &to].concat());
        let named = format!("{}: is of an earlier export", earlier.display());
        assert!(stderr.contains(&named), "{stderr}");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }
}

/// Such a module would load nothing; one of an earlier export is told.
#[test]
fn no_module_is_written_where_nothing_replaces_the_default() {
    for (format, said) in [("profile", "no file to write"), ("openmpi", "leaves every call")] {
        for layouts in [&["8"][..], &["4x2"], &["2x2", "4x2"]] {
            let dir = tempfile::tempdir().unwrap();
            let modules = dir.path().join("modules");
            let (to, arguments) = (modules.display().to_string(), ["--target", format]);
            let arguments = [&arguments[..], &["--modulefiles", &to, "--module", "hal"]].concat();
            let wanted: Vec<_> =
                layouts.iter().map(|layout| ("bcast", *layout, 64, "default")).collect();
            let (file, _, stderr) = export(dir.path(), &wanted, &arguments);
            assert!(stderr.contains(said) && stderr.contains("no module is written"), "{stderr}");
            assert!(!modules.exists());
            assert!(!file.is_dir() || fs::read_dir(&file).unwrap().next().is_none());

            fs::create_dir_all(modules.join("colibri")).unwrap();
            let earlier = modules.join("colibri/hal");
            fs::write(&earlier, "").unwrap();
            let (_, _, stderr) = export(dir.path(), &wanted, &arguments);
            let named = format!("{}: is of an earlier", earlier.display());
            assert!(stderr.contains(&named), "{stderr}");
        }
    }
}

/// Decisions by a calibration that was measured with a library that says this of its version.
fn decided_for(folder: &Path, library: &str) -> String {
    let [calibration, decided] = ["calibration.json", "decided.json"].map(|name| folder.join(name));
    levelled_calibration(&calibration);
    let mut measured: Calibration = document::read(&calibration).unwrap();
    measured.platform.mpi_library = library.into();
    document::write(&calibration, &measured).unwrap();
    let [calibration, decided] = [calibration, decided].map(|path| path.display().to_string());
    let decide = ["decide", "--calibration", &calibration, "--collective", "bcast", "--layouts"];
    let rest = ["8x4", "-m", "1KiB,64KiB", "--model", "plogp", "--output", &decided];
    run(0, &[&decide[..], &rest].concat());
    decided
}

/// Without a version asked for, a file is for the library and version that the choices were made for.
#[test]
fn files_are_for_the_library_that_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name).display().to_string();
    let (file, modules) = (place("rules"), place("modules"));
    let five = decided_for(dir.path(), "Open MPI v5.0.11, package: x, ident: 5.0.11");
    let to = ["--target", "openmpi", "--output", &file, "--modulefiles", &modules];
    let named = ["--module", "hal"];
    let (_, stderr) = run(0, &[&["export", "--unconfirmed", &five][..], &to, &named].concat());
    assert!(!stderr.contains("note:") && stderr.contains("Open MPI 5.0:"), "{stderr}");
    let rules = fs::read_to_string(&file).unwrap();
    assert!(rules.starts_with("# coll/tuned rules of Open MPI 5.0,"), "{rules}");
    assert!(Path::new(&format!("{file}.han")).is_file());
    let module = fs::read_to_string(place("modules/colibri/hal")).unwrap();
    assert!(module.contains("OMPI_MCA_coll_han_dynamic_rules_filename"), "{module}");

    // Another one is written only if it is asked for, and never as a module.
    let older = ["--target-version", "4.1"];
    let (_, stderr) = run(2, &[&["export", "--unconfirmed", &five][..], &to, &older].concat());
    let refused =
        "a module is written for the library that the choices were made for (Open MPI 5.0)";
    assert!(stderr.contains(refused), "{stderr}");
    let (_, stderr) = run(0, &[&["export", "--unconfirmed", &five][..], &to[..4], &older].concat());
    let told = "note: the choices were made for Open MPI 5.0, and are written for Open MPI 4.1";
    assert!(stderr.contains(told), "{stderr}");
    for format in ["mpich", "intel"] {
        let (_, stderr) = run(2, &["export", "--unconfirmed", &five, "--target", format]);
        let told = "made for Open MPI 5.0, which loads --target openmpi;";
        assert!(stderr.contains(told) && stderr.contains("--target-version"), "{stderr}");
    }
    let intel = ["--target", "intel", "--target-version", "2021.19"];
    let (script, stderr) = run(0, &[&["export", "--unconfirmed", &five][..], &intel].concat());
    assert!(script.contains("Intel MPI 2021.19"), "{script}");
    assert!(stderr.contains("are written for Intel MPI 2021.19"), "{stderr}");

    let library = place("libmpich.so");
    fs::write(&library, LIBRARY_OF_MPICH).unwrap();
    let mpich = decided_for(dir.path(), "MPICH Version:\t4.0.2");
    let from =
        ["export", "--unconfirmed", &mpich, "--target", "mpich", "--target-library", &library];
    let (_, stderr) = run(0, &[&from[..], &["--output", &place("mpich.json")]].concat());
    assert!(stderr.contains("MPICH 4.0:") && !stderr.contains("note:"), "{stderr}");

    for (said, wanted) in [
        ("Open MPI v6.0.0, package: x", "--target openmpi-json"),
        ("Open MPI v3.1.6, package: x", "the nearest is 4.1"),
        ("Open MPI v3.1.6, package: x", "name one by --target-version"),
    ] {
        let decided = decided_for(dir.path(), said);
        let (_, stderr) = run(2, &["export", "--unconfirmed", &decided, "--target", "openmpi"]);
        assert!(stderr.contains(wanted), "{said}: {stderr}");
    }
    let unknown = decided_for(dir.path(), "");
    let (_, stderr) = run(0, &["export", "--unconfirmed", &unknown, "--target", "openmpi"]);
    assert!(
        stderr.contains("made for is not known: they are written for Open MPI 4.1"),
        "{stderr}"
    );
    let (_, stderr) = run(
        0,
        &["export", "--unconfirmed", &unknown, "--target", "openmpi", "--target-version", "4.1"],
    );
    assert!(!stderr.contains("note:"), "it was asked for: {stderr}");
}

#[test]
fn wrong_targets_are_answered_with_right_ones() {
    let dir = tempfile::tempdir().unwrap();
    let decisions = decisions(dir.path(), &[("bcast", 8, 64, "own:binomial")]);
    for (arguments, part) in [
        (&["--target", "openmpi", "--target-version", "6.0"][..], "openmpi-json"),
        (&["--target", "openmpi-json", "--target-version", "5.0"], "--target openmpi"),
        (&["--target", "mpich"], "--target-version 4.0"),
        (&["--target", "mpich", "--target-version", "9.9"], "the nearest is 5.0"),
        (&["--target", "openmpi", "--target-version", "4.1.x.y"], "is not a version"),
        (&["--target", "openmpi", "--target-version", "9.9"], "the nearest is 5.0"),
        (&["--target", "openmpi-json", "--target-version", "9.9"], "the nearest is 6.0"),
        (&["--target", "intel", "--target-version", "2022.3"], "the nearest is 2021.3"),
        (&["--target", "ucc", "--target-version", "1.3.x"], "is not a version"),
        (&["--target", "ucc", "--target-version", "1.1"], "1.3"),
        (&["--target", "openmpi", "--target-library", "x"], "mpich alone"),
        (&["--target", "ucc", "--compile", "x", "--output", "/dev/null"], "intel alone"),
    ] {
        let (_, stderr) = run(2, &[&export_of(&decisions)[..], arguments].concat());
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
    let device = ["--target", "mpich", "--target-version", "4.0", "--target-library", "/dev/null"];
    let (_, stderr) = run(1, &[&export_of(&decisions)[..], &device].concat());
    assert!(stderr.contains("/dev/null: is not a regular file"), "{stderr}");
}
