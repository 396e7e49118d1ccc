//! PGMPITuneLib's configuration file.

use std::path::Path;

use records::{FileError, quoted, reading, unknown};

/// The limits to data and counts in PGMPITuneLib's configuration file: lines of a key and a value, and
/// comments that begin with a `#`.
pub fn limits(path: &Path) -> Result<[Option<u64>; 2], String> {
    const KEYS: [&str; 2] = ["size_msg_buffer_bytes", "size_int_buffer_bytes"];
    let text = reading::text_file(path).map_err(|error| error.to_string())?;
    let mut limits = [None; 2];
    for (line, number) in text.lines().zip(1_u64..) {
        let words: Vec<&str> =
            line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let fault = |field: &str, problem: String| {
            let fault = FileError::new(path, problem).at_line(number);
            if field.is_empty() { fault } else { fault.in_field(field) }.to_string()
        };
        let (key, value) = match words[..] {
            [] => continue,
            [key, value] => (key, value),
            _ => return Err(fault("", "expected a key and a value, separated by a space".into())),
        };
        let Some(place) = KEYS.iter().position(|known| *known == key) else {
            return Err(fault("", unknown("key", key, &KEYS)));
        };
        let bytes = value
            .parse()
            .map_err(|_| fault(key, format!("is {}; expected a number of bytes", quoted(value))))?;
        limits[place] = Some(bytes);
    }
    Ok(limits)
}
