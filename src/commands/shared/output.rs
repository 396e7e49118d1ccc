//! What goes to stdout: results only, as a table, JSON or CSV.

use std::{
    io::{self, Write},
    path::Path,
};

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use records::FileError;
use serde::Serialize;

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TableFormat {
    Table,
    Json,
    Csv,
}

/// Prints text. Files that were asked for are written before: an error here is the end.
///
/// # Errors
/// The system refuses, as on a full disk; but a reader that has seen enough (`| head`) is no error.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    Ok(written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))?)
}

/// Prints help or a version; or, on stderr, what is wrong with a command line, whether it can be printed or not.
///
/// # Errors
/// As those of [`print()`].
pub fn answer(answer: &clap::Error) -> Result<()> {
    let result = answer.print().and_then(|()| io::stdout().flush());
    if answer.use_stderr() { Ok(()) } else { Ok(written(result)?) }
}

fn written(result: io::Result<()>) -> Result<(), FileError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(FileError::io(Path::new("stdout"), "write", &error))
        }
        _ => Ok(()),
    }
}

/// `12.3 %` of a fraction.
pub fn percent(fraction: f64) -> String {
    // What is rounded to 0 has no sign.
    format!("{:.1} %", (fraction * 1000.0).round() / 10.0 + 0.0)
}

/// `12 %` of a fraction.
pub fn whole_percent(fraction: f64) -> String {
    format!("{:.0} %", fraction * 100.0)
}

/// A cell of a column that marks rows.
pub fn mark(marked: bool) -> String {
    if marked { "yes".into() } else { String::new() }
}

/// Prints rows. `table` makes the table's cells of a row, for people; JSON and CSV take the
/// row's own fields.
pub fn rows<T: Serialize>(
    format: TableFormat,
    rows: &[T],
    heading: &[&str],
    table: impl Fn(&T) -> Vec<String>,
) -> Result<()> {
    let text = match format {
        TableFormat::Table => aligned(heading, rows.iter().map(table)),
        TableFormat::Json => serde_json::to_string_pretty(rows)? + "\n",
        TableFormat::Csv => {
            let mut writer = csv::Writer::from_writer(Vec::new());
            for row in rows {
                writer.serialize(row)?;
            }
            String::from_utf8(writer.into_inner()?)?
        }
    };
    print(&text)
}

/// The columns that say anything: a table for people has no empty ones.
pub fn filled_columns<'a>(
    heading: &[&'a str],
    rows: Vec<Vec<String>>,
) -> (Vec<&'a str>, Vec<Vec<String>>) {
    let is_filled: Vec<bool> = (0..heading.len())
        .map(|column| rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.is_empty())))
        .collect();
    let filled = |column: usize| is_filled.get(column).copied().unwrap_or(false);
    let heading = heading.iter().enumerate().filter(|(column, _)| filled(*column));
    let heading = heading.map(|(_, name)| *name).collect();
    let row = |row: Vec<String>| {
        let cells = row.into_iter().enumerate().filter(|(column, _)| filled(*column));
        cells.map(|(_, cell)| cell).collect()
    };
    (heading, rows.into_iter().map(row).collect())
}

/// In the place of a number.
pub const UNDETERMINED: &str = "not determined";

/// A plain table; columns whose cells begin with a digit are aligned to the right.
pub fn aligned(heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(heading.iter().copied());
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    for column in 0..heading.len() {
        let numeric = rows.iter().all(|row| {
            let cell = row.get(column).map_or("", String::as_str);
            cell.is_empty()
                || cell == UNDETERMINED
                || cell.starts_with(|first: char| first.is_ascii_digit() || first == '-')
        });
        if let (true, Some(column)) = (numeric, table.column_mut(column)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.add_rows(rows);
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}
