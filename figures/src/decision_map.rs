use std::collections::{BTreeMap, BTreeSet};

use records::{Collective, Method, choices::Choices, penalty::Penalties, quantity};

use crate::{
    Figure, FigureError,
    canvas::Hatch,
    colour,
    map::{MapCell, MapFigure, MapRow, Panel},
    page::{Heading, Legend, LegendKey, panel_name},
    penalty_map::{rank, size_label},
};

/// What is taken at one point.
#[derive(Debug, Clone, Copy)]
struct PanelChoice<'a> {
    method: &'a Method,
    /// Others tie with it.
    tied: bool,
    /// The point lies beyond what was calibrated.
    extrapolated: bool,
}

/// What one panel shows, by (row, bytes).
type PanelChoices<'a> = BTreeMap<(MapRow, u64), PanelChoice<'a>>;

/// Which method each model takes, in the manner of the paper's Figure 6.
///
/// One panel per model; the colour is the algorithm, the hatching the segment size, a dot says that
/// the uncertainty of the parameters does not tell the method from others; what lies beyond the
/// calibration is outlined. With `measured`, the first panel is what was measured best.
///
/// # Errors
/// The decisions have nothing about the collective, or more than a figure can hold.
pub fn decision_map(
    decisions: &Choices,
    measured: Option<&Penalties>,
    collective: Collective,
) -> Result<Figure, FigureError> {
    let mut models: BTreeMap<&str, PanelChoices<'_>> = BTreeMap::new();
    for decision in decisions.choices.iter().filter(|d| d.point.collective == collective) {
        let choice = PanelChoice {
            method: &decision.method,
            tied: !decision.ties.is_empty(),
            extrapolated: decision.extrapolated,
        };
        models
            .entry(decision.model.as_deref().unwrap_or_default())
            .or_default()
            .insert((decision.point.layout.into(), decision.point.bytes), choice);
    }
    if models.is_empty() {
        let present: BTreeSet<Collective> =
            decisions.choices.iter().map(|decision| decision.point.collective).collect();
        let present: Vec<Collective> = present.into_iter().collect();
        return Err(FigureError::no_cells("decisions", collective, &present));
    }
    let mut panels: Vec<(&str, PanelChoices<'_>)> = models.into_iter().collect();
    panels.sort_by_key(|(name, _)| rank(name));
    if let Some(penalties) = measured {
        let best = best(penalties, collective);
        if !best.is_empty() {
            panels.insert(0, ("measured best", best));
        }
    }
    let source = decisions.prediction.iter().map(|of| {
        format!("parameters: {} ({}); closed forms: {}", of.calibration, of.parameters, of.forms)
    });
    let mut lines: Vec<String> = source.collect();
    lines.extend(measured.map(|penalties| format!("measured: {}", penalties.platform.summary())));
    let heading = Heading { title: format!("Decision functions: {collective}"), lines };
    let x_label = size_label(decisions.message_size.get(&collective), collective);
    draw(heading, &panels, x_label)
}

fn best(penalties: &Penalties, collective: Collective) -> PanelChoices<'_> {
    penalties
        .penalties
        .iter()
        .filter(|penalty| penalty.point.collective == collective)
        .map(|penalty| {
            let choice = PanelChoice { method: &penalty.best, tied: false, extrapolated: false };
            ((penalty.point.layout.into(), penalty.point.bytes), choice)
        })
        .collect()
}

