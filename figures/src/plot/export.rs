//! Curves as a table and a gnuplot script.

use super::{Plot, PlotLayout, Plots, Trace};
use crate::{
    FigureError,
    data::{FigureTable, GnuplotScript, only, quoted},
    ticks::Quantity,
};

impl Plots {
    pub(crate) fn table(&self) -> FigureTable {
        let mut rows = Vec::new();
        for (panel, plot) in self.panels.iter().chain(&self.in_words).enumerate() {
            for series in &plot.series {
                for point in &series.points {
                    let number = self.number(&series.name).to_string();
                    let mut row = vec![panel.to_string(), plot.title.clone(), number];
                    row.push(series.name.clone());
                    row.extend([point.x, point.y, point.low, point.high].map(|it| it.to_string()));
                    rows.push(row);
                }
            }
        }
        let columns = &["panel", "title", "series", "name", "x", "y", "low", "high"];
        FigureTable { columns, rows }
    }

    pub(crate) fn script(&self, mut script: GnuplotScript) -> Result<String, FigureError> {
        let layout = PlotLayout::from_plots(self)?;
        let rows = self.panels.len().div_ceil(layout.columns);
        let title = quoted(&self.heading.title);
        script.line(&format!("set multiplot layout {rows},{} title {title}", layout.columns));
        script.line("set key below");
        for (index, plot) in self.panels.iter().enumerate() {
            script.line("unset logscale");
            for (axis, of) in [("x", &plot.x), ("y", &plot.y)] {
                let base = match of.quantity {
                    Quantity::Bytes | Quantity::Processes => 2,
                    Quantity::Seconds | Quantity::Number => 10,
                };
                script.line(&format!("set logscale {axis} {base}"));
                script.set(&format!("{axis}label"), &of.label);
            }
            script.set("title", &plot.title);
            let parts = self.parts(index, plot, &script.table);
            script.plot(&parts);
        }
        script.line("unset multiplot");
        Ok(script.finish())
    }

    fn parts(&self, panel: usize, plot: &Plot, table: &str) -> Vec<String> {
        let mut parts = Vec::new();
        for series in plot.series.iter().filter(|series| !series.points.is_empty()) {
            let number = self.number(&series.name);
            // gnuplot takes no kind of marker for what has none.
            let color = match series.trace {
                Trace::Line => format!("lc {}", number + 1),
                Trace::Marked | Trace::Scattered => format!("lc {0} pt {0}", number + 1),
            };
            let of = |columns: &str| {
                let y = only(panel, Some(number), "$6");
                format!("{table} every ::1 using 5:{y}{columns}")
            };
            let title = format!("title {}", quoted(&series.name));
            let has_intervals = series.points.iter().any(|point| point.low < point.high);
            let style = match series.trace {
                Trace::Line => "lines",
                Trace::Marked => "linespoints",
                Trace::Scattered => "points",
            };
            if has_intervals {
                let bars = match series.trace {
                    // The columns are x, low, high.
                    Trace::Line => format!(
                        "{table} every ::1 using 5:{}:{} with filledcurves fs transparent solid 0.2 {color} \
                         notitle",
                        only(panel, Some(number), "$7"),
                        only(panel, Some(number), "$8"),
                    ),
                    Trace::Marked | Trace::Scattered => {
                        format!("{} with yerrorbars {color} notitle", of(":7:8"))
                    }
                };
                parts.push(bars);
            }
            parts.push(format!("{} with {style} {color} {title}", of("")));
        }
        parts
    }

    /// By which colour and marker a series is told.
    fn number(&self, name: &str) -> usize {
        self.names.iter().position(|(other, _)| other == name).unwrap_or_default()
    }
}
