//! Communicators on which a collective runs by a given method.
//!
//! Some libraries read which algorithm is forced when a communicator is made, others at each call, or
//! both: the settings hold from the beginning of a visit, before a communicator is made for it, to the
//! next one's. What cannot be changed within a job must have been set in the environment that it was
//! started with.

use std::{collections::HashMap, env, ffi::c_int};

use libraries::{MpiLibrary, ReadAt, Variable, WithinJob};
use records::{Collective, Layout, Method, Native, job_nodes::JobNodes, profile::CALLS_WHILE_NEW};
use runner::{Runnable, mockups::Limits};

use super::{
    plugins::LoadedPlugin,
    tool::{ControlVariable, Tool},
};
use crate::{Error, Result, exchange::Communicator, linked};

/// The MPI library that runs, as far as its algorithms go.
#[derive(Debug, Clone, Copy)]
pub struct RunningLibrary {
    /// Nothing where it is none of those known.
    library: Option<&'static dyn MpiLibrary>,
    version: (u32, u32),
}

/// The communicators of a rank, each made once.
#[derive(Debug)]
pub struct MethodCommunicators {
    control: Communicator,
    nodes: JobNodes,
    running: RunningLibrary,
    plain: HashMap<Layout, Communicator>,
    forced: HashMap<(Layout, Collective, Native), Communicator>,
    forcing: Option<Forcing>,
}

/// The settings by which the library's algorithms are forced.
#[derive(Debug)]
struct Forcing {
    settings: HashMap<String, ControlVariable>,
    /// What stood where something is forced, from the first written on.
    held: Vec<(String, c_int)>,
}

/// How an algorithm of the library is forced.
enum HowForced {
    WithinJob(&'static WithinJob, Vec<Variable>),
    /// By the environment, which says so.
    ByEnvironment,
}

/// Whether this version can time a method of a collective on so many processes, with messages of
/// `bytes`.
///
/// # Errors
/// It cannot; says why and what it can.
pub fn check_supported(
    running: RunningLibrary,
    collective: Collective,
    method: &Method,
    procs: u32,
    bytes: u64,
) -> Result<()> {
    match method {
        Method::Default => Ok(()),
        Method::Native(native) => running.how_forced(collective, native).map(drop),
        Method::Plugin(plugin) => LoadedPlugin::load(collective, plugin).map(|_| ()),
        Method::Other(_) => {
            Err(Error::Unsupported(format!("{method} was timed elsewhere; Colibri cannot run it")))
        }
        // The preload library's limits, so that what is timed can be taken there.
        Method::Own(_) | Method::Mockup(_) => {
            let check = |ours: Runnable| ours.check(procs, bytes, Limits::of_environment()?);
            Runnable::new(collective, method)
                .and_then(|ours| ours.map_or(Ok(()), check))
                .map_err(|error| Error::Unsupported(error.to_string()))
        }
    }
}

impl RunningLibrary {
    /// The one that this program is linked with.
    ///
    /// # Errors
    /// It does not tell its version.
    pub fn linked() -> Result<Self> {
        Ok(Self::that_says(&linked::library_version()?))
    }

    /// By what it says of its version.
    pub fn that_says(version: &str) -> Self {
        let library = libraries::recognise(version);
        let version = library.and_then(|library| library.version(version)).unwrap_or_default();
        RunningLibrary { library, version }
    }

    /// Whether an algorithm is forced for all calls of the job.
    pub fn is_forced_by_environment(self, collective: Collective, native: &Native) -> bool {
        matches!(self.how_forced(collective, native), Ok(HowForced::ByEnvironment))
    }

