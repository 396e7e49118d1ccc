//! `colibri tune RUN -- ./application`: traced, tuned for and run again, killed on the way; and what goes wrong.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    skipped::skipped,
    support::{colibri, colibri_process, compiled_by_open_mpi, have_mpirun},
};

/// Sends 256 KiB so many times; or fails as it is told.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char data[1 << 18];
int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int rank;
    if (!strcmp(what, "nothing")) { puts("hello"); return 0; }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double begun = MPI_Wtime();
    if (!strcmp(what, "exit") && rank == 1) { fprintf(stderr, "no such atom\n"); exit(7); }
    if (!strcmp(what, "abort") && rank == 1) abort();
    for (int i = 0; i < atoi(what); i++)
        MPI_Bcast(data, sizeof data, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("took %f\n", MPI_Wtime() - begun);
    MPI_Finalize();
    return 0;
}
"#;

/// A default that anything is faster than: pieces of 64 bytes.
const SLOW: [(&str, &str); 3] = [
    ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"),
    ("OMPI_MCA_coll_tuned_bcast_algorithm", "3"),
    ("OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize", "64"),
];
const AS_ROOT: [(&str, &str); 2] =
    [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

/// Starts the command in a group of its own, and kills that as soon as this file is there.
fn kill_when_there(command: &mut Command, file: &Path) {
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(120);
    while !file.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before {}", file.display());
        assert!(Instant::now() < limit, "no {}", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
    let kill = format!("kill -KILL -{}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    child.wait().unwrap();
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// What a line of the five says, behind its heading.
fn said<'a>(stdout: &'a str, heading: &str) -> &'a str {
    let line = stdout.lines().find_map(|line| line.strip_prefix(heading));
    line.unwrap_or_else(|| panic!("no {heading}\n{stdout}")).trim()
}

/// Seconds that the application measures itself, when it is started by a command as it was printed.
fn took(command: &str) -> f64 {
    let output =
        Command::new("sh").args(["-c", command]).envs(AS_ROOT).envs(SLOW).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let seconds = text.lines().find_map(|line| line.strip_prefix("took "));
    seconds.unwrap_or_else(|| panic!("{command}: {text}")).trim().parse().unwrap()
}

#[test]
fn an_application_is_traced_tuned_for_and_run_again_in_turns() {
    let test = "an_application_is_traced_tuned_for_and_run_again_in_turns";
    let Some(_turn) = have_mpirun(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compiled_by_open_mpi(dir.path(), PROGRAM) else {
        return skipped(test, "no mpicc here");
    };
    let run = dir.path().join("run");
    let program = program.to_str().unwrap();
    // On a busy machine waiting ranks must not spin, and there may be no time to confirm anything.
    let begin = ["tune", run.to_str().unwrap(), "--ranks", "2", "--budget", "30s", "--resume"];
    let launcher = "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np {np}";
    let few = ["--methods", "own", "--segments", "8KiB", "--unconfirmed"];
    let begin = [&begin[..], &few, &["--launcher", launcher, "--", program, "200"]].concat();

    // Killed while it is traced, it is traced again; killed between its turns, the recorded ones stay.
    let start = |arguments: &[&str]| {
        let mut command = colibri_process(arguments);
        command.envs(SLOW);
        command
    };
    let file = |name: &str| run.join("application").join(name);
    kill_when_there(&mut start(&begin), &file("traced.log"));
    assert!(!run.join("usage.json").exists());
    kill_when_there(&mut start(&begin), &file("turn-1-with.json"));
    let kept = [run.join("usage.json"), file("traced.json"), file("turn-1-without.json")];
    let before: Vec<Vec<u8>> = kept.iter().map(|path| fs::read(path).unwrap()).collect();

    // The application need not be named again, and cannot be another one.
    let go_on = |more: &[&str], code: i32| {
        let output = colibri().envs(SLOW).args(&begin[..2]).arg("--resume").args(more).output();
        let output = output.unwrap();
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
        (stdout, stderr)
    };
    let (stdout, stderr) = go_on(&[], 0);
    let after: Vec<Vec<u8>> = kept.iter().map(|path| fs::read(path).unwrap()).collect();
    assert_eq!(after, before, "{stderr}");
    let (_, refused) = go_on(&["--", program, "201"], 2);
    assert!(refused.contains(&format!("the application was {program} 200, is now")), "{refused}");
    let (again, _) = go_on(&[], 0);
    assert_eq!(again, stdout);

    let summary = json(&run.join("summary.json"));
    let turns = summary["application"]["turns"].as_array().unwrap();
    assert!((2..=8).contains(&turns.len()), "{summary:#}");
    for (number, turn) in (1..).zip(turns) {
        for name in ["without", "with"] {
            let usage = json(&file(&format!("turn-{number}-{name}.json")));
            assert_eq!(usage["seconds"], turn[name]["seconds"]);
            assert_eq!(turn[name]["calls"], 200);
            let log = fs::read_to_string(file(&format!("turn-{number}-{name}.log"))).unwrap();
            assert!(log.contains("took "), "{log}");
        }
        assert_eq!(turn["without"]["replaced_calls"], 0);
        assert_eq!(turn["with"]["replaced_calls"], 200);
    }
    let plan = json(&run.join("plan.json"));
    for cell in plan["cells"].as_array().unwrap() {
        assert_eq!((&cell["collective"], &cell["bytes"]), (&"bcast".into(), &(1 << 18).into()));
    }
    assert!(said(&stdout, "Gain     The application: ").contains(" times as fast ("), "{stdout}");
    let of = |name: &str| {
        let mut seconds: Vec<f64> =
            turns.iter().map(|turn| turn[name]["seconds"].as_f64().unwrap()).collect();
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2]
    };
    assert!(of("without") > 1.3 * of("with"), "{stdout}");
    let [with, without] = ["To load  ", "Unload   "].map(|heading| said(&stdout, heading));
    assert!(with.ends_with(&format!("{program} 200")) && with.contains(" -np 2 "), "{with}");
    let [with, without] = [with, without].map(took);
    assert!(with < without, "{with} {without}");

    colibri().arg("report").arg(&run).assert().success();
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("Run in turns without and with "), "the report has its times");
}

#[test]
fn an_application_that_cannot_be_tuned_says_in_which_step_and_why() {
    let test = "an_application_that_cannot_be_tuned_says_in_which_step_and_why";
    let Some(_turn) = have_mpirun(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compiled_by_open_mpi(dir.path(), PROGRAM) else {
        return skipped(test, "no mpicc here");
    };
    let program = program.to_str().unwrap();
    let run = dir.path().join("run");
    let refused = |more: &[&str], code: i32, wanted: &[&str]| {
        let mut command = colibri();
        command.envs(AS_ROOT).args(["tune", run.to_str().unwrap(), "--ranks", "2"]);
        let output = command.args(more).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{more:?}: {stderr}");
        for words in wanted {
            assert!(stderr.contains(words), "{more:?}: {stderr}");
        }
        assert!(output.stdout.is_empty() && !run.join("usage.json").exists());
        // What failed stands nowhere in the way.
        assert!(!run.join("application/traced.json").exists() || wanted[0].contains("calls"));
    };
    refused(&["--", "./no-such-program"], 2, &["./no-such-program: there is no such program"]);
    refused(&["--", "mpirun", "-np", "2", program], 2, &["name the application alone behind --"]);
    refused(&["--sbatch", "--", program], 2, &["give the job's time limit"]);
    refused(&["--sizes", "1KiB", "--", program], 2, &["cannot be used with"]);
    assert!(!run.exists(), "a run was begun");
    let traced = "application, traced: ";
    let of = |what| ["--", program, what];
    refused(
        &of("exit"),
        1,
        &[traced, "exit code 7", "\n    no such atom", "all that it printed: "],
    );
    refused(&of("abort"), 1, &[traced, "rank 1 on ", "signal 6"]);
    refused(&of("nothing"), 1, &[traced, "no rank recorded its calls"]);
    refused(&of("0"), 1, &["field calls: is empty", traced]);
    let Some(other) = by_mpich(dir.path()) else { return skipped(test, "no mpicc.mpich here") };
    refused(&["--", &other, "5"], 2, &[traced, "each of the 2 ranks ran as an MPI program"]);
}

/// The program built by MPICH's compiler.
fn by_mpich(folder: &Path) -> Option<String> {
    let [file, program]: [PathBuf; 2] = ["program.c", "mpich"].map(|name| folder.join(name));
    let output = Command::new("mpicc.mpich").arg("-o").args([&program, &file]).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program.to_str().unwrap().to_owned())
}
