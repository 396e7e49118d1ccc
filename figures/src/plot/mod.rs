//! Curves on logarithmic axes, with intervals.

mod data;
mod export;

pub use data::{Axis, Curve, PlotPoint, Trace};
pub(crate) use data::{Notes, Plot};

use crate::{
    FigureError,
    canvas::{Align, Canvas, DASHES, Pixel, Rect, TEXT, TICK},
    colour, font,
    page::{
        Heading, LINE, Legend, LegendKey, MARGIN, MIN_WIDTH, PANEL_HEADING, Part, PartKind, Parted,
        columns_and_rows, marker, panel_heading, panel_name,
    },
    ticks::{Quantity, format_tick, padded, span, ticks},
};
use plotters::{
    chart::{ChartBuilder, ChartContext},
    coord::{
        Shift,
        cartesian::Cartesian2d,
        combinators::{BindKeyPoints, IntoLogRange, LogCoord, WithKeyPoints},
    },
    drawing::DrawingArea,
    prelude::{Color, DrawingBackend, RGBColor},
};

/// Panels with one legend; with one each where one for all would be long.
#[derive(Debug, Clone)]
pub(crate) struct Plots {
    heading: Heading,
    panels: Vec<Plot>,
    /// Those whose points have one place on the axis: sentences of the heading.
    in_words: Vec<Plot>,
    /// Their place is their colour and their marker or dashes in every panel.
    names: Vec<(String, Trace)>,
    /// One, or one of each panel.
    legends: Vec<Legend>,
}

/// So many series a legend names at most where several panels share it.
pub const SHARED_LEGEND: usize = 8;

const MAX_PANELS: usize = 32;
/// So many series of one figure look different from each other.
const MAX_SERIES: usize = colour::SERIES.len() * DASHES;

type LogAxis = WithKeyPoints<LogCoord<f64>>;
type Chart<'a, DB> = ChartContext<'a, DB, Cartesian2d<LogAxis, LogAxis>>;

impl Plots {
    pub(crate) fn new(mut heading: Heading, mut panels: Vec<Plot>) -> Result<Self, FigureError> {
        let (mut shown, mut dropped) = (0, 0);
        for series in panels.iter_mut().flat_map(|panel| &mut panel.series) {
            let before = series.points.len();
            series.points.retain(PlotPoint::is_drawable);
            shown += series.points.len();
            dropped += before - series.points.len();
        }
        if shown == 0 {
            let reason = match dropped {
                0 => "there are no points".into(),
                _ => format!("none of {dropped} points is positive and finite"),
            };
            return Err(FigureError::NothingToDraw(reason));
        }
        if dropped > 0 {
            heading.lines.push(format!(
                "{dropped} of {} points are not shown: zero or not finite, which logarithmic axes \
                 do not have",
                shown + dropped
            ));
        }
        panels.retain(|panel| panel.series.iter().any(|series| !series.points.is_empty()));
        let (mut panels, in_words): (Vec<Plot>, Vec<Plot>) =
            panels.into_iter().partition(Plot::has_several_places);
        heading.lines.extend(in_words.iter().map(Plot::sentence));
        if panels.len() > 1 {
            let titled = panels.iter_mut().enumerate().filter(|(_, panel)| !panel.title.is_empty());
            for (index, panel) in titled {
                panel.title = format!("{} {}", panel_name(index), panel.title);
            }
        }
        let mut names: Vec<(String, Trace)> = Vec::new();
        for series in panels.iter().chain(&in_words).flat_map(|panel| &panel.series) {
            if !series.points.is_empty() && !names.iter().any(|(name, _)| *name == series.name) {
                names.push((series.name.clone(), series.trace));
            }
        }
        for (what, count, limit) in
            [("panels", panels.len(), MAX_PANELS), ("series", names.len(), MAX_SERIES)]
        {
            if count > limit {
                return Err(FigureError::TooMuch { what, count, limit });
            }
        }
        let mut legends = vec![legend(&names, &panels)];
        if panels.len() > 1 && legends[0].entries.len() > SHARED_LEGEND {
            legends =
                panels.iter().map(|panel| legend(&names, std::slice::from_ref(panel))).collect();
        }
        Ok(Plots { heading, panels, in_words, names, legends })
    }

