use std::{
    env,
    os::unix::process::ExitStatusExt,
    process::{Child, Command, Stdio},
};

use super::*;
use crate::learned::{
    LearnedClass,
    tests::{class, learned, trials},
};

fn job(calls: u64) -> Learned {
    learned(vec![class("8x4", 1024, calls, vec![trials("own:linear", &[-0.5])])])
}

fn there(directory: &Path) -> Learned {
    let new = job(1);
    read(directory, &new.library, &new.processor).unwrap().unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let names = reading::entries(&folder(directory)).unwrap().into_iter();
    names.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn what_is_added_is_there_for_the_next_job() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a/b");
    assert_eq!(read(&directory, "Open MPI 4.1.4", "x").unwrap(), None);
    add(&directory, &job(5)).unwrap();
    add(&directory, &job(6)).unwrap();
    assert_eq!((there(&directory).jobs, there(&directory).classes[0].calls), (2, 11));
    assert_eq!(names(&directory), ["lock", "open-mpi-4.1.4-amd-epyc-7543-32-core-processor.json"]);
    let other = read(&directory, "Open MPI 4.1.4", "another").unwrap();
    assert_eq!(other, None);
}

/// The names inside decide: two that make one file name are two files.
#[test]
fn libraries_whose_file_names_are_alike_are_not_mixed_up() {
    let dir = tempfile::tempdir().unwrap();
    let of = |library: &str, calls| Learned { library: library.into(), ..job(calls) };
    for (library, calls) in [("MPICH 4-0", 1), ("mpich (4 0)", 2), ("MPICH 4-0", 4)] {
        add(dir.path(), &of(library, calls)).unwrap();
    }
    let calls = |library| {
        let read = read(dir.path(), library, &job(1).processor).unwrap();
        read.map(|learned| learned.classes[0].calls)
    };
    assert_eq!(["MPICH 4-0", "mpich (4 0)", "MPICH 4 0"].map(calls), [Some(5), Some(2), None]);
    let end = "mpich-4-0-amd-epyc-7543-32-core-processor";
    assert_eq!(names(dir.path())[1..], [format!("{end}-2.json"), format!("{end}.json")]);
    // Whatever its name is.
    let folder = folder(dir.path());
    fs::rename(folder.join(format!("{end}-2.json")), folder.join("a.json")).unwrap();
    assert_eq!(calls("mpich (4 0)"), Some(2));
    // A copy is no other job's: both are one file afterwards.
    fs::copy(folder.join("a.json"), folder.join("b.json")).unwrap();
    add(dir.path(), &of("mpich (4 0)", 1)).unwrap();
    assert_eq!(calls("mpich (4 0)"), Some(5));
    assert_eq!(names(dir.path()), ["a.json".into(), "lock".into(), format!("{end}.json")]);
}

#[test]
fn names_become_file_names_whatever_they_are() {
    let stem = |library: &str| file_stem(library, "");
    assert_eq!(stem("MPICH 4.0.2"), "mpich-4.0.2");
    assert_eq!(stem("../../etc/passwd"), "etc-passwd");
    assert_eq!(stem("数"), "unnamed");
    assert!(stem(&"x".repeat(1000)).len() < 200);
}

#[test]
fn a_broken_file_is_left_and_told_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = add(dir.path(), &job(5)).unwrap().path;
    fs::write(&path, "{\"schema\": \"colibri/learned/2\"}").unwrap();
    let new = job(1);
    let error = read(dir.path(), &new.library, &new.processor).unwrap_err().to_string();
    assert!(error.ends_with("is colibri/learned/2; expected colibri/learned/1"), "{error}");
    let added = add(dir.path(), &job(7)).unwrap();
    assert_ne!(added.path, path);
    assert!(added.unusable[0].to_string().contains("is colibri/learned/2"), "{added:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"schema\": \"colibri/learned/2\"}");
    assert_eq!(there(dir.path()).classes[0].calls, 7);
    let store = read_all(dir.path()).unwrap();
    assert_eq!((store.learned.len(), store.unusable.len()), (1, 1));
}

