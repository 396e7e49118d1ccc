//! Where the ranks run: the launcher at hand, or a virtual cluster.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use records::document::{self, Document};
use serde::{Deserialize, Serialize};
use testbed::{OpenMpi, Shims, Spec, Testbed};

use crate::{
    config::{self, Config},
    error::usage,
    launch,
    launcher::{Family, Launcher, ranks_at_hand},
    options::SiteOptions,
    process, programs,
    run_directory::RunDirectory,
};

/// A place to run MPI programs.
pub struct Site {
    place: Place,
    ranks: u32,
    launched: PathBuf,
    patience: Duration,
}

/// What the ranks are started with, beside the program's own arguments.
#[derive(Debug, Clone)]
pub enum Setting {
    /// A parameter of Open MPI (MCA).
    Parameter(&'static str, OsString),
    /// An environment variable.
    Variable(&'static str, OsString),
    /// The preload library, behind everything else that is preloaded.
    PreloadLibrary,
}

/// The preload library's file.
pub const PRELOAD_LIBRARY: &str = "libcolibri.so";

enum Place {
    Launcher(Launcher),
    Testbed(Cluster),
}

/// A virtual cluster; one that was set up for this run is taken down with it.
struct Cluster {
    testbed: Option<Testbed>,
    /// Where its name is written down, if it is ours to take down.
    written_down: Option<PathBuf>,
}

/// The virtual cluster that a run has set up, so that a killed run's can be found.
#[derive(Debug, Serialize, Deserialize)]
struct SetUp {
    name: String,
}

impl Document for SetUp {
    const SCHEMA: &'static str = "colibri/run-testbed/1";
}

impl Site {
    /// Opens the place that the flags name, after ending what a killed run has left in it.
    ///
    /// # Errors
    /// There is no launcher, the virtual cluster can't be set up, ...
    pub fn open(options: &SiteOptions, run: &RunDirectory) -> Result<Self> {
        clear_up(run)?;
        let config = Config::read(Path::new(config::FILE))?;
        let wanted = options.ranks.or(config.ranks);
        let (place, ranks) = match &options.testbed {
            Some(cluster) => {
                let cluster = Cluster::open(cluster, options, run)?;
                let most = cluster.testbed().capacity();
                if wanted.is_some_and(|ranks| ranks > most) {
                    usage!(
                        "the virtual cluster holds {most} ranks; ask for at most these, or for more nodes"
                    );
                }
                (Place::Testbed(cluster), wanted.unwrap_or(most))
            }
            None => {
                let launcher = match options.launcher.as_ref().or(config.launcher.as_ref()) {
                    Some(text) => Launcher::parse(text)?,
                    None => Launcher::at_hand()?,
                };
                (Place::Launcher(launcher), wanted.unwrap_or_else(ranks_at_hand))
            }
        };
        Ok(Site { place, ranks, launched: run.launched(), patience: options.patience })
    }

    /// Ranks of a job.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Whether the library's own algorithms can be forced and rules loaded.
    pub fn is_open_mpi(&self) -> bool {
        match &self.place {
            Place::Launcher(launcher) => launcher.family == Family::OpenMpi,
            Place::Testbed(_) => true,
        }
    }

    /// Whether the network is one of this machine's own making.
    pub fn is_virtual(&self) -> bool {
        matches!(self.place, Place::Testbed(_))
    }

    /// Runs one of our MPI programs on `ranks` ranks to its end.
    ///
    /// # Errors
    /// As [`launch::run`]; the program is not there.
    pub fn run(
        &self,
        step: &str,
        program: &str,
        ranks: u32,
        arguments: &[OsString],
        settings: &[Setting],
    ) -> Result<()> {
        let program = programs::find(program)?;
        let tracer = || programs::find("libcolibri_tracer.so");
        let library = settings.iter().any(|setting| matches!(setting, Setting::PreloadLibrary));
        let library = library.then(|| programs::find(PRELOAD_LIBRARY)).transpose()?;
        let variables = settings.iter().filter_map(|setting| match setting {
            Setting::Variable(name, value) => Some((*name, value.as_os_str())),
            _ => None,
        });
        let mut arguments = arguments.to_vec();
        arguments.extend(["--ranks".into(), ranks.to_string().into()]);
        let mut command = match &self.place {
            Place::Launcher(launcher) => {
                arguments.extend(["--launcher".into(), launcher.text().into()]);
                let tracer = match launcher.family {
                    Family::OpenMpi => Some(tracer()?),
                    Family::Other => None,
                };
                let mut environment: Vec<(String, OsString)> =
                    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                let list = around_theirs(tracer, library);
                environment.extend(list.map(|list| ("LD_PRELOAD".to_owned(), list)));
                launcher.command(ranks, &environment, &program, &arguments)
            }
            Place::Testbed(cluster) => {
                let testbed = cluster.testbed();
                arguments.extend(["--testbed".into(), describe(testbed.spec()).into()]);
                let shims = Shims {
                    sleep_on_yield: Some(programs::find("libcolibri_yield.so")?),
                    tracer: Some(tracer()?),
                };
                let library = library.as_ref().map(|path| ("LD_PRELOAD", path.as_os_str()));
                let environment: Vec<_> = variables.chain(library).collect();
                let mut command = testbed.mpirun(&OpenMpi::find()?, ranks, &shims, &environment)?;
                command.arg(program).args(&arguments);
                command
            }
        };
        command.env("OMPI_MCA_coll_tuned_use_dynamic_rules", "1");
        for setting in settings {
            if let Setting::Parameter(name, value) = setting {
                command.env(format!("OMPI_MCA_{name}"), value);
            }
        }
        launch::run(command, step, &self.launched, self.patience)
    }
}

/// What the user has preloaded stays, since `env` sets the whole list: behind the tracer, before
/// the preload library, as tools of the profiling interface have to stand.
fn around_theirs(tracer: Option<PathBuf>, library: Option<PathBuf>) -> Option<OsString> {
    let theirs = env::var_os("LD_PRELOAD").filter(|theirs| !theirs.is_empty());
    if tracer.is_none() && library.is_none() {
        return None;
    }
    let all: Vec<OsString> =
        [tracer.map(Into::into), theirs, library.map(Into::into)].into_iter().flatten().collect();
    Some(all.join(OsStr::new(":")))
}

/// A virtual cluster in words: `8 nodes at 100mbit`.
pub fn describe(spec: &Spec) -> String {
    let Spec { nodes, rate, ports, ranks_per_node, .. } = spec;
    let nodes = match ranks_per_node {
        1 => format!("{nodes} nodes at {rate}"),
        ranks => format!("{nodes} nodes of {ranks} ranks at {rate}"),
    };
    ports.iter().fold(nodes, |text, port| format!("{text}, port {port}"))
}

/// Ends what a killed run in this directory has left behind.
///
/// # Errors
/// It can't be ended.
pub fn clear_up(run: &RunDirectory) -> Result<()> {
    process::end_written_down(&run.launched())?;
    let path = written_down(run);
    if path.exists() {
        let SetUp { name } = document::read(&path)?;
        testbed::down(&name).with_context(|| format!("taking down the virtual cluster {name}"))?;
        process::forget(&path);
    }
    Ok(())
}

fn written_down(run: &RunDirectory) -> PathBuf {
    run.file("testbed.json")
}

impl Cluster {
    /// A number of nodes is set up anew, a name is one that is up.
    fn open(text: &str, options: &SiteOptions, run: &RunDirectory) -> Result<Self> {
        let Ok(nodes) = text.parse::<u32>() else {
            let testbed = Testbed::open(text)?;
            return Ok(Cluster { testbed: Some(testbed), written_down: None });
        };
        let name = format!("run-{}", std::process::id());
        let spec = Spec::new(&name, nodes, options.rate)?
            .with_ranks_per_node(options.ppn)?
            .with_ports(options.ports.clone())?;
        let path = written_down(run);
        document::write(&path, &SetUp { name })?;
        match testbed::up(&spec) {
            Ok(testbed) => Ok(Cluster { testbed: Some(testbed), written_down: Some(path) }),
            Err(error) => {
                process::forget(&path);
                Err(error.into())
            }
        }
    }

    fn testbed(&self) -> &Testbed {
        // Only dropping takes it out.
        self.testbed.as_ref().expect("a cluster holds its testbed until it is dropped")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let (Some(testbed), Some(path)) = (self.testbed.take(), &self.written_down) else { return };
        match testbed::down(&testbed.spec().name) {
            Ok(_) => process::forget(path),
            Err(error) => {
                eprintln!("colibri: the virtual cluster could not be taken down: {error}")
            }
        }
    }
}

/// A site that is opened when the first job needs it: a run whose records are whole needs none.
pub struct LazySite<'a> {
    options: &'a SiteOptions,
    run: &'a RunDirectory,
    site: Option<Site>,
}

impl<'a> LazySite<'a> {
    /// Of this run, at the place that the flags name.
    pub fn new(options: &'a SiteOptions, run: &'a RunDirectory) -> Self {
        LazySite { options, run, site: None }
    }

    /// The site, opened at the first time.
    ///
    /// # Errors
    /// As [`Site::open`].
    pub fn open(&mut self) -> Result<&Site> {
        if self.site.is_none() {
            self.site = Some(Site::open(self.options, self.run)?);
        }
        self.site.as_ref().context("the site was opened")
    }
}
