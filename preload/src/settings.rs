//! What the user asked for, by environment variables.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt::Write,
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::ffi::OsStrExt,
    path::{self, Path, PathBuf},
};

use records::{
    Collective, Method, nearest, profile,
    profile::{Profile, REPLACED},
    quantity, quoted,
};
use runner::{Runnable, mockups::Limits};

use crate::{choice::runnable, pgmpi_config};

pub const PROFILES: &str = "COLIBRI_PROFILES";
pub const FORCE: &str = "COLIBRI_FORCE";
pub const TRACE: &str = "COLIBRI_TRACE";
pub const FOOTER: &str = "COLIBRI_FOOTER";
pub use runner::mockups::{COUNTS_MEMORY, MEMORY};
pub const PGMPI_CONFIG: &str = "COLIBRI_PGMPI_CONFIG";
pub const GPU: &str = "COLIBRI_GPU";
pub const ADAPT: &str = "COLIBRI_ADAPT";
pub const ADAPT_BUDGET: &str = "COLIBRI_ADAPT_BUDGET";
pub const ADAPT_REPORT: &str = "COLIBRI_ADAPT_REPORT";
pub const ADAPT_TURNS: &str = "COLIBRI_ADAPT_TURNS";
pub use runner::SHARED_MEMORY;

const OURS: [&str; 13] = [
    PROFILES,
    FORCE,
    TRACE,
    FOOTER,
    MEMORY,
    COUNTS_MEMORY,
    SHARED_MEMORY,
    PGMPI_CONFIG,
    GPU,
    ADAPT,
    ADAPT_BUDGET,
    ADAPT_REPORT,
    ADAPT_TURNS,
];
/// Variables of Colibri's other parts, which are none of ours and no slips of the pen.
const OTHERS: [&str; 9] = [
    "COLIBRI_IDLE_MICROSECONDS",
    "COLIBRI_IDLE_POLLS",
    "COLIBRI_PROC_STAT",
    "COLIBRI_PROGRAMS",
    "COLIBRI_REWRITE_EXPECTED",
    "COLIBRI_TESTBED",
    "COLIBRI_TEST_REQUIRE",
    "COLIBRI_TRACER_FILE",
    "COLIBRI_TRIAL",
];

/// What is to be done in this process, if all others are given the same.
#[derive(Debug, Default)]
pub struct PreloadSettings {
    /// Methods for every call of a collective; none is the library's.
    pub forced: Vec<(Collective, Option<Runnable>)>,
    pub profiles: Vec<Profile>,
    /// The limit to the memory for data of one call.
    pub memory_bytes: Option<u64>,
    /// The limit to the memory for counts and displacements of a mock-up.
    pub counts_bytes: Option<u64>,
    /// The limit to the memory that the ranks of a node share, of all communicators.
    pub shared_bytes: Option<u64>,
    pub trace: Option<PathBuf>,
    pub footer: bool,
    /// Methods are tried while the application runs.
    pub exploring: Option<ExploringSettings>,
    /// Whether all buffers are in the host's memory, whatever is loaded.
    pub is_on_host: bool,
    /// What must be printed for the user, once.
    pub warnings: Vec<String>,
    /// Differs between processes that were given different things.
    pub digest: u64,
}

/// How methods are tried while the application runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ExploringSettings {
    /// Where what was learned is kept. Only the first process looks at it.
    pub directory: PathBuf,
    /// The share of the time in collectives that trying may cost.
    pub budget: f64,
    /// Whether the user gets lines about it at the end.
    pub is_reported: bool,
    /// Whether each call gets the next method, whatever it costs: to see that all are right.
    pub by_turns: bool,
}

impl ExploringSettings {
    /// Of the time in collectives, if nobody says otherwise.
    const BUDGET: f64 = 0.01;

    /// `1%`, or `0.01`. More than half is no bound on harm.
    fn parse_budget(text: &str) -> Result<f64, String> {
        let share = quantity::parse_share(text, quantity::ABOVE_0_TO_HALF);
        share.map_err(|problem| format!("{ADAPT_BUDGET}: {problem} (of the time in collectives)"))
    }
}

