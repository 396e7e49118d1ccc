//! Nodes, and the algorithms that look at them, as `predict` and `draw` take them from their flags.

use std::{collections::BTreeSet, ffi::OsString};

use anyhow::Result;
use clap::Args;
use records::{Algorithm, Collective, Layout, OwnMethod, nearest, quoted};
use schedules::{
    Entry, find, find_named, find_node_aware, find_part, find_part_inside, of_collective, parts,
    shared_of_collective,
};

use site::{error::WrongUse, usage};

/// Over the flags of nodes in a help text.
const NODES: &str = "Nodes of several ranks";

/// Which ranks are on which node, and what is done about it, of one picture.
#[derive(Debug, Clone, Args)]
pub struct LevelOptions {
    /// Nodes and ranks on each, such as 8x4, 8x4:cyclic or 4+4+3 [default: a node for each rank]
    #[arg(long = "layouts", value_name = "NODESxRANKS", group = "nodes", help_heading = NODES)]
    pub layout: Option<Layout>,

    #[command(flatten)]
    pub composition: CompositionOptions,
}

/// What messages inside a node cost, and how algorithms are composed by nodes.
#[derive(Debug, Clone, Args)]
pub struct CompositionOptions {
    /// A calibration inside a node [default: the one in --calibration, else the parameters
    /// between nodes]
    #[arg(long, value_name = "RUN|FILE|preset:NAME", requires = "nodes", hide_short_help = true, help_heading = NODES)]
    pub inside: Option<OsString>,

    /// Algorithm between nodes, of two-level and multi-lane
    #[arg(long, value_name = "NAME", requires = "nodes", hide_short_help = true, help_heading = NODES)]
    pub inter: Option<Algorithm>,

    /// Algorithm inside a node, of two-level and multi-lane
    #[arg(long, value_name = "NAME", requires = "nodes", hide_short_help = true, help_heading = NODES)]
    pub intra: Option<Algorithm>,

    /// Renumber the ranks node by node, for algorithms other than two-level and multi-lane
    #[arg(long, requires = "nodes", hide_short_help = true, help_heading = NODES)]
    pub by_node: bool,
}

/// An algorithm, and what it has to do with nodes.
#[derive(Debug, Clone)]
pub struct PlacedAlgorithm {
    pub entry: &'static Entry,
    /// Without segments.
    pub method: OwnMethod,
    /// None: each rank is on a node of its own.
    pub layout: Option<Layout>,
}

impl PlacedAlgorithm {
    /// What runs on renumbered ranks.
    pub fn renumbered(&self) -> Option<&'static Entry> {
        let inner = self.method.by_node.then_some(self.method.algorithm)?;
        find(self.entry.collective, inner)
    }

    /// Of all algorithms those are left out, and it is said, that can't do with `procs`; one that
    /// was asked for by name is an error instead.
    pub fn leaves_out(&self, procs: u32, all: bool) -> bool {
        let entry = self.renumbered().unwrap_or(self.entry);
        let unfit = entry.requirements.even && procs > 1 && !procs.is_multiple_of(2);
        if unfit && all {
            let Entry { collective, name, .. } = entry;
            say!("{collective} {name} skipped for {procs} ranks: it needs an even number");
        }
        unfit && all
    }

    /// Where a part of it goes through memory: what it takes to be predicted or drawn.
    pub fn through_memory(&self) -> Option<String> {
        let named = self.method.intra.filter(|intra| intra.shares_memory())?;
        let Entry { collective, name, .. } = self.entry;
        Some(format!(
            "--intra: {named} goes through memory that the ranks of a node share. Models refined and simulated \
             predict {collective} {name} with it, and `draw` draws it, where the calibration has `memory.shared`. \
             `colibri verify --methods own` measures it where nodes hold several ranks"
        ))
    }

    /// The method with segments of so many bytes (0: none), and with another fan-out where one is given.
    pub fn parametrized(&self, fan_out: Option<u32>, segment_bytes: u64) -> OwnMethod {
        let method = self.method.with_segment(segment_bytes);
        OwnMethod { fan_out: fan_out.unwrap_or(method.fan_out), ..method }
    }
}

