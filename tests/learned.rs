//! What applications have taught: `report` and `export` of the directory that COLIBRI_ADAPT named.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use records::{
    Collective, Layout, Method, Point, document,
    learned::{Learned, LearnedClass, LearnedMethod, LogRatios, store},
    profile::{OtherLayouts, read_directory},
    usage::Usage,
};

use crate::{
    skipped::skipped,
    support::{compiled_by_open_mpi, have_mpirun, run},
};

const OPEN_MPI: &str = "Open MPI 4.1.4";

/// Trials of a method with this mean and scatter of the logarithm of its time over the default's.
fn tried(method: &str, trials: u64, mean: f64, scatter: f64) -> LearnedMethod {
    let squares = scatter * scatter * (trials.max(1) - 1) as f64;
    let ratios = LogRatios { trials, mean, squares };
    LearnedMethod { method: method.parse().unwrap(), ratios }
}

/// A class of sizes from a power of two; the first method is the chosen one.
fn class(layout: &str, bytes: u64, tried: Vec<LearnedMethod>) -> LearnedClass {
    LearnedClass {
        point: Point::new(Collective::Bcast, layout.parse().unwrap(), bytes),
        last_bytes: 2 * bytes - 1,
        calls: 1000,
        default_seconds: 2e-3,
        chosen: tried.first().map_or(Method::Default, |tried| tried.method.clone()),
        tried,
    }
}

fn learned(library: &str, classes: Vec<LearnedClass>) -> Learned {
    let mut learned = Learned::new(library.into(), "AMD EPYC 7543".into());
    (learned.jobs, learned.classes) = (3, classes);
    learned
}

/// Two neighbouring classes of one method, one of another behind them, one that is not sure, one left to the default.
fn classes(layout: &str) -> Vec<LearnedClass> {
    let slower = LearnedClass {
        chosen: Method::Default,
        ..class(layout, 1 << 20, vec![tried("own:linear", 8, 0.4, 0.1)])
    };
    vec![
        class(layout, 4096, vec![tried("own:pipeline,segment=8KiB", 9, -0.5, 0.1)]),
        class(
            layout,
            1024,
            vec![tried("own:binomial", 12, -0.7, 0.1), tried("own:linear", 2, 0.5, 0.1)],
        ),
        class(layout, 2048, vec![tried("own:binomial", 12, -0.2, 0.1)]),
        class(layout, 16384, vec![tried("own:binary", 4, -0.1, 0.3)]),
        slower,
    ]
}

#[test]
fn a_report_tells_what_was_learned_where_most_time_is_spent_first() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    let mut all = classes("8x4");
    all[3].calls = 5000;
    store::add(dir.path(), &learned(OPEN_MPI, all)).unwrap();
    let (stdout, stderr) = run(0, &["report", place]);
    assert_eq!(stderr, "");
    assert!(!dir.path().join("report.html").exists(), "a page is made where it is asked for");
    let begin = "Learned while applications ran: Open MPI 4.1.4 on AMD EPYC 7543, 3 jobs.\n\
                 Trials show a method faster than the default for 3 of 5 kinds of calls. All calls take 18.0 s by the \
                 default, 14.9 s by what is chosen (17.3 % less).\n";
    assert!(stdout.starts_with(begin), "{stdout}");
    let lines: Vec<Vec<&str>> = stdout
        .lines()
        .filter(|line| line.trim_start().starts_with("bcast"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), 5, "{stdout}");
    let words = |line: &[&str]| line.join(" ");
    assert!(
        words(&lines[0]).starts_with("bcast 8x4 16 KiB to 32767 B 5000 2.00 ms binary 1.11 0."),
        "{stdout}"
    );
    let line = words(&lines[2]);
    assert!(
        line.starts_with("bcast 8x4 2 KiB to 4095 B 1000 2.00 ms binomial 1.22 1.15 to 1.30 12 1"),
        "{line}"
    );
    let line = words(&lines[4]);
    assert!(line.starts_with("bcast 8x4 1 MiB to 2097151 B 1000 2.00 ms default 1"), "{line}");
    let page = dir.path().join("page.html");
    run(0, &["report", place, "--output", page.to_str().unwrap()]);
    let page = fs::read_to_string(page).unwrap();
    let heading = "<h2>What applications have taught: Open MPI 4.1.4 on AMD EPYC 7543</h2>";
    assert!(page.contains(heading) && page.contains("<td>1.15 to 1.30</td>"), "{page}");
}

