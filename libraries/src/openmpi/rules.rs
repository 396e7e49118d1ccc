//! Open MPI's classic rules file for component coll/tuned, and what the library makes of it.
//!
//! The file is numbers, split at blanks, with comments from `#` to the end of the line. The
//! library's own reader forgives what it should not: words are skipped letter by letter, `010` is
//! eight, and a file with any other fault is dropped without a word. Here all of that is an error
//! that names the line. (What coll/tuned of 4.0 to 4.1 and 5.0 does was read in
//! `coll_tuned_dynamic_file.c` and `coll_tuned_dynamic_rules.c` and seen on 4.1.4.)

use std::{collections::BTreeMap, path::Path};

use records::{Algorithm, Collective, FileError, Method, Native, Point, Ranges, quoted};

use super::algorithms::{CHAIN_FAN_OUT, LIBRARY, algorithms, id};

/// What is to be loaded for each collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedRules {
    /// By the collective's number; by communicator sizes, ascending.
    collectives: BTreeMap<u64, Vec<RulesSection>>,
}

/// What holds from one communicator size up to the next section's.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RulesSection {
    procs: u64,
    /// Of all message sizes.
    ranges: Ranges<RulesLine>,
}

/// What a line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RulesLine {
    /// 0 leaves the call to the library.
    algorithm: u64,
    fan_out: u64,
    segment_bytes: u64,
}

/// Numbers of collectives end below this (`COLLCOUNT`).
const COLLECTIVES: u64 = 22;

/// Reads rules from their text; `path` is for the errors.
///
/// # Errors
/// What the library would drop, skip or take for something else; with the line.
pub fn parse(text: &str, path: &Path) -> Result<LoadedRules, FileError> {
    let mut numbers = NumberReader::from_text(text, path)?;
    let mut collectives = BTreeMap::new();
    let count = numbers.at_most("the number of collectives", COLLECTIVES)?;
    for _ in 0..count {
        let number = numbers.at_most("the number of a collective", COLLECTIVES - 1)?;
        let mut sections: Vec<RulesSection> = Vec::new();
        let count = numbers.next("the number of communicator sizes")?;
        for _ in 0..count {
            let procs = numbers.next("a communicator size")?;
            if sections.last().is_some_and(|last| last.procs >= procs) {
                return Err(numbers.fault(format!(
                    "communicator size {procs} does not ascend; the library would never reach it"
                )));
            }
            sections.push(RulesSection { procs, ranges: ranges(&mut numbers, number)? });
        }
        if collectives.insert(number, sections).is_some() {
            return Err(numbers.fault(format!("collective {number} occurs a second time")));
        }
    }
    match numbers.rest.next() {
        None => Ok(LoadedRules { collectives }),
        Some((line, number)) => {
            let problem = format!("'{number}' after the last of {count} collectives is never read");
            Err(FileError::new(path, problem).at_line(line))
        }
    }
}

fn ranges(numbers: &mut NumberReader<'_>, collective: u64) -> Result<Ranges<RulesLine>, FileError> {
    let count = numbers.next("the number of message sizes")?;
    if count == 0 {
        return Err(numbers.fault("0 message sizes; the library would drop the whole file".into()));
    }
    let mut starts: BTreeMap<u64, RulesLine> = BTreeMap::new();
    for _ in 0..count {
        let from_bytes = numbers.next("a message size")?;
        match starts.last_key_value() {
            None if from_bytes != 0 => {
                return Err(numbers.fault(format!(
                    "the first message size is {from_bytes}, not 0; the library would drop the \
                     whole file"
                )));
            }
            Some((last, _)) if *last >= from_bytes => {
                return Err(numbers.fault(format!(
                    "message size {from_bytes} does not ascend; the library would never reach it"
                )));
            }
            _ => {}
        }
        let algorithm = numbers.next("the number of an algorithm")?;
        if algorithm > max_algorithms(collective) {
            return Err(numbers.fault(format!(
                "collective {collective} has no algorithm {algorithm}; the library would end the \
                 program at the first such call"
            )));
        }
        let fan_out = numbers.next("a fan-out")?;
        let segment_bytes = numbers.next("a segment size")?;
        starts.insert(from_bytes, RulesLine { algorithm, fan_out, segment_bytes });
    }
    Ok(Ranges::from_starts(starts, u64::MAX))
}

/// The greatest number of an algorithm of a collective, by its number (5.0; one more than 4.1 in
/// allgather and allgatherv).
const fn max_algorithms(collective: u64) -> u64 {
    match collective {
        0 | 11 => 7,     // allgather, reduce
        1 | 2 | 6 => 6,  // allgatherv, allreduce, barrier
        3 => 5,          // alltoall
        4 | 8 | 14 => 2, // alltoallv, exscan, scan
        7 => 9,          // bcast
        9 | 15 => 3,     // gather, scatter
        12 | 13 => 4,    // reduce_scatter, reduce_scatter_block
        _ => 0,
    }
}

