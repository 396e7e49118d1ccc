//! A file with a number for every rank: how large its block is beside the others'.

use std::path::Path;

use records::FileError;

/// The entry of a record's header that tells the factors; empty, or missing, where blocks were equal.
pub const FACTORS: &str = "factors";

/// As a record's header and flags tell them.
pub fn in_words(factors: Option<&[f64]>) -> String {
    factors.unwrap_or_default().iter().map(f64::to_string).collect::<Vec<_>>().join(",")
}

/// The numbers of a file's text, in the order of the ranks: any number on a line, separated by blanks or
/// commas; what follows a `#` is a remark.
///
/// # Errors
/// Something is no number of 0 or above; names the line.
pub fn parse(text: &str, path: &Path) -> Result<Vec<f64>, FileError> {
    let mut factors = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default();
        for word in line.split([' ', '\t', ',', '\r']).filter(|word| !word.is_empty()) {
            match word.parse::<f64>() {
                Ok(factor) if factor >= 0.0 && factor.is_finite() => factors.push(factor),
                _ => {
                    let given = records::quoted(word);
                    let problem = format!("{given} is no factor; expected a number of 0 or above");
                    return Err(FileError::new(path, problem).at_line(number));
                }
            }
        }
    }
    match factors.is_empty() {
        true => Err(FileError::new(path, "holds no factor; expected one of each rank")),
        false => Ok(factors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is refused is told with the file's name; what is read is written and read again.
        #[test]
        fn any_text_is_read_or_refused(text in "([0-9a-z.,#+ \t\n-]|\\PC){0,60}") {
            match parse(&text, Path::new("f.txt")) {
                Ok(factors) => {
                    let words: Vec<String> = factors.iter().map(f64::to_string).collect();
                    prop_assert_eq!(parse(&words.join("\n"), Path::new("f.txt")).unwrap(), factors);
                }
                Err(error) => prop_assert!(error.to_string().contains("f.txt")),
            }
        }
    }

    #[test]
    fn factors_are_read_and_what_is_none_is_named_with_its_line() {
        let path = Path::new("factors.txt");
        let text = "# of four ranks\n1 2.5\t# two of them\n\n0,1e1\n";
        assert_eq!(parse(text, path).unwrap(), [1.0, 2.5, 0.0, 10.0]);
        for (text, part) in [
            ("1\n-1\n", "line 2"),
            ("1 x", "'x' is no factor"),
            ("inf", "'inf' is no factor"),
            ("# nothing\n", "holds no factor"),
        ] {
            let error = parse(text, path).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("factors.txt"), "{error}");
        }
    }
}
