//! Colibri's own methods against the library's, for people.

use std::collections::BTreeMap;

use records::{Collective, Point, quantity::format_bytes};
use statistics::geometric_mean;
use verification::own_against_native::{BEHIND, OwnAgainstNative};

use super::output;

const HEADING: [&str; 8] =
    ["collective", "points", "own / native", "min", "max", "max at", "slower", "own / limit"];

/// A row for each collective; empty where no point has both kinds in two jobs. `limits` are in seconds.
pub fn text(compared: &[OwnAgainstNative], limits: &BTreeMap<Point, f64>) -> String {
    if compared.is_empty() {
        return String::new();
    }
    let mut of_collective: BTreeMap<Collective, Vec<&OwnAgainstNative>> = BTreeMap::new();
    for one in compared {
        of_collective.entry(one.point.collective).or_default().push(one);
    }
    let rows = of_collective.iter().filter_map(|(collective, all)| row(*collective, all, limits));
    format!(
        "\nTime of Colibri's fastest method relative to the library's fastest: geometric means. Each is chosen by one \
         half of the jobs and timed by the other; slower: points where ours is significantly more than {:.0} % slower\n\n{}",
        (BEHIND - 1.0) * 100.0,
        output::aligned(&HEADING, rows)
    )
}

fn row(
    collective: Collective,
    all: &[&OwnAgainstNative],
    limits: &BTreeMap<Point, f64>,
) -> Option<Vec<String>> {
    let ratios: Vec<f64> = all.iter().map(|one| one.ratio).collect();
    let least = ratios.iter().copied().reduce(f64::min)?;
    let worst = all.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
    let to_limit = |one: &&OwnAgainstNative| Some(one.own_seconds / limits.get(&one.point)?);
    let to_limit: Vec<f64> = all.iter().filter_map(to_limit).collect();
    let behind = all.iter().filter(|one| one.is_behind).count();
    Some(vec![
        collective.to_string(),
        all.len().to_string(),
        format!("{:.2}", geometric_mean(&ratios)?),
        format!("{least:.2}"),
        format!("{:.2}", worst.ratio),
        format!(
            "{}, {}: {}",
            worst.point.layout,
            format_bytes(worst.point.bytes),
            worst.own.short()
        ),
        behind.to_string(),
        geometric_mean(&to_limit).map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}")),
    ])
}
