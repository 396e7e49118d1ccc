//! A space-time diagram, laid out and drawn.

use plotters::prelude::{DrawingBackend, RGBColor};
use schedules::simulator::ActivityKind;

use crate::{
    FigureError,
    canvas::{Align, Canvas, Hatch, Pixel, Rect, TEXT, TICK},
    colour,
    data::{FigureTable, GnuplotScript, only, quoted},
    page::{Heading, LINE, Legend, LegendKey, MARGIN},
};

const WIDTH: i32 = 1500;
/// Left of the lanes: the ranks and their label.
const RANKS: i32 = 78;
/// Below the lanes: the times and their label.
const TIMES: i32 = 62;
/// Right of the lanes: room for half of the last number.
const RIGHT: i32 = 30;
/// Height of all lanes together, where a lane would not become too low or too high by it.
const LANES: i32 = 640;
const MIN_LANE: i32 = 24;
const GREATEST_LANE: i32 = 84;
/// Nothing is drawn narrower: an overhead may be a thousandth of the whole.
const MIN_BAR: i32 = 3;

/// Something that takes a rank's time, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActivityBar {
    pub(crate) rank: u32,
    pub(crate) begin: f64,
    pub(crate) end: f64,
    pub(crate) what: BarKind,
}

/// What an arrow shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArrowKind {
    Message,
    Flag,
}

impl ArrowKind {
    const ALL: [ArrowKind; 2] = [ArrowKind::Message, ArrowKind::Flag];

    fn name(self) -> &'static str {
        match self {
            ArrowKind::Message => "message",
            ArrowKind::Flag => "flag",
        }
    }

    fn described(self) -> &'static str {
        match self {
            ArrowKind::Message => "message, from leaving its sender to being taken in",
            ArrowKind::Flag => "flag, from being raised to being seen",
        }
    }

    fn color(self) -> RGBColor {
        match self {
            ArrowKind::Message => colour::GREY,
            ArrowKind::Flag => colour::SERIES[4],
        }
    }

    /// In the table's first column, after those of the activities.
    fn number(self) -> usize {
        BarKind::ALL.len() + self as usize
    }
}

/// A message or a flag, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrow {
    pub(crate) what: ArrowKind,
    pub(crate) from: u32,
    pub(crate) left: f64,
    pub(crate) to: u32,
    pub(crate) taken: f64,
}

/// What a bar shows, in the order in which they are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BarKind {
    Wait,
    Send,
    Receive,
    Combine,
    Copy,
}

impl BarKind {
    const ALL: [BarKind; 5] =
        [BarKind::Wait, BarKind::Send, BarKind::Receive, BarKind::Combine, BarKind::Copy];

    /// None: it takes no time.
    pub(crate) fn from_activity(kind: ActivityKind) -> Option<Self> {
        match kind {
            ActivityKind::Send { .. } => Some(BarKind::Send),
            ActivityKind::Receive { .. } => Some(BarKind::Receive),
            ActivityKind::Flag { .. } => None,
            ActivityKind::Wait => Some(BarKind::Wait),
            ActivityKind::Combine => Some(BarKind::Combine),
            ActivityKind::Copy => Some(BarKind::Copy),
        }
    }

    fn name(self) -> &'static str {
        match self {
            BarKind::Wait => "waits for a message, its port or a flag",
            BarKind::Send => "sends (overhead)",
            BarKind::Receive => "receives (overhead)",
            BarKind::Combine => "combines",
            BarKind::Copy => "copies",
        }
    }

    fn fill(self) -> RGBColor {
        match self {
            BarKind::Wait => colour::LIGHT,
            BarKind::Send => colour::SERIES[0],
            BarKind::Receive => colour::SERIES[1],
            BarKind::Combine => colour::SERIES[2],
            BarKind::Copy => colour::SERIES[3],
        }
    }
}

