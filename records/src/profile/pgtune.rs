//! PGMPITuneLib's profiles: one text file per collective and number of processes.
//!
//! Lines, in this order, beside comments (`#` to the end of the line) and empty ones:
//! `MPI_Scatter`; the number of processes; the number of mock-ups; for each its id and name; the
//! number of ranges; for each its first and last size in bytes, both in it, and a mock-up's id.
//! Sizes are those of the send side per process, which for the collectives that have mock-ups is
//! Colibri's [message size](crate::Collective::message_size).

use std::{fmt::Write, path::Path, str::FromStr};

use super::Profile;
use crate::{
    Collective, FileError, Method, SizeRange, document::Document, ranges::RangesError, reading,
    unknown,
};

/// Collectives as PGMPITuneLib writes them, and what begins the names of their mock-ups.
const COLLECTIVES: [(Collective, &str); 9] = [
    (Collective::Allgather, "MPI_Allgather"),
    (Collective::Allreduce, "MPI_Allreduce"),
    (Collective::Alltoall, "MPI_Alltoall"),
    (Collective::Bcast, "MPI_Bcast"),
    (Collective::Gather, "MPI_Gather"),
    (Collective::Reduce, "MPI_Reduce"),
    (Collective::ReduceScatterBlock, "MPI_Reduce_scatter_block"),
    (Collective::Scan, "MPI_Scan"),
    (Collective::Scatter, "MPI_Scatter"),
];

/// Mock-ups whose names differ: ours, PGMPITuneLib's.
const NAMES: [(&str, &str); 8] = [
    ("allreduce_as_reduce_scatter_allgatherv", "allreduce_as_reducescatter_allgatherv"),
    ("allreduce_as_reduce_scatter_block_allgather", "allreduce_as_reducescatterblock_allgather"),
    ("reduce_as_reduce_scatter_block_gather", "reduce_as_reducescatterblock_gather"),
    ("reduce_as_reduce_scatter_gatherv", "reduce_as_reducescatter_gatherv"),
    ("reduce_scatter_block_as_allreduce", "reducescatterblock_as_allreduce"),
    ("reduce_scatter_block_as_reduce_scatter", "reducescatterblock_as_reducescatter"),
    ("reduce_scatter_block_as_reduce_then_scatter", "reducescatterblock_as_reduce_scatter"),
    ("scan_as_exscan_reduce_local", "scan_as_exscan_reducelocal"),
];

/// Reads a profile.
///
/// # Errors
/// Not readable, or not of this form; names the line and what is wanted there.
pub fn read(path: &Path) -> Result<Profile, FileError> {
    let text = reading::text_file(path)?;
    parse(&text, path)
}

/// Reads a profile from its text; `path` is for the errors.
///
/// # Errors
/// As [`read`].
pub fn parse(text: &str, path: &Path) -> Result<Profile, FileError> {
    let mut lines = NumberedLines::new(text, path);
    let [name] = lines.fields("an MPI function, such as MPI_Scatter")?;
    let names = COLLECTIVES.map(|(_, name)| name);
    let collective = COLLECTIVES
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(collective, _)| *collective)
        .ok_or_else(|| lines.fault(unknown("function", name, &names)))?;
    let [procs] = lines.numbers("the number of ranks")?;
    let [mockups] = lines.numbers::<usize, 1>("the number of mock-ups")?;
    let mut methods: Vec<(u64, Method)> = Vec::new();
    for _ in 0..mockups {
        let [id, name] = lines.fields("the id and the name of a mock-up")?;
        let id = lines.number(id, "the id of a mock-up")?;
        if methods.iter().any(|(other, _)| *other == id) {
            return Err(lines.fault(format!("{id} is the id of two mock-ups")));
        }
        let method = Method::mockup(ours(name));
        methods.push((id, method.map_err(|problem| lines.fault(format!("'{name}': {problem}")))?));
    }
    let [count] = lines.numbers::<usize, 1>("the number of ranges")?;
    let mut ranges = Vec::new();
    for _ in 0..count {
        let [first_bytes, last_bytes, id] =
            lines.numbers("the first and the last size of a range and the id of a mock-up")?;
        let method = methods.iter().find(|(known, _)| *known == id).map(|(_, method)| method);
        let Some(method) = method.cloned() else {
            return Err(lines.fault(format!("no mock-up has the id {id}")));
        };
        ranges.push(SizeRange::new(first_bytes, last_bytes, method));
    }
    if let Some(rest) = lines.next() {
        return Err(lines.fault(format!("'{rest}' after the last of {count} ranges")));
    }
    ranges.sort_by_key(|range| range.first_bytes);
    let wrong = |RangesError { field, problem }| {
        FileError::new(path, problem).in_field(format!("ranges{field}"))
    };
    let profile = Profile::new(collective, procs, ranges.try_into().map_err(wrong)?);
    profile.validate().map_err(|(field, problem)| FileError::new(path, problem).in_field(field))?;
    Ok(profile)
}

