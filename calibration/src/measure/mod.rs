//! `colibri-mpi measure`: times methods of collectives by a plan.
//!
//! Rank 0 directs. It tells the ranks of a visit's communicator what comes, call by call
//! or several calls in a row, and collects what they saw; all others sleep until they are needed.

mod director;
mod flags;
pub mod methods;
pub mod participant;
pub mod plugins;
mod queue;
pub mod tool;
pub mod tracer;
pub mod work;

use records::{
    Collective, Layout, ROOT, document, job_nodes::JobNodes, plan::Plan, platform::Platform,
};
use timing::{
    factors::{self, FACTORS},
    operations::operation_of,
    scheme::Scheme,
};

pub use self::flags::MeasureFlags;
use self::{
    director::Director,
    methods::RunningLibrary,
    participant::{CallingWay, Participant},
    work::OpenWork,
};
use crate::{
    Result,
    disturbance::stretches,
    exchange::Tag,
    platform::{self, Surroundings, Survey},
    polling_pause::PollingPause,
    progress::Reporter,
    recording::{self, RecordHeader, Recording},
    synchronisation::Synchroniser,
    world::World,
};

/// The program on one rank.
///
/// # Errors
/// The plan or the record cannot be used; the MPI library cannot do what the plan asks for; a
/// collective computed something wrong.
pub fn run(flags: &MeasureFlags, world: &World) -> Result<()> {
    let Surroundings { groups, nodes, uncrowded, platform } =
        platform::survey(world, &flags.job, Survey::WithLoad)?;
    let scheme = Scheme { timing: flags.timing, watched: uncrowded };
    let way = CallingWay { scheme, root: flags.root, factors: flags.factors.clone() };
    let nodes = JobNodes::new(&nodes);
    let clock_shared = groups.is_one();
    let synchroniser = Synchroniser::new(world.control, groups);
    let (sampler, book) = stretches::begin(world, &(0..world.control.size()).collect::<Vec<_>>())?;
    let (Some(platform), Some((stretches, processors_of_ranks))) = (platform, book) else {
        return match world.control.receive_value_asleep(
            0,
            Tag::Setup,
            PollingPause::for_participant(),
        )? {
            Some(plan) => {
                let control = world.control;
                Participant::new(plan, way, synchroniser, control, nodes, sampler)?.serve(&control)
            }
            None => Ok(()),
        };
    };
    let plan: Plan = document::read(&flags.plan)?;
    let path = &flags.job.record;
    let running = RunningLibrary::linked()?;
    work::check_plan(&plan, flags.job.ranks, &nodes, &way, running, &flags.plan)?;
    // Before the others hear of the plan, so that what the library cannot do is said once, and
    // before the record is begun.
    let participant = Participant::new(
        plan.clone(),
        way.clone(),
        synchroniser,
        world.control,
        nodes.clone(),
        sampler,
    )?;
    let header = header(&plan, &platform, &way, clock_shared)?;
    let (recording, earlier) = Recording::open(path, header, &[ROOT, FACTORS])?;
    let work = OpenWork::new(&plan, &earlier.rows, path)?;
    if work.visits.is_empty() {
        world.control.send_value_to_others(&None::<Plan>, Tag::Setup)?;
        Reporter::new("measuring", work.planned).finish(work.done);
        return Ok(());
    }
    world.control.send_value_to_others(&Some(&plan), Tag::Setup)?;
    let mut writer = recording.begin()?;
    // Each job has its own.
    writer.note("placement", &stretches::placement(&processors_of_ranks))?;
    let deadline_seconds = flags.deadline_seconds;
    Director::new(world, scheme, participant, nodes, writer, deadline_seconds, &work, stretches)
        .run(&plan, &work)
}

fn header(
    plan: &Plan,
    platform: &Platform,
    way: &CallingWay,
    clock_shared: bool,
) -> Result<RecordHeader> {
    let used = Collective::ALL
        .into_iter()
        .filter(|collective| plan.cells.iter().any(|cell| cell.point.collective == *collective))
        .map(operation_of);
    let (calls, sizes): (Vec<String>, Vec<String>) = used
        .map(|operation| {
            let size = operation.collective.message_size();
            (operation.description.to_owned(), format!("{}: {size}", operation.collective))
        })
        .unzip();
    let layout = Layout::from_nodes(&platform.hosts).unwrap_or(Layout::flat(plan.ranks));
    let own = [
        ("calls", calls.join("; ")),
        (FACTORS, factors::in_words(way.factors.as_deref())),
        ("layout", layout.to_string()),
        ("message_size", sizes.join("; ")),
        ("plan_seed", plan.seed.to_string()),
        ("ranks", plan.ranks.to_string()),
        (ROOT, way.root.to_string()),
        ("timing", way.scheme.description(clock_shared)),
    ];
    recording::header("measure", platform, own)
}
