//! The main job on MPI libraries that are not the one that the programs here were built for: their own
//! algorithms are measured, and what is written for them is confirmed.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use records::{observation::CollectiveCall, record};
use serde_json::Value;

use crate::{
    exports::libraries::{self, Library},
    support::colibri,
};

/// A directory of programs for a library: our MPI program built for it, the rest as it is.
pub fn programs(library: &Library, name: &str) -> PathBuf {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("programs-{name}"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["rustc", "--locked", "-p", "colibri-calibration", "--bin", "colibri-mpi"]);
    cargo.arg("--target-dir").arg(&built);
    // As `make programs` builds it: it finds a library that the system's linker does not know.
    let directory = library.directory();
    if directory.is_absolute() {
        cargo.arg("--").arg(format!("-Clink-arg=-Wl,-rpath,{}", directory.display()));
    }
    // The compiler's wrapper tells the build where the library is.
    cargo.env("MPICC", library.compiler()).envs(library.environment().iter().cloned());
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let test = env::current_exe().unwrap();
    let ours = test.parent().and_then(Path::parent).unwrap();
    let directory = built.join("debug");
    for file in ["libcolibri.so", "libcolibri_tracer.so", "libcolibri_yield.so"] {
        let link = directory.join(file);
        if !link.exists() && ours.join(file).is_file() {
            symlink(ours.join(file), link).unwrap();
        }
    }
    directory
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Each method of a kind that a run's jobs have timed, and what they were seen to run for it.
fn observed(directory: &Path, kind: &str) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    for batch in 1.. {
        let name = if batch == 1 { String::new() } else { format!("-{batch}") };
        let record = directory.join(format!("measurements{name}.csv"));
        if !record.is_file() {
            break;
        }
        let rows = record::read::<CollectiveCall>(&record).unwrap().rows.into_iter();
        seen.extend(
            rows.map(|row| (row.method.to_string(), row.ran))
                .filter(|(method, _)| method.starts_with(kind)),
        );
    }
    seen
}

/// Tunes two collectives on two ranks: those of MPICH and Intel MPI spin while they wait.
fn tune(library: &Library, programs: &Path, directory: &Path) -> [String; 2] {
    let launcher = format!("{} -n {{np}}", library.launcher_path());
    let output = colibri()
        .env("COLIBRI_PROGRAMS", programs)
        .envs(library.environment().iter().cloned())
        .args(["tune", "--details"])
        .arg(directory)
        .args(["--launcher", &launcher, "--ranks", "2", "--budget", "40s"])
        .args(["--collective", "bcast,allgather", "--procs", "2", "--sizes", "64,8KiB,256KiB"])
        .args(["--methods", "native,own"])
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{}\n{}", text[0], text[1]);
    text
}

/// A library's run ends with a file of its own that was confirmed, beside profiles.
fn assert_confirmed(directory: &Path, [stdout, stderr]: &[String; 2], file: &str, loaded_by: &str) {
    let summary = json(&directory.join("summary.json"));
    assert_eq!(summary["way"], "rules", "{stdout}\n{stderr}");
    assert_eq!(summary["file"], file);
    assert!(directory.join(file).is_file() && stdout.contains(loaded_by), "{stdout}");
    let choices = json(&directory.join("choices.json"));
    let confirmed = |way: usize| choices["confirmed"][way]["choices"].as_array().unwrap();
    for (way, kind) in [(0, "native:"), (1, "own:")] {
        let replaced = confirmed(way).iter().filter(|one| one["method"] != "default");
        for one in replaced {
            assert!(one["method"].as_str().unwrap().starts_with(kind), "{one:#}");
            assert_eq!(one["rests_on"], "confirmed");
        }
    }
    // What harm would be was looked for in jobs of its own, unless nothing was to be loaded.
    let jobs = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let of_rules = jobs.filter(|name| name.to_string_lossy().ends_with("-rules.csv")).count();
    let chosen = choices["choices"].as_array().unwrap().iter();
    let natives = chosen.filter(|one| one["method"].as_str().unwrap().starts_with("native:"));
    assert!(of_rules > 0 || natives.count() == 0, "{stdout}\n{stderr}");
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn mpich_4_0_is_tuned_by_its_own_algorithms_to_a_confirmed_file() {
    let test = "mpich_4_0_is_tuned_by_its_own_algorithms_to_a_confirmed_file";
    let Some(library) = libraries::mpich_4_0(test) else { return };
    mpich(&library, "mpich-4.0", "4.0");
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn mpich_5_0_is_tuned_by_its_own_algorithms_to_a_confirmed_file() {
    let test = "mpich_5_0_is_tuned_by_its_own_algorithms_to_a_confirmed_file";
    let Some(library) = libraries::mpich_5_0(test) else { return };
    mpich(&library, "mpich-5.0", "5.0");
}

fn mpich(library: &Library, name: &str, version: &str) {
    let programs = programs(library, name);
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("run");
    let said = tune(library, &programs, &directory);
    assert_confirmed(&directory, &said, "mpich.json", "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE");
    let seen = observed(&directory, "native:mpich:");
    assert!(!seen.is_empty(), "{said:?}");
    for (method, ran) in seen {
        assert!(ran.starts_with("MPIR_") && ran.contains("_intra_"), "{method} ran {ran}");
    }
    assert!(directory.join("mpich.json.device.json").is_file());
    let exported = dir.path().join("exported.json");
    let library_file = library.directory().join("libmpi.so.12");
    let mut export = colibri();
    export.arg("export").arg(&directory).args(["--target", "mpich", "--target-version", version]);
    if library_file.is_file() {
        export.arg("--target-library").arg(library_file);
    }
    export.arg("--output").arg(&exported).assert().success();
    for end in ["", ".device.json"] {
        let [written, again] = [directory.join("mpich.json"), exported.clone()]
            .map(|path| fs::read(format!("{}{end}", path.display())).unwrap());
        assert!(written == again, "the export of mpich.json{end} is another one");
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn intel_mpi_is_tuned_by_jobs_for_each_algorithm_to_confirmed_settings() {
    let test = "intel_mpi_is_tuned_by_jobs_for_each_algorithm_to_confirmed_settings";
    let Some(library) = libraries::intel(test) else { return };
    let programs = programs(&library, "intel");
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("run");
    let said = tune(&library, &programs, &directory);
    assert_confirmed(&directory, &said, "intel.sh", "intel.sh RANKS");
    assert!(!observed(&directory, "native:intel:").is_empty(), "{said:?}");
    assert!(directory.join("measurements.part-2.csv").is_file(), "one job made it all");
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn open_mpi_5_0_is_tuned_to_confirmed_rules() {
    let test = "open_mpi_5_0_is_tuned_to_confirmed_rules";
    let Some(library) = libraries::open_mpi_5_0(test) else { return };
    let programs = programs(&library, "openmpi-5.0");
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("run");
    let said = tune(&library, &programs, &directory);
    assert_confirmed(&directory, &said, "openmpi.rules", "coll_tuned_dynamic_rules_filename");
    let seen = observed(&directory, "native:openmpi:");
    assert!(!seen.is_empty() && seen.iter().all(|(_, ran)| !ran.is_empty()), "{seen:?}");
}
