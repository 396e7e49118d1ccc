use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize, de};

use crate::{
    Algorithm, Collective, OwnMethod,
    names::{quoted, unknown},
    own_method::{parse_name, parse_segment, write_segment},
    plugin::Plugin,
    quantity,
};

/// An MPI library by the name that its methods carry: `openmpi` in `native:openmpi:pipeline`.
///
/// Which libraries there are is not known here: any short name stands for one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Library([u8; Library::LONGEST]);

impl Library {
    /// Most letters of a name.
    const LONGEST: usize = 15;

    /// The library of a name; none where it is empty, long, or not of small letters and digits.
    pub const fn new(name: &str) -> Option<Self> {
        let given = name.as_bytes();
        if given.is_empty() || given.len() > Self::LONGEST {
            return None;
        }
        let mut letters = [0; Self::LONGEST];
        let mut index = 0;
        while index < given.len() {
            if !given[index].is_ascii_lowercase() && !given[index].is_ascii_digit() {
                return None;
            }
            letters[index] = given[index];
            index += 1;
        }
        Some(Library(letters))
    }

    pub fn name(&self) -> &str {
        let end = self.0.iter().position(|&letter| letter == 0).unwrap_or(Self::LONGEST);
        str::from_utf8(&self.0[..end]).unwrap_or_default()
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An algorithm of the MPI library, forced, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Native {
    /// Whose algorithm.
    pub library: Library,
    pub algorithm: Algorithm,
    /// Segment size in bytes; 0 is unsegmented.
    pub segment_bytes: u64,
}

/// An algorithm with its parameters, or whatever the library would take by itself.
///
/// Written `default`, `native:openmpi:pipeline,segment=8KiB` (with any library's name), `own:pipeline,segment=8KiB`,
/// `own:k-nomial,fan-out=8`, `own:fitted,trip=57000,gap=24000`, `own:two-level,inter=pipeline,intra=binomial,segment=8KiB`, `own:ring,order=node`, `mockup:bcast_as_scatter_allgather`,
/// `plugin:/path/to/library.so:MPIB_Bcast_x` or `other:bine_lat_over`. An unsegmented method has no `segment`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// What the library takes when nothing is forced.
    Default,
    /// The library's own algorithm, forced.
    Native(Native),
    /// Colibri's algorithm, by messages or through shared memory.
    Own(OwnMethod),
    /// Composed of other collectives; named `A_as_B_C`.
    Mockup(String),
    /// A function of somebody else's.
    Plugin(Box<Plugin>),
    /// Timed elsewhere under this name, which is no algorithm that Colibri knows: it can be
    /// compared with, but neither run nor loaded.
    Other(String),
}

impl Method {
    /// Colibri's algorithm as it is without parameters.
    pub const fn own(algorithm: Algorithm) -> Self {
        Method::Own(OwnMethod::plain(algorithm))
    }

    /// The mock-up of a name.
    ///
    /// # Errors
    /// It is no mock-up's.
    pub fn mockup(name: &str) -> Result<Self, String> {
        let is_spelled = |c: char| c == '_' || c.is_ascii_lowercase();
        match name.contains("_as_") && name.chars().all(is_spelled) {
            true => Ok(Method::Mockup(name.into())),
            false => Err("a mock-up is named A_as_B_C, such as bcast_as_scatter_allgather".into()),
        }
    }

    /// The method that was timed elsewhere under a name.
    ///
    /// # Errors
    /// The name is empty, long, or has characters that would part it in a list or a file.
    pub fn other(name: &str) -> Result<Self, String> {
        const LONGEST: usize = 120;
        let fits = |c: char| c.is_ascii_graphic() && !matches!(c, ',' | '"' | '\'' | '\\');
        match !name.is_empty() && name.len() <= LONGEST && name.chars().all(fits) {
            true => Ok(Method::Other(name.into())),
            false => Err(format!(
                "the name of a method of others has 1 to {LONGEST} letters, digits and signs \
                 without spaces, commas and quotes, as in other:bine_lat_over"
            )),
        }
    }

    /// Whether ranks of a node carry it out, or a part of it, through memory that they share.
    pub fn shares_memory(&self) -> bool {
        matches!(self, Method::Own(method) if method.shares_memory())
    }

    /// Whether it can be of a collective, as far as its name says.
    ///
    /// # Errors
    /// It is a mock-up of another one.
    pub fn check_collective(&self, collective: Collective) -> Result<(), String> {
        match self {
            Method::Mockup(name) if !name.starts_with(&format!("{collective}_as_")) => {
                Err(format!("is {name}; a mock-up of {collective} begins with {collective}_as_"))
            }
            _ => Ok(()),
        }
    }

    /// Whether it is a schedule of Colibri's own.
    pub fn is_own(&self) -> bool {
        matches!(self, Method::Own(_))
    }

    /// Whether Colibri carries it out itself: a schedule of its own, or a mock-up.
    pub fn is_ours(&self) -> bool {
        matches!(self, Method::Own(_) | Method::Mockup(_))
    }

