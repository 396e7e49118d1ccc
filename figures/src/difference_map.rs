use std::collections::{BTreeMap, BTreeSet};

use records::{Collective, Layout, Method};
use statistics::geometric_mean;

use crate::{
    Figure, FigureError,
    canvas::Hatch,
    colour,
    map::{MapCell, MapFigure, Panel},
    page::{Heading, Legend, LegendKey},
    penalty_map::size_label,
    scale_bar::ColourScale,
};

/// What two decision functions take at one point, and what that costs.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedPoint {
    pub layout: Layout,
    pub bytes: u64,
    /// What the first one takes, and the second.
    pub methods: [Method; 2],
    /// The time of each; none where it is not known.
    pub seconds: Option<[f64; 2]>,
}

impl ComparedPoint {
    /// The second one's time over the first one's; none where it is not known.
    pub fn ratio(&self) -> Option<f64> {
        let [first, second] = self.seconds?;
        (first > 0.0 && second > 0.0).then_some(second / first)
    }

    fn differs(&self) -> bool {
        self.methods[0] != self.methods[1]
    }
}

/// Of so many pairs of methods the legend tells which they are.
const MAX_PAIRS: usize = 24;

/// What following one decision function instead of another costs.
///
/// Where the two take the same method a cell is white; else its colour is the second one's time over
/// the first one's, and its number leads to the two methods in the legend, the most frequent pair
/// first. `names` are the two functions, `judged_by` says whose times these are.
///
/// # Errors
/// There are no points, or more than a figure can hold.
pub fn difference_map(
    collective: Collective,
    names: [&str; 2],
    judged_by: &str,
    points: &[ComparedPoint],
) -> Result<Figure, FigureError> {
    if points.is_empty() {
        let problem = format!("the two functions have no point of {collective} in common");
        return Err(FigureError::NothingToDraw(problem));
    }
    let pairs = pairs(points);
    let numbers: BTreeMap<[&Method; 2], usize> =
        pairs.iter().zip(1..).map(|(pair, number)| (pair.methods, number)).collect();
    let cells = points.iter().map(|point| {
        let number = numbers.get(&[&point.methods[0], &point.methods[1]]).copied();
        ((point.layout.into(), point.bytes), cell(point, number))
    });
    let [first, second] = names;
    let heading = Heading {
        title: format!("Difference of two decision functions: {collective}"),
        lines: vec![
            format!("A: {first}; B: {second}"),
            format!("white: both take the same method; else the time of B's over A's, {judged_by}"),
            summary(points),
        ],
    };
    let panel = Panel {
        title: "B against A".into(),
        detail: records::counted(points.len(), "point"),
        cells: cells.collect(),
    };
    let x_label = size_label(None, collective);
    let label = "time(B) / time(A) - 1, in %".to_owned();
    let map = MapFigure::new(
        heading,
        vec![panel],
        x_label,
        legend(&pairs),
        Some(ColourScale::Ratio(label)),
    )?;
    Figure::of_map(map)
}

/// Two methods that stand against each other at some points.
struct MethodPair<'a> {
    methods: [&'a Method; 2],
    points: usize,
    /// Of those points whose times are known.
    ratios: Vec<f64>,
}

/// The most frequent one first.
fn pairs(points: &[ComparedPoint]) -> Vec<MethodPair<'_>> {
    let mut pairs: BTreeMap<[&Method; 2], MethodPair<'_>> = BTreeMap::new();
    for point in points.iter().filter(|point| point.differs()) {
        let methods = [&point.methods[0], &point.methods[1]];
        let new = || MethodPair { methods, points: 0, ratios: Vec::new() };
        let pair = pairs.entry(methods).or_insert_with(new);
        pair.points += 1;
        pair.ratios.extend(point.ratio());
    }
    let mut pairs: Vec<MethodPair<'_>> = pairs.into_values().collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.points));
    pairs
}

fn cell(point: &ComparedPoint, number: Option<usize>) -> MapCell {
    let (fill, hatch) = match (point.differs(), point.ratio()) {
        (false, _) => (colour::WHITE, Hatch::Plain),
        (true, Some(ratio)) => (colour::of_ratio(ratio), Hatch::Plain),
        (true, None) => (colour::LIGHT, UNKNOWN),
    };
    let text = number.filter(|number| *number <= MAX_PAIRS).map(|number| number.to_string());
    let text = text.unwrap_or_default();
    MapCell {
        fill,
        hatch,
        texts: [text.clone(), text],
        dot: false,
        cornered: false,
        framed: false,
        outlined: false,
    }
}

/// How cells look whose times are not known.
const UNKNOWN: Hatch = Hatch::Falling(6);

fn legend(pairs: &[MethodPair<'_>]) -> Legend {
    let mut entries = Vec::new();
    if pairs.iter().any(|pair| pair.ratios.len() < pair.points) {
        let key = LegendKey::Patch { fill: colour::LIGHT, hatch: UNKNOWN };
        entries.push((key, "a time is not known".into()));
    }
    if !pairs.is_empty() {
        entries.push((LegendKey::Word, "A's method \u{2192} B's:".into()));
    }
    let own: BTreeSet<bool> =
        pairs.iter().flat_map(|pair| pair.methods).map(Method::is_own).collect();
    // Where all are of one kind its name says nothing.
    let name = |method: &Method| match own.len() {
        1 => method.short(),
        _ => method.to_string(),
    };
    for (pair, number) in pairs.iter().zip(1..).take(MAX_PAIRS) {
        let [first, second] = pair.methods.map(name);
        let points = records::counted(pair.points, "point");
        let cost = span(&pair.ratios).map_or_else(String::new, |span| format!(", {span}"));
        let text = format!("{number}: {first} \u{2192} {second} ({points}{cost})");
        entries.push((LegendKey::Word, text));
    }
    if let Some(rest) = pairs.get(MAX_PAIRS..).filter(|rest| !rest.is_empty()) {
        let points = records::counted(rest.iter().map(|pair| pair.points).sum::<usize>(), "point");
        entries.push((LegendKey::Word, format!("and {} more pairs at {points}", rest.len())));
    }
    Legend { entries }
}

/// `+3 %`, or `-20 % to +40 %`.
fn span(ratios: &[f64]) -> Option<String> {
    let least = ratios.iter().copied().reduce(f64::min)?;
    let greatest = ratios.iter().copied().reduce(f64::max)?;
    let [low, high] = [least, greatest].map(signed_percent);
    Some(if low == high { low } else { format!("{low} to {high}") })
}

fn signed_percent(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    match percent.abs() {
        p if p < 0.05 => "0 %".into(),
        p if p < 9.95 => format!("{percent:+.1} %"),
        _ => format!("{percent:+.0} %"),
    }
}

fn summary(points: &[ComparedPoint]) -> String {
    let different: Vec<&ComparedPoint> = points.iter().filter(|point| point.differs()).collect();
    let agree = points.len() - different.len();
    let ratios: Vec<f64> = different.iter().filter_map(|point| point.ratio()).collect();
    let mut text = format!("they agree at {agree} of {}", records::counted(points.len(), "point"));
    if let Some(span) = span(&ratios) {
        let mean = signed_percent(geometric_mean(&ratios).unwrap_or(1.0));
        text += &format!("; elsewhere B costs {mean} in the geometric mean ({span})");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_have_a_sign() {
        assert_eq!(span(&[1.034]).unwrap(), "+3.4 %");
        assert_eq!(span(&[0.8, 1.4]).unwrap(), "-20 % to +40 %");
        assert_eq!(span(&[0.9999]).unwrap(), "0 %");
        assert_eq!(span(&[]), None);
    }
}