    fn how_forced(self, collective: Collective, native: &Native) -> Result<HowForced> {
        let refuse = |why: String| Err(Error::Unsupported(why));
        let library = libraries::find(native.library).map_err(Error::Unsupported)?;
        let method = Method::Native(*native);
        let Some(running) = self.library.filter(|one| one.library() == native.library) else {
            let running = self.library.map_or("another library", MpiLibrary::title);
            return refuse(format!(
                "{method}: this program runs on {running}, not {}",
                library.title()
            ));
        };
        let within = running.within_job();
        let variables =
            within.map(|within| (within, (within.variables)(self.version, collective, native)));
        if let Some((within, Ok(variables))) = variables {
            return Ok(HowForced::WithinJob(within, variables));
        }
        let wanted = running.forced_by(self.version, collective, native);
        let is_set = |(name, value): &(String, String)| env::var(name).is_ok_and(|is| is == *value);
        match (wanted, variables) {
            (Some(wanted), _) if wanted.iter().all(is_set) => Ok(HowForced::ByEnvironment),
            (None, Some((_, Err(why)))) => refuse(why),
            (Some(wanted), _) => {
                let wanted = wanted.iter().map(|(name, value)| format!("{name}={value}"));
                let wanted = wanted.collect::<Vec<_>>().join(" ");
                refuse(format!("{method} of {collective} is forced for a whole job, by {wanted}"))
            }
            (None, _) => refuse(format!(
                "{} {}.{} has no {method} of {collective} that can be forced",
                running.title(),
                self.version.0,
                self.version.1
            )),
        }
    }
}

impl MethodCommunicators {
    /// For the native methods that the plan has of some collectives: their settings must be there.
    ///
    /// # Errors
    /// The library is another one, lacks the settings, or would ignore them.
    pub fn new(
        control: Communicator,
        nodes: JobNodes,
        natives: &[(Collective, Native)],
    ) -> Result<Self> {
        let running = RunningLibrary::linked()?;
        let within = |(collective, native): &&(Collective, Native)| {
            !running.is_forced_by_environment(*collective, native)
        };
        let natives: Vec<(Collective, Native)> = natives.iter().filter(within).copied().collect();
        let forcing = match natives.is_empty() {
            true => None,
            false => Some(Forcing::new(running, &natives)?),
        };
        let (plain, forced) = (HashMap::new(), HashMap::new());
        Ok(MethodCommunicators { control, nodes, running, plain, forced, forcing })
    }

    /// The communicator of a layout on which `collective` runs by `method`, until the next one is
    /// asked for.
    ///
    /// Its [members](JobNodes::members) must call it in the same order; the others must not.
    ///
    /// # Errors
    /// The library refuses.
    pub fn communicator(
        &mut self,
        layout: Layout,
        collective: Collective,
        method: &Method,
    ) -> Result<Communicator> {
        self.release()?;
        let plain = self.plain(layout)?;
        let Method::Native(native) = method else { return Ok(plain) };
        let (within, variables) = match self.running.how_forced(collective, native)? {
            HowForced::ByEnvironment => return Ok(plain),
            HowForced::WithinJob(within, variables) => (within, variables),
        };
        let Some(forcing) = &mut self.forcing else {
            let problem = format!("{method} of {collective} was not announced by the plan");
            return Err(Error::Unsupported(problem));
        };
        forcing.hold(&variables, collective, native)?;
        if let ReadAt::Call(_) = within.read {
            return Ok(plain);
        }
        let key = (layout, collective, *native);
        if let Some(there) = self.forced.get(&key) {
            return Ok(*there);
        }
        let made = plain.duplicate()?;
        self.forced.insert(key, made);
        Ok(made)
    }

    /// Takes back what is forced for the calls of a visit. To be called before the ranks of another
    /// communicator call together: they would not agree.
    ///
    /// # Errors
    /// The library refuses.
    pub fn release(&mut self) -> Result<()> {
        self.forcing.as_mut().map_or(Ok(()), Forcing::release)
    }

    /// What a call of a method ran that did not fail, where the library sees to that.
    pub fn ran(&self, collective: Collective, method: &Method) -> Option<String> {
        let Method::Native(native) = method else { return None };
        match self.running.library?.within_job()?.read {
            ReadAt::Call(ran) => ran(self.running.version, collective, native),
            ReadAt::Communicator => None,
        }
    }

    /// A layout's ranks with nothing forced.
    ///
    /// # Errors
    /// The job has no such nodes; the library refuses.
    fn plain(&mut self, layout: Layout) -> Result<Communicator> {
        if let Some(there) = self.plain.get(&layout) {
            return Ok(*there);
        }
        let ranks = self.nodes.members(layout).map_err(Error::Usage)?;
        let made = self.control.of_ranks(&ranks)?;
        // With the last of these the communicator is new no more to the preload library.
        for _ in 0..=CALLS_WHILE_NEW {
            made.broadcast_nothing()?;
        }
        self.plain.insert(layout, made);
        Ok(made)
    }
}

impl Drop for MethodCommunicators {
    /// All ranks come together in `MPI_Finalize`.
    fn drop(&mut self) {
        // A library that has refused it before has been reported.
        let _ = self.release();
    }
}

impl Forcing {
    fn new(running: RunningLibrary, natives: &[(Collective, Native)]) -> Result<Self> {
        let tool = Tool::start()?;
        let mut settings = HashMap::new();
        for (collective, native) in natives {
            let HowForced::WithinJob(within, variables) =
                running.how_forced(*collective, native)?
            else {
                continue;
            };
            if let Some(switch) = within.switch
                && required(&tool, switch.name, within.part)?.read()? & 0xFF == 0
            {
                let (name, how) = (switch.name, switch.turned_on_by);
                return Err(Error::Unsupported(format!(
                    "the plan forces algorithms, which the MPI library ignores unless {name} is on; \
                     {how}"
                )));
            }
            for Variable { name, optional, .. } in variables {
                if settings.contains_key(&name) {
                    continue;
                }
                let setting = match optional {
                    true => tool.setting(&name)?,
                    false => Some(required(&tool, &name, within.part)?),
                };
                settings.extend(setting.map(|setting| (name, setting)));
            }
        }
        Ok(Forcing { settings, held: Vec::new() })
    }