impl CompositionOptions {
    /// The algorithm of a name, on the nodes of a layout where one is given.
    ///
    /// # Errors
    /// There is none, or it has no part of that name.
    pub fn named(
        &self,
        layout: Option<Layout>,
        collective: Collective,
        name: &str,
    ) -> Result<PlacedAlgorithm> {
        let scheme = [Algorithm::TwoLevel, Algorithm::MultiLane].into_iter();
        if let Some(scheme) = scheme.clone().find(|scheme| scheme.name() == name) {
            let Some(entry) = find_node_aware(collective, scheme) else {
                usage!("{collective} has no {scheme}");
            };
            if layout.is_none() {
                usage!("{name} depends on which ranks share a node; give --layouts, such as 8x4");
            }
            return self.composed(layout, entry);
        }
        let entry = find_named(collective, name).map_err(|error| {
            let near = nearest(name, scheme.map(Algorithm::name));
            let hint = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
            WrongUse(format!("{error}{hint}"))
        })?;
        self.placed(layout, entry)
    }

    /// All algorithms of a collective.
    ///
    /// # Errors
    /// Some part has no algorithm of the name given.
    pub fn all(
        &self,
        layout: Option<Layout>,
        collective: Collective,
    ) -> Result<Vec<PlacedAlgorithm>> {
        let schemes = [Algorithm::TwoLevel, Algorithm::MultiLane];
        let composed = schemes.into_iter().filter_map(|scheme| find_node_aware(collective, scheme));
        let composed = composed.filter(|_| layout.is_some());
        let all = of_collective(collective).map(|entry| self.placed(layout, entry));
        all.chain(composed.map(|entry| self.composed(layout, entry))).collect()
    }

    /// An algorithm that doesn't look at nodes, by itself or on renumbered ranks.
    fn placed(&self, layout: Option<Layout>, entry: &'static Entry) -> Result<PlacedAlgorithm> {
        let plain = OwnMethod::plain(entry.algorithm);
        match find_node_aware(entry.collective, Algorithm::NodeOrder).filter(|_| self.by_node) {
            Some(entry) => {
                let method = OwnMethod { by_node: true, ..plain };
                Ok(PlacedAlgorithm { entry, method, layout })
            }
            None => Ok(PlacedAlgorithm { entry, method: plain, layout }),
        }
    }

    fn composed(&self, layout: Option<Layout>, entry: &'static Entry) -> Result<PlacedAlgorithm> {
        let (inter, intra) = (self.inter, self.intra);
        let (between, inside) = parts(entry);
        for (flag, named, parts) in [("inter", inter, between), ("intra", intra, inside)] {
            let find = if flag == "intra" { find_part_inside } else { find_part };
            if let Some(named) = named.filter(|named| find(parts, *named).is_none()) {
                if named.shares_memory() && flag == "inter" {
                    usage!(
                        "--inter: {named} goes through memory, which ranks of different nodes do not share"
                    );
                }
                let all = parts.iter().flat_map(|part| of_collective(*part));
                let inside = parts.iter().filter(|_| flag == "intra");
                let shared = inside.filter_map(|part| shared_of_collective(*part));
                let mut names: Vec<&str> = all.chain(shared).map(|entry| entry.name).collect();
                let mut seen = BTreeSet::new();
                names.retain(|name| seen.insert(*name));
                let (given, names) = (quoted(named.name()), names.join(", "));
                usage!(
                    "--{flag}: no part of {} {} is {given} (known: {names})",
                    entry.collective,
                    entry.name
                );
            }
        }
        let method = OwnMethod { inter, intra, ..OwnMethod::plain(entry.algorithm) };
        Ok(PlacedAlgorithm { entry, method, layout })
    }
}
