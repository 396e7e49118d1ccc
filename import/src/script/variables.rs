//! What a script's variables are when its commands run, where that can be told without running it.

use std::collections::{BTreeMap, BTreeSet};

/// More in the place of one another is a circle.
const DEEPEST: usize = 8;

/// The texts that each variable is given anywhere in a script; one that is given several, or what only a run
/// tells, is not known.
#[derive(Debug, Default)]
pub struct Variables {
    given: BTreeMap<String, BTreeSet<String>>,
    unknown: BTreeSet<String>,
}

/// Commands that give variables values.
const DECLARING: [&str; 6] = ["export", "declare", "local", "readonly", "typeset", "set"];
/// Commands that give variables what they read or compute.
const READING: [&str; 6] = ["read", "let", "mapfile", "readarray", "getopts", "unset"];

impl Variables {
    /// Gives a variable a text, as the batch system does.
    pub fn set(&mut self, name: &str, text: impl Into<String>) {
        self.given.entry(name.to_owned()).or_default().insert(text.into());
    }

    /// Takes in what a command does to variables.
    pub fn take(&mut self, words: &[String]) {
        let rest: Vec<&str> = words.iter().map(String::as_str).collect();
        match rest[..] {
            ["for" | "select", name, "in", ref values @ ..] => {
                values.iter().for_each(|value| self.set(name, *value));
                // Over what a list's own variable holds, or files of a pattern.
                if values.is_empty() || values.iter().any(|value| value.contains(['*', '?', '{'])) {
                    self.unknown.extend([name.to_owned()]);
                }
            }
            ["for" | "select", name, ..] => self.unknown.extend([name.to_owned()]),
            [first, ref names @ ..] if READING.contains(&first) => {
                self.unknown.extend(names.iter().map(|text| plain(text)));
            }
            [first, ref given @ ..] if DECLARING.contains(&first) => {
                given.iter().for_each(|text| self.assign(text, false));
            }
            _ => {
                let is_assignment = |text: &&&str| assignment(text).is_some();
                let assigned = rest.iter().take_while(is_assignment).count();
                // Before a command they hold for it alone.
                let for_one = assigned < rest.len();
                rest.iter().take(assigned).for_each(|text| self.assign(text, for_one));
                // `((n *= 2))`, whose brackets are gone.
                if rest.iter().any(|word| is_computing(word)) {
                    self.unknown.extend(rest.iter().map(|text| plain(text)));
                }
            }
        }
    }

    fn assign(&mut self, text: &str, unsure: bool) {
        match assignment(text) {
            Some((name, Some(value))) if !unsure => self.set(name, value),
            Some((name, _)) => self.unknown.extend([name.to_owned()]),
            None => {}
        }
    }

    /// Whether a script gives it a value, known or not.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name) || self.unknown.contains(name)
    }

    fn value(&self, name: &str) -> Option<&str> {
        let given = self.given.get(name).filter(|_| !self.unknown.contains(name))?;
        match given.len() {
            1 => given.first().map(String::as_str),
            _ => None,
        }
    }

    /// Why a variable's value is not known.
    fn why_unknown(&self, name: &str) -> String {
        match self.given.get(name) {
            Some(given) if given.len() > 1 && !self.unknown.contains(name) => {
                let given: Vec<&str> = given.iter().map(String::as_str).take(8).collect();
                format!("${name} is {}", given.join(" or "))
            }
            _ if self.is_given(name) => format!("${name} is known only when the script runs"),
            _ => format!("${name} is not set in the script"),
        }
    }

    /// Why what a word stands for is not known.
    pub fn why_unknown_in(&self, word: &str) -> String {
        match first_in(word) {
            Some(name) => self.why_unknown(name),
            None => "what another command tells is known only when the script runs".to_owned(),
        }
    }

    /// A text with what is known in the place of variables, `$N` and `${N}`; the others stay.
    pub fn filled(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for _ in 0..DEEPEST {
            let next = self.filled_once(&filled);
            if next == filled {
                break;
            }
            filled = next;
        }
        filled
    }

    fn filled_once(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('$') {
            filled += before;
            let (name, after) = name_in(behind);
            // What has quotes of its own would change how words are split.
            let value = self.value(name).filter(|value| !value.contains(['"', '\'', '\\', '`']));
            match value {
                Some(value) if !before.ends_with('\\') => {
                    filled += value;
                    rest = after;
                }
                _ => {
                    filled.push('$');
                    rest = behind;
                }
            }
        }
        filled + rest
    }
}

