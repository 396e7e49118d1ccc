//! Tables with separators: names in the first line, fields in the others.

use records::record::check_quotes;

/// A field and what is wrong with it.
pub(super) type ColumnFault = (String, String);

/// What is told of [`repeated`] names.
pub(super) const TWICE: &str = "two columns have this name";

/// A name that two columns have: which of them is meant cannot be told.
pub(super) fn repeated<'a>(names: &[&'a str]) -> Option<&'a str> {
    let mut sorted: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
    sorted.sort_unstable();
    sorted.windows(2).find_map(|pair| match pair {
        [one, other] if one == other => Some(*one),
        _ => None,
    })
}

/// The column names of a table.
pub(super) struct Fields {
    pub(super) names: Vec<String>,
}

impl Fields {
    /// # Errors
    /// A quotation mark is not closed.
    pub(super) fn named(line: &str, splitter: &mut FieldSplitter) -> Result<Self, ColumnFault> {
        let names = splitter.fields(line)?;
        let of = |place| names.get(place).to_owned();
        Ok(Fields { names: (0..names.count()).map(of).collect() })
    }

    /// The names in a line.
    ///
    /// # Errors
    /// There is only one, two are the same, or a quotation mark is not closed.
    pub(super) fn of(line: &str, splitter: &mut FieldSplitter) -> Result<Self, ColumnFault> {
        let fields = Self::named(line, splitter)?;
        if fields.names.len() < 2 {
            let problem = format!("is {}; expected column names", records::quoted(line));
            return Err((String::new(), problem));
        }
        let names: Vec<&str> = fields.names.iter().map(String::as_str).collect();
        match repeated(&names) {
            Some(name) => Err((name.to_owned(), TWICE.to_owned())),
            None => Ok(fields),
        }
    }

    /// # Errors
    /// It has more or fewer fields than there are names, or a quotation mark is not closed.
    pub(super) fn row<'a>(
        &self,
        line: &str,
        splitter: &'a mut FieldSplitter,
    ) -> Result<RowFields<'a>, ColumnFault> {
        let fields = splitter.fields(line)?;
        match fields.count() == self.names.len() {
            true => Ok(fields),
            false => {
                let problem = format!("{} fields, expected {}", fields.count(), self.names.len());
                Err((String::new(), problem))
            }
        }
    }

    /// # Errors
    /// There is no such column.
    pub(super) fn get<'a>(&self, row: &RowFields<'a>, name: &str) -> Result<&'a str, ColumnFault> {
        let place = self.names.iter().position(|column| column == name);
        let field = place.map(|place| row.get(place));
        field.ok_or_else(|| (name.to_owned(), "is missing".to_owned()))
    }
}

/// The fields of a row, in the text that they were split into.
#[derive(Clone, Copy)]
pub(super) struct RowFields<'a> {
    text: &'a str,
    ends: &'a [usize],
}

impl<'a> RowFields<'a> {
    fn count(self) -> usize {
        self.ends.len()
    }

    /// The field at a place, without spaces around it; empty beyond the last one.
    pub(super) fn get(self, place: usize) -> &'a str {
        let start = match place.checked_sub(1) {
            Some(before) => self.ends.get(before).copied(),
            None => Some(0),
        };
        let end = self.ends.get(place).copied();
        let field = start.zip(end).and_then(|(start, end)| self.text.get(start..end));
        field.unwrap_or_default().trim()
    }
}

/// Splits lines into fields.
pub(super) struct FieldSplitter {
    separator: char,
    reader: csv_core::Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl FieldSplitter {
    pub(super) fn new(separator: char) -> Self {
        let reader = csv_core::ReaderBuilder::new().delimiter(separator as u8).build();
        FieldSplitter { separator, reader, text: Vec::new(), ends: Vec::new() }
    }

    fn fields(&mut self, line: &str) -> Result<RowFields<'_>, ColumnFault> {
        // It ends a record to the reader, so that all behind it would be lost.
        if line.contains('\r') {
            let problem =
                "has line ends of old Macs; convert them: tr '\\r' '\\n' < FILE > CONVERTED";
            return Err((String::new(), problem.to_owned()));
        }
        check_quotes(line, self.separator).map_err(|problem| (String::new(), problem))?;
        let FieldSplitter { reader, text, ends, .. } = self;
        reader.reset();
        if text.len() <= line.len() {
            text.resize(line.len() + 1, 0);
            ends.resize(line.len() + 2, 0);
        }
        let (_, _, written, first) = reader.read_record(line.as_bytes(), text, ends);
        // The end of the input ends the last field.
        let (_, _, _, more) = reader.read_record(&[], &mut text[written..], &mut ends[first..]);
        let ends = &ends[..first + more];
        // Quotes and separators are left out of what was text: text remains.
        let text = str::from_utf8(&text[..ends.last().copied().unwrap_or(0)]).unwrap_or_default();
        Ok(RowFields { text, ends })
    }
}