    /// Whether it is a named algorithm of the MPI library's.
    pub fn is_native(&self) -> bool {
        matches!(self, Method::Native(_))
    }

    /// Whether it is one of ours to which the nodes of the ranks make a difference.
    pub fn is_node_aware(&self) -> bool {
        matches!(self, Method::Own(method) if method.is_node_aware())
    }

    /// The algorithm, where the method has one of the field's names.
    pub fn algorithm(&self) -> Option<Algorithm> {
        match self {
            Method::Native(native) => Some(native.algorithm),
            Method::Own(method) => Some(method.algorithm),
            Method::Default | Method::Mockup(_) | Method::Plugin(_) | Method::Other(_) => None,
        }
    }

    /// The fan-out of what is ours; of others what is standard.
    pub fn fan_out(&self) -> u32 {
        match self {
            Method::Own(method) => method.fan_out,
            _ => self.algorithm().map_or(OwnMethod::STANDARD_FAN_OUT, OwnMethod::standard_fan_out),
        }
    }

    /// Segment size in bytes; 0 is unsegmented or not known.
    pub fn segment_bytes(&self) -> u64 {
        match self {
            Method::Native(native) => native.segment_bytes,
            Method::Own(method) => method.segment_bytes,
            Method::Default | Method::Mockup(_) | Method::Plugin(_) | Method::Other(_) => 0,
        }
    }

    /// This algorithm with segments of so many bytes (0: none); what has no segments of its
    /// own stays as it is.
    #[must_use]
    pub fn with_segment(self, segment_bytes: u64) -> Self {
        match self {
            Method::Own(method) => Method::Own(method.with_segment(segment_bytes)),
            Method::Native(native) => Method::Native(Native { segment_bytes, ..native }),
            Method::Default | Method::Mockup(_) | Method::Plugin(_) | Method::Other(_) => self,
        }
    }

    /// As [`short`](Self::short), but Colibri's own by their whole names (`own:linear`) where the MPI
    /// library's own stand `beside` them.
    pub fn short_beside<'a>(&self, mut beside: impl Iterator<Item = &'a Method>) -> String {
        match self.is_own() && beside.any(Method::is_native) {
            true => self.to_string(),
            false => self.short(),
        }
    }

    /// Without the origin: `pipeline 8 KiB`, `linear`, `default`; for tables and legends.
    pub fn short(&self) -> String {
        match self {
            Method::Default => "default".into(),
            Method::Mockup(name) | Method::Other(name) => name.clone(),
            Method::Plugin(plugin) => plugin.symbol().into(),
            Method::Native(native) => short(&native.algorithm, native.segment_bytes),
            Method::Own(method) => short(&method.words(), method.segment_bytes),
        }
    }
}

/// `pipeline 8 KiB`, or `linear` where there are no segments.
fn short(algorithm: &dyn fmt::Display, segment_bytes: u64) -> String {
    match segment_bytes {
        0 => algorithm.to_string(),
        bytes => format!("{algorithm} {}", quantity::format_bytes(bytes)),
    }
}

/// A method's text could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("method {}: {reason}", quoted(given))]
pub struct MethodError {
    given: String,
    reason: String,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::Default => f.pad("default"),
            Method::Mockup(name) => write!(f, "mockup:{name}"),
            Method::Plugin(plugin) => write!(f, "plugin:{plugin}"),
            Method::Other(name) => write!(f, "other:{name}"),
            Method::Own(method) => method.fmt(f),
            Method::Native(Native { library, algorithm, segment_bytes }) => {
                write!(f, "native:{}:{algorithm}", library.name())?;
                write_segment(f, *segment_bytes)
            }
        }
    }
}

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(given: &str) -> Result<Self, MethodError> {
        parse(given).map_err(|reason| MethodError { given: given.into(), reason })
    }
}

fn parse(text: &str) -> Result<Method, String> {
    let (origin, rest) = text.split_once(':').unwrap_or((text, ""));
    match origin {
        "default" if rest.is_empty() => Ok(Method::Default),
        "mockup" => Method::mockup(rest),
        "plugin" => Ok(Method::Plugin(Box::new(Plugin::parse(rest)?))),
        "own" => OwnMethod::parse(rest).map(Method::Own),
        "other" => Method::other(rest),
        "native" => {
            let Some((name, rest)) = rest.split_once(':') else {
                return Err("a native method is native:openmpi:ALGORITHM[,segment=SIZE]".into());
            };
            let library = Library::new(name).ok_or_else(|| {
                format!("{} is not an MPI library; expected e.g. openmpi", quoted(name))
            })?;
            let mut parts = rest.split(',');
            let algorithm = parse_name(parts.next().unwrap_or_default())?;
            let segment_bytes = parts.try_fold(0, |_, part| parse_segment(part))?;
            Ok(Method::Native(Native { library, algorithm, segment_bytes }))
        }
        _ => Err(unknown(
            "origin",
            origin,
            &["default", "native", "own", "mockup", "plugin", "other"],
        )),
    }
}

macro_rules! serde_as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    };
}
serde_as_text!(Algorithm);
serde_as_text!(Method);

#[cfg(test)]
mod tests;
