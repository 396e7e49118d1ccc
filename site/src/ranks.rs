//! Where the ranks run: the launcher at hand, or a virtual cluster.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use libraries::MpiLibrary;
use records::{
    Layout, document,
    first_job::{FirstJob, StartSpread},
};
use runner::mockups::Limits;
use testbed::{Spec, Testbed, TestbedMpi};
use timing::{scheme::TimingScheme, starts::scheme_for};

use crate::{
    allocation::Allocation,
    application::Application,
    cluster::Cluster,
    config::{self, Config},
    describe::describe,
    launch::{LaunchedJob, StartedApart, kept},
    launched,
    launcher::{Launcher, ranks_at_hand},
    options::{NamedLibrary, SiteOptions},
    programs,
    run_directory::RunDirectory,
    usage,
    virtual_cluster::{USUAL_RATE, check_testbed, library_of, mpi_at_hand, shims},
};

/// A place to run MPI programs: found first, which makes nothing, and opened when a run is sure to
/// begin.
pub struct Site {
    place: RunLocation,
    ranks: u32,
    /// Whose methods can be forced and loaded, where that is known.
    library: Option<&'static dyn MpiLibrary>,
    /// It was named by the user, who knows better.
    is_library_named: bool,
    patience: Duration,
    /// The memory that mock-ups may use.
    pub limits: Limits,
    /// Where the program that runs is written down; set when the place is opened.
    launched: Option<PathBuf>,
    /// The ranks and their nodes, which the first job tells.
    reported_layout: Option<Layout>,
    /// The first job was started as this site starts its own: in a run's directory that may be another command's.
    is_started_alike: bool,
    /// Which ranks may share memory, which the first job tells.
    sharing: MemorySharing,
    /// How calls are timed where nobody says, which the first job tells.
    timing: TimingScheme,
    /// When the allocation ends, where that is known; set when the place is opened.
    ends: Option<Instant>,
}

/// Which ranks may share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemorySharing {
    /// None, or there are more ranks than processors: the preload library leaves these to messages.
    None,
    /// Those of a node, of which there are several.
    OfNodes,
    /// All: there is one node.
    All,
}

/// What the ranks are started with, beside the program's own arguments.
#[derive(Debug, Clone)]
pub enum JobSetting {
    /// An environment variable.
    Variable(String, OsString),
    /// The preload library, behind everything else that is preloaded.
    PreloadLibrary,
}

/// The preload library's file.
pub const PRELOAD_LIBRARY: &str = "libcolibri.so";

enum RunLocation {
    Launcher(Launcher),
    /// A virtual cluster to be set up for the run.
    Planned(Spec, TestbedMpi),
    Testbed(Cluster, TestbedMpi),
}

impl Site {
    /// Finds the place that the flags name, to run our MPI program in. Nothing of it is made yet.
    ///
    /// # Errors
    /// A program is not there, there is no launcher, it holds fewer ranks, no virtual cluster can be set up here, ...
    pub fn find(options: &SiteOptions) -> Result<Self> {
        programs::any_mpi()?;
        let config = Config::read(Path::new(config::FILE))?;
        let wanted = options.ranks.or(config.ranks);
        let (place, ranks) = match &options.testbed {
            Some(cluster) => {
                let (place, most) = find_cluster(cluster)?;
                if wanted.is_some_and(|ranks| ranks > most) {
                    usage!(
                        "the virtual cluster holds {most} ranks; ask for fewer ranks or more nodes"
                    );
                }
                (place, wanted.unwrap_or(most))
            }
            None => {
                let launcher = match options.launcher.as_ref().or(config.launcher.as_ref()) {
                    Some(text) => Launcher::parse(text)?,
                    None => Launcher::at_hand()?,
                };
                let ranks = wanted.map_or_else(ranks_at_hand, Ok)?;
                launcher.check(ranks)?;
                launcher.program()?;
                (RunLocation::Launcher(launcher), ranks)
            }
        };
        let library = match options.mpi_library {
            Some(NamedLibrary(library)) => library,
            None => place.library()?,
        };
        let is_library_named = options.mpi_library.is_some();
        Ok(Site {
            place,
            ranks,
            library,
            is_library_named,
            patience: options.patience,
            limits: options.limits()?,
            launched: None,
            reported_layout: None,
            is_started_alike: false,
            sharing: MemorySharing::None,
            timing: TimingScheme::Barrier,
            ends: None,
        })
    }