fn legend(bars: &[ActivityBar], arrows: &[Arrow]) -> Legend {
    let shown = BarKind::ALL.into_iter().filter(|what| bars.iter().any(|bar| bar.what == *what));
    let patch = |what: BarKind| LegendKey::Patch { fill: what.fill(), hatch: Hatch::Plain };
    let mut entries: Vec<_> = shown.map(|what| (patch(what), what.name().to_owned())).collect();
    for what in ArrowKind::ALL {
        if arrows.iter().any(|arrow| arrow.what == what) {
            let key = LegendKey::Curve { color: what.color(), dashes: Some(0), marker: None };
            entries.push((key, what.described().into()));
        }
    }
    Legend { entries }
}

/// A space-time diagram, laid out.
#[derive(Debug, Clone)]
pub(crate) struct SpaceTime {
    heading: Heading,
    legend: Legend,
    bars: Vec<ActivityBar>,
    arrows: Vec<Arrow>,
    /// When each rank is done.
    done: Vec<f64>,
    seconds: f64,
}

impl SpaceTime {
    pub(crate) fn new(
        heading: Heading,
        bars: Vec<ActivityBar>,
        arrows: Vec<Arrow>,
        done: Vec<f64>,
        seconds: f64,
    ) -> Self {
        let legend = legend(&bars, &arrows);
        SpaceTime { heading, legend, bars, arrows, done, seconds }
    }

    fn lane(&self) -> i32 {
        (LANES / self.done.len().max(1) as i32).clamp(MIN_LANE, GREATEST_LANE)
    }

    /// What the lanes take.
    fn area(&self) -> Result<Rect, FigureError> {
        Ok(Rect {
            x: MARGIN + RANKS,
            y: self.heading.height(WIDTH)? + LINE / 2,
            width: WIDTH - 2 * MARGIN - RANKS - RIGHT,
            height: self.lane() * self.done.len() as i32,
        })
    }

    pub(crate) fn size(&self) -> Result<(u32, u32), FigureError> {
        let height = self.area()?.bottom() + TIMES + self.legend.height(WIDTH)? + MARGIN;
        Ok((WIDTH as u32, height as u32))
    }

    pub(crate) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
    ) -> Result<(), FigureError> {
        let area = self.area()?;
        let scene = Scene {
            canvas,
            area,
            lane: self.lane(),
            // So that the end of the last bar does not lie on the frame.
            seconds: self.seconds * 1.01,
        };
        self.heading.draw(canvas, WIDTH)?;
        scene.time_axis()?;
        scene.rank_axis(&self.done)?;
        for bar in self.bars.iter().filter(|bar| bar.what == BarKind::Wait) {
            scene.bar(bar)?;
        }
        for arrow in &self.arrows {
            scene.arrow(arrow)?;
        }
        for bar in self.bars.iter().filter(|bar| bar.what != BarKind::Wait) {
            scene.bar(bar)?;
        }
        canvas.frame(area, colour::GREY)?;
        self.legend.draw(canvas, area.bottom() + TIMES, WIDTH)
    }
}

impl SpaceTime {
    pub(crate) fn table(&self) -> FigureTable {
        let bar = |bar: &ActivityBar| {
            let kind = BarKind::ALL.iter().position(|what| *what == bar.what).unwrap_or_default();
            let (rank, kind) = (bar.rank.to_string(), kind.to_string());
            let times = [bar.begin.to_string(), bar.end.to_string()];
            let [begin, end] = times;
            vec![kind, bar.what.name().to_owned(), rank.clone(), begin, rank, end]
        };
        let arrow = |arrow: &Arrow| {
            let times = [arrow.left.to_string(), arrow.taken.to_string()];
            let [left, taken] = times;
            let (from, to) = (arrow.from.to_string(), arrow.to.to_string());
            vec![arrow.what.number().to_string(), arrow.what.name().into(), from, left, to, taken]
        };
        let rows = self.bars.iter().map(bar).chain(self.arrows.iter().map(arrow)).collect();
        FigureTable { columns: &["kind", "name", "rank", "begin", "to_rank", "end"], rows }
    }

