//! An application with communicators inside nodes and across them, on a virtual cluster.

use std::{fs, path::Path};

use records::{
    Collective, Layout, document,
    profile::{Profile, ProfileRange},
    usage::{Calls, Usage},
};

use crate::{
    skipped::skipped,
    support::{can_make_a_testbed, colibri, compiled_by_open_mpi, run},
};

/// Broadcasts in the communicators of the nodes, across these, and of all.
const PROGRAM: &str = r#"
#include <mpi.h>
int main(int argc, char **argv) {
    static char buffer[4096];
    int rank;
    MPI_Comm of[3] = { MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_WORLD };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 4, rank, &of[0]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 4, rank, &of[1]);
    for (int call = 0; call < 30; call++)
        MPI_Bcast(buffer, sizeof buffer, MPI_BYTE, 0, of[call % 3]);
    MPI_Comm_free(&of[0]);
    MPI_Comm_free(&of[1]);
    MPI_Finalize();
    return 0;
}
"#;

/// Taken down however the test ends.
struct Standing(String);

impl Drop for Standing {
    fn drop(&mut self) {
        let _ = colibri().args(["testbed", "down", "--name", &self.0]).output();
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
    let profiles = dir.path().join("profiles");
    fs::create_dir(&profiles).unwrap();
    for (layout, method) in [("1x4", "own:linear"), ("4x1", "own:pipeline,segment=1KiB")] {
        let (first_bytes, last_bytes) = (1, 1 << 20);
        let method = method.parse().unwrap();
        let range = ProfileRange { first_bytes, last_bytes, method, gain: None };
        let layout = layout.parse().unwrap();
        let profile = Profile::of_layout(Collective::Bcast, layout, vec![range]);
        document::write(&profiles.join(format!("{}.json", profile.file_stem())), &profile).unwrap();
    }
    let name = format!("t{}-kinds", std::process::id());
    let standing = Standing(name.clone());
    run(0, &["testbed", "up", "--nodes", "4", "--ppn", "4", "--name", &name]);
    let trace = dir.path().join("trace.json");
    let set = |name: &str, path: &Path| format!("{name}={}", path.display());
    let variables = [
        set("LD_PRELOAD", &library),
        set("COLIBRI_PROFILES", &profiles),
        set("COLIBRI_TRACE", &trace),
    ];
    let mut arguments = vec!["testbed", "mpirun", "--name", &name, "env"];
    arguments.extend(variables.iter().map(String::as_str));
    arguments.push(program.to_str().unwrap());
    run(0, &arguments);
    drop(standing);
    let usage: Usage = document::read(&trace).unwrap();
    let ran = |layout: &str| -> (String, u64) {
        let layout: Layout = layout.parse().unwrap();
        let of = |calls: &&Calls| calls.layout == layout && calls.bytes == 4096;
        let found: Vec<&Calls> = usage.calls.iter().filter(of).collect();
        assert_eq!(found.len(), 1, "{layout}: {:?}", usage.calls);
        (found[0].method.to_string(), found[0].calls)
    };
    // Ten calls in each of four communicators.
    assert_eq!(ran("1x4"), ("own:linear".into(), 40));
    assert_eq!(ran("4x1"), ("own:pipeline,segment=1KiB".into(), 40));
    assert_eq!(ran("4x4"), ("default".into(), 10));
}
