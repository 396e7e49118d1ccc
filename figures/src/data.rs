//! A figure's data as a table, and a gnuplot script that draws the same from it.

use std::fmt::Write;

use crate::FigureError;

/// What a figure shows, for other programs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FigureTable {
    pub(crate) columns: &'static [&'static str],
    pub(crate) rows: Vec<Vec<String>>,
}

impl FigureTable {
    /// As CSV with a line of names.
    pub(crate) fn csv(&self) -> Result<String, FigureError> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns).map_err(FigureError::drawing)?;
        for row in &self.rows {
            writer.write_record(row).map_err(FigureError::drawing)?;
        }
        let bytes = writer.into_inner().map_err(FigureError::drawing)?;
        String::from_utf8(bytes).map_err(FigureError::drawing)
    }
}

/// A gnuplot script, line by line.
pub(crate) struct GnuplotScript {
    text: String,
    /// The table's file, in quotes.
    pub(crate) table: String,
}

impl GnuplotScript {
    /// Begins one that draws the table of a file, into an SVG beside it.
    pub(crate) fn new(table: &str, (width, height): (u32, u32)) -> Self {
        let mut script = GnuplotScript { text: String::new(), table: quoted(table) };
        let stem = table.strip_suffix(".csv").unwrap_or(table);
        script.line(&format!("# gnuplot {stem}.gp draws {table}"));
        script.line("set encoding utf8");
        script.line("set datafile separator comma");
        script
            .line(&format!("set terminal svg size {width},{height} noenhanced background 'white'"));
        script.line(&format!("set output {}", quoted(&format!("{stem}.gnuplot.svg"))));
        script
    }

    pub(crate) fn line(&mut self, line: &str) {
        // A string has no error.
        let _ = writeln!(self.text, "{line}");
    }

    /// `name` and a text in quotes.
    pub(crate) fn set(&mut self, name: &str, text: &str) {
        self.line(&format!("set {name} {}", quoted(text)));
    }

    /// Several things in one plot.
    pub(crate) fn plot(&mut self, parts: &[String]) {
        self.line(&format!("plot {}", parts.join(", \\\n     ")));
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// A text as gnuplot takes it letter by letter.
pub(crate) fn quoted(text: &str) -> String {
    let text: String = text.chars().filter(|one| !one.is_control()).collect();
    format!("'{}'", text.replace('\'', "''"))
}

/// `$3` where the panel is this one (and the series, where it is told), else nothing.
pub(crate) fn only(panel: usize, series: Option<usize>, column: &str) -> String {
    match series {
        Some(series) => format!("(($1=={panel} && $3=={series}) ? {column} : 1/0)"),
        None => format!("($1=={panel} ? {column} : 1/0)"),
    }
}
