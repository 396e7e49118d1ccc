//! `colibri-mpi links`: all links at once.
//!
//! The first rank of each node of a ring sends a message to the next and receives one from the one before, all from
//! an agreed instant on. On a network whose links are its own that takes no longer among many nodes
//! than among few; a virtual cluster is only as good as the machine that carries it.

use std::collections::BTreeMap;

use mpi::ffi;
use rand::{SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;
use records::{
    group_observation::{GroupKind, GroupObservation},
    observation::ObservationStatus,
    platform::Platform,
    quantity,
};
use serde::{Deserialize, Serialize};
use timing::{
    margin::Margin,
    scheme::{self, CallReport, Scheme, Start, TimingScheme},
};

use crate::{
    Error, Result,
    calibrate::group::{start_receive, start_send, wait_for_all},
    clock::Nanos,
    exchange::{Communicator, Tag},
    flags::{JobFlags, parse_budget},
    launcher, pairs,
    platform::{self, Survey},
    polling_pause::PollingPause,
    progress::Reporter,
    recording::{self, RecordHeader, Recording},
    serving,
    synchronisation::{ClockLine, Synchroniser},
    world::World,
};

/// Measures how long a message to the next node takes when all nodes send one at once
#[derive(Debug, Clone, clap::Args)]
pub struct LinksFlags {
    #[command(flatten)]
    pub(crate) job: JobFlags,
    /// Numbers of nodes, with commas
    #[arg(long, value_parser = parse_nodes)]
    nodes: FlagList<u32>,
    /// Sizes of the messages, with commas
    #[arg(long, value_parser = parse_sizes)]
    sizes: FlagList<u64>,
    /// Seconds from the start of MPI to the end
    #[arg(long, value_parser = parse_budget)]
    budget_seconds: f64,
    /// Seed of the order of the measurements
    #[arg(long)]
    seed: u64,
}

/// A list in one flag.
#[derive(Debug, Clone)]
pub struct FlagList<T>(Vec<T>);

fn parse_nodes(text: &str) -> std::result::Result<FlagList<u32>, String> {
    match quantity::parse_procs(text)? {
        nodes if nodes.contains(&1) => Err("a ring of 1 node; expected at least 2".into()),
        nodes => Ok(FlagList(nodes)),
    }
}

fn parse_sizes(text: &str) -> std::result::Result<FlagList<u64>, String> {
    let sizes = quantity::parse_sizes(text)?;
    match sizes.iter().find(|&&bytes| bytes > i32::MAX as u64) {
        Some(bytes) => Err(format!("{bytes} bytes; one message has at most {}", i32::MAX)),
        None => Ok(FlagList(sizes)),
    }
}

/// Observations of each ring, beside a first one that makes the connections.
const OBSERVATIONS: u32 = 7;

/// One ring at one instant.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct TimedRing {
    procs: u32,
    bytes: u64,
    agreed: Nanos,
}

/// The program on one rank.
///
/// # Errors
/// The record cannot be used; a ring is larger than the job; the MPI library refuses.
pub fn run(flags: &LinksFlags, world: &World) -> Result<()> {
    let surroundings = platform::survey(world, &flags.job, Survey::WithLoad)?;
    let scheme = Scheme { timing: TimingScheme::Global, watched: surroundings.uncrowded };
    let mut synchroniser = Synchroniser::new(world.control, surroundings.groups);
    if !synchroniser.is_exact() {
        synchroniser.begin()?;
    }
    let largest = flags.sizes.0.iter().copied().max().unwrap_or_default() as usize;
    let members = pairs::members(&surroundings.nodes, false);
    if !members.contains(&world.rank()) {
        return serving::follow(&world.control, PollingPause::for_idle_rank, |(): ()| Ok(()));
    }
    let comm = world.control.of_ranks(&members)?;
    let mut link = RingLinks::new(comm, scheme, synchroniser.line(), largest);
    let Some(platform) = surroundings.platform else { return link.serve() };
    let mut others = (1..world.control.size()).filter(|rank| !members.contains(rank));
    let outcome = serving::lead(&comm, || direct(flags, world, &mut link, &platform));
    others.try_for_each(|rank| world.control.send_value(&None::<()>, rank, Tag::Command))?;
    outcome
}

/// One rank's two links of a ring.
struct RingLinks {
    comm: Communicator,
    scheme: Scheme,
    clock: ClockLine,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    requests: Vec<ffi::MPI_Request>,
}

impl RingLinks {
    fn new(comm: Communicator, scheme: Scheme, clock: ClockLine, largest: usize) -> Self {
        // Not zeros: those need not be there in memory.
        let [outgoing, incoming] = [0x5A, 0xA5].map(|byte| vec![byte; largest]);
        RingLinks { comm, scheme, clock, outgoing, incoming, requests: Vec::with_capacity(2) }
    }

