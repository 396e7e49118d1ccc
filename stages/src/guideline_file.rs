//! Pattern guidelines that users write, as a TOML file.

use std::path::Path;

use records::{Collective, FileError, Method, Plugin, quantity, reading, unknown};
use runner::mockups;
use serde::Deserialize;
use toml::Spanned;
use verification::patterns::{PatternGuideline, RightSide};

use site::config::{line_of, toml_error};

/// What a run keeps of the guidelines it was begun with.
pub const FILE: &str = "guidelines.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GuidelineFile {
    guideline: Vec<GuidelineEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GuidelineEntry {
    rule: Spanned<String>,
    sizes: Option<Spanned<String>>,
    procs: Option<Spanned<String>>,
    tolerance: Option<Spanned<f64>>,
}

/// Reads a file. A plug-in's library that is a file gets its whole path, since ranks may start elsewhere.
///
/// # Errors
/// It cannot be read, or as [`parse`].
pub fn read(path: &Path) -> Result<Vec<PatternGuideline>, FileError> {
    let text = reading::text_file(path)?;
    let mut rules = parse(&text, path)?;
    for rule in &mut rules {
        let RightSide::Method(Method::Plugin(plugin)) = &mut rule.right else { continue };
        let Ok(whole) = Path::new(plugin.library()).canonicalize() else { continue };
        let located = Plugin::new(&whole.to_string_lossy(), plugin.symbol(), plugin.suboptions());
        **plugin = located.map_err(|problem| FileError::new(path, problem))?;
    }
    Ok(rules)
}

/// The text of a file of these guidelines.
pub fn text(rules: &[PatternGuideline]) -> String {
    let of_rule = |rule: &PatternGuideline| {
        let quoted = |text: String| toml::Value::String(text).to_string();
        let mut text = format!("[[guideline]]\nrule = {}\n", quoted(rule.to_string()));
        let sizes: Vec<String> = rule.sizes.iter().map(ToString::to_string).collect();
        let procs: Vec<String> = rule.procs.iter().map(ToString::to_string).collect();
        for (name, values) in [("sizes", sizes), ("procs", procs)] {
            if !values.is_empty() {
                text += &format!("{name} = {}\n", quoted(values.join(",")));
            }
        }
        if let Some(tolerance) = rule.tolerance {
            text += &format!("tolerance = {tolerance:?}\n");
        }
        text
    };
    rules.iter().map(of_rule).collect::<Vec<String>>().join("\n")
}

/// The guidelines of a file's text; `path` is for the errors.
///
/// # Errors
/// It is no TOML, a key is unknown, a value is wrong: names the line, the field and what would be right.
pub fn parse(text: &str, path: &Path) -> Result<Vec<PatternGuideline>, FileError> {
    let file: GuidelineFile =
        toml::from_str(text).map_err(|error| toml_error(text, path, &error))?;
    if file.guideline.is_empty() {
        let problem = "is empty; expected a [[guideline]] with a rule";
        return Err(FileError::new(path, problem).in_field("guideline"));
    }
    let entries = file.guideline.iter().enumerate();
    entries.map(|(index, entry)| guideline(entry, index, text, path)).collect()
}

fn guideline(
    entry: &GuidelineEntry,
    index: usize,
    text: &str,
    path: &Path,
) -> Result<PatternGuideline, FileError> {
    let fault = |start: usize, field: &str, problem: String| {
        let field = format!("guideline[{index}].{field}");
        FileError::new(path, problem).at_line(line_of(text, start)).in_field(field)
    };
    let (collective, right) = sides(entry.rule.get_ref())
        .map_err(|problem| fault(entry.rule.span().start, "rule", problem))?;
    let sizes = match &entry.sizes {
        Some(sizes) => quantity::parse_sizes(sizes.get_ref())
            .map_err(|problem| fault(sizes.span().start, "sizes", problem))?,
        None => Vec::new(),
    };
    let procs = match &entry.procs {
        Some(procs) => quantity::parse_procs(procs.get_ref())
            .map_err(|problem| fault(procs.span().start, "procs", problem))?,
        None => Vec::new(),
    };
    let tolerance = match &entry.tolerance {
        Some(gain) if !(gain.get_ref().is_finite() && *gain.get_ref() >= 0.0) => {
            let problem = format!(
                "is {}; expected a relative gain of 0 or more, such as 0.05 for 5 %",
                gain.get_ref()
            );
            return Err(fault(gain.span().start, "tolerance", problem));
        }
        gain => gain.as_ref().map(|gain| *gain.get_ref()),
    };
    Ok(PatternGuideline { collective, right, sizes, procs, tolerance })
}

