//! The options that a run was begun with, so that it goes on by `--resume` alone, and by no others.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::Result;
use clap::{Arg, ArgMatches, Command, parser::ValueSource};
use records::{
    document::{self, Document},
    reading,
};
use serde::{Deserialize, Serialize};

use crate::usage;

/// The options that a command was given, without their defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenOptions {
    /// The subcommand.
    command: String,
    /// By their long names, each with its values; a flag has none. The words behind `--` stand under that.
    options: BTreeMap<String, Vec<String>>,
}

impl Document for GivenOptions {
    const SCHEMA: &'static str = "colibri/options/1";
}

impl GivenOptions {
    /// The file that holds them in a run's directory.
    pub fn file(&self) -> String {
        file(&self.command)
    }

    /// The value of an option that takes one; nothing where it was not given.
    pub fn value(&self, option: &str) -> Option<&str> {
        Some(self.options.get(option)?.first()?.as_str())
    }

    /// The options as they would be typed.
    pub fn words(&self) -> impl Iterator<Item = String> {
        // They were text when they were given.
        all_words(&self.options).map(|word| word.to_string_lossy().into_owned())
    }

    #[cfg(test)]
    pub fn of<const N: usize>(command: &str, options: [(&str, &str); N]) -> Self {
        let options = options.map(|(name, value)| (name.to_owned(), vec![value.to_owned()]));
        GivenOptions { command: command.into(), options: options.into() }
    }
}

fn file(command: &str) -> String {
    format!("{command}.json")
}

/// A command whose runs can go on.
struct Resumable {
    name: &'static str,
    /// What begins one, after `colibri`.
    words: &'static str,
    /// The records of a run; where all are without observations, it has not begun.
    records: &'static [&'static str],
    /// Options that a run which goes on may change, since what is recorded does not depend on them.
    may_change: &'static [&'static str],
}

impl Resumable {
    fn may_change(&self, option: &str) -> bool {
        self.may_change.contains(&option)
    }
}

/// Whether a directory holds a run that `--resume` goes on with.
pub(crate) fn can_go_on(directory: &Path) -> bool {
    RESUMABLE.iter().any(|resumable| directory.join(file(resumable.name)).exists())
}

const RESUMABLE: [Resumable; 5] = [
    Resumable {
        name: "tune",
        words: "tune",
        records: &["observations.csv", "measurements.csv", "usage.json"],
        may_change: &["patience", "budget", "details"],
    },
    Resumable {
        name: "calibrate",
        words: "calibrate",
        records: &["observations.csv", "pairs.csv", "algorithms.csv"],
        may_change: &["patience", "budget", "stop-by", "precision", "no-pairs", "algorithms-of"],
    },
    Resumable {
        name: "verify",
        words: "verify",
        records: &["measurements.csv"],
        may_change: &["patience", "budget", "judge", "compare"],
    },
    Resumable {
        name: "guidelines",
        words: "guidelines",
        records: &["trial.csv"],
        may_change: &["patience", "budget", "test", "level", "min-gain", "table", "beside"],
    },
    Resumable {
        // With --nrep; what times one thing has no run to go on with.
        name: "bench",
        words: "bench --nrep",
        records: &["nrep-1.csv"],
        may_change: &["patience", "budget", "stop-by", "min", "step"],
    },
];

/// A command line, completed.
pub struct Completed {
    /// With the options that were given when the run was begun.
    pub arguments: Vec<OsString>,
    /// What is to be written down for the next time.
    pub given: GivenOptions,
    /// Whether there is a run to go on with.
    pub resumes: bool,
}

/// What a command line means, in words; nothing where it is wrong.
pub type Meaning = fn(Vec<OsString>) -> Option<String>;

/// Completes the command line of a run that is to go on; nothing for commands that have no runs.
///
/// `arguments` are all words, the program's own first; `matches` is what clap made of them.
///
/// # Errors
/// Options other than those that the run was begun with; what was written down cannot be read.
pub fn complete(
    cli: &Command,
    arguments: &[OsString],
    matches: &ArgMatches,
    meaning: Meaning,
) -> Result<Option<Completed>> {
    let Some((name, of_command)) = matches.subcommand() else { return Ok(None) };
    let Some(resumable) = RESUMABLE.iter().find(|resumable| resumable.name == name) else {
        return Ok(None);
    };
    let Some(command) = cli.find_subcommand(name) else { return Ok(None) };
    let directory: &PathBuf = match of_command.get_one(DIRECTORY) {
        Some(directory) => directory,
        None => return Ok(None),
    };
    let mut given = GivenOptions { command: name.into(), options: options(command, of_command) };
    let has_begun = resumable.records.iter().any(|record| holds_anything(&directory.join(record)));
    let mut completed = arguments.to_vec();
    let resumes = of_command.get_flag("resume") && has_begun;
    let path = directory.join(file(name));
    if resumes && !path.exists() {
        let others = RESUMABLE.iter().filter(|other| directory.join(file(other.name)).exists());
        let others: Vec<String> = others
            .map(|other| format!("`colibri {} {} --resume`", other.words, directory.display()))
            .collect();
        let how = match others.is_empty() {
            true => String::new(),
            false => format!("go on by {}, or ", others.join(" or ")),
        };
        usage!(
            "{}: what it holds was not begun by `colibri {name}`, which cannot continue it; {how}name another directory",
            directory.display()
        );
    }
    if of_command.get_flag("resume") && path.exists() {
        let before: GivenOptions = document::read(&path)?;
        let now: BTreeSet<String> = given.options.keys().cloned().collect();
        if has_begun {
            let fixed = Fixed { command, meaning, before: &before, resumable };
            fixed.check(directory, &given)?;
            // What means the same stays as it was written at first.
            given.options.retain(|option, _| resumable.may_change(option));
        }
        for (option, values) in before.options {
            if given.options.contains_key(&option) {
                continue;
            }
            if !now.contains(&option) {
                // Right behind the command's name, since words may follow a `--` at the end.
                let at = if option == BEHIND { completed.len() } else { 2 };
                completed.splice(at..at, words(&option, &values));
            }
            given.options.insert(option, values);
        }
    }
    Ok(Some(Completed { arguments: completed, given, resumes }))
}

