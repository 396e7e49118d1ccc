//! `colibri check`: whether what a tuning chose still holds, on a frozen run whose ranks are made up.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::LazyLock,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    exports::{
        libraries::{self, Library},
        pypi,
    },
    frozen, other_libraries,
    skipped::skipped,
    support::{StandingTestbed, can_make_a_testbed, colibri, run},
};

/// A launcher that starts nothing: it writes the records that the MPI program would, of calls that take as long as
/// `times.json` says.
const LAUNCHER: &str = r##"
import json, os, random, sys

here = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
if words[0] == "--version":
    print("a launcher")
    sys.exit()
if os.path.exists(os.path.join(here, "fails")):
    print("no ranks today", file=sys.stderr)
    sys.exit(1)
value = lambda option: words[words.index(option) + 1]
record = value("--record")
if "platform" in words:
    with open(os.path.join(here, "first-job.json")) as told, open(record, "w") as out:
        out.write(told.read())
    sys.exit()
times = json.load(open(os.path.join(here, "times.json")))
plan = json.load(open(value("--plan")))
is_loaded = any(word.startswith("COLIBRI_PROFILES=") or "_rules_filename=" in word for word in words)
draw = random.Random(os.path.basename(record))
job = draw.gauss(0, times["noise"])
with open(record, "w") as out:
    out.write("#@schema=colibri/measurements/1\n")
    out.write("visit,collective,method,ran,procs,bytes,repetition,first_start_seconds,last_start_seconds,seconds,status\n")
    for number, visit in enumerate(plan["visits"]):
        cell = plan["cells"][visit["cell"]]
        point = f'{cell["collective"]} {cell["procs"]} {cell["bytes"]}'
        seconds = times["default"].get(point, 1e-3) * (times["loaded"].get(point, 1.0) if is_loaded else 1.0)
        if cell["bytes"] >= 8192:
            seconds *= times["long"]
        for repetition in range(visit["warmups"] + visit["repetitions"]):
            status = "warmup" if repetition < visit["warmups"] else "ok"
            took = seconds * 2.718281828 ** (job + draw.gauss(0, 0.002))
            out.write(f'{number},{cell["collective"]},default,,{cell["procs"]},{cell["bytes"]},{repetition},0,0,{took:.9f},{status}\n')
"##;

/// The frozen tuning run beside the launcher.
struct Checked {
    copies: frozen::RunCopies,
    /// The command that starts `{np}` ranks.
    launcher: String,
    /// What the default took when it was tuned, in seconds, by `collective procs bytes`.
    default: BTreeMap<String, f64>,
    /// The same of what is loaded.
    loaded: Vec<String>,
}

/// `collective procs bytes`
fn point(one: &Value) -> String {
    format!("{} {} {}", one["collective"].as_str().unwrap(), one["procs"], one["bytes"])
}