    /// What a first short job tells of where the ranks run. It is started where the run holds no such
    /// document yet, or one of another number of ranks; what it says of the MPI library holds from then
    /// on. Where it shows that the ranks were started apart, the other ways to start them are tried.
    ///
    /// # Errors
    /// It fails, in every way.
    pub fn first_job(&mut self, run: &RunDirectory) -> Result<FirstJob> {
        let path = run.first_job();
        let known: Option<FirstJob> =
            if path.exists() { Some(document::read(&path)?) } else { None };
        let first_job =
            match known.filter(|first_job| first_job.platform.hosts.len() == self.ranks as usize) {
                Some(first_job) => first_job,
                None => {
                    self.start_first_job(&path)?;
                    document::read(&path)?
                }
            };
        if let RunLocation::Launcher(launcher) = &mut self.place {
            launcher.go_on_as(&first_job.platform.launcher);
            self.is_started_alike = launcher.text() == first_job.platform.launcher;
        }
        let recognised = libraries::recognise(&first_job.platform.mpi_library);
        if !self.is_library_named && recognised.is_some() {
            self.library = recognised;
        }
        self.reported_layout = first_job.platform.nodes();
        self.sharing = match (first_job.gives_each_rank_a_processor(), &first_job.nodes[..]) {
            (false, _) => MemorySharing::None,
            (true, [_]) => MemorySharing::All,
            (true, _) => MemorySharing::OfNodes,
        };
        if let Some(StartSpread { barrier_seconds, agreed_seconds }) = first_job.start_spread {
            self.timing = scheme_for(barrier_seconds, agreed_seconds);
        }
        Ok(first_job)
    }

    /// Which ranks may share memory: none before the [first job](Site::first_job).
    pub fn sharing(&self) -> MemorySharing {
        self.sharing
    }

    /// How calls are timed where nobody says.
    pub fn timing(&self) -> TimingScheme {
        self.timing
    }

    fn start_first_job(&mut self, path: &Path) -> Result<()> {
        let arguments = ["--record".into(), path.into()];
        loop {
            let failed = match self.run("platform", self.ranks, &arguments, &[]) {
                Err(failed) if failed.is::<StartedApart>() => failed,
                ended => return ended,
            };
            let next = match &self.place {
                RunLocation::Launcher(launcher) => launcher.clone().next(),
                _ => None,
            };
            let Some(next) = next else { return Err(failed) };
            say!(
                "platform: each rank was started as an MPI job of its own; trying `{}`",
                next.text()
            );
            self.place = RunLocation::Launcher(next);
        }
    }

    /// What a batch system has given us, where it has.
    pub fn allocation(&self) -> Option<&Allocation> {
        match &self.place {
            RunLocation::Launcher(launcher) => launcher.allocation(),
            RunLocation::Planned(..) | RunLocation::Testbed(..) => None,
        }
    }

    /// Makes it ready for a run's jobs: ends what a killed run has left there, and sets up the virtual
    /// cluster.
    ///
    /// # Errors
    /// What was left can't be ended, the virtual cluster can't be set up.
    pub fn open(mut self, run: &RunDirectory) -> Result<Self> {
        clear_up(run)?;
        match &mut self.place {
            RunLocation::Planned(spec, mpi) => {
                self.place = RunLocation::Testbed(Cluster::set_up(spec, run)?, mpi.clone());
            }
            RunLocation::Testbed(cluster, _) => cluster.record_service(run),
            RunLocation::Launcher(_) => {}
        }
        self.launched = Some(run.launched());
        self.ends = self.allocation().and_then(Allocation::ends);
        Ok(self)
    }

    /// How long a job that begins now may take: `wanted`, or less where the allocation ends before.
    ///
    /// # Errors
    /// It ends too soon to begin one.
    pub fn time_for_a_job(&self, wanted: Duration) -> Result<Duration> {
        let Some((held, ends)) = self.allocation().zip(self.ends) else { return Ok(wanted) };
        let kept = self.launched.as_deref().map_or("", kept);
        held.time_for_a_job(wanted, ends.saturating_duration_since(Instant::now()), kept)
    }

