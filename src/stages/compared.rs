//! The kinds of methods that the default is compared with.

use anyhow::Result;
use models::fan_outs;
use records::{
    Algorithm, Collective, Layout, Method, NodeAware, Point, RankPlacement, Shaped, TreePace,
    profile::REPLACED,
};
use runner::{
    Runnable,
    mockups::{self, Limits},
};
use tuning::plan::MethodsOf;

use crate::{
    error::usage,
    site::{programs, ranks::Site},
    stages::{
        kinds::MethodKind,
        natives::{self, Natives},
        options::is_all,
    },
};

/// What is compared at a site.
#[derive(Debug, Clone)]
pub struct ComparedKinds {
    natives: Option<Natives>,
    /// The memory that mock-ups may use.
    pub limits: Limits,
    kinds: Vec<MethodKind>,
}

impl ComparedKinds {
    /// Of the kinds that are asked for; where none is, the library's own, and Colibri's too where these
    /// are not the very same algorithms.
    ///
    /// # Errors
    /// The library's own are asked for and cannot be forced.
    pub fn at(site: &Site, asked: Option<&[MethodKind]>) -> Result<Self> {
        let natives = natives::of(site);
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
        Ok(ComparedKinds { natives, limits: site.limits, kinds })
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
        }
        if self.has(MethodKind::Own) {
            methods.extend(own_methods(point, segments));
        }
        if self.has(MethodKind::Mockup) {
            let all = mockups::of_collective(collective);
            let allowed =
                all.filter(|mockup| self.limits.allow(mockup, layout.procs(), bytes).is_ok());
            methods.extend(allowed.map(|mockup| Method::Mockup(mockup.name.into())));
        }
        methods
    }

    /// The same for a grid.
    pub fn methods(self) -> MethodsOf {
        MethodsOf::new(move |point, segments| self.methods_at(point, segments))
    }

    /// The collectives to measure: those asked for, or where these are all that there are, those of which
    /// there is anything to compare.
    ///
    /// # Errors
    /// There is nothing to compare with the default of one that was asked for.
    pub fn measurable(&self, asked: &[Collective]) -> Result<Vec<Collective>> {
        if !is_all(asked) {
            asked.iter().try_for_each(|&collective| self.check(collective))?;
            return Ok(asked.to_vec());
        }
        Ok(asked.iter().copied().filter(|&collective| self.check(collective).is_ok()).collect())
    }

    /// Whether there is anything to compare a collective's default with that could be loaded.
    ///
    /// # Errors
    /// There is nothing.
    fn check(&self, collective: Collective) -> Result<()> {
        let natives = self.natives().map(|natives| natives.library);
        let has_natives = natives.is_some_and(|of| !of.algorithms(collective).is_empty());
        let others = [MethodKind::Own, MethodKind::Mockup].into_iter().any(|kind| self.has(kind));
        if has_natives || (others && REPLACED.contains(&collective)) || self.has(MethodKind::Plugin)
        {
            return Ok(());
        }
        match natives {
            Some(library) if !others => {
                usage!("{} has no algorithms of {collective} that can be forced", library.title())
            }
            Some(library) => usage!(
                "{} has no algorithms of {collective} that can be forced, and the preload library \
                 replaces no calls of it; nothing could be loaded",
                library.title()
            ),
            None => usage!(
                "not known to be an MPI library whose algorithms can be forced, and the preload library \
                 replaces no calls of {collective}; nothing could be loaded"
            ),
        }
    }
}

/// Our own algorithms at a point: each with every segment size that is less than the message, those
/// without segments once. Of several forms of an algorithm, the plain one. Where several nodes hold
/// several ranks, compositions by node too.
pub fn own_methods(point: Point, segments: &[u64]) -> Vec<Method> {
    let Point { collective, layout, .. } = point;
    let plain = Algorithm::ALL.iter().filter(|algorithm| algorithm.plain().is_none());
    let plain = plain.map(|&algorithm| Method::Own { algorithm, segment_bytes: 0 });
    let mut forms: Vec<Method> = plain.chain(shaped(point)).collect();
    if layout.nodes() > 1 && !layout.is_flat() {
        forms.extend(node_aware(layout).map(Method::NodeAware));
    }
    let can_run = |method: &Method| match Runnable::new(collective, method) {
        Ok(Some(Runnable::Algorithm(method))) => method.check_ranks(layout.procs()).is_ok(),
        _ => false,
    };
    let mut methods = Vec::new();
    for form in forms {
        let has_segments = !matches!(form, Method::Shaped(_));
        let cuts = has_segments && can_run(&form.clone().with_segment(1));
        let segments: &[u64] = if cuts { segments } else { &[0] };
        let segments = segments.iter().filter(|&&bytes| bytes == 0 || bytes < point.bytes);
        methods.extend(segments.map(|&bytes| form.clone().with_segment(bytes)).filter(can_run));
    }
    methods
}

