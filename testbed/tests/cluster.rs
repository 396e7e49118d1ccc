//! Testbeds, made and removed; needs root.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use colibri_testbed::{
    Condition, OpenMpi, STATE_DIRECTORY, Shims, Spec, Testbed, TestbedError, down, status, up,
};

#[path = "../../tests/skipped.rs"]
mod skipped;

use skipped::skipped;

macro_rules! need {
    ($condition:expr, $what:literal) => {
        if !$condition {
            return skipped("virtual clusters", concat!("needs ", $what));
        }
    };
}

mod switch;

/// A testbed that goes when the test ends, however it ends.
struct Standing {
    testbed: Testbed,
}

impl Standing {
    fn up(suffix: &str, nodes: u32, rate: &str, ranks_per_node: &str) -> Standing {
        let spec = Spec::new(&name(suffix), nodes, rate.parse().unwrap()).unwrap();
        let spec = spec.with_ranks_per_node(ranks_per_node.parse().unwrap()).unwrap();
        Standing { testbed: up(&spec).unwrap() }
    }

    fn name(&self) -> &str {
        &self.testbed.spec().name
    }

    fn run(&self, node: Option<u32>, words: &[&str]) -> String {
        let output = self.testbed.exec(node, words[0]).unwrap().args(&words[1..]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().into()
    }

    fn mpirun(&self, mpi: &OpenMpi, ranks: u32, words: &[&str]) -> String {
        let mut command = self.testbed.mpirun(mpi, ranks, &shims(), &[]).unwrap();
        let output = command.args(words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        if let Err(error) = down(self.name()) {
            eprintln!("{error}");
        }
    }
}

/// Names that no other run of these tests has.
fn name(suffix: &str) -> String {
    format!("t{}-{suffix}", std::process::id())
}

/// The preloaded libraries, where they were built along with this test.
fn shims() -> Shims {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    Shims::in_folder(folder).unwrap_or_default()
}

fn namespaces() -> BTreeSet<String> {
    let listed = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next().map(String::from)).collect()
}

fn nothing_is_left_of(name: &str) -> bool {
    let prefix = format!("colibri-{name}-");
    let places: Vec<String> = namespaces()
        .iter()
        .filter_map(|namespace| Some(namespace.strip_prefix(&prefix)?.to_string()))
        .collect();
    // What has another `-` belongs to a longer name.
    places.iter().all(|place| place.contains('-'))
        && !Path::new(STATE_DIRECTORY).join(name).exists()
        && status().unwrap().iter().all(|testbed| testbed.name != name)
}

/// The programs of other packages are where they are sought, also where this one is tested alone.
fn programs_are_built() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let test = std::env::current_exe().unwrap();
        let folder = test.parent().and_then(Path::parent).unwrap();
        let files = ["colibri-switch", "libcolibri_yield.so", "libcolibri_tracer.so"];
        if files.iter().all(|file| folder.join(file).is_file()) {
            return;
        }
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(profile) => profile,
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let packages = ["colibri-switch", "colibri-yield", "colibri-tracer"];
        let packages = packages.iter().flat_map(|package| ["--package", package]);
        let mut build = Command::new(cargo);
        build.args(["build", "--locked", "--profile", profile]).args(packages);
        build.arg("--target-dir").arg(folder.parent().unwrap());
        assert!(build.status().unwrap().success(), "{build:?}");
    });
}

/// A test's C program, built by that compiler; none where it can't be.
fn built(mpicc: &str, folder: &Path, program: &str) -> Option<String> {
    let path = folder.join(program);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{program}.c"));
    let built = Command::new(mpicc).arg("-o").arg(&path).arg(source).status();
    built.is_ok_and(|status| status.success()).then(|| path.to_str().unwrap().to_owned())
}

fn can_make_namespaces() -> bool {
    programs_are_built();
    let tried = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success()) && !matches!(status(), Err(TestbedError::NotRoot))
}

