//! Penalties over the whole map and by its regions, for people.

use std::collections::{BTreeMap, BTreeSet};

use records::{
    Collective, Root,
    agreement::Agreement,
    penalty::{Distribution, Penalties, PenaltySummary, PredictionError, Region, RegionSummary},
    quantity,
};

use super::output::{self, percent};
use stages::roots::RootPenalties;

/// A penalty, for people. Below 0 the decided method was faster than the one that had been best in the other half of
/// the observations: that is noise.
pub fn penalty(fraction: f64) -> String {
    excess(fraction, "noise")
}

/// Of a time above another one; `below`: what is said where it is below that.
fn excess(fraction: f64, below: &str) -> String {
    match fraction * 100.0 {
        negative if negative <= -0.05 => below.into(),
        _ => percent(fraction),
    }
}

/// The heading of [`whole`].
pub const WHOLE: [&str; 7] =
    ["collective", "decided by", "points", "mean", "median", "95th", "greatest"];

/// A decision function's penalties over the whole map, as a row.
pub fn whole(summary: &PenaltySummary) -> Vec<String> {
    whole_row(summary, "noise")
}

/// A decision function's times above the limit over the whole map, as a row of the same heading.
pub fn whole_above(summary: &PenaltySummary) -> Vec<String> {
    whole_row(summary, "below")
}

fn whole_row(summary: &PenaltySummary, below: &str) -> Vec<String> {
    let mut row = vec![summary.collective.to_string()];
    row.extend(spread(summary, below));
    row
}

/// Whose penalties, at how many points, and how great.
fn spread(summary: &PenaltySummary, below: &str) -> impl Iterator<Item = String> {
    let Distribution { mean, median, percentile_95, greatest } = summary.penalty;
    let of = [summary.decided_by.clone(), summary.points.to_string()];
    of.into_iter()
        .chain([mean, median, percentile_95, greatest].map(|fraction| excess(fraction, below)))
}

