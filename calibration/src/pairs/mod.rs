//! `colibri-mpi pairs`: every link between ranks, each direction by itself.
//!
//! A message goes one way and an empty one comes back, so that what is slow in one direction alone
//! shows in that direction alone. Pairs are taken in rounds of disjoint ones, in random order; a
//! round's pairs are measured one after the other or several at once. What the budget does not
//! reach is a random sample of all pairs that is left out, and the record tells which. What looks slow
//! is looked at again in the last fifth of the budget: a bad cable is slow at any time, what something
//! else on the machine disturbed is not.

mod link;
mod series;

use std::collections::HashMap;

use rand::{SeedableRng, seq::SliceRandom};
use rand_pcg::Pcg64;
use records::{
    observation::{ObservationStatus, PointToPoint, PointToPointKind},
    platform::Platform,
    quantity,
};
use statistics::stopping::{Criterion, Rule};
use timing::tournament;

use self::{
    link::{Exchange, RankLinks},
    series::{AllSeries, VISIT, slow},
};
use crate::{
    Result,
    exchange::{Communicator, Tag},
    flags::{JobFlags, parse_budget},
    launcher,
    platform::{self, Survey},
    polling_pause::PollingPause,
    progress::Reporter,
    recording::{self, RecordHeader, Recording, spent_seconds},
    serving,
    world::World,
};

/// Measures the links between all pairs of ranks, each direction by itself
#[derive(Debug, Clone, clap::Args)]
pub struct PairsFlags {
    #[command(flatten)]
    pub(crate) job: JobFlags,
    /// Size of the messages, beside empty ones
    #[arg(long, value_parser = parse_bytes)]
    bytes: u64,
    /// Pairs to measure at the same time [default: 1 up to 16 ranks, else all of a round]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    at_once: Option<u32>,
    /// All ranks, not one of each node
    #[arg(long)]
    all_ranks: bool,
    /// Seconds from the start of MPI to the end, those of the record's earlier runs included
    #[arg(long, value_parser = parse_budget)]
    budget_seconds: f64,
    /// Seed of the order of the measurements
    #[arg(long)]
    seed: u64,
}

fn parse_bytes(text: &str) -> std::result::Result<u64, String> {
    match quantity::parse_bytes(text)? {
        bytes @ 1..=0x7FFF_FFFF => Ok(bytes),
        bytes => Err(format!("{bytes} bytes; one message has 1 to {}", i32::MAX)),
    }
}

/// The program on one rank.
///
/// # Errors
/// The record cannot be used; the MPI library refuses.
pub fn run(flags: &PairsFlags, world: &World) -> Result<()> {
    let surroundings = platform::survey(world, &flags.job, Survey::WithLoad)?;
    let link = RankLinks::new(world.control, flags.bytes as usize);
    let Some(platform) = surroundings.platform else { return serve(world.control, link) };
    let members = members(&surroundings.nodes, flags.all_ranks);
    serving::lead(&world.control, || {
        PairsDirector::new(flags, world, link, members, &platform)?.run()
    })
}

fn serve(control: Communicator, mut link: RankLinks) -> Result<()> {
    serving::follow(&control, PollingPause::for_frequent_messages, |exchange: Exchange| {
        let seconds = link.exchange(exchange)?;
        match exchange.sends {
            true => control.send_value(&seconds, 0, Tag::Report),
            false => Ok(()),
        }
    })
}

/// The first rank of every node; all where they are asked for or on one node.
pub(crate) fn members(nodes: &[u32], all: bool) -> Vec<u32> {
    let is_first = |rank: usize| !nodes[..rank].contains(&nodes[rank]);
    let first: Vec<u32> =
        (0..nodes.len()).filter(|rank| is_first(*rank)).map(|rank| rank as u32).collect();
    if all || first.len() < 2 { (0..nodes.len() as u32).collect() } else { first }
}

/// Rank 0: says who exchanges with whom, and writes what they saw.
struct PairsDirector<'a> {
    flags: &'a PairsFlags,
    world: &'a World,
    link: RankLinks,
    members: Vec<u32>,
    at_once: usize,
    series: AllSeries,
    next_visit: u32,
    /// What an exchange may take with all that belongs to it, in seconds.
    expected: f64,
    spent_before: f64,
    writer: Recording<PointToPoint>,
    progress: Reporter,
}