    pub(crate) fn size(&self) -> Result<(u32, u32), FigureError> {
        let layout = PlotLayout::from_plots(self)?;
        Ok((layout.width as u32, layout.height as u32))
    }

    fn draw_panel<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        panel: &Plot,
        (left, top): Pixel,
        (width, height): (i32, i32),
    ) -> Result<(), FigureError> {
        let mut above = 0;
        if !panel.title.is_empty() {
            let place = (left + Y_AXIS, top);
            panel_heading(canvas, place, width - Y_AXIS, &panel.title, &panel.detail)?;
            above = PANEL_HEADING;
        }
        let mut notes_y = 0;
        if let Some(notes) = &panel.notes {
            notes_y = top + above + LINE / 2;
            let place = (left + Y_AXIS - 10, notes_y);
            canvas.text(place, &notes.label, NOTE, colour::GREY, Align::Right)?;
            above += LINE;
        }
        let area = canvas
            .area()
            .clone()
            .shrink((left, top + above), (width as u32, (height - above) as u32));
        let chart = axes(&area, panel, width - Y_AXIS)?;
        for pass in [Pass::Bands, Pass::Lines, Pass::Markers] {
            for series in panel.series.iter().filter(|series| !series.points.is_empty()) {
                let same = |(name, _): &(String, Trace)| *name == series.name;
                let index = self.names.iter().position(same).unwrap_or(0);
                draw_series(canvas, &chart, series, index, pass)?;
            }
        }
        if let Some(notes) = &panel.notes {
            draw_notes(canvas, &chart, notes, notes_y)?;
        }
        Ok(())
    }
}

impl Parted for Plots {
    type Layout = PlotLayout;

    fn heading(&self) -> &Heading {
        &self.heading
    }

    fn layout(&self) -> Result<PlotLayout, FigureError> {
        PlotLayout::from_plots(self)
    }

    fn parts(&self, layout: &PlotLayout) -> Result<Vec<Part>, FigureError> {
        let mut parts = vec![self.heading.part(layout.width)?];
        for index in 0..self.panels.len() {
            let (x, y) = layout.place(index);
            // A number under the end of an axis may reach beyond it.
            let place = Rect { x, y, width: PANEL.0 + GAP / 2, height: PANEL.1 };
            parts.push(Part { kind: PartKind::Panel(index), place });
            if self.legends.len() > 1 {
                parts.extend(self.legends[index].parts(index, layout.legends[index], LEGEND)?);
            }
        }
        if let [legend] = &self.legends[..] {
            parts.extend(legend.parts(0, layout.legends[0], layout.legend_width)?);
        }
        Ok(parts)
    }

    fn draw_part<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        layout: &PlotLayout,
        part: &Part,
    ) -> Result<(), FigureError> {
        match part.kind {
            PartKind::Heading => self.heading.draw(canvas, layout.width),
            PartKind::Panel(index) => {
                self.draw_panel(canvas, &self.panels[index], layout.place(index), PANEL)
            }
            PartKind::Key { legend, entry, .. } => {
                self.legends[legend].draw_entry(canvas, entry, part.place)
            }
            PartKind::Scale => Ok(()),
        }
    }
}

/// The series that occur in these panels.
fn legend(names: &[(String, Trace)], panels: &[Plot]) -> Legend {
    let is_there = |name: &str| {
        let mut series = panels.iter().flat_map(|panel| &panel.series);
        series.any(|series| series.name == name && !series.points.is_empty())
    };
    let there = names.iter().enumerate().filter(|(_, (name, _))| is_there(name));
    let entries = there.map(|(index, (name, trace))| {
        let (color, kind) = look(index);
        let key = match trace {
            Trace::Line => LegendKey::Curve { color, dashes: Some(kind), marker: None },
            Trace::Marked => LegendKey::Curve { color, dashes: Some(0), marker: Some(kind) },
            Trace::Scattered => LegendKey::Curve { color, dashes: None, marker: Some(kind) },
        };
        (key, font::printable(name))
    });
    Legend { entries: entries.collect() }
}

