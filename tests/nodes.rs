//! An application with communicators inside nodes and across them, on a virtual cluster.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use records::{
    Collective, Layout, Method, Ranges, document,
    profile::Profile,
    usage::{Calls, Usage},
};
use serde_json::Value;

use crate::{
    skipped::skipped,
    support::{
        StandingTestbed, can_make_a_testbed, colibri, compiled_by_open_mpi, levelled_calibration,
        run,
    },
};

/// On four nodes of four ranks: the communicators of the nodes, across these, of two nodes' two ranks in
/// blocks and dealt in turn, and of all. In each ten broadcasts and ten allgathers.
const PROGRAM: &str = r#"
#include <mpi.h>
int main(int argc, char **argv) {
    static char buffer[4096], one[16384], all[16 * 16384];
    int rank;
    MPI_Comm of[5] = { MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_WORLD };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int node = rank / 4, local = rank % 4, pairs = node / 2 * 2 + local / 2;
    MPI_Comm_split(MPI_COMM_WORLD, node, rank, &of[0]);
    MPI_Comm_split(MPI_COMM_WORLD, local, rank, &of[1]);
    MPI_Comm_split(MPI_COMM_WORLD, pairs, rank, &of[2]);
    MPI_Comm_split(MPI_COMM_WORLD, pairs, local * 4 + node, &of[3]);
    for (int call = 0; call < 50; call++) {
        MPI_Bcast(buffer, sizeof buffer, MPI_BYTE, 0, of[call % 5]);
        MPI_Allgather(one, sizeof one, MPI_BYTE, all, sizeof one, MPI_BYTE, of[call % 5]);
    }
    for (int i = 0; i < 4; i++)
        MPI_Comm_free(&of[i]);
    MPI_Finalize();
    return 0;
}
"#;

/// Methods of bcast for communicators of four ranks that differ in their nodes alone.
const BCAST: [(&str, &str); 4] = [
    ("1x4", "own:linear"),
    ("4x1", "own:pipeline,segment=1KiB"),
    ("2x2", "own:binomial"),
    ("2x2:cyclic", "own:scatter-allgather"),
];

/// What a model with parameters of both levels decides for allgather on four ranks, by layout.
fn decided(folder: &Path) -> (PathBuf, BTreeMap<String, String>) {
    let calibration = folder.join("calibration.json");
    levelled_calibration(&calibration);
    let choices = folder.join("choices.json");
    let [calibration, file] = [&calibration, &choices].map(|path| path.to_str().unwrap());
    let of = ["decide", "--calibration", calibration, "--layouts", "4x1,2x2,2x2:cyclic"];
    let at = ["--collective", "allgather", "-m", "16KiB", "--model", "refined"];
    let (stdout, _) = run(0, &[&of[..], &at, &["--output", file, "--format", "json"]].concat());
    let rows: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    let layout = |row: &Value| match &row["procs"] {
        Value::String(layout) => layout.clone(),
        procs => format!("{procs}x1"),
    };
    let method = |row: &Value| row["method"].as_str().unwrap().to_owned();
    (choices, rows.iter().map(|row| (layout(row), method(row))).collect())
}

/// Profiles of bcast by hand, of allgather as they come of what was decided.
fn write_profiles(profiles: &Path, choices: &Path) {
    let [to, choices] = [profiles, choices].map(|path| path.to_str().unwrap());
    run(0, &["export", "--unconfirmed", choices, "--target", "profile", "--output", to]);
    for (layout, method) in BCAST {
        let method: Method = method.parse().unwrap();
        let ranges = Ranges::from_starts([(1, method.into())].into(), 1 << 20);
        let layout = layout.parse().unwrap();
        let profile = Profile::of_layout(Collective::Bcast, layout, ranges);
        document::write(&profiles.join(format!("{}.json", profile.file_stem())), &profile).unwrap();
    }
}

