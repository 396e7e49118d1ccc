//! What a benchmark of a node's memory measured, for a calibration that was made without.
//!
//! A CSV file with the columns what, ranks, bytes, value, unit (ns or us), a line for each median:
//! - `private`: each of `ranks` ranks copies within its own memory at the same time;
//! - `stage`: copies what it has just written to memory that others read;
//! - `read_other`: copies what another rank has just written;
//! - `reduce_other`: adds that to what it has;
//! - `release_and_gather`: one of `ranks` ranks raises a flag, which all others see, and sees theirs.
//!
//! Other lines are passed over.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, anyhow, bail};
use models::fit::SharedMemoryTimes;
use records::{
    FileError,
    calibration::{
        Calibration, CopyKnot, CopyTimes, Estimate, SharedAccess, Slowdown, SlowdownKnot,
    },
    reading,
    record::check_quotes,
};

/// A message of up to so many bytes lies in the cache that is nearest to the processor: it is slowed down as copies
/// are within a cache. Longer ones as reading is what another rank has written.
const IN_NEAREST_CACHE: u64 = 32 << 10;
/// Copies of these sizes are within the second cache of a processor, and beyond the first one.
const IN_SECOND_CACHE: std::ops::RangeInclusive<u64> = (64 << 10)..=(256 << 10);

/// From a picosecond to some hours: what is outside is a wrong number or another unit.
const POSSIBLE_SECONDS: std::ops::RangeInclusive<f64> = 1e-12..=1e4;

const KINDS: [&str; 5] = ["private", "stage", "read_other", "reduce_other", "release_and_gather"];
const COLUMNS: [&str; 5] = ["what", "ranks", "bytes", "value", "unit"];

/// By what was timed, ranks and bytes: seconds.
type Times = BTreeMap<(String, u32), BTreeMap<u64, f64>>;

/// Adds it to a calibration, whose chains of ranks and rounds with all others tell the rest.
///
/// # Errors
/// The file can't be read, or lacks something; the calibration does.
pub fn add(calibration: &mut Calibration, file: &Path) -> Result<()> {
    let times = times(file)?;
    let memory = shared_memory(&times).with_context(|| file.display().to_string())?;
    let fitted = calibration.fitted.as_mut().ok_or_else(|| {
        anyhow!("the calibration has no fitted parameters; expected one of four ranks or more, of one node")
    })?;
    let measured = &mut calibration.measured;
    let memory = memory.with_messages(&fitted.plogp, &measured.plogp).ok_or_else(|| {
        anyhow!("the calibration has no gaps to and from several ranks; expected one of four ranks or more")
    })?;
    measured.memory = Some(memory.clone());
    fitted.memory = Some(memory);
    Ok(())
}

fn times(file: &Path) -> Result<Times, FileError> {
    let text = reading::text_file(file)?;
    for (line, number) in text.lines().zip(1..) {
        let checked = check_quotes(line, ',');
        checked.map_err(|problem| FileError::new(file, problem).at_line(number))?;
    }
    let fault = |error: csv::Error| FileError::new(file, error.to_string());
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(fault)?.clone();
    let places = COLUMNS.map(|wanted| header.iter().position(|name| name.trim() == wanted));
    if let Some(missing) = places.iter().position(Option::is_none) {
        let problem =
            format!("has no column '{}'; expected {}", COLUMNS[missing], COLUMNS.join(", "));
        return Err(FileError::new(file, problem).at_line(1));
    }
    let mut times = Times::new();
    for row in reader.records() {
        let row = row.map_err(fault)?;
        let [what, ranks, bytes, value, unit] =
            places.map(|place| place.and_then(|place| row.get(place)).unwrap_or_default().trim());
        if !KINDS.contains(&what) {
            continue;
        }
        let wrong = |problem: String| {
            FileError::new(file, problem).at_line(row.position().map_or(0, |at| line(&text, at)))
        };
        let expected = |field: &str, given: &str, wanted: &str| {
            wrong(format!("is '{given}'; expected {wanted}")).in_field(field)
        };
        let Some(ranks) = ranks.parse().ok().filter(|ranks: &u32| *ranks > 0) else {
            return Err(expected("ranks", ranks, "a number from 1 on"));
        };
        let Ok(bytes) = bytes.parse() else {
            return Err(expected("bytes", bytes, "a number of bytes, e.g. 65536"));
        };
        let per_second = match unit {
            "us" => 1e6,
            "ns" => 1e9,
            _ => return Err(expected("unit", unit, "us or ns")),
        };
        let seconds = value.parse().map(|value: f64| value / per_second);
        let Some(seconds) = seconds.ok().filter(|seconds| POSSIBLE_SECONDS.contains(seconds))
        else {
            return Err(expected("value", value, "a time above 0, e.g. 0.025"));
        };
        let sizes = times.entry((what.to_owned(), ranks)).or_default();
        if sizes.insert(bytes, seconds).is_some() {
            return Err(wrong(format!(
                "has '{what}' with ranks {ranks} and bytes {bytes} once more; expected one line of each"
            )));
        }
    }
    Ok(times)
}