impl Plot {
    /// Whether its points have more than one place on the axis: one alone is no curve.
    fn has_several_places(&self) -> bool {
        let mut places = self.series.iter().flat_map(|series| &series.points).map(|point| point.x);
        let first = places.next();
        places.any(|x| Some(x) != first)
    }

    /// `8 processes, 64 B: the library's default 41.0 us, with it loaded 36.8 us (35.1 us to 38.0 us)`
    fn sentence(&self) -> String {
        let places = self.series.iter().flat_map(|series| &series.points);
        let place = places.map(|point| format_tick(point.x, self.x.quantity)).next();
        let place = match (self.x.quantity, place.unwrap_or_default()) {
            (Quantity::Processes, place) => format!("{place} ranks"),
            (_, place) => place,
        };
        let value = |value: f64| match self.y.quantity {
            Quantity::Seconds => records::quantity::format_seconds(value),
            _ => format!("{value:.2}"),
        };
        let values = self.series.iter().flat_map(|series| {
            series.points.iter().map(|point| {
                let PlotPoint { y, low, high, .. } = *point;
                let interval = match low < high && high.is_finite() {
                    true => format!(" ({} to {})", value(low), value(high)),
                    false => String::new(),
                };
                let is =
                    if series.name.ends_with(|c: char| c.is_ascii_digit()) { " =" } else { "" };
                format!("{}{is} {}{interval}", series.name, value(y))
            })
        });
        let values: Vec<String> = values.collect();
        let title = match self.title.as_str() {
            "" => String::new(),
            title => format!("{title}, "),
        };
        format!("{title}{place}: {}", values.join(", "))
    }
}

/// The colour and the marker or dashes of the series at a place; colours return with others of
/// these.
fn look(index: usize) -> (RGBColor, usize) {
    let colours = colour::SERIES.len();
    (colour::SERIES[index % colours], index + index / colours)
}

/// Left of the curves: label and numbers.
const Y_AXIS: i32 = 112;
const X_AXIS: i32 = 60;
/// Height of the notes, small so that one per message size fits.
const NOTE: u32 = TICK - 2;
/// Between panels.
const GAP: i32 = 26;

/// Draws the axes of a panel; the chart knows where values lie.
fn axes<'a, DB: DrawingBackend + 'a>(
    area: &DrawingArea<DB, Shift>,
    panel: &Plot,
    width: i32,
) -> Result<Chart<'a, DB>, FigureError> {
    let points: Vec<&PlotPoint> = panel.series.iter().flat_map(|series| &series.points).collect();
    let (x_low, x_high) = span(points.iter().map(|point| point.x));
    let (y_low, y_high) = span(points.iter().map(|point| point.y));
    // Intervals may widen the axis, but not by so much that the curves become flat.
    let ends = points.iter().flat_map(|point| [point.low, point.high]);
    let ends = ends.filter(|end| end.is_finite() && *end > 0.0);
    let (low, high) = span(ends.chain([y_low, y_high]));
    let (y_low, y_high) = (low.max(y_low / 10.0), high.min(y_high * 10.0));
    let (x, y) = (padded(x_low, x_high, 2.0), padded(y_low, y_high, 4.0));
    let x_ticks = ticks(x, panel.x.quantity, (width / 78) as usize);
    let y_ticks = ticks(y, panel.y.quantity, 9);

    let mut chart = ChartBuilder::on(area)
        .set_label_area_size(plotters::chart::LabelAreaPosition::Left, Y_AXIS)
        .set_label_area_size(plotters::chart::LabelAreaPosition::Bottom, X_AXIS)
        .margin_right(10)
        .margin_top(8)
        .build_cartesian_2d(
            (x.0..x.1).log_scale().with_key_points(x_ticks),
            (y.0..y.1).log_scale().with_key_points(y_ticks),
        )
        .map_err(FigureError::drawing)?;
    chart
        .configure_mesh()
        .bold_line_style(colour::LIGHT.to_rgba())
        .axis_style(colour::GREY.to_rgba())
        .label_style(font::style(TICK, colour::BLACK)?)
        .axis_desc_style(font::style(TEXT, colour::BLACK)?)
        .x_desc(font::printable(&panel.x.label))
        .y_desc(font::printable(&panel.y.label))
        .x_label_formatter(&|value| format_tick(*value, panel.x.quantity))
        .y_label_formatter(&|value| format_tick(*value, panel.y.quantity))
        .draw()
        .map_err(FigureError::drawing)?;
    Ok(chart)
}

