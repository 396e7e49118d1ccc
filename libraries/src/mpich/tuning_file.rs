//! MPICH's tuning file (`MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE`), 4.0 to 5.0.
//!
//! A tree of conditions whose objects are *ordered*: of siblings the first that holds is taken, for
//! good. MPICH has no default beside the file: it must hold every collective, each path ending in
//! an algorithm. So the version's own file, which every libmpich carries, is taken and only the
//! tuned collectives' trees are replaced. Below the conditions on the communicator, which MPICH
//! resolves when it is made, the bands of message sizes are put in front of what stood there; a
//! band that is left to the library holds exactly what stood there.

use std::path::Path;

use records::{Algorithm, Collective, Layout, Method, Native, Point};
use serde_json::Value;

use super::{
    algorithms::{self, CallRequirement, LIBRARY, MpichAlgorithm, Version},
    built_in::{self, BuiltIn},
    tree::{JsonTree, grouped, holds, leaf, object, straight},
};
use crate::{
    danger::UnsafeFor,
    error::{Result, fail, usage},
    exporter::{ALL_BLOCKS, Export, Exporter, File, HowToLoad, LayoutKey, lacks},
    rules::{LayoutRanges, Rules},
    spans::{ProcsSpan, narrow, spans},
    version::Versions,
};

const VERSIONS: Versions =
    Versions { target: "MPICH", known: &[(4, 0), (4, 1), (4, 2), (4, 3), (5, 0)] };

/// The control variable that names the file.
pub const FILE_VARIABLE: &str = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE";

/// Thresholds are `int` in MPICH.
const LARGEST: u64 = i32::MAX as u64;

/// The tuning file of one build.
pub struct TuningFile {
    version: Version,
    defaults: BuiltIn,
}

/// What follows the tuning file's name for the one that the device reads
/// (`MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE`).
const OF_DEVICE: &str = ".device.json";

/// Which of the two files.
#[derive(Clone, Copy, PartialEq)]
enum Layer {
    /// Names algorithms.
    Algorithms,
    /// Says where the device is to leave a call to them.
    Device,
}

impl TuningFile {
    /// For a version, whose own choices are read from `library` (a libmpich or libmpi) or from
    /// the one of this version that is found on this machine.
    ///
    /// # Errors
    /// No version is given, its format is not known, or there is no library of it.
    pub fn new(version: Option<&str>, library: Option<&Path>) -> Result<Self> {
        let Some(text) = version else {
            usage!(
                "MPICH's tuning file differs from version to version; name the version, as in \
                 --target-version 4.0"
            );
        };
        let (major, minor) = VERSIONS.read(text)?;
        let defaults = built_in::defaults((major, minor), library)?;
        Ok(TuningFile { version: Version { major, minor }, defaults })
    }
}

impl Exporter for TuningFile {
    fn target(&self) -> String {
        format!("MPICH {}.{}", self.version.major, self.version.minor)
    }

    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method {
        Method::Native(Native { library: LIBRARY, algorithm, segment_bytes })
    }

    fn express(&self, point: Point, method: &Method) -> Result<(), String> {
        let Point { collective, layout, bytes } = point;
        let found = match method {
            Method::Native(native) => algorithms::find(self.version, collective, native),
            _ => None,
        };
        match found {
            None => Err(lacks(&self.target(), collective, method, &self.algorithms(collective))),
            Some(row)
                if row.needs == CallRequirement::PowerOfTwo
                    && !layout.procs().is_power_of_two() =>
            {
                Err(format!("{} runs {method} only on powers of two", self.target()))
            }
            Some(_) if bytes.saturating_mul(scale(collective, layout.procs())) > LARGEST => {
                Err(format!("{} knows no message sizes above {LARGEST} bytes", self.target()))
            }
            Some(_) => Ok(()),
        }
    }

    /// The tree asks before it runs an algorithm whether the call is such as that needs.
    fn keeps_from(&self, _: UnsafeFor) -> bool {
        true
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        let here = |row: &&MpichAlgorithm| {
            row.since <= self.version && row.until.is_none_or(|until| self.version < until)
        };
        let mut algorithms: Vec<Algorithm> = algorithms::algorithms(collective)
            .iter()
            .filter(here)
            .map(|row| row.algorithm)
            .collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        algorithms
    }