/// The number of a row's line: where the reader was before it, empty lines may follow.
fn line(text: &str, before: &csv::Position) -> u64 {
    let (read, rest) = text.split_at_checked(before.byte() as usize).unwrap_or((text, ""));
    let is_end = |c: char| c == '\n' || c == '\r';
    let empty = rest.len() - rest.trim_start_matches(is_end).len();
    let ends = |text: &str| text.matches('\n').count() as u64;
    1 + ends(read) + ends(&rest[..empty])
}

fn shared_memory(times: &Times) -> Result<SharedMemoryTimes> {
    let rows_of = |what: &'static str| {
        let of_kind = times.iter().filter(move |((kind, _), _)| kind == what);
        of_kind.map(|((_, ranks), sizes)| (*ranks, sizes))
    };
    let two = |what: &'static str| {
        let found = rows_of(what).find(|(ranks, _)| *ranks == 2).map(|(_, sizes)| sizes);
        found.ok_or_else(|| anyhow!("no lines of '{what}' with 2 ranks; expected some"))
    };
    let (copies_of_two, reads_of_two) = (two("private")?, two("read_other")?);
    let copies: Vec<CopyTimes> = rows_of("stage").map(of_ranks).collect();
    if copies.is_empty() {
        bail!("no lines of 'stage'; expected some");
    }
    let mut slowdown = Vec::new();
    for (busy_ranks, copies) in rows_of("private").filter(|(ranks, _)| *ranks > 2) {
        let ratios = |sizes: &BTreeMap<u64, f64>, alone: &BTreeMap<u64, f64>| {
            let ratio = |(bytes, seconds): (&u64, &f64)| {
                Some((*bytes, (seconds / alone.get(bytes)?).max(1.0)))
            };
            sizes.iter().filter_map(ratio).collect::<Vec<(u64, f64)>>()
        };
        let within = ratios(copies, copies_of_two);
        let within = within.into_iter().find(|(bytes, _)| IN_SECOND_CACHE.contains(bytes));
        let near = within.map(|(_, factor)| (IN_NEAREST_CACHE, factor));
        let reads = rows_of("read_other").find(|(ranks, _)| *ranks == busy_ranks);
        let far = reads.map(|(_, reads)| ratios(reads, reads_of_two)).unwrap_or_default();
        let far = far.into_iter().filter(|(bytes, _)| *bytes > IN_NEAREST_CACHE);
        let knot = |(bytes, factor)| SlowdownKnot { bytes, factor: Estimate::exact(factor) };
        let knots: Vec<SlowdownKnot> = near.into_iter().chain(far).map(knot).collect();
        if !knots.is_empty() {
            slowdown.push(Slowdown { busy_ranks, knots });
        }
    }
    if slowdown.is_empty() {
        bail!("no lines of 'private' or 'read_other' with more than 2 ranks; expected some");
    }
    let adding = rows_of("reduce_other").find(|(ranks, _)| *ranks == 1);
    let start = adding.and_then(|(_, sizes)| sizes.values().next().copied());
    let combining_start_seconds = start.map(Estimate::exact);
    let rounds = rows_of("release_and_gather").filter(|(ranks, _)| *ranks > 1);
    let rounds: Vec<(u32, f64)> =
        rounds.filter_map(|(ranks, sizes)| Some((ranks, *sizes.values().next()?))).collect();
    let shared = match *rounds {
        [(few, least), .., (many, most)] => {
            let further = (most - least).max(0.0) / f64::from(many - few);
            Some(SharedAccess {
                // There and back.
                flag_seconds: Estimate::exact(least / 2.0),
                further_flag_seconds: Estimate::exact(further),
                reads: rows_of("read_other").map(of_ranks).collect(),
            })
        }
        _ => None,
    };
    Ok(SharedMemoryTimes { slowdown, copies, combining_start_seconds, shared })
}

