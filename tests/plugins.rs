//! Collectives from outside, given to the command as a user gives them.

use std::{fs, path::Path, process::Command};

use records::{observation::CollectiveCall, record};

use crate::{
    skipped::skipped,
    support::{colibri, have_mpirun, run},
};

const LAUNCHER: &str = "mpirun --oversubscribe --mca mpi_yield_when_idle 1 -np {np}";

/// One whose last byte is wrong on the last rank, beside the one of the page on plug-ins.
const WRONG: &str = r"
#include <string.h>

static char told[100];

int collectives_initialize(MPI_Comm comm, char *suboptions)
{
    strncpy(told, suboptions, sizeof told - 1);
    return MPI_SUCCESS;
}

int wrong_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int code = chain_Bcast(buffer, count, datatype, root, comm);
    if (rank == size - 1 && count > 0 && strcmp(told, 'right=1') != 0)
        ((char *)buffer)[count - 1] ^= 1;
    return code;
}

int forwarded_Scatterv(const void *from, const int *counts, const int *places, MPI_Datatype sent,
                       void *to, int count, MPI_Datatype received, int root, MPI_Comm comm)
{
    return MPI_Scatterv(from, counts, places, sent, to, count, received, root, comm);
}
";

/// The source that the page on plug-ins shows.
fn of_the_page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/algorithms.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, shown) = page.split_once("cat > mine.c <<'END'\n").unwrap();
    let (source, _) = shown.split_once("\n    END\n").unwrap();
    source.to_owned()
}

/// Nothing, with a printed reason, where it cannot be compiled.
fn library(directory: &Path) -> Option<String> {
    let [source, library] = ["mine.c", "libmine.so"].map(|name| directory.join(name));
    fs::write(&source, of_the_page() + &WRONG.replace('\'', "\"")).unwrap();
    let compiled = ["mpicc.openmpi", "mpicc"].into_iter().find_map(|compiler| {
        let mut command = Command::new(compiler);
        command.args(["-shared", "-fPIC", "-O2", "-o"]).args([&library, &source]).status().ok()
    });
    let Some(status) = compiled else {
        skipped("a plug-in", "no mpicc here");
        return None;
    };
    assert!(status.success());
    Some(library.to_str().unwrap().to_owned())
}

/// Runs `verify` or `guidelines` on two ranks, and gives (stdout, stderr).
fn measured(code: i32, command: &str, directory: &str, flags: &[&str]) -> (String, String) {
    let common = ["--launcher", LAUNCHER, "--ranks", "2", "--collective", "bcast", "--sizes", "64"];
    run(code, &[&[command, directory], &common[..], flags].concat())
}

const VERIFY: [&str; 6] = ["--calibration", "preset:frodo", "--segments", "0", "--rounds", "2"];

