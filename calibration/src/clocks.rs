//! `colibri-mpi clocks`: synchronises the ranks' clocks and compares them for a while.

use serde::{Deserialize, Serialize};

use crate::{
    Result,
    clock::{Nanos, now, seconds},
    exchange::Communicator,
    flags::{JobFlags, parse_budget},
    launcher,
    platform::{self, Survey},
    polling_pause::PollingPause,
    progress::Reporter,
    recording::{self, Recording},
    serving,
    sleep::sleep_until,
    synchronisation::Synchroniser,
    world::World,
};

/// Synchronises the ranks' clocks and compares them for a while
#[derive(Debug, Clone, clap::Args)]
pub struct ClocksFlags {
    #[command(flatten)]
    pub(crate) job: JobFlags,
    /// For how many seconds the clocks are compared after their synchronisation
    #[arg(long, value_parser = parse_budget)]
    seconds: f64,
    /// Do not resynchronise when that is due
    #[arg(long)]
    once: bool,
}

/// What rank 0 tells the others.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum ClocksCommand {
    /// Synchronise anew.
    Pass,
    /// Compare.
    Check,
}

/// The program on one rank.
///
/// # Errors
/// The record cannot be written; the MPI library refuses.
pub fn run(flags: &ClocksFlags, world: &World) -> Result<()> {
    let surroundings = platform::survey(world, &flags.job, Survey::WithLoad)?;
    let mut synchroniser = Synchroniser::new(world.control, surroundings.groups);
    let Some(platform) = surroundings.platform else {
        return serve(world, synchroniser);
    };
    let path = &flags.job.record;
    recording::put_aside(path)?;
    let header = recording::header(
        "clocks",
        &platform,
        [
            ("round_trip", "least way there and least way back of 20 round trips".to_owned()),
            ("synchronised", if flags.once { "once" } else { "whenever due" }.to_owned()),
        ],
    )?;
    let mut writer = Recording::open(path, header, &[])?.0.begin()?;

    let mut report = synchroniser.begin()?;
    let (begun, mut passed) = (now(), now());
    let mut progress = Reporter::new("comparing clocks", flags.seconds as u64);
    loop {
        launcher::end_if_gone();
        tell(world, ClocksCommand::Check)?;
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
            tell(world, ClocksCommand::Pass)?;
            report = synchroniser.pass()?;
            passed = now();
        }
        sleep_until(now() + PAUSE);
    }
    progress.finish(u64::MAX);
    serving::end(&world.control)
}

/// Between two comparisons.
const PAUSE: Nanos = 250_000_000;

fn tell(world: &World, command: ClocksCommand) -> Result<()> {
    serving::tell_first(&world.control, world.control.size(), &command)
}

fn serve(world: &World, mut synchroniser: Synchroniser<Communicator>) -> Result<()> {
    synchroniser.begin()?;
    serving::follow(&world.control, PollingPause::for_idle_rank, |command| {
        match command {
            ClocksCommand::Pass => drop(synchroniser.pass()?),
            ClocksCommand::Check => drop(synchroniser.check()?),
        }
        Ok(())
    })
}
