//! The kinds of methods that the default is compared with.

use anyhow::Result;
use models::fan_outs;
use records::{
    Algorithm, Collective, Layout, Method, OwnMethod, Point, RankPlacement, profile::REPLACED,
};
use runner::mockups::{self, Limits};
use tuning::plan::MethodsOf;

use crate::{
    fitted_trees,
    kinds::MethodKind,
    natives::{self, Natives},
};
use site::{
    programs,
    ranks::{MemorySharing, Site},
    usage,
};

/// What is compared at a site.
#[derive(Debug, Clone)]
pub struct ComparedKinds {
    natives: Option<Natives>,
    /// The memory that mock-ups may use.
    pub limits: Limits,
    kinds: Vec<MethodKind>,
    /// Methods of shared memory are compared where each rank has a processor: elsewhere the preload library leaves
    /// calls to messages.
    sharing: MemorySharing,
    /// Nobody said which kinds.
    by_default: bool,
}

impl ComparedKinds {
    /// Of the kinds that are asked for; where none is, the library's own, and Colibri's too where these
    /// are not the very same algorithms or the library has none of a collective.
    ///
    /// # Errors
    /// The library's own are asked for and cannot be forced.
    pub fn at(site: &Site, asked: Option<&[MethodKind]>) -> Result<Self> {
        let natives = natives::of_site(site);
        let kinds = match (asked, natives) {
            // All that there are here.
            (Some(asked), None) if *asked == MethodKind::ALL => asked[1..].to_vec(),
            (Some(asked), _) => asked.to_vec(),
            (None, None) => vec![MethodKind::Own],
            (None, Some(natives)) if natives.library.has_all_of_ours() => vec![MethodKind::Native],
            (None, Some(_)) => vec![MethodKind::Native, MethodKind::Own],
        };
        if natives.is_none() && kinds.contains(&MethodKind::Native) {
            // One that does not start tells why.
            programs::library(&site.program()?)?;
            let able: Vec<&str> = libraries::ALL.iter().map(|library| library.title()).collect();
            usage!(
                "--methods native: the MPI library here is not known to be one whose algorithms can be \
                 forced ({})",
                able.join(", ")
            );
        }
        let (limits, sharing, by_default) = (site.limits, site.sharing(), asked.is_none());
        Ok(ComparedKinds { natives, limits, kinds, sharing, by_default })
    }

    /// Whether methods of a kind are compared.
    pub fn has(&self, kind: MethodKind) -> bool {
        self.kinds.contains(&kind)
    }

    /// The library's own, where they are compared.
    pub fn natives(&self) -> Option<Natives> {
        self.natives.filter(|_| self.has(MethodKind::Native))
    }

    /// At a point, beside the default and plug-ins.
    pub fn methods_at(&self, point: Point, segments: &[u64]) -> Vec<Method> {
        let Point { collective, layout, bytes } = point;
        let mut methods = Vec::new();
        if let Some(natives) = self.natives() {
            methods.extend(natives.at(point, segments));
            // It has jobs of its own, which a short tuning has no time for, and no file can load it: it is timed where
            // the library's own are asked for, so that what is compared with them is compared with its best.
            if !self.by_default && self.sharing == MemorySharing::All && layout.procs() > 1 {
                methods.extend(natives.library.of_one_node(collective).map(Method::Native));
            }
        }
        if self.has_own(collective) {
            methods.extend(own_methods(point, segments));
        }
        // No library's own are the very same.
        if self.has(MethodKind::Own) || self.by_default {
            methods.extend(shared_methods(point, segments, self.sharing));
        }
        if self.has(MethodKind::Mockup) {
            let all = mockups::of_collective(collective);
            let allowed =
                all.filter(|mockup| self.limits.allow(mockup, layout.procs(), bytes).is_ok());
            methods.extend(allowed.map(|mockup| Method::Mockup(mockup.name.into())));
        }
        methods
    }