/// A link at a size is known well enough: what stands out does so by more than that.
const STOPPING_RULE: Rule = Rule {
    criterion: Criterion::MedianInterval,
    minimum: 6,
    maximum: 24,
    confidence: 0.95,
    relative_error: 0.05,
    resolution_seconds: 1e-6,
};
/// The part of the budget for all links; what is left is for those that look slow.
const SHARE_OF_ALL: f64 = 0.8;

impl<'a> PairsDirector<'a> {
    fn new(
        flags: &'a PairsFlags,
        world: &'a World,
        link: RankLinks,
        members: Vec<u32>,
        platform: &Platform,
    ) -> Result<Self> {
        let at_once = match flags.at_once {
            Some(pairs) => pairs as usize,
            None if members.len() <= 16 => 1,
            None => members.len() / 2,
        };
        let header = header(flags, &members, at_once, platform)?;
        let path = &flags.job.record;
        let (writer, earlier) = Recording::open(path, header, &["members", "bytes", "at_once"])?;
        let mut director = PairsDirector {
            flags,
            world,
            link,
            members,
            at_once,
            series: HashMap::new(),
            next_visit: 0,
            expected: 0.0,
            spent_before: spent_seconds(&earlier, path)?,
            writer: writer.begin()?,
            progress: Reporter::new("pairs", (flags.budget_seconds * 1e3) as u64),
        };
        earlier.rows.iter().for_each(|row| director.enter(row));
        Ok(director)
    }

    fn enter(&mut self, row: &PointToPoint) {
        self.next_visit = self.next_visit.max(row.visit.saturating_add(1));
        let series = self.series.entry((row.sender, row.receiver, row.bytes)).or_default();
        series.rows = series.rows.max(row.repetition.saturating_add(1));
        if row.status != ObservationStatus::Warmup {
            series.judged.push(row.seconds);
        }
    }

    fn spent_seconds(&self) -> f64 {
        self.spent_before + self.world.elapsed_seconds()
    }

    fn run(mut self) -> Result<()> {
        let mut random = Pcg64::seed_from_u64(self.flags.seed);
        // What is seen of a slow link may make it less certain: then it is anything but known.
        loop {
            self.look_at_all(&mut random)?;
            if !self.look_again(&mut random)? {
                break;
            }
        }
        let spent = self.spent_seconds();
        self.progress.finish(u64::MAX);
        self.writer.note_spent(spent)
    }

    /// Passes over all links, until each is known well enough or that part of the budget is spent.
    fn look_at_all(&mut self, random: &mut Pcg64) -> Result<()> {
        let mut rounds = tournament::rounds(self.members.len());
        let until = SHARE_OF_ALL * self.flags.budget_seconds;
        loop {
            rounds.shuffle(random);
            let mut any = false;
            let at_once = self.at_once;
            for batch in rounds.iter().flat_map(|round| round.chunks(at_once)) {
                for (turned, bytes) in
                    self.sizes().into_iter().flat_map(|bytes| [(false, bytes), (true, bytes)])
                {
                    let directed = batch.iter().map(|&(one, other)| match turned {
                        false => (self.members[one], self.members[other]),
                        true => (self.members[other], self.members[one]),
                    });
                    let open: Vec<(u32, u32)> = directed
                        .filter(|(sender, receiver)| self.wants_more(*sender, *receiver, bytes))
                        .collect();
                    if open.is_empty() {
                        continue;
                    }
                    if !self.measure_until(until, &open, bytes)? {
                        return Ok(());
                    }
                    any = true;
                }
            }
            if !any {
                return Ok(());
            }
        }
    }

    /// A pass over the links that look slow, one at a time; whether it saw something of all of
    /// them, and there were some.
    fn look_again(&mut self, random: &mut Pcg64) -> Result<bool> {
        let mut again = Vec::new();
        for bytes in self.sizes() {
            again.extend(slow(&self.series, bytes).into_iter().map(|link| (link, bytes)));
        }
        again.shuffle(random);
        for &(link, bytes) in &again {
            if !self.measure_until(self.flags.budget_seconds, &[link], bytes)? {
                return Ok(false);
            }
        }
        Ok(!again.is_empty())
    }