/// The text of a profile.
///
/// # Errors
/// What the form cannot express: a collective without mock-ups, or a method that is none. An
/// empty profile is none either, since PGMPITuneLib refuses it.
pub fn format(profile: &Profile) -> Result<String, String> {
    let collective = profile.collective;
    let Some((_, function)) = COLLECTIVES.iter().find(|(known, _)| *known == collective) else {
        return Err(format!("pgtune has no profiles of {collective}"));
    };
    if profile.ranges.is_empty() {
        return Err("pgtune has no profiles without ranges".into());
    }
    let mut names: Vec<&str> = Vec::new();
    let mut ranges = String::new();
    for SizeRange { first_bytes, last_bytes, choice } in profile.ranges.iter() {
        let Method::Mockup(name) = &choice.method else {
            return Err(format!("pgtune has mock-ups only, not {}", choice.method));
        };
        let index = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        let _ = writeln!(ranges, "{first_bytes} {last_bytes} {}", index + 1);
    }
    let mut text = "# pgtune profile\n".to_owned();
    for line in &profile.about {
        let _ = writeln!(text, "# {line}");
    }
    let _ = write!(text, "{function}\n{} # processes\n{} # mock-ups\n", profile.procs, names.len());
    for (index, name) in names.iter().enumerate() {
        let _ = writeln!(text, "{} {}", index + 1, theirs(name));
    }
    let _ =
        write!(text, "{} # ranges: first and last byte, mock-up\n{ranges}", profile.ranges.len());
    Ok(text)
}

fn ours(name: &str) -> &str {
    NAMES.iter().find(|(_, theirs)| *theirs == name).map_or(name, |(ours, _)| ours)
}

fn theirs(name: &str) -> &str {
    NAMES.iter().find(|(ours, _)| *ours == name).map_or(name, |(_, theirs)| theirs)
}

/// Lines that say something, with their numbers.
struct NumberedLines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    line: u64,
    path: &'a Path,
}

impl<'a> Iterator for NumberedLines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        for (index, line) in self.lines.by_ref() {
            self.line = index as u64 + 1;
            let said = line.split('#').next().unwrap_or_default().trim();
            if !said.is_empty() {
                return Some(said);
            }
        }
        None
    }
}

impl<'a> NumberedLines<'a> {
    fn new(text: &'a str, path: &'a Path) -> Self {
        NumberedLines { lines: text.lines().enumerate(), line: 0, path }
    }

    fn fault(&self, problem: impl Into<String>) -> FileError {
        FileError::new(self.path, problem).at_line(self.line)
    }

    fn fields<const N: usize>(&mut self, wanted: &str) -> Result<[&'a str; N], FileError> {
        let Some(line) = self.next() else {
            return Err(self.fault(format!("the file ends too early; expected {wanted}")));
        };
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.try_into().map_err(|_| self.fault(format!("'{line}': expected {wanted}")))
    }

