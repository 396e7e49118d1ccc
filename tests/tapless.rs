//! Virtual clusters on a machine without TAP devices.

use std::process::{Command, Output};

use crate::support::can_make_a_testbed;

/// `colibri testbed up` with these options where `/dev/net` is empty, then the status, then `down`.
fn up_without_taps(name: &str, options: &str) -> Output {
    let script = format!(
        r#"[ ! -d /dev/net ] || mount -t tmpfs none /dev/net || exit 99
        "$0" testbed up --nodes 2 --name "$1" --rate 10mbit {options}; up=$?
        "$0" testbed status; "$0" testbed down --name "$1" >&2; exit $up"#
    );
    let words = ["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_colibri"), name];
    Command::new("unshare").args(words).output().unwrap()
}

#[test]
fn without_taps_a_network_has_its_rate_and_no_latency_and_it_is_said() {
    let Some(_turn) = can_make_a_testbed("virtual clusters without TAP devices") else { return };
    let name = format!("tapless-{}", std::process::id());
    let output = up_without_taps(&name, "--latency 1ms");
    let [said, warned] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(0), "{said}{warned}");
    assert!(warned.contains("no TAP devices") && warned.contains("adds no latency"), "{warned}");
    // Other virtual clusters may be up, or left behind by what was killed.
    let own = said.lines().find(|line| line.split_whitespace().next() == Some(&name));
    let own = own.unwrap_or_else(|| panic!("{said}"));
    assert!(own.contains("10mbit") && !own.contains("1ms"), "{said}");

    let output = up_without_taps(&name, "--latency 1ms --jitter 100us");
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && warned.contains("TAP"), "{warned}");
}