    /// The empty message first: it makes the connection.
    fn sizes(&self) -> [u64; 2] {
        [0, self.flags.bytes]
    }

    /// Measures disjoint links at the same time, if that ends in time; whether it did.
    fn measure_until(&mut self, until: f64, links: &[(u32, u32)], bytes: u64) -> Result<bool> {
        let before = self.spent_seconds();
        if before + self.expected > until {
            return Ok(false);
        }
        self.measure(links, bytes)?;
        // One that was held up is forgotten by and by.
        let latest = self.spent_seconds() - before;
        self.expected = latest.max((self.expected + latest) / 2.0);
        Ok(true)
    }

    fn wants_more(&self, sender: u32, receiver: u32, bytes: u64) -> bool {
        self.series.get(&(sender, receiver, bytes)).is_none_or(|series| {
            !STOPPING_RULE
                .is_content(series.judged.len(), STOPPING_RULE.uncertainty(&series.judged))
        })
    }

    /// Measures disjoint links at the same time.
    fn measure(&mut self, links: &[(u32, u32)], bytes: u64) -> Result<()> {
        launcher::end_if_gone();
        let control = self.world.control;
        let order = |peer, sends| Exchange { peer, sends, bytes, count: VISIT };
        for &(sender, receiver) in links {
            for (rank, exchange) in
                [(receiver, order(sender, false)), (sender, order(receiver, true))]
            {
                if rank != 0 {
                    serving::tell(&control, rank, &exchange)?;
                }
            }
        }
        let mut own = Vec::new();
        for &(sender, receiver) in links {
            match (sender, receiver) {
                (0, peer) => own = self.link.exchange(order(peer, true))?,
                (peer, 0) => drop(self.link.exchange(order(peer, false))?),
                _ => {}
            }
        }
        for &(sender, receiver) in links {
            let seconds: Vec<f64> = match sender {
                0 => std::mem::take(&mut own),
                _ => control.receive_value_asleep(
                    sender,
                    Tag::Report,
                    PollingPause::for_frequent_messages(),
                )?,
            };
            self.record(sender, receiver, bytes, &seconds)?;
        }
        self.progress.update((self.spent_seconds() * 1e3) as u64);
        Ok(())
    }

    fn record(&mut self, sender: u32, receiver: u32, bytes: u64, seconds: &[f64]) -> Result<()> {
        let visit = self.next_visit;
        for &seconds in seconds {
            let series = self.series.get(&(sender, receiver, bytes));
            let repetition = series.map_or(0, |series| series.rows);
            let row = PointToPoint {
                kind: PointToPointKind::RoundTrip,
                sender,
                receiver,
                bytes,
                messages: 1,
                job: 0,
                visit,
                repetition,
                seconds,
                status: if repetition == 0 {
                    ObservationStatus::Warmup
                } else {
                    ObservationStatus::Ok
                },
            };
            self.enter(&row);
            self.writer.append(&row)?;
        }
        Ok(())
    }
}

fn header(
    flags: &PairsFlags,
    members: &[u32],
    at_once: usize,
    platform: &Platform,
) -> Result<RecordHeader> {
    let members: Vec<String> = members.iter().map(u32::to_string).collect();
    let timing = "CLOCK_MONOTONIC of the sender around MPI_Send of the message and MPI_Recv of an \
                  empty answer; blocking, contiguous bytes";
    let own = [
        ("at_once", at_once.to_string()),
        ("bytes", flags.bytes.to_string()),
        ("members", members.join(",")),
        ("seed", flags.seed.to_string()),
        ("timing", timing.to_owned()),
    ];
    recording::header("pairs", platform, own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rank_of_each_node_takes_part_unless_all_shall() {
        assert_eq!(members(&[0, 0, 1, 1, 2], false), [0, 2, 4]);
        assert_eq!(members(&[0, 0, 1, 1, 2], true), [0, 1, 2, 3, 4]);
        assert_eq!(members(&[0, 0, 0], false), [0, 1, 2]);
    }
}
