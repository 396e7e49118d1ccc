//! `profiles/*.json`: the ranges of message sizes where a replacement beats the library's default.
//!
//! One file holds one collective at one number of processes, or on one layout of them; a directory holds many, side by side.
//! PGMPITuneLib's text form of the same thing is in [`pgtune`].

use serde::{Deserialize, Serialize, Serializer, de::IgnoredAny};

use crate::{
    Collective, Layout, Method, RangeMethod, Ranges, document::Document, number::check_procs,
};

mod directory;
pub mod pgtune;

pub use directory::{Directory, read_directory};

/// What to call instead of the library's default, and for which messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Checked and written by [`document`]; named here since no other field may stand in the file.
    #[serde(default, skip_serializing)]
    schema: IgnoredAny,
    /// Whether to load it, where it comes from, and what its ranges rest on, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
    pub collective: Collective,
    /// What a message size means for it; see [`Collective::message_size`].
    #[serde(default)]
    pub message_size: String,
    /// The communicator size at which it was measured.
    pub procs: u32,
    /// Nodes that these processes were on, where that is known.
    #[serde(default)]
    pub nodes: Option<u32>,
    /// Their nodes, where it holds for communicators of this layout.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "in_full")]
    pub layout: Option<Layout>,
    /// What it says of other communicator sizes.
    #[serde(default)]
    pub other_procs: OtherProcs,
    /// What a profile with a layout says of other layouts.
    #[serde(default, skip_serializing_if = "OtherLayouts::is_exact")]
    pub other_layouts: OtherLayouts,
    /// The MPI library that it was measured with, where that is known.
    #[serde(default)]
    pub library: String,
    /// What lies in none is left to the library.
    pub ranges: Ranges<RangeMethod>,
}

/// What holds at a communicator size that no profile was measured at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OtherProcs {
    /// Nothing: the library's default.
    #[default]
    Exact,
    /// The profile of the nearest smaller size.
    NearestBelow,
    /// Where the profiles of the nearest smaller and the nearest larger size agree on a method for
    /// the message, that method; else the default.
    Interpolated,
}

/// What holds on a communicator of a layout that no profile was measured at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OtherLayouts {
    /// Nothing: a profile that names no layout, or the library's default.
    #[default]
    Exact,
    /// Between those measured, in processes and in ranks per node, the profile of the nearest layout
    /// by the ratios of both.
    Nearest,
}

impl OtherLayouts {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_exact(&self) -> bool {
        *self == OtherLayouts::Exact
    }
}

/// So many calls of each collective on a communicator the preload library leaves to the MPI library, whatever
/// profiles say, but for the world. Programs make communicators for a call or two; to agree on methods and to make
/// a second communicator takes longer than both. After the next call of one collective, all are replaced.
pub const CALLS_WHILE_NEW: u32 = 2;

/// The collectives whose calls the preload library replaces.
pub const REPLACED: [Collective; 12] = [
    Collective::Allgather,
    Collective::Allreduce,
    Collective::Alltoall,
    Collective::Barrier,
    Collective::Bcast,
    Collective::Exscan,
    Collective::Gather,
    Collective::Reduce,
    Collective::ReduceScatter,
    Collective::ReduceScatterBlock,
    Collective::Scan,
    Collective::Scatter,
];

impl Document for Profile {
    const SCHEMA: &'static str = "colibri/profile/1";

    fn validate(&self) -> Result<(), (String, String)> {
        check_procs(self.procs).map_err(|problem| ("procs".into(), problem))?;
        if let Some(layout) = self.layout.filter(|layout| layout.procs() != self.procs) {
            let problem = format!("is {layout:#}, but procs is {}", self.procs);
            return Err(("layout".into(), problem));
        }
        if let (None, OtherLayouts::Nearest) = (self.layout, self.other_layouts) {
            return Err(("other_layouts".into(), "is nearest, but there is no layout".into()));
        }
        let wanted = self.collective.message_size();
        if !self.message_size.is_empty() && self.message_size != wanted {
            let problem =
                format!("is \"{}\"; for {} it is \"{wanted}\"", self.message_size, self.collective);
            return Err(("message_size".into(), problem));
        }
        for (index, range) in self.ranges.iter().enumerate() {
            let field = |name: &str| format!("ranges[{index}].{name}");
            let RangeMethod { method, gain } = &range.choice;
            if gain.is_some_and(|gain| gain < 0.0) {
                return Err((field("gain"), "is negative; expected 0 or more".into()));
            }
            check_replacement(self.collective, method)
                .map_err(|problem| (field("method"), problem))?;
        }
        Ok(())
    }
}