impl PreloadSettings {
    /// The limits to the memory of mock-ups: the usual ones where nobody says otherwise.
    pub fn limits(&self) -> Limits {
        let usual = Limits::default();
        let bytes = |set: Option<u64>, usual: usize| {
            set.map_or(usual, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
        };
        Limits {
            message_bytes: bytes(self.memory_bytes, usual.message_bytes),
            integer_bytes: bytes(self.counts_bytes, usual.integer_bytes),
        }
    }
}

/// Why the settings can't be followed.
#[derive(Debug)]
pub enum SettingFault {
    /// The application runs as if this library weren't there.
    Untuned(String),
    /// The application doesn't run: a measurement of something else than was asked for is worse
    /// than none.
    Fatal(String),
}

/// Reads the environment and the profiles that it names.
///
/// Beside the settings it gives, in any case, the digest of all that they came from.
pub fn read() -> (Result<PreloadSettings, SettingFault>, u64) {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    let variables: Vec<_> = OURS.map(|name| (name, variable(name))).into_iter().collect();
    for (name, value) in &variables {
        // Where files lie may differ between nodes; what they say may not.
        match [PROFILES, PGMPI_CONFIG, ADAPT].contains(name) {
            true => value.is_some().hash(&mut hasher),
            false => value.hash(&mut hasher),
        }
    }
    let mut outcome = follow(|wanted| {
        variables.iter().find(|(name, _)| *name == wanted).and_then(|(_, value)| value.clone())
    });
    match &mut outcome {
        Ok(settings) => {
            let PreloadSettings { profiles, memory_bytes, counts_bytes, .. } = &*settings;
            let _ = write!(Hashing(&mut hasher), "{profiles:?} {memory_bytes:?} {counts_bytes:?}");
            settings.warnings.extend(unknown_settings(env::vars_os().map(|(name, _)| name)));
        }
        Err(SettingFault::Untuned(why) | SettingFault::Fatal(why)) => why.hash(&mut hasher),
    }
    let digest = hasher.finish();
    if let Ok(settings) = &mut outcome {
        settings.digest = digest;
    }
    (outcome, digest)
}

struct Hashing<'a>(&'a mut DefaultHasher);

impl Write for Hashing<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

pub(crate) fn follow(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PreloadSettings, SettingFault> {
    let text = |name: &str| match variable(name) {
        Some(value) => match value.into_string() {
            Ok(text) => Ok(Some(text)),
            Err(value) => Err(SettingFault::Fatal(format!("{name}={value:?} is not UTF-8 text"))),
        },
        None => Ok(None),
    };
    let mut settings = PreloadSettings::default();
    if let Some(force) = text(FORCE)? {
        settings.forced = forced(&force).map_err(SettingFault::Fatal)?;
    }
    if let Some(config) = variable(PGMPI_CONFIG) {
        [settings.memory_bytes, settings.counts_bytes] =
            pgmpi_config::limits(Path::new(&config)).map_err(SettingFault::Fatal)?;
    }
    for (name, limit) in [
        (MEMORY, &mut settings.memory_bytes),
        (COUNTS_MEMORY, &mut settings.counts_bytes),
        (SHARED_MEMORY, &mut settings.shared_bytes),
    ] {
        if let Some(memory) = text(name)? {
            let bytes = quantity::parse_bytes(&memory)
                .map_err(|problem| SettingFault::Fatal(format!("{name}: {problem}")))?;
            *limit = Some(bytes);
        }
    }
    let switch = |name: &str| match text(name)?.as_deref() {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => {
            Err(SettingFault::Fatal(format!("{name}: {}; expected 0 or 1", quoted(other))))
        }
    };
    settings.footer = switch(FOOTER)?;
    let is_reported = switch(ADAPT_REPORT)?;
    let by_turns = switch(ADAPT_TURNS)?;
    let budget = match text(ADAPT_BUDGET)? {
        Some(budget) => ExploringSettings::parse_budget(&budget).map_err(SettingFault::Fatal)?,
        None => ExploringSettings::BUDGET,
    };
    settings.exploring = variable(ADAPT).map(PathBuf::from).map(|directory| ExploringSettings {
        // The application may change its directory before what it taught is written.
        directory: path::absolute(&directory).unwrap_or(directory),
        budget,
        is_reported,
        by_turns,
    });
    settings.is_on_host = match text(GPU)?.as_deref() {
        None => false,
        Some("host") => true,
        Some(other) => {
            return Err(SettingFault::Fatal(format!(
                "{GPU}: {}; expected host (all buffers are in the host's memory), or nothing",
                quoted(other)
            )));
        }
    };
    // Programs change their directory before they end.
    let absolute = |path: PathBuf| path::absolute(&path).unwrap_or(path);
    settings.trace = variable(TRACE).map(PathBuf::from).map(absolute);
    if let Some(directory) = variable(PROFILES) {
        (settings.profiles, settings.warnings) =
            profiles(&directory).map_err(SettingFault::Untuned)?;
    }
    Ok(settings)
}

/// `bcast=own:ring;reduce=reduce_as_allreduce`
fn forced(text: &str) -> Result<Vec<(Collective, Option<Runnable>)>, String> {
    let mut all: Vec<(Collective, Option<Runnable>)> = Vec::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let wrong = |problem: String| format!("{FORCE}: {}: {problem}", quoted(part));
        let Some((collective, method)) = part.split_once('=') else {
            return Err(wrong("expected COLLECTIVE=METHOD, such as bcast=own:binomial".into()));
        };
        let collective: Collective = collective.trim().parse().map_err(wrong)?;
        let method = method.trim();
        let is_bare_mockup = !method.contains(':') && method.contains("_as_");
        let method: Method = match is_bare_mockup {
            true => Method::Mockup(method.into()),
            false => {
                method.parse().map_err(|error: records::MethodError| wrong(error.to_string()))?
            }
        };
        if all.iter().any(|(other, _)| *other == collective) {
            return Err(wrong(format!("a second method for {collective}")));
        }
        let choice = match method {
            Method::Default => None,
            method => Some(runnable(collective, &method).map_err(wrong)?),
        };
        all.push((collective, choice));
    }
    Ok(all)
}