fn json_of(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

impl Checked {
    /// Nothing where there is no python3.
    fn new(test: &str) -> Option<Self> {
        let Some(python) = python() else {
            skipped(test, "no python3 on PATH");
            return None;
        };
        // A check starts it a hundred times: without what a site adds to it.
        let launcher = format!("{} -I -S", python.display());
        let copies = frozen::completed_run(&[]);
        let choices = json_of(&copies.path().join("tune/choices.json"));
        let confirmed = choices["confirmed"].as_array().unwrap();
        let way = confirmed.iter().find(|of| of["way"] == "preload").unwrap();
        let choices = way["choices"].as_array().unwrap();
        let replaced = choices.iter().filter(|one| one["method"] != "default");
        let loaded: Vec<String> = replaced.map(point).collect();
        let of_default = |one: &Value| Some((point(one), one["default_seconds"].as_f64()?));
        let default = choices.iter().filter_map(of_default).collect();
        assert!(loaded.len() >= 2, "{loaded:?}");
        fs::write(copies.path().join("launcher.py"), LAUNCHER).unwrap();
        let launcher = format!("{launcher} {} {{np}}", copies.path().join("launcher.py").display());
        let checked = Checked { copies, launcher, default, loaded };
        checked.set_first_job(&|_| ());
        Some(checked)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.copies.path().join(name)
    }

    /// What the first job tells: the run's own platform, but for this change.
    fn set_first_job(&self, change: &dyn Fn(&mut Value)) {
        let platform = json_of(&self.path("tune/summary.json"))["platform"].clone();
        let nodes: Vec<Value> = (0..4)
            .map(|rank| {
                json!({ "host": format!("n{rank}"), "ranks": [rank], "processors": 2,
                        "memory_bytes": null, "memory_limit_bytes": null, "sees_run": true })
            })
            .collect();
        let mut told = json!({ "schema": "colibri/first-job/1", "platform": platform,
                               "allowed_processors": ["0-1", "0-1", "0-1", "0-1"], "nodes": nodes });
        change(&mut told);
        fs::write(self.path("first-job.json"), told.to_string()).unwrap();
    }

    /// Has the run's own options start what a check starts.
    fn begin_as_here(&self) {
        let launcher = &self.launcher;
        let given = json!({ "schema": "colibri/options/1", "command": "tune", "options": {
                            "launcher": [launcher], "ranks": ["4"], "mpi-library": ["openmpi"] } });
        fs::write(self.path("tune/tune.json"), given.to_string()).unwrap();
    }

    /// What calls take with something loaded, relative to the default, by the index of what is loaded, and by how much
    /// jobs differ.
    fn set_times(&self, noise: f64, factor: impl Fn(usize) -> f64) {
        self.set_network(1.0, noise, factor);
    }

    /// The same where calls of 8 KiB and more take `long` times as long as when it was tuned.
    fn set_network(&self, long: f64, noise: f64, factor: impl Fn(usize) -> f64) {
        let loaded: BTreeMap<&String, f64> =
            self.loaded.iter().zip(0..).map(|(point, index)| (point, factor(index))).collect();
        let times =
            json!({ "noise": noise, "default": self.default, "loaded": loaded, "long": long });
        fs::write(self.path("times.json"), times.to_string()).unwrap();
    }

    fn check(&self, code: i32, ranks: &str, more: &[&str]) -> (String, String) {
        let mut command = colibri();
        command.current_dir(self.copies.path()).arg("check").args(["tune", "--way", "preload"]);
        command.args(["--launcher", &self.launcher, "--mpi-library", "openmpi", "--ranks", ranks]);
        let output = command.args(more).output().unwrap();
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(output.status.code(), Some(code), "{stdout}\n{stderr}");
        (stdout, stderr)
    }

    /// Every file of the run but those of its checks.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.path("tune")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true if path.ends_with("checks") => {}
                    true => folders.push(path),
                    false => {
                        let bytes = fs::read(&path).unwrap();
                        files.insert(path, bytes);
                    }
                }
            }
        }
        files
    }
}

/// PATH with the command under test in front.
fn search_path() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_colibri"));
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", program.parent().unwrap().display())
}

/// The line of the CI example that checks.
fn ci_command() -> String {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/ci/colibri-check.yml");
    let text = fs::read_to_string(example).unwrap();
    let mut commands = text.lines().filter_map(|line| line.trim().strip_prefix("- colibri "));
    format!("colibri {}", commands.next().unwrap())
}

/// The interpreter itself: `python3` on PATH may be a script that looks for it first, each time.
fn python() -> Option<PathBuf> {
    static PYTHON: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let script = "import sys; print(sys.executable)";
        let output = Command::new("python3").args(["-c", script]).output().ok()?;
        Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
    });
    PYTHON.clone()
}