#[test]
fn a_directory_in_which_nothing_was_learned_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    let (_, stderr) = run(1, &["report", place]);
    assert!(stderr.contains("is an empty directory"), "{stderr}");
    let broken = store::folder(dir.path()).join("x.json");
    fs::create_dir_all(broken.parent().unwrap()).unwrap();
    let commands = [&["report", place][..], &["export", place, "--target", "profile", "-o", "x"]];
    for command in commands {
        let (_, stderr) = run(1, command);
        assert!(
            stderr.contains("no application has taught anything that can be read there"),
            "{stderr}"
        );
        assert!(stderr.contains(&format!("COLIBRI_ADAPT={place}")), "{stderr}");
    }
    fs::write(&broken, "{\"schema\": \"colibri/learned/1\", \"library\": 7}").unwrap();
    for command in commands {
        let (_, stderr) = run(1, command);
        assert!(
            stderr.contains("left out: ") && stderr.contains("field library: invalid type"),
            "{stderr}"
        );
    }
    store::add(dir.path(), &learned(OPEN_MPI, classes("8"))).unwrap();
    let (stdout, stderr) = run(0, &["report", place]);
    assert!(stdout.contains("binomial") && stderr.contains("left out: "), "{stdout}{stderr}");
}

/// First and last size, method, gain.
type HeldRange = (u64, u64, String, Option<f64>);

/// What lies in a directory of profiles, by layout.
fn held(profiles: &Path) -> BTreeMap<String, Vec<HeldRange>> {
    let found = read_directory(profiles, |_| Ok(())).unwrap();
    assert!(found.unusable.is_empty(), "{:?}", found.unusable);
    let ranges = found.profiles.into_iter().map(|profile| {
        assert_eq!(profile.other_layouts, OtherLayouts::Exact);
        assert_eq!(profile.library, OPEN_MPI);
        let rounded = |gain: f64| (gain * 100.0).round() / 100.0;
        let ranges = profile.ranges.iter().map(|range| {
            let of = &range.choice;
            (range.first_bytes, range.last_bytes, of.method.to_string(), of.gain.map(rounded))
        });
        (profile.layout.unwrap().to_string(), ranges.collect())
    });
    ranges.collect()
}

#[test]
fn an_export_holds_what_was_shown_to_be_faster_and_joins_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    let all = [classes("8x4"), classes("8")].concat();
    store::add(dir.path(), &learned(OPEN_MPI, all)).unwrap();
    let output = dir.path().join("profiles");
    let to = ["export", place, "--target", "profile", "--output", output.to_str().unwrap()];
    let (_, stderr) = run(0, &to);
    let verdict = "verdict: Open MPI 4.1.4 on AMD EPYC 7543: Load it. Trials show a method faster than the default for 6 \
                   kinds of calls; of 2 others the method in use is not shown to be faster yet";
    assert!(stderr.contains(verdict) && stderr.contains("-x COLIBRI_PROFILES="), "{stderr}");
    let shown = vec![
        (1024, 4095, "own:binomial".to_owned(), Some(1.22)),
        (4096, 8191, "own:pipeline,segment=8KiB".to_owned(), Some(1.65)),
    ];
    let wanted = [("8x4".to_owned(), shown.clone()), ("8".to_owned(), shown.clone())];
    assert_eq!(held(&output), wanted.into());
    let text = fs::read_to_string(output.join("bcast-8x4.json")).unwrap();
    let about = "2 KiB to 4095 B: own:binomial, 1.22 times as fast as the default (95 %: 1.15 to 1.30, 12 trials).";
    assert!(text.contains("3 jobs.") && text.contains(about), "{text}");
    run(0, &[&to[..], &["--unconfirmed"]].concat());
    let unsure = (16384, 32767, "own:binary".to_owned(), Some(1.11));
    assert_eq!(held(&output)["8x4"], [shown, vec![unsure]].concat());
}

#[test]
fn each_library_gets_a_folder_and_one_file_can_be_named() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    store::add(dir.path(), &learned("MPICH 4.0.2", vec![class("8", 1, Vec::new())])).unwrap();
    let file = store::add(dir.path(), &learned(OPEN_MPI, classes("8x4"))).unwrap().path;
    let (stdout, _) = run(0, &["report", place]);
    assert!(
        stdout.contains("MPICH 4.0.2 on AMD") && stdout.contains("Open MPI 4.1.4 on AMD"),
        "{stdout}"
    );
    let output = dir.path().join("profiles");
    let (_, stderr) =
        run(0, &["export", place, "--target", "profile", "--output", output.to_str().unwrap()]);
    assert!(stderr.contains("verdict: MPICH 4.0.2 on AMD EPYC 7543: Nothing to load."), "{stderr}");
    let names: Vec<_> =
        fs::read_dir(&output).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["open-mpi-4.1.4-amd-epyc-7543"]);
    assert_eq!(held(&output.join(&names[0])).len(), 1);
    let one = dir.path().join("one");
    let to = ["--target", "profile", "--output", one.to_str().unwrap()];
    run(0, &[&["export", file.to_str().unwrap()][..], &to].concat());
    assert_eq!(held(&one).len(), 1);
}