#[test]
fn communicators_inside_nodes_and_across_them_run_each_what_its_profile_says() {
    let test = "communicators_inside_nodes_and_across_them_run_each_what_its_profile_says";
    let Some(_turn) = can_make_a_testbed(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compiled_by_open_mpi(dir.path(), PROGRAM) else {
        return skipped(test, "no mpicc here");
    };
    let library = Path::new(env!("CARGO_BIN_EXE_colibri")).with_file_name("libcolibri.so");
    if !library.exists() {
        return skipped(test, "libcolibri.so is not built");
    }
    let (choices, decided) = decided(dir.path());
    assert_ne!(decided["4x1"], decided["2x2"], "ranks of one node share its port");
    let profiles = dir.path().join("profiles");
    write_profiles(&profiles, &choices);
    assert_eq!(fs::read_dir(&profiles).unwrap().count(), BCAST.len() + decided.len());
    let standing = StandingTestbed::up("kinds", &["--nodes", "4", "--ppn", "4"]);
    let name = &standing.name;
    let trace = dir.path().join("trace.json");
    let set = |name: &str, path: &Path| format!("{name}={}", path.display());
    let variables = [
        set("LD_PRELOAD", &library),
        set("COLIBRI_PROFILES", &profiles),
        set("COLIBRI_TRACE", &trace),
    ];
    let mut arguments = vec!["testbed", "mpirun", "--name", name, "env"];
    arguments.extend(variables.iter().map(String::as_str));
    arguments.push(program.to_str().unwrap());
    run(0, &arguments);
    drop(standing);
    let usage: Usage = document::read(&trace).unwrap();
    let ran = |collective: Collective, layout: &str| -> BTreeMap<String, u64> {
        let layout: Layout = layout.parse().unwrap();
        let of =
            |calls: &&Calls| calls.point.layout == layout && calls.point.collective == collective;
        let found = usage.calls.iter().filter(of);
        found.map(|calls| (calls.method.to_string(), calls.calls)).collect()
    };
    // Ten calls in each of four communicators. The first two are the MPI library's, of one collective until
    // the other one has had its third call.
    let by = |method: String| BTreeMap::from([(method, 4 * 8), ("default".into(), 4 * 2)]);
    for (layout, method) in BCAST {
        assert_eq!(ran(Collective::Bcast, layout), by(method.into()), "{layout}");
    }
    for (layout, method) in &decided {
        let method = method.parse::<Method>().unwrap().to_string();
        assert_eq!(ran(Collective::Allgather, layout), by(method), "{layout}");
    }
    assert_eq!(ran(Collective::Bcast, "4x4"), BTreeMap::from([("default".into(), 10)]));
}

/// The tools of the user stand behind those that make waiting cheap and see which algorithms run.
#[test]
fn what_the_user_preloads_and_tells_the_preload_library_reaches_the_ranks_of_a_virtual_cluster() {
    let test = "what_the_user_preloads_and_tells_the_preload_library_reaches_the_ranks_of_a_virtual_cluster";
    let Some(_turn) = can_make_a_testbed(test) else { return };
    let standing = StandingTestbed::up("passed", &["--nodes", "2"]);
    let mut command = colibri();
    command.args(["testbed", "mpirun", "--name", &standing.name, "env"]);
    command.env("LD_PRELOAD", "libm.so.6").env("COLIBRI_TRACE", "trace of mine.json");
    command.env("COLIBRI_IDLE_MICROSECONDS", "7").env("OMPI_MCA_coll_tuned_priority", "31");
    let output = command.assert().success().get_output().stdout.clone();
    drop(standing);
    let output = String::from_utf8(output).unwrap();
    let of = |wanted: &str| -> Vec<&str> {
        output.lines().filter_map(|line| line.strip_prefix(wanted)).collect()
    };
    assert_eq!(of("COLIBRI_TRACE="), ["trace of mine.json"; 2], "{output}");
    assert_eq!(of("OMPI_MCA_coll_tuned_priority="), ["31"; 2], "{output}");
    let preloaded = of("LD_PRELOAD=");
    assert_eq!(preloaded.len(), 2, "{output}");
    for list in preloaded {
        let names: Vec<&str> = list.split(':').filter_map(|path| path.rsplit('/').next()).collect();
        assert_eq!(names, ["libcolibri_yield.so", "libcolibri_tracer.so", "libm.so.6"], "{output}");
    }
    assert_ne!(of("COLIBRI_IDLE_MICROSECONDS="), ["7"; 2], "how ranks wait is the testbed's");
}