    /// Ranks of a job.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The job's ranks and their nodes: of a virtual cluster by what it is to be, elsewhere as the
    /// [first job](Site::first_job) has reported.
    fn job(&self) -> Option<Layout> {
        let layout = match &self.place {
            RunLocation::Planned(spec, _) => spec.layout().ok()?,
            RunLocation::Testbed(cluster, _) => cluster.testbed().spec().layout().ok()?,
            RunLocation::Launcher(_) => self.reported_layout?,
        };
        layout.of_first(self.ranks)
    }

    /// The job's ranks and their nodes, where these are known for certain.
    pub fn nodes(&self) -> Option<Layout> {
        let is_known = self.is_started_alike || !matches!(self.place, RunLocation::Launcher(_));
        self.job().filter(|_| is_known)
    }

    /// The job's ranks and their nodes, where several nodes hold several.
    pub fn layout(&self) -> Option<Layout> {
        self.job().filter(|job| job.nodes() > 1 && !job.is_flat())
    }

    /// The communicator of the job's first `procs` ranks; one rank per node where the job has not so many.
    pub fn of_first(&self, procs: u32) -> Layout {
        let of_job = self.layout().and_then(|job| job.of_first(procs));
        of_job.unwrap_or(Layout::flat(procs))
    }

    /// The MPI library, where it is known.
    pub fn library(&self) -> Option<&'static dyn MpiLibrary> {
        self.library
    }

    /// The MPI program that runs there.
    ///
    /// # Errors
    /// There is none.
    pub fn program(&self) -> Result<PathBuf> {
        match &self.place {
            RunLocation::Launcher(launcher) => launcher.program(),
            RunLocation::Planned(..) | RunLocation::Testbed(..) => programs::mpi(None),
        }
    }

    /// Whether the network is one of this machine's own making.
    pub fn is_virtual(&self) -> bool {
        matches!(self.place, RunLocation::Planned(..) | RunLocation::Testbed(..))
    }

    /// Runs a task of our MPI program on `ranks` ranks to its end.
    ///
    /// # Errors
    /// As [`LaunchedJob::run`]; the program is not there; the place was not opened.
    pub fn run(
        &self,
        task: &str,
        ranks: u32,
        arguments: &[OsString],
        settings: &[JobSetting],
    ) -> Result<()> {
        let launched = self.launched.as_deref().context("the place was not opened")?;
        let program = self.program()?;
        let mut arguments = [&[task.into()], arguments].concat();
        arguments.extend(["--ranks".into(), ranks.to_string().into()]);
        let (tracer, symptoms) = match &self.place {
            RunLocation::Launcher(launcher) => {
                arguments.extend(["--launcher".into(), launcher.text().into()]);
                let tracer = self.library.and_then(|library| library.tracer());
                (tracer.map(programs::find).transpose()?, launcher.symptoms())
            }
            RunLocation::Testbed(cluster, _) => {
                let described = describe(cluster.testbed().spec());
                arguments.extend(["--testbed".into(), described.into()]);
                (None, None)
            }
            RunLocation::Planned(..) => (None, None),
        };
        let mut command = self.command(ranks, &program, &arguments, settings, tracer)?;
        command.env("OMPI_MCA_coll_tuned_use_dynamic_rules", "1");
        let (patience, allocation) = (self.patience, self.allocation());
        LaunchedJob { command, step: task, launched, patience, symptoms, allocation }.run()?;
        check_recorded(task, &arguments)
    }

    /// Runs a user's program once on all ranks, to its end. What it prints goes to its log.
    ///
    /// # Errors
    /// It cannot be started, fails, takes too long, or we are interrupted; the place was not opened.
    pub fn run_application(
        &self,
        application: &Application<'_>,
        settings: &[JobSetting],
    ) -> Result<()> {
        let launched = self.launched.as_deref().context("the place was not opened")?;
        let (program, arguments) = application.words.split_first().context("no application")?;
        let command = self.command(self.ranks, Path::new(program), arguments, settings, None)?;
        application.run(command, launched)
    }

    /// The command that starts ranks of a program with these settings. Preloaded are what the place needs, the tracer, what
    /// the user preloads, and our preload library, in this order.
    fn command(
        &self,
        ranks: u32,
        program: &Path,
        arguments: &[OsString],
        settings: &[JobSetting],
        tracer: Option<PathBuf>,
    ) -> Result<Command> {
        let library = settings.iter().any(|setting| matches!(setting, JobSetting::PreloadLibrary));
        let library = library.then(|| programs::find(PRELOAD_LIBRARY)).transpose()?;
        let limits = self.limits.variables();
        let limits = limits.iter().map(|(name, value)| (*name, OsStr::new(value)));
        let variables = limits.chain(settings.iter().filter_map(|setting| match setting {
            JobSetting::Variable(name, value) => Some((name.as_str(), value.as_os_str())),
            JobSetting::PreloadLibrary => None,
        }));
        match &self.place {
            RunLocation::Planned(..) => bail!("the virtual cluster was not set up"),
            RunLocation::Launcher(launcher) => {
                let mut environment: Vec<(String, OsString)> =
                    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                let list = ld_preload_value(tracer, library);
                environment.extend(list.map(|list| ("LD_PRELOAD".to_owned(), list)));
                Ok(launcher.command(ranks, &environment, program, arguments))
            }
            RunLocation::Testbed(cluster, mpi) => {
                let shims = shims(mpi)?;
                // Its shims and the tracer stand before.
                let list = [theirs(), library.map(Into::into)].into_iter().flatten();
                let list = list.collect::<Vec<OsString>>().join(OsStr::new(":"));
                let list = Some(("LD_PRELOAD", list.as_os_str())).filter(|(_, it)| !it.is_empty());
                let environment: Vec<_> = variables.chain(list).collect();
                let mut command = cluster.testbed().launch(mpi, ranks, &shims, &environment)?;
                command.arg(program).args(arguments);
                Ok(command)
            }
        }
    }
}

