//! What the columns of a CSV file are.

use std::{collections::BTreeMap, str::FromStr};

use records::unknown;

/// The unit of a column of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl TimeUnit {
    pub(crate) const fn of_second(self) -> f64 {
        match self {
            TimeUnit::S => 1.0,
            TimeUnit::Ms => 1e3,
            TimeUnit::Us => 1e6,
            TimeUnit::Ns => 1e9,
        }
    }
}

/// What a column of sizes counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeUnit {
    /// Bytes as Colibri counts them; see [`records::Collective::message_size`].
    Ours,
    /// Bytes of the blocks of all ranks together.
    Total,
}

/// Where one of our columns comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColumnSource {
    /// A column of the file.
    Column(String),
    /// The same for all rows.
    Fixed(String),
}

/// What the columns of a file are: `procs=np,bytes=size:total,seconds=t:us,method:=default`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMap {
    pub(crate) from: BTreeMap<String, ColumnSource>,
    pub(crate) time: TimeUnit,
    pub(crate) size: SizeUnit,
}

/// Our columns, and whether they are needed.
pub(crate) const OURS: [(&str, bool); 10] = [
    ("collective", true),
    ("method", false),
    ("procs", true),
    ("bytes", true),
    ("seconds", true),
    ("repetition", false),
    ("job", false),
    ("nodes", false),
    ("library", false),
    ("statistic", false),
];

impl Default for ColumnMap {
    /// As Colibri's own export has them.
    fn default() -> Self {
        let from = OURS.map(|(name, _)| (name.to_owned(), ColumnSource::Column(name.to_owned())));
        ColumnMap { from: from.into(), time: TimeUnit::S, size: SizeUnit::Ours }
    }
}

impl FromStr for ColumnMap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut map = ColumnMap { from: BTreeMap::new(), time: TimeUnit::S, size: SizeUnit::Ours };
        for part in text.split(',') {
            let (ours, from) = part.split_once('=').ok_or_else(|| {
                format!("{} is neither OURS=THEIRS nor OURS:=VALUE", records::quoted(part))
            })?;
            let (ours, fixed) = ours.strip_suffix(':').map_or((ours, false), |ours| (ours, true));
            let (ours, from) = (ours.trim(), from.trim());
            if !OURS.iter().any(|(name, _)| *name == ours) {
                return Err(unknown("column", ours, &OURS.map(|(name, _)| name)));
            }
            let from = match fixed {
                true => ColumnSource::Fixed(from.to_owned()),
                false => ColumnSource::Column(map.column(ours, from)?),
            };
            if map.from.insert(ours.to_owned(), from).is_some() {
                return Err(format!("{ours} is given twice"));
            }
        }
        match OURS.iter().find(|(name, needed)| *needed && !map.from.contains_key(*name)) {
            Some((name, _)) => Err(format!("has no column for {name}; expected {name}=COLUMN")),
            None => Ok(map),
        }
    }
}

impl ColumnMap {
    /// Takes the unit off a column's name.
    fn column(&mut self, ours: &str, theirs: &str) -> Result<String, String> {
        let Some((name, unit)) = theirs.rsplit_once(':') else {
            if let Some(unit) = unit_in(theirs).filter(|_| ours == "seconds") {
                return Err(format!(
                    "{theirs} would be read as seconds, though its name has another unit; expected {ours}={theirs}:{unit} \
                     (or :s where these are seconds)"
                ));
            }
            if let Some(word) = other_size_in(theirs).filter(|_| ours == "bytes") {
                return Err(format!(
                    "{theirs} would be read as bytes, though its name says '{word}'; expected a column of bytes (or \
                     {ours}={theirs}:ours or :total where these are bytes)"
                ));
            }
            return Ok(theirs.to_owned());
        };
        match (ours, unit) {
            ("seconds", "s") => self.time = TimeUnit::S,
            ("seconds", "ms") => self.time = TimeUnit::Ms,
            ("seconds", "us") => self.time = TimeUnit::Us,
            ("seconds", "ns") => self.time = TimeUnit::Ns,
            ("bytes", "total") => self.size = SizeUnit::Total,
            ("bytes", "ours") => self.size = SizeUnit::Ours,
            ("seconds", _) => {
                return Err(format!("unit {unit} of seconds; expected s, ms, us, ns"));
            }
            ("bytes", _) => return Err(format!("unit {unit} of bytes; expected ours or total")),
            _ => return Ok(theirs.to_owned()),
        }
        Ok(name.to_owned())
    }
}

