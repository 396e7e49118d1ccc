//! Under a real Slurm, whose default is to start ranks without any process management (MpiDefault=none).

mod batch;
mod cluster;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use cluster::{NODES, SlurmCluster};

use crate::{
    exports::libraries,
    other_libraries,
    skipped::skipped,
    support::{have_mpirun, run},
};

/// Runs a shell's script in an allocation; gives its exit code, and what it said.
#[track_caller]
fn in_allocation(
    cluster: &SlurmCluster,
    wanted: &[&str],
    place: &Path,
    script: &str,
) -> (Option<i32>, String) {
    let said = place.join("said");
    let file = fs::File::create(&said).unwrap();
    let mut salloc = cluster.client("salloc");
    salloc.arg("--quiet").args(wanted).args(["sh", "-c", script]).current_dir(place);
    salloc.env("COLIBRI", env!("CARGO_BIN_EXE_colibri"));
    // Other ranks of this machine want its processors, too.
    salloc.env("OMPI_MCA_mpi_yield_when_idle", "1");
    salloc.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
    let mut child = salloc.spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(150);
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if Instant::now() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("`{script}` does not end:\n{}", fs::read_to_string(said).unwrap());
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    (code, fs::read_to_string(said).unwrap())
}

/// A program of MPICH's in a folder of its library's name, as `make programs` leaves it, and MPICH's launcher
/// as the one on PATH, as its module does.
const MPICH: &str = "export PATH=\"$PWD/bin:$PATH\" COLIBRI_PROGRAMS=\"$PWD\"; ";

/// One task on each node, of which salloc tells no number.
const ON_EVERY_NODE: [&str; 2] = ["-N", "4"];

/// What a script sets first. The nodes are one host, whose /dev/shm they share: there Open MPI names its
/// files by a node's own count of ranks, so that ranks of two nodes would take each other's.
const ONE_HOST: &str = "export OMPI_MCA_btl=tcp,self; ";

/// A rank that comes late to where all wait for all by Slurm's PMIx, as in `MPI_Init`; each notes when it came and when
/// it went on.
const LATE_RANK: &str = "#!/usr/bin/env python3
import ctypes, os, time
pmix, none = ctypes.CDLL('libpmix.so.2'), ctypes.c_size_t(0)
assert pmix.PMIx_Init(ctypes.create_string_buffer(4096), None, none) == 0
time.sleep(2 if os.environ['SLURM_PROCID'] == '1' else 0)
came = time.monotonic()
assert pmix.PMIx_Fence(None, none, None, none) == 0
with open('fences.' + os.environ['SLURM_STEP_ID'], 'a') as fences:
    print(came, time.monotonic(), file=fences)
pmix.PMIx_Finalize(None, none)
";

/// Ranks that go on alone send to others that still are in `MPI_Init`, where Open MPI crashes.
#[test]
fn ranks_of_all_nodes_wait_for_each_other_where_they_begin() {
    let test = "ranks_of_all_nodes_wait_for_each_other_where_they_begin";
    let Some(_turn) = have_mpirun(test) else { return };
    let Some(cluster) = SlurmCluster::up(test) else { return };
    let load = ["-c", "import ctypes; ctypes.CDLL('libpmix.so.2')"];
    if !Command::new("python3").args(load).status().is_ok_and(|status| status.success()) {
        return skipped(test, "no python3, or no libpmix.so.2");
    }
    let dir = tempfile::tempdir().unwrap();
    let late = dir.path().join("late");
    fs::write(&late, LATE_RANK).unwrap();
    fs::set_permissions(&late, PermissionsExt::from_mode(0o755)).unwrap();
    let script = format!("{CALIBRATE} --launcher 'srun --mpi=pmix -N {{nodes}} -n {{np}} ./late'");
    let (_, said) = in_allocation(&cluster, &ON_EVERY_NODE, dir.path(), &script);
    let fences = fs::read_to_string(dir.path().join("fences.0")).unwrap_or_default();
    let times = |column: usize| {
        let word = move |line: &str| line.split(' ').nth(column).unwrap().parse::<f64>().unwrap();
        fences.lines().map(word).collect::<Vec<f64>>()
    };
    let (came, left) = (times(0), times(1));
    assert_eq!(came.len(), NODES as usize, "{fences}\n{said}");
    let last = came.into_iter().fold(0.0, f64::max);
    assert!(left.into_iter().all(|left| left >= last), "one went on alone:\n{fences}\n{said}");
}

