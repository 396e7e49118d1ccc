//! Testbeds whose network is a switch of our own.

use std::{io::BufRead, io::BufReader, os::unix::process::ExitStatusExt};

use colibri_testbed::{LinkOptions, Loss, Racks, Service};

use super::*;

mod inside;

/// Of payload, at 10 Mbit/s: 1448 of every 1514 bytes on the wire are the message's.
const WIRE_BYTES_PER_SECOND: f64 = 10e6 / 8.0 * 1448.0 / 1514.0;

fn links() -> LinkOptions {
    LinkOptions { latency: "1ms".parse().unwrap(), ..LinkOptions::default() }
}

fn switched(suffix: &str, nodes: u32, links: LinkOptions) -> Standing {
    let spec = Spec::new(&name(suffix), nodes, "10mbit".parse().unwrap()).unwrap();
    Standing { testbed: up(&spec.with_links(links).unwrap()).unwrap() }
}

fn can_make_taps() -> bool {
    can_make_namespaces() && fs::File::options().write(true).open("/dev/net/tun").is_ok()
}

/// The traffic program's output: `(rank, value)`; none, said, where it can't be built or run.
fn traffic(standing: &Standing, ranks: u32, words: &[&str]) -> Option<Vec<(u32, f64)>> {
    let folder = tempfile::tempdir().unwrap();
    let built = built("mpicc", folder.path(), "traffic");
    let (Some(program), Ok(mpi)) = (built, OpenMpi::find()) else {
        skipped("traffic on a virtual cluster", "needs Open MPI");
        return None;
    };
    let all: Vec<&str> = [program.as_str()].iter().chain(words).copied().collect();
    let text = standing.mpirun(&mpi, ranks, &all);
    let read = |line: &str| {
        let (rank, value) = line.split_once(' ')?;
        Some((rank.parse().ok()?, value.parse().ok()?))
    };
    Some(text.lines().map(|line| read(line).unwrap()).collect())
}

/// Segments that TCP sent again, in all nodes.
fn retransmissions(standing: &Standing) -> u64 {
    let of = |node| -> u64 {
        let text = standing.run(Some(node), &["cat", "/proc/net/snmp"]);
        let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let column = names.split(' ').position(|name| name == "RetransSegs").unwrap();
        values.split(' ').nth(column).unwrap().parse().unwrap()
    };
    (0..standing.testbed.spec().nodes).map(of).sum()
}

fn switch_of(name: &str) -> Option<i32> {
    let marker = format!("COLIBRI_SWITCH={name}");
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.into_iter().find(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        is_running(*pid) && environment.split(|b| *b == 0).any(|set| set == marker.as_bytes())
    })
}

