use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use records::{
    FileError,
    number::{MOST, check_procs, check_reading},
    reading,
};

/// More bytes are no line of a table.
const LONGEST: u64 = 1 << 20;
/// Of UTF-8, as editors and tables of Windows begin a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The lines of a file, one after the other.
pub struct Lines<'a> {
    path: PathBuf,
    input: Box<dyn BufRead + 'a>,
    number: u64,
    line: Vec<u8>,
    /// Whether the last line may lack its end, and lines other text than UTF-8, as shells take them.
    is_script: bool,
}

impl<'a> Lines<'a> {
    /// Of what is read from `input`; `path` names it in errors.
    pub fn new(path: &Path, input: impl Read + 'a) -> Self {
        let input = Box::new(BufReader::with_capacity(1 << 18, input));
        Lines { path: path.into(), input, number: 0, line: Vec::new(), is_script: false }
    }

    /// Of a shell's script.
    pub fn of_script(path: &Path, input: impl Read + 'a) -> Self {
        Lines { is_script: true, ..Lines::new(path, input) }
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the line read last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end; none at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read, the line is no text or too long, or it is cut off.
    pub fn next_line(&mut self) -> Result<Option<&str>, FileError> {
        self.line.clear();
        self.number += 1;
        let mut part = (&mut self.input).take(LONGEST);
        let read = part.read_until(b'\n', &mut self.line);
        let length = read.map_err(|error| FileError::io(&self.path, "read", &error))?;
        if length == 0 {
            return Ok(None);
        }
        if self.number == 1
            && let Some(form) = reading::other_form(&self.line)
        {
            return Err(self.of_file(form));
        }
        let is_last = self.is_script && (length as u64) < LONGEST;
        if self.line.last() != Some(&b'\n') && !is_last {
            return Err(self.fault(match length as u64 == LONGEST {
                true => "is longer than 1 MiB; expected lines of text",
                false => {
                    "the file ends within this line; it was cut off, or is still being written (a whole file \
                     ends with the end of a line)"
                }
            }));
        }
        while matches!(self.line.last(), Some(b'\n' | b'\r')) {
            self.line.pop();
        }
        if self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        if self.is_script && str::from_utf8(&self.line).is_err() {
            self.line = String::from_utf8_lossy(&self.line).into_owned().into_bytes();
        }
        match str::from_utf8(&self.line) {
            Ok(line) => Ok(Some(line)),
            Err(_) => Err(self.fault("is not UTF-8 text")),
        }
    }

    /// What is wrong with the line read last.
    pub fn fault(&self, problem: impl Into<String>) -> FileError {
        FileError::new(&self.path, problem).at_line(self.number)
    }

    /// What is wrong with the file as a whole.
    pub fn of_file(&self, problem: impl Into<String>) -> FileError {
        FileError::new(&self.path, problem)
    }
}

/// A line without what launchers put before each, if they are asked to: `[1,0]<stdout>:` of Open MPI's
/// `--tag-output`, `[prterun-node1-1234@1,0]<stdout>: ` of version 5, `3: ` of `srun --label` and `[3] ` of `mpiexec -l`
/// (Hydra).
pub fn untagged(line: &str) -> &str {
    /// What is behind the numbers of ranks at the beginning.
    fn behind_ranks<'a>(text: &'a str, signs: &[char], end: &str) -> Option<&'a str> {
        let (tag, rest) = text.split_once(end)?;
        let is_tag = tag.starts_with(|sign: char| sign.is_ascii_digit())
            && tag.chars().all(|sign| sign.is_ascii_digit() || signs.contains(&sign));
        is_tag.then_some(rest)
    }
    let bracketed = line.strip_prefix('[');
    // Open MPI 5 names the job first.
    let of_job = bracketed.map(|tag| match tag.split_once('@') {
        Some((job, ranks)) if job.starts_with("prte") => ranks,
        _ => tag,
    });
    let of_stream = |name: &str| behind_ranks(of_job?, &[','], &format!("]<{name}>:"));
    let tagged = of_stream("stdout").or_else(|| of_stream("stderr"));
    let labelled = || behind_ranks(line, &[], ": ").or_else(|| behind_ranks(bracketed?, &[], "] "));
    // A lone rank's label, with nothing behind it.
    let empty = || {
        line.strip_suffix(':')
            .filter(|rank| !rank.is_empty() && rank.bytes().all(|it| it.is_ascii_digit()))
    };
    tagged.or_else(labelled).or_else(|| empty().map(|_| "")).unwrap_or(line)
}

