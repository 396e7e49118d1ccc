//! Tables with separators: names in the first line, fields in the others.

/// A field and what is wrong with it.
pub(super) type Fault = (String, String);

/// The column names of a table.
pub(super) struct Fields {
    pub(super) names: Vec<String>,
}

/// The fields of a row: where each begins and ends in the text.
pub(super) type RowFields = Vec<String>;

impl Fields {
    pub(super) fn named(line: &str, splitter: &mut FieldSplitter) -> Self {
        let names = splitter.fields(line);
        Fields { names: names.into_iter().map(|name| name.trim().to_owned()).collect() }
    }

    /// The names in a line.
    ///
    /// # Errors
    /// There is only one.
    pub(super) fn of(line: &str, splitter: &mut FieldSplitter) -> Result<Self, String> {
        let fields = Self::named(line, splitter);
        match fields.names.len() {
            0 | 1 => Err(format!("is {}; expected column names", records::quoted(line))),
            _ => Ok(fields),
        }
    }

    /// # Errors
    /// It has more or fewer fields than there are names.
    pub(super) fn row(&self, line: &str, splitter: &mut FieldSplitter) -> Result<RowFields, Fault> {
        let fields = splitter.fields(line);
        match fields.len() == self.names.len() {
            true => Ok(fields),
            false => {
                let problem = format!("{} fields, expected {}", fields.len(), self.names.len());
                Err((String::new(), problem))
            }
        }
    }

    /// # Errors
    /// There is no such column.
    pub(super) fn get<'a>(&self, row: &'a RowFields, name: &str) -> Result<&'a str, Fault> {
        let place = self.names.iter().position(|column| column == name);
        let field = place.and_then(|place| row.get(place));
        field.map(|field| field.trim()).ok_or_else(|| (name.to_owned(), "is missing".to_owned()))
    }
}

/// Splits lines into fields.
pub(super) struct FieldSplitter {
    reader: csv_core::Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl FieldSplitter {
    pub(super) fn new(separator: char) -> Self {
        let reader = csv_core::ReaderBuilder::new().delimiter(separator as u8).build();
        FieldSplitter { reader, text: Vec::new(), ends: Vec::new() }
    }

    fn fields(&mut self, line: &str) -> RowFields {
        let FieldSplitter { reader, text, ends } = self;
        reader.reset();
        text.resize(line.len(), 0);
        ends.resize(line.len() + 1, 0);
        let (_, _, written, first) = reader.read_record(line.as_bytes(), text, ends);
        // The end of the input ends the last field.
        let (_, _, _, more) = reader.read_record(&[], &mut text[written..], &mut ends[first..]);
        let mut start = 0;
        let mut fields = Vec::with_capacity(first + more);
        for &end in &ends[..first + more] {
            fields.push(String::from_utf8_lossy(&text[start..end]).into_owned());
            start = end;
        }
        fields
    }
}
