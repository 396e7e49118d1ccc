//! What the commands that read a run print and write, byte for byte, on three records that stay as
//! they are. It guards what is rebuilt: a change of a result is seen here, wanted or not.
//!
//! `tests/frozen/README.md` tells where the records come from and how what is expected is written
//! anew.

mod steps;

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use crate::{
    lost_output::{full, unread},
    support::{colibri, colibri_process},
};
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

/// Name of the text that holds what a step printed.
const PRINTED: &str = "printed.txt";

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

/// The same run, had its record told that a third of the processors was stolen during the first batch and
/// while what was chosen was confirmed.
#[test]
fn summary_and_report_begin_with_what_others_took() {
    let copies = RunCopies::new();
    let line = |stolen: &str| {
        format!(
            "#@disturbance={{\"seconds\":30.0,\"host\":\"n1\",\"processors\":2,\"ranks\":4,\
             \"stolen\":{stolen},\"others\":0.01,\"involuntary_switches\":9,\"load\":4.5}}\n"
        )
    };
    for (file, stolen) in [
        ("measurements.csv", "0.32"),
        ("measurements-2.csv", "0.0"),
        ("measurements-3.csv", "null"),
        ("confirmation-2-1-rules.csv", "0.32"),
    ] {
        let path = copies.path().join("tune").join(file);
        let record = fs::read_to_string(&path).unwrap();
        fs::write(&path, record + &line(stolen)).unwrap();
    }
    let printed = |name: &str| {
        let step = TUNE.iter().find(|step| step.name == name).unwrap();
        let outputs = copies.run(step);
        let printed = String::from_utf8(outputs[PRINTED].clone()).unwrap();
        assert!(printed.contains("exit code 0"), "{printed}");
        printed
    };
    let told = printed("resume");
    let wanted = "Other processes used 17 % of the processors' time: repeat on a calm machine. (During 50 % of the time";
    let (_, stdout) = told.split_once("--- stdout\n").unwrap();
    assert!(stdout.starts_with(wanted), "{told}");
    assert!(told.contains("were timed only while other processes used too much of the processors"));
    printed("report");
    let page = fs::read_to_string(copies.path().join("tune/report.html")).unwrap();
    let (opening, rest) = page.split_once("class=\"lead\"").unwrap();
    assert!(opening.contains(wanted), "{opening}");
    assert!(rest.contains("a rank lost its processor to others 0 times a second at most"));
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
    assert!(told.contains("or leave it out to go on with 1m15s"), "{told}");
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
            let printed = String::from_utf8(expected.remove(PRINTED).unwrap()).unwrap();
            let prints = !printed.contains("--- stdout\n\n--- stderr");
            let is_full = number % 2 == 1;
            let code = match (is_full && prints, printed.contains("exit code 0")) {
                (false, true) => 0,
                (true, true) => 1,
                // What was refused, with nothing on stdout.
                (_, false) => 2,
            };
            let (answered, actual) = copies.run_untold(step, is_full);
            assert_eq!(answered, Some(code), "{}", step.arguments);
            let differences = differences(&expected, &actual);
            assert!(differences.is_empty(), "{}\n{differences}", step.arguments);
        }
    }
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
struct RunCopies {
    directory: tempfile::TempDir,
}

/// Whether a line tells only how far the work is.
fn is_progress(line: &str) -> bool {
    let seconds = line.trim_end().strip_suffix(" s").and_then(|line| line.rsplit_once(": for "));
    seconds.is_some_and(|(_, seconds)| seconds.parse::<u64>().is_ok())
        || line.contains(" % of some ")
}

/// What a step has printed and written, by file name.
type Outputs = BTreeMap<String, Vec<u8>>;