fn kill(pid: i32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_switch_stands_serves_and_goes_with_its_testbed() {
    need!(can_make_taps(), "root and TAP devices");
    let before = Command::new("ip").args(["-o", "link"]).output().unwrap().stdout;
    let standing = switched("tap", 3, links());
    let name = standing.name().to_string();
    assert_eq!(Testbed::open(&name).unwrap().spec(), standing.testbed.spec());
    let route = standing.run(Some(2), &["ip", "route"]);
    assert!(route.contains("rto_min lock 200ms") && route.contains("initcwnd 64"), "{route}");
    let neighbours = standing.run(None, &["ip", "neigh"]);
    assert_eq!(neighbours.matches("PERMANENT").count(), 3, "{neighbours}");
    let after = Command::new("ip").args(["-o", "link"]).output().unwrap().stdout;
    assert_eq!(before, after, "nothing shows in the root namespace");

    let pid = switch_of(&name).unwrap();
    let told = status().unwrap().into_iter().find(|testbed| testbed.name == name).unwrap();
    assert_eq!((told.condition, told.nodes), (Condition::Standing, 3));
    assert!(told.processes.is_empty(), "the switch is none of its nodes' processes: {told:?}");
    let service = told.service.unwrap();
    assert_eq!((service.lost, service.refused, service.lateness.count), (0, 0, 0));
    // The nodes' processes end; the network stays.
    assert_eq!(standing.testbed.end_processes().unwrap(), 0);
    assert!(is_running(pid));

    assert_eq!(down(&name).unwrap().namespaces, 4);
    assert!(!is_running(pid));
    assert!(nothing_is_left_of(&name));
}

#[test]
fn a_killed_switch_is_told_and_its_devices_are_gone() {
    need!(can_make_taps(), "root and TAP devices");
    let standing = switched("dead", 2, links());
    let name = standing.name().to_string();
    kill(switch_of(&name).unwrap());
    wait_until(|| !standing.run(Some(0), &["ip", "link"]).contains("eth0"));
    let told = status().unwrap().into_iter().find(|testbed| testbed.name == name).unwrap();
    assert_eq!(told.condition, Condition::Partial);
    let error = Testbed::open(&name).unwrap_err().to_string();
    assert!(
        error.contains("has ended") && error.contains(&format!("down --name {name}")),
        "{error}"
    );
    down(&name).unwrap();
    assert!(nothing_is_left_of(&name));
}

#[test]
fn a_switch_ends_with_its_nodes() {
    need!(can_make_taps(), "root and TAP devices");
    let standing = switched("gone", 2, links());
    let pid = switch_of(standing.name()).unwrap();
    for place in ["n0", "n1", "head"] {
        let namespace = format!("colibri-{}-{place}", standing.name());
        assert!(
            Command::new("ip").args(["netns", "delete", &namespace]).status().unwrap().success()
        );
    }
    wait_until(|| !is_running(pid));
    down(standing.name()).unwrap();
    assert!(nothing_is_left_of(standing.name()));
}

/// As when the maker is killed before the network is complete: its end of the pipe closes.
#[test]
fn a_switch_that_is_not_let_go_ends() {
    need!(can_make_taps(), "root and TAP devices");
    let folder = tempfile::tempdir().unwrap();
    let port =
        r#"{"place":"n0","out_bits_per_second":1,"in_bits_per_second":1,"latency":0,"rack":null}"#;
    let wiring = format!(
        r#"{{"schema":"colibri/switch-wiring/1","ports":[{port}],"uplinks":null,"jitter":null}}"#
    );
    fs::write(folder.path().join("wiring.json"), wiring).unwrap();
    let program = colibri_testbed::programs::find("colibri-switch").unwrap();
    let mut switch = Command::new(program)
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(switch.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "made\n");
    drop(switch.stdin.take());
    let ended = switch.wait().unwrap();
    assert_eq!((ended.code(), ended.signal()), (Some(0), None));
}

/// Coarse, and the best of a few attempts: other tests take the processors meanwhile.
#[test]
fn a_link_has_its_latency_and_its_rate_and_nothing_is_sent_again() {
    need!(can_make_taps(), "root and TAP devices");
    let standing = switched("link", 2, links());
    let Some(halves) = traffic(&standing, 2, &["pingpong", "1", "0.5"]) else { return };
    // Two wires of 0.07 ms for the frame's 93 bytes, and the latency.
    let median = halves[0].1;
    assert!((1.14e-3..3e-3).contains(&median), "{median} s");
    let Service { lateness, held, .. } = standing.testbed.service().unwrap();
    assert!(lateness.count > 100 && held.median >= 1_140_000, "{lateness:?} {held:?}");

    let attempts: Vec<f64> = (0..3)
        .map(|_| {
            traffic(&standing, 2, &["across", "32768", "1.5"]).unwrap()[0].1 / WIRE_BYTES_PER_SECOND
        })
        .collect();
    let most = attempts.iter().copied().fold(0.0, f64::max);
    assert!((0.97..1.005).contains(&most), "{attempts:?} of the wire's");
    let Service { refused, lost, .. } = standing.testbed.service().unwrap();
    assert_eq!((retransmissions(&standing), refused, lost), (0, 0, 0));
}

#[test]
fn uplinks_are_shared_and_many_senders_are_served_evenly() {
    need!(can_make_taps(), "root and TAP devices");
    let uplink = "10mbit".parse().unwrap();
    let racks = Some(Racks { racks: 2, nodes: 3, uplink });
    let standing = switched("racks", 6, LinkOptions { racks, ..links() });
    for (kind, senders, share) in [("across", 3, 1.0 / 3.0), ("gather", 5, 0.0)] {
        let Some(rates) = traffic(&standing, 6, &[kind, "32768", "3"]) else { return };
        assert_eq!(rates.len(), senders);
        let values = rates.iter().map(|(_, rate)| rate / WIRE_BYTES_PER_SECOND);
        let (least, most) = values.fold((f64::MAX, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)));
        // Of three flows through the uplink each has a third; into one node all five have a fifth.
        let share = if share > 0.0 { share } else { 0.2 };
        assert!(least > share * 0.9 && most < share * 1.1, "{kind}: {rates:?}");
    }
    let Service { refused, lost, .. } = standing.testbed.service().unwrap();
    assert_eq!((retransmissions(&standing), refused, lost), (0, 0, 0));
}

#[test]
fn what_is_to_be_lost_is_lost_and_sent_again() {
    need!(can_make_taps(), "root and TAP devices");
    let loss: Loss = "2%".parse().unwrap();
    let standing = switched("loss", 2, LinkOptions { loss, seed: 1, ..links() });
    let Some(rates) = traffic(&standing, 2, &["across", "32768", "1"]) else { return };
    assert!(rates[0].1 > 0.0);
    let service = standing.testbed.service().unwrap();
    assert!(service.lost > 0 && retransmissions(&standing) > 0, "{service:?}");
}
