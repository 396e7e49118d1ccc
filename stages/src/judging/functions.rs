//! Decision functions of other files, judged against a run's measurements.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
};

use anyhow::Result;
use choosing::samples::Samples;
use models::Model;
use records::{
    FileError,
    choices::Choices,
    document::{self, Document as _},
    reading,
};
use verification::functions::DecisionFunction;

use super::decisions::{ALGORITHMS, FITTED, FLAT};
use crate::{chosen, foreign_json};
use site::usage;

/// A decision function of another's, with the name that it is given here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignDecisions {
    name: String,
    /// A rules file, a choices.json or decisions.json, or the directory of a run.
    path: PathBuf,
}

impl ForeignDecisions {
    /// Whether there is anything to read; what it holds is asked when all was measured.
    ///
    /// # Errors
    /// There is not.
    pub fn find(&self) -> Result<()> {
        if !self.path.exists() {
            usage!("{}: there is no such file", self.path.display());
        }
        Ok(())
    }

    /// The decision functions that the file holds, asked at the points that were measured.
    ///
    /// # Errors
    /// It cannot be read, or decides at none of these points.
    pub fn read(&self, samples: &Samples) -> Result<Vec<DecisionFunction>> {
        let in_run = |name: &str| self.path.join(name);
        let path = match self.path.is_dir() {
            true if in_run(RULES).exists() => in_run(RULES),
            true => in_run(CHOICES),
            false => self.path.clone(),
        };
        let text = reading::text_file(&path)?;
        if let Some(kind) = document::other_kind(&text).or_else(|| foreign_json::kind(&text)) {
            let wanted = format!("Open MPI's rules or {}", Choices::SCHEMA);
            return Err(FileError::new(&path, format!("{kind}; expected {wanted}")).into());
        }
        if !text.trim_start().starts_with('{') {
            let rules = libraries::read(&text, &path)?;
            return Ok(vec![DecisionFunction::of_rules(&self.name, rules, samples)]);
        }
        let choices = chosen::parse(&text, &path)?;
        let mut functions = Vec::new();
        for (model, chosen) in chosen::functions(&choices) {
            let name = match model {
                Some(model) if choices.models().len() > 1 => format!("{}:{model}", self.name),
                _ => self.name.clone(),
            };
            let function = DecisionFunction::of_chosen(&name, &chosen, samples);
            functions.extend(Some(function).filter(|function| !function.decided.is_empty()));
        }
        if functions.is_empty() {
            usage!("{}: decides at none of the points measured", path.display());
        }
        Ok(functions)
    }
}

/// What a run's directory may hold to be judged: what a library loads first.
const RULES: &str = "openmpi.rules";
const CHOICES: &str = "choices.json";

/// Reads `NAME=FILE`.
///
/// # Errors
/// Says what would be right.
pub fn other(text: OsString) -> Result<ForeignDecisions, String> {
    let bytes = text.as_bytes();
    let Some(equals) = bytes.iter().position(|byte| *byte == b'=') else {
        return Err("expected a name and a file, as in loaded=openmpi.rules".into());
    };
    let path = PathBuf::from(OsStr::from_bytes(&bytes[equals + 1..]));
    let name = String::from_utf8_lossy(&bytes[..equals]);
    let taken = ["default", "measured"].into_iter().chain(Model::ALL.map(Model::name));
    match name.trim() {
        "" => Err("expected a name before the '=', as in loaded=openmpi.rules".into()),
        name if name.contains(',') => Err(format!("the name '{name}' contains a comma")),
        name if taken.into_iter().any(|taken| plain(name) == taken) => Err(format!(
            "'{name}' is already the name of a judged decision function; choose another"
        )),
        name => Ok(ForeignDecisions { name: name.into(), path }),
    }
}

fn plain(name: &str) -> &str {
    let suffixes = [FITTED, ALGORITHMS, FLAT];
    suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_to_judge_has_a_name_of_its_own() {
        assert_eq!(
            other("mine=a=b.rules".into()),
            Ok(ForeignDecisions { name: "mine".into(), path: "a=b.rules".into() })
        );
        for (text, wanted) in [
            ("openmpi.rules", "loaded=openmpi.rules"),
            ("=x", "a name before"),
            ("default=x", "is already the name"),
            ("loggp-fitted=x", "is already the name"),
            ("loggp-flat=x", "is already the name"),
            ("a,b=x", "comma"),
        ] {
            let problem = other(text.into()).unwrap_err();
            assert!(problem.contains(wanted), "{text}: {problem}");
        }
    }

    /// Each is called by what it is, with what is expected.
    #[test]
    fn files_of_others_in_place_of_rules_are_called_by_their_kinds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file.json");
        let told = |text: &str| {
            fs::write(&path, text).unwrap();
            let judged = ForeignDecisions { name: "mine".into(), path: path.clone() };
            judged.read(&Samples::default()).unwrap_err().to_string()
        };
        let expected = "; expected Open MPI's rules or colibri/choices/";
        for (text, wanted) in [
            ("{\"collective=bcast\": {}}", "is MPICH's tuning file"),
            ("{\"meta\": {\"slurm\": {}}, \"jobs\": []}", "is what a command of Slurm prints"),
            ("[{\"rank\": 0}]", "is a list in JSON"),
            ("{\"nodes\": 4}", "is JSON of an unknown kind, with the fields 'nodes'"),
        ] {
            let told = told(text);
            assert!(told.contains(wanted) && told.contains(expected), "{told}");
        }
        let ours = told("{\"schema\": \"colibri/plan/1\"}");
        assert!(ours.contains("is colibri/plan/1; expected colibri/choices/"), "{ours}");
    }

    #[test]
    fn a_record_in_place_of_rules_is_called_by_its_kind_and_not_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("measurements.csv");
        let record = "#@schema=colibri/measurements/1\nvisit,collective,procs,bytes\n";
        fs::write(&path, record).unwrap();
        let judged = ForeignDecisions { name: "mine".into(), path: path.clone() };
        let told = judged.read(&Samples::default()).unwrap_err().to_string();
        let wanted = ": is a measurements record; expected Open MPI's rules or colibri/choices/";
        assert!(told.starts_with(&format!("{}{wanted}", path.display())), "{told}");
        assert!(!told.contains("visit"), "{told}");
    }
}
