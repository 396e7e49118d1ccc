//! The results of the commands that read a run, on three records that stay as they are: choices, rules, profiles and
//! numbers. It guards what is rebuilt: a change of a result is seen here, wanted or not. How results are worded and drawn
//! is tested elsewhere.
//!
//! `tests/frozen/README.md` tells where the records come from and how what is expected is written
//! anew.

mod comparer;
pub mod steps;

use std::{
    collections::BTreeSet,
    env,
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::Output,
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use crate::{
    lost_output::{full, unread},
    support::{colibri, colibri_process},
};
use comparer::{Outputs, differences, result};
use steps::{CALIBRATION, FrozenCommand, GUIDELINES, TUNE};

/// Set to 1, it has what is expected written anew instead of compared.
const REWRITE: &str = "COLIBRI_REWRITE_EXPECTED";

/// What is read of MPICH's library: its version, and how it chooses by itself.
pub const LIBRARY_OF_MPICH: &str = concat!(
    "\u{7f}ELF\04.0.2\0{",
    r#""collective=bcast":{"comm_type=intra":{"algorithm=MPIR_Bcast_intra_binomial":{}}},"#,
    r#""collective=reduce":{"comm_type=intra":{"algorithm=MPIR_Reduce_intra_binomial":{}}}"#,
    "}\0"
);

/// Name of the text that says how a step ended.
const ENDED: &str = "ended.txt";

#[test]
fn a_tuning_run_is_read_as_before() {
    check("tune", TUNE);
}

#[test]
fn a_run_of_guidelines_is_read_as_before() {
    check("guidelines", GUIDELINES);
}

#[test]
fn a_calibration_is_read_as_before() {
    check("calibration", CALIBRATION);
}

/// The same run, had its record told that a third of the processors was stolen during some of its jobs.
struct StolenRun {
    copies: RunCopies,
}

impl StolenRun {
    /// `is_stolen` says of a record's name whether that was so.
    fn new(is_stolen: impl Fn(&str) -> bool) -> Self {
        let copies = RunCopies::new();
        for path in files(&copies.path().join("tune")) {
            let name = path.file_name().unwrap().to_str().unwrap();
            if !name.ends_with(".csv") || !is_stolen(name) {
                continue;
            }
            let record = fs::read_to_string(&path).unwrap();
            let told = |line: &str| match line.starts_with("#@disturbance=") {
                true => line.replacen("\"stolen\":0.", "\"stolen\":0.32", 1),
                false => line.to_owned(),
            };
            fs::write(&path, record.split_inclusive('\n').map(told).collect::<String>()).unwrap();
        }
        // Else further jobs would be made where these confirm nothing.
        let settled = copies.path().join("tune/confirmation.json");
        let text = fs::read_to_string(&settled).unwrap();
        let mut time: serde_json::Value = serde_json::from_str(&text).unwrap();
        time["seconds"] = 1.0.into();
        fs::write(&settled, time.to_string()).unwrap();
        StolenRun { copies }
    }

    /// What a step prints to stdout.
    fn printed(&self, name: &str) -> String {
        self.copies.complete(name)
    }

    fn details(&self) -> String {
        fs::read_to_string(self.copies.path().join("tune/summary.txt")).unwrap()
    }
}

/// Verdict, gain, what is loaded, how, and for what it holds; all else is in summary.txt, which `--details` prints.
#[test]
fn a_tuning_ends_with_five_lines() {
    let copies = RunCopies::new();
    let printed = |more: Option<&str>| {
        let mut command = colibri();
        command.args(TUNE[0].arguments.split_whitespace()).args(more).current_dir(copies.path());
        command.env("COLIBRI_PROGRAMS", copies.path().join("programs"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let five = printed(None);
    let headings: Vec<&str> = five.lines().map(|line| line[..9].trim_end()).collect();
    assert_eq!(headings, ["Verdict", "Gain", "Loaded", "To load", "Holds"], "{five}");
    // By the profiles, which gain more than the rules.
    for part in [
        "profiles: Load it. It is faster at 4 of 12 points",
        "1.36 (95 % interval 1.32 to 1.40) in the mean over all 12 points; greatest 2.60 (2.44 to 2.76): bcast of",
        "; by openmpi.rules 1.29.",
        "bcast at 2, reduce at 2 points; 8 are left to the library's default.",
        "LD_PRELOAD=",
        "on 4 ranks on 4 hosts, testbed of 4 nodes at 100mbit, Open MPI v4.1.4. After an upgrade of the MPI library",
    ] {
        assert!(five.contains(part), "{part}: {five}");
    }
    let details = printed(Some("--details"));
    let file = fs::read_to_string(copies.path().join("tune/summary.txt")).unwrap();
    assert!(file.starts_with(&details) && details.contains("openmpi.rules: Load it."), "{details}");
}

/// On the terminal, in the report and in all that is to be loaded.
#[test]
fn the_verdict_and_the_counts_are_the_same_everywhere() {
    let copies = completed_run(&["report"]);
    let read = |name: &str| fs::read_to_string(copies.path().join(name)).unwrap();
    let verdict =
        "Load it. It is faster at 6 of 12 points, each confirmed by at least 3 pairs of jobs.";
    let counts = "6 of 12 points replaced: 6 confirmed; 6 left to the default";
    for name in ["tune/summary.txt", "tune/report.html", "tune/openmpi.rules"] {
        let text = read(name);
        assert!(text.contains(verdict) && text.contains(counts), "{name}: {text}");
    }
    assert!(read("tune/modulefiles/colibri/testbed-openmpi-4.1.4").contains(verdict));
    let profiles = read("tune/profiles/bcast-4.json") + &read("tune/report.html");
    assert_eq!(profiles.matches("Load it. It is faster at 4 of 12 points").count(), 2);
    assert_eq!(profiles.matches("4 of 12 points replaced: 4 confirmed; 8 left").count(), 2);
    let summary: serde_json::Value = serde_json::from_str(&read("tune/summary.json")).unwrap();
    assert_eq!(summary["counts"]["confirmed"], 6);
    let ranges = summary["ranges"].as_array().unwrap();
    assert!(ranges.iter().all(|range| range["pairs"].as_u64() >= Some(3)), "{ranges:?}");
    assert!(ranges.iter().all(|range| range["interval"][0].as_f64() > Some(1.0)), "{ranges:?}");
}

/// `tune` has written modules of the run's files where they lay; a run that was copied gets its own.
#[test]
fn a_run_that_was_moved_gets_modules_of_all_ways_that_it_confirmed() {
    // Not a copy: that is moved already.
    let copies = RunCopies::new();
    copies.complete("resume");
    let place = fs::canonicalize(copies.path()).unwrap();
    let export = |arguments: &[&str]| {
        let mut command = colibri();
        command.arg("export").args(arguments).current_dir(&place);
        command.env("COLIBRI_PROGRAMS", place.join("programs"));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    fs::rename(place.join("tune"), place.join("moved")).unwrap();
    let (code, told) = export(&["moved", "--modulefiles", "modules"]);
    assert_eq!(code, Some(0), "{told}");
    let written = files(&place.join("moved/modulefiles"));
    assert!(written.len() >= 4, "{written:?}");
    for path in &written {
        let name = path.file_name().unwrap();
        let moved = fs::read_to_string(place.join("modules/colibri").join(name)).unwrap();
        let wanted = fs::read_to_string(path).unwrap();
        assert_eq!(moved, wanted.replace("/tune/", "/moved/"), "{name:?}");
        assert!(moved.contains(&place.join("moved").display().to_string()), "{moved}");
    }
    assert_eq!(told.matches("module load colibri/").count(), written.len() / 2, "{told}");
    // What such modules do not take is no reason to write others.
    for more in [&["--output", "file"][..], &["--unconfirmed"], &["--layouts", "4x1"]] {
        let (code, told) = export(&[&["moved", "--modulefiles", "more"], more].concat());
        assert!(code == Some(2) && told.contains("--target openmpi"), "{told}");
        assert!(!place.join("more").exists());
    }
}

/// A job that others disturbed is no pair of jobs: three were made, two of them confirm nothing.
#[test]
fn summary_and_report_begin_with_the_verdict_and_what_others_took() {
    let stolen = ["measurements.csv", "confirmation-2-1-rules.csv"];
    let run = StolenRun::new(|name| stolen.contains(&name));
    let stdout = run.printed("resume");
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].starts_with("Verdict  profiles: Load it. "), "{stdout}");
    assert!(lines[1].trim_start().starts_with("Other processes used "), "{stdout}");
    let details = run.details();
    let lines: Vec<&str> = details.lines().collect();
    assert!(lines[0].starts_with("openmpi.rules: Do not load it yet: "), "{details}");
    assert!(
        lines[0].contains("on idle nodes with `--budget 2m`. Nothing is confirmed to be faster"),
        "{details}"
    );
    assert!(lines[1].starts_with("profiles: Load it. "), "{details}");
    assert!(lines[3].starts_with("Other processes used "), "{details}");
    run.printed("report");
    let page = fs::read_to_string(run.copies.path().join("tune/report.html")).unwrap();
    let places =
        ["<dd>4 ranks on", "profiles: Load it. ", "class=\"command\"", "Other processes used "]
            .map(|text| page.find(text));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
    assert!(page.contains("a rank lost its processor to others "), "{page}");
}

/// Cluster, date, library and verdict; boxes to copy from, warnings, what is loaded, figures, in this order.
#[test]
fn a_report_opens_with_what_an_administrator_decides_by() {
    let copies = completed_run(&[]);
    // When the last of its records was written.
    let last = File::options().write(true).open(copies.tuning().join("measurements.csv")).unwrap();
    last.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)).unwrap();
    assert!(copies.output_of(&TUNE[1]).status.success());
    let page = fs::read_to_string(copies.tuning().join("report.html")).unwrap();
    let order = [
        "<dt>Cluster</dt><dd>4 ranks on 4 hosts, testbed of 4 nodes at 100mbit (",
        "<dt>Measured</dt><dd>2027-01-15, 08:00 UTC</dd>",
        "<dt>MPI library</dt><dd>Open MPI v4.1.4</dd><dt>Verdict</dt>",
        "<p class=\"verdict load\">profiles: Load it. ",
        "openmpi.rules: Load it. ",
        "<h2>How to load it</h2>",
        "<h2>Warnings</h2>",
        "<h2>What is loaded</h2>",
        "<table class=\"loaded\">",
        "<figure",
        "<h2>Explore</h2>",
    ];
    let places = order.map(|text| page.find(text));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
    // All of a way that is loaded is in the table: what replaces the default, and what is left to it.
    let table =
        page.split_once("<table class=\"loaded\">").unwrap().1.split_once("</table>").unwrap().0;
    let rows: Vec<&str> = table.split("<tr").skip(2).collect();
    assert_eq!(rows.len(), 6, "{table}");
    let loaded = "<td>bcast</td><td>4</td><td>8 KiB to 256 KiB</td><td>pipeline 1 KiB</td>\
                  <td>2.60 (2.44 to 2.76)</td><td>confirmed by 3 pairs of jobs</td>";
    assert!(rows.iter().any(|row| row.contains(loaded)), "{table}");
    let left = "<td>reduce</td><td>2</td><td>64 B to 256 KiB</td><td>the library's default</td>";
    assert!(rows.iter().any(|row| row.contains(left)), "{table}");
    // Each warning stands there once, and none in a figure.
    assert_eq!(page.matches("2 of 12 points are limited by this machine").count(), 1, "{page}");
    assert!(!page.contains("warning: "), "{page}");
}

/// What stands in a box can be typed as it is.
#[test]
fn a_box_of_a_report_holds_commands_alone() {
    let copies = completed_run(&["report"]);
    let page = fs::read_to_string(copies.tuning().join("report.html")).unwrap();
    let boxes = page.split("<div class=\"copy\">").skip(1).map(|rest| {
        let code = rest.split_once("<code>").unwrap().1.split_once("</code>").unwrap().0;
        let text: String = code
            .split('<')
            .map(|part| part.split_once('>').map_or(part, |(_, text)| text))
            .collect();
        text.lines().map(ToOwned::to_owned).collect::<Vec<_>>()
    });
    let boxes: Vec<Vec<String>> = boxes.collect();
    let run = copies.tuning().display().to_string();
    let start = "colibri testbed mpirun ./application";
    let up = "colibri testbed up --nodes 4".to_owned();
    assert_eq!(boxes.len(), 2, "one of each way: {boxes:?}");
    assert!(boxes.iter().all(|commands| commands.len() == 2 && commands[0] == up), "{boxes:?}");
    let [preload, rules] = [&boxes[0][1], &boxes[1][1]];
    assert!(
        preload.starts_with("COLIBRI_PROFILES=") && preload.contains(" LD_PRELOAD="),
        "{preload}"
    );
    assert!(preload.ends_with(start) && rules.ends_with(start), "{boxes:?}");
    let file = format!("OMPI_MCA_coll_tuned_dynamic_rules_filename={run}/openmpi.rules ");
    assert!(rules.contains(&file), "{rules}");
}

/// A frame with one dot in it says less than a sentence; a penalty below 0 is no gain.
#[test]
fn figures_of_a_report_have_curves_and_noise_is_called_so() {
    let copies = completed_run(&["report"]);
    let page = fs::read_to_string(copies.tuning().join("report.html")).unwrap();
    let panels = page.split("<svg class=\"panel\"").skip(1);
    let panels: Vec<&str> = panels.map(|rest| rest.split_once("</svg>").unwrap().0).collect();
    let maps = panels.iter().filter(|panel| panel.contains("\nranks\n")).count();
    assert!(maps >= 4 && panels.len() > maps + 4, "{maps} of {} panels are maps", panels.len());
    for panel in panels.iter().filter(|panel| !panel.contains("\nranks\n")) {
        // The default and what was measured have discs; parameters have other marks.
        let discs = panel.split("<circle cx=\"").skip(1);
        let places: BTreeSet<&str> = discs.map(|rest| rest.split_once('"').unwrap().0).collect();
        assert!(places.len() != 1, "{panel}");
    }
    assert!(page.contains("<br>linear, 64 B: measured 102 us (88.7 us to 130 us), hockney "));
    assert!(page.contains("\nnoise\n") && page.contains("<td>noise</td>"), "no noise");
    let negative = |cell: &str| cell.starts_with('-') && cell.trim_end().ends_with('%');
    let cells = page.split("<td>").skip(1).map(|rest| rest.split_once("</td>").unwrap().0);
    assert_eq!(cells.filter(|cell| negative(cell)).count(), 0);
}

/// Gains of such jobs are no reason to load anything.
#[test]
fn what_jobs_confirm_while_others_took_the_processors_is_not_loaded() {
    let run = StolenRun::new(|name| name.starts_with("confirmation-2-"));
    let stdout = run.printed("resume");
    assert!(stdout.starts_with("Verdict  openmpi.rules: Do not load it yet: "), "{stdout}");
    assert!(!stdout.contains("To load"), "{stdout}");
    let details = run.details();
    for line in details.lines().take(2) {
        assert!(
            line.contains(
                "Do not load it yet: tune again in another directory, on idle nodes with `--budget "
            ),
            "{details}"
        );
    }
    let nothing = "there is nothing to load yet: nothing was confirmed.";
    assert_eq!(details.matches(nothing).count(), 2, "{details}");
    let rules = fs::read_to_string(run.copies.path().join("tune/openmpi.rules")).unwrap();
    assert!(rules.contains("# Verdict: Do not load it yet"), "{rules}");
    assert_replaces_nothing(&rules);
}

/// Not even where what is not confirmed is asked for.
#[test]
fn what_was_measured_only_while_others_took_the_processors_is_never_exported() {
    let exported = |is_stolen: bool| {
        let run = StolenRun::new(|name| is_stolen && name.starts_with("measurements"));
        run.printed("verify");
        let mut export = colibri();
        export.args(["export", "tune", "--target", "openmpi", "--unconfirmed"]);
        let output = export.current_dir(run.copies.path()).assert().success().get_output().clone();
        String::from_utf8(output.stdout).unwrap()
    };
    let calm = exported(false);
    assert!(calm.contains(" (measured, not confirmed, "), "{calm}");
    assert_replaces_nothing(&exported(true));
}

fn assert_replaces_nothing(rules: &str) {
    assert!(rules.contains("0 of 12 points replaced; 12 left to the default"), "{rules}");
    let mut bands = rules.lines().filter(|line| line.contains(" # from "));
    assert!(bands.all(|line| line.ends_with(": default")), "{rules}");
}

#[test]
fn a_budget_that_is_spent_already_is_refused() {
    let copies = RunCopies::new();
    let tune = |budget: &str| {
        let mut command = colibri();
        command.args(["tune", "tune", "--resume", "--budget", budget]).current_dir(copies.path());
        command.env("COLIBRI_PROGRAMS", copies.path().join("programs"));
        command.assert().code(2).get_output().stderr.clone()
    };
    let told = String::from_utf8(tune("5s")).unwrap();
    assert!(told.contains("--budget 5s: the run has spent"), "{told}");
    assert!(told.contains("or leave it out to go on with 1m40s"), "{told}");
    assert!(copies.path().join("tune/penalty.json").exists());
}

/// A reader that has seen enough is no error; a disk that is full is one of stdout alone, where results are
/// lost. In both cases the files are written all the same.
#[test]
fn files_are_written_where_nothing_can_be_told() {
    for (name, steps) in [("guidelines", GUIDELINES), ("calibration", CALIBRATION), ("tune", TUNE)]
    {
        let copies = RunCopies::new();
        for (number, step) in steps.iter().enumerate() {
            let mut expected = read(&data("expected").join(name).join(step.name));
            let ended = String::from_utf8(expected.remove(ENDED).unwrap()).unwrap();
            expected.retain(|name, _| !name.starts_with("stdout."));
            let is_full = number % 2 == 1;
            let code = match (is_full, ended.trim_end()) {
                (true, "exit code 0, results on stdout") => 1,
                (_, "exit code 0, results on stdout" | "exit code 0") => 0,
                // What was refused, with nothing on stdout.
                (_, _) => 2,
            };
            let (answered, actual) = copies.run_untold(step, is_full);
            assert_eq!(answered, Some(code), "{}", step.arguments);
            let differences = differences(&expected, &actual);
            assert!(differences.is_empty(), "{}\n{differences}", step.arguments);
        }
    }
}

/// A copy of the tuning run, completed: by `resume`, and then by these steps.
pub fn completed_run(further: &[&str]) -> RunCopies {
    // Once for all: it takes seconds, without optimisation. What is static is never dropped, so it has a place among
    // the test's own files.
    static RESUMED: LazyLock<RunCopies> = LazyLock::new(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("resumed");
        fs::remove_dir_all(&directory).unwrap_or_default();
        let copies = RunCopies::within(directory, None);
        copies.complete("resume");
        copies
    });
    let copies = RESUMED.copied();
    for name in further {
        copies.complete(name);
    }
    copies
}

