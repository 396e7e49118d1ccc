//! `colibri-mpi bench`: one collective, or messages between pairs of ranks, timed as a program of a user's
//! would be by the benchmarking library; the observations go into a record.

use records::{
    Collective, Layout, Method, Native, Point, ROOT, Root,
    job_nodes::JobNodes,
    observation::{CollectiveCall, ObservationStatus, PointToPoint, PointToPointKind},
    platform::Platform,
    quantity,
    record::Row,
};
use runner::Mpi;
use statistics::stopping::{Criterion, Rule};
use timing::{
    adaptive::{AdaptiveSizes, SizeRange},
    exchanges::{CallMaker, CollectiveExchange},
    factors::{self, FACTORS},
    pairs::{PairWay, TimedPair, all_rounds, time_rounds},
    repeating::USUAL,
    scheme::{TimedCall, TimingScheme},
    stopwatch::Stopwatch,
};

use crate::{
    Error, Result,
    flags::JobFlags,
    measure::{
        methods::{MethodCommunicators, RunningLibrary, check_supported},
        plugins::LoadedPlugin,
    },
    platform::{self, Survey},
    progress::Reporter,
    recording::{self, Recording},
    table,
    world::World,
};

/// Times one collective, or messages between all pairs of ranks, at some sizes
#[derive(Debug, Clone, clap::Args)]
pub struct BenchFlags {
    #[command(flatten)]
    job: JobFlags,
    /// The collective
    #[arg(long, required_unless_present = "pairs")]
    collective: Option<Collective>,
    /// Pairs of ranks instead: ping-pong or scatter-gather
    #[arg(long, conflicts_with_all = ["collective", "factors", "adaptive"])]
    pairs: Option<PairWay>,
    /// Disjoint pairs at the same time
    #[arg(long, requires = "pairs")]
    at_once: bool,
    /// The method
    #[arg(long, default_value = "default")]
    method: Method,
    /// How a call is timed
    #[arg(long, default_value = TimingScheme::Barrier.name())]
    timing: TimingScheme,
    /// Message sizes, with commas
    #[arg(long, value_parser = parse_sizes)]
    sizes: SizeList,
    /// Sizes from the least to the greatest of these are found, at least so many bytes apart
    #[arg(long)]
    adaptive: Option<u64>,
    /// Of a time and the line through the two before it, as a part
    #[arg(long, default_value_t = SizeRange::USUAL.greatest_difference)]
    greatest_difference: f64,
    /// Most sizes that are found
    #[arg(long, default_value_t = SizeRange::USUAL.most)]
    most_sizes: usize,
    /// How large each rank's block is beside the others', with commas
    #[arg(long, value_delimiter = ',')]
    factors: Option<Vec<f64>>,
    /// The root of a collective that has one: the number of a rank, or last
    #[arg(long, default_value_t)]
    root: Root,
    /// Least repetitions
    #[arg(long)]
    minimum: usize,
    /// Most repetitions
    #[arg(long)]
    maximum: usize,
    /// Of the mean's interval
    #[arg(long)]
    confidence: f64,
    /// Wanted: half of that interval's width, as a part of the mean
    #[arg(long)]
    relative_error: f64,
}

/// Sizes in one flag.
#[derive(Debug, Clone)]
struct SizeList(Vec<u64>);

fn parse_sizes(text: &str) -> std::result::Result<SizeList, String> {
    quantity::parse_sizes(text).map(SizeList)
}

impl BenchFlags {
    /// What all tasks are given.
    pub fn job(&self) -> &JobFlags {
        &self.job
    }

    fn rule(&self) -> Rule {
        Rule {
            criterion: Criterion::MeanInterval,
            minimum: self.minimum,
            maximum: self.maximum,
            confidence: self.confidence,
            relative_error: self.relative_error,
            ..USUAL
        }
    }

    fn range(&self, stride: u64) -> SizeRange {
        let sizes = &self.sizes.0;
        SizeRange {
            first: sizes.iter().copied().min().unwrap_or_default(),
            last: sizes.iter().copied().max().unwrap_or_default(),
            stride,
            greatest_difference: self.greatest_difference,
            most: self.most_sizes,
        }
    }
}