    fn one_for_all_sizes(&self, collective: Collective) -> Option<&'static str> {
        match collective {
            Collective::Gather | Collective::Scatter => {
                Some("MPICH leaves the type's size out of the message size")
            }
            // It ends programs that load one for a barrier (4.0.2: "not defined for coll_type 6").
            Collective::Barrier | Collective::Scan | Collective::Exscan => {
                Some("MPICH's file has no message size for this collective")
            }
            _ => None,
        }
    }

    fn message_size(&self, collective: Collective) -> Option<&'static str> {
        message_size(collective)
    }

    /// 5.0 asks for ranks per node in some communicators alone (`csel.c`: in hierarchical ones).
    fn layout_key(&self, layout: Layout) -> LayoutKey {
        match self.version.major {
            ..5 => LayoutKey::per_node(layout),
            _ => LayoutKey::Procs(layout.procs()),
        }
    }

    fn files(&self, export: &Export<'_>) -> Result<Vec<File>> {
        let file = |name: &str, tree: JsonTree| -> Result<File> {
            Ok(File { name: name.into(), text: serde_json::to_string_pretty(&tree)? + "\n" })
        };
        let algorithms = self.tree(Layer::Algorithms, &self.defaults.algorithms, export.rules)?;
        let mut files = vec![file("", algorithms)?];
        if let Some(compositions) = &self.defaults.compositions {
            files.push(file(OF_DEVICE, self.tree(Layer::Device, compositions, export.rules)?)?);
        }
        Ok(files)
    }

    fn environment(&self, file: &str, export: &Export<'_>) -> Option<Vec<(String, String)>> {
        let mut set = vec![(FILE_VARIABLE.to_owned(), file.to_owned())];
        if self.defaults.compositions.is_some() {
            let name = "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE";
            set.push((name.into(), format!("{file}{OF_DEVICE}")));
            return Some(set);
        }
        // Whatever the device does is left out, at the sizes that are left to the library too, but not where all are.
        let is_replaced = |section: &LayoutRanges| {
            section.ranges.iter().any(|range| range.choice.method != Method::Default)
        };
        let replaced = export.rules.iter().filter(|rules| rules.sections.iter().any(is_replaced));
        for rules in replaced {
            let name = rules.collective.name().to_uppercase();
            set.push((format!("MPIR_CVAR_{name}_DEVICE_COLLECTIVE"), "0".into()));
        }
        Some(set)
    }

    fn how_to_load(&self, file: &str, export: &Export<'_>) -> HowToLoad {
        let set = self.environment(file, export).unwrap_or_default().into_iter();
        let set: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
        let remark = match self.defaults.compositions {
            None => {
                "(the device's own compositions of these collectives would come before the file)"
            }
            Some(_) => {
                "(by the second file the device leaves to the first what was tuned, and nothing else)"
            }
        };
        HowToLoad::new(self.target(), format!("export {}", set.join(" "))).with_remark(remark)
    }
}

fn counts_all_blocks(collective: Collective) -> bool {
    matches!(
        collective,
        Collective::Allgather | Collective::ReduceScatter | Collective::ReduceScatterBlock
    )
}

/// What a size is to its file, where it is not Colibri's.
pub fn message_size(collective: Collective) -> Option<&'static str> {
    counts_all_blocks(collective).then_some(ALL_BLOCKS)
}

/// What MPICH counts for a byte of ours.
fn scale(collective: Collective, procs: u32) -> u64 {
    if counts_all_blocks(collective) { u64::from(procs) } else { 1 }
}

impl TuningFile {
    /// What stood in a layer, with the tuned collectives' parts replaced.
    fn tree(&self, layer: Layer, defaults: &JsonTree, rules: &[Rules]) -> Result<JsonTree> {
        let mut tree = defaults.clone();
        for rules in rules {
            let collective = tree.get_mut(&format!("collective={}", rules.collective));
            // Of some collectives the device does not ask for which kind of communicator.
            let place = collective.map(|collective| match collective.get("comm_type=intra") {
                Some(_) => &mut collective["comm_type=intra"],
                None => collective,
            });
            match (place, layer) {
                (Some(place), _) => {
                    let Some(own) = place.as_object() else {
                        fail!("the library's tuning of {} is not a JSON object", rules.collective);
                    };
                    *place = Value::Object(self.tuned(layer, rules, own)?);
                }
                // The device leaves all of it to the algorithms.
                (None, Layer::Device) => {}
                (None, Layer::Algorithms) => {
                    fail!("{} has no choice of algorithm for {}", self.target(), rules.collective);
                }
            }
        }
        Ok(tree)
    }

    /// The tree of a collective's communicators, in front of what stood there: by ranks per node,
    /// where sections differ in these, then by size.
    fn tuned(&self, layer: Layer, rules: &Rules, own: &JsonTree) -> Result<JsonTree> {
        let per_node = |section: &LayoutRanges| section.procs().div_ceil(section.layout.nodes());
        let mut entries = Vec::new();
        for (most, sections) in grouped(&rules.sections, per_node) {
            let group = Rules { collective: rules.collective, sections };
            entries
                .push((format!("comm_avg_ppn<={most}"), self.tuned_in_order(layer, &group, own)?));
        }
        if let [_] = entries.as_slice() {
            // A single one without its condition: it is all that is known.
            return Ok(entries.pop().map_or_else(JsonTree::new, |(_, tree)| tree));
        }
        entries.push(("comm_size=any".into(), own.clone()));
        Ok(object(entries))
    }