/// The words of a column's name, in lower case: `avgLatency(us)` is `avg`, `latency` and `us`. Where capitals stand
/// within a word, two parts together count, too: `KiB`, `mSec`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in name.split(|sign: char| !sign.is_alphabetic()).filter(|word| !word.is_empty()) {
        let mut parts: Vec<String> = Vec::new();
        let mut was_lower = false;
        for sign in word.chars() {
            match parts.last_mut() {
                Some(part) if !(was_lower && sign.is_uppercase()) => part.push(sign),
                _ => parts.push(sign.to_string()),
            }
            was_lower = sign.is_lowercase();
        }
        words.extend(parts.windows(2).map(|pair| pair.concat().to_lowercase()));
        words.extend(parts.iter().map(|part| part.to_lowercase()));
    }
    words
}

/// The unit in a column's name, where it is not the second: `Latency(us)`, `time_ms_avg`, `timeUs`.
fn unit_in(name: &str) -> Option<&'static str> {
    words_of(name).iter().find_map(|word| match word.as_str() {
        "ms" | "msec" | "msecs" | "millis" | "milliseconds" => Some("ms"),
        "us" | "usec" | "usecs" | "\u{b5}s" | "\u{3bc}s" | "micros" | "microseconds" => Some("us"),
        "ns" | "nsec" | "nsecs" | "nanos" | "nanoseconds" => Some("ns"),
        _ => None,
    })
}

/// Words in the names of columns that do not count bytes.
const NO_BYTES: [&str; 10] =
    ["kb", "kib", "mb", "mib", "gb", "gib", "count", "counts", "elements", "elems"];

/// What in a column's name says that it does not count bytes; `byte_count` does.
fn other_size_in(name: &str) -> Option<String> {
    let words = words_of(name);
    let is_of_bytes = words.iter().any(|word| word == "byte" || word == "bytes");
    words.into_iter().find(|word| NO_BYTES.contains(&word.as_str())).filter(|_| !is_of_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_tells_columns_units_and_what_is_the_same_in_all_rows() {
        let map: ColumnMap =
            "collective:=bcast,procs=np,bytes=size:total,seconds=t:us".parse().unwrap();
        assert_eq!((map.time, map.size), (TimeUnit::Us, SizeUnit::Total));
        assert_eq!(map.from["collective"], ColumnSource::Fixed("bcast".into()));
        assert_eq!(map.from["seconds"], ColumnSource::Column("t".into()));
        for (text, part) in [
            ("procs=np", "has no column for collective"),
            ("collectiv=c", "did you mean 'collective'"),
            ("collective:=bcast,procs=np,bytes=b,seconds=t:h", "expected s, ms, us, ns"),
            ("collective:=bcast,procs=np,bytes=b,seconds=AvgLatency(us)", "AvgLatency(us):us"),
            ("collective:=bcast,procs=np,bytes=b,seconds=time_ms", "time_ms:ms"),
            ("collective:=bcast,procs=np,bytes=b,seconds=time_us_avg", "time_us_avg:us"),
            ("collective:=bcast,procs=np,bytes=size_kb,seconds=t", "its name says 'kb'"),
            ("collective", "OURS=THEIRS"),
            ("procs=a,procs=b", "given twice"),
        ] {
            let error = text.parse::<ColumnMap>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn units_are_seen_wherever_they_stand_in_a_name() {
        for (name, unit) in [
            ("Latency(us)", Some("us")),
            ("time_us_avg", Some("us")),
            ("us_mean", Some("us")),
            ("latency(us) median", Some("us")),
            ("timeUs", Some("us")),
            ("t [\u{b5}s]", Some("us")),
            ("mSec", Some("ms")),
            ("p50ns", Some("ns")),
            ("seconds", None),
            ("status", None),
            ("time", None),
        ] {
            assert_eq!(unit_in(name), unit, "{name}");
        }
        for (name, word) in [
            ("size_kb", Some("kb")),
            ("sizeKiB", Some("kib")),
            ("message (MB)", Some("mb")),
            ("count", Some("count")),
            ("elements", Some("elements")),
            ("byte_count", None),
            ("msg_size", None),
            ("bytes", None),
        ] {
            assert_eq!(other_size_in(name).as_deref(), word, "{name}");
        }
        let of = |bytes: &str| {
            format!("collective:=bcast,procs=np,bytes={bytes},seconds=t").parse::<ColumnMap>()
        };
        assert_eq!(of("count:ours").map(|map| map.size), Ok(SizeUnit::Ours));
        assert_eq!(of("count:total").map(|map| map.size), Ok(SizeUnit::Total));
    }
}