#[test]
fn a_testbed_stands_is_told_and_goes() {
    need!(can_make_namespaces(), "root");
    let before = Command::new("ip").args(["-o", "link"]).output().unwrap().stdout;
    let standing = Standing::up("one", 3, "100mbit", "2");
    let name = standing.name().to_string();

    assert_eq!(standing.run(Some(1), &["uname", "-n"]), format!("{name}-n1"));
    assert_eq!(standing.run(None, &["uname", "-n"]), format!("{name}-head"));
    assert_eq!(standing.run(Some(2), &["echo", "two  words", "$HOME"]), "two  words $HOME");
    assert!(standing.run(Some(2), &["ip", "-4", "address"]).contains("10.77.0.3/24"));
    assert!(!standing.run(Some(2), &["ip", "address"]).contains("inet6"));
    let node = standing.run(Some(0), &["tc", "qdisc", "show", "dev", "eth0"]);
    let port = standing.run(None, &["tc", "qdisc", "show", "dev", "port0"]);
    for filter in [node, port] {
        assert!(filter.contains("tbf") && filter.contains("rate 100Mbit"), "{filter}");
    }
    let after = Command::new("ip").args(["-o", "link"]).output().unwrap().stdout;
    assert_eq!(before, after, "nothing shows in the root namespace");

    let mode = fs::metadata(standing.testbed.directory()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let mut sleeper = standing.testbed.exec(Some(0), "sleep").unwrap().arg("100").spawn().unwrap();
    let told = || status().unwrap().into_iter().find(|testbed| testbed.name == name).unwrap();
    wait_until(|| told().processes == [sleeper.id() as i32]);
    let status = told();
    assert_eq!(status.condition, Condition::Standing);
    assert_eq!((status.nodes, status.ranks_per_node), (3, Some("2".parse().unwrap())));
    assert_eq!(status.rate.unwrap().to_string(), "100mbit");
    let reopened = Testbed::open(&name).unwrap();
    assert_eq!(reopened.spec(), standing.testbed.spec());
    assert_eq!(reopened.end_processes().unwrap(), 1);
    assert!(!sleeper.wait().unwrap().success());

    let again = up(standing.testbed.spec()).unwrap_err().to_string();
    assert!(again.contains(&format!("down --name {name}")), "{again}");
    let beyond = standing.testbed.exec(Some(3), "true").unwrap_err().to_string();
    assert!(beyond.contains("no node 3") && beyond.contains("3 nodes"), "{beyond}");

    let removed = down(&name).unwrap();
    assert_eq!((removed.namespaces, removed.directory), (4, true));
    assert!(nothing_is_left_of(&name));
    assert!(down(&name).unwrap().is_nothing());
    let gone = Testbed::open(&name).unwrap_err().to_string();
    assert!(gone.contains("there is no testbed"), "{gone}");
}

#[test]
fn a_port_has_the_rate_of_each_direction() {
    need!(can_make_namespaces(), "root");
    let spec = Spec::new(&name("port"), 4, "100mbit".parse().unwrap()).unwrap();
    let ports = ["1.in=50mbit", "2=10mbit", "3=1gbit"].map(|port| port.parse().unwrap());
    let standing = Standing { testbed: up(&spec.with_ports(ports.into()).unwrap()).unwrap() };
    let reopened = Testbed::open(standing.name()).unwrap();
    assert_eq!(reopened.spec(), standing.testbed.spec());
    for (node, sends, receives) in [(0, 100, 100), (1, 100, 50), (2, 10, 10)] {
        let own = standing.run(Some(node), &["tc", "qdisc", "show", "dev", "eth0"]);
        let port = format!("port{node}");
        let switch = standing.run(None, &["tc", "qdisc", "show", "dev", &port]);
        assert!(own.contains(&format!("rate {sends}Mbit")), "{own}");
        assert!(switch.contains(&format!("rate {receives}Mbit")), "{switch}");
    }
    // What a fast port is handed as one passes through it as one.
    for (node, is_fast) in [(0, false), (3, true)] {
        let link = standing.run(Some(node), &["ip", "-d", "link", "show", "dev", "eth0"]);
        assert_eq!(link.contains("gso_max_size 19062"), is_fast, "{link}");
    }
}

#[test]
fn two_stand_side_by_side_even_if_their_names_begin_alike() {
    need!(can_make_namespaces(), "root");
    let first = Standing::up("x", 2, "100mbit", "1");
    let second = Standing::up("x-n0", 1, "10mbit", "1");
    assert_eq!(first.run(Some(0), &["uname", "-n"]), format!("{}-n0", first.name()));
    assert_eq!(second.run(Some(0), &["uname", "-n"]), format!("{}-n0", second.name()));
    assert_eq!(down(first.name()).unwrap().namespaces, 3);
    assert!(nothing_is_left_of(first.name()));
    assert_eq!(second.run(Some(0), &["uname", "-n"]), format!("{}-n0", second.name()));
}

#[test]
fn whatever_a_killed_run_left_is_found_and_ended() {
    need!(can_make_namespaces(), "root");
    let standing = Standing::up("kill", 3, "100mbit", "1");
    let name = standing.name().to_string();
    let stubborn = "trap '' TERM; while true; do sleep 1; done";
    let mut children: Vec<Child> =
        [(None, "sleep 100"), (Some(0), stubborn), (Some(2), "sleep 99")]
            .map(|(node, script)| {
                let mut command = standing.testbed.exec(node, "setsid").unwrap();
                command.args(["sh", "-c", script]).spawn().unwrap()
            })
            .into();
    let processes = || {
        let all = status().unwrap().into_iter().find(|testbed| testbed.name == name);
        all.map(|testbed| testbed.processes).unwrap_or_default()
    };
    let ours = children.iter().map(|child| child.id() as i32).collect::<Vec<_>>();
    wait_until(|| ours.iter().all(|pid| processes().contains(pid)));

    // One namespace has lost its name, with a process in it; the state file is gone.
    let lost = format!("colibri-{name}-n2");
    assert!(Command::new("ip").args(["netns", "delete", &lost]).status().unwrap().success());
    fs::remove_file(standing.testbed.directory().join("state.json")).unwrap();
    let partial = status().unwrap().into_iter().find(|testbed| testbed.name == name).unwrap();
    assert_eq!((partial.condition, partial.nodes), (Condition::Partial, 2));
    assert!(partial.processes.contains(&(children[2].id() as i32)));
    let incomplete = Testbed::open(&name).unwrap_err().to_string();
    assert!(incomplete.contains(&format!("down --name {name}")), "{incomplete}");

    let segment = |host: &str| PathBuf::from(format!("/dev/shm/vader_segment.{host}-n0.0.1.0"));
    let (mine, other) = (segment(&name), segment(&format!("{name}-n0")));
    fs::write(&mine, "").unwrap();
    fs::write(&other, "").unwrap();

    let removed = down(&name).unwrap();
    let left = (mine.exists(), other.exists());
    fs::remove_file(&other).unwrap();
    assert!(removed.processes >= 3, "{removed:?}");
    assert_eq!((removed.namespaces, removed.directory), (3, true));
    assert_eq!(left, (false, true), "only this testbed's shared memory");
    assert!(nothing_is_left_of(&name));
    for child in &mut children {
        assert!(!child.wait().unwrap().success());
    }
}

#[test]
fn namespaces_without_any_state_are_found() {
    need!(can_make_namespaces(), "root");
    let name = name("bare");
    let namespace = format!("colibri-{name}-n7");
    assert!(Command::new("ip").args(["netns", "add", &namespace]).status().unwrap().success());
    let spec = Spec::new(&name, 1, "1gbit".parse().unwrap()).unwrap();
    let error = up(&spec).unwrap_err().to_string();
    assert!(error.contains(&namespace) && error.contains("down"), "{error}");
    assert_eq!(down(&name).unwrap().namespaces, 1);
    assert!(nothing_is_left_of(&name));
}

#[test]
fn ranks_fill_the_nodes_in_order() {
    need!(can_make_namespaces(), "root");
    let Ok(mpi) = OpenMpi::find() else {
        return skipped("ranks on a virtual cluster", "needs Open MPI");
    };
    let standing = Standing::up("rank", 3, "1gbit", "2");
    let name = standing.name().to_string();
    let tell = "echo $OMPI_COMM_WORLD_RANK $(uname -n) $OMPI_COMM_WORLD_SIZE $TMPDIR";
    for ranks in [1_u32, 2, 5, 6] {
        let text = standing.mpirun(&mpi, ranks, &["sh", "-c", tell]);
        let mut seen: Vec<&str> = text.lines().collect();
        seen.sort_unstable();
        let tmp = format!("{STATE_DIRECTORY}/{name}/tmp");
        let place = |rank| format!("{rank} {name}-n{} {ranks} {tmp}", rank / 2);
        assert_eq!(seen, (0..ranks).map(place).collect::<Vec<_>>());
    }
    for ranks in [0, 7] {
        let error = standing.testbed.mpirun(&mpi, ranks, &shims(), &[]).unwrap_err().to_string();
        assert!(error.contains("it holds 1 to 6"), "{error}");
    }

    let environment = [("COLIBRI_TRIAL", "a b;c".as_ref())];
    let mut command = standing.testbed.mpirun(&mpi, 6, &shims(), &environment).unwrap();
    let output = command.args(["sh", "-c", "echo \"$COLIBRI_TRIAL\""]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a b;c\n".repeat(6));

    // A run whose launcher is killed leaves daemons and ranks in groups of their own.
    let mut command = standing.testbed.mpirun(&mpi, 6, &shims(), &[]).unwrap();
    let mut launcher = command.args(["sleep", "200"]).spawn().unwrap();
    let processes = || {
        let all = status().unwrap().into_iter().find(|testbed| testbed.name == name).unwrap();
        all.processes
    };
    let is_sleep = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == "sleep")
    };
    wait_until(|| processes().iter().filter(|pid| is_sleep(pid)).count() == 6);
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    let left = processes();
    down(&name).unwrap();
    assert!(!left.iter().any(|pid| is_running(*pid)), "{left:?}");
    assert!(nothing_is_left_of(&name));
}