    /// What to compare at each point of a grid.
    pub fn methods(self) -> MethodsOf {
        MethodsOf::new(move |point, segments| self.methods_at(point, segments))
    }

    /// The collectives to measure: those asked for, or where these are all that there are, those of which
    /// there is anything to compare that could be loaded.
    ///
    /// # Errors
    /// There is nothing to compare with the default of one that was asked for.
    pub fn measurable(&self, asked: &[Collective]) -> Result<Vec<Collective>> {
        if *asked == Collective::ALL {
            let can_be = |&collective: &Collective| self.check_loadable(collective).is_ok();
            return Ok(asked.iter().copied().filter(can_be).collect());
        }
        asked.iter().try_for_each(|&collective| self.check_compared(collective))?;
        Ok(asked.to_vec())
    }

    /// Whether there is anything to compare a collective's default with.
    fn check_compared(&self, collective: Collective) -> Result<()> {
        let is_there = |kind: &MethodKind| match kind {
            MethodKind::Native => self.has_natives(collective),
            MethodKind::Mockup => mockups::of_collective(collective).next().is_some(),
            MethodKind::Own | MethodKind::Plugin => true,
        };
        match (self.kinds.iter().any(is_there) || self.has_own(collective), self.natives()) {
            (true, _) => Ok(()),
            (false, Some(natives)) => {
                let title = natives.library.title();
                usage!("{title} has no algorithms of {collective} that can be forced")
            }
            (false, None) => usage!("none of the methods asked for carries out {collective}"),
        }
    }

    fn has_natives(&self, collective: Collective) -> bool {
        self.natives().is_some_and(|natives| !natives.library.algorithms(collective).is_empty())
    }

    fn has_own(&self, collective: Collective) -> bool {
        self.has(MethodKind::Own) || (self.by_default && !self.has_natives(collective))
    }

    /// Whether there is anything to compare a collective's default with that could be loaded.
    ///
    /// # Errors
    /// There is nothing.
    pub fn check_loadable(&self, collective: Collective) -> Result<()> {
        self.check_compared(collective)?;
        let has_plugins = self.has(MethodKind::Plugin);
        if self.has_natives(collective) || REPLACED.contains(&collective) || has_plugins {
            return Ok(());
        }
        let library = match self.natives() {
            Some(natives) => {
                let title = natives.library.title();
                format!("{title} has no algorithms of {collective} that can be forced")
            }
            None => "not known to be an MPI library whose algorithms can be forced".into(),
        };
        usage!(
            "{library}, and the preload library replaces no calls of {collective}; nothing could be loaded"
        )
    }
}

/// Our own algorithms at a point: each with every segment size that is less than the message, those
/// without segments once. Of several forms of an algorithm, the plain one. Where several nodes hold
/// several ranks, compositions by node too, and no fitted trees, which know one level alone.
pub fn own_methods(point: Point, segments: &[u64]) -> Vec<Method> {
    let Point { collective, layout, .. } = point;
    // A fitted tree that is fitted to nothing is a binomial tree.
    let is_plain = |one: &&Algorithm| {
        let is_apart = one.is_node_aware() || one.shares_memory() || **one == Algorithm::Fitted;
        one.plain().is_none() && !is_apart
    };
    let plain = Algorithm::ALL.iter().filter(is_plain);
    let mut forms: Vec<OwnMethod> =
        plain.copied().map(OwnMethod::plain).chain(fanned(point)).collect();
    if has_levels(layout) {
        forms.extend(node_aware(collective, layout));
    } else {
        forms.extend(fitted_trees::usual());
    }
    let can_run = |method: &OwnMethod| {
        runner::ScheduledMethod::new(collective, method)
            .is_ok_and(|method| method.check_ranks(layout.procs()).is_ok())
    };
    let mut methods = Vec::new();
    for form in forms {
        let streams = if form.algorithm == Algorithm::Circulant { form.fan_out } else { 1 };
        let cuts = (streams > 1 || !form.is_parametrized()) && can_run(&form.with_segment(1));
        let segments: &[u64] = if cuts { segments } else { &[0] };
        // A segment for each stream, of which there is more than one where there are segments.
        let segments = segments.iter().filter(|&&bytes| match bytes {
            0 => streams == 1 && !is_for_segments(&form),
            _ => bytes < point.bytes && point.bytes.div_ceil(bytes) >= streams.into(),
        });
        let cut = segments.map(|&bytes| form.with_segment(bytes));
        methods.extend(cut.filter(can_run).map(Method::Own));
    }
    methods
}