/// Neither a launcher nor the number of ranks is said, and Slurm's default is no process management.
#[test]
#[ignore = "takes minutes: make test-long"]
fn tune_finds_its_way_in_an_allocation() {
    let test = "tune_finds_its_way_in_an_allocation";
    let Some(_turn) = have_mpirun(test) else { return };
    let Some(cluster) = SlurmCluster::up(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path();
    let tune = "\"$COLIBRI\" tune run --collective bcast --procs 8 --sizes 64,64KiB --budget 20s";
    let (code, said) =
        in_allocation(&cluster, &["-N", "4", "-n", "8"], place, &format!("{ONE_HOST}{tune}"));
    assert_eq!(code, Some(0), "{said}");
    assert!(place.join("run/openmpi.rules").exists(), "{said}");
    let summary = fs::read_to_string(place.join("run/summary.txt")).unwrap();
    // What gained anything is loaded by the launcher at hand; on a busy machine nothing may.
    let found: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(place.join("run/summary.json")).unwrap()).unwrap();
    let line = match found["gains"].as_array().unwrap().is_empty() {
        true => "By a rules file there is nothing to load",
        false => "As this run was started:  srun --export=ALL,OMPI_MCA",
    };
    assert!(summary.contains(line), "{summary}");
    let told = fs::read_to_string(place.join("run/first-job.json")).unwrap();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let platform = &told["platform"];
    assert_eq!(platform["hosts"].as_array().unwrap().len(), 8, "{platform}");
    assert_eq!(platform["launcher"], "srun --mpi=pmix -n {np}");
    assert!(platform["mpi_library"].as_str().unwrap().starts_with("Open MPI"), "{platform}");
    assert_eq!(told["nodes"][0]["sees_run"], true, "{told}");

    // What the first job told is shown without another one.
    let (shown, _) = run(0, &["platform", place.join("run").to_str().unwrap()]);
    assert!(shown.starts_with("8 ranks on ") && shown.contains("launcher: srun"), "{shown}");

    // Slurm keeps no names, by which ranks find each other elsewhere: the library does not ask it to.
    let preloaded = "beside=${COLIBRI%/*}; export SLURM_PMIX_FENCE=ring; srun --mpi=pmix -n 2 \
                     env LD_PRELOAD=$beside/libcolibri.so COLIBRI_PROFILES=. \
                     $beside/colibri-mpi platform --ranks 2 --record preloaded.json";
    let script = format!("{ONE_HOST}{preloaded}");
    let (code, said) = in_allocation(&cluster, &["-N", "4", "-n", "8"], place, &script);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the application runs untuned"), "not loaded: {said}");
    assert!(!said.contains("MPI_Publish_name"), "{said}");

    // What srun would refuse is refused before, and nothing is made.
    let more = "\"$COLIBRI\" tune more --ranks 5";
    let (code, said) = in_allocation(&cluster, &ON_EVERY_NODE, place, more);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("5 ranks do not fit Slurm's allocation"), "{said}");
    assert!(!said.contains("srun: error") && !place.join("more").exists(), "{said}");
}