/// Coarse, and on the least of several round trips: it tells a port without a filter, or with one that
/// drops, from one that has its rate.
#[test]
fn a_mebibyte_takes_the_time_that_the_rate_says() {
    need!(can_make_namespaces(), "root");
    let folder = tempfile::tempdir().unwrap();
    let built = built("mpicc", folder.path(), "pingpong");
    let (Some(program), Ok(mpi)) = (built, OpenMpi::find()) else {
        return skipped("ranks on a virtual cluster", "needs Open MPI");
    };
    let standing = Standing::up("rate", 2, "100mbit", "1");
    let measured = || -> f64 {
        let text = standing.mpirun(&mpi, 2, &[&program, "1048576"]);
        text.trim().split(' ').nth(1).unwrap().parse().unwrap()
    };
    // 1448 of every 1514 bytes on the wire are the message's.
    let wire = 1_048_576.0 * 8.0 / 100e6 * 1514.0 / 1448.0;
    // Never faster; slower only where the machine is busy, which it is not all the time.
    let attempts: Vec<f64> = (0..5).map(|_| measured() / wire).collect();
    let least = attempts.iter().copied().fold(f64::INFINITY, f64::min);
    assert!((0.85..1.15).contains(&least), "{attempts:?} times the wire's {wire} s");
}

