//! Algorithms that a script forces: what is timed then is not the library's default.

use std::{collections::BTreeSet, path::Path};

use libraries::{Forced, ForcedPart, MpiLibrary, forces};
use records::{Collective, Method, quoted};

use super::launch::only_names;

/// A setting by which an algorithm, or a part of it, is forced.
#[derive(Debug, Clone)]
struct ForcedSetting {
    line: u64,
    library: &'static dyn MpiLibrary,
    forced: Forced,
    name: String,
    value: String,
    /// Whether it holds for all commands after it.
    is_exported: bool,
}

/// All that a script forces.
#[derive(Debug, Clone, Default)]
pub struct ForcedAlgorithms {
    settings: Vec<ForcedSetting>,
    /// Parameters that are on without which a library does not heed others.
    switches: BTreeSet<&'static str>,
}

/// What must be on, or a library does not heed what is forced.
fn switch(library: &dyn MpiLibrary) -> Option<&'static str> {
    Some(library.within_job()?.switch?.name)
}

impl ForcedAlgorithms {
    /// Takes in a command.
    pub fn take(&mut self, line: u64, words: &[String], text: &str) {
        if only_names(words) || words.first().is_some_and(|first| first == "unset") {
            return;
        }
        let is_exported = words.first().is_some_and(|first| first == "export");
        for (name, value) in pairs(text) {
            let mut switches = libraries::ALL.iter().filter_map(|library| switch(*library));
            if let Some(switch) = switches.find(|switch| name.ends_with(switch)) {
                if ["1", "true", "yes"].contains(&value) {
                    self.switches.insert(switch);
                }
            } else if let Some((library, forced)) = forces(name, value) {
                let (name, value) = (name.to_owned(), value.to_owned());
                let setting = ForcedSetting { line, library, forced, name, value, is_exported };
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
        let values_of = |part: ForcedPart| -> BTreeSet<&str> {
            let of_part = |it: &&ForcedSetting| it.forced == Forced::Of(collective, part);
            self.settings.iter().filter(of_part).map(|it| it.value.as_str()).collect()
        };
        let is_algorithm = |it: &&ForcedSetting| {
            [Forced::Several, Forced::Of(collective, ForcedPart::Algorithm)].contains(&it.forced)
        };
        let first = self.settings.iter().find(is_algorithm)?;
        let method = || {
            if self.settings.iter().any(|it| it.forced == Forced::Several) {
                return Err("that names algorithms of several collectives".into());
            }
            if values_of(ForcedPart::Algorithm).len() > 1 {
                return Err("the script gives it several values".into());
            }
            if let Some(switch) = switch(first.library).filter(|it| !self.switches.contains(it)) {
                return Err(format!(
                    "without {switch}=1 {} does not heed it",
                    first.library.title()
                ));
            }
            if !first.is_exported && launches != 1 {
                return Err(format!("the script starts ranks by {launches} lines"));
            }
            if !values_of(ForcedPart::FanOut).is_empty() {
                return Err("a fan-out is set, too".into());
            }
            let sizes = values_of(ForcedPart::SegmentSize);
            if sizes.len() > 1 {
                return Err("the script gives several segment sizes".into());
            }
            let native =
                first.library.forced_method(collective, &first.value, sizes.first().copied());
            native.map(Method::Native)
        };
        Some(method().map_err(|why: String| {
            format!(
                "the library's default is not what was timed ({}, line {}: {} is {}), and {why}; {GIVE_METHOD}",
                path.display(),
                first.line,
                first.name,
                quoted(&first.value)
            )
        }))
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
        matches!(
            forces(name, value),
            Some((_, Forced::Several | Forced::Of(_, ForcedPart::Algorithm)))
        )
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
        let is_word = |sign: char| sign.is_ascii_alphanumeric() || "_-$./{}".contains(sign);
        name.chars().all(is_word)
            && value.chars().all(|sign| is_word(sign) || ":;,@#[]".contains(sign))
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