/// What is drawn of all series before the next: bands would hide lines, lines markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Bands,
    Lines,
    Markers,
}

fn draw_series<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    chart: &Chart<'_, DB>,
    series: &Curve,
    index: usize,
    pass: Pass,
) -> Result<(), FigureError> {
    let (color, kind) = look(index);
    let places: Vec<Pixel> =
        series.points.iter().map(|point| chart.backend_coord(&(point.x, point.y))).collect();
    // A line of one point would not be seen.
    let marked = series.trace != Trace::Line || places.len() == 1;
    match pass {
        Pass::Bands if !marked => draw_band(canvas, chart, series, &places, color),
        Pass::Lines if !marked => canvas.dashes(&places, color, kind),
        Pass::Lines if series.trace == Trace::Marked && places.len() > 1 => {
            canvas.path(&places, color, 2)
        }
        Pass::Markers if marked => {
            for (point, (x, y)) in series.points.iter().zip(places) {
                if point.low < point.high {
                    draw_bar(canvas, x, interval(chart, point), color)?;
                }
                marker(canvas, (x, y), kind, color)?;
            }
            Ok(())
        }
        Pass::Bands | Pass::Lines | Pass::Markers => Ok(()),
    }
}

fn draw_band<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    chart: &Chart<'_, DB>,
    series: &Curve,
    places: &[Pixel],
    color: RGBColor,
) -> Result<(), FigureError> {
    if series.points.iter().all(|point| point.low >= point.high) {
        return Ok(());
    }
    let columns = || series.points.iter().zip(places);
    let lower = columns().map(|(point, (x, _))| (*x, interval(chart, point).0));
    let upper = columns().rev().map(|(point, (x, _))| (*x, interval(chart, point).1));
    canvas.veil(&lower.chain(upper).collect::<Vec<Pixel>>(), color)
}

fn draw_bar<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    x: i32,
    (low, high): (i32, i32),
    color: RGBColor,
) -> Result<(), FigureError> {
    canvas.path(&[(x, low), (x, high)], color, 1)?;
    canvas.path(&[(x - 4, low), (x + 4, low)], color, 1)?;
    canvas.path(&[(x - 4, high), (x + 4, high)], color, 1)
}

/// The pixel rows of a point's interval, cut off at the edges of the panel.
fn interval<DB: DrawingBackend>(chart: &Chart<'_, DB>, point: &PlotPoint) -> (i32, i32) {
    let (_, rows) = chart.plotting_area().get_pixel_range();
    let low = end(chart, point.x, point.low, rows.end).clamp(rows.start, rows.end);
    let high = end(chart, point.x, point.high, rows.start).clamp(rows.start, rows.end);
    (low, high)
}

/// The pixel row of an end of an interval; `otherwise` where the axis has no place for it.
fn end<DB: DrawingBackend>(chart: &Chart<'_, DB>, x: f64, value: f64, otherwise: i32) -> i32 {
    match value.is_finite() && value > 0.0 {
        true => chart.backend_coord(&(x, value)).1,
        false => otherwise,
    }
}