impl RunCopies {
    fn new() -> Self {
        let place = RunCopies { directory: tempfile::tempdir().unwrap() };
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

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a step; gives what it printed and the files that it wrote.
    fn run(&self, step: &FrozenCommand) -> Outputs {
        let output = colibri()
            .args(step.arguments.split_whitespace())
            .current_dir(self.path())
            .env("COLIBRI_PROGRAMS", self.path().join("programs"))
            .output()
            .unwrap();
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        // How far long work is, a slow machine tells more often.
        let stderr: String = stderr.split_inclusive('\n').filter(|it| !is_progress(it)).collect();
        let code = output.status.code().unwrap();
        let printed = format!(
            "colibri {}\nexit code {code}\n\n--- stdout\n{stdout}\n--- stderr\n{stderr}",
            step.arguments
        );
        let mut outputs = self.outputs();
        outputs.insert(PRINTED.into(), self.without_place(printed.into_bytes()));
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
    fn outputs(&self) -> Outputs {
        let outputs = self.written().into_iter().map(|path| self.output(&path)).collect();
        self.forget_what_was_written();
        outputs
    }

    fn output(&self, path: &Path) -> (String, Vec<u8>) {
        let name = path.strip_prefix(self.path()).unwrap().to_str().unwrap();
        (name.into(), self.without_place(fs::read(path).unwrap()))
    }

    /// Texts name this directory where they tell what to load.
    fn without_place(&self, bytes: Vec<u8>) -> Vec<u8> {
        let text = String::from_utf8(bytes).unwrap();
        let place = self.path().canonicalize().unwrap();
        let text = text.replace(place.to_str().unwrap(), "{here}");
        text.replace(self.path().to_str().unwrap(), "{here}").into_bytes()
    }

    /// What was written since the last step. Left out are locks, and figures as PNG, which are drawn
    /// by the same calls as those in SVG.
    fn written(&self) -> Vec<PathBuf> {
        let mut all = files(self.path());
        all.retain(|path| {
            let is_text = path.extension().is_none_or(|end| end != "png");
            is_text && !path.ends_with("lock") && modified(path) != SystemTime::UNIX_EPOCH
        });
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

/// What is expected of a step: what it prints as text, its files compressed.
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
        let packed = name != PRINTED;
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

/// In which files outputs differ, with the first line that does.
fn differences(expected: &Outputs, actual: &Outputs) -> String {
    let names: BTreeSet<&String> = expected.keys().chain(actual.keys()).collect();
    let mut text = String::new();
    for name in names {
        match (expected.get(name), actual.get(name)) {
            (Some(expected), Some(actual)) if are_alike(expected, actual) => {}
            (Some(expected), Some(actual)) => text += &first_difference(name, expected, actual),
            (Some(_), None) => text += &format!("  {name}: was not written\n"),
            (None, _) => text += &format!("  {name}: was not expected\n"),
        }
    }
    text
}

/// Numbers with a fraction may differ in what processors round differently: the libraries under us
/// take other instructions on each.
const ROUNDING: f64 = 1e-9;

/// Whether two outputs are the same but for the rounding of numbers.
fn are_alike(expected: &[u8], actual: &[u8]) -> bool {
    if expected == actual {
        return true;
    }
    let (Ok(expected), Ok(actual)) = (str::from_utf8(expected), str::from_utf8(actual)) else {
        return false;
    };
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    let (mut expected, mut actual) =
        (expected.split_inclusive(is_end), actual.split_inclusive(is_end));
    loop {
        match (expected.next(), actual.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one == other || are_near(one, other) => {}
            _ => return false,
        }
    }
}

/// Whether both are numbers with a fraction that differ by no more than rounding does, with the same
/// character behind them.
fn are_near(one: &str, other: &str) -> bool {
    let split = |text: &str| {
        let number = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let value = number.parse::<f64>().ok().filter(|_| number.contains(['.', 'e']));
        Some((value?, text[number.len()..].to_owned()))
    };
    let (Some((a, after_one)), Some((b, after_other))) = (split(one), split(other)) else {
        return false;
    };
    after_one == after_other && (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

#[test]
fn only_rounding_is_passed_over() {
    let alike = |one: &str, other: &str| are_alike(one.as_bytes(), other.as_bytes());
    assert!(alike("\"a\": 1.00000000000001e-5,\n", "\"a\": 1.00000000000002e-5,\n"));
    assert!(!alike("1.000001,", "1.000002,"));
    assert!(!alike("100000000001,", "100000000002,"), "a count");
    assert!(!alike("1.5 a", "1.5 b") && !alike("1.5,", "1.5;") && !alike("1.5", "1.5,2"));
}

fn first_difference(name: &str, expected: &[u8], actual: &[u8]) -> String {
    let [expected, actual] = [expected, actual].map(|bytes| String::from_utf8_lossy(bytes));
    let (mut expected, mut actual) = (expected.lines(), actual.lines());
    for number in 1.. {
        let (wanted, found) = (expected.next(), actual.next());
        if wanted != found {
            // A figure's line may be its whole text.
            let short = |line: Option<&str>| match line {
                Some(line) => line.chars().take(300).collect(),
                None => "(the end)".to_owned(),
            };
            let (wanted, found) = (short(wanted), short(found));
            return format!("  {name}, line {number}:\n    - {wanted}\n    + {found}\n");
        }
        if wanted.is_none() {
            break;
        }
    }
    format!("  {name}: another end of line\n")
}

#[test]
fn a_difference_is_told_with_its_line() {
    let outputs = |texts: &[(&str, &str)]| -> Outputs {
        texts.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
    };
    let expected = outputs(&[("a", "1\n2\n"), ("b", "1\n"), ("c", "1\n")]);
    assert_eq!(differences(&expected, &expected), "");
    let actual = outputs(&[("a", "1\n3\n"), ("b", "1"), ("d", "")]);
    let told = differences(&expected, &actual);
    assert_eq!(
        told,
        "  a, line 2:\n    - 2\n    + 3\n  b: another end of line\n  c: was not written\n  d: was \
         not expected\n"
    );
}