impl Profile {
    /// A profile of one collective at one communicator size.
    pub fn new(collective: Collective, procs: u32, ranges: Ranges<RangeMethod>) -> Self {
        Profile {
            schema: IgnoredAny,
            collective,
            message_size: collective.message_size().into(),
            procs,
            nodes: None,
            layout: None,
            other_procs: OtherProcs::Exact,
            other_layouts: OtherLayouts::Exact,
            library: String::new(),
            about: Vec::new(),
            ranges,
        }
    }

    /// A profile for communicators of one layout and, as far as they lie between those of such
    /// profiles, of layouts that are nearest to it.
    pub fn of_layout(collective: Collective, layout: Layout, ranges: Ranges<RangeMethod>) -> Self {
        Profile {
            layout: Some(layout),
            other_layouts: OtherLayouts::Nearest,
            ..Profile::new(collective, layout.procs(), ranges)
        }
    }

    /// Its file's name without the ending: `bcast-8`, `bcast-8x4`, `bcast-8x4-cyclic`.
    pub fn file_stem(&self) -> String {
        match self.layout {
            None => format!("{}-{}", self.collective, self.procs),
            Some(layout) => format!("{}-{layout:#}", self.collective).replace([':', '*'], "-"),
        }
    }

    /// The replacement for a message, if there is one.
    pub fn method(&self, bytes: u64) -> Option<&Method> {
        self.ranges.at(bytes).map(|range| &range.method)
    }
}

#[allow(clippy::ref_option, reason = "serde calls it with a reference")]
fn in_full<S: Serializer>(layout: &Option<Layout>, serializer: S) -> Result<S::Ok, S::Error> {
    match layout {
        Some(layout) => serializer.collect_str(&format_args!("{layout:#}")),
        None => serializer.serialize_none(),
    }
}

/// A mock-up says in its name what it is for; the default needs no profile.
pub(crate) fn check_replacement(collective: Collective, method: &Method) -> Result<(), String> {
    match method {
        Method::Default => {
            Err("is default; a range without a replacement is left out of a profile".into())
        }
        Method::Plugin(plugin) => {
            Err(format!("is plugin:{plugin}; the preload library carries out no plug-ins"))
        }
        Method::Other(name) => {
            Err(format!("is other:{name}, which was timed elsewhere; Colibri cannot run it"))
        }
        _ => method.check_collective(collective),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SizeRange, document};

    fn range(first_bytes: u64, last_bytes: u64, method: &str) -> SizeRange<RangeMethod> {
        SizeRange::new(first_bytes, last_bytes, method.parse::<Method>().unwrap())
    }

    fn profile() -> Profile {
        let ranges = vec![
            range(0, 8, "own:binomial"),
            range(9, 9, "own:linear"),
            range(1024, 65536, "own:pipeline,segment=8KiB"),
        ];
        Profile::new(Collective::Bcast, 8, ranges.try_into().unwrap())
    }

    #[test]
    fn what_is_written_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bcast-8.json");
        document::write(&path, &profile()).unwrap();
        assert_eq!(document::read::<Profile>(&path).unwrap(), profile());
        let text = std::fs::read_to_string(&path).unwrap().replace("other_procs", "others");
        let error = document::parse::<Profile>(&text, &path).unwrap_err().to_string();
        assert!(error.contains("unknown field `others`"), "{error}");
        let refused = |from: &str, to: &str| {
            let text = document::text(&profile()).unwrap().replacen(from, to, 1);
            document::parse::<Profile>(&text, &path).unwrap_err().to_string()
        };
        let overlap = refused("\"first_bytes\": 9,", "\"first_bytes\": 8,");
        assert!(overlap.contains("ranges: [1].first_bytes: is 8, inside"), "{overlap}");
        let unknown = refused("\"gain\"", "\"gian\"");
        assert!(unknown.contains("unknown field `gian`"), "{unknown}");
        let method = refused("own:linear", "own:lineal");
        assert!(method.contains("ranges") && method.contains("lineal"), "{method}");
    }

    #[test]
    fn faults_are_named_with_their_field() {
        let fault = |change: fn(&mut Profile)| {
            let mut profile = profile();
            change(&mut profile);
            let (field, problem) = profile.validate().unwrap_err();
            format!("{field}: {problem}")
        };
        assert_eq!(fault(|p| p.procs = 0), "procs: is 0; expected 1 to 16777216 ranks");
        let changed = |range: SizeRange<RangeMethod>| {
            Profile { ranges: vec![range].try_into().unwrap(), ..profile() }.validate().unwrap_err()
        };
        let mut negative = range(1, 2, "own:linear");
        negative.choice.gain = Some(-1.0);
        assert_eq!(changed(negative).0, "ranges[0].gain");
        let foreign = changed(range(1, 2, "mockup:scan_as_x")).1;
        assert!(foreign.contains("begins with bcast_as_"), "{foreign}");
        assert!(changed(range(1, 2, "default")).1.contains("left out"));
        assert!(fault(|p| p.message_size = "total".into()).contains("count x type size"));
    }
}