fn draw(
    heading: Heading,
    panels: &[(&str, PanelChoices<'_>)],
    x_label: String,
) -> Result<Figure, FigureError> {
    let look = MethodStyle::from_panels(panels);
    let legend = look.legend(panels);
    let panels = panels.iter().enumerate().map(|(index, (name, choices))| {
        let mut detail = records::counted(choices.len(), "point");
        for (what, count) in [
            ("with ties", choices.values().filter(|choice| choice.tied).count()),
            ("extrapolated", choices.values().filter(|choice| choice.extrapolated).count()),
        ] {
            if count > 0 {
                detail += &format!(", {count} {what}");
            }
        }
        let cells = choices.iter().map(|(place, choice)| (*place, look.cell(choice)));
        Panel { title: format!("{} {name}", panel_name(index)), detail, cells: cells.collect() }
    });
    Figure::of_map(MapFigure::new(heading, panels.collect(), x_label, legend, None)?)
}

/// Hatchings of segment sizes, the wider the smaller the segments.
const SEGMENT_HATCHES: [Hatch; 4] =
    [Hatch::Rising(14), Hatch::Falling(9), Hatch::Rising(6), Hatch::Falling(4)];

/// Hatchings of mock-ups, which have no segments.
const MOCKUP_HATCHES: [Hatch; 4] =
    [Hatch::Level(5), Hatch::Upright(5), Hatch::Level(10), Hatch::Upright(10)];

/// How the methods of one figure look.
struct MethodStyle<'a> {
    /// Ascending, as many classes as there are hatchings at most: their least and greatest size.
    segments: Vec<(u64, u64)>,
    mockups: Vec<&'a str>,
    /// Both the library's methods and Colibri's occur, so that these must be told apart.
    frames: bool,
}

impl<'a> MethodStyle<'a> {
    fn from_panels(panels: &[(&str, PanelChoices<'a>)]) -> Self {
        let methods: BTreeSet<&'a Method> = methods(panels).collect();
        let sizes: BTreeSet<u64> =
            methods.iter().map(|method| method.segment_bytes()).filter(|size| *size > 0).collect();
        let sizes: Vec<u64> = sizes.into_iter().collect();
        let per_class = sizes.len().div_ceil(SEGMENT_HATCHES.len()).max(1);
        let mockups: BTreeSet<&str> = methods.iter().copied().filter_map(composed).collect();
        let own = methods.iter().any(|method| method.is_own());
        let native = methods.iter().any(|method| method.is_native());
        MethodStyle {
            segments: sizes.chunks(per_class).map(|c| (c[0], c[c.len() - 1])).collect(),
            mockups: mockups.into_iter().collect(),
            frames: own && native,
        }
    }

    fn hatch(&self, method: &Method) -> Hatch {
        if let Some(name) = composed(method) {
            let index = self.mockups.iter().position(|mockup| *mockup == name).unwrap_or(0);
            return MOCKUP_HATCHES[index % MOCKUP_HATCHES.len()];
        }
        let size = method.segment_bytes();
        self.segments
            .iter()
            .position(|(least, greatest)| (*least..=*greatest).contains(&size))
            .map_or(Hatch::Plain, |class| SEGMENT_HATCHES[class])
    }

    fn cell(&self, choice: &PanelChoice<'_>) -> MapCell {
        let PanelChoice { method, tied, extrapolated } = *choice;
        let texts = match composed(method) {
            Some(name) => {
                let index = self.mockups.iter().position(|mockup| *mockup == name).unwrap_or(0);
                [format!("M{}", index + 1), format!("M{}", index + 1)]
            }
            None => match method.segment_bytes() {
                0 => [String::new(), String::new()],
                bytes => [quantity::compact_bytes(bytes), letters(bytes)],
            },
        };
        MapCell {
            fill: colour::of_method(method),
            hatch: self.hatch(method),
            texts,
            dot: tied,
            cornered: false,
            framed: self.frames && method.is_own(),
            outlined: extrapolated,
        }
    }

    fn legend(&self, panels: &[(&str, PanelChoices<'_>)]) -> Legend {
        let mut entries = vec![(LegendKey::Word, "algorithm:".to_owned())];
        let algorithms: BTreeSet<_> = methods(panels).filter_map(Method::algorithm).collect();
        for algorithm in algorithms {
            let method = Method::own(algorithm);
            let key = LegendKey::Patch { fill: colour::of_method(&method), hatch: Hatch::Plain };
            entries.push((key, algorithm.to_string()));
        }
        if methods(panels).any(|method| *method == Method::Default) {
            let key =
                LegendKey::Patch { fill: colour::of_method(&Method::Default), hatch: Hatch::Plain };
            entries.push((key, "the library's default".into()));
        }
        for (index, name) in self.mockups.iter().enumerate() {
            let method = Method::Mockup((*name).to_owned());
            let key =
                LegendKey::Patch { fill: colour::of_method(&method), hatch: self.hatch(&method) };
            entries.push((key, format!("M{} = {name}", index + 1)));
        }
        if !self.segments.is_empty() {
            entries.push((LegendKey::Word, "segment size:".into()));
            let plain = LegendKey::Patch { fill: colour::LIGHT, hatch: Hatch::Plain };
            entries.push((plain, "unsegmented".into()));
            for (class, (least, greatest)) in self.segments.iter().enumerate() {
                let text = match least == greatest {
                    true => quantity::format_bytes(*least),
                    false => {
                        let (least, greatest) =
                            (quantity::format_bytes(*least), quantity::format_bytes(*greatest));
                        format!("{least} to {greatest}")
                    }
                };
                let hatch = SEGMENT_HATCHES[class];
                entries.push((LegendKey::Patch { fill: colour::LIGHT, hatch }, text));
            }
        }
        let marks_begin = entries.len();
        let any = |of: fn(&PanelChoice<'_>) -> bool| {
            panels.iter().flat_map(|(_, choices)| choices.values()).any(of)
        };
        if any(|choice| choice.tied) {
            entries.push((LegendKey::Dot, "ties with others within the uncertainty".into()));
        }
        if any(|choice| choice.extrapolated) {
            entries.push((LegendKey::Outlined, "extrapolated beyond what was calibrated".into()));
        }
        if self.frames {
            entries.push((LegendKey::Framed, "Colibri's own, on point-to-point".into()));
        }
        if entries.len() > marks_begin {
            entries.insert(marks_begin, (LegendKey::Word, "marks:".into()));
        }
        Legend { entries }
    }
}

fn methods<'a, 'b>(
    panels: &'b [(&str, PanelChoices<'a>)],
) -> impl Iterator<Item = &'a Method> + 'b {
    panels.iter().flat_map(|(_, choices)| choices.values().map(|choice| choice.method))
}

/// The name of what is neither an algorithm nor the default: a mock-up, a plug-in or another's.
fn composed(method: &Method) -> Option<&str> {
    match method {
        Method::Mockup(name) | Method::Other(name) => Some(name),
        Method::Plugin(plugin) => Some(plugin.symbol()),
        Method::Default | Method::Native(_) | Method::Own(_) => None,
    }
}

/// `8K`, `1M`, `1000`: for narrow cells.
fn letters(bytes: u64) -> String {
    quantity::compact_bytes(bytes).replace("iB", "")
}
