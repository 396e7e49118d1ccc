//! SimGrid with ports that serve one message at a time, as they do here.
//!
//! `times.csv` holds what SimGrid says; here it is compared with what our simulator says. A row is
//! one of SimGrid's own algorithms, or (`replay`) one of our schedules, step by step as an MPI
//! program of SimGrid's.

use std::{error::Error, ffi::OsStr, fmt::Write as _, fs, path::Path};

use colibri_schedules::{
    Buffer, Call, Entry, Range, Round, Step, find_named,
    simulator::{Costs, Options, simulate},
};
use records::Collective;

use crate::harness::{ENVELOPE, HOSTS, LATENCY, SECONDS_PER_BYTE, SimGrid};

/// Messages cost what Hockney says, and a link carries one at a time in each direction.
pub const ONE_AT_A_TIME: [&str; 3] =
    ["network/model:CM02", "network/crosstraffic:0", "maxmin/concurrency-limit:1"];

/// A message leaves whether or not its receive is posted.
pub const EAGER: [&str; 2] =
    ["smpi/send-is-detached-thresh:1000000000", "smpi/async-small-thresh:1000000000"];

/// A message waits for its receive, and its sender for the message.
const BLOCKING: [&str; 1] = ["smpi/send-is-detached-thresh:0"];

const TIMES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simgrid/times.csv");

/// (mode, collective, SimGrid's name or `replay`, our algorithm).
type Exception = (&'static str, &'static str, &'static str, &'static str);

/// In SimGrid a message takes both its ports at once, here one after the other: there, one that
/// waits for its receiver's lets later ones of its sender's go first.
const BOTH_PORTS_AT_ONCE: &[Exception] = &[
    ("eager", "alltoall", "basic_linear", "linear-concurrent"),
    ("blocking", "alltoall", "basic_linear", "linear-concurrent"),
    ("eager", "alltoall", "replay", "linear-concurrent"),
    ("blocking", "alltoall", "replay", "linear-concurrent"),
    ("eager", "gatherv", "replay", "traff"),
    ("eager", "reduce", "replay", "binary"),
    ("blocking", "allreduce", "replay", "binomial"),
    ("blocking", "reduce", "replay", "binomial"),
    ("blocking", "reduce", "ompi_binomial", "binomial"),
];

/// SimGrid's algorithm of that name has another schedule; ours, replayed there, agrees.
const OTHER_SCHEDULES: &[Exception] = &[
    // The nearest child, with the smallest subtree, gets its blocks first.
    ("eager", "scatter", "ompi_binomial", "binomial"),
    ("blocking", "scatter", "ompi_binomial", "binomial"),
    // Every rank sends to all after it.
    ("eager", "scan", "default", "linear"),
    ("eager", "exscan", "default", "linear"),
];

/// The latency counts where messages are eager. Where senders wait it is 0: SimGrid's wait until
/// the message is there, ours until it has left.
struct PortSimulation {
    latency: f64,
}

impl Costs for PortSimulation {
    fn send_overhead(&self, _bytes: u64) -> f64 {
        0.0
    }

    fn receive_overhead(&self, _bytes: u64) -> f64 {
        0.0
    }

    fn gap(&self, bytes: u64, _destinations: u32) -> f64 {
        (bytes + ENVELOPE) as f64 * SECONDS_PER_BYTE
    }

    fn flight(&self, bytes: u64) -> f64 {
        self.latency + self.gap(bytes, 1)
    }

    fn combine(&self, _bytes: u64) -> f64 {
        0.0
    }
}

/// A row of the table.
#[derive(Debug, Clone)]
struct TableRow {
    mode: String,
    collective: String,
    /// SimGrid's algorithm, or `replay`.
    theirs: String,
    algorithm: String,
    segment: u64,
    fan_out: u32,
    ranks: u32,
    bytes: u64,
    /// By SimGrid.
    seconds: f64,
}