/// The variable whose name stands behind a `$`, and what follows; nothing of forms that do more than name one.
fn name_in(behind: &str) -> (&str, &str) {
    let (inner, is_braced) = match behind.strip_prefix('{') {
        Some(inner) => (inner, true),
        None => (behind, false),
    };
    let is_of_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let end = inner.find(|sign| !is_of_name(sign)).unwrap_or(inner.len());
    let (name, after) = inner.split_at(end);
    match (is_braced, after.strip_prefix('}')) {
        (false, _) => (name, after),
        (true, Some(after)) => (name, after),
        (true, None) => ("", behind),
    }
}

/// The variable that a word is, where it is nothing else: `$MPIRUN`, `${NP}`.
pub fn whole(word: &str) -> Option<&str> {
    let (name, after) = name_in(word.strip_prefix('$')?);
    (!name.is_empty() && after.is_empty()).then_some(name)
}

/// The first variable that a text still names.
fn first_in(text: &str) -> Option<&str> {
    let (_, behind) = text.split_once('$')?;
    let inner = behind.strip_prefix('{').unwrap_or(behind);
    let end = inner.find(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_'));
    Some(&inner[..end.unwrap_or(inner.len())]).filter(|name| !name.is_empty())
}

/// `NAME=TEXT`; without the text where it only adds to one.
pub fn assignment(word: &str) -> Option<(&str, Option<&str>)> {
    let (name, value) = word.split_once('=')?;
    let (name, value) = match name.strip_suffix('+') {
        Some(name) => (name, None),
        None => (name, Some(value)),
    };
    let is_name = !name.is_empty()
        && !name.starts_with(|sign: char| sign.is_ascii_digit())
        && name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_');
    is_name.then_some((name, value))
}

/// Whether a word changes a variable in an arithmetic command: `n++`, `n*=2`, `*=`.
fn is_computing(word: &str) -> bool {
    let changes = ["++", "--", "+=", "-=", "*=", "/=", "%=", "<<=", ">>="];
    let name = plain(word);
    let rest = word.strip_prefix(name.as_str()).unwrap_or(word);
    changes.iter().any(|change| rest.starts_with(change)) && !word.starts_with("--")
}

/// The name at the beginning of a word.
fn plain(word: &str) -> String {
    word.chars().take_while(|sign| sign.is_ascii_alphanumeric() || *sign == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(commands: &[&str]) -> Variables {
        let mut variables = Variables::default();
        for command in commands {
            variables.take(&shlex::split(command).unwrap());
        }
        variables
    }

    #[test]
    fn values_that_are_sure_are_filled_in() {
        let variables = of(&["NP=8", "export RUN='mpirun -np $NP'", "N=4 a", "for n in 2 4"]);
        for (text, wanted) in [
            ("$RUN ./a", "mpirun -np 8 ./a"),
            ("-n ${NP} $NPX $X", "-n 8 $NPX $X"),
            ("-n ${NP:-4} $n $N", "-n ${NP:-4} $n $N"),
            ("\\$NP $NP", "\\$NP 8"),
            ("$ $$ $1 ${", "$ $$ $1 ${"),
        ] {
            assert_eq!(variables.filled(text), wanted);
        }
        assert_eq!(variables.why_unknown("n"), "$n is 2 or 4");
        assert_eq!(variables.why_unknown("N"), "$N is known only when the script runs");
        assert_eq!(variables.why_unknown("X"), "$X is not set in the script");
    }

    #[test]
    fn values_that_change_are_not_known() {
        for commands in [
            &["n=2", "n=4"][..],
            &["n=2", "n+=2"],
            &["n=2", "n*=2"],
            &["n=2", "n *= 2"],
            &["n=2", "n++"],
            &["n=2", "let n=n+1"],
            &["n=2", "read n"],
            &["n=2", "for n in $LIST *"],
        ] {
            assert_eq!(of(commands).filled("$n"), "$n", "{commands:?}");
        }
        // A circle ends.
        let circle = of(&["a=$b", "b=$a"]);
        assert!(circle.filled("$a").starts_with('$'));
    }

    #[test]
    fn words_that_are_variables_are_told() {
        assert_eq!((whole("$N"), whole("${N}"), whole("$N/x")), (Some("N"), Some("N"), None));
        assert_eq!((whole("N"), whole("$"), whole("${N:-2}")), (None, None, None));
        assert_eq!(
            (first_in("a$N/x"), first_in("${N:-2}"), first_in("a")),
            (Some("N"), Some("N"), None)
        );
    }
}