fn data(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frozen").join(part)
}

/// Runs the steps one after the other beside the three records, and compares what each prints and
/// writes.
fn check(name: &str, steps: &[FrozenCommand]) {
    let copies = RunCopies::new();
    let names: BTreeSet<&str> = steps.iter().map(|step| step.name).collect();
    assert_eq!(names.len(), steps.len(), "two steps have one name");
    let folder = data("expected").join(name);
    let rewrite = env::var_os(REWRITE).is_some_and(|value| value == "1");
    if rewrite {
        fs::remove_dir_all(&folder).unwrap_or_default();
    }
    let told = actual_folder(name);
    fs::remove_dir_all(&told).unwrap_or_default();
    let mut problems = Vec::new();
    for step in steps {
        let actual = copies.run(step);
        if rewrite {
            write(&folder.join(step.name), &actual);
            continue;
        }
        let expected = read(&folder.join(step.name));
        let differences = differences(&expected, &actual);
        if !differences.is_empty() {
            keep(&told.join(step.name), &actual);
            problems.push(format!("{} ({}):\n{differences}", step.name, step.arguments));
        }
    }
    assert!(
        problems.is_empty(),
        "not as expected in {}; what came instead is in {}\n\n{}",
        folder.display(),
        told.display(),
        problems.join("\n")
    );
    if !rewrite {
        let there = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        let there: BTreeSet<String> = there.map(|name| name.into_string().unwrap()).collect();
        assert!(there.iter().all(|it| names.contains(it.as_str())), "steps that are no more");
    }
}