/// Ranks that look for messages in shared memory too often leave two processors no time for the others.
#[test]
fn jobs_on_crowded_nodes_that_share_memory_begin() {
    need!(can_make_namespaces(), "root");
    let folder = tempfile::tempdir().unwrap();
    let built = built("mpicc", folder.path(), "who");
    let (Some(program), Ok(mpi)) = (built, OpenMpi::find()) else {
        return skipped("ranks on a virtual cluster", "needs Open MPI");
    };
    let standing = Standing::up("crowd", 8, "100mbit", "4");
    let words = ["--signal=KILL", "60", &program];
    for _ in 0..2 {
        let text = standing.mpirun(&mpi, 32, &[&["timeout"], &words[..]].concat());
        assert_eq!(text.lines().filter(|line| line.ends_with("with 4")).count(), 32, "{text}");
    }
}

#[test]
fn other_launchers_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mpirun = folder.path().join("mpirun");
    for (says, told) in
        [("HYDRA build details:", "MPICH"), ("mpirun (Open MPI) 3.1.0", "Open MPI 3")]
    {
        fs::write(&mpirun, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        fs::set_permissions(&mpirun, fs::Permissions::from_mode(0o755)).unwrap();
        let error = OpenMpi::at(&mpirun).unwrap_err().to_string();
        assert!(error.contains("the testbed needs Open MPI") && error.contains(told), "{error}");
    }
    let error = OpenMpi::at(&folder.path().join("none")).unwrap_err().to_string();
    assert!(error.contains("none") && error.contains("no program that runs"), "{error}");
}

/// One that ended and that nobody has asked for yet has no namespace any more.
fn is_running(pid: i32) -> bool {
    fs::read_link(format!("/proc/{pid}/ns/net")).is_ok()
}

fn wait_until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(30), "it never came true");
        thread::sleep(Duration::from_millis(20));
    }
}
