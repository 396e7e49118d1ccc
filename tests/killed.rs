//! Kills of what makes and uses virtual clusters, at any moment: nothing is left behind.

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::support::{can_make_a_testbed, colibri, colibri_process, run};

#[test]
fn a_killed_making_or_tuning_leaves_nothing_that_is_not_taken_down() {
    let Some(_turn) = can_make_a_testbed("killed virtual clusters") else { return };
    (0..3).for_each(|seed| kill_both(seed, 3.0));
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn kills_at_twenty_moments_leave_nothing_that_is_not_taken_down() {
    let Some(_turn) = can_make_a_testbed("killed virtual clusters") else { return };
    (100..120).for_each(|seed| kill_both(seed, 15.0));
}

fn kill_both(seed: u64, longest: f64) {
    let mut random = Pcg64::seed_from_u64(seed);
    let name = format!("kill-{}", std::process::id());
    let network =
        ["--rate", "10mbit", "--latency", "1ms", "--ppn", "2", "--inside", "100mbit,100us"];
    let up = ["testbed", "up", "--nodes", "3", "--name", &name];
    let seconds = random.random_range(0.0..1.5);
    kill_after(seconds, &[&up[..], &network].concat(), None);
    take_down(&name);
    assert_nothing_is_left(&name, seed);

    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let directory = folder.path().join("run");
    let tune = ["tune", directory.to_str().unwrap(), "--testbed", "2", "--budget", "30s"];
    let seconds = random.random_range(0.0..longest);
    let process = kill_after(seconds, &tune, Some(&temporary));
    take_down(&format!("run-{process}"));
    // Which finds what a check has left before it makes one of its own.
    run(0, &["testbed", "check"]);
    for name in ["run", "check"] {
        assert_nothing_is_left(&format!("{name}-{process}"), seed);
    }
    let left: Vec<_> = fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "seed {seed}: {left:?}");
}

/// Starts a command, with a directory for what is temporary, and kills it; its process number.
fn kill_after(seconds: f64, arguments: &[&str], temporary: Option<&Path>) -> u32 {
    let mut command = colibri_process(arguments.iter().copied());
    command.envs(temporary.map(|temporary| ("TMPDIR", temporary)));
    let mut child: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_secs_f64(seconds));
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().unwrap();
    // What it had just started goes on for a moment, as would anybody who calls `down`.
    thread::sleep(Duration::from_millis(300));
    child.id()
}

/// Whether there was anything of it or not.
fn take_down(name: &str) {
    let output = colibri().args(["testbed", "down", "--name", name]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() || said.contains("there is no virtual cluster"), "{said}");
}

/// No namespace and no state is the virtual cluster's, no process bears its mark; so no TAP device is left,
/// which goes with its namespace and the switch that holds it.
fn assert_nothing_is_left(name: &str, seed: u64) {
    let list = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    };
    let mut left = list("/run/netns");
    left.retain(|namespace| namespace.starts_with(&format!("colibri-{name}-")));
    left.extend(list("/run/colibri").into_iter().filter(|state| state == name));
    let marks = ["COLIBRI_SWITCH", "COLIBRI_TESTBED"].map(|mark| format!("{mark}={name}"));
    for process in list("/proc") {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        if variables.any(|variable| marks.iter().any(|mark| mark.as_bytes() == variable)) {
            left.push(fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default());
        }
    }
    assert!(left.is_empty(), "seed {seed}: {left:?}");
}