    fn numbers<T: FromStr + Default + Copy, const N: usize>(
        &mut self,
        wanted: &str,
    ) -> Result<[T; N], FileError> {
        let fields: [&str; N] = self.fields(wanted)?;
        let mut numbers = [T::default(); N];
        for (number, field) in numbers.iter_mut().zip(fields) {
            *number = self.number(field, wanted)?;
        }
        Ok(numbers)
    }

    fn number<T: FromStr>(&self, field: &str, wanted: &str) -> Result<T, FileError> {
        field
            .parse()
            .map_err(|_| self.fault(format!("'{field}' is not a number; expected {wanted}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ranges;

    /// The paper's listing.
    const SCATTER: &str = "# pgtune profile\nMPI_Scatter\n1024 # nb. of. processes\n2 # nb. of \
        mock-up impl.\n2 scatter_as_bcast\n3 scatter_as_scatterv\n8 # nb. of ranges\n1 1 2 # \
        byte_range_start byte_range_end alg_id\n8 8 2\n32 32 2\n64 64 2\n100 100 2\n512 512 2\n\
        1024 1024 2\n10000 10000 3\n";

    #[test]
    fn the_papers_profile_is_read_and_written() {
        let profile = parse(SCATTER, Path::new("p.prf")).unwrap();
        assert_eq!((profile.collective, profile.procs), (Collective::Scatter, 1024));
        assert_eq!(profile.ranges.len(), 8);
        assert_eq!(profile.method(100).unwrap().to_string(), "mockup:scatter_as_bcast");
        assert_eq!(profile.method(10000).unwrap().to_string(), "mockup:scatter_as_scatterv");
        assert_eq!(profile.method(99), None);
        let again = parse(&format(&profile).unwrap(), Path::new("q.prf")).unwrap();
        assert_eq!(again, profile);
    }

    #[test]
    fn names_are_translated_both_ways() {
        for (name, theirs) in NAMES {
            let (collective, _) = name.split_once("_as_").unwrap();
            let method = Method::Mockup(name.into());
            let ranges = vec![SizeRange::new(1, 2, method)].try_into().unwrap();
            let profile = Profile::new(collective.parse().unwrap(), 4, ranges);
            let text = format(&profile).unwrap();
            assert!(text.contains(&format!("1 {theirs}\n")), "{text}");
            assert_eq!(parse(&text, Path::new("p.prf")).unwrap(), profile);
        }
    }

    #[test]
    fn faults_are_named_with_their_line() {
        for (text, wanted) in [
            ("MPI_Scater\n", "line 1: unknown function 'MPI_Scater'; did you mean 'MPI_Scatter'?"),
            ("MPI_Bcast\neight\n", "line 2: 'eight' is not a number; expected the number of ranks"),
            (
                "MPI_Bcast\n8\n1\n1 bcast_as_allgatherv\n1\n1 2 7\n",
                "line 6: no mock-up has the id 7",
            ),
            ("MPI_Bcast\n8\n1\n1 bcast_as_allgatherv\n2\n1 2 1\n", "ends too early"),
            ("MPI_Bcast\n8\n1\n1 scatter_as_bcast\n1\n1 2 1\n", "begins with bcast_as_"),
            ("MPI_Bcast\n8\n1\n1 bcast_as_allgatherv\n1\n1 2 1\n3 4 1\n", "line 7: '3 4 1' after"),
            (
                "MPI_Bcast\n8\n2\n1 bcast_as_a\n1 bcast_as_b\n",
                "line 5: 1 is the id of two mock-ups",
            ),
        ] {
            let error = parse(text, Path::new("p.prf")).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn what_the_form_cannot_express_is_refused() {
        let linear: Method = "own:linear".parse().unwrap();
        let ranges = vec![SizeRange::new(1, 2, linear)].try_into().unwrap();
        let profile = Profile::new(Collective::Bcast, 4, ranges);
        assert!(format(&profile).unwrap_err().contains("own:linear"));
        let empty = |collective| format(&Profile::new(collective, 4, Ranges::default()));
        assert!(empty(Collective::Bcast).is_err());
        assert!(empty(Collective::Exscan).unwrap_err().contains("exscan"));
    }
}