/// The program on one rank.
///
/// # Errors
/// The record cannot be written; what is asked for cannot be measured here; a
/// collective computed something wrong.
pub fn run(flags: &BenchFlags, world: &World) -> Result<()> {
    let surroundings = platform::survey(world, &flags.job, Survey::WithLoad)?;
    let platform = surroundings.platform.as_ref();
    match flags.collective {
        Some(collective) => {
            bench_collective(flags, world, collective, &surroundings.nodes, platform)
        }
        None => bench_pairs(flags, world, platform),
    }
}

/// Rank 0's record; none elsewhere. One that is there is put aside.
fn open<T: Row, const N: usize>(
    flags: &BenchFlags,
    platform: Option<&Platform>,
    own: [(&str, String); N],
) -> Result<Option<Recording<T>>> {
    let Some(platform) = platform else { return Ok(None) };
    let path = &flags.job.record;
    recording::put_aside(path)?;
    let header = recording::header("bench", platform, own)?;
    Ok(Some(Recording::open(path, header, &[])?.0.begin()?))
}

fn bench_collective(
    flags: &BenchFlags,
    world: &World,
    collective: Collective,
    nodes: &[u32],
    platform: Option<&Platform>,
) -> Result<()> {
    if flags.timing == TimingScheme::Bcast && collective != Collective::Bcast {
        let problem = format!("the timing scheme bcast is for bcast, not {collective}");
        return Err(Error::Usage(problem));
    }
    let most = flags.sizes.0.iter().copied().max().unwrap_or_default();
    let ranks = world.control.size();
    check_supported(RunningLibrary::linked()?, collective, &flags.method, ranks, most)?;
    let session = table::session()?;
    // Its settings hold for the calls of this program until the end.
    let layout = Layout::from_nodes(nodes).map_err(Error::Usage)?;
    let (comm, _methods) = communicator(world, collective, layout, &flags.method, nodes)?;
    let plugin = plugin(collective, &flags.method)?;
    let maker = match (&plugin, &flags.method) {
        (Some(plugin), _) => CallMaker::Library(Box::new(*plugin.table())),
        // What the library runs is forced on the communicator.
        (None, Method::Native(_)) => CallMaker::Library(Box::new(*session.mpi())),
        (None, method) => CallMaker::new(session, collective, method)?,
    };
    plugin.iter().try_for_each(|plugin| plugin.initialize(world.control.raw()))?;
    let exchange = CollectiveExchange::new(session, collective, maker, flags.factors.clone())?;
    let mut exchange = exchange.with_root(flags.root);
    // SAFETY: the control communicator is one of the linked library.
    let mut stopwatch =
        unsafe { Stopwatch::new(session.mpi(), world.control.handle(), flags.timing)? };
    let own = [
        (FACTORS, factors::in_words(flags.factors.as_deref())),
        ("message_size", format!("{collective}: {}", collective.message_size())),
        ("ranks", ranks.to_string()),
        (ROOT, flags.root.to_string()),
        ("timing", stopwatch.description()),
    ];
    let mut recording = open::<CollectiveCall, 5>(flags, platform, own)?;
    let mut visit = 0;
    let mut time = |bytes: u64| -> Result<f64> {
        let mut repetition = 0;
        let record = |timed: TimedCall| {
            let row = row(flags, Point { collective, layout, bytes }, visit, repetition, timed);
            repetition += 1;
            let written = recording.as_mut().map_or(Ok(()), |recording| recording.append(&row));
            written.map_err(|error| timing::Error::Refused(error.to_string()))
        };
        // SAFETY: the communicator is of this library, and has the stopwatch's ranks.
        let summary =
            unsafe { exchange.time(&mut stopwatch, comm, bytes as usize, &flags.rule(), record)? };
        visit += 1;
        Ok(summary.mean_seconds)
    };
    match flags.adaptive {
        None => each_size(world, &flags.sizes.0, |bytes| time(bytes).map(drop))?,
        Some(stride) => {
            let mut sizes = AdaptiveSizes::new(flags.range(stride))?;
            while let Some(bytes) = sizes.next_size() {
                sizes.record(bytes, time(bytes)?);
            }
        }
    }
    plugin.iter().try_for_each(|plugin| plugin.finalize(world.control.raw()))
}