const HEADER: &str = "mode,collective,simgrid,algorithm,segment,fan_out,procs,bytes,nanoseconds";

impl TableRow {
    fn read(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let [mode, collective, theirs, algorithm, segment, fan_out, ranks, bytes, time] =
            fields.try_into().ok()?;
        Some(TableRow {
            mode: mode.into(),
            collective: collective.into(),
            theirs: theirs.into(),
            algorithm: algorithm.into(),
            segment: segment.parse().ok()?,
            fan_out: fan_out.parse().ok()?,
            ranks: ranks.parse().ok()?,
            bytes: bytes.parse().ok()?,
            seconds: time.parse::<f64>().ok()? * 1e-9,
        })
    }

    fn line(&self, seconds: f64) -> String {
        let TableRow {
            mode, collective, theirs, algorithm, segment, fan_out, ranks, bytes, ..
        } = self;
        let time = (seconds * 1e9).round();
        format!(
            "{mode},{collective},{theirs},{algorithm},{segment},{fan_out},{ranks},{bytes},{time}"
        )
    }

    fn is_eager(&self) -> bool {
        self.mode == "eager"
    }

    fn entry(&self) -> Result<&'static Entry, Box<dyn Error>> {
        let collective: Collective = self.collective.parse()?;
        Ok(find_named(collective, &self.algorithm)?)
    }

    /// Calls with the blocks of all ranks alike.
    fn with_call<T>(&self, serve: impl FnOnce(&Call<'_>) -> T) -> T {
        let counts = vec![self.bytes; self.ranks as usize];
        let displacements: Vec<u64> = (0..u64::from(self.ranks)).map(|r| r * self.bytes).collect();
        serve(&Call {
            segment: self.segment,
            fan_out: self.fan_out,
            counts: &counts,
            displacements: &displacements,
            ..Call::new(self.ranks, self.bytes)
        })
    }

    fn ours(&self) -> Result<f64, Box<dyn Error>> {
        let entry = self.entry()?;
        let costs = PortSimulation { latency: if self.is_eager() { LATENCY } else { 0.0 } };
        let options = Options {
            rendezvous_bytes: (!self.is_eager()).then_some(0),
            handshake: Some(0.0),
            ..Options::default()
        };
        Ok(self.with_call(|call| simulate(entry, call, &costs, options))?.seconds)
    }

    fn simulated_by(&self, simgrid: &SimGrid) -> Result<f64, Box<dyn Error>> {
        let mode = if self.is_eager() { &EAGER[..] } else { &BLOCKING };
        let settings = [&ONE_AT_A_TIME[..], mode].concat();
        let platform = if self.is_eager() { "latency.xml" } else { "no-latency.xml" };
        let collective = self.collective.as_str();
        if self.theirs != "replay" {
            // Some have one algorithm, which can't be chosen.
            let chosen = Some(self.theirs.as_str()).filter(|name| *name != "default");
            return simgrid.collective(
                &settings,
                platform,
                (collective, chosen),
                self.ranks,
                self.bytes,
            );
        }
        let entry = self.entry()?;
        self.with_call(|call| replay(simgrid, &settings, (platform, HOSTS), entry, call))
    }
}

/// Seconds that a schedule takes there, on the platform and with the hosts of ranks of these files.
pub fn replay(
    simgrid: &SimGrid,
    settings: &[&str],
    on: (&str, &str),
    entry: &Entry,
    call: &Call<'_>,
) -> Result<f64, Box<dyn Error>> {
    let folder = simgrid.folder.join("schedule");
    write_schedule(entry, call, &folder)?;
    let arguments: [&OsStr; 1] = [folder.as_ref()];
    simgrid.run(settings, on, call.ranks, "replay", &arguments)
}

fn cases() -> Result<Vec<TableRow>, Box<dyn Error>> {
    let text = fs::read_to_string(TIMES)?;
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some(HEADER));
    lines
        .map(|line| TableRow::read(line).ok_or_else(|| format!("{TIMES}: {line}").into()))
        .collect()
}

