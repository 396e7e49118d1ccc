//! Communicators on which a collective runs by a given method.
//!
//! Open MPI's component coll/tuned reads which algorithm is forced when a communicator is made.
//! So the settings are written, the communicator is made, and the settings are taken back.

use std::{collections::HashMap, ffi::c_int};

use records::{Collective, Library, Method, Native, openmpi};
use runner::Runnable;

use super::{
    plugins::Plugin,
    tool::{Setting, Tool},
};
use crate::{Error, Result, exchange::Communicator};

/// The communicators of a rank, each made once.
#[derive(Debug)]
pub struct Methods {
    control: Communicator,
    plain: HashMap<u32, Communicator>,
    forced: HashMap<(u32, Collective, Native), Communicator>,
    forcing: Option<Forcing>,
}

/// The settings by which Open MPI's algorithms are forced.
#[derive(Debug)]
struct Forcing {
    settings: HashMap<Collective, ForcedCollective>,
}

#[derive(Debug)]
struct ForcedCollective {
    algorithm: Setting,
    /// Absent where none of the collective's algorithms has segments.
    segment: Option<Setting>,
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
        Method::Native(native) => native_id(collective, native).map(|_| ()),
        Method::Plugin(plugin) => Plugin::load(collective, plugin).map(|_| ()),
        // The preload library's limits, so that what is timed can be taken there.
        Method::Own { .. } | Method::Mockup(_) => Runnable::new(collective, method)
            .and_then(|ours| ours.map_or(Ok(()), |ours| ours.check(procs, bytes)))
            .map_err(|error| Error::Unsupported(error.to_string())),
    }
}

/// The number and segment size by which Open MPI knows a method.
fn native_id(collective: Collective, native: &Native) -> Result<(c_int, c_int)> {
    if native.library != Library::OpenMpi {
        let method = Method::Native(*native);
        return Err(Error::Unsupported(format!(
            "{method}: only Open MPI's algorithms can be forced, call by call"
        )));
    }
    let row = openmpi::find(collective, native.algorithm).ok_or_else(|| {
        let known: Vec<&str> =
            openmpi::algorithms(collective).iter().map(|row| row.algorithm.name()).collect();
        Error::Unsupported(format!(
            "Open MPI has no algorithm {} for {collective} that can be forced (it has: {})",
            native.algorithm,
            known.join(", ")
        ))
    })?;
    let segment = c_int::try_from(native.segment_bytes).map_err(|_| {
        let bytes = native.segment_bytes;
        Error::Unsupported(format!(
            "segments of {bytes} bytes; Open MPI takes up to {}",
            c_int::MAX
        ))
    })?;
    Ok((row.id as c_int, segment))
}

impl Methods {
    /// For the collectives of which the plan has native methods: their settings must be there.
    ///
    /// # Errors
    /// The library is not Open MPI, lacks the settings, or would ignore them.
    pub fn new(control: Communicator, natives: &[Collective]) -> Result<Self> {
        let forcing = if natives.is_empty() { None } else { Some(Forcing::new(natives)?) };
        Ok(Methods { control, plain: HashMap::new(), forced: HashMap::new(), forcing })
    }

    /// The communicator of the first `procs` ranks on which `collective` runs by `method`.
    ///
    /// These ranks must call it in the same order; the others must not.
    ///
    /// # Errors
    /// The library refuses.
    pub fn communicator(
        &mut self,
        procs: u32,
        collective: Collective,
        method: &Method,
    ) -> Result<Communicator> {
        let plain = self.plain(procs)?;
        let Method::Native(native) = method else { return Ok(plain) };
        let key = (procs, collective, *native);
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

    /// The first `procs` ranks with nothing forced.
    ///
    /// # Errors
    /// The library refuses.
    fn plain(&mut self, procs: u32) -> Result<Communicator> {
        if let Some(there) = self.plain.get(&procs) {
            return Ok(*there);
        }
        let made = self.control.of_first(procs)?;
        self.plain.insert(procs, made);
        Ok(made)
    }
}

impl Forcing {
    const SWITCH: &'static str = "coll_tuned_use_dynamic_rules";

    fn new(natives: &[Collective]) -> Result<Self> {
        let tool = Tool::start()?;
        let switch = required(&tool, Self::SWITCH)?;
        if switch.read()? & 0xFF == 0 {
            return Err(Error::Unsupported(format!(
                "the plan forces algorithms, which Open MPI ignores unless {0} is on; start with \
                 'mpirun --mca {0} 1'",
                Self::SWITCH
            )));
        }
        let mut settings = HashMap::new();
        for &collective in natives {
            let name = format!("coll_tuned_{collective}_algorithm");
            let segment = tool.setting(&format!("{name}_segmentsize"))?;
            let forced = ForcedCollective { algorithm: required(&tool, &name)?, segment };
            settings.insert(collective, forced);
        }
        Ok(Forcing { settings })
    }

    fn duplicate(
        &self,
        plain: &Communicator,
        collective: Collective,
        native: &Native,
    ) -> Result<Communicator> {
        let (id, segment) = native_id(collective, native)?;
        let Some(settings) = self.settings.get(&collective) else {
            let problem = format!("no native method of {collective} was announced by the plan");
            return Err(Error::Unsupported(problem));
        };
        let algorithm_before = settings.algorithm.read()?;
        let segment_before = settings.segment.as_ref().map(Setting::read).transpose()?;
        settings.algorithm.write(id)?;
        if let Some(setting) = &settings.segment {
            setting.write(segment)?;
        }
        let made = plain.duplicate()?;
        settings.algorithm.write(algorithm_before)?;
        if let (Some(setting), Some(before)) = (&settings.segment, segment_before) {
            setting.write(before)?;
        }
        Ok(made)
    }
}

fn required(tool: &Tool, name: &str) -> Result<Setting> {
    tool.setting(name)?.ok_or_else(|| {
        Error::Unsupported(format!(
            "the plan forces Open MPI's algorithms, but this MPI library has no setting {name}; \
             is it Open MPI with the component coll/tuned?"
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
