//! Intel MPI's `I_MPI_ADJUST_<COLLECTIVE>`, in a shell script that sets them by the number of
//! ranks.
//!
//! Written is the part of the syntax that does what it says in 2021.19: `preset:low-high` joined
//! by `;`. The library takes the first range whose *upper* end is at least the message, whatever
//! its lower end says; so the ranges leave no gap and the last one ends at the largest size there
//! is. Ranges of communicator sizes (`@`) make the message ranges ineffective, which is why the
//! script has a string per number of ranks. Preset 0 is the library's own choice.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use records::{Algorithm, Collective, Method, Native, Point};

use super::algorithms::{self, LIBRARY};
use crate::{
    error::{Error, Result, fail, usage},
    exporter::{Export, Exporter, File, HowToLoad, lacks},
    spans::{ProcsSpan, spans},
    version::Versions,
};

/// The largest message that the syntax knows.
const LARGEST: u64 = i32::MAX as u64;

/// The preset by which the library chooses for itself.
const OWN_CHOICE: u32 = 0;

/// 2019.0 to 2019.12, then 2021.1 to 2021.19: there was no 2020.
const VERSIONS: Versions = Versions { target: "Intel MPI", known: &KNOWN };

const KNOWN: [(u32, u32); 32] = {
    let mut known = [(2019, 0); 32];
    let mut index = 1;
    while index < known.len() {
        known[index] = if index < 13 { (2019, index as u32) } else { (2021, index as u32 - 12) };
        index += 1;
    }
    known
};

pub struct AdjustScript {
    version: Option<(u32, u32)>,
}

/// What holds for these numbers of ranks.
struct RanksSetting {
    first: u32,
    last: u32,
    /// Names and values.
    variables: Vec<(String, String)>,
}

impl AdjustScript {
    /// For a version; all since 2019 read the same.
    ///
    /// # Errors
    /// It is older.
    pub fn new(version: Option<&str>) -> Result<Self> {
        let version = version.map(|version| VERSIONS.read(version)).transpose()?;
        Ok(AdjustScript { version })
    }
}

impl Exporter for AdjustScript {
    fn target(&self) -> String {
        match self.version {
            Some((major, minor)) => format!("Intel MPI {major}.{minor}"),
            None => "Intel MPI".into(),
        }
    }

    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method {
        Method::Native(Native { library: LIBRARY, algorithm, segment_bytes })
    }

    fn express(&self, point: Point, method: &Method) -> Result<(), String> {
        let collective = point.collective;
        match method {
            Method::Native(Native { library: LIBRARY, segment_bytes: 1.., .. }) => {
                Err(format!("Intel MPI takes no segment size ({method} for {collective})"))
            }
            _ if point.bytes > LARGEST => Err(format!("Intel MPI's ranges end at {LARGEST} bytes")),
            _ if preset(collective, method).is_some() => Ok(()),
            _ => Err(lacks("Intel MPI", collective, method, &algorithms::named(collective))),
        }
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        algorithms::named(collective)
    }

    fn files(&self, export: &Export<'_>) -> Result<Vec<File>> {
        let mut text =
            format!("#!/bin/sh\n# Algorithms for {}, written by colibri\n", self.target());
        for line in export.comments {
            text += &format!("# {line}\n");
        }
        text += "# Starts a command with them: sh THIS_FILE RANKS COMMAND...\n\
                 case $1 in\n\
                 ''|*[!0-9]*) echo \"usage: $0 RANKS COMMAND...\" >&2; exit 2;;\n\
                 esac\n\
                 ranks=$1\n\
                 shift\n";
        for RanksSetting { first, last, variables } in settings(export)? {
            text += &format!("if [ \"$ranks\" -ge {first} ] && [ \"$ranks\" -le {last} ]; then\n");
            for (name, value) in variables {
                text += &format!("    export {name}='{value}'\n");
            }
            text += "fi\n";
        }
        text += "exec \"$@\"\n";
        Ok(vec![File { name: String::new(), text }])
    }

    fn variables(&self, _: &str, export: &Export<'_>, ranks: u32) -> Result<Vec<(String, String)>> {
        let all = settings(export)?.into_iter();
        let here = all.filter(|setting| (setting.first..=setting.last).contains(&ranks));
        Ok(here.flat_map(|setting| setting.variables).collect())
    }

    fn holds_for_whole_job(&self) -> bool {
        true
    }

    fn how_to_load(&self, file: &str, _: &Export<'_>) -> HowToLoad {
        HowToLoad::new(self.target(), format!("sh {file} RANKS mpirun -n RANKS ..."))
            .with_remark("(the settings hold for every communicator of the job, whatever its size)")
    }
}

fn preset(collective: Collective, method: &Method) -> Option<u32> {
    match method {
        Method::Default => Some(OWN_CHOICE),
        Method::Native(Native { library: LIBRARY, algorithm, segment_bytes: 0 }) => {
            algorithms::preset(collective, *algorithm)
        }
        _ => None,
    }
}