/// What Python's parser of XML reads of a file: its root's attributes, and how many of these elements it has.
fn parsed(junit: &Path) -> String {
    let script = "import sys, xml.etree.ElementTree as tree\nroot = tree.parse(sys.argv[1]).getroot()\n\
                  count = lambda name: len(list(root.iter(name)))\n\
                  print(root.tag, root.get('tests'), root.get('failures'), root.get('skipped'), count('testcase'), \
                  count('failure'), count('skipped'))";
    let output = Command::new(python().unwrap()).args(["-c", script]).arg(junit).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_check_says_whether_choices_hold_do_harm_or_cannot_be_judged() {
    let test = "a_check_says_whether_choices_hold_do_harm_or_cannot_be_judged";
    let Some(checked) = Checked::new(test) else { return };
    let before = checked.files();

    checked.set_times(0.01, |_| 0.6);
    let (held, told) = checked.check(0, "4", &["--junit", "junit.xml"]);
    let last = held.lines().last().unwrap();
    assert!(last.starts_with("Verdict  profiles: the choices hold: it is faster"), "{held}");
    assert!(last.ends_with("There is no reason to tune again."), "{held}");
    assert!(!held.contains("Changed  "), "{held}");
    assert!(told.contains("recorded: ") && told.contains("tune/checks/20"), "{told}");
    let junit = parsed(&checked.path("junit.xml"));
    let cases = junit.split(' ').nth(1).unwrap();
    assert_eq!(junit, format!("testsuite {cases} 0 0 {cases} 0 0"), "{held}");

    // One of what is loaded does harm.
    checked.set_times(0.01, |index| if index == 1 { 1.6 } else { 0.6 });
    let (harmed, _) = checked.check(4, "4", &["--format", "json", "--junit", "junit.xml"]);
    let harmed: Value = serde_json::from_str(&harmed).unwrap();
    assert_eq!(
        (&harmed["schema"], &harmed["verdict"]),
        (&"colibri/check/1".into(), &"harm".into())
    );
    let slower: Vec<String> = harmed["points"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["verdict"] == "now_slower")
        .map(point)
        .collect();
    assert_eq!(slower, [checked.loaded[1].clone()], "{harmed:#}");
    assert!(harmed["tune_again"].as_str().unwrap().contains("1 point is slower"), "{harmed:#}");
    assert!(parsed(&checked.path("junit.xml")).contains(&format!(" {cases} 1 0")));

    // Nothing is gained any more: no harm, but a reason to tune again.
    checked.set_times(0.005, |_| 1.0);
    let (even, _) = checked.check(0, "4", &[]);
    assert!(even.contains("no longer faster") && even.contains("Tune again: "), "{even}");

    // Jobs differ by more than what is gained.
    checked.set_times(0.6, |_| 0.9);
    let (noisy, _) = checked.check(3, "4", &["--junit", "junit.xml"]);
    assert!(noisy.contains("Verdict  profiles: can't tell: "), "{noisy}");
    assert!(noisy.contains("the interval holds a gain as well as none"), "{noisy}");

    // Every check has its own record; nothing else of the run was touched.
    assert_eq!(checked.files(), before);
    let records: Vec<PathBuf> = fs::read_dir(checked.path("tune/checks"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(records.len(), 4, "{records:?}");
    for record in &records {
        assert!(record.join("check.json").exists(), "{record:?}");
        assert!(record.join("confirmation-1-1-default.csv").exists(), "{record:?}");
        assert!(record.join("confirmation-1-3-preload.csv").exists(), "{record:?}");
    }
    let mut report = colibri();
    report.current_dir(checked.copies.path()).args(["report", "tune", "-o", "page.html"]);
    report.assert().success();
    let page = fs::read_to_string(checked.path("page.html")).unwrap();
    for wanted in ["Checks since", "the choices hold", "a choice does harm", "can't tell"] {
        assert!(page.contains(wanted), "{wanted}");
    }
}

#[test]
fn a_check_names_what_changed_and_points_that_the_ranks_do_not_hold() {
    let test = "a_check_names_what_changed_and_points_that_the_ranks_do_not_hold";
    let Some(checked) = Checked::new(test) else { return };
    checked.set_times(0.01, |_| 0.6);
    checked.set_first_job(&|told| {
        told["platform"]["mpi_library"] = "Open MPI v5.0.3, package: x".into();
        told["platform"]["kernel"] = "9.9.9".into();
    });
    let (text, _) = checked.check(0, "4", &[]);
    assert!(text.contains("Changed  MPI library: Open MPI v4"), "{text}");
    assert!(text.contains(" -> Open MPI v5.0.3\n"), "{text}");
    assert!(text.contains(" -> 9.9.9\n"), "{text}");
    assert!(text.contains("Tune again: changed: MPI library."), "{text}");

    checked.set_first_job(&|told| {
        for list in ["allowed_processors", "nodes"] {
            told[list].as_array_mut().unwrap().truncate(2);
        }
        told["platform"]["hosts"].as_array_mut().unwrap().truncate(2);
    });
    let (text, _) = checked.check(3, "2", &[]);
    assert!(text.contains("Changed  ranks: 4 -> 2"), "{text}");
    let wanted = "can't tell (the ranks at hand, 2 ranks on 2 nodes, don't hold it)";
    assert!(text.contains(wanted), "{text}");
}

/// No setting tells of the network's state: the default's times do.
#[test]
fn a_check_tells_a_slower_network_by_the_times_of_the_default() {
    let test = "a_check_tells_a_slower_network_by_the_times_of_the_default";
    let Some(checked) = Checked::new(test) else { return };
    checked.set_network(2.0, 0.01, |_| 0.6);
    let (text, _) = checked.check(0, "4", &[]);
    assert!(text.contains("Changed  times of the default: "), "{text}");
    assert!(text.contains("Tune again: changed: times of the default."), "{text}");
}

/// The example for CI, as it is, and with harm: its exit code and the file that it names.
#[test]
fn the_example_for_ci_fails_by_harm_alone() {
    let Some(checked) = Checked::new("the_example_for_ci_fails_by_harm_alone") else { return };
    let search = search_path();
    checked.begin_as_here();
    for (slowness, code, cases) in [(0.6, 0, " 0 0 "), (1.6, 4, " 0 ")] {
        checked.set_times(0.01, |_| slowness);
        let mut command = Command::new("sh");
        command.args(["-c", &ci_command()]).current_dir(checked.copies.path());
        command.env("PATH", &search).env("COLIBRI_RUN", "tune").env("COLIBRI_BUDGET", "60s");
        command.env("COLIBRI_OPTIONS", "--way preload").env("COLIBRI_PROC_STAT", "/dev/null");
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{told}");
        let junit = parsed(&checked.path("colibri-check.xml"));
        assert!(junit.contains(cases), "{junit}");
    }
}

/// The example for ReFrame passes where the choices hold, fails by harm, and leaves out what can't be told.
#[test]
#[ignore = "takes minutes: make test-long"]
fn the_example_for_reframe_passes_fails_and_skips() {
    let test = "the_example_for_reframe_passes_fails_and_skips";
    let Some(checked) = Checked::new(test) else { return };
    let environment = match pypi::environment("reframe", &["ReFrame-HPC"]) {
        Ok(environment) => environment,
        Err(why) => return skipped(test, &why),
    };
    checked.begin_as_here();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/reframe/colibri_check.py");
    for (slowness, noise, wanted) in [(0.6, 0.01, " OK"), (1.6, 0.01, " FAIL"), (0.9, 0.6, " SKIP")]
    {
        checked.set_times(noise, |_| slowness);
        let mut command = Command::new(environment.join("bin/reframe"));
        command.arg("-c").arg(&example).args(["-r", "--nocolor", "--prefix"]);
        command.arg(checked.path("reframe")).current_dir(checked.copies.path());
        command.args(["-S", "ColibriCheck.options=--way,preload"]);
        command.env("COLIBRI_RUN", checked.path("tune")).env("PATH", search_path());
        command.env("COLIBRI_PROC_STAT", "/dev/null");
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        let line = told.lines().find(|line| line.contains("(1/1) ColibriCheck"));
        assert!(line.is_some_and(|line| line.contains(wanted)), "{wanted}: {told}");
    }
}

/// Checks within a minute, that the machine's load does not lengthen by much.
#[track_caller]
fn check_in_a_minute(mut command: assert_cmd::Command, arguments: &[&str]) -> (i32, String) {
    let begun = Instant::now();
    let output = command.arg("check").args(arguments).args(["--budget", "50s"]).output().unwrap();
    let took = begun.elapsed();
    let [told, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(took < Duration::from_secs(75), "{took:?}: {errors}");
    (output.status.code().unwrap(), format!("{told}\n{errors}"))
}

/// A copy of a run of 4 processes, whose rules file is for 6.
fn with_rules_for_six(run: &Path, copy: &Path) {
    assert!(Command::new("cp").arg("-r").args([run, copy]).status().unwrap().success());
    let rules = copy.join("openmpi.rules");
    let of_six = |line: &str| match line.split_once(' ') {
        Some(("4", rest)) if rest.contains("# processes") => format!("6 {rest}\n"),
        Some(("5", rest)) if rest.contains("# larger than measured") => format!("7 {rest}\n"),
        _ => format!("{line}\n"),
    };
    let text = fs::read_to_string(&rules).unwrap();
    let other: String = text.lines().map(of_six).collect();
    assert!(other.contains("\n6 "), "{text}");
    fs::write(rules, other).unwrap();
}

/// On a virtual cluster: as it was, with a slow port, another version of the library, another number of ranks, rules for
/// another number of processes, and others that take the processors.
#[test]
#[ignore = "takes minutes: make test-long"]
fn a_virtual_cluster_is_checked_as_it_was_and_changed() {
    let test = "a_virtual_cluster_is_checked_as_it_was_and_changed";
    let Some(turn) = can_make_a_testbed(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let run_path = dir.path().join("run");
    let directory = run_path.display().to_string();
    let points = ["--collective", "bcast,reduce", "--procs", "4", "--sizes", "8KiB,64KiB,256KiB"];
    let tune = ["tune", &directory, "--testbed", "4", "--budget", "60s"];
    run(0, &[&tune[..], &points].concat());

    for way in ["rules", "preload", "preload"] {
        let (code, held) = check_in_a_minute(colibri(), &[&directory, "--way", way]);
        assert_eq!(code, 0, "{held}");
        assert!(held.contains("the choices hold") && !held.contains("Changed  "), "{held}");
    }

    let slow = StandingTestbed::up("slow", &["--nodes", "4", "--port", "3=50mbit"]);
    let (code, text) = check_in_a_minute(colibri(), &[&directory, "--testbed", &slow.name]);
    assert!([0, 4].contains(&code), "{text}");
    assert!(text.contains("Changed  links: 4 nodes at 100mbit -> "), "{text}");
    assert!(text.contains("Changed  times "), "{text}");
    assert!(text.contains("Tune again: ") && text.contains("changed: links, times "), "{text}");
    drop(slow);

    let (code, text) = check_in_a_minute(colibri(), &[&directory, "--ranks", "3"]);
    assert!(code == 3 && text.contains("Changed  ranks: 4 -> 3"), "{text}");

    let copy = dir.path().join("copy");
    with_rules_for_six(&run_path, &copy);
    let copy = copy.display().to_string();
    let (_, text) = check_in_a_minute(colibri(), &[&copy, "--way", "rules"]);
    let wanted = "observed calls ran another method than the one chosen";
    assert!(text.contains("Tune again: ") && text.contains(wanted), "{text}");

    // What others take of the processors is looked at, as users have it.
    let busy: Vec<BusyLoop> = (0..8).map(|_| BusyLoop::start()).collect();
    let mut command = colibri();
    command.env_remove("COLIBRI_PROC_STAT");
    let (code, text) = check_in_a_minute(command, &[&directory]);
    assert!(code == 3 && text.contains("can't tell: "), "{text}");
    drop(busy);

    drop(turn);
    let Some(newer) = libraries::open_mpi_5_0(test) else { return };
    let mut command = colibri();
    let launchers = Path::new(&newer.launcher_path()).parent().unwrap().display().to_string();
    let search = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{launchers}:{search}"));
    let (_, text) = check_in_a_minute(command, &[&directory]);
    assert!(text.contains("Changed  MPI library: Open MPI v4"), "{text}");
    assert!(text.contains(" -> Open MPI v5") && text.contains("Tune again: "), "{text}");
}

/// A process that does nothing else than to take a processor.
struct BusyLoop(Child);

impl BusyLoop {
    fn start() -> Self {
        BusyLoop(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The ranks of this machine, by the library that the run was tuned for and by another one: this is named, and calls by
/// what is loaded.
#[test]
#[ignore = "takes minutes: make test-long"]
fn local_ranks_are_checked_with_two_libraries() {
    let test = "local_ranks_are_checked_with_two_libraries";
    let Some(checked) = Checked::new(test) else { return };
    let run_path = checked.path("tune").display().to_string();
    let check = |library: &Library, programs: Option<PathBuf>| {
        let words = library.launcher();
        let words: Vec<String> =
            words.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let launcher = format!("{} {} -n {{np}}", library.launcher_path(), words.join(" "));
        let mut command = colibri();
        command.envs(library.environment().iter().cloned());
        command.envs(programs.map(|programs| ("COLIBRI_PROGRAMS", programs)));
        let options = ["--way", "preload", "--launcher", &launcher, "--ranks", "4"];
        let (code, text) = check_in_a_minute(command, &[&[&run_path[..]], &options[..]].concat());
        assert!([0, 3, 4].contains(&code), "{text}");
        assert!(
            text.contains("Changed  links: ") && text.contains("\nVerdict  profiles: "),
            "{text}"
        );
        let ran = text.lines().find(|line| line.starts_with("Ran ")).unwrap_or_default();
        let numbers: Vec<&str> =
            ran.split(' ').filter(|word| word.parse::<u64>().is_ok()).collect();
        assert!(numbers.len() == 2 && numbers[0] == numbers[1], "{text}");
        text
    };
    if let Some(library) = libraries::open_mpi_4_1(test) {
        check(&library, None);
    }
    if let Some(library) = libraries::mpich_4_0(test) {
        let text = check(&library, Some(other_libraries::programs(&library, "mpich-4.0")));
        assert!(text.contains("Changed  MPI library: Open MPI v4"), "{text}");
        assert!(text.contains(" -> MPICH"), "{text}");
    }
}

/// Layouts of four nodes, of two ranks and of one on each.
#[test]
#[ignore = "takes minutes: make test-long"]
fn layouts_are_checked_on_the_ranks_that_hold_them() {
    let test = "layouts_are_checked_on_the_ranks_that_hold_them";
    let Some(_turn) = can_make_a_testbed(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("run").display().to_string();
    let nodes = StandingTestbed::up("layouts", &["--nodes", "4", "--ppn", "2"]);
    let tune = ["tune", &directory, "--testbed", &nodes.name, "--budget", "90s"];
    let points = ["--collective", "bcast", "--layouts", "4x2,4x1", "--sizes", "64KiB,256KiB"];
    run(0, &[&tune[..], &points].concat());
    let (code, text) = check_in_a_minute(colibri(), &[&directory, "--testbed", &nodes.name]);
    assert!([0, 3].contains(&code) && text.contains(" 4x2 "), "{text}");
    assert!(!text.contains("Changed  ") && !text.contains("don't hold it"), "{text}");
    drop(nodes);
    // One rank on each node.
    let (code, text) =
        check_in_a_minute(colibri(), &[&directory, "--testbed", "4", "--ranks", "4"]);
    assert!([0, 3].contains(&code), "{text}");
    assert!(text.contains("Changed  ranks: 8 -> 4"), "{text}");
}

#[test]
fn a_check_that_is_wrongly_used_or_fails_says_so_and_leaves_nothing() {
    let test = "a_check_that_is_wrongly_used_or_fails_says_so_and_leaves_nothing";
    let Some(checked) = Checked::new(test) else { return };
    checked.set_times(0.01, |_| 0.6);
    let before = checked.files();
    fs::write(checked.path("fails"), "").unwrap();
    let (_, failed) = checked.check(1, "4", &[]);
    assert!(failed.contains("no ranks today"), "{failed}");
    let (_, wrong) = checked.check(2, "4", &["--budget", "soon"]);
    assert!(wrong.contains("--budget"), "{wrong}");
    assert_eq!(checked.files(), before);
    assert!(!checked.path("tune/checks").exists(), "a check that never began left a record");

    let other = |code: i32, arguments: &[&str]| {
        let output = colibri().current_dir(checked.copies.path()).args(arguments).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{told}");
        told
    };
    assert!(other(1, &["check", "nowhere"]).contains("there is no such run"));
    let calibrated = other(2, &["check", "calibration"]);
    assert!(calibrated.contains("holds no choices yet"), "{calibrated}");
    let both = other(2, &["check", "tune", "--way", "both"]);
    assert!(both.contains("was not tuned for that way of loading, only for: "), "{both}");
    fs::remove_dir_all(checked.path("tune/profiles")).unwrap();
    let gone = other(1, &["check", "tune", "--way", "preload"]);
    assert!(gone.contains("profiles: is not there; 'colibri export' writes it anew"), "{gone}");
}