    pub(crate) fn script(&self, mut script: GnuplotScript) -> String {
        script.set("title", &self.heading.title);
        script.line("set key below");
        script.set("xlabel", "time (s)");
        script.set("ylabel", "rank");
        let table = script.table.clone();
        script.line(&format!("set yrange [{}:-0.5]", self.done.len() as f64 - 0.5));
        let mut parts = Vec::new();
        for (kind, what) in BarKind::ALL.into_iter().enumerate() {
            if self.bars.iter().any(|bar| bar.what == what) {
                let (rank, fill) = (only(kind, None, "$3"), what.fill());
                let color = u32::from_be_bytes([0, fill.0, fill.1, fill.2]);
                parts.push(format!(
                    "{table} every ::1 using 4:{rank}:4:6:($3-0.35):($3+0.35) with boxxyerror fs solid \
                     lc rgb {color} title {}",
                    quoted(what.name())
                ));
            }
        }
        for what in ArrowKind::ALL {
            if self.arrows.iter().any(|arrow| arrow.what == what) {
                let (rank, color) = (only(what.number(), None, "$3"), what.color());
                let color = u32::from_be_bytes([0, color.0, color.1, color.2]);
                parts.push(format!(
                    "{table} every ::1 using 4:{rank}:($6-$4):($5-$3) with vectors lc rgb {color} title {}",
                    quoted(what.name())
                ));
            }
        }
        script.plot(&parts);
        script.finish()
    }
}

/// Where things lie while a diagram is drawn.
struct Scene<'a, DB: DrawingBackend> {
    canvas: &'a Canvas<'a, DB>,
    area: Rect,
    lane: i32,
    /// At the right edge.
    seconds: f64,
}

impl<DB: DrawingBackend> Scene<'_, DB> {
    fn x(&self, seconds: f64) -> i32 {
        self.area.x + (seconds / self.seconds * f64::from(self.area.width)).round() as i32
    }

    /// The middle of a rank's lane.
    fn y(&self, rank: u32) -> i32 {
        self.area.y + self.lane * rank as i32 + self.lane / 2
    }

    /// Half of a bar's height.
    fn half(&self, what: BarKind) -> i32 {
        match what {
            BarKind::Wait => 2,
            _ => (self.lane / 6).clamp(5, 10),
        }
    }

    fn time_axis(&self) -> Result<(), FigureError> {
        let (area, canvas) = (self.area, self.canvas);
        let (ticks, unit) = ticks(self.seconds);
        for (seconds, text) in ticks {
            let x = self.x(seconds);
            canvas.path(&[(x, area.y), (x, area.bottom())], GRID, 1)?;
            canvas.path(&[(x, area.bottom()), (x, area.bottom() + 5)], colour::GREY, 1)?;
            let place = (x, area.bottom() + 17);
            canvas.text(place, &text, TICK, colour::BLACK, Align::Center)?;
        }
        let place = (area.center().0, area.bottom() + 42);
        canvas.text(place, &format!("time ({unit})"), TEXT, colour::BLACK, Align::Center)
    }

    fn rank_axis(&self, done: &[f64]) -> Result<(), FigureError> {
        let (area, canvas) = (self.area, self.canvas);
        canvas.upward((MARGIN + 10, area.center().1), "rank")?;
        for (rank, done) in (0_u32..).zip(done) {
            let (x, y) = (self.x(*done), self.y(rank));
            let place = (area.x - 10, y);
            canvas.text(place, &rank.to_string(), TICK, colour::BLACK, Align::Right)?;
            canvas.path(&[(area.x, y), ((x - 1).max(area.x), y)], colour::GREY, 1)?;
        }
        Ok(())
    }

    fn bar(&self, bar: &ActivityBar) -> Result<(), FigureError> {
        let half = self.half(bar.what);
        let (begin, end) = self.stretch(bar);
        let y = self.y(bar.rank) - half;
        // Of two bars that follow each other at once one is told from the other by a line between.
        let width = if end - begin > 5 { end - begin - 1 } else { end - begin };
        let rect = Rect { x: begin, y, width, height: 2 * half };
        self.canvas.fill(rect, bar.what.fill())
    }

    /// Where a bar begins and ends. One that would be too narrow grows: if it receives, to the
    /// left, over its wait, else to the right, so that what follows it at once stays visible.
    fn stretch(&self, bar: &ActivityBar) -> (i32, i32) {
        let (begin, end) = (self.x(bar.begin), self.x(bar.end));
        match bar.what {
            BarKind::Wait => (begin, end),
            BarKind::Receive => (begin.min((end - MIN_BAR).max(self.area.x)), end),
            _ => (begin, end.max(begin + MIN_BAR)),
        }
    }

    /// From edge to edge of the bars, with a head.
    fn arrow(&self, arrow: &Arrow) -> Result<(), FigureError> {
        let half = self.half(BarKind::Send);
        let down = if arrow.to > arrow.from { half } else { -half };
        let from = (self.x(arrow.left), self.y(arrow.from) + down);
        let to = (self.x(arrow.taken), self.y(arrow.to) - down);
        self.canvas.path(&[from, to], arrow.what.color(), 1)?;
        self.canvas.polygon(&head(from, to), arrow.what.color())
    }
}

