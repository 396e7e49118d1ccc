//! Parts of MPICH's tree of conditions.

use std::collections::BTreeMap;

use records::Collective;
use serde_json::{Map, Value};

use super::algorithms::{self, MpichAlgorithm};
use crate::{
    error::{Result, fail},
    rules::LayoutRanges,
    spans::ProcsSpan,
};

/// Conditions, in their order, with what holds below each.
pub(super) type JsonTree = Map<String, Value>;

/// Of conditions and trees.
pub(super) fn object(entries: impl IntoIterator<Item = (String, JsonTree)>) -> JsonTree {
    entries.into_iter().map(|(key, tree)| (key, Value::Object(tree))).collect()
}

/// Sections with the same key, ascending by it.
pub(super) fn grouped<K: Ord>(
    sections: &[LayoutRanges],
    key: impl Fn(&LayoutRanges) -> K,
) -> BTreeMap<K, Vec<LayoutRanges>> {
    let mut groups: BTreeMap<K, Vec<LayoutRanges>> = BTreeMap::new();
    for section in sections {
        groups.entry(key(section)).or_default().push(section.clone());
    }
    groups
}

/// Whether a condition on the communicator's size holds for all of a span, or for none of it.
pub(super) fn holds(key: &str, span: &ProcsSpan) -> Option<bool> {
    let ProcsSpan { first, last, .. } = *span;
    let all_up_to = |most: u32| match () {
        () if last <= most => Some(true),
        () if first > most => Some(false),
        () => None,
    };
    match key.strip_prefix("comm_size")? {
        "=any" => Some(true),
        "=pow2" if first == last => Some(first.is_power_of_two()),
        condition => match condition.strip_prefix("<=") {
            Some(most) => all_up_to(most.parse().ok()?),
            None => all_up_to(condition.strip_prefix('<')?.parse::<u32>().ok()?.checked_sub(1)?),
        },
    }
}

/// By which the device leaves a call to the algorithms: what it does where the ranks of a communicator
/// have no nodes in common, which is the last of its choices.
pub(super) fn straight(collective: Collective, tree: &JsonTree) -> Result<JsonTree> {
    match tree.iter().next_back() {
        Some((key, _)) if key.starts_with("composition=") => {
            Ok(object([(key.clone(), JsonTree::new())]))
        }
        Some((_, Value::Object(below))) => straight(collective, below),
        _ => fail!("the device's tuning of {collective} names no composition"),
    }
}

/// An algorithm with its parameters.
pub(super) fn leaf(collective: Collective, row: &MpichAlgorithm, segment_bytes: u64) -> JsonTree {
    let mut parameters: Vec<String> = row.parameters.iter().map(|&text| text.into()).collect();
    if let Some(segment) = row.segment {
        parameters.push(format!("{}={segment_bytes}", segment.name));
        parameters.extend(segment.followed_by.iter().map(|&text| text.into()));
    }
    let key = format!("algorithm={}", algorithms::function(collective, row));
    object([(key, object(parameters.into_iter().map(|text| (text, JsonTree::new()))))])
}