/// MPICH's programs take pmi2, which is found; MPICH's own file is tried in jobs of its own.
#[test]
#[ignore = "takes minutes: make test-long"]
fn mpich_is_tuned_by_pmi2_and_its_file_is_tried() {
    let test = "mpich_is_tuned_by_pmi2_and_its_file_is_tried";
    let Some(library) = libraries::mpich_4_0(test) else { return };
    let Some(cluster) = SlurmCluster::up(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path();
    let built = other_libraries::programs(&library, "mpich-4.0");
    fs::create_dir_all(place.join("programs/mpich-4.0.2")).unwrap();
    symlink(built.join("colibri-mpi"), place.join("programs/mpich-4.0.2/colibri-mpi")).unwrap();
    symlink(built.join("libcolibri.so"), place.join("libcolibri.so")).unwrap();
    fs::create_dir(place.join("bin")).unwrap();
    symlink("/usr/bin/mpirun.mpich", place.join("bin/mpirun")).unwrap();
    // Ranks of MPICH burn their cores while they wait: no more than there are.
    let tune = "\"$COLIBRI\" tune run --collective bcast,allgather --procs 2 --sizes 64,64KiB \
                --methods native,own --budget 20s";
    let script = format!("{MPICH}{tune}");
    let (code, said) = in_allocation(&cluster, &["-N", "2", "-n", "2"], place, &script);
    assert_eq!(code, Some(0), "{said}");
    let summary = fs::read_to_string(place.join("run/summary.txt")).unwrap();
    // How to load is told where something is gained, which two ranks of one machine leave to chance.
    let tells_how = summary.contains("As this run was started");
    assert_eq!(summary.contains("--mpi=pmi2"), tells_how, "{summary}");
    assert!(place.join("run/mpich.json").exists(), "{summary}");
    let tried = fs::read_to_string(place.join("run/candidate-mpich.json")).unwrap();
    assert!(tried.contains("collective=bcast"), "{tried}");
    let timed = fs::read_to_string(place.join("run/confirmation-1-1-rules.csv")).unwrap();
    assert!(timed.contains("bcast"), "{timed}");
    let told = fs::read_to_string(place.join("run/first-job.json")).unwrap();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["platform"]["launcher"], "srun --mpi=pmi2 -n {np}");
    assert!(told["platform"]["mpi_library"].as_str().unwrap().contains("MPICH"), "{told}");
}

const CALIBRATE: &str =
    "\"$COLIBRI\" calibrate run --pair-only --no-pairs --sizes 0..1KiB --budget 1s";

/// Without process management there are four jobs of one rank each: what to do is told.
#[test]
fn a_launcher_that_starts_ranks_apart_is_answered_with_what_to_write() {
    let test = "a_launcher_that_starts_ranks_apart_is_answered_with_what_to_write";
    let Some(_turn) = have_mpirun(test) else { return };
    let Some(cluster) = SlurmCluster::up(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let script = format!("{CALIBRATE} --launcher 'srun -n {{np}}'");
    let (code, said) = in_allocation(&cluster, &ON_EVERY_NODE, dir.path(), &script);
    assert_eq!(code, Some(1), "{said}");
    let advice = said.lines().last().unwrap();
    assert!(advice.contains("--launcher 'srun --mpi=pmix -n {np}'"), "{said}");
    assert!(advice.contains("`srun --mpi=list` offers") && advice.contains("pmi2"), "{said}");
    assert!(!said.contains("once more"), "{said}");
}

/// In the first step rank 1 is killed while the others sleep; in the second, all fail. They wait until
/// all have begun, since the first to fail ends those that have not.
#[test]
fn a_rank_that_crashes_ends_the_job_at_once_which_is_tried_once_more() {
    let test = "a_rank_that_crashes_ends_the_job_at_once_which_is_tried_once_more";
    let Some(_turn) = have_mpirun(test) else { return };
    let Some(cluster) = SlurmCluster::up(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let crashes = dir.path().join("crashes");
    let script = "#!/bin/sh\n\
                  echo \"$SLURM_STEP_ID: $SLURM_NTASKS on $SLURM_STEP_NUM_NODES\" >> ranks\n\
                  sleep 1\n\
                  [ \"$SLURM_STEP_ID\" = 0 ] || exit 3\n\
                  [ \"$SLURM_PROCID\" = 1 ] && kill -ABRT $$\n\
                  exec sleep 100\n";
    fs::write(&crashes, script).unwrap();
    fs::set_permissions(&crashes, PermissionsExt::from_mode(0o755)).unwrap();
    let begun = Instant::now();
    let script = format!("{CALIBRATE} --launcher 'srun -N {{nodes}} -n {{np}} ./crashes'");
    let (code, said) = in_allocation(&cluster, &ON_EVERY_NODE, dir.path(), &script);
    assert_eq!(code, Some(1), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{said}");
    assert!(said.contains("task 1: Aborted") && said.contains("trying once more"), "{said}");
    assert!(said.contains("exit code 3") && said.contains("twice"), "{said}");
    let ranks = fs::read_to_string(dir.path().join("ranks")).unwrap();
    for step in ["0: 4 on 4", "1: 4 on 4"] {
        assert_eq!(ranks.lines().filter(|line| *line == step).count(), NODES as usize, "{ranks}");
    }
}