/// Methods of memory that ranks of a node share: on one node by themselves, on several inside compositions by node.
pub(crate) fn shared_methods(
    point: Point,
    segments: &[u64],
    sharing: MemorySharing,
) -> Vec<Method> {
    let Point { collective, layout, bytes } = point;
    let Some(shared) = schedules::shared_of_collective(collective) else { return Vec::new() };
    let forms: Vec<OwnMethod> = match sharing {
        MemorySharing::None => Vec::new(),
        _ if layout.procs() == 1 => Vec::new(),
        // Layouts of one node are written as one rank on each.
        MemorySharing::All => {
            let plain = OwnMethod::plain(shared.algorithm);
            // One group and a rest of it have nothing to gain.
            let groups = fan_outs(collective, shared.algorithm)
                .iter()
                .filter(|&&size| 2 * size <= layout.procs());
            let grouped = groups.map(|&fan_out| OwnMethod { fan_out, ..plain });
            std::iter::once(plain).chain(grouped).collect()
        }
        MemorySharing::OfNodes if !has_levels(layout) => Vec::new(),
        MemorySharing::OfNodes => {
            let intra = Some(shared.algorithm);
            let composed = node_aware(collective, layout)
                .filter(|method| !method.by_node)
                .filter(|method| method.inter != Some(Algorithm::TwoTrees));
            composed.map(|method| OwnMethod { intra, ..method }).collect()
        }
    };
    let can_run = |method: &OwnMethod| runner::ScheduledMethod::new(collective, method).is_ok();
    let cut = |form: OwnMethod| {
        // Chunks of some KiB wait for each other more than they move.
        let sizes =
            segments.iter().filter(move |size| **size == 0 || **size >= 8192 && **size < bytes);
        sizes.map(move |size| form.with_segment(*size)).filter(can_run)
    };
    forms.into_iter().flat_map(cut).map(Method::Own).collect()
}

/// Whether a method is for messages in segments alone: two trees of leaders send twice as many messages as
/// one, and ranks that share processors are woken for each.
fn is_for_segments(method: &OwnMethod) -> bool {
    method.inter == Some(Algorithm::TwoTrees)
}

/// Whether messages inside a node and between nodes differ.
fn has_levels(layout: Layout) -> bool {
    layout.nodes() > 1 && !layout.is_flat()
}

/// Fan-outs other than the standard ones: worth while only where there are more ranks, or where all
/// exchange with all at once. Only circulant ones cut messages.
fn fanned(point: Point) -> impl Iterator<Item = OwnMethod> {
    let Point { collective, layout, .. } = point;
    let fan_outs = Algorithm::ALL.iter().flat_map(move |&algorithm| {
        let fan_outs = fan_outs(collective, algorithm).iter();
        fan_outs.map(move |&fan_out| OwnMethod { fan_out, ..OwnMethod::plain(algorithm) })
    });
    let most = move |algorithm| match algorithm {
        // The first that is no less than the number of ranks, since fan-outs double at least.
        Algorithm::RecursiveMultiplying | Algorithm::KBruck => 2 * layout.procs() - 1,
        Algorithm::Circulant => u32::MAX,
        // A root with all the others as its children: linear.
        _ => layout.procs() - 1,
    };
    let is_one = move |method: &OwnMethod| {
        let is_apart = method.algorithm == Algorithm::Fitted || method.shares_memory();
        !is_apart && method.fan_out <= most(method.algorithm)
    };
    fan_outs.filter(is_one)
}

