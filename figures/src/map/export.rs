//! Maps as a table and a gnuplot script.

use super::{MapFigure, layout::MapLayout};
use crate::{
    FigureError,
    data::{FigureTable, GnuplotScript, only, quoted},
};

impl MapFigure {
    pub(crate) fn table(&self) -> FigureTable {
        let mut table = Vec::new();
        for (index, panel) in self.panels.iter().enumerate() {
            for ((row, column), cell) in &panel.cells {
                let place = |found: Result<usize, usize>| found.unwrap_or_else(|next| next);
                let fill = &cell.fill;
                // As gnuplot takes it: red, green and blue as one number.
                let color = u32::from_be_bytes([0, fill.0, fill.1, fill.2]);
                let mut line = vec![index.to_string(), panel.title.clone()];
                line.extend(
                    [place(self.sizes.binary_search(column)), place(self.rows.binary_search(row))]
                        .map(|place| place.to_string()),
                );
                line.extend([column.to_string(), row.to_string(), cell.texts[0].clone()]);
                line.push(color.to_string());
                let marks = [cell.dot, cell.cornered, cell.framed, cell.outlined];
                line.extend(marks.map(|mark| u8::from(mark).to_string()));
                table.push(line);
            }
        }
        let columns = &[
            "panel", "title", "column", "row", "x", "y", "text", "color", "dot", "cornered",
            "framed", "outlined",
        ];
        FigureTable { columns, rows: table }
    }

    pub(crate) fn script(&self, mut script: GnuplotScript) -> Result<String, FigureError> {
        let layout = MapLayout::from_map(self)?;
        let rows = self.panels.len().div_ceil(layout.columns);
        let title = quoted(&self.heading.title);
        script.line(&format!("set multiplot layout {rows},{} title {title}", layout.columns));
        script.line("unset key");
        script.set("xlabel", &self.x_label);
        let of_rows = self.rows.iter().map(ToString::to_string);
        let of_columns = self.sizes.iter().map(|column| {
            let (number, unit) = self.column_label(*column);
            format!("{number} {unit}").trim_end().to_owned()
        });
        script.line(&format!("set xtics rotate ({})", tics(of_columns)));
        script.line(&format!("set ytics ({})", tics(of_rows)));
        script.line(&format!("set xrange [-0.5:{}]", self.sizes.len() as f64 - 0.5));
        script.line(&format!("set yrange [-0.5:{}]", self.rows.len() as f64 - 0.5));
        for (index, panel) in self.panels.iter().enumerate() {
            script.set("title", &panel.title);
            let row = only(index, None, "$4");
            let table = &script.table;
            let parts = [
                format!(
                    "{table} every ::1 using 3:{row}:(0.5):(0.5):8 with boxxyerror fs solid \
                     lc rgb variable"
                ),
                format!("{table} every ::1 using 3:{row}:7 with labels font ',8'"),
            ];
            script.plot(&parts);
        }
        script.line("unset multiplot");
        Ok(script.finish())
    }
}

/// `'8 B' 0, '16 B' 1`
fn tics(names: impl Iterator<Item = String>) -> String {
    let tics = names.enumerate().map(|(place, name)| format!("{} {place}", quoted(&name)));
    tics.collect::<Vec<String>>().join(", ")
}
