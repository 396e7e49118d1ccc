//! Communicators on which a collective runs by a given method.
//!
//! A library reads which algorithm is forced when a communicator is made. So the settings are
//! written, the communicator is made, and the settings are taken back.

use std::collections::HashMap;

use libraries::{Variable, WithinJob};
use records::{Collective, Layout, Method, Native};
use runner::Runnable;

use super::{
    members::JobNodes,
    plugins::LoadedPlugin,
    tool::{ControlVariable, Tool},
};
use crate::{Error, Result, exchange::Communicator};

/// The communicators of a rank, each made once.
#[derive(Debug)]
pub struct MethodCommunicators {
    control: Communicator,
    nodes: JobNodes,
    plain: HashMap<Layout, Communicator>,
    forced: HashMap<(Layout, Collective, Native), Communicator>,
    forcing: Option<Forcing>,
}

/// The settings by which the library's algorithms are forced.
#[derive(Debug)]
struct Forcing {
    settings: HashMap<String, ControlVariable>,
}

/// Whether this version can time a method of a collective on so many processes, with messages of
/// `bytes`.
///
/// # Errors
/// It cannot; says why and what it can.
pub fn check_supported(
    collective: Collective,
    method: &Method,
    procs: u32,
    bytes: u64,
) -> Result<()> {
    match method {
        Method::Default => Ok(()),
        Method::Native(native) => variables(collective, native).map(|_| ()),
        Method::Plugin(plugin) => LoadedPlugin::load(collective, plugin).map(|_| ()),
        Method::Other(_) => {
            Err(Error::Unsupported(format!("{method} was timed elsewhere; Colibri cannot run it")))
        }
        // The preload library's limits, so that what is timed can be taken there.
        Method::Own { .. } | Method::NodeAware(_) | Method::Mockup(_) => {
            Runnable::new(collective, method)
                .and_then(|ours| ours.map_or(Ok(()), |ours| ours.check(procs, bytes)))
                .map_err(|error| Error::Unsupported(error.to_string()))
        }
    }
}

/// How the library of a method is told what to run within a job.
fn within_job(native: &Native) -> Result<&'static WithinJob> {
    let library = libraries::find(native.library).map_err(Error::Unsupported)?;
    library.within_job().ok_or_else(|| {
        let able = libraries::ALL.iter().filter(|library| library.within_job().is_some());
        let able: Vec<String> = able.map(|library| format!("{}'s", library.title())).collect();
        Error::Unsupported(format!(
            "{}: only {} algorithms can be forced, call by call",
            Method::Native(*native),
            able.join(" and ")
        ))
    })
}

/// The settings by which a method is forced.
fn variables(collective: Collective, native: &Native) -> Result<Vec<Variable>> {
    (within_job(native)?.variables)(collective, native).map_err(Error::Unsupported)
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
        let forcing = if natives.is_empty() { None } else { Some(Forcing::new(natives)?) };
        let (plain, forced) = (HashMap::new(), HashMap::new());
        Ok(MethodCommunicators { control, nodes, plain, forced, forcing })
    }

    /// The communicator of a layout on which `collective` runs by `method`.
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
        let plain = self.plain(layout)?;
        let Method::Native(native) = method else { return Ok(plain) };
        let key = (layout, collective, *native);
        if let Some(there) = self.forced.get(&key) {
            return Ok(*there);
        }
        let Some(forcing) = &self.forcing else {
            let problem = format!("{method} of {collective} was not announced by the plan");
            return Err(Error::Unsupported(problem));
        };
        let made = forcing.duplicate(&plain, collective, native)?;
        self.forced.insert(key, made);
        Ok(made)
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
        self.plain.insert(layout, made);
        Ok(made)
    }
}

impl Forcing {
    fn new(natives: &[(Collective, Native)]) -> Result<Self> {
        let tool = Tool::start()?;
        let mut settings = HashMap::new();
        for (collective, native) in natives {
            let WithinJob { switch, switched_by, part, .. } = within_job(native)?;
            if required(&tool, switch, part)?.read()? & 0xFF == 0 {
                return Err(Error::Unsupported(format!(
                    "the plan forces algorithms, which the MPI library ignores unless {switch} is \
                     on; {switched_by}"
                )));
            }
            for Variable { name, optional, .. } in variables(*collective, native)? {
                if settings.contains_key(&name) {
                    continue;
                }
                let setting = match optional {
                    true => tool.setting(&name)?,
                    false => Some(required(&tool, &name, part)?),
                };
                settings.extend(setting.map(|setting| (name, setting)));
            }
        }
        Ok(Forcing { settings })
    }

    fn duplicate(
        &self,
        plain: &Communicator,
        collective: Collective,
        native: &Native,
    ) -> Result<Communicator> {
        let mut before = Vec::new();
        for Variable { name, value, optional } in variables(collective, native)? {
            match self.settings.get(&name) {
                Some(setting) => {
                    before.push((setting, setting.read()?));
                    setting.write(value)?;
                }
                None if optional => {}
                None => {
                    let method = Method::Native(*native);
                    let problem = format!("{method} of {collective} was not announced by the plan");
                    return Err(Error::Unsupported(problem));
                }
            }
        }
        let made = plain.duplicate()?;
        before.into_iter().try_for_each(|(setting, value)| setting.write(value))?;
        Ok(made)
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
        for (collective, method, part) in [
            (Collective::Bcast, "own:rabenseifner", "known: binary"),
            (Collective::Bcast, "own:scatter-allgather,segment=8KiB", "no segments"),
            (Collective::Allgather, "own:neighbor-exchange", "even number"),
            (Collective::Bcast, "mockup:bcast_as_scatter_allgathr", "bcast_as_scatter_allgather"),
            (Collective::Gather, "mockup:bcast_as_allgatherv", "mock-up of bcast, not gather"),
            (Collective::Scatter, "mockup:scatter_as_bcast", "the limit is 67108864"),
            (Collective::Bcast, "native:openmpi:rabenseifner", "it has: linear, k-chain"),
            (Collective::Bcast, "native:mpich:binomial", "only Open MPI's"),
            (Collective::Bcast, "native:mpch:binomial", "did you mean 'mpich'?"),
            (Collective::Bcast, "native:openmpi:pipeline,segment=4GiB", "takes up to"),
        ] {
            let method: Method = method.parse().unwrap();
            let error = check_supported(collective, &method, 5, 16 << 20).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let pipeline = "own:pipeline,segment=8KiB".parse().unwrap();
        check_supported(Collective::Bcast, &pipeline, 5, 8).unwrap();
        check_supported(Collective::Scan, &Method::Default, 5, 8).unwrap();
        let mockup = "mockup:scatter_as_bcast".parse().unwrap();
        check_supported(Collective::Scatter, &mockup, 4, 16 << 20).unwrap();
    }
}