/// So many profiles that can't be used are named, each in a line.
const PROFILES_TOLD: usize = 5;

/// The profiles, and what is to be printed of those that can't be used. Which these are may differ between
/// the ranks: the digest is of those that can, so that they are the same on all ranks or on none.
fn profiles(directory: &OsStr) -> Result<(Vec<Profile>, Vec<String>), String> {
    let directory = Path::new(directory);
    let check = |profile: &Profile| {
        let methods = profile.ranges.iter().map(|range| &range.choice.method);
        for method in methods {
            runnable(profile.collective, method)?;
        }
        // One without a range is wrong as well where the collective is none of ours.
        match REPLACED.contains(&profile.collective) {
            true => Ok(()),
            false => Err(format!("{} is not replaced", profile.collective)),
        }
    };
    let found = profile::read_directory(directory, check).map_err(|error| error.to_string())?;
    let mut why: Vec<String> = found.unusable.iter().map(ToString::to_string).collect();
    if found.profiles.is_empty() {
        return Err(why.swap_remove(0));
    }
    let more = why.len().saturating_sub(PROFILES_TOLD);
    why.truncate(PROFILES_TOLD);
    let mut warnings: Vec<String> =
        why.into_iter().map(|why| format!("{why}; this profile is ignored")).collect();
    if more > 0 {
        warnings.push(format!("{more} more profiles are ignored"));
    }
    Ok((found.profiles, warnings))
}