/// Not options of what is measured.
const OTHERS: [&str; 4] = ["resume", "from-record", "sbatch", "help"];

/// The argument that names a run's directory, be it a flag's value.
const DIRECTORY: &str = "directory";

/// What the words behind `--` are written down under.
const BEHIND: &str = "--";

fn recorded(command: &Command) -> impl Iterator<Item = (&Arg, &str)> {
    let name = |arg: &'_ Arg| arg.is_last_set().then_some(BEHIND);
    let named = command
        .get_arguments()
        .filter_map(move |arg| Some((arg, arg.get_long().or_else(|| name(arg))?)));
    named.filter(|(arg, name)| *arg.get_id() != DIRECTORY && !OTHERS.contains(name))
}

/// What was given on the command line. A value that is no text can't be written down: it is to be given
/// again.
fn options(command: &Command, matches: &ArgMatches) -> BTreeMap<String, Vec<String>> {
    let is_given =
        |arg: &Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let mut options = BTreeMap::new();
    for (arg, name) in recorded(command).filter(|(arg, _)| is_given(arg)) {
        let values = match arg.get_action().takes_values() {
            true => matches.get_raw(arg.get_id().as_str()).into_iter().flatten().collect(),
            false => Vec::new(),
        };
        let values: Option<Vec<String>> =
            values.into_iter().map(|value| Some(value.to_str()?.to_owned())).collect();
        options.extend(values.map(|values| (name.to_owned(), values)));
    }
    options
}

/// As they would be typed, the words behind `--` at the end.
fn all_words(options: &BTreeMap<String, Vec<String>>) -> impl Iterator<Item = OsString> {
    let of = |is_behind: bool| {
        options.iter().filter(move |(option, _)| (*option == BEHIND) == is_behind)
    };
    of(false).chain(of(true)).flat_map(|(option, values)| words(option, values))
}

fn words(option: &str, values: &[String]) -> Vec<OsString> {
    match values {
        _ if option == BEHIND => std::iter::once(BEHIND)
            .chain(values.iter().map(String::as_str))
            .map(Into::into)
            .collect(),
        [] => vec![format!("--{option}").into()],
        values => values.iter().map(|value| format!("--{option}={value}").into()).collect(),
    }
}

/// The options that a run was begun with.
struct Fixed<'a> {
    command: &'a Command,
    meaning: Meaning,
    before: &'a GivenOptions,
    resumable: &'a Resumable,
}

impl Fixed<'_> {
    /// Whether those of now are the same.
    fn check(&self, directory: &Path, now: &GivenOptions) -> Result<()> {
        let differs = |(option, values): &(&String, &Vec<String>)| {
            !self.resumable.may_change(option) && !self.means_the_same(option, values)
        };
        let changed: Vec<String> = now
            .options
            .iter()
            .filter(differs)
            .map(|(option, values)| {
                let now = shown(values);
                let name = match option.as_str() {
                    BEHIND => "the application".to_owned(),
                    option => format!("--{option}"),
                };
                format!("{name} was {}, is now {now}", self.was(option))
            })
            .collect();
        if !changed.is_empty() {
            usage!(
                "{}: the run was begun with other options: {}; leave them out to continue it, or \
                 begin a run in another directory",
                directory.display(),
                changed.join("; ")
            );
        }
        Ok(())
    }

    /// Whether the command would do the same with these values as with those of before, however they
    /// are written.
    fn means_the_same(&self, option: &str, values: &[String]) -> bool {
        let mut now = self.before.options.clone();
        now.insert(option.into(), values.into());
        let before = self.parsed(&self.before.options);
        before.is_some() && before == self.parsed(&now)
    }

    /// The values of all options as the command understands them.
    fn parsed(&self, options: &BTreeMap<String, Vec<String>>) -> Option<String> {
        let of = all_words(options);
        let directory = self.command.get_arguments().find(|arg| *arg.get_id() == DIRECTORY);
        let directory = match directory.and_then(Arg::get_long) {
            Some(flag) => format!("--{flag}=DIR"),
            None => "DIR".into(),
        };
        let line = ["colibri", self.resumable.name, &directory].map(OsString::from);
        (self.meaning)(line.into_iter().chain(of).collect())
    }

    fn was(&self, option: &str) -> String {
        if let Some(values) = self.before.options.get(option) {
            return shown(values);
        }
        let arg = recorded(self.command).find(|(_, name)| *name == option);
        let defaults = arg.map(|(arg, _)| arg.get_default_values()).unwrap_or_default();
        match defaults {
            [default] if !default.is_empty() => {
                format!("{} by default", default.to_string_lossy())
            }
            _ => "not given".into(),
        }
    }
}

fn shown(values: &[String]) -> String {
    if values.is_empty() { "given".into() } else { values.join(" ") }
}

/// Whether a record holds more than what is said of all observations.
pub fn holds_anything(record: &Path) -> bool {
    let Ok(bytes) = reading::bytes(record) else { return record.exists() };
    let text = String::from_utf8_lossy(&bytes);
    const FIRST: &str = "#@schema=";
    let is_record = text.starts_with(FIRST) || FIRST.starts_with(&*text);
    // The names of the columns.
    !is_record || text.lines().filter(|line| !line.starts_with('#')).count() > 1
}
