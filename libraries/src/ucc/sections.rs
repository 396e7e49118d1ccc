//! UCC's configuration file (`UCC_CONFIG_FILE`) with a section for each layout.
//!
//! A section is headed by conditions on a team, all of which must hold: `[team_size=32 nnodes=8]`, ranges as
//! `a-b`; `ppn=a-b` holds where the least and the most ranks per node lie within. Of several sections that
//! hold for a team the last one met in a hash table gives the string, so no two may hold for one team. For
//! the same reason a section has the choices for all collectives. A string outside of all sections would come
//! before theirs. (`ucc_parser.c` and `ucc_tl_ucp_team_get_scores` of UCC; no UCC was run.)

use std::collections::{BTreeMap, BTreeSet};

use records::{Collective, Layout};

use super::tokens::{counts_all_blocks, tokens};
use crate::{
    error::{Result, fail},
    exporter::Export,
    rules::{LayoutRanges, Rules},
    spans::{ProcsSpan, spans},
};

const VARIABLE: &str = "UCC_TL_UCP_TUNE=";

/// What its reader takes of a line: `UCC_INI_MAX_LINE`, 200, less the line's end. The rest of a longer line
/// would be read as the next one, and make it drop the file. (Raised to 500, and in June 2026 to 8192.)
const LONGEST_LINE: usize = 197;

/// Layouts between which others can be named by one range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LayoutFamily {
    OneNode,
    /// Several nodes with so many ranks on each.
    PerNode(u32),
    /// Unequal numbers of ranks, each layout by itself.
    Uneven(Layout),
}

impl LayoutFamily {
    fn of(layout: Layout) -> Self {
        match layout.per_node() {
            _ if layout.nodes() == 1 => LayoutFamily::OneNode,
            Some(per_node) => LayoutFamily::PerNode(per_node),
            None => LayoutFamily::Uneven(layout),
        }
    }

    /// By how many ranks its layouts differ.
    fn step(self) -> u32 {
        match self {
            LayoutFamily::OneNode | LayoutFamily::Uneven(_) => 1,
            LayoutFamily::PerNode(ranks) => ranks,
        }
    }

    /// The nodes of so many ranks.
    fn nodes(self, procs: u32) -> u32 {
        match self {
            LayoutFamily::OneNode => 1,
            LayoutFamily::PerNode(ranks) => procs / ranks,
            LayoutFamily::Uneven(layout) => layout.nodes(),
        }
    }
}

/// The numbers of processes and of nodes that were measured, of any layout.
type TeamNumbers = BTreeSet<(u32, u32)>;

/// The text of the file.
///
/// # Errors
/// A method that UCC does not have; a section is longer than UCC reads.
pub fn text(export: &Export<'_>, target: &str) -> Result<String> {
    let mut text = format!("# Algorithms for {target}, written by colibri\n");
    for line in export.comments.iter().flat_map(|line| wrapped(&line.text)) {
        text += &format!("# {line}\n");
    }
    for ((_, conditions), tokens) in sections(export.rules)? {
        let line = format!("{VARIABLE}{}", tokens.join("#"));
        if line.len() > LONGEST_LINE {
            fail!(
                "[{conditions}] takes a line of {} characters, and UCC 1.3 drops a file with lines of more \
                 than {LONGEST_LINE}; export choices for fewer collectives, or with --target ucc, which \
                 distinguishes only the number of ranks",
                line.len()
            );
        }
        text += &format!("\n[{conditions}]\n{line}\n");
    }
    Ok(text)
}

