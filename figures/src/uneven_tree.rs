//! How blocks of unequal size travel, as Graphviz text.

use std::collections::BTreeMap;

use records::Collective;
use schedules::{Buffer, Call, Entry, Range, Round, Step};

use crate::FigureError;

/// Most ranks of such a text: each may be told the counts of all.
const MAX_RANKS: usize = 1 << 12;

/// The tree of a scatterv or gatherv in Graphviz's language: each rank with its count, an edge for each
/// rank that hands blocks on, with its place in the order in which its parent serves its children, and
/// the elements that travel.
///
/// # Errors
/// The algorithm is of another collective, or can't be called so; there are too many ranks.
pub fn uneven_dot(entry: &Entry, counts: &[u64], root: u32) -> Result<String, FigureError> {
    if !matches!(entry.collective, Collective::Scatterv | Collective::Gatherv) {
        let problem = format!(
            "{} has no blocks of unequal size here; scatterv and gatherv have",
            entry.collective
        );
        return Err(FigureError::Impossible(problem));
    }
    if counts.len() > MAX_RANKS {
        let (what, count) = ("ranks", counts.len());
        return Err(FigureError::TooMuch { what, count, limit: MAX_RANKS });
    }
    let displacements: Vec<u64> = counts
        .iter()
        .scan(0, |end: &mut u64, count| Some(std::mem::replace(end, end.saturating_add(*count))))
        .collect();
    let call =
        Call { root, counts, displacements: &displacements, ..Call::new(counts.len() as u32, 0) };
    entry.check_everywhere(&call).map_err(|error| FigureError::Impossible(error.to_string()))?;
    let (collective, name) = (entry.collective, entry.name);
    let mut text = format!("digraph \"{collective} {name}\" {{\n");
    text += &format!("  label=\"{collective} {name}, {} ranks, root {root}\";\n", counts.len());
    text += "  ordering=out;\n  node [shape=circle];\n";
    for (rank, count) in counts.iter().enumerate() {
        let shape = if rank as u32 == root { ", shape=doublecircle" } else { "" };
        text += &format!("  {rank} [label=\"{rank}\\n{count}\"{shape}];\n");
    }
    for rank in 0..counts.len() as u32 {
        for (place, (child, elements)) in children(entry, &call, rank).into_iter().enumerate() {
            let (from, to) = match collective {
                Collective::Gatherv => (child, rank),
                _ => (rank, child),
            };
            text += &format!("  {from} -> {to} [label=\"{}: {elements}\"];\n", place + 1);
        }
    }
    Ok(text + "}\n")
}

/// Whom a rank serves, in its order, and with how many elements.
fn children(entry: &Entry, call: &Call<'_>, rank: u32) -> Vec<(u32, u64)> {
    // A rank is told the counts of all ranks, or those of its subtree, which begins with its own.
    let words = entry.needs(call, rank).header as usize;
    let first = if words == call.counts.len() { 0 } else { rank as usize };
    let header: Vec<u64> = call.counts.iter().cycle().skip(first).take(words).copied().collect();
    // Away from the root its own count is all that it knows otherwise.
    let own = &call.counts[rank as usize..=rank as usize];
    let counts = if rank == call.root { call.counts } else { own };
    let call = Call { header: &header, counts, ..*call };
    let mut order = Vec::new();
    let mut elements: BTreeMap<u32, u64> = BTreeMap::new();
    let mut round = Round::default();
    for index in 0..entry.needs(&call, rank).rounds {
        entry.round(&call, rank, index, &mut round);
        for step in round.steps() {
            let Some((peer, range)) = served(entry.collective, step) else { continue };
            if !elements.contains_key(&peer) {
                order.push(peer);
            }
            *elements.entry(peer).or_default() += range.count;
        }
    }
    order.into_iter().map(|peer| (peer, elements[&peer])).collect()
}

/// Data for a child, or from one; a rank that isn't the root has one partner more, its parent, to which
/// it only sends, or from which it only receives.
fn served(collective: Collective, step: &Step) -> Option<(u32, Range)> {
    let (peer, range) = match (collective, *step) {
        (Collective::Gatherv, Step::Receive { peer, range, .. }) => (peer, range),
        (
            Collective::Scatterv,
            Step::Send { peer, range, .. } | Step::SendReady { peer, range, .. },
        ) => (peer, range),
        _ => return None,
    };
    let is_data = !matches!(range.buffer, Buffer::Header | Buffer::Counts);
    (is_data && range.count > 0).then_some((peer, range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::Algorithm;

    fn edges(collective: Collective, algorithm: Algorithm, counts: &[u64]) -> Vec<String> {
        let entry = schedules::find(collective, algorithm).unwrap();
        let text = uneven_dot(entry, counts, 0).unwrap();
        let edges = text.lines().filter(|line| line.contains("->"));
        edges
            .map(|line| {
                line.trim().replace([';', '"'], "").replace(" [label=", " ").replace(']', "")
            })
            .collect()
    }

    #[test]
    fn flat_trees_show_the_order_in_which_ranks_are_served() {
        let counts = [5, 30, 0, 10];
        for (algorithm, wanted) in [
            (Algorithm::Linear, ["0 -> 1 1: 30", "0 -> 3 2: 10"]),
            (Algorithm::LinearAscending, ["0 -> 3 1: 10", "0 -> 1 2: 30"]),
            (Algorithm::LinearDescending, ["0 -> 1 1: 30", "0 -> 3 2: 10"]),
        ] {
            assert_eq!(edges(Collective::Scatterv, algorithm, &counts), wanted, "{algorithm}");
        }
        let gathered = edges(Collective::Gatherv, Algorithm::LinearAscending, &counts);
        assert_eq!(gathered, ["3 -> 0 1: 10", "1 -> 0 2: 30"]);
    }

    /// Whatever the tree, what comes to a rank is what it keeps and hands on, so that all that there is goes
    /// through the root; every rank that has anything has one parent.
    #[test]
    fn what_comes_to_a_rank_is_its_own_and_its_childrens() {
        let counts = [4, 8, 15, 0, 16, 23, 42, 1, 0, 7];
        for collective in [Collective::Scatterv, Collective::Gatherv] {
            for entry in schedules::of_collective(collective) {
                let call = edges(collective, entry.algorithm, &counts);
                let mut through = counts.map(|count| count as i64);
                let mut parents = [0; 10];
                for edge in &call {
                    let words: Vec<&str> = edge.split(' ').collect();
                    let [from, to] =
                        [words[0], words[2]].map(|rank| rank.parse::<usize>().unwrap());
                    let elements: i64 = words[4].parse().unwrap();
                    let (parent, child) = match collective {
                        Collective::Gatherv => (to, from),
                        _ => (from, to),
                    };
                    parents[child] += 1;
                    through[child] -= elements;
                    through[parent] += elements;
                }
                assert_eq!(through[0], counts.iter().sum::<u64>() as i64, "{}", entry.name);
                assert!(through[1..].iter().all(|left| *left == 0), "{}: {through:?}", entry.name);
                let wanted = |rank: usize| usize::from(rank > 0 && counts[rank] > 0);
                // In the fixed binomial tree a rank without data may hand on others'.
                let fits = |rank: usize| parents[rank] == wanted(rank) || counts[rank] == 0;
                assert!((0..10).all(fits), "{} {parents:?}", entry.name);
            }
        }
    }
}