#[test]
fn what_no_rules_file_can_name_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    store::add(dir.path(), &learned(OPEN_MPI, classes("8"))).unwrap();
    let (_, stderr) = run(2, &["export", place, "--target", "openmpi", "--output", "x"]);
    assert!(
        stderr.contains("which --target profile writes") && stderr.contains("are not among them"),
        "{stderr}"
    );
    let (_, stderr) =
        run(2, &["export", place, "--target", "profile", "--output", "x", "--layouts", "8x4"]);
    assert!(stderr.contains("--layouts: is for the choices of a run"), "{stderr}");
    let (_, stderr) = run(2, &["export", place, "--target", "profile"]);
    assert!(stderr.contains("name it by --output"), "{stderr}");
    // What a tuning has confirmed goes first.
    fs::write(dir.path().join("choices.json"), "{}").unwrap();
    let (_, stderr) = run(1, &["export", place, "--target", "profile", "--output", "x"]);
    assert!(stderr.contains("choices.json"), "{stderr}");
}

const PROGRAM: &str = "#include <mpi.h>\n\
    #include <stdlib.h>\n\
    static char data[8192];\n\
    int main(int argc, char **argv) {\n\
        MPI_Init(&argc, &argv);\n\
        for (int i = 0; i < atoi(argv[1]); i++)\n\
            for (int bytes = 512; bytes <= 8192; bytes *= 2) MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);\n\
        MPI_Finalize();\n\
        return 0;\n\
    }\n";

/// Runs it with so many calls of each size on two ranks of this machine under the preload library with these variables; nothing where it cannot be run.
fn run_program(test: &str, folder: &Path, calls: u64, variables: &[(&str, &Path)]) -> Option<()> {
    let library = Path::new(env!("CARGO_BIN_EXE_colibri")).with_file_name("libcolibri.so");
    if !library.exists() {
        skipped(test, "libcolibri.so is not built");
        return None;
    }
    let Some(program) = compiled_by_open_mpi(folder, PROGRAM) else {
        skipped(test, "no mpicc here");
        return None;
    };
    let mut job = Command::new("mpirun");
    job.args(["-np", "2", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
    for (name, value) in [("LD_PRELOAD", &*library)].iter().chain(variables) {
        job.args(["-x", name]).env(name, value);
    }
    job.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    let output = job.arg(program).arg(calls.to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// Two jobs leave one file; what it tells is reported.
#[test]
fn what_jobs_have_taught_is_there_and_reported() {
    let test = "what_jobs_have_taught_is_there_and_reported";
    let Some(_turn) = have_mpirun(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let adapt = dir.path().join("new/adapt");
    for _ in 0..2 {
        if run_program(test, dir.path(), 2000, &[("COLIBRI_ADAPT", &adapt)]).is_none() {
            return;
        }
    }
    let found = store::read_all(&adapt).unwrap();
    let [(_, learned)] = &found.learned[..] else { panic!("{found:?}") };
    assert!(found.unusable.is_empty() && learned.library.starts_with("Open MPI"), "{found:?}");
    let calls: Vec<(u64, u64)> =
        learned.classes.iter().map(|class| (class.point.bytes, class.calls)).collect();
    assert_eq!(
        (learned.jobs, calls),
        (2, [512, 1024, 2048, 4096, 8192].map(|bytes| (bytes, 4000)).into())
    );
    let (stdout, _) = run(0, &["report", adapt.to_str().unwrap()]);
    assert!(stdout.contains(", 2 jobs.\n") && stdout.contains("8 KiB to 16383 B"), "{stdout}");
}

/// The preload library runs what was exported, in the sizes that it was learned for.
#[test]
fn what_is_exported_runs() {
    let test = "what_is_exported_runs";
    let Some(_turn) = have_mpirun(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::from_nodes(&[0, 0]).unwrap();
    let learned = learned(OPEN_MPI, classes(&format!("{layout:#}")));
    store::add(dir.path(), &learned).unwrap();
    let [profiles, trace] = ["profiles", "trace.json"].map(|name| dir.path().join(name));
    let [place, to] = [dir.path(), &profiles].map(|path| path.to_str().unwrap());
    run(0, &["export", place, "--target", "profile", "--output", to]);
    let variables = [("COLIBRI_PROFILES", &*profiles), ("COLIBRI_TRACE", &*trace)];
    if run_program(test, dir.path(), 10, &variables).is_none() {
        return;
    }
    let usage: Usage = document::read(&trace).unwrap();
    let ran: BTreeMap<u64, String> =
        usage.calls.iter().map(|calls| (calls.point.bytes, calls.method.to_string())).collect();
    let wanted = [
        (512, "default"),
        (1024, "own:binomial"),
        (2048, "own:binomial"),
        (4096, "own:pipeline,segment=8KiB"),
        (8192, "default"),
    ];
    assert_eq!(ran, wanted.map(|(bytes, method)| (bytes, method.to_owned())).into());
}