/// Names that begin as ours do and are none.
pub(crate) fn unknown_settings(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let mut strange: Vec<String> = names
        .filter(|name| name.as_bytes().starts_with(b"COLIBRI_"))
        .filter_map(|name| name.into_string().ok())
        .filter(|name| !OURS.contains(&name.as_str()) && !OTHERS.contains(&name.as_str()))
        .collect();
    strange.sort();
    strange
        .into_iter()
        .map(|name| {
            let hint = nearest(&name, OURS)
                .map(|near| format!("; did you mean {near}?"))
                .unwrap_or_default();
            format!("no setting is called {name}{hint} (known: {})", OURS.join(", "))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &str) -> Result<PreloadSettings, String> {
        let value = OsString::from(value);
        follow(|wanted| (wanted == name).then(|| value.clone())).map_err(|fault| match fault {
            SettingFault::Untuned(why) => format!("untuned: {why}"),
            SettingFault::Fatal(why) => format!("fatal: {why}"),
        })
    }

    #[test]
    fn nothing_said_is_nothing_forced() {
        let settings = follow(|_| None).unwrap();
        assert!(settings.forced.is_empty() && settings.profiles.is_empty() && !settings.footer);
        assert_eq!(settings.memory_bytes, None);
    }

    #[test]
    fn what_is_long_is_not_told_whole() {
        for force in ["x", "bcast=", "bcast=bcast_as_", "bcast=own:"] {
            let long = format!("{force}{}", "x".repeat(100_000));
            let problem = with(FORCE, &long).unwrap_err();
            assert!(problem.len() < 2500, "{force}: {}", problem.len());
        }
        for name in [FOOTER, GPU, MEMORY] {
            assert!(with(name, &"x".repeat(100_000)).unwrap_err().len() < 300, "{name}");
        }
    }

    #[test]
    fn methods_are_forced_by_name() {
        let force = " bcast=own:pipeline,segment=8KiB; reduce = reduce_as_allreduce;scan=default;\
                     gather=own:linear-ready";
        let settings = with(FORCE, force);
        let names: Vec<String> = settings
            .unwrap()
            .forced
            .iter()
            .map(|(collective, choice)| {
                format!("{collective} {:?}", choice.as_ref().map(|c| c.method().to_string()))
            })
            .collect();
        assert_eq!(
            names,
            [
                r#"bcast Some("own:pipeline,segment=8KiB")"#,
                r#"reduce Some("mockup:reduce_as_allreduce")"#,
                "scan None",
                r#"gather Some("own:linear-ready")"#,
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        for (name, value, wanted) in [
            (FORCE, "bcast", "fatal: COLIBRI_FORCE: 'bcast': expected COLLECTIVE=METHOD"),
            (FORCE, "bcats=own:linear", "did you mean 'bcast'?"),
            (FORCE, "scatter=own:linear-ascending", "known: binomial, bine, k-nomial, linear,"),
            (FORCE, "bcast=own:binomal", "did you mean 'binomial'?"),
            (FORCE, "bcast=own:bruck", "bcast has no algorithm bruck (known: binary"),
            (FORCE, "bcast=own:linear;bcast=own:ring", "a second method for bcast"),
            (FORCE, "bcast=native:openmpi:linear", "rules file"),
            (FORCE, "alltoallv=own:linear", "alltoallv"),
            (MEMORY, "much", "fatal: COLIBRI_MEMORY"),
            (COUNTS_MEMORY, "much", "fatal: COLIBRI_COUNTS_MEMORY"),
            (PGMPI_CONFIG, "/nowhere", "fatal: /nowhere: cannot read"),
            (FOOTER, "yes", "expected 0 or 1"),
            (ADAPT_REPORT, "yes", "COLIBRI_ADAPT_REPORT: 'yes'; expected 0 or 1"),
            (ADAPT_TURNS, "2", "expected 0 or 1"),
            (ADAPT_BUDGET, "much", "fatal: COLIBRI_ADAPT_BUDGET: 'much': expected a share"),
            (ADAPT_BUDGET, "0", "above 0% and up to 50%, as 5% or 0.05"),
            (ADAPT_BUDGET, "60%", "above 0% and up to 50%, as 5% or 0.05"),
            (ADAPT_BUDGET, "NaN", "above 0% and up to 50%, as 5% or 0.05"),
            (GPU, "device", "fatal: COLIBRI_GPU: 'device'; expected host"),
            (PROFILES, "/nowhere/at/all", "untuned: /nowhere/at/all: cannot read"),
        ] {
            let error = with(name, value).unwrap_err();
            assert!(error.contains(wanted), "{name}={value}: {error}");
        }
    }

    #[test]
    fn exploring_costs_a_hundredth_unless_the_user_says_otherwise() {
        let of = |budget: Option<&str>| {
            let settings = follow(|wanted| match wanted {
                ADAPT => Some("/some/directory".into()),
                ADAPT_BUDGET => budget.map(OsString::from),
                _ => None,
            });
            settings.unwrap().exploring.unwrap()
        };
        assert_eq!(of(None).budget, 0.01);
        assert_eq!(of(Some("2.5 %")).budget, 0.025);
        assert_eq!(of(Some("0.1")).budget, 0.1);
        assert_eq!(of(None).directory, Path::new("/some/directory"));
        assert_eq!(follow(|_| None).unwrap().exploring, None);
    }

    #[test]
    fn a_relative_directory_is_where_the_application_began() {
        let settings = follow(|wanted| (wanted == ADAPT).then(|| "learned here".into())).unwrap();
        let directory = settings.exploring.unwrap().directory;
        assert_eq!(directory, env::current_dir().unwrap().join("learned here"));
    }

    #[test]
    fn pgmpitunelibs_configuration_sets_both_limits_and_variables_go_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pgmpi.conf");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        let file = path.to_str().unwrap().to_owned();
        write("# limits\nsize_msg_buffer_bytes 100000\n\nsize_int_buffer_bytes 10000 # counts\n");
        let settings = with(PGMPI_CONFIG, &file).unwrap();
        assert_eq!((settings.memory_bytes, settings.counts_bytes), (Some(100_000), Some(10_000)));
        let both = follow(|wanted| match wanted {
            PGMPI_CONFIG => Some(OsString::from(&file)),
            MEMORY => Some("64KiB".into()),
            _ => None,
        });
        let settings = both.unwrap();
        assert_eq!((settings.memory_bytes, settings.counts_bytes), (Some(65_536), Some(10_000)));
        for (text, expected) in [
            ("size_msg_buffer_bytes\n", "pgmpi.conf, line 1: expected a key and a value"),
            ("\nsize_msg_bufer_bytes 8\n", "line 2: unknown key"),
            (
                "size_int_buffer_bytes 8KiB",
                "line 1, field size_int_buffer_bytes: is '8KiB'; expected",
            ),
        ] {
            write(text);
            let error = with(PGMPI_CONFIG, &file).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_slip_of_the_pen_is_told_and_names_of_others_are_not() {
        let names = [
            "COLIBRI_PROFILE",
            "COLIBRI_TRACER_FILE",
            "COLIBRI_TEST_REQUIRE",
            "COLIBRI_FORCE",
            "PATH",
        ];
        let told = unknown_settings(names.map(OsString::from).into_iter());
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("did you mean COLIBRI_PROFILES?"), "{told:?}");
    }
}
