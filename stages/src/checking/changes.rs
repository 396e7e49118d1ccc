//! What of the machines and the MPI library is another one than when a run was tuned.

use choosing::pairs::PairedTimes;
use records::{
    Point,
    check::Change,
    choices::Chosen,
    confirmed::Evidence,
    first_job::FirstJob,
    platform::Platform,
    quantity::{format_bytes, format_seconds},
    shortened,
};

const LIBRARY: &str = "MPI library";
const PROCESSOR: &str = "processor";
const RANKS: &str = "ranks";
const RANKS_ON_NODES: &str = "ranks on the nodes";
const BINDING: &str = "binding";
const TRANSPORT: &str = "transport";
const LINKS: &str = "links";
const DEFAULT_TIMES: &str = "times of the default";
const LOADED_TIMES: &str = "times with the choices loaded";

/// Changes that may make other methods the fastest.
pub const TELLING: [&str; 9] = [
    LIBRARY,
    PROCESSOR,
    RANKS,
    RANKS_ON_NODES,
    BINDING,
    TRANSPORT,
    LINKS,
    DEFAULT_TIMES,
    LOADED_TIMES,
];

/// What of memory may differ: kernels keep more or less of it for themselves.
const MEMORY_TOLERANCE: f64 = 0.02;

/// Everything that differs, and is known of both. Names of hosts are not compared: a batch system gives other nodes
/// each time.
pub fn changes(before: &FirstJob, now: &FirstJob) -> Vec<Change> {
    let (old, new) = (&before.platform, &now.platform);
    let cores = |of: &Platform| if of.cores == 0 { String::new() } else { of.cores.to_string() };
    let compared = [
        (LIBRARY, library(old, new), library(new, old)),
        ("kernel", old.kernel.clone(), new.kernel.clone()),
        (PROCESSOR, old.processor.clone(), new.processor.clone()),
        ("processors of a node", cores(old), cores(new)),
        ("governor", old.governor.clone(), new.governor.clone()),
        (RANKS, old.hosts.len().to_string(), new.hosts.len().to_string()),
        (RANKS_ON_NODES, placement(before), placement(now)),
        (BINDING, binding(before), binding(now)),
        (TRANSPORT, old.transport.clone(), new.transport.clone()),
        (LINKS, links(old), links(new)),
        ("memory limit", limit(before), limit(now)),
        ("launcher", old.launcher.clone(), new.launcher.clone()),
    ];
    let of_memory = match (memory(before), memory(now)) {
        (Some(old), Some(new)) => {
            let ratio = new as f64 / old as f64 - 1.0;
            let text = |bytes: u64| format_bytes(bytes >> 20 << 20);
            (ratio.abs() > MEMORY_TOLERANCE).then(|| ("memory of a node", text(old), text(new)))
        }
        _ => None,
    };
    let of_settings = Some(("settings", settings(old, new), settings(new, old)));
    let known = |(_, before, now): &(&str, String, String)| !before.is_empty() && !now.is_empty();
    let differs = |(_, before, now): &(&str, String, String)| before != now;
    let compared = compared.into_iter().filter(known).chain(of_memory).chain(of_settings);
    compared.filter(differs).map(|(what, before, now)| change(what, &before, &now)).collect()
}

/// What is set and was, or is, not set so on the other side; without what each run has of its own: Colibri's variables,
/// what a virtual cluster sets, and where files to preload lie.
fn settings(of: &Platform, other: &Platform) -> String {
    let named = |of: &Platform| -> Vec<String> {
        let is_own = |one: &&String| one.starts_with("COLIBRI_") || one.contains("/run/colibri/");
        of.settings.iter().filter(|one| !is_own(one)).map(|one| without_folders(one)).collect()
    };
    let theirs = named(other);
    let alone: Vec<String> = named(of).into_iter().filter(|one| !theirs.contains(one)).collect();
    if alone.is_empty() { "none".into() } else { alone.join(" ") }
}

/// `LD_PRELOAD=/a/liba.so:/b/libb.so` as `LD_PRELOAD=liba.so:libb.so`.
fn without_folders(setting: &str) -> String {
    let Some(list) = setting.strip_prefix("LD_PRELOAD=") else { return setting.to_owned() };
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let names: Vec<String> = list.split([':', ' ']).map(name).collect();
    format!("LD_PRELOAD={}", names.join(":"))
}

fn change(what: &str, before: &str, now: &str) -> Change {
    Change { what: what.into(), before: shortened(before), now: shortened(now) }
}

/// Its name and version, or all that it says where these are the other's.
fn library(of: &Platform, other: &Platform) -> String {
    match of.library() == other.library() {
        true => of.mpi_library.clone(),
        false => of.library().into(),
    }
}

