//! `colibri-clocks`: synchronises the ranks' clocks and compares them for a while.

use std::{collections::BTreeMap, path::PathBuf};

use records::record::Writer;
use serde::{Deserialize, Serialize};

use crate::{
    Error, Result,
    calibrate::parse_budget,
    clock::{Nanos, now, seconds},
    exchange::Tag,
    launcher::{self, Lock},
    patience::Patience,
    platform::{self, Survey},
    progress::Reporter,
    sleep::sleep_until,
    synchronisation::Synchroniser,
    world::{JobFlags, World},
};

/// The program's name, in messages and in the record.
pub const PROGRAM: &str = "colibri-clocks";

/// Synchronises the ranks' clocks and compares them for a while
#[derive(Debug, Clone, clap::Parser)]
#[command(name = PROGRAM, version)]
pub struct Flags {
    #[command(flatten)]
    job: JobFlags,
    /// Where the comparisons go; it must not be there yet
    #[arg(long)]
    record: PathBuf,
    /// For how many seconds the clocks are compared after their synchronisation
    #[arg(long, value_parser = parse_budget)]
    seconds: f64,
    /// Do not synchronise them anew when that is due
    #[arg(long)]
    once: bool,
}

impl Flags {
    /// The flags that all programs have.
    pub fn job(&self) -> &JobFlags {
        &self.job
    }
}

/// What rank 0 tells the others.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Command {
    /// Synchronise anew.
    Pass,
    /// Compare.
    Check,
    /// The end.
    Stop,
}

/// The program on one rank.
///
/// # Errors
/// The record is there already or cannot be written; the MPI library refuses.
pub fn run(flags: &Flags, world: &World) -> Result<()> {
    let surroundings = platform::survey(world, &flags.job, Survey::WithLoad)?;
    let mut synchroniser = Synchroniser::new(world.control, surroundings.groups);
    let Some(platform) = surroundings.platform else {
        return serve(world, synchroniser);
    };
    if flags.record.exists() {
        let problem = format!("{}: is there already; name another", flags.record.display());
        return Err(Error::Usage(problem));
    }
    let _lock = Lock::take(&flags.record)?;
    let round_trip = "least way there and least way back of 20 round trips";
    let header: BTreeMap<String, String> = [
        ("platform", serde_json::to_string(&platform)?),
        ("program", format!("{PROGRAM} {}", env!("CARGO_PKG_VERSION"))),
        ("round_trip", round_trip.to_owned()),
        ("synchronised", if flags.once { "once" } else { "whenever due" }.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    let mut writer = Writer::open(&flags.record, &header)?;

    let mut report = synchroniser.begin()?;
    let (begun, mut passed) = (now(), now());
    let mut progress = Reporter::new("comparing clocks", flags.seconds as u64);
    loop {
        launcher::end_if_gone();
        tell(world, Command::Check)?;
        for error in synchroniser.check()? {
            writer.append(&error)?;
        }
        let elapsed = seconds(now() - begun);
        progress.update(elapsed as u64);
        if elapsed >= flags.seconds {
            break;
        }
        // The clocks are compared before they are synchronised anew: at their worst.
        if report.is_some_and(|report| !flags.once && now() - passed >= report.pause()) {
            tell(world, Command::Pass)?;
            report = synchroniser.pass()?;
            passed = now();
        }
        sleep_until(now() + PAUSE);
    }
    progress.finish(u64::MAX);
    tell(world, Command::Stop)
}

/// Between two comparisons.
const PAUSE: Nanos = 250_000_000;

fn tell(world: &World, command: Command) -> Result<()> {
    (1..world.control.size()).try_for_each(|rank| world.control.tell(&command, rank, Tag::Command))
}

fn serve(world: &World, mut synchroniser: Synchroniser) -> Result<()> {
    synchroniser.begin()?;
    loop {
        match world.control.hear_asleep(0, Tag::Command, Patience::of_bystander())? {
            Command::Pass => drop(synchroniser.pass()?),
            Command::Check => drop(synchroniser.check()?),
            Command::Stop => return Ok(()),
        }
    }
}