/// What could not be read back is refused, and what was there stays.
#[test]
fn what_is_wrong_is_not_added() {
    let dir = tempfile::tempdir().unwrap();
    add(dir.path(), &job(5)).unwrap();
    let mut wrong = job(5);
    wrong.classes[0].tried[0].ratios.squares = -1.0;
    let error = add(dir.path(), &wrong).unwrap_err().to_string();
    assert!(error.contains("field classes[0].tried[0].squares: is -1"), "{error}");
    assert_eq!(there(dir.path()).jobs, 1);
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = add(&file, &job(1)).unwrap_err().to_string();
    assert!(error.contains("cannot make this directory"), "{error}");
}

#[test]
fn a_lock_that_is_held_for_long_is_told() {
    let dir = tempfile::tempdir().unwrap();
    add(dir.path(), &job(5)).unwrap();
    let held = lock(&folder(dir.path()).join("lock")).unwrap();
    assert!(held.is_some());
    let begun = Instant::now();
    let error = add(dir.path(), &job(1)).unwrap_err().to_string();
    assert!(error.contains("another job has held this lock for 5 seconds"), "{error}");
    assert!(begun.elapsed() < LONGEST_WAIT * 2);
    drop(held);
    add(dir.path(), &job(1)).unwrap();
}

const ADDS_TO: &str = "COLIBRI_TEST_ADDS_TO";

/// What the tests below start: adds to a directory again and again.
#[test]
fn child() {
    let Some(directory) = env::var_os(ADDS_TO) else { return };
    let times: u32 = env::var("COLIBRI_TEST_TIMES").unwrap().parse().unwrap();
    for _ in 0..times {
        add(Path::new(&directory), &job(1)).unwrap();
    }
}

fn adding(directory: &Path, times: u32, variables: &[(&str, &Path)]) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "learned::store::tests::child"]);
    command.env(ADDS_TO, directory).env("COLIBRI_TEST_TIMES", times.to_string());
    command.envs(variables.iter().copied());
    command.stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn jobs_that_end_at_once_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut all: Vec<Child> = (0..8).map(|_| adding(dir.path(), 10, &[])).collect();
    assert!(all.iter_mut().all(|child| child.wait().unwrap().success()));
    let learned = there(dir.path());
    assert_eq!((learned.jobs, learned.classes[0].calls), (80, 80));
}

/// As on some parallel file systems.
#[test]
fn where_files_cannot_be_locked_it_goes_on_without() {
    let dir = tempfile::tempdir().unwrap();
    let (source, library) = (dir.path().join("unlocked.c"), dir.path().join("libunlocked.so"));
    let text = "#include <errno.h>\n\
                int flock(int file, int how) { (void)file; (void)how; errno = ENOLCK; return -1; }\n";
    fs::write(&source, text).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).args([&library, &source]);
    assert!(compile.status().unwrap().success());
    add(dir.path(), &job(1)).unwrap();
    let held = lock(&folder(dir.path()).join("lock")).unwrap();
    let mut child = adding(dir.path(), 3, &[("LD_PRELOAD", &library)]);
    assert!(child.wait().unwrap().success());
    assert_eq!((held.is_some(), there(dir.path()).jobs), (true, 4));
}

/// With hundreds of classes, so that most of the time is spent in writing.
#[test]
fn whenever_a_job_is_killed_the_file_is_whole() {
    const SIGKILL: i32 = 9;
    let dir = tempfile::tempdir().unwrap();
    let many = |procs: u32| -> Vec<LearnedClass> {
        let tried = || vec![trials("own:linear", &[-0.5])];
        (1..procs).map(|procs| class(&procs.to_string(), 1024, 1, tried())).collect()
    };
    add(dir.path(), &learned(many(500))).unwrap();
    let (mut left, mut jobs) = (0, 1);
    let is_being_written = || names(dir.path()).iter().any(|name| name.ends_with(".part"));
    for _ in 0..30 {
        let mut child = adding(dir.path(), 1000, &[]);
        let begun = Instant::now();
        // Leftovers of the child before go first.
        while there(dir.path()).jobs == jobs && begun.elapsed() < LONGEST_WAIT {}
        while !is_being_written() && begun.elapsed() < LONGEST_WAIT {}
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(SIGKILL));
        left += usize::from(is_being_written());
        let learned = there(dir.path());
        assert!(learned.jobs > jobs && learned.classes.len() >= 499);
        jobs = learned.jobs;
    }
    assert!(left > 0, "no child was killed in the middle of writing");
    add(dir.path(), &job(1)).unwrap();
    assert_eq!(names(dir.path()).len(), 2, "the lock and the file: {:?}", names(dir.path()));
}