/// Those of a virtual cluster.
fn links(of: &Platform) -> String {
    match of.testbed.as_str() {
        "" => "no virtual cluster's".into(),
        of => of.to_owned(),
    }
}

/// `2 on each of 4 nodes`, `4+4+3`.
fn placement(first_job: &FirstJob) -> String {
    let counts: Vec<usize> = first_job.nodes.iter().map(|node| node.ranks.len()).collect();
    match counts.first() {
        None => String::new(),
        Some(each) if counts.iter().all(|count| count == each) => {
            let dealt = if first_job.is_in_blocks() { "" } else { ", dealt out" };
            format!("{each} on each of {}{dealt}", records::counted(counts.len(), "node"))
        }
        _ => counts.iter().map(usize::to_string).collect::<Vec<_>>().join("+"),
    }
}

/// The processors that ranks may use, those of neighbours that have the same once.
fn binding(first_job: &FirstJob) -> String {
    let mut all = first_job.allowed_processors.clone();
    all.dedup();
    all.join(" ")
}

/// The least of all nodes'.
fn memory(first_job: &FirstJob) -> Option<u64> {
    first_job.nodes.iter().filter_map(|node| node.memory_bytes).filter(|bytes| *bytes > 0).min()
}

fn limit(first_job: &FirstJob) -> String {
    let least = first_job.nodes.iter().filter_map(|node| node.memory_limit_bytes).min();
    match (least, first_job.nodes.is_empty()) {
        (Some(bytes), _) => format_bytes(bytes >> 20 << 20),
        (None, false) => "none".into(),
        (None, true) => String::new(),
    }
}

/// How many times as long or as short calls must take for that to be a change. The same call differs by 1.3 times from job to
/// job on supercomputers.
const TIMES_DIFFER: f64 = 1.5;

/// What calls take, of the default or with the choices loaded, where that is another time at half of the points at least
/// that were measured then. Of all jobs the shortest time counts: others make calls longer, not shorter.
pub fn of_times(timed: &[PairedTimes], choices: &[Chosen]) -> Option<Change> {
    let measured = |point: Point| {
        let is_measured =
            |of: &&Chosen| matches!(of.rests_on, Evidence::Measured | Evidence::Confirmed);
        choices.iter().find(|chosen| chosen.point == point).filter(is_measured)
    };
    let before_and_now = |which: usize| -> Vec<(Point, [f64; 2])> {
        let of = |one: &PairedTimes| {
            let chosen = measured(one.point)?;
            let before = [chosen.default_seconds?, chosen.seconds][which];
            let now = one.turns.values().map(|both| both[which]).reduce(f64::min)?;
            (before > 0.0 && now > 0.0).then_some((one.point, [before, now]))
        };
        timed.iter().filter_map(of).collect()
    };
    let series = [DEFAULT_TIMES, LOADED_TIMES];
    let mut all = series.into_iter().enumerate();
    all.find_map(|(which, what)| differing(what, &before_and_now(which)))
}

