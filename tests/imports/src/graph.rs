//! Circles among imports.

use std::collections::{BTreeMap, BTreeSet};

/// Which file imports which.
pub type Imports = BTreeMap<String, BTreeSet<String>>;

/// What is wrong with imports: circles that stay when the known imports (from, to) are left out, and
/// known ones that are no more or that no circle needs.
pub fn problems(imports: &Imports, known: &[(&str, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut left = imports.clone();
    for &(from, to) in known {
        let is_there = imports.get(from).is_some_and(|targets| targets.contains(to));
        if !is_there {
            problems.push(format!("{from} imports {to} no more: take it off the list"));
        } else if way(imports, to, from).is_none() {
            problems.push(format!(
                "no circle holds the import of {to} by {from}: take it off the list"
            ));
        }
        left.entry(from.into()).or_default().remove(to);
    }
    while let Some((circle, [from, to])) = circle(&left) {
        let circle = circle.join(" -> ");
        problems
            .push(format!("imports go in a circle: {circle} (most circles hold {from} -> {to})"));
        // So that what other circles there are is told too.
        left.entry(from).or_default().remove(&to);
    }
    problems
}

/// A shortest circle through the import that most circles hold, and that import; of each import one
/// shortest circle through it is counted.
fn circle(imports: &Imports) -> Option<(Vec<String>, [String; 2])> {
    let all = imports.iter().flat_map(|(from, targets)| targets.iter().map(move |to| (from, to)));
    let circles: Vec<Vec<String>> = all
        .filter_map(|(from, to)| {
            let back = way(imports, to, from)?;
            Some(std::iter::once(from.clone()).chain(back).collect())
        })
        .collect();
    let mut counts: BTreeMap<&[String], usize> = BTreeMap::new();
    circles.iter().flat_map(|circle| circle.windows(2)).for_each(|import| {
        *counts.entry(import).or_default() += 1;
    });
    let (import, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let through = circles.iter().filter(|circle| circle.windows(2).any(|it| it == import));
    let shortest = through.min_by_key(|circle| circle.len())?.clone();
    Some((shortest, [import[0].clone(), import[1].clone()]))
}

/// A shortest way along imports from one file to another, both ends told.
fn way(imports: &Imports, from: &str, to: &str) -> Option<Vec<String>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut reached = vec![from];
    let mut next = 0;
    while next < reached.len() && reached[next] != to {
        let here = reached[next];
        for target in imports.get(here).into_iter().flatten() {
            if target != from && !before.contains_key(target.as_str()) {
                before.insert(target, here);
                reached.push(target);
            }
        }
        next += 1;
    }
    let mut way = vec![*reached.get(next)?];
    while let Some(&earlier) = before.get(way[way.len() - 1]) {
        way.push(earlier);
    }
    Some(way.into_iter().rev().map(Into::into).collect())
}
