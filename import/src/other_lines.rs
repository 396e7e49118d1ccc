//! What launchers and libraries say between a tool's own lines.

use crate::{lines::Lines, rows::Sink};

/// Whether the words of a line are a table's row, whole or broken: a number begins it, or one is among
/// as many words as the table has columns.
pub fn is_row(words: &[&str], columns: usize) -> bool {
    let mut numbers = words.iter().map(|word| word.parse::<f64>().is_ok());
    numbers.next().unwrap_or(false) || (words.len() == columns && numbers.any(|is| is))
}

/// Whether a line is a row of some table, whoever's.
pub fn are_numbers(words: &[&str]) -> bool {
    words.len() > 1 && words.iter().all(|word| word.parse::<f64>().is_ok())
}

/// Lines of others in a file: left out, and reported once for all.
#[derive(Default)]
pub struct OtherLines {
    count: u64,
    first: Option<(u64, String)>,
}

impl OtherLines {
    /// Leaves out the line read last.
    pub fn add(&mut self, lines: &Lines<'_>, line: &str) {
        self.count += 1;
        self.first.get_or_insert_with(|| (lines.number(), records::quoted(line)));
    }

    /// Tells what was left out of the file.
    pub fn tell(&self, lines: &Lines<'_>, sink: &mut dyn Sink) {
        let Some((number, line)) = &self.first else { return };
        let of = match self.count {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        sink.note(&format!(
            "{}: left out what is no row of a table: line {number}, {line}{of}",
            lines.path().display()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_from_messages() {
        let is = |line: &str| is_row(&line.split_whitespace().collect::<Vec<_>>(), 2);
        for row in ["4 5.47", "4 5.4x", "4", "4.0", "x 5.47", "4 5.47 0"] {
            assert!(is(row), "{row}");
        }
        for message in [
            "[node1:22534] 3 more processes have sent help message help-mpi-btl-openib.txt",
            "srun: job 3521915 queued and waiting for resources",
            "--------------------------------------------------------------------------",
            "WARNING: Open MPI failed",
            "",
        ] {
            assert!(!is(message), "{message}");
        }
    }
}