/// The settings, ascending by the number of ranks; what is left to the library has none.
fn settings(export: &Export<'_>) -> Result<Vec<RanksSetting>> {
    let mut values: Vec<(Collective, ProcsSpan, String)> = Vec::new();
    for rules in export.rules {
        for span in spans(rules, false)? {
            if span.ranges.iter().any(|range| range.choice.method != Method::Default) {
                let value = value(rules.collective, &span)?;
                values.push((rules.collective, span, value));
            }
        }
    }
    let ends = values.iter().flat_map(|(_, span, _)| [span.first, span.last + 1]);
    let ends: Vec<u32> = ends.collect::<BTreeSet<_>>().into_iter().collect();
    let between = ends.windows(2).map(|pair| (pair[0], pair[1] - 1));
    let settings = between.map(|(first, last)| {
        let here = values.iter().filter(|(_, span, _)| span.first <= first && last <= span.last);
        let variable = |(collective, _, value): &(Collective, ProcsSpan, String)| {
            (algorithms::variable(*collective), value.clone())
        };
        RanksSetting { first, last, variables: here.map(variable).collect() }
    });
    Ok(settings.filter(|setting| !setting.variables.is_empty()).collect())
}

fn value(collective: Collective, span: &ProcsSpan) -> Result<String> {
    let mut parts = Vec::new();
    for range in span.ranges.iter() {
        let method = &range.choice.method;
        let Some(preset) = preset(collective, method) else {
            fail!("{method} has no number in Intel MPI for {collective}");
        };
        let last = range.last_bytes.min(LARGEST);
        parts.push(format!("{preset}:{}-{last}", range.first_bytes));
        if last == LARGEST {
            break;
        }
    }
    Ok(parts.join(";"))
}

/// Lets Intel MPI write its own tuning files (`I_MPI_TUNING_BIN`) with the settings in them, one
/// per range of ranks, beside `file`: it dumps what it has in force when a program of it ends.
///
/// # Errors
/// `command` can't be started or fails, or no file came of it: it is no program of Intel MPI.
pub fn compile(export: &Export<'_>, command: &str, file: &Path) -> Result<Vec<PathBuf>> {
    let mut words = command.split_whitespace();
    let Some(program) = words.next() else {
        usage!("--compile needs a command that runs a program of Intel MPI");
    };
    let arguments: Vec<&str> = words.collect();
    let mut compiled = Vec::new();
    for RanksSetting { first, last, variables } in settings(export)? {
        let path = file.with_extension(format!("{first}-{last}.dat"));
        let output = Command::new(program)
            .args(&arguments)
            .envs(variables)
            .env("I_MPI_TUNING_BIN_DUMP", &path)
            .output()
            .map_err(|error| Error::Failed(format!("cannot start {program}: {error}")))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            fail!("'{command}' failed ({}): {errors}", output.status);
        }
        let length = std::fs::metadata(&path).map_or(0, |written| written.len());
        if length == 0 {
            let path = path.display();
            fail!("'{command}' left no {path}: does it run a program with Intel MPI?");
        }
        compiled.push(path);
    }
    Ok(compiled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Rules, section};

    fn export(check: impl Fn(&Export<'_>)) {
        let bcast = |procs, method| section(procs, &[(1, "default"), (1000, method)], 4000);
        let two = bcast("2", "native:intel:binomial");
        let four = bcast("4", "native:intel:scatter-allgather-ring");
        let reduce = section("3", &[(0, "native:intel:rabenseifner")], LARGEST + 7);
        let rules = [
            Rules { collective: Collective::Bcast, sections: vec![two, four] },
            Rules { collective: Collective::Reduce, sections: vec![reduce] },
        ];
        check(&Export { rules: &rules, comments: &[] });
    }

    #[test]
    fn ranges_have_no_gap_and_ranks_their_own_string() {
        export(|export| {
            let told: Vec<_> = settings(export)
                .unwrap()
                .into_iter()
                .map(|setting| (setting.first, setting.last, setting.variables))
                .collect();
            let bcast = |preset| {
                let value = format!("0:0-999;{preset}:1000-4000;0:4001-2147483647");
                ("I_MPI_ADJUST_BCAST".to_owned(), value)
            };
            let reduce = ("I_MPI_ADJUST_REDUCE".to_owned(), "5:0-2147483647".to_owned());
            let wanted =
                [(2, 2, vec![bcast(1)]), (3, 3, vec![bcast(1), reduce]), (4, 4, vec![bcast(3)])];
            assert_eq!(told, wanted);
        });
    }

    #[test]
    fn the_script_starts_a_command_with_what_is_for_its_ranks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("intel.sh");
        export(|export| {
            let exporter = AdjustScript::new(None).unwrap();
            std::fs::write(&path, &exporter.files(export).unwrap()[0].text).unwrap();
        });
        let run = |ranks: &str| {
            let mut command = Command::new("sh");
            let output = command.arg(&path).args([ranks, "env"]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let set = text.lines().filter(|line| line.starts_with("I_MPI_ADJUST"));
            (output.status.code(), set.map(Into::into).collect::<Vec<String>>())
        };
        let four = "I_MPI_ADJUST_BCAST=0:0-999;3:1000-4000;0:4001-2147483647";
        assert_eq!(run("4"), (Some(0), vec![four.to_owned()]));
        assert_eq!(run("5"), (Some(0), vec![]));
        assert_eq!(run("mpirun").0, Some(2));
    }

    #[test]
    fn what_has_no_documented_number_is_refused() {
        let intel = AdjustScript::new(Some("2021.19")).unwrap();
        let refused = |method: &str, bytes| {
            let point = Point::flat(Collective::Bcast, 4, bytes);
            intel.express(point, &method.parse().unwrap()).is_err()
        };
        assert!(refused("native:intel:pipeline", 8));
        assert!(refused("native:intel:binomial,segment=1KiB", 8));
        assert!(refused("native:mpich:binomial", 8));
        assert!(refused("native:intel:binomial", LARGEST + 1));
        assert!(!refused("native:intel:binomial", 8));
        assert!(AdjustScript::new(Some("2018.3")).is_err());
    }
}
