use records::pairs::{Link, PairMap};
use statistics::upper_median;

use crate::{
    Figure, FigureError,
    canvas::Hatch,
    colour,
    map::{MapCell, MapFigure, MapRow, Panel},
    page::{self, Heading, Legend, panel_name},
    scale_bar::ColourScale,
};

const SCALE: &str = "slower than the median of all links by, in %";

/// The links between ranks: rows send, columns receive.
///
/// One panel has the rate of each link by its time per byte, in Mbit/s, one the round trip of an
/// empty message, in us; the shade says how much slower a link is than the median of all, white
/// below 5 %, black above 300 %. A slow port is a row or a column, a bad path a cell.
///
/// # Errors
/// There are no links, or more than a figure can hold.
pub fn pair_map(map: &PairMap) -> Result<Figure, FigureError> {
    if map.links.is_empty() {
        return Err(FigureError::Impossible("the pair map has no links to draw".into()));
    }
    let mut lines = vec![map.platform.summary()];
    lines.extend(map.findings.iter().map(|finding| finding.text.clone()));
    lines.extend(page::warnings(&map.warnings));
    let rate = |link: &Link| 8e-6 / link.seconds_per_byte.value;
    let panels = vec![
        panel(
            map,
            format!("{} rate of messages of {} bytes, Mbit/s", panel_name(0), map.bytes),
            |link| link.seconds_per_byte.value,
            &|link| number(rate(link)),
        ),
        panel(
            map,
            format!("{} round trip of an empty message, us", panel_name(1)),
            |link| link.empty_seconds.value,
            &|link| number(link.empty_seconds.value * 1e6),
        ),
    ];
    let heading = Heading { title: "Links between ranks".into(), lines };
    let legend = Legend::default();
    let scale = Some(ColourScale::Penalty(SCALE));
    let map = MapFigure::new(heading, panels, "receiver (rank)".into(), legend, scale)?;
    Figure::of_map(map.between_ranks())
}

fn panel(
    map: &PairMap,
    title: String,
    time: fn(&Link) -> f64,
    text: &dyn Fn(&Link) -> String,
) -> Panel {
    let mut times: Vec<f64> = map.links.iter().map(time).collect();
    let median = upper_median(&mut times).unwrap_or_default();
    let cells = map.links.iter().map(|link| {
        let slower = if median > 0.0 { time(link) / median - 1.0 } else { 0.0 };
        let cell = MapCell {
            fill: colour::of_penalty(slower),
            hatch: Hatch::Plain,
            texts: [text(link), String::new()],
            dot: false,
            cornered: false,
            framed: false,
            outlined: false,
        };
        ((MapRow::Rank(link.sender), u64::from(link.receiver)), cell)
    });
    Panel { title, detail: format!("{} links", map.links.len()), cells: cells.collect() }
}

/// Three digits.
fn number(value: f64) -> String {
    match value {
        v if !v.is_finite() => "-".into(),
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([95.04, 9.501, 951.2].map(number), ["95.0", "9.50", "951"]);
        assert_eq!(number(f64::INFINITY), "-");
    }
}