/// As many ranks at once.
fn of_ranks((busy_ranks, sizes): (u32, &BTreeMap<u64, f64>)) -> CopyTimes {
    let knots = sizes.iter();
    let knot = |(&bytes, &seconds)| CopyKnot { bytes, seconds: Estimate::exact(seconds) };
    CopyTimes { busy_ranks, knots: knots.map(knot).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "what,ranks,bytes,value,unit\n";

    fn read(text: &str) -> Result<SharedMemoryTimes, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{HEADER}{text}")).unwrap();
        let found = times(file.path()).map_err(Into::into).and_then(|times| shared_memory(&times));
        found.map_err(|problem| {
            format!("{problem:#}").replace(&file.path().display().to_string(), "m.csv")
        })
    }

    #[test]
    fn what_was_measured_is_taken_by_what_it_tells() {
        let found = read(
            "flag_one_way,0-1,8,132.4,ns\nstage,1,4096,0.2,us\nstage,4,4096,400,ns\n\
             private,2,65536,2,us\nprivate,4,65536,3,us\nprivate,4,1048576,99,us\n\
             read_other,2,262144,10,us\nread_other,4,262144,15,us\nread_other,4,8192,7,us\n\
             reduce_other,1,256,0.19,us\nrelease_and_gather,2,8,600,ns\n\
             release_and_gather,4,8,640,ns\n",
        );
        let found = found.unwrap();
        let copies: Vec<(u32, f64)> =
            found.copies.iter().map(|row| (row.busy_ranks, row.knots[0].seconds.value)).collect();
        assert_eq!(copies, [(1, 0.2 / 1e6), (4, 400.0 / 1e9)]);
        let [of_four] = &found.slowdown[..] else { panic!("{:?}", found.slowdown) };
        let factors: Vec<(u64, f64)> =
            of_four.knots.iter().map(|knot| (knot.bytes, knot.factor.value)).collect();
        assert_eq!((of_four.busy_ranks, factors), (4, vec![(32 << 10, 1.5), (1 << 18, 1.5)]));
        assert_eq!(found.combining_start_seconds, Some(Estimate::exact(0.19 / 1e6)));
        let shared = found.shared.unwrap();
        assert_eq!(shared.flag_seconds, Estimate::exact(600.0 / 1e9 / 2.0));
        assert!((shared.further_flag_seconds.value - 20.0 / 1e9).abs() < 1e-15);
        assert_eq!((shared.reads.len(), shared.reads[1].busy_ranks), (2, 4));
    }

    #[test]
    fn what_is_wrong_is_told_by_its_line() {
        for (text, wanted) in [
            (
                "stage,none,8,1,us\n",
                "m.csv, line 2, field ranks: is 'none'; expected a number from 1 on",
            ),
            (
                "\nstage,1,x,1,us\n",
                "m.csv, line 3, field bytes: is 'x'; expected a number of bytes, e.g. 65536",
            ),
            (
                "stage,1,8,1,us\nstage,1,\"8,1,us\nstage,1,\"16,1,us\n",
                "m.csv, line 3: a quotation mark opens in field 3 of this line and none closes it; expected a second \
                 one, or none",
            ),
            (
                "stage,1,8,0,us\n",
                "m.csv, line 2, field value: is '0'; expected a time above 0, e.g. 0.025",
            ),
            (
                "stage,1,8,1,us\nstage,2,8,1,ms\n",
                "m.csv, line 3, field unit: is 'ms'; expected us or ns",
            ),
            ("stage,1,8,1\n", "m.csv, line 2, field unit: is ''; expected us or ns"),
            (
                "stage,1,8,1,us\nstage,1,8,2,us\n",
                "m.csv, line 3: has 'stage' with ranks 1 and bytes 8 once more; expected one line of each",
            ),
            ("stage,1,8,1,us\n", "no lines of 'private' with 2 ranks; expected some"),
        ] {
            assert_eq!(read(text).unwrap_err(), wanted);
        }
    }

    #[test]
    fn what_is_no_such_table_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.csv");
        std::fs::write(&file, "what,ranks,size,value,unit\n").unwrap();
        let told = |path: &Path| times(path).unwrap_err().to_string();
        assert!(
            told(&file).contains("m.csv, line 1: has no column 'bytes'; expected what, ranks, ")
        );
        // A device may have no end.
        assert!(
            told(Path::new("/dev/zero")).contains("/dev/zero: cannot read: is not a regular file")
        );
        assert!(told(folder.path()).contains("cannot read: "));
        assert!(told(&folder.path().join("none.csv")).contains("no such file or directory"));
    }
}
