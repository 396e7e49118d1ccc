//! A layout in text and in files.

use std::{fmt, str::FromStr};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};

use super::{Form, Layout, MAX_LISTED, RankPlacement};
use crate::{quoted, unknown};

const FORMS: &str = "expected nodes x ranks per node as 8x4 or 8x4:cyclic, the ranks of each node as \
                     4+4+3, the node of each rank as list:0*2.1.0, or a number of nodes with one rank each";

impl FromStr for RankPlacement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "block" => Ok(RankPlacement::Block),
            "cyclic" => Ok(RankPlacement::Cyclic),
            _ => Err(unknown("placement of ranks", text, &["block", "cyclic"])),
        }
    }
}

impl fmt::Display for RankPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RankPlacement::Block => "block",
            RankPlacement::Cyclic => "cyclic",
        })
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let fault = |problem: String| format!("layout {}: {problem}", quoted(text));
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| fault(FORMS.into()));
        if let Some(list) = text.strip_prefix("list:") {
            let nodes = listed(list, number, &fault)?;
            return Layout::from_nodes(&nodes).map_err(fault);
        }
        let (ranks, placement) = match text.split_once(':') {
            Some((ranks, placement)) => (ranks, placement.parse().map_err(fault)?),
            None => (text, RankPlacement::Block),
        };
        if let Some((nodes, per_node)) = ranks.split_once('x') {
            return Layout::even(number(nodes)?, number(per_node)?, placement).map_err(fault);
        }
        let counts: Vec<u32> = ranks.split('+').map(number).collect::<Result<_, String>>()?;
        match counts[..] {
            [nodes] => Layout::even(nodes, 1, placement).map_err(fault),
            _ => Layout::from_counts(&counts, placement).map_err(fault),
        }
    }
}

/// The nodes of a list of ranks: `0*2.1` is 0, 0, 1.
fn listed(
    list: &str,
    number: impl Fn(&str) -> Result<u32, String>,
    fault: &impl Fn(String) -> String,
) -> Result<Vec<u32>, String> {
    let mut nodes = Vec::new();
    for part in list.split('.') {
        let (node, times) = match part.split_once('*') {
            Some((node, times)) => (number(node)?, number(times)? as usize),
            None => (number(part)?, 1),
        };
        if nodes.len().saturating_add(times) > MAX_LISTED {
            return Err(fault(format!(
                "lists more than {MAX_LISTED} ranks, one by one; write more as nodes x ranks of each, e.g. 8192x16"
            )));
        }
        nodes.extend(std::iter::repeat_n(node, times));
    }
    Ok(nodes)
}

/// As [`FromStr`] reads it; one rank per node as a plain number, by `{:#}` as `8x1`.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.form {
            Form::Even { per_node: 1, .. } if !f.alternate() => self.nodes.to_string(),
            Form::Even { per_node, placement } => {
                format!("{}x{per_node}{}", self.nodes, suffix(placement))
            }
            Form::Counts { counts, placement } => {
                let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
                format!("{}{}", counts.join("+"), suffix(placement))
            }
            Form::List(list) => {
                let runs = list.chunk_by(|one, next| one == next);
                let runs: Vec<String> = runs.map(run).collect();
                format!("list:{}", runs.join("."))
            }
        };
        // Numbers stand at the right of their column.
        match f.width() {
            Some(width) if f.align().is_none() && self.is_flat() => write!(f, "{text:>width$}"),
            _ => f.pad(&text),
        }
    }
}

impl Layout {
    /// Several in words: `2, 4, 8 ranks`, `2 ranks, 8 ranks (2 nodes x 4)`.
    pub fn all_in_words(layouts: impl IntoIterator<Item = Layout>) -> String {
        let layouts: Vec<Layout> = layouts.into_iter().collect();
        match layouts.iter().all(|layout| layout.is_flat()) {
            true => {
                let procs: Vec<String> = layouts.iter().map(Layout::to_string).collect();
                format!("{} ranks", procs.join(", "))
            }
            false => {
                let words: Vec<String> = layouts.into_iter().map(Layout::in_words).collect();
                words.join(", ")
            }
        }
    }

    /// What layouts of several numbers of ranks may have in common: `4 per node`, `4 per node, cyclic`; of nodes that
    /// differ the whole layout.
    pub fn per_node_in_words(self) -> String {
        match (self.per_node(), self.placement()) {
            (Some(each), Some(RankPlacement::Cyclic)) => format!("{each} per node, cyclic"),
            (Some(each), _) => format!("{each} per node"),
            (None, _) => self.in_words(),
        }
    }

    /// In words: `8 ranks`, `8 ranks (2 nodes x 4)`, `11 ranks (nodes of 4+4+3)`.
    pub fn in_words(self) -> String {
        let cyclic = match self.placement() {
            Some(RankPlacement::Cyclic) => ", cyclic",
            _ => "",
        };
        let ranks = format!("{} ranks", self.procs());
        match self.form {
            Form::Even { per_node: 1, .. } => ranks,
            Form::Even { per_node, .. } => {
                let nodes = crate::counted(self.nodes, "node");
                format!("{ranks} ({nodes} x {per_node}{cyclic})")
            }
            Form::Counts { counts, .. } => {
                let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
                format!("{ranks} (nodes of {}{cyclic})", counts.join("+"))
            }
            Form::List(_) => format!("{ranks} (in no regular order on {} nodes)", self.nodes),
        }
    }
}

fn suffix(placement: RankPlacement) -> &'static str {
    match placement {
        RankPlacement::Block => "",
        RankPlacement::Cyclic => ":cyclic",
    }
}

fn run(ranks: &[u32]) -> String {
    match ranks {
        [node] => node.to_string(),
        [node, ..] => format!("{node}*{}", ranks.len()),
        [] => String::new(),
    }
}

/// One rank per node as the number of ranks, all else as text.
impl Serialize for Layout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.is_flat() {
            true => serializer.serialize_u32(self.procs()),
            false => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Layout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LayoutVisitor)
    }
}

struct LayoutVisitor;

impl Visitor<'_> for LayoutVisitor {
    type Value = Layout;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of ranks or a layout such as 8x4")
    }

    // 0 is left to who checks the file, so that the field is named as for any other number.
    fn visit_u64<E: Error>(self, procs: u64) -> Result<Layout, E> {
        u32::try_from(procs)
            .map(Layout::flat)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(procs), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Layout, E> {
        text.parse().map_err(E::custom)
    }
}
