//! Guidelines on real MPI, whose scatter is made slow at some sizes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::support::{colibri, have_mpirun};

/// Sizes at which MPI_Scatter takes 50 ms longer, also beside much else.
const SLOW: [u64; 2] = [4096, 16384];

/// Handles are pointers in Open MPI. Scatters are of bytes. What mock-ups of scatter call is slowed
/// down at every size, too, a hundredth as much, so that they are no faster elsewhere on any network.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

static void wait_ns(long ns) {
    struct timespec time = {0, ns};
    nanosleep(&time, 0);
}

int MPI_Scatter(const void *a, int sent, void *c, void *d, int received, void *f, int root, void *h) {
    int (*next)(const void *, int, void *, void *, int, void *, int, void *) =
        dlsym(RTLD_DEFAULT, "PMPI_Scatter");
    if (received == 4096 || received == 16384)
        wait_ns(50000000);
    return next(a, sent, c, d, received, f, root, h);
}

int MPI_Scatterv(const void *a, const int *b, const int *c, void *d, void *e, int f, void *g,
                 int root, void *i) {
    int (*next)(const void *, const int *, const int *, void *, void *, int, void *, int, void *) =
        dlsym(RTLD_DEFAULT, "PMPI_Scatterv");
    wait_ns(500000);
    return next(a, b, c, d, e, f, g, root, i);
}

int MPI_Bcast(void *a, int b, void *c, int root, void *e) {
    int (*next)(void *, int, void *, int, void *) = dlsym(RTLD_DEFAULT, "PMPI_Bcast");
    wait_ns(500000);
    return next(a, b, c, root, e);
}
"#;

fn compiled(directory: &Path) -> PathBuf {
    let [source, library] = ["slow.c", "libslow.so"].map(|name| directory.join(name));
    fs::write(&source, LIBRARY).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl");
    assert!(compiler.status().unwrap().success());
    library
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn guidelines(directory: &Path, preload: &Path, arguments: &[&str]) {
    let mut command = colibri();
    command.arg("guidelines").arg(directory).args(arguments).env("LD_PRELOAD", preload);
    command.assert().success();
}

#[test]
fn a_collective_that_is_slow_at_some_sizes_is_found_and_replaced_there_alone() {
    let Some(_turn) =
        have_mpirun("a_collective_that_is_slow_at_some_sizes_is_found_and_replaced_there_alone")
    else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let library = compiled(dir.path());
    let directory = dir.path().join("run");
    let launcher = "mpirun --oversubscribe --mca mpi_yield_when_idle 1 -np {np}";
    let options = ["--launcher", launcher, "--ranks", "2", "--collective", "scatter"];
    let more = ["--sizes", "1KiB..64KiB", "--jobs", "6", "--budget", "40s", "--least-gain", "0.9"];
    guidelines(&directory, &library, &[&options[..], &more].concat());

    let found = fs::read(directory.join("violations.json")).unwrap();
    let violations = json(&directory.join("violations.json"));
    let all = violations["violations"].as_array().unwrap();
    let pattern = all.iter().filter(|violation| violation["class"] == "pattern");
    let mut sizes: Vec<_> = pattern.map(|violation| violation["bytes"].as_u64().unwrap()).collect();
    sizes.dedup(); // several mock-ups
    assert_eq!(sizes, SLOW, "{violations:#}");

    let profile = json(&directory.join("profiles/scatter-2.json"));
    let ranges = profile["ranges"].as_array().unwrap().iter();
    let ranges = ranges.map(|range| ["first_bytes", "last_bytes"].map(|end| range[end].as_u64()));
    assert!(ranges.eq(SLOW.map(|size| [Some(size); 2])), "{profile:#}");

    let again = ["--from-record", "--least-gain", "0.9"];
    guidelines(&directory, &library, &again);
    assert_eq!(fs::read(directory.join("violations.json")).unwrap(), found);
}