    /// Writes what forces a method, and keeps what stood there.
    fn hold(
        &mut self,
        variables: &[Variable],
        collective: Collective,
        native: &Native,
    ) -> Result<()> {
        for Variable { name, value, optional } in variables {
            match self.settings.get(name) {
                Some(setting) => {
                    self.held.push((name.clone(), setting.read()?));
                    setting.write(*value)?;
                }
                None if *optional => {}
                None => {
                    let method = Method::Native(*native);
                    let problem = format!("{method} of {collective} was not announced by the plan");
                    return Err(Error::Unsupported(problem));
                }
            }
        }
        Ok(())
    }

    /// Takes it back.
    fn release(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held).into_iter().rev();
        held.filter_map(|(name, value)| Some((self.settings.get(&name)?, value)))
            .try_for_each(|(setting, value)| setting.write(value))
    }
}

fn required(tool: &Tool, name: &str, part: &str) -> Result<ControlVariable> {
    tool.setting(name)?.ok_or_else(|| {
        Error::Unsupported(format!(
            "the plan forces algorithms, but this MPI library has no setting {name}; is it {part}?"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_supported_is_said_with_what_is() {
        let running = RunningLibrary::that_says("Open MPI v4.1.4");
        for (collective, method, part) in [
            (Collective::Bcast, "own:rabenseifner", "known: binary"),
            (Collective::Bcast, "own:scatter-allgather,segment=8KiB", "no segments"),
            (Collective::Allgather, "own:neighbor-exchange", "even number"),
            (Collective::Bcast, "mockup:bcast_as_scatter_allgathr", "bcast_as_scatter_allgather"),
            (Collective::Gather, "mockup:bcast_as_allgatherv", "mock-up of bcast, not gather"),
            (Collective::Scatter, "mockup:scatter_as_bcast", "the limit is 67108864"),
            (Collective::Bcast, "native:openmpi:rabenseifner", "it has: linear, k-chain"),
            (Collective::Bcast, "native:mpich:binomial", "runs on Open MPI, not MPICH"),
            (Collective::Bcast, "native:mpch:binomial", "did you mean 'mpich'?"),
            (Collective::Bcast, "native:openmpi:pipeline,segment=4GiB", "takes up to"),
        ] {
            let method: Method = method.parse().unwrap();
            let error = check_supported(running, collective, &method, 5, 16 << 20);
            let error = error.unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let pipeline = "own:pipeline,segment=8KiB".parse().unwrap();
        check_supported(running, Collective::Bcast, &pipeline, 5, 8).unwrap();
        check_supported(running, Collective::Scan, &Method::Default, 5, 8).unwrap();
        let mockup = "mockup:scatter_as_bcast".parse().unwrap();
        check_supported(running, Collective::Scatter, &mockup, 4, 16 << 20).unwrap();
    }

    #[test]
    fn what_is_forced_for_a_whole_job_must_be_set_there() {
        let intel = RunningLibrary::that_says("Intel(R) MPI Library 2021.19.0 for Linux* OS");
        let method: Method = "native:intel:binomial".parse().unwrap();
        let error = check_supported(intel, Collective::Bcast, &method, 4, 8).unwrap_err();
        let wanted = "for a whole job, by I_MPI_ADJUST_BCAST=1";
        assert!(error.to_string().contains(wanted), "{error}");
        let mpich = RunningLibrary::that_says("MPICH Version: 4.0.2");
        let method: Method = "native:mpich:binomial".parse().unwrap();
        check_supported(mpich, Collective::Bcast, &method, 4, 8).unwrap();
        let method: Method = "native:mpich:k-nomial".parse().unwrap();
        let error = check_supported(mpich, Collective::Bcast, &method, 4, 8).unwrap_err();
        assert!(error.to_string().contains("MPICH 4.0 can't be made to run"), "{error}");
    }
}