fn draw_notes<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    chart: &Chart<'_, DB>,
    notes: &Notes,
    y: i32,
) -> Result<(), FigureError> {
    let (_, rows) = chart.plotting_area().get_pixel_range();
    let mut free_from = i32::MIN;
    for (x, text) in &notes.texts {
        let (center, _) = chart.backend_coord(&(*x, 1.0));
        let half = font::width(text, NOTE)? / 2;
        // Texts that would touch the one before are left out; the curves show them all.
        if center - half < free_from {
            continue;
        }
        free_from = center + half + 4;
        canvas.text((center, y), text, NOTE, colour::BLACK, Align::Center)?;
        canvas.path(&[(center, rows.start - 5), (center, rows.start)], colour::GREY, 1)?;
    }
    Ok(())
}

/// Width and height of a panel: two stand side by side on a page, and its letters can be read on a telephone.
const PANEL: (i32, i32) = (672, 440);
/// Width of a legend below or beside a panel, with its margins.
const LEGEND: i32 = PANEL.0 + 2 * MARGIN;

/// Everything that follows from the number of panels.
pub(crate) struct PlotLayout {
    width: i32,
    height: i32,
    columns: usize,
    panels_top: i32,
    /// Height of each row with the legends of its panels and the space below it.
    rows: Vec<i32>,
    /// Where each legend begins.
    legends: Vec<Pixel>,
    /// Of a legend of all panels.
    legend_width: i32,
}

impl PlotLayout {
    fn from_plots(plots: &Plots) -> Result<Self, FigureError> {
        let count = plots.panels.len();
        let (columns, rows) = match count {
            // Two and one would leave a quarter of the figure empty.
            0 | 3 => (1, count),
            _ => columns_and_rows(count, PANEL.0 + GAP),
        };
        let width = (2 * MARGIN + columns as i32 * (PANEL.0 + GAP) - GAP).max(MIN_WIDTH);
        let panels_top = plots.heading.height(width)? + LINE / 2;
        let is_shared = plots.legends.len() == 1;
        // The place beside the last panel, where it would be empty.
        let is_empty = !count.is_multiple_of(columns);
        let mut rows = vec![PANEL.1 + GAP; rows];
        if !is_shared {
            let below = if is_empty { count - 1 } else { count };
            for (index, legend) in plots.legends.iter().enumerate().take(below) {
                let row = &mut rows[index / columns];
                *row = (*row).max(PANEL.1 + GAP + legend.height(LEGEND)?);
            }
        }
        let bottom = panels_top + rows.iter().sum::<i32>() - GAP / 2;
        let mut layout = PlotLayout {
            width,
            height: bottom + MARGIN,
            columns,
            panels_top,
            rows,
            legends: Vec::new(),
            legend_width: LEGEND,
        };
        let beside = layout.place(count);
        let beside = (beside.0 - MARGIN, beside.1 + PANEL_HEADING);
        let fits = plots.legends[0].height(LEGEND)? <= PANEL.1 - PANEL_HEADING;
        if !is_shared {
            let below = |index: usize| {
                let (left, top) = layout.place(index);
                (left - MARGIN, top + PANEL.1)
            };
            layout.legends = (0..count).map(below).collect();
            if let (true, Some(last)) = (is_empty, layout.legends.last_mut()) {
                *last = beside;
            }
        } else if is_empty && fits {
            layout.legends.push(beside);
        } else {
            layout.legends.push((0, bottom));
            layout.legend_width = width;
            layout.height += plots.legends[0].height(width)?;
        }
        Ok(layout)
    }

    /// Where a panel begins.
    fn place(&self, index: usize) -> Pixel {
        let (column, row) = (index % self.columns, index / self.columns);
        let left = MARGIN + column as i32 * (PANEL.0 + GAP);
        (left, self.panels_top + self.rows.iter().take(row).sum::<i32>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_series_look_alike() {
        let all = (0..MAX_SERIES).map(|index| {
            let (color, kind) = look(index);
            ((color.0, color.1, color.2), kind)
        });
        let all: Vec<_> = all.collect();
        let lines: BTreeSet<_> = all.iter().map(|(color, kind)| (color, kind % DASHES)).collect();
        assert_eq!(lines.len(), MAX_SERIES);
        let marked: BTreeSet<_> = all.iter().map(|(color, kind)| (color, kind % 7)).collect();
        assert_eq!(marked.len(), MAX_SERIES);
    }
}
