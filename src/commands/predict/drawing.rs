//! Predicted times as curves.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Result;
use records::{Layout, Method, Point, quantity};

use super::row::PredictionRow;
use crate::commands::shared::figure;
use site::usage;
use stages::source::CalibrationSource;

/// Draws the rows: a panel per model, in it a curve per method, over the message size or over the
/// ranks. Several layouts of one number of ranks have panels of their own. With `auto` a method's segments
/// are another at each point.
pub(super) fn draw(
    source: &CalibrationSource,
    rows: &[PredictionRow],
    auto: bool,
    path: &Path,
) -> Result<()> {
    let distinct = |of: fn(&PredictionRow) -> u64| {
        let values: BTreeSet<u64> = rows.iter().map(of).collect();
        values.into_iter().collect::<Vec<_>>()
    };
    let (procs, bytes) = (distinct(|row| row.layout.procs().into()), distinct(|row| row.bytes));
    let layouts: BTreeSet<Layout> = rows.iter().map(|row| row.layout).collect();
    let by_layout = layouts.len() > procs.len();
    let Some(collective) = rows.first().map(|row| row.collective) else {
        usage!("nothing was predicted that could be drawn")
    };
    if rows.iter().any(|row| row.collective != collective) {
        usage!("--figure draws one collective; name it by --collective");
    }
    let (over_procs, fixed) = match (&procs[..], &bytes[..]) {
        (_, [0]) => (true, "no message".into()),
        ([procs], _) if by_layout => (false, format!("{procs} ranks")),
        ([_], _) => (false, rows[0].layout.in_words()),
        (_, [bytes]) => (true, quantity::format_bytes(*bytes)),
        _ => usage!("--figure draws over --procs or over -m; give one value of the other"),
    };
    let mut panels = panels(rows, auto, over_procs, by_layout);
    let left_out = leave_out_slowest(&mut panels);
    let axis = |label: &str, quantity| figures::Axis { label: label.into(), quantity };
    let x = match over_procs {
        true => axis("ranks", figures::Quantity::Processes),
        false => {
            axis(&format!("message size ({})", collective.message_size()), figures::Quantity::Bytes)
        }
    };
    let y = axis("predicted time", figures::Quantity::Seconds);
    let mut lines = vec![format!("parameters: {}; closed forms: {}", source.name, source.forms())];
    let beyond = rows.iter().find(|row| row.extrapolated).map(|row| {
        let PredictionRow { collective, layout, bytes, .. } = *row;
        source.reach().excess(Point { collective, layout, bytes })
    });
    if let Some(Some(excess)) = beyond {
        lines.push(format!("extrapolated from there on: {excess}"));
    }
    lines.extend(left_out);
    let title = format!("Predicted: {collective}, {fixed}");
    figure::write(figures::panels(&title, &lines, (x, y), &panels), path)
}

/// A panel per model, and per layout where these are distinguished, in it a curve per method, over the message size or
/// over the ranks.
fn panels(
    rows: &[PredictionRow],
    auto: bool,
    over_procs: bool,
    by_layout: bool,
) -> Vec<(String, Vec<figures::Curve>)> {
    let title = |row: &PredictionRow| match (by_layout, over_procs) {
        (false, _) => row.model.to_owned(),
        (true, false) => format!("{}, {}", row.model, row.layout.in_words()),
        (true, true) => format!("{}, {}", row.model, row.layout.per_node_in_words()),
    };
    // In the order of the rows: the model's own.
    let mut panels: Vec<(String, Vec<&PredictionRow>)> = Vec::new();
    for row in rows {
        let title = title(row);
        named(&mut panels, |panel| panel.0 == title, || (title.clone(), Vec::new())).1.push(row);
    }
    let panels = panels.into_iter().map(|(title, rows)| (title, curves(&rows, auto, over_procs)));
    panels.collect()
}

