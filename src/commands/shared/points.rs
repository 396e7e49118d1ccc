//! Which points several subcommands measure.

use anyhow::Result;
use clap::Args;
use records::Layout;

use super::options::{GRID, List, layouts, procs, sizes};
use site::ranks::Site;
use stages::measuring;

#[derive(Debug, Args)]
pub struct PointOptions {
    /// Communicator sizes: 4,8,16 or 2..32 (every one) [default: all ranks]
    #[arg(long, short, value_name = "LIST", value_parser = procs, help_heading = GRID)]
    procs: Option<List<u32>>,

    /// Instead of --procs, which ranks are on which node: 4x4,8x4 (nodes x ranks
    /// per node), 8x4:cyclic, 4+4+3
    #[arg(long, value_name = "LIST", value_parser = layouts, conflicts_with = "procs", help_heading = GRID)]
    layouts: Option<List<Layout>>,

    /// Message sizes: 1KiB,64KiB or 1..8MiB (powers of two), as each collective defines them
    #[arg(long, short = 'm', value_name = "LIST", value_parser = sizes, default_value = "1..64KiB", help_heading = GRID)]
    pub sizes: List<u64>,
}

impl PointOptions {
    /// The communicators' ranks and nodes; of all ranks where nothing is given.
    ///
    /// # Errors
    /// There are too few ranks, or other nodes.
    pub fn layouts(&self, site: &Site) -> Result<Vec<Layout>> {
        let layouts = match (&self.layouts, &self.procs) {
            (Some(layouts), _) => layouts.0.clone(),
            (None, Some(procs)) => procs.0.iter().map(|&procs| site.of_first(procs)).collect(),
            (None, None) => vec![site.of_first(site.ranks())],
        };
        measuring::check_layouts(&layouts, site)?;
        Ok(layouts)
    }
}