const GRID: RGBColor = RGBColor(232, 232, 232);

/// The head of an arrow: 11 pixels long, 8 wide.
fn head(from: Pixel, to: Pixel) -> [Pixel; 3] {
    let (x, y) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
    let length = x.hypot(y).max(1.0);
    let (x, y) = (x / length, y / length);
    let corner = |side: f64| {
        let back = (f64::from(to.0) - 11.0 * x, f64::from(to.1) - 11.0 * y);
        ((back.0 - 4.0 * side * y).round() as i32, (back.1 + 4.0 * side * x).round() as i32)
    };
    [to, corner(1.0), corner(-1.0)]
}

/// At most 11 round times from 0 on, and the one unit in which they are written.
fn ticks(seconds: f64) -> (Vec<(f64, String)>, &'static str) {
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
    let (scale, unit) =
        units.into_iter().find(|(scale, _)| seconds >= *scale).unwrap_or((1e-9, "ns"));
    let least = seconds / scale / 10.0;
    let power = least.log10().floor();
    let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * 10_f64.powf(power));
    let step = step.into_iter().find(|step| *step >= least).unwrap_or(least);
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let number = (seconds / scale / step + 1e-9).floor() as u32;
    let tick = |index: u32| {
        let value = f64::from(index) * step;
        let text = match (1e-6..1e6).contains(&step) {
            true => format!("{value:.decimals$}"),
            false => format!("{value:.1e}"),
        };
        (value * scale, text)
    };
    ((0..=number).map(tick).collect(), unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_round_and_share_a_unit() {
        let written = |seconds| {
            let (ticks, unit) = ticks(seconds);
            (ticks.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" "), unit)
        };
        assert_eq!(written(4.8e-3), ("0.0 0.5 1.0 1.5 2.0 2.5 3.0 3.5 4.0 4.5".into(), "ms"));
        assert_eq!(written(1e-6), ("0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0".into(), "us"));
        assert_eq!(written(73.0), ("0 10 20 30 40 50 60 70".into(), "s"));
        assert_eq!(written(2.5e9), ("0.0e0 5.0e8 1.0e9 1.5e9 2.0e9 2.5e9".into(), "s"));
    }

    proptest! {
        #[test]
        fn every_span_has_some_ticks_inside(exponent in -9.0_f64..6.0) {
            let seconds = 10_f64.powf(exponent);
            let (ticks, _) = ticks(seconds);
            prop_assert!((3..=11).contains(&ticks.len()), "{}", ticks.len());
            prop_assert!(ticks.iter().all(|(at, _)| *at <= seconds * (1.0 + 1e-9)));
        }

        #[test]
        fn a_head_ends_the_arrow(x in -500_i32..500, y in -500_i32..500) {
            prop_assume!(x.abs() + y.abs() > 20);
            let [tip, left, right] = head((0, 0), (x, y));
            prop_assert_eq!(tip, (x, y));
            for corner in [left, right] {
                let length = f64::from(x - corner.0).hypot(f64::from(y - corner.1));
                prop_assert!((length - 137_f64.sqrt()).abs() < 1.5, "{length}");
            }
        }
    }
}