/// By number of processes and conditions, the tokens.
fn sections(rules: &[Rules]) -> Result<BTreeMap<(u32, String), Vec<String>>> {
    let layouts = rules.iter().flat_map(|rules| &rules.sections).map(|section| section.layout);
    let measured: TeamNumbers =
        layouts.clone().map(|layout| (layout.procs(), layout.nodes())).collect();
    let mut sections: BTreeMap<(u32, String), Vec<String>> = BTreeMap::new();
    for family in layouts.map(LayoutFamily::of).collect::<BTreeSet<LayoutFamily>>() {
        let mut of_family = Vec::new();
        for rules in rules {
            let of = |section: &&LayoutRanges| LayoutFamily::of(section.layout) == family;
            let members = rules.sections.iter().filter(of).cloned().collect();
            let members = Rules { collective: rules.collective, sections: members };
            of_family.push((rules.collective, spans(&members, false)?));
        }
        for (first, last) in areas(family, &of_family, &measured) {
            let conditions = conditions(family, (first, last), &measured);
            let held = sections.entry((first, conditions)).or_default();
            for (rules, (collective, spans)) in rules.iter().zip(&of_family) {
                // Another family's layout of the same numbers was measured itself.
                let is_others = |section: &LayoutRanges| {
                    let layout = section.layout;
                    (layout.procs(), layout.nodes()) == (first, family.nodes(first))
                        && LayoutFamily::of(layout) != family
                };
                if rules.sections.iter().any(is_others) {
                    continue;
                }
                let holds = |span: &&ProcsSpan| span.first <= first && first <= span.last;
                if let Some(span) = spans.iter().find(holds) {
                    let span = ProcsSpan { first, last, ranges: span.ranges.clone() };
                    held.extend(tokens(*collective, &span, None)?);
                }
            }
        }
    }
    sections.retain(|_, tokens| !tokens.is_empty());
    Ok(sections)
}

/// The numbers of processes that share a section: what was measured by itself, the others between as far as
/// all collectives choose alike.
fn areas(
    family: LayoutFamily,
    of_family: &[(Collective, Vec<ProcsSpan>)],
    measured: &TeamNumbers,
) -> Vec<(u32, u32)> {
    let step = family.step();
    let mut starts = BTreeSet::new();
    for span in of_family.iter().flat_map(|(_, spans)| spans) {
        starts.extend([span.first.next_multiple_of(step), (span.last + 1).next_multiple_of(step)]);
    }
    let (Some(&first), Some(&end)) = (starts.first(), starts.last()) else { return Vec::new() };
    let here = |&&(procs, nodes): &&(u32, u32)| {
        procs % step == 0 && family.nodes(procs) == nodes && (first..end).contains(&procs)
    };
    for (procs, _) in measured.iter().filter(here) {
        starts.extend([*procs, procs + step]);
    }
    let totals = |(collective, spans): &(Collective, Vec<ProcsSpan>)| {
        counts_all_blocks(*collective) && spans.iter().any(|span| span.ranges.len() > 1)
    };
    // A threshold over all ranks, right for the first number of them, is off by at most a thirty-second.
    let furthest = |first: u32| match of_family.iter().any(totals) {
        true => first + first / 32 / step * step,
        false => u32::MAX,
    };
    let starts: Vec<u32> = starts.into_iter().collect();
    let mut areas = Vec::new();
    for pair in starts.windows(2) {
        let (mut first, last) = (pair[0], pair[1] - step);
        while first <= last {
            let end = last.min(furthest(first));
            areas.push((first, end));
            first = end + step;
        }
    }
    areas
}

/// What heads a section. Where a number of processes on a number of nodes was measured, all layouts of these
/// numbers take it; in between, layouts of the family alone.
fn conditions(family: LayoutFamily, (first, last): (u32, u32), measured: &TeamNumbers) -> String {
    let nodes = (family.nodes(first), family.nodes(last));
    if measured.contains(&(first, nodes.0)) {
        return format!("team_size={first} nnodes={}", nodes.0);
    }
    match family {
        LayoutFamily::PerNode(ranks) => format!("nnodes={} ppn={ranks}", range(nodes)),
        LayoutFamily::OneNode | LayoutFamily::Uneven(_) => {
            format!("team_size={} nnodes={}", range((first, last)), nodes.0)
        }
    }
}

fn range((first, last): (u32, u32)) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// A comment in lines that the reader takes.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => *line = word.into(),
            Some(line) if line.len() + word.len() + 3 <= LONGEST_LINE => {
                *line += &format!(" {word}")
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests;