/// The plug-in that a method names.
fn plugin(collective: Collective, method: &Method) -> Result<Option<LoadedPlugin>> {
    match method {
        Method::Plugin(named) => LoadedPlugin::load(collective, named).map(Some),
        _ => Ok(None),
    }
}

/// The communicator of all ranks on which the method runs, and what holds the library's settings for it.
fn communicator(
    world: &World,
    collective: Collective,
    layout: Layout,
    method: &Method,
    nodes: &[u32],
) -> Result<(runner::Handle, Option<MethodCommunicators>)> {
    let Method::Native(native) = method else { return Ok((world.control.handle(), None)) };
    let natives: [(Collective, Native); 1] = [(collective, *native)];
    let nodes = JobNodes::new(nodes);
    let mut methods = MethodCommunicators::new(world.control, nodes, &natives)?;
    let comm = methods.communicator(layout, collective, method)?;
    Ok((comm.handle(), Some(methods)))
}

fn row(
    flags: &BenchFlags,
    point: Point,
    visit: u32,
    repetition: u32,
    timed: TimedCall,
) -> CollectiveCall {
    CollectiveCall {
        visit,
        point,
        method: flags.method.clone(),
        ran: String::new(),
        repetition,
        first_start_seconds: timed.first_start_seconds,
        last_start_seconds: timed.last_start_seconds,
        seconds: timed.seconds,
        status: timed.status,
    }
}

/// Says how far it is.
fn each_size(world: &World, sizes: &[u64], mut time: impl FnMut(u64) -> Result<()>) -> Result<()> {
    let mut progress =
        (world.rank() == 0).then(|| Reporter::new("benchmarking", sizes.len() as u64));
    for (bytes, done) in sizes.iter().zip(1..) {
        time(*bytes)?;
        if let Some(progress) = &mut progress {
            progress.update(done);
        }
    }
    Ok(())
}

fn bench_pairs(flags: &BenchFlags, world: &World, platform: Option<&Platform>) -> Result<()> {
    let Some(exchange) = flags.pairs else {
        return Err(Error::Usage("give --collective or --pairs".into()));
    };
    if world.control.size() < 2 {
        return Err(Error::Usage("a pair needs 2 ranks; the job has 1".into()));
    }
    let mpi: Mpi = table::table()?;
    let own = [("timing", format!("{}, half of a round trip", exchange.name()))];
    let mut recording = open::<PointToPoint, 1>(flags, platform, own)?;
    let kind = match exchange {
        PairWay::PingPong => PointToPointKind::PingPong,
        PairWay::ScatterGather => PointToPointKind::ScatterGather,
    };
    let rounds = all_rounds(world.control.size(), flags.at_once);
    let mut visit = 0;
    each_size(world, &flags.sizes.0, |bytes| {
        let (comm, rule) = (world.control.handle(), flags.rule());
        // SAFETY: the control communicator is one of the linked library.
        let timed = unsafe { time_rounds(&mpi, comm, exchange, bytes as usize, &rule, &rounds)? };
        let Some(recording) = &mut recording else { return Ok(()) };
        for pair in &timed {
            rows(kind, visit, bytes, pair).try_for_each(|row| recording.append(&row))?;
            visit += 1;
        }
        Ok(())
    })
}

fn rows(
    kind: PointToPointKind,
    visit: u32,
    bytes: u64,
    pair: &TimedPair,
) -> impl Iterator<Item = PointToPoint> {
    let (sender, receiver) = (pair.one, pair.other);
    pair.observations.iter().zip(0..).map(move |(seconds, repetition)| PointToPoint {
        kind,
        sender,
        receiver,
        bytes,
        messages: 1,
        job: 0,
        visit,
        repetition,
        seconds: *seconds,
        status: ObservationStatus::Ok,
    })
}
