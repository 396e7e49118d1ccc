//! The layers of the root package: commands over stages over site.

use crate::graph::Imports;

/// From the top: each layer uses those after it alone.
const LAYERS: [&str; 3] = ["src/commands/", "src/stages/", "src/site/"];
/// What commands have in common.
const SHARED: &str = "shared";

/// What is wrong with imports between layers and between commands. Which command a file belongs to is
/// told by the name below `src/commands/`.
pub fn layer_problems(imports: &Imports) -> Vec<String> {
    let pairs = imports.iter().flat_map(|(from, targets)| targets.iter().map(move |to| (from, to)));
    pairs.filter_map(|(from, to)| problem(from, to)).collect()
}

fn problem(from: &str, to: &str) -> Option<String> {
    let layer = |file: &str| LAYERS.iter().position(|layer| file.starts_with(layer));
    if layer(to)? < layer(from)? {
        return Some(format!("{from} imports {to}, which is a layer above it"));
    }
    let (of, other) = (command(from)?, command(to)?);
    match other {
        SHARED => None,
        _ if of == other => None,
        _ if of == SHARED => Some(format!("{from} is shared, but imports a command's {to}")),
        _ => Some(format!("{from} imports another command's {to}; what two need is {SHARED}")),
    }
}

/// `verify` of `src/commands/verify.rs` and of `src/commands/verify/grid.rs`; nothing for the file that
/// declares the commands.
fn command(file: &str) -> Option<&str> {
    let name = file.strip_prefix(LAYERS[0])?.split('/').next()?;
    let name = name.strip_suffix(".rs").unwrap_or(name);
    (name != "mod").then_some(name)
}