/// Mean penalties: a row for each region, a column for each decision function.
pub struct Means {
    pub heading: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// Nothing where all points of each collective lie in one region, which says no more than the whole.
pub fn means(penalties: &Penalties) -> Option<Means> {
    let mut regions: BTreeMap<(Collective, Region), BTreeMap<&str, &RegionSummary>> =
        BTreeMap::new();
    for one in &penalties.regions {
        let functions = regions.entry((one.summary.collective, one.region)).or_default();
        functions.insert(&one.summary.decided_by, one);
    }
    let collectives: BTreeSet<Collective> = regions.keys().map(|(of, _)| *of).collect();
    if regions.len() == collectives.len() {
        return None;
    }
    let functions: BTreeSet<&str> =
        penalties.regions.iter().map(|one| one.summary.decided_by.as_str()).collect();
    let heading = ["collective", "procs", "sizes", "points"].into_iter().chain(functions.clone());
    let row = |((collective, region), summaries): ((Collective, Region), BTreeMap<_, _>)| {
        let points = summaries.values().map(|one: &&RegionSummary| one.summary.points).max();
        let mean = |name: &&str| match summaries.get(name) {
            Some(one) => penalty(one.summary.penalty.mean),
            None => "-".into(),
        };
        let mut row = place(collective, region);
        row.push(points.unwrap_or_default().to_string());
        row.extend(functions.iter().map(mean));
        row
    };
    Some(Means {
        heading: heading.map(str::to_owned).collect(),
        rows: regions.into_iter().map(row).collect(),
    })
}

/// Everything, a row for each region and decision function; of the regions' first cells, see
/// [`means`].
pub fn spreads(penalties: &Penalties) -> impl Iterator<Item = Vec<String>> {
    penalties.regions.iter().map(|RegionSummary { region, summary }| {
        let mut row = place(summary.collective, *region);
        row.extend(spread(summary, "noise"));
        row
    })
}

/// The heading of [`spreads`].
pub const SPREADS: [&str; 9] =
    ["collective", "procs", "sizes", "decided by", "points", "mean", "median", "95th", "greatest"];

fn place(collective: Collective, region: Region) -> Vec<String> {
    vec![collective.to_string(), region.procs_in_words(), region.bytes_in_words()]
}

/// The means as text; empty where there are none.
pub fn text(penalties: &Penalties) -> String {
    let Some(Means { heading, rows }) = means(penalties) else { return String::new() };
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    format!("\nMean penalty by region\n\n{}", output::aligned(&heading, rows))
}

/// The heading of [`prediction_error`].
pub const PREDICTION_ERROR: [&str; 8] =
    ["collective", "model", "method", "procs", "sizes", "times", "median error", "95th"];

/// How far a model's times are from the measured ones, as a row.
pub fn prediction_error(error: &PredictionError) -> Vec<String> {
    let all = || "all".to_owned();
    vec![
        error.collective.to_string(),
        error.model.clone(),
        error.method.as_ref().map_or_else(all, records::Method::short),
        error.region.as_ref().map_or_else(all, Region::procs_in_words),
        error.region.as_ref().map_or_else(all, Region::bytes_in_words),
        error.times.to_string(),
        percent(error.median),
        percent(error.percentile_95),
    ]
}

/// The models' errors over all methods, as text; empty where no model predicts what was measured.
pub fn prediction_errors(penalties: &Penalties) -> String {
    let whole = penalties.prediction_errors.iter().filter(|error| error.method.is_none());
    let row = |error: &PredictionError| {
        let whole = prediction_error(error);
        vec![
            whole[0].clone(),
            whole[1].clone(),
            whole[5].clone(),
            whole[6].clone(),
            whole[7].clone(),
        ]
    };
    let rows: Vec<Vec<String>> = whole.map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heading = ["collective", "model", "times", "median error", "95th"];
    let table = output::aligned(&heading, rows);
    format!("\nPrediction error, |predicted / measured - 1|, by method in penalty.json\n\n{table}")
}

/// Times above the limit, as text.
pub fn above_limit(above: &Penalties) -> String {
    let rows = above.summaries.iter().map(whole_above);
    let mut text = format!("\nTime above {}\n\n{}", above.best, output::aligned(&WHOLE, rows));
    above.warnings.iter().for_each(|warning| text += &format!("\nNote: {warning}\n"));
    text
}

/// What it costs to decide as for root 0, as text; empty where no other root was measured.
pub fn at_roots(roots: &[RootPenalties]) -> String {
    let row = |(root, summary): (Root, &PenaltySummary)| {
        let mut row = whole(summary);
        row.insert(1, root.to_string());
        row
    };
    let of_root = |one: &RootPenalties| -> Vec<Vec<String>> {
        one.penalties.summaries.iter().map(|summary| row((one.root, summary))).collect()
    };
    if roots.is_empty() {
        return String::new();
    }
    let mut heading = WHOLE.to_vec();
    heading.insert(1, "root");
    let table = output::aligned(&heading, roots.iter().flat_map(of_root));
    let mut text =
        format!("\nPenalty of the decisions for root 0 where another rank is the root\n\n{table}");
    let noise =
        roots.iter().flat_map(|one| one.penalties.noise.iter().map(move |it| (one.root, it)));
    for (root, noise) in noise {
        let (collective, chosen) = (noise.collective, percent(noise.choice.mean));
        text +=
            &format!("noise of {collective} with root {root} (split-half): {chosen} on average\n");
    }
    text
}

/// The penalties, for people.
pub fn summary(penalties: &Penalties) -> String {
    let incomplete = penalties.summaries.iter().any(|summary| summary.not_measured > 0);
    let rows = penalties.summaries.iter().map(|summary| {
        let mut row = whole(summary);
        if incomplete {
            row.push(summary.not_measured.to_string());
        }
        row
    });
    let mut heading = WHOLE.to_vec();
    if incomplete {
        heading.push("not measured");
    }
    let mut text = format!("Penalty against the measured best ({})\n\n", penalties.best);
    text += &output::aligned(&heading, rows);
    for noise in &penalties.noise {
        let words = |spread: &Distribution| {
            let Distribution { mean, percentile_95, .. } = *spread;
            format!(
                "{} on average, {} at the 95th percentile",
                percent(mean),
                percent(percentile_95)
            )
        };
        text += &format!(
            "noise of {} (split-half): what is chosen on one half of the observations costs on the other {}; \
             a method's times in the two halves differ by {}\n",
            noise.collective,
            words(&noise.choice),
            words(&noise.halves),
        );
    }
    for warning in &penalties.warnings {
        text += &format!("note: {warning}\n");
    }
    text
}

/// Where two decision functions differ, for people.
pub fn agreement_text(agreement: &Agreement) -> String {
    const SHOWN: usize = 12;
    let Agreement { first, second, points, differing, not_measured, tolerance, .. } = agreement;
    let mut text =
        format!("\n{first} and {second} agree at {} of {points} points.\n", points - differing);
    if *differing == 0 {
        return text;
    }
    text += &format!(
        "They differ at {}. The largest difference of the measured times is {}. It exceeds {} at {}, \
         significantly at {} ({})",
        records::counted(*differing, "point"),
        percent(agreement.greatest),
        percent(*tolerance),
        records::counted(agreement.beyond, "point"),
        agreement.significantly_beyond,
        match agreement.jobs {
            1 => "one job, which cannot show how jobs differ".to_owned(),
            jobs => format!("a test over {jobs} jobs"),
        }
    );
    text += &match not_measured {
        0 => ".\n".to_owned(),
        count => format!("; at {count}, one of them was not measured.\n"),
    };
    let mut differences: Vec<_> = agreement.differences.iter().collect();
    differences.sort_by(|a, b| b.difference.total_cmp(&a.difference));
    let rows = differences.iter().take(SHOWN).map(|one| {
        vec![
            one.point.collective.to_string(),
            one.point.layout.to_string(),
            quantity::format_bytes(one.point.bytes),
            one.first.short(),
            quantity::format_seconds(one.first_seconds),
            one.second.short(),
            quantity::format_seconds(one.second_seconds),
            percent(one.difference),
            format!("{:.1e}", one.p_value),
        ]
    });
    let heading =
        ["collective", "procs", "size", first, "its time", second, "its time", "difference", "p"];
    text += "\n";
    text += &output::aligned(&heading, rows);
    text
}