/// Between nodes, beside what a scheme has as standard: what moves long messages at full rate.
const BETWEEN_NODES: [Algorithm; 4] =
    [Algorithm::Pipeline, Algorithm::Ring, Algorithm::ScatterAllgather, Algorithm::Rabenseifner];

/// Compositions by node, of any collective; in blocks the ranks are in the order of nodes as they are.
fn node_aware(collective: Collective, layout: Layout) -> impl Iterator<Item = OwnMethod> {
    let is_block = layout.placement() == Some(RankPlacement::Block);
    let schemes = [Algorithm::TwoLevel, Algorithm::MultiLane].map(OwnMethod::plain);
    let composed = schemes
        .into_iter()
        .flat_map(|scheme| BETWEEN_NODES.map(|inter| OwnMethod { inter: Some(inter), ..scheme }));
    let renumbered = BETWEEN_NODES
        .map(|algorithm| OwnMethod { by_node: true, ..OwnMethod::plain(algorithm) })
        .into_iter()
        .filter(move |_| !is_block);
    // Elsewhere segments go through it as phases, which wait for each other.
    let trees = matches!(collective, Collective::Bcast | Collective::Reduce).then_some(OwnMethod {
        inter: Some(Algorithm::TwoTrees),
        ..OwnMethod::plain(Algorithm::TwoLevel)
    });
    schemes.into_iter().chain(composed).chain(renumbered).chain(trees)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(layout: &str, collective: Collective, bytes: u64) -> Vec<String> {
        let layout = layout.parse().unwrap();
        let methods = own_methods(Point { collective, layout, bytes }, &[0, 1024]);
        methods.iter().map(Method::to_string).collect()
    }

    #[test]
    fn a_barrier_through_shared_memory_is_compared_in_groups_of_which_there_are_several() {
        let names = |layout: &str| -> Vec<String> {
            let (collective, layout) = (Collective::Barrier, layout.parse().unwrap());
            let point = Point { collective, layout, bytes: 0 };
            let methods = shared_methods(point, &[0, 8192], MemorySharing::All);
            methods.iter().map(Method::to_string).collect()
        };
        let plain = "own:shared-flags".to_owned();
        let groups = |size: u32| format!("own:shared-flags,fan-out={size}");
        assert_eq!(names("7"), ["own:shared-flags"]);
        assert_eq!(names("16"), [plain.clone(), groups(4), groups(8)]);
        assert_eq!(names("48"), [plain, groups(4), groups(8), groups(16)]);
    }

    #[test]
    fn the_librarys_own_memory_of_a_node_is_compared_where_its_methods_are_asked_for() {
        let names = |sharing, by_default, collective, layout: &str| {
            let openmpi = records::Library::new("openmpi").unwrap();
            let library = libraries::find(openmpi).unwrap();
            let compared = ComparedKinds {
                natives: Some(Natives { library, version: (4, 1) }),
                limits: Limits::default(),
                kinds: vec![MethodKind::Native],
                sharing,
                by_default,
            };
            let point = Point { collective, layout: layout.parse().unwrap(), bytes: 64 };
            let methods = compared.methods_at(point, &[0]);
            methods.iter().map(Method::to_string).collect::<Vec<_>>()
        };
        let has = |names: Vec<String>| names.iter().any(|name| name == "native:openmpi:sm");
        for collective in [Collective::Bcast, Collective::Barrier] {
            assert!(has(names(MemorySharing::All, false, collective, "2")));
            assert!(!has(names(MemorySharing::All, false, collective, "1")));
            assert!(!has(names(MemorySharing::All, true, collective, "2")));
            assert!(!has(names(MemorySharing::OfNodes, false, collective, "2x2")));
            assert!(!has(names(MemorySharing::None, false, collective, "2")));
        }
        assert!(!has(names(MemorySharing::All, false, Collective::Alltoall, "2")));
    }

    #[test]
    fn compositions_by_node_are_compared_where_several_nodes_hold_several_ranks() {
        let by_node = |layout: &str, bytes| {
            let mut names = names(layout, Collective::Bcast, bytes);
            names.retain(|name| name.parse::<Method>().is_ok_and(|it| it.is_node_aware()));
            names
        };
        for one_level in ["8", "1x8"] {
            assert_eq!(by_node(one_level, 4096), [""; 0], "{one_level}");
        }
        let block = by_node("2x4", 4096);
        for method in [
            "own:two-level",
            "own:two-level,segment=1KiB",
            "own:multi-lane",
            "own:two-level,inter=pipeline,segment=1KiB",
            "own:two-level,inter=scatter-allgather",
            "own:two-level,inter=two-trees,segment=1KiB",
        ] {
            assert!(block.iter().any(|name| name == method), "{method} is not in {block:?}");
        }
        assert!(!by_node("2x4", 512).iter().any(|name| name.contains("segment")));
        assert!(!by_node("2x4", 512).iter().any(|name| name.contains("two-trees")));
        // In blocks the ranks are in the order of nodes as they are.
        assert!(!block.iter().any(|name| name.contains("order=node")), "{block:?}");
        let cyclic = by_node("2x4:cyclic", 4096);
        assert!(cyclic.iter().any(|name| name == "own:pipeline,order=node,segment=1KiB"));
    }

    #[test]
    fn fan_outs_and_fitted_trees_are_compared_whole() {
        let of = |collective, procs: &str| {
            let mut names = names(procs, collective, 4096);
            names.retain(|name| name.contains("fan-out") || name.contains("trip"));
            names
        };
        let fitted = [2, 4, 8].map(|trip| format!("own:fitted,trip={trip},gap=1"));
        let streams = [2, 4].map(|k| format!("own:circulant,fan-out={k},segment=1KiB"));
        assert_eq!(of(Collective::Bcast, "16"), [&streams[..], &fitted].concat());
        assert_eq!(of(Collective::Gather, "6"), ["own:k-nomial,fan-out=3"]);
        let multiplying = |fan_outs: &[u32]| -> Vec<String> {
            let name = |k: &u32| format!("own:recursive-multiplying,fan-out={k}");
            fan_outs.iter().map(name).collect()
        };
        assert_eq!(of(Collective::Allreduce, "32"), multiplying(&[3, 8, 16]));
        assert_eq!(of(Collective::Allreduce, "16"), multiplying(&[3, 8, 16]));
        assert_eq!(of(Collective::Allreduce, "7"), multiplying(&[3, 8]));
        assert_eq!(of(Collective::Allreduce, "4"), multiplying(&[3]));
    }

    #[test]
    fn fitted_trees_are_compared_where_there_is_one_level_alone() {
        let fitted = |layout: &str| {
            let mut names = names(layout, Collective::Bcast, 4096);
            names.retain(|name| name.contains("fitted"));
            names
        };
        assert_eq!(fitted("8").len(), fitted_trees::usual().count());
        assert_eq!(fitted("1x8").len(), fitted_trees::usual().count());
        assert!(fitted("4x2").is_empty(), "{:?}", fitted("4x2"));
    }

    #[test]
    fn each_method_is_there_once_and_can_run() {
        for collective in Collective::ALL {
            for layout in ["7", "2x4", "3x3:cyclic", "4+4+3"] {
                let names = names(layout, collective, 4096);
                let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
                assert_eq!(distinct.len(), names.len(), "{collective} {layout}: {names:?}");
                for name in &names {
                    let runnable = runner::Runnable::new(collective, &name.parse().unwrap());
                    assert!(runnable.unwrap().is_some(), "{collective} {layout} {name}");
                }
            }
        }
    }
}
