use std::collections::{BTreeMap, BTreeSet};

use records::{
    Collective,
    penalty::{Penalties, Penalty, PenaltySummary},
};
use statistics::mean;

use crate::{
    Figure, FigureError,
    canvas::Hatch,
    colour,
    map::{MapCell, MapFigure, Panel},
    page::{self, Heading, Legend, LegendKey, panel_name},
    scale_bar::{self, ColourScale},
};

/// What it costs to follow each decision function, in the manner of the paper's Figure 7.
///
/// One panel per decision function in the file, all on one axis; columns are the message sizes, rows the process
/// counts that were measured; the shade is the penalty, white below 5 %, black above 300 %. Where
/// cells are large enough the percentage is written into them. A panel's title has the mean and the
/// greatest penalty of the file's summary, or of the panel's cells where the file has none; below 0 it
/// is noise. A cut corner marks what the machine under a virtual cluster limits.
///
/// # Errors
/// The file has nothing about the collective, or more than a figure can hold.
pub fn penalty_map(penalties: &Penalties, collective: Collective) -> Result<Figure, FigureError> {
    map(penalties, collective, "Penalty of following each decision function")
}

/// How far each decision function's times are above what no algorithm gets below, drawn as
/// [`penalty_map`] draws penalties.
///
/// # Errors
/// As [`penalty_map`].
pub fn limit_map(above: &Penalties, collective: Collective) -> Result<Figure, FigureError> {
    map(above, collective, "Time above the limit by each decision function")
}

fn map(penalties: &Penalties, collective: Collective, title: &str) -> Result<Figure, FigureError> {
    let mut functions: BTreeMap<&str, Vec<&Penalty>> = BTreeMap::new();
    for penalty in penalties.penalties.iter().filter(|p| p.point.collective == collective) {
        functions.entry(&penalty.decided_by).or_default().push(penalty);
    }
    if functions.is_empty() {
        let present: BTreeSet<Collective> =
            penalties.penalties.iter().map(|penalty| penalty.point.collective).collect();
        let present: Vec<Collective> = present.into_iter().collect();
        return Err(FigureError::no_cells("penalty", collective, &present));
    }
    let mut functions: Vec<(&str, Vec<&Penalty>)> = functions.into_iter().collect();
    functions.sort_by_key(|(name, _)| rank(name));
    let panels = functions.iter().enumerate().map(|(index, (name, cells))| {
        let summary = penalties
            .summaries
            .iter()
            .find(|s| s.collective == collective && s.decided_by == *name);
        panel(index, name, cells, summary)
    });
    let mut lines = vec![penalties.platform.summary()];
    lines.extend(page::warnings(&penalties.warnings));
    let heading = Heading { title: format!("{title}: {collective}"), lines };
    let x_label = size_label(penalties.message_size.get(&collective), collective);
    let mut legend = Legend::default();
    if functions.iter().any(|(_, cells)| cells.iter().any(|cell| cell.machine_limited)) {
        legend
            .entries
            .push((LegendKey::Corner, "limited by the machine under the virtual cluster".into()));
    }
    let scale = Some(ColourScale::Penalty(scale_bar::PENALTY));
    let map = MapFigure::new(heading, panels.collect(), x_label, legend, scale)?;
    Figure::of_map(map)
}

fn panel(index: usize, name: &str, cells: &[&Penalty], summary: Option<&PenaltySummary>) -> Panel {
    let finite = cells.iter().map(|cell| cell.penalty).filter(|penalty| penalty.is_finite());
    let (points, mean, greatest) = match summary {
        Some(summary) => (summary.points as usize, summary.penalty.mean, summary.penalty.greatest),
        None => {
            let values: Vec<f64> = finite.collect();
            let mean = mean(&values).unwrap_or_default();
            (values.len(), mean, values.iter().copied().fold(0.0, f64::max))
        }
    };
    Panel {
        title: format!("{} {name}", panel_name(index)),
        detail: format!(
            "mean {}, greatest {}, {}",
            percent(mean),
            percent(greatest),
            records::counted(points, "point")
        ),
        cells: cells
            .iter()
            // Not a number is no measurement: it stays among the cells without data.
            .filter(|cell| !cell.penalty.is_nan())
            .map(|cell| {
                (
                    (cell.point.layout.into(), cell.point.bytes),
                    shaded(cell.penalty, cell.machine_limited),
                )
            })
            .collect(),
    }
}

fn shaded(penalty: f64, cornered: bool) -> MapCell {
    let texts = match penalty * 100.0 {
        p if p > 999.5 => [">999%".to_owned(), ">999".into()],
        p if p <= -0.5 => ["noise".to_owned(), "<0".into()],
        p => [format!("{:.0}%", p.max(0.0)), format!("{:.0}", p.max(0.0))],
    };
    MapCell {
        fill: colour::of_penalty(penalty),
        hatch: Hatch::Plain,
        texts,
        dot: false,
        cornered,
        framed: false,
        outlined: false,
    }
}

/// `0.4 %`, `23 %`, `1.2e9 %`; below 0 it is noise.
fn percent(fraction: f64) -> String {
    match fraction * 100.0 {
        p if p <= -0.05 => "noise".into(),
        p if p < 9.95 => format!("{:.1} %", p.max(0.0)),
        p if p < 1e6 => format!("{p:.0} %"),
        p => format!("{p:.1e} %"),
    }
}

/// The label of the axis of message sizes.
pub(crate) fn size_label(defined: Option<&String>, collective: Collective) -> String {
    let meaning = defined.map_or(collective.message_size(), String::as_str);
    format!("message size ({meaning})")
}

/// The order of decision functions in every figure: models from the simplest on, each followed by
/// the same one with fitted parameters, then others by name, then what was measured and the
/// library's default.
pub(crate) fn rank(decided_by: &str) -> (usize, String) {
    const MODELS: [&str; 6] = ["hockney", "logp", "loggp", "plogp", "refined", "simulated"];
    let place = match decided_by {
        "measured" => MODELS.len() + 1,
        "default" => MODELS.len() + 2,
        name => {
            let suffixes = ["-fitted", "-flat"];
            let model = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
            let model = model.unwrap_or(name);
            MODELS.iter().position(|known| *known == model).unwrap_or(MODELS.len())
        }
    };
    (place, decided_by.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn penalties_are_written_with_as_many_digits_as_matter() {
        assert_eq!(percent(0.0041), "0.4 %");
        assert_eq!(percent(0.234), "23 %");
        assert_eq!(percent(3.12), "312 %");
        assert_eq!(shaded(0.123, false).texts, ["12%", "12"]);
        assert_eq!(shaded(1e9, false).texts, [">999%", ">999"]);
        assert_eq!(shaded(-0.004, false).texts, ["0%", "0"]);
    }

    #[test]
    fn less_than_nothing_is_noise() {
        assert_eq!(percent(-0.023), "noise");
        assert_eq!(percent(-0.0004), "0.0 %");
        assert_eq!(shaded(-0.01, false).texts, ["noise", "<0"]);
    }

    #[test]
    fn decision_functions_come_in_the_order_of_the_models() {
        let mut names =
            ["default", "plogp", "loggp-fitted", "measured", "hockney", "mine", "loggp"];
        names.sort_by_key(|name| rank(name));
        let wanted = ["hockney", "loggp", "loggp-fitted", "plogp", "mine", "measured", "default"];
        assert_eq!(names, wanted);
    }
}