/// How many gaps a trip lasts on which fitted trees are made. It is their ratio alone that shapes them;
/// as long as each other they are plain: binomial trees.
const TRIPS: [u32; 3] = [2, 4, 8];

/// Fan-outs other than the standard ones, and fitted trees. The former are worth while only where there
/// are more ranks, and cut no messages.
fn shaped(point: Point) -> impl Iterator<Item = Method> {
    let Point { collective, layout, .. } = point;
    let fan_outs = Algorithm::ALL.iter().flat_map(move |&algorithm| {
        let fan_outs = fan_outs(collective, algorithm).iter();
        fan_outs.map(move |&fan_out| Shaped { fan_out, ..Shaped::plain(algorithm) })
    });
    let below = move |shaped: &Shaped| {
        shaped.algorithm != Algorithm::Fitted && shaped.fan_out < layout.procs()
    };
    let fitted = TRIPS
        .map(|trip| Shaped { pace: TreePace { trip, gap: 1 }, ..Shaped::plain(Algorithm::Fitted) });
    fan_outs.filter(below).chain(fitted).map(Method::from)
}

/// Between nodes, beside what a scheme has as standard: what moves long messages at full rate.
const BETWEEN_NODES: [Algorithm; 4] =
    [Algorithm::Pipeline, Algorithm::Ring, Algorithm::ScatterAllgather, Algorithm::Rabenseifner];

/// Compositions by node, of any collective; in blocks the ranks are in the order of nodes as they are.
fn node_aware(layout: Layout) -> impl Iterator<Item = NodeAware> {
    let is_block = layout.placement() == Some(RankPlacement::Block);
    let schemes = [Algorithm::TwoLevel, Algorithm::MultiLane].into_iter();
    let standard = schemes.clone().map(|scheme| (scheme, None));
    let others = schemes.chain((!is_block).then_some(Algorithm::NodeOrder));
    let others = others.flat_map(|scheme| BETWEEN_NODES.map(|inter| (scheme, Some(inter))));
    let composed = |(scheme, inter)| NodeAware { scheme, inter, intra: None, segment_bytes: 0 };
    standard.chain(others).map(composed)
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
    fn compositions_by_node_are_compared_where_several_nodes_hold_several_ranks() {
        let by_node = |layout: &str, bytes| {
            let mut names = names(layout, Collective::Bcast, bytes);
            names.retain(|name| {
                name.parse::<Method>().is_ok_and(|it| matches!(it, Method::NodeAware(_)))
            });
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
        ] {
            assert!(block.iter().any(|name| name == method), "{method} is not in {block:?}");
        }
        assert!(!by_node("2x4", 512).iter().any(|name| name.contains("segment")));
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
        assert_eq!(of(Collective::Bcast, "16"), fitted);
        assert_eq!(of(Collective::Gather, "6"), ["own:k-nomial,fan-out=3"]);
        let fan_outs = [3, 8].map(|k| format!("own:recursive-multiplying,fan-out={k}"));
        assert_eq!(of(Collective::Allreduce, "16"), fan_outs);
    }

    #[test]
    fn each_method_is_there_once_and_can_run() {
        for collective in Collective::ALL {
            for layout in ["7", "2x4", "3x3:cyclic", "4+4+3"] {
                let names = names(layout, collective, 4096);
                let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
                assert_eq!(distinct.len(), names.len(), "{collective} {layout}: {names:?}");
                for name in &names {
                    let runnable = Runnable::new(collective, &name.parse().unwrap());
                    assert!(runnable.unwrap().is_some(), "{collective} {layout} {name}");
                }
            }
        }
    }
}
