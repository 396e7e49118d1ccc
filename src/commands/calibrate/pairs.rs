//! The links between all pairs, for people.

use records::{pairs::PairMap, quantity};

/// The map in words.
pub fn summary(map: &PairMap) -> String {
    let noun = if map.one_per_node { "nodes" } else { "ranks" };
    let (links, count) = (map.links.len(), map.members.len());
    let size = quantity::format_bytes(map.bytes);
    let mut text = format!(
        "\n{} between {count} {noun}, messages of {size}: ",
        records::counted(links, "link")
    );
    match map.findings.is_empty() {
        true if links > 0 => text += "none stands out\n",
        _ => text += "\n",
    }
    for finding in &map.findings {
        text += &format!("  {}\n", finding.text);
    }
    for warning in &map.warnings {
        text += &format!("note: {warning}\n");
    }
    text
}