/// The numbers of a file, each with its line.
struct NumberReader<'a> {
    rest: std::vec::IntoIter<(u64, u64)>,
    /// Line of the number read last.
    line: u64,
    path: &'a Path,
}

impl<'a> NumberReader<'a> {
    fn from_text(text: &str, path: &'a Path) -> Result<Self, FileError> {
        let mut numbers = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let words = line.split('#').next().unwrap_or_default();
            for word in words.split_whitespace() {
                let value =
                    value(word).map_err(|problem| FileError::new(path, problem).at_line(number))?;
                numbers.push((number, value));
            }
        }
        Ok(NumberReader { rest: numbers.into_iter(), line: 0, path })
    }

    fn next(&mut self, what: &str) -> Result<u64, FileError> {
        match self.rest.next() {
            Some((line, number)) => {
                self.line = line;
                Ok(number)
            }
            None => Err(self.fault(format!(
                "the file ends after this line where {what} is expected; the library would drop it \
                 whole"
            ))),
        }
    }

    fn at_most(&mut self, what: &str, most: u64) -> Result<u64, FileError> {
        match self.next(what)? {
            number if number <= most => Ok(number),
            number => Err(self.fault(format!("{what} is {number}; expected at most {most}"))),
        }
    }

    fn fault(&self, problem: String) -> FileError {
        FileError::new(self.path, problem).at_line(self.line)
    }
}

fn value(word: &str) -> Result<u64, String> {
    if word.starts_with("rule-file-version") {
        return Err("a version header, which Open MPI before 4.1.8 and 5.0.7 takes for a broken \
                    file; expected a file without one"
            .into());
    }
    if word.contains(',') {
        return Err("values with commas between them: a table (CSV), not a rules file".into());
    }
    if word.len() > 1 && word.starts_with('0') {
        return Err(format!(
            "{} begins with 0; the library reads such numbers as octal",
            quoted(word)
        ));
    }
    match word.parse() {
        Ok(number) if number <= i64::MAX as u64 && !word.starts_with('+') => Ok(number),
        _ => {
            Err(format!("{}: expected a number of 0 or more; comments begin with #", quoted(word)))
        }
    }
}

impl LoadedRules {
    /// What the library runs at a point with the file loaded; in words where the file names
    /// something that has no name here.
    ///
    /// A communicator takes the section of its own size or of the nearest below, and the first one
    /// if it is smaller than all; a call likewise takes its band. Algorithm 0, and a collective
    /// that the file does not have, are left to the library's default. A segment size that the
    /// algorithm does not take, or that holds the whole message, is none.
    ///
    /// # Errors
    /// An algorithm, or a fan-out, that no [`Method`] stands for.
    pub fn method(&self, point: Point) -> Result<Method, String> {
        let Point { collective, layout, bytes } = point;
        let Some(sections) = id(collective).and_then(|id| self.collectives.get(&u64::from(id)))
        else {
            return Ok(Method::Default);
        };
        let after = sections.partition_point(|one| one.procs <= u64::from(layout.procs()));
        let section = sections.get(after.saturating_sub(1));
        let line = section.and_then(|section| section.ranges.at(looked_up_bytes(point)));
        let Some(RulesLine { algorithm, fan_out, segment_bytes }) = line.copied() else {
            return Ok(Method::Default);
        };
        if algorithm == 0 {
            return Ok(Method::Default);
        }
        let row = algorithms(collective).iter().find(|row| u64::from(row.id) == algorithm);
        let Some(row) = row else {
            return Err(format!("algorithm {algorithm} of {collective}"));
        };
        if row.algorithm == Algorithm::KChain && fan_out != u64::from(CHAIN_FAN_OUT) {
            return Err(format!("{} with fan-out {fan_out}", row.algorithm));
        }
        let segmented = row.segmented && segment_bytes < bytes;
        Ok(Method::Native(Native {
            library: LIBRARY,
            algorithm: row.algorithm,
            segment_bytes: if segmented { segment_bytes } else { 0 },
        }))
    }
}