/// A launcher such as `echo {np}` ends well, too.
fn check_recorded(task: &str, arguments: &[OsString]) -> Result<()> {
    let option = arguments.iter().position(|argument| argument == "--record");
    match option.and_then(|option| arguments.get(option + 1)).map(Path::new) {
        Some(record) if !record.exists() => bail!(
            "{task}: the launcher ended without an error, but {} was not written. It must start the command that \
             follows it, as mpirun -np {{np}} does, on nodes that see this directory",
            record.display()
        ),
        _ => Ok(()),
    }
}

impl RunLocation {
    /// The library of the programs that are started here: a launcher that starts any library's, or a
    /// script around one, says nothing of it, the program itself does.
    fn library(&self) -> Result<Option<&'static dyn MpiLibrary>> {
        Ok(match self {
            RunLocation::Launcher(launcher) => match launcher.library {
                Some(library) => Some(library),
                None => libraries::recognise(&programs::library(&launcher.program()?)?),
            },
            RunLocation::Planned(_, mpi) | RunLocation::Testbed(_, mpi) => Some(library_of(mpi)),
        })
    }
}

/// What the user has preloaded stays, since `env` sets the whole list: behind the tracer, before
/// the preload library, as tools of the profiling interface have to stand.
fn ld_preload_value(tracer: Option<PathBuf>, library: Option<PathBuf>) -> Option<OsString> {
    if tracer.is_none() && library.is_none() {
        return None;
    }
    let all: Vec<OsString> =
        [tracer.map(Into::into), theirs(), library.map(Into::into)].into_iter().flatten().collect();
    Some(all.join(OsStr::new(":")))
}

fn theirs() -> Option<OsString> {
    env::var_os("LD_PRELOAD").filter(|theirs| !theirs.is_empty())
}

/// Ends what a killed run in this directory has left behind.
///
/// # Errors
/// It can't be ended.
pub fn clear_up(run: &RunDirectory) -> Result<()> {
    launched::end_written_down(&run.launched(), run.is_locked())?;
    Cluster::clear_up(run)
}

/// A number of nodes is to be set up anew, a name is one that is up; with the ranks that it holds.
fn find_cluster(text: &str) -> Result<(RunLocation, u32)> {
    let Ok(nodes) = text.parse::<u32>() else {
        let testbed = Testbed::open(text)?;
        let most = testbed.capacity();
        let cluster = Cluster::shared(testbed);
        return Ok((RunLocation::Testbed(cluster, mpi_at_hand()?), most));
    };
    let spec = Spec::new(&format!("run-{}", std::process::id()), nodes, USUAL_RATE.parse()?)?;
    check_testbed()?;
    let most = spec.ranks();
    Ok((RunLocation::Planned(spec, mpi_at_hand()?), most))
}