/// A curve per method, and the limit's.
fn curves(rows: &[&PredictionRow], auto: bool, over_procs: bool) -> Vec<figures::Curve> {
    let mut curves: Vec<figures::Curve> = Vec::new();
    for row in rows {
        let x = if over_procs { f64::from(row.layout.procs()) } else { row.bytes as f64 };
        let [low, high] = [row.low_seconds, row.high_seconds].map(|end| end.unwrap_or(row.seconds));
        let point = figures::PlotPoint { x, y: row.seconds, low, high };
        let name = match row.tells_origin {
            _ if auto => name(row, &row.asked),
            true => row.asked.to_string(),
            false => row.asked.short(),
        };
        let series = named(
            &mut curves,
            |series| series.name == name,
            || figures::Curve {
                name: name.clone(),
                trace: figures::Trace::Line,
                points: Vec::new(),
            },
        );
        series.points.push(point);
    }
    curves.extend(limit(rows, over_procs));
    curves
}

/// Where there are more methods than look different, leaves out those that come least near to the fastest
/// anywhere; says how many.
fn leave_out_slowest(panels: &mut [(String, Vec<figures::Curve>)]) -> Option<String> {
    // As many as are distinguished at a glance; the limit is a curve, too.
    let most = figures::SHARED_LEGEND - 1;
    let mut nearest: BTreeMap<String, f64> = BTreeMap::new();
    for (_, curves) in panels.iter() {
        let methods = || curves.iter().filter(|curve| curve.name != LIMIT);
        let mut fastest: BTreeMap<u64, f64> = BTreeMap::new();
        for point in methods().flat_map(|curve| &curve.points) {
            let least = fastest.entry(point.x.to_bits()).or_insert(f64::INFINITY);
            *least = least.min(point.y);
        }
        for curve in methods() {
            let of_fastest = |point: &figures::PlotPoint| point.y / fastest[&point.x.to_bits()];
            let least = curve.points.iter().map(of_fastest).fold(f64::INFINITY, f64::min);
            let known = nearest.entry(curve.name.clone()).or_insert(f64::INFINITY);
            *known = known.min(least);
        }
    }
    let mut names: Vec<(String, f64)> = nearest.into_iter().collect();
    names.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let slowest: BTreeSet<String> = names.into_iter().skip(most).map(|(name, _)| name).collect();
    for (_, curves) in panels {
        curves.retain(|curve| !slowest.contains(&curve.name));
    }
    let count = slowest.len();
    (count > 0).then(|| format!("left out, as the slowest: {}", records::counted(count, "method")))
}

/// What the curve of the limit is called.
const LIMIT: &str = "limit";

/// What no algorithm gets below by a model, as a curve.
fn limit(rows: &[&PredictionRow], over_procs: bool) -> Option<figures::Curve> {
    let at = |row: &&PredictionRow| {
        let x = if over_procs { u64::from(row.layout.procs()) } else { row.bytes };
        Some((x, row.limit_seconds.filter(|seconds| *seconds > 0.0)?))
    };
    let places: BTreeMap<u64, f64> = rows.iter().filter_map(at).collect();
    let point = |(x, y): (u64, f64)| figures::PlotPoint { x: x as f64, y, low: y, high: y };
    let points: Vec<figures::PlotPoint> = places.into_iter().map(point).collect();
    let curve = figures::Curve { name: LIMIT.into(), trace: figures::Trace::Line, points };
    (!curve.points.is_empty()).then_some(curve)
}

/// The first that matches, or a new one.
fn named<T>(all: &mut Vec<T>, is: impl FnMut(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let place = all.iter().position(is).unwrap_or_else(|| {
        all.push(new());
        all.len() - 1
    });
    &mut all[place]
}

/// A method of a row without its segments, with whose it is where that makes a difference.
pub(super) fn name(row: &PredictionRow, method: &Method) -> String {
    let method = method.clone().with_segment(0);
    if row.tells_origin { method.to_string() } else { method.short() }
}