/// As `replay.c` reads it. Elements are bytes.
fn write_schedule(entry: &Entry, call: &Call<'_>, folder: &Path) -> Result<(), Box<dyn Error>> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    // Enough for what headers hold, which is the same everywhere.
    let words = [call.counts, call.counts].concat();
    let is_v_form = matches!(entry.collective, Collective::Scatterv | Collective::Gatherv);
    for rank in 0..call.ranks {
        let mut known = *call;
        if is_v_form && rank != call.root {
            known.counts = &call.counts[..1];
            known.displacements = &call.displacements[..1];
        }
        let header = entry.needs(&known, rank).header as usize;
        let mut steps = String::new();
        let mut most = 0;
        let mut round = Round::default();
        for index in 0.. {
            if !entry.round(&known, rank, index, &mut round) {
                break;
            }
            for step in round.steps() {
                most = write_step(step, &mut steps)?.max(most);
            }
            known.header = &words[..header];
        }
        fs::write(folder.join(rank.to_string()), format!("{most}\n{steps}"))?;
    }
    Ok(())
}

/// The bytes of its message.
fn write_step(step: &Step, out: &mut String) -> Result<u64, std::fmt::Error> {
    let bytes_of = |range: Range| match range.buffer {
        Buffer::Counts | Buffer::Header => range.count * size_of::<u64>() as u64,
        _ => range.count,
    };
    let (what, peer, slot, bytes) = match *step {
        Step::Send { peer, slot, range } | Step::SendReady { peer, slot, range } => {
            ('s', peer, slot, bytes_of(range))
        }
        Step::Receive { peer, slot, range } => ('r', peer, slot, bytes_of(range)),
        Step::Wait { slot } => {
            writeln!(out, "w {slot}")?;
            return Ok(0);
        }
        // Messages alone are simulated; the other steps are no part of them.
        Step::Combine { .. }
        | Step::Copy { .. }
        | Step::Signal { .. }
        | Step::Await { .. }
        | Step::AwaitAll { .. }
        | Step::AwaitFinished { .. }
        | Step::Finish { .. } => return Ok(0),
    };
    writeln!(out, "{what} {peer} {bytes} {slot}")?;
    Ok(bytes)
}

/// To 1e-6, but for what is listed, which does differ.
#[test]
fn what_simgrid_says_comes_out() -> Result<(), Box<dyn Error>> {
    let mut wrong = Vec::new();
    for case in cases()? {
        let ratio = case.ours()? / case.seconds;
        let equal = (ratio - 1.0).abs() < 1e-6;
        let names = (&*case.mode, &*case.collective, case.theirs.as_str(), case.algorithm.as_str());
        let listed = BOTH_PORTS_AT_ONCE.iter().chain(OTHER_SCHEDULES).any(|one| *one == names);
        if equal == listed {
            wrong.push(format!("{case:?}: ratio {ratio}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Writes what it says to the file `SIMGRID_TIMES`, if that is set.
#[test]
#[ignore = "needs SimGrid, takes minutes: make test-long"]
fn simgrid_says_what_is_recorded() -> Result<(), Box<dyn Error>> {
    let Some(simgrid) = SimGrid::build("ports")? else { return Ok(()) };
    let mut lines = vec!["# By SimGrid, see ports.rs".into(), HEADER.to_owned()];
    let mut wrong = Vec::new();
    for case in cases()? {
        let seconds = case.simulated_by(&simgrid)?;
        lines.push(case.line(seconds));
        if (seconds / case.seconds - 1.0).abs() > 1e-6 {
            wrong.push(format!("{}, recorded {}", case.line(seconds), case.seconds));
        }
    }
    if let Some(file) = std::env::var_os("SIMGRID_TIMES") {
        fs::write(file, lines.join("\n") + "\n")?;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