    fn serve(mut self) -> Result<()> {
        let comm = self.comm;
        serving::follow(&comm, PollingPause::for_participant, |ring: TimedRing| {
            let report = self.take_part(ring)?;
            comm.send_value(&report, 0, Tag::Report)
        })
    }

    /// Sends to the next rank and receives from the one before; every rank of the ring must.
    fn take_part(&mut self, TimedRing { procs, bytes, agreed }: TimedRing) -> Result<CallReport> {
        let RingLinks { comm, scheme, clock, outgoing, incoming, requests } = self;
        let (next, before) = ((comm.rank() + 1) % procs, (comm.rank() + procs - 1) % procs);
        let bytes = bytes as usize;
        scheme::call(*scheme, comm, procs, clock, Start { agreed, reply: 0 }, || {
            requests.push(start_receive(comm, &mut incoming[..bytes], before)?);
            requests.push(start_send(comm, &outgoing[..bytes], next)?);
            wait_for_all(requests)
        })
    }
}

/// Rank 0: one observation of every ring after the other, in random order, until there are enough
/// or the time is over.
fn direct(
    flags: &LinksFlags,
    world: &World,
    links: &mut RingLinks,
    platform: &Platform,
) -> Result<()> {
    let there = links.comm.size();
    if let Some(most) = flags.nodes.0.iter().find(|&&nodes| nodes > there) {
        return Err(Error::Usage(format!("--nodes asks for {most} of {there} nodes")));
    }
    let header = header(flags, platform, links.scheme)?;
    let (recording, earlier) = Recording::<GroupObservation>::open(&flags.job.record, header, &[])?;
    let mut seen: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    let mut visit = 0;
    for row in earlier.rows {
        visit = visit.max(row.visit.saturating_add(1));
        let rows = seen.entry((row.procs, row.bytes)).or_default();
        *rows = (*rows).max(row.repetition.saturating_add(1));
    }
    let mut writer = recording.begin()?;
    let mut rings: Vec<(u32, u64)> = Vec::new();
    for &procs in &flags.nodes.0 {
        rings.extend(flags.sizes.0.iter().map(|&bytes| (procs, bytes)));
    }
    let planned = rings.len() as u64 * u64::from(OBSERVATIONS + 1);
    let mut progress = Reporter::new("all links at once", planned);
    let mut random = Pcg64::seed_from_u64(flags.seed);
    let mut margins: BTreeMap<u32, Margin> = BTreeMap::new();
    for _ in 0..=OBSERVATIONS {
        rings.shuffle(&mut random);
        for &(procs, bytes) in &rings {
            let repetition = seen.entry((procs, bytes)).or_default();
            if *repetition > OBSERVATIONS {
                continue;
            }
            launcher::end_if_gone();
            if world.elapsed_seconds() >= flags.budget_seconds {
                return Ok(());
            }
            let margin = margins.entry(procs).or_insert(Margin::new(procs));
            let (seconds, late) = observe(links, procs, bytes, margin)?;
            let status = match (*repetition, late) {
                (0, _) => ObservationStatus::Warmup,
                (_, late) => late,
            };
            writer.append(&GroupObservation {
                kind: GroupKind::Ring,
                operation: None,
                procs,
                bytes,
                messages: 1,
                job: 0,
                visit,
                repetition: *repetition,
                seconds,
                status,
            })?;
            *repetition += 1;
            visit += 1;
            progress.update(seen.values().map(|&rows| u64::from(rows)).sum());
        }
    }
    progress.finish(u64::MAX);
    Ok(())
}

/// One observation of one ring: its seconds, and whether all began in time.
fn observe(
    links: &mut RingLinks,
    procs: u32,
    bytes: u64,
    margin: &mut Margin,
) -> Result<(f64, ObservationStatus)> {
    let comm = links.comm;
    let ring = TimedRing { procs, bytes, agreed: margin.agree() };
    serving::tell_first(&comm, procs, &ring)?;
    let mut reports = vec![links.take_part(ring)?];
    for rank in 1..procs {
        reports.push(comm.receive_value_asleep(
            rank,
            Tag::Report,
            PollingPause::for_participant(),
        )?);
    }
    margin.learn(&reports);
    let start = Start { agreed: ring.agreed, reply: 0 };
    let timed = scheme::combine(links.scheme, start, &[], &reports);
    let timed = timed.ok_or_else(|| Error::Usage("no rank reported a ring".into()))?;
    Ok((timed.seconds, timed.status))
}

fn header(flags: &LinksFlags, platform: &Platform, scheme: Scheme) -> Result<RecordHeader> {
    let own = [("seed", flags.seed.to_string()), ("timing", scheme.description(true))];
    recording::header("links", platform, own)
}