/// `MPI_Bcast <= MPI_Scatter + MPI_Allgather`, `bcast <= plugin:libmine.so:my_bcast`
fn sides(rule: &str) -> Result<(Collective, RightSide), String> {
    let form = "expected A <= B, such as MPI_Bcast <= MPI_Scatter + MPI_Allgather";
    let (left, right) = rule.split_once("<=").ok_or_else(|| format!("is '{rule}'; {form}"))?;
    let collective: Collective = function(left).parse()?;
    if collective == Collective::Barrier {
        return Err("a barrier has no data to compare by; expected another left side".into());
    }
    let right = right.trim();
    if right.contains(':') {
        let method: Method =
            right.parse().map_err(|error: records::MethodError| error.to_string())?;
        method.check_collective(collective)?;
        return Ok((collective, RightSide::Method(method)));
    }
    let functions: Vec<String> = right.split('+').map(function).collect();
    if functions.iter().any(String::is_empty) {
        return Err(format!("is '{rule}'; {form}"));
    }
    if functions == [collective.name()] {
        return Err(format!(
            "both sides are {collective}; expected other collectives on the right"
        ));
    }
    if let Some(mockup) = mockups::made_of(collective, &functions) {
        return Ok((collective, RightSide::Method(Method::Mockup(mockup.name.into()))));
    }
    let term = |name: &String| {
        let known: Vec<&str> = Collective::ALL.iter().map(|one| one.name()).collect();
        name.parse().map_err(|_| match name.as_str() {
            "reduce_local" => format!("no mock-up of {collective} is made of {right}"),
            name => unknown("collective", name, &known),
        })
    };
    Ok((collective, RightSide::Sum(functions.iter().map(term).collect::<Result<_, _>>()?)))
}

/// `MPI_Reduce_scatter` as `reduce_scatter`.
fn function(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    name.strip_prefix("mpi_").map(str::to_owned).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<PatternGuideline>, String> {
        parse(text, Path::new("mine.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_a_mock_up_is_run_and_what_is_none_is_added() {
        let text = "[[guideline]]\nrule = \"MPI_Bcast <= MPI_Allgather + MPI_Scatter\"\n\
                    sizes = \"1KiB..4KiB\"\nprocs = \"4,8\"\ntolerance = 0.1\n\
                    [[guideline]]\nrule = \"MPI_Scan <= MPI_Exscan + MPI_Reduce_local\"\n\
                    [[guideline]]\nrule = \"gather <= alltoall\"\n\
                    [[guideline]]\nrule = \"bcast <= own:binomial\"\n";
        let read = read(text).unwrap();
        let shown: Vec<String> = read.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "bcast <= mockup:bcast_as_scatter_allgather",
                "scan <= mockup:scan_as_exscan_reduce_local",
                "gather <= alltoall",
                "bcast <= own:binomial",
            ]
        );
        assert_eq!(parse(&super::text(&read), Path::new("kept")).unwrap(), read);
        assert_eq!(read[0].sizes, [1024, 2048, 4096]);
        assert_eq!((read[0].procs.as_slice(), read[0].tolerance), (&[4, 8][..], Some(0.1)));
    }

    #[test]
    fn errors_name_file_line_field_and_what_would_be_right() {
        let second = "[[guideline]]\nrule = \"gather <= allgather\"\n\n[[guideline]]\n";
        for (text, expected) in [
            ("rule = 3", "mine.toml, line 1: unknown field"),
            ("guideline = []", "field guideline: is empty; expected a [[guideline]]"),
            ("[[guideline]]\nrulle = \"a\"", "line 2"),
            ("[[guideline]]\nsizes = \"8\"", "missing field `rule`"),
            (
                "[[guideline]]\nrule = \"MPI_Bcast\"",
                "mine.toml, line 2, field guideline[0].rule: is 'MPI_Bcast'; expected A <= B",
            ),
            ("[[guideline]]\nrule = \"bcast <= \"", "expected A <= B"),
            ("[[guideline]]\nrule = \"bcast <= MPI_Bcast\"", "both sides are bcast"),
            ("[[guideline]]\nrule = \"bcats <= gather\"", "did you mean 'bcast'"),
            ("[[guideline]]\nrule = \"bcast <= scater\"", "did you mean 'scatter'"),
            ("[[guideline]]\nrule = \"bcast <= reduce_local\"", "no mock-up of bcast is made of"),
            ("[[guideline]]\nrule = \"barrier <= bcast\"", "another left side"),
            ("[[guideline]]\nrule = \"bcast <= mockup:scatter_as_bcast\"", "begins with bcast_as_"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        for (line, expected) in [
            ("sizes = \"8,x\"", "line 6, field guideline[1].sizes"),
            ("procs = \"0\"", "line 6, field guideline[1].procs"),
            (
                "tolerance = -0.1",
                "line 6, field guideline[1].tolerance: is -0.1; expected a relative",
            ),
        ] {
            let error =
                read(&format!("{second}rule = \"gather <= reduce\"\n{line}\n")).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