/// The size by which coll/tuned (4.1, 5.0) looks a call up: `coll_tuned_decision_dynamic.c`.
///
/// Scan and exscan leave the count out; their elements are those that Colibri measures with.
pub fn looked_up_bytes(Point { collective, layout, bytes }: Point) -> u64 {
    let procs = u64::from(layout.procs());
    match collective {
        Collective::Allgather
        | Collective::Alltoall
        | Collective::Gather
        | Collective::Scatter
        | Collective::ReduceScatter
        | Collective::ReduceScatterBlock => bytes.saturating_mul(procs),
        Collective::Scan | Collective::Exscan => collective.element_bytes(bytes) * procs,
        Collective::Alltoallv | Collective::Barrier => 0,
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "# 3 words\n\
        2 # collectives\n\
        7 3 # bcast\n\
        0 1\n0 0 0 0\n\
        4 4\n0 6 0 0\n1000 3 0 1024 # pipeline\n65536 2 4 8192\n1048577 0 0 0\n\
        9 1\n0 2 8 0\n\
        0 1 4 2 0 0 0 0 400 4 0 1024\n";

    fn rules(text: &str) -> Result<LoadedRules, String> {
        parse(text, Path::new("x.rules")).map_err(|error| error.to_string())
    }

    fn taken(collective: Collective, procs: u32, bytes: u64) -> Result<String, String> {
        let method = rules(RULES).unwrap().method(Point::flat(collective, procs, bytes));
        method.map(|method| method.short())
    }

    #[test]
    fn the_nearest_rule_below_is_taken_as_the_library_does() {
        let bcast = |procs, bytes| taken(Collective::Bcast, procs, bytes).unwrap();
        assert_eq!(bcast(3, 1 << 20), "default");
        assert_eq!(bcast(4, 999), "binomial");
        assert_eq!(bcast(4, 1000), "pipeline", "a segment that holds all is none");
        assert_eq!(bcast(4, 1025), "pipeline 1 KiB");
        assert_eq!(bcast(8, 65535), "pipeline 1 KiB");
        assert_eq!(bcast(8, 65536), "k-chain 8 KiB");
        assert_eq!(bcast(8, 1 << 21), "default");
        assert_eq!(taken(Collective::Bcast, 9, 8).unwrap_err(), "k-chain with fan-out 8");
        assert_eq!(taken(Collective::Reduce, 8, 8).unwrap(), "default");
        assert_eq!(taken(Collective::Gatherv, 8, 8).unwrap(), "default");
    }

    #[test]
    fn sizes_are_what_the_library_counts_and_a_communicator_below_all_takes_the_first_section() {
        assert_eq!(taken(Collective::Allgather, 2, 199).unwrap(), "default");
        assert_eq!(taken(Collective::Allgather, 2, 200).unwrap(), "ring", "all blocks count");
        let point = |collective, bytes| Point::flat(collective, 4, bytes);
        assert_eq!(looked_up_bytes(point(Collective::Scan, 4096)), 32, "doubles");
        assert_eq!(looked_up_bytes(point(Collective::Barrier, 0)), 0);
        assert_eq!(looked_up_bytes(point(Collective::Alltoall, u64::MAX / 3)), u64::MAX);
    }

    #[test]
    fn what_the_library_would_drop_or_misread_is_an_error_with_its_line() {
        for (text, wanted) in [
            ("1\n7 1\n4 1\n8 6 0 0", "line 4: the first message size is 8, not 0"),
            ("1\n7 1\n4 2\n0 6 0 0\n0 3 0 0", "line 5: message size 0 does not ascend"),
            ("1\n7 2\n4 1 0 6 0 0\n4 1 0 6 0 0", "line 4: communicator size 4 does not ascend"),
            ("1\n7 1\n4 1\n0 10 0 0", "line 4: collective 7 has no algorithm 10"),
            ("1\n7 1\n4 0", "line 3: 0 message sizes"),
            ("1\n7 1\n4 1\n0 6 0", "line 4: the file ends after this line where a segment size"),
            ("1\n22 1", "line 2: the number of a collective is 22; expected at most 21"),
            ("1\n7 1\n4 1\n0 6 0 0\n8", "line 5: '8' after the last of 1 collectives"),
            ("2\n7 1 4 1 0 6 0 0\n7 1 4 1 0 6 0 0", "line 3: collective 7 occurs a second"),
            ("1\n7 1\n010 1\n0 6 0 0", "line 3: '010' begins with 0"),
            ("1\n7 1\n-4 1\n0 6 0 0", "line 3: '-4': expected a number of 0 or more"),
            ("1\n7 1 # bcast\n4 1 small\n0 6 0 0", "line 3: 'small': expected a number"),
            ("rule-file-version-2\n0", "line 1: a version header"),
            ("visit,collective,method\n1,2,3", "line 1: values with commas"),
            ("", "the file ends after this line where the number of collectives"),
        ] {
            let error = rules(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert!(rules("0").is_ok(), "nothing is tuned");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9 #\n-]{0,60}") {
            if let Ok(rules) = rules(&text) {
                for collective in Collective::ALL {
                    let _ = rules.method(Point::flat(collective, 5, 77));
                }
            }
        }
    }
}