/// A number of a field.
///
/// # Errors
/// It is none; what would be right.
pub fn number<T: std::str::FromStr>(text: &str, wanted: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("is {}; expected {wanted}", records::quoted(text)))
}

/// A number of ranks of a field: one that a communicator may have ([`check_procs`]).
///
/// # Errors
/// As [`number`].
pub fn ranks(text: &str) -> Result<u32, String> {
    let ranks = number(text, "a number of ranks")?;
    check_procs(ranks).map(|()| ranks)
}

/// A time of a field: one that a record may hold ([`check_reading`]), not below 0.
///
/// # Errors
/// As [`number`].
pub fn time(text: &str) -> Result<f64, String> {
    let wanted =
        if text.contains(',') { "a time with a decimal point, such as 2.5" } else { "a time" };
    let value: f64 = number(text, wanted)?;
    match check_reading(value).is_ok() && value >= 0.0 {
        true => Ok(value),
        false => Err(format!("is {}; expected a time from 0 to {MOST:e}", records::quoted(text))),
    }
}

/// Seconds that so much takes at a rate per second.
///
/// # Errors
/// The rate is 0, or so low that no record may hold the seconds.
pub fn seconds_at_rate(amount: f64, rate: f64) -> Result<f64, String> {
    let seconds = amount / rate;
    match rate > 0.0 && check_reading(seconds).is_ok() {
        true => Ok(seconds),
        false => Err(format!("is {rate:?}; expected a greater rate")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_windows_are_as_others() {
        let text = "\u{feff}a,b\r\n1,2\r\n";
        let mut lines = Lines::new(Path::new("table.csv"), text.as_bytes());
        assert_eq!(lines.next_line().unwrap(), Some("a,b"));
        assert_eq!(lines.next_line().unwrap(), Some("1,2"));
        assert_eq!(lines.next_line().unwrap(), None);
    }

    #[test]
    fn what_launchers_put_before_lines_is_taken_off() {
        for (line, wanted) in [
            ("[1,0]<stdout>:# OSU MPI Latency Test", "# OSU MPI Latency Test"),
            ("[1,12]<stderr>:4 5.47", "4 5.47"),
            ("[prterun-n1-1234@1,0]<stdout>: 4 5.47", " 4 5.47"),
            ("0: # Size", "# Size"),
            ("13:   4 5.47", "  4 5.47"),
            ("0:", ""),
            ("[0] 4 5.47", "4 5.47"),
            ("4 5.47", "4 5.47"),
            ("[node1:22534] 3 more", "[node1:22534] 3 more"),
            ("srun: job 1", "srun: job 1"),
            ("# [ pairs: 4 ] [ window size: 64 ]", "# [ pairs: 4 ] [ window size: 64 ]"),
        ] {
            assert_eq!(untagged(line), wanted);
        }
    }

    #[test]
    fn times_and_rates_are_what_a_record_may_hold() {
        assert_eq!((time("0"), time("2.5e3")), (Ok(0.0), Ok(2500.0)));
        for wrong in ["-1", "inf", "NaN", "1e400", "1.7e308", "1e16", "1e-300", "", "x"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(seconds_at_rate(64.0, 32.0), Ok(2.0));
        for wrong in [0.0, 1e-29, 0.7e-307] {
            assert!(seconds_at_rate(64.0, wrong).unwrap_err().contains("expected a greater rate"));
        }
    }
}