fn differing(what: &str, times: &[(Point, [f64; 2])]) -> Option<Change> {
    let by = |[before, now]: [f64; 2]| (now / before).ln().abs();
    let differing: Vec<_> =
        times.iter().filter(|(_, times)| by(*times) > TIMES_DIFFER.ln()).collect();
    let (point, [before, now]) =
        differing.iter().max_by(|(_, one), (_, other)| by(*one).total_cmp(&by(*other)))?;
    let is_reported = differing.len() >= 2 && 2 * differing.len() >= times.len();
    is_reported.then(|| Change {
        what: what.into(),
        before: format!(
            "{} for {} of {} on {} ranks",
            format_seconds(*before),
            point.collective,
            format_bytes(point.bytes),
            point.layout
        ),
        now: format!(
            "{}; another time at {} of {}, by more than {TIMES_DIFFER} times",
            format_seconds(*now),
            differing.len(),
            records::counted(times.len(), "point")
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use records::{Collective, Method, first_job::NodeFacts};

    use super::*;

    fn told() -> FirstJob {
        let node = |number: u32| NodeFacts {
            host: format!("n{number}"),
            ranks: vec![2 * number, 2 * number + 1],
            processors: 4,
            memory_bytes: Some(64 << 30),
            memory_limit_bytes: None,
            sees_run: true,
        };
        let platform = Platform {
            hosts: ["n0", "n0", "n1", "n1"].map(Into::into).into(),
            mpi_library: "Open MPI v4.1.4, package: Debian, ident: 4.1.4".into(),
            kernel: "6.1.0-25".into(),
            processor: "EPYC".into(),
            cores: 4,
            transport: "pml ob1; btl self, tcp".into(),
            ..Platform::default()
        };
        FirstJob {
            platform,
            allowed_processors: vec!["0-1".into(); 4],
            nodes: vec![node(0), node(1)],
            start_spread: None,
        }
    }

    #[test]
    fn nothing_changes_by_other_hosts_and_a_little_memory() {
        let (mut before, mut now) = (told(), told());
        before.platform.settings =
            ["COLIBRI_TESTBED=run-1", "LD_PRELOAD=/a/liby.so", "A=1"].map(Into::into).into();
        now.platform.settings =
            ["A=1", "COLIBRI_TESTBED=run-2", "LD_PRELOAD=/b/liby.so"].map(Into::into).into();
        now.nodes[0].host = "n17".into();
        now.nodes[0].memory_bytes = Some((64 << 30) - (200 << 20));
        assert_eq!(changes(&before, &now), []);
    }

    #[test]
    fn each_change_is_named_with_what_was_before() {
        let mut now = told();
        now.platform.mpi_library = "Open MPI v5.0.3, package: Debian, ident: 5.0.3".into();
        now.platform.kernel = "6.1.0-26".into();
        now.platform.transport = "pml ucx".into();
        now.platform.settings = vec!["OMPI_MCA_pml=ucx".into()];
        now.allowed_processors = ["0", "1", "0", "1"].map(Into::into).into();
        now.nodes.iter_mut().for_each(|node| node.memory_bytes = Some(32 << 30));
        now.nodes[0].memory_limit_bytes = Some(8 << 30);
        let all: Vec<String> = changes(&told(), &now)
            .iter()
            .map(|change| format!("{}: {} -> {}", change.what, change.before, change.now))
            .collect();
        assert_eq!(
            all,
            [
                "MPI library: Open MPI v4.1.4 -> Open MPI v5.0.3",
                "kernel: 6.1.0-25 -> 6.1.0-26",
                "binding: 0-1 -> 0 1 0 1",
                "transport: pml ob1; btl self, tcp -> pml ucx",
                "memory limit: none -> 8 GiB",
                "memory of a node: 64 GiB -> 32 GiB",
                "settings: none -> OMPI_MCA_pml=ucx",
            ]
        );
    }

    #[test]
    fn fewer_ranks_and_another_placement_are_named() {
        let mut now = told();
        now.platform.hosts.truncate(3);
        now.nodes[1].ranks.pop();
        let all: Vec<String> = changes(&told(), &now)
            .iter()
            .map(|change| format!("{}: {} -> {}", change.what, change.before, change.now))
            .collect();
        assert_eq!(all, ["ranks: 4 -> 3", "ranks on the nodes: 2 on each of 2 nodes -> 2+1"]);
    }

    #[test]
    fn other_times_are_named_where_half_of_the_points_have_them_in_every_job() {
        let point = |bytes| Point::flat(Collective::Bcast, 4, bytes);
        let method: Method = "own:binomial".parse().unwrap();
        let choices: Vec<Chosen> = (1..5)
            .map(|bytes| Chosen::measured(point(bytes), method.clone(), 1e-3, 2e-3))
            .collect();
        // A job of three is disturbed.
        let timed = |factor: [f64; 2], of: &[u64]| -> Vec<PairedTimes> {
            let turns = |factor: [f64; 2]| -> BTreeMap<usize, [f64; 2]> {
                let [default, loaded] = [2e-3 * factor[0], 1e-3 * factor[1]];
                [1.0, 3.0, 1.0]
                    .map(|by| [by * default, by * loaded])
                    .into_iter()
                    .enumerate()
                    .collect()
            };
            let of = |bytes| {
                let factor = if of.contains(&bytes) { factor } else { [1.0; 2] };
                let (point, method) = (point(bytes), method.clone());
                PairedTimes { point, method, turns: turns(factor), made: 3 }
            };
            (1..5).map(of).collect()
        };
        let told = |factor, of: &[u64]| {
            let change = of_times(&timed(factor, of), &choices)?;
            Some(format!("{}: {} -> {}", change.what, change.before, change.now))
        };
        assert_eq!(told([1.0; 2], &[]), None);
        assert_eq!(told([1.4; 2], &[1, 2, 3, 4]), None);
        assert_eq!(told([2.0; 2], &[4]), None);
        assert_eq!(
            told([2.0; 2], &[3, 4]).unwrap(),
            "times of the default: 2.00 ms for bcast of 4 B on 4 ranks -> 4.00 ms; another time at 2 of 4 points, by \
             more than 1.5 times"
        );
        assert!(
            told([1.2, 1.8], &[1, 2, 3, 4]).unwrap().starts_with("times with the choices loaded")
        );
        assert!(told([0.5, 1.0], &[1, 2, 3, 4]).unwrap().starts_with("times of the default"));
    }
}
