//! Algorithms that a script forces: what is timed then is not the library's default.

use std::{collections::BTreeSet, path::Path};

use libraries::openmpi;
use records::{Collective, Library, Method, Native, quoted};

use super::launch::only_names;

/// What Open MPI heeds forced algorithms by.
const DYNAMIC: &str = "coll_tuned_use_dynamic_rules";
/// Files from which libraries take the algorithms of all collectives.
const FILES: [&str; 2] =
    ["coll_tuned_dynamic_rules_filename", "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"];

/// A setting by which an algorithm, or a part of it, is forced.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ForcedSetting {
    line: u64,
    /// All, where a file names the algorithms.
    collective: Option<Collective>,
    part: ForcedPart,
    name: String,
    value: String,
    /// Whether it holds for all commands after it.
    is_exported: bool,
}

/// What a setting is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForcedPart {
    Algorithm,
    SegmentSize,
    FanOut,
}

/// All that a script forces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForcedAlgorithms {
    settings: Vec<ForcedSetting>,
    /// Whether Open MPI is told to heed them.
    is_dynamic: bool,
}

impl ForcedAlgorithms {
    /// Takes in a command.
    pub fn take(&mut self, line: u64, words: &[String], text: &str) {
        if only_names(words) || words.first().is_some_and(|first| first == "unset") {
            return;
        }
        let is_exported = words.first().is_some_and(|first| first == "export");
        for (name, value) in pairs(text) {
            if name.ends_with(DYNAMIC) {
                self.is_dynamic |= ["1", "true", "yes"].contains(&value);
            } else if let Some((collective, part)) = forces(name, value) {
                let (name, value) = (name.to_owned(), value.to_owned());
                let setting = ForcedSetting { line, collective, part, name, value, is_exported };
                self.settings.push(setting);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    /// The algorithm that calls of a collective run, where the script starts ranks by so many lines; nothing where it
    /// is the library's default.
    ///
    /// # Errors
    /// The script forces one, and which it is does not follow; why.
    pub fn method(
        &self,
        collective: Collective,
        path: &Path,
        launches: usize,
    ) -> Option<Result<Method, String>> {
        let of_it: Vec<&ForcedSetting> = self
            .settings
            .iter()
            .filter(|setting| setting.collective.is_none_or(|of| of == collective))
            .collect();
        let is_algorithm = |setting: &&&ForcedSetting| setting.part == ForcedPart::Algorithm;
        let first = *of_it.iter().find(is_algorithm)?;
        let (line, name, value) = (first.line, &first.name, &first.value);
        let place = format!("{}, line {line}: {name} is {}", path.display(), quoted(value));
        Some(self.native(collective, &of_it, first, launches).map_err(|why| {
            format!(
                "the library's default is not what was timed ({place}), and {why}; {GIVE_METHOD}"
            )
        }))
    }

    fn native(
        &self,
        collective: Collective,
        of_it: &[&ForcedSetting],
        first: &ForcedSetting,
        launches: usize,
    ) -> Result<Method, String> {
        let values_of = |part: ForcedPart| -> BTreeSet<&str> {
            of_it.iter().filter(|it| it.part == part).map(|it| it.value.as_str()).collect()
        };
        if first.collective.is_none() {
            return Err("a file names the algorithms".into());
        }
        if values_of(ForcedPart::Algorithm).len() > 1 {
            return Err("the script gives it several values".into());
        }
        if !first.name.contains("coll_tuned") {
            return Err("which algorithm that is depends on the library's version".into());
        }
        if !self.is_dynamic {
            return Err(format!("without {DYNAMIC}=1 Open MPI does not heed it"));
        }
        if !first.is_exported && launches != 1 {
            return Err(format!("the script starts ranks by {launches} lines"));
        }
        if !values_of(ForcedPart::FanOut).is_empty() {
            return Err("a fan-out is set, too".into());
        }
        let id: Option<u32> = first.value.parse().ok();
        let rows = openmpi::algorithms(collective);
        let Some(row) = rows.iter().find(|row| Some(row.id) == id) else {
            return Err("no algorithm of Open MPI has this number".into());
        };
        let sizes = values_of(ForcedPart::SegmentSize);
        let segment_bytes = match sizes.iter().collect::<Vec<_>>()[..] {
            _ if !row.segmented => 0,
            [] => 0,
            [size] => size.parse().map_err(|_| "the segment size is no number".to_owned())?,
            _ => return Err("the script gives several segment sizes".into()),
        };
        let library = Library::new("openmpi").ok_or("there is no such library")?;
        Ok(Method::Native(Native { library, algorithm: row.algorithm, segment_bytes }))
    }
}

/// What is asked of the user where an algorithm is forced.
const GIVE_METHOD: &str = "say by --method what was, such as --method native:openmpi:binomial (--method default, if \
                           the setting did not count)";

/// What a line of output says of a forced algorithm: of the command that made it, say.
///
/// # Errors
/// What is wrong with taking it as the library's default.
pub fn check_forced(line: &str) -> Result<(), String> {
    let is_forced = |(name, value): &(&str, &str)| {
        forces(name, value).is_some_and(|(_, part)| part == ForcedPart::Algorithm)
    };
    match pairs(line).into_iter().find(is_forced) {
        Some((name, value)) => Err(format!(
            "{name} is {} here: the library's default is not what was timed; {GIVE_METHOD}",
            quoted(value)
        )),
        None => Ok(()),
    }
}

/// Names with the values that they are given: `--mca NAME VALUE`, `export NAME="VALUE"`. What a library writes of its
/// settings is none: `parameter "NAME" (current value: "ignore", ...)`.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    let is_plain = |(name, value): &(&str, &str)| {
        let is_part = |sign: char| sign.is_ascii_alphanumeric() || "_-$./{}".contains(sign);
        name.chars().chain(value.chars()).all(is_part)
    };
    fn bare(word: &str) -> &str {
        word.trim_matches(['"', '\''])
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let assigned = words.iter().filter_map(|word| word.split_once('='));
    let followed = words.windows(2).map(|pair| (pair[0], pair[1]));
    assigned
        .chain(followed)
        .map(|(name, value)| (bare(name), bare(value)))
        .filter(is_plain)
        .collect()
}

/// What a setting forces, and of which collective; nothing where it forces none.
fn forces(name: &str, value: &str) -> Option<(Option<Collective>, ForcedPart)> {
    let plain = ["OMPI_MCA_", "PRTE_MCA_"].iter().find_map(|begin| name.strip_prefix(begin));
    let plain = plain.unwrap_or(name);
    if FILES.contains(&plain) {
        return Some((None, ForcedPart::Algorithm));
    }
    let of_open_mpi = plain.strip_prefix("coll_tuned_").and_then(|rest| {
        let (of, rest) = rest.split_once("_algorithm")?;
        let part = match rest {
            "" => ForcedPart::Algorithm,
            "_segmentsize" => ForcedPart::SegmentSize,
            _ if rest.ends_with("_fanout") => ForcedPart::FanOut,
            _ => return None,
        };
        Some((of.to_owned(), part))
    });
    let of_mpich = || {
        let of = name.strip_prefix("MPIR_CVAR_")?.strip_suffix("_ALGORITHM")?;
        Some(of.strip_suffix("_INTRA").unwrap_or(of))
    };
    let of_others = || name.strip_prefix("I_MPI_ADJUST_").or_else(of_mpich);
    let of_others = || of_others().map(|of| (of.to_ascii_lowercase(), ForcedPart::Algorithm));
    let (collective, part) = of_open_mpi.or_else(of_others)?;
    // What a library chooses by itself.
    let is_default = ["", "0", "auto", "ignore"].contains(&value);
    let collective = collective.parse().ok()?;
    (!is_default).then_some((Some(collective), part))
}
