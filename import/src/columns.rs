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
            return match unit_in(theirs).filter(|_| ours == "seconds") {
                Some(unit) => Err(format!(
                    "{theirs} would be read as seconds, though its name has another unit; expected {ours}={theirs}:{unit} \
                     (or :s where these are seconds)"
                )),
                None => Ok(theirs.to_owned()),
            };
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

/// The unit at the end of a column's name, where it is not the second: `Latency(us)`, `time_ms`, `t [usec]`.
fn unit_in(name: &str) -> Option<&'static str> {
    let last = name.trim_end_matches([')', ']']).rsplit(['(', '[', '_', ' ', '.', '-']).next()?;
    match last.to_ascii_lowercase().as_str() {
        "ms" | "msec" | "msecs" | "milliseconds" => Some("ms"),
        "us" | "usec" | "usecs" | "\u{b5}s" | "\u{3bc}s" | "microseconds" => Some("us"),
        "ns" | "nsec" | "nsecs" | "nanoseconds" => Some("ns"),
        _ => None,
    }
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
            ("collective", "OURS=THEIRS"),
            ("procs=a,procs=b", "given twice"),
        ] {
            let error = text.parse::<ColumnMap>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