    /// Of communicators with one number of ranks per node: by whether the ranks of each node follow
    /// each other, where sections differ in that, then by size.
    fn tuned_in_order(&self, layer: Layer, rules: &Rules, own: &JsonTree) -> Result<JsonTree> {
        let in_blocks = |section: &LayoutRanges| match LayoutKey::per_node(section.layout) {
            LayoutKey::PerNode { in_blocks, .. } => in_blocks,
            _ => false,
        };
        let mut entries = Vec::new();
        for (consecutive, sections) in grouped(&rules.sections, in_blocks) {
            let group = Rules { collective: rules.collective, sections };
            let answer = if consecutive { "yes" } else { "no" };
            let key = format!("is_node_consecutive={answer}");
            entries.push((key, self.tuned_by_size(layer, &group, own)?));
        }
        Ok(match entries.len() {
            2 => object(entries),
            _ => entries.pop().map_or_else(|| own.clone(), |(_, tree)| tree),
        })
    }

    /// The tree of communicators whose nodes are all alike.
    fn tuned_by_size(&self, layer: Layer, rules: &Rules, own: &JsonTree) -> Result<JsonTree> {
        let collective = rules.collective;
        let spans = spans(rules, self.one_for_all_sizes(collective).is_some())?;
        let spans = if counts_all_blocks(collective) { narrow(spans) } else { spans };
        let mut entries: Vec<(String, JsonTree)> = Vec::new();
        let mut free = 0;
        for span in &spans {
            if span.first > free + 1 {
                entries.push((format!("comm_size<={}", span.first - 1), own.clone()));
            }
            let tree = self.graft(layer, collective, span, own, own)?;
            entries.push((format!("comm_size<={}", span.last), tree));
            free = span.last;
        }
        entries.push(("comm_size=any".into(), own.clone()));
        Ok(object(entries))
    }

    /// Puts the bands below the conditions on the communicator.
    fn graft(
        &self,
        layer: Layer,
        collective: Collective,
        span: &ProcsSpan,
        own: &JsonTree,
        whole: &JsonTree,
    ) -> Result<JsonTree> {
        let on_communicator =
            |key: &String| key.starts_with("comm_") || key.starts_with("is_node_consecutive");
        if own.is_empty() || !own.keys().all(on_communicator) {
            return self.bands(layer, collective, span, own, whole);
        }
        let mut tree = JsonTree::new();
        for (key, below) in own {
            let holds = holds(key, span);
            if holds == Some(false) {
                continue;
            }
            let Some(below) = below.as_object() else {
                fail!("the library's tuning of {} holds no object at {key}", collective);
            };
            let below = self.graft(layer, collective, span, below, whole)?;
            if holds == Some(true) && tree.is_empty() {
                return Ok(below);
            }
            tree.insert(key.clone(), Value::Object(below));
            if holds == Some(true) {
                break;
            }
        }
        Ok(tree)
    }

    fn bands(
        &self,
        layer: Layer,
        collective: Collective,
        span: &ProcsSpan,
        own: &JsonTree,
        whole: &JsonTree,
    ) -> Result<JsonTree> {
        let tree_of = |method: &Method| match (method, layer) {
            (Method::Default, _) => Ok(own.clone()),
            (method, Layer::Algorithms) => self.guarded(collective, method, own),
            (_, Layer::Device) => straight(collective, whole),
        };
        if let [only] = &span.ranges[..] {
            return tree_of(&only.choice.method);
        }
        let size = if counts_all_blocks(collective) { "total_msg_size" } else { "avg_msg_size" };
        let mut entries = Vec::new();
        for range in span.ranges.iter() {
            // What lies between two multiples of the number of ranks belongs to none.
            let end = range
                .next_bytes()
                .map(|next| next.saturating_mul(scale(collective, span.first)) - 1);
            let tree = tree_of(&range.choice.method)?;
            match end {
                Some(end) if end < LARGEST => {
                    entries.push((format!("{size}<={end}"), tree));
                }
                _ => {
                    entries.push((format!("{size}=any"), tree));
                    break;
                }
            }
        }
        Ok(object(entries))
    }

    /// An algorithm behind the conditions without which it must not run; else what stood there.
    fn guarded(&self, collective: Collective, method: &Method, own: &JsonTree) -> Result<JsonTree> {
        let found = match method {
            Method::Native(native) => algorithms::find(self.version, collective, native)
                .map(|row| (row, native.segment_bytes)),
            _ => None,
        };
        let Some((row, segment_bytes)) = found else {
            fail!("{} cannot select {method} for {collective}", self.target());
        };
        let run = leaf(collective, row, segment_bytes);
        let own = || own.clone();
        let either = |yes: (&str, JsonTree), no: (&str, JsonTree)| {
            object([(yes.0.to_owned(), yes.1), (no.0.to_owned(), no.1)])
        };
        Ok(match row.needs {
            // Powers of two: it was chosen for one size, and holds at that size alone.
            CallRequirement::Nothing | CallRequirement::PowerOfTwo => run,
            CallRequirement::Commutative => {
                either(("is_commutative=yes", run), ("is_commutative=no", own()))
            }
            CallRequirement::NotInPlace => {
                either(("is_sendbuf_inplace=yes", own()), ("is_sendbuf_inplace=no", run))
            }
            CallRequirement::BuiltInAndManyElements => {
                let enough = either(("count<pow2", own()), ("count=any", run));
                either(("is_op_built_in=yes", enough), ("is_op_built_in=no", own()))
            }
        })
    }
}