#[test]
fn a_plug_in_is_verified_and_compared_as_the_page_says() {
    let name = "a_plug_in_is_verified_and_compared_as_the_page_says";
    let dir = tempfile::tempdir().unwrap();
    let Some(_turn) = have_mpirun(name) else { return };
    let Some(library) = library(dir.path()) else { return };
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let plugins =
        ["-l", &library, "-O", "chain_Bcast", "-O", "wrong_Bcast", "--suboptions", "right=1"];

    let directory = at("verified");
    let (text, _) = measured(0, "verify", &directory, &[&VERIFY[..], &plugins].concat());
    let (_, table) = text.split_once("\nPlug-ins (in brackets").unwrap();
    for symbol in ["chain_Bcast (right=1)", "wrong_Bcast (right=1)"] {
        let row = table.lines().find(|row| row.contains(symbol)).unwrap();
        assert!(row.contains("bcast") && row.contains("64 B"), "{row}");
        let method = format!("plugin:{library}:{},suboptions=right=1", &symbol[..11]);
        let record = Path::new(&directory).join("measurements.csv");
        let rows = record::read::<CollectiveCall>(&record).unwrap().rows;
        let of_plugin = rows.iter().filter(|row| row.method.to_string() == method);
        let ran: Vec<&str> = of_plugin.map(|row| row.ran.as_str()).collect();
        assert!(!ran.is_empty() && ran.iter().all(|ran| *ran == method), "{method}: {ran:?}");
    }
    let (again, _) =
        run(0, &["verify", &directory, "--calibration", "preset:frodo", "--from-record"]);
    assert!(again.contains("chain_Bcast (right=1)"), "{again}");

    let one =
        ["bench", "bcast", "--ranks", "2", "--launcher", LAUNCHER, "--sizes", "64", "--max", "5"];
    let (table, _) = run(
        0,
        &[&one[..], &["-l", &library, "-O", "chain_Bcast", "--suboptions", "right=1"]].concat(),
    );
    assert!(table.contains(&format!("plugin:{library}:chain_Bcast,suboptions=right=1")), "{table}");

    let directory = at("compared");
    let jobs = ["--jobs", "2", "--budget", "60s"];
    let (text, _) = measured(0, "guidelines", &directory, &[&jobs[..], &plugins].concat());
    let row = text.lines().find(|row| row.contains("chain_Bcast (right=1)")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(&cells[..6], ["bcast", "chain_Bcast", "(right=1)", "2", "64", "B"], "{row}");
    assert_eq!(cells[6], "2", "the medians of so many jobs: {row}");
}

/// Neither a model nor what the preload library replaces is needed to compare.
#[test]
fn uneven_blocks_are_compared_by_methods_of_any_kind() {
    let name = "uneven_blocks_are_compared_by_methods_of_any_kind";
    let dir = tempfile::tempdir().unwrap();
    let Some(_turn) = have_mpirun(name) else { return };
    let Some(library) = library(dir.path()) else { return };
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("factors"), "1\n3\n").unwrap();
    let plugin = ["-l", &library, "-O", "forwarded_Scatterv"];
    for (kinds, flags, wanted) in [
        ("plugin", &plugin[..], &["default", "forwarded_Scatterv"][..]),
        ("", &[], &["default", "own:linear", "own:traff"]),
    ] {
        let directory = at(&format!("by-{kinds}"));
        let common =
            ["verify", &directory, "--launcher", LAUNCHER, "--ranks", "2", "--sizes", "64"];
        let uneven = ["--collective", "scatterv", "--factors", &at("factors")].map(str::to_owned);
        let uneven: Vec<&str> = uneven.iter().map(String::as_str).collect();
        let methods: &[&str] = if kinds.is_empty() { &[] } else { &["--methods", kinds] };
        let (text, _) = run(0, &[&common, &VERIFY[..], &uneven, methods, flags].concat());
        assert!(text.contains("in proportion to 1,3"), "{kinds}: {text}");
        let record = Path::new(&directory).join("measurements.csv");
        let rows = record::read::<CollectiveCall>(&record).unwrap().rows;
        let timed = |name: &&str| rows.iter().any(|row| row.method.to_string().contains(name));
        assert!(wanted.iter().all(timed), "{kinds}: {wanted:?} in {text}");
    }
}

#[test]
fn a_plug_in_that_is_wrong_or_not_there_ends_the_run_by_name() {
    let name = "a_plug_in_that_is_wrong_or_not_there_ends_the_run_by_name";
    let dir = tempfile::tempdir().unwrap();
    let Some(_turn) = have_mpirun(name) else { return };
    let Some(library) = library(dir.path()) else { return };
    let directory = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let verify = |code, name: &str, plugins: &[&str]| {
        measured(code, "verify", &directory(name), &[&VERIFY[..], plugins].concat()).1
    };

    let error =
        verify(1, "wrong", &["-l", &library, "-O", "wrong_Bcast", "--suboptions", "right=0"]);
    let wanted = format!("plugin:{library}:wrong_Bcast,suboptions=right=0");
    assert!(error.contains(&wanted) && error.contains("byte 63 on rank 1"), "{error}");
    let error = verify(1, "none", &["-l", &library, "-O", "chain_Bcast2"]);
    assert!(error.contains("no function chain_Bcast2"), "{error}");

    let nowhere = directory("nowhere.so");
    let libraries = ["-l", &library].repeat(3);
    for (flags, wanted) in [
        (&["-l", library.as_str()][..], "--operation"),
        (&["-O", "chain_Bcast"], "--plugin"),
        (&["-l", &library, "-O", "chain"], "--operation chain"),
        (&["-l", &library, "-O", "chain_Reduce"], "add it to --collective"),
        (&["-l", &nowhere, "-O", "chain_Bcast"], "nowhere.so"),
        (
            &[&libraries[..], &["-O", "a_Bcast", "-O", "b_Bcast"]].concat(),
            "--plugin is given 3 times, --operation 2 times",
        ),
    ] {
        let error = verify(2, "refused", flags);
        assert!(error.contains(wanted), "{flags:?}: {error}");
    }
    let help = colibri().args(["verify", "--help"]).output().unwrap();
    assert!(String::from_utf8_lossy(&help.stdout).contains("--suboptions <TEXT>"));
}