/// Where outputs that are not as expected are put.
fn actual_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("frozen").join(name)
}

/// A directory with copies of the three runs.
pub struct RunCopies {
    directory: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

impl RunCopies {
    pub fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        RunCopies::within(temporary.path().into(), Some(temporary))
    }

    fn within(directory: PathBuf, temporary: Option<tempfile::TempDir>) -> Self {
        let place = RunCopies { directory, _temporary: temporary };
        let records = data("records");
        for path in files(&records) {
            let name = path.strip_prefix(&records).unwrap().to_str().unwrap();
            let to = place.path().join(name.trim_end_matches(".gz"));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            let bytes = fs::read(&path).unwrap();
            fs::write(to, if name.ends_with(".gz") { unpacked(&bytes) } else { bytes }).unwrap();
        }
        fs::create_dir(place.path().join("programs")).unwrap();
        fs::write(place.path().join("programs/libcolibri.so"), "").unwrap();
        fs::write(place.path().join("libmpich.so"), LIBRARY_OF_MPICH).unwrap();
        place.forget_what_was_written();
        place
    }

    /// What is there now, in a place of its own.
    fn copied(&self) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let copy = RunCopies { directory: temporary.path().into(), _temporary: Some(temporary) };
        for path in files(self.path()) {
            let to = copy.path().join(path.strip_prefix(self.path()).unwrap());
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(path, to).unwrap();
        }
        copy
    }

    /// Runs a step, which ends well; what it prints to stdout.
    fn complete(&self, name: &str) -> String {
        let step = TUNE.iter().find(|step| step.name == name).unwrap();
        let output = self.output_of(step);
        let printed = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        assert!(output.status.success(), "{printed:?}");
        let [stdout, _] = printed;
        stdout
    }

    /// Beside the three runs.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// The directory of the tuning run.
    pub fn tuning(&self) -> PathBuf {
        self.path().join("tune")
    }

    fn output_of(&self, step: &FrozenCommand) -> Output {
        colibri()
            .args(step.arguments.split_whitespace())
            .current_dir(self.path())
            .env("COLIBRI_PROGRAMS", self.path().join("programs"))
            .output()
            .unwrap()
    }

    /// Runs a step; gives how it ended, and the results that it printed and wrote.
    fn run(&self, step: &FrozenCommand) -> Outputs {
        let output = self.output_of(step);
        let code = output.status.code().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let prints = if stdout.is_empty() { "" } else { ", results on stdout" };
        let mut outputs = self.outputs();
        outputs.insert(ENDED.into(), format!("exit code {code}{prints}\n").into_bytes());
        if let Some(name) = step.result_on_stdout().filter(|_| code == 0)
            && let Some(printed) = result(name, &stdout)
        {
            outputs.insert(name.into(), printed.into_bytes());
        }
        outputs
    }

    /// Runs a step whose stdout and stderr are on a full disk, or pipes that nobody reads; gives its exit
    /// code and the files that it wrote.
    fn run_untold(&self, step: &FrozenCommand, is_full: bool) -> (Option<i32>, Outputs) {
        let untold = if is_full { full } else { unread };
        let status = colibri_process(step.arguments.split_whitespace())
            .current_dir(self.path())
            .env("COLIBRI_PROGRAMS", self.path().join("programs"))
            .stdout(untold())
            .stderr(untold())
            .status()
            .unwrap();
        (status.code(), self.outputs())
    }

    /// The files that were written since this was last asked.
    /// The results that were written since this was last asked.
    fn outputs(&self) -> Outputs {
        let result_of = |path: PathBuf| {
            let name = path.strip_prefix(self.path()).unwrap().to_str().unwrap().to_owned();
            let bytes = fs::read(&path).unwrap();
            let text = self.without_place(&String::from_utf8_lossy(&bytes));
            let found = result(&name, &text)?;
            Some((name, found.into_bytes()))
        };
        let outputs = self.written().into_iter().filter_map(result_of).collect();
        self.forget_what_was_written();
        outputs
    }

    /// Texts name this directory where they say what to load.
    fn without_place(&self, text: &str) -> String {
        let place = self.path().canonicalize().unwrap();
        let text = text.replace(place.to_str().unwrap(), "{here}");
        text.replace(self.path().to_str().unwrap(), "{here}")
    }

    /// What was written since the last step, without locks.
    fn written(&self) -> Vec<PathBuf> {
        let mut all = files(self.path());
        all.retain(|path| !path.ends_with("lock") && modified(path) != SystemTime::UNIX_EPOCH);
        all
    }

    fn forget_what_was_written(&self) {
        for path in files(self.path()) {
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
    }
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()))
    {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push(path),
        }
    }
    all
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut unpacked).unwrap();
    unpacked
}

/// What is expected of a step: how it ended as text, results compressed.
fn read(folder: &Path) -> Outputs {
    let mut outputs = Outputs::new();
    if !folder.exists() {
        return outputs;
    }
    for path in files(folder) {
        let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
        let bytes = fs::read(&path).unwrap();
        match name.strip_suffix(".gz") {
            Some(name) => outputs.insert(name.into(), unpacked(&bytes)),
            None => outputs.insert(name.into(), bytes),
        };
    }
    outputs
}

fn write(folder: &Path, outputs: &Outputs) {
    for (name, bytes) in outputs {
        let packed = name != ENDED;
        let path = folder.join(if packed { format!("{name}.gz") } else { name.clone() });
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes = match packed {
            false => bytes.clone(),
            true => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
        };
        fs::write(path, bytes).unwrap();
    }
}

/// Puts outputs down as they are, to be looked at.
fn keep(folder: &Path, outputs: &Outputs) {
    for (name, bytes) in outputs {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
