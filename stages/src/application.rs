//! Runs an application for `colibri tune RUN -- ./application`: traced first, and in the end in turns without and
//! with what was tuned for it. A run that has ended well is recorded, and not made again.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, bail};
use libraries::{MpiLibrary as _, openmpi::OpenMpiLibrary};
use records::{
    FileError, counted, document,
    platform::Platform,
    quantity::{format_duration, format_seconds},
    summary::{ApplicationRun, ApplicationTurn, LoadWay, Loading},
    usage::Usage,
};
use statistics::{PairedJobs, median};

use crate::{
    export_formats::{LoadTarget, PROFILES_VARIABLE},
    loading::variables_of_run,
};
use site::{
    application::Application, lazy::LazySite, process::interrupted, ranks::JobSetting,
    run_directory::RunDirectory, usage,
};

/// Turns of a run without and one with what is loaded: as many as the budget holds, at least these, which tell whether two
/// runs differ by less than two of the same kind.
pub const MIN_TURNS: u32 = 2;
/// More would hardly make the interval narrower: its width falls by a tenth with the next two.
const MAX_TURNS: u32 = 8;

/// A run that takes so many times as long as the traced one, and a minute for its start, waits for ever.
const LIMIT_FACTOR: f64 = 5.0;
const LIMIT_START: Duration = Duration::from_secs(60);

/// An application at a site; its logs and traces lie in a folder of a run's directory.
pub struct ApplicationRuns<'a, 's> {
    pub run: &'a RunDirectory,
    pub site: &'a mut LazySite<'s>,
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// The folder's name.
    pub folder: String,
}

/// How a run is started, beside what records it.
struct Start {
    /// In messages.
    step: String,
    /// In names of files.
    name: String,
    settings: Vec<JobSetting>,
    /// How long the run is expected to take; nothing where that is not known.
    expected: Option<Duration>,
}

impl ApplicationRuns<'_, '_> {
    /// Runs it once, and gives which collectives it calls.
    ///
    /// # Errors
    /// It fails, or does not run as one MPI program of the library at hand.
    pub fn trace(&mut self, platform: &Platform) -> Result<Usage> {
        let kept = self.path("traced.json")?;
        // Whoever begins a run anew may have built the application anew.
        remove(&kept)?;
        let start = Start {
            step: "application, traced".into(),
            name: "traced".into(),
            settings: without(),
            expected: None,
        };
        let usage = self.once(&start)?;
        let checked = check_library(&usage, platform).and_then(|()| crate::traced::read(&kept));
        checked.map_err(|error| error.context(start.step))
    }

    /// Runs it in turns without and with what one way loads: without, with, with, without, and so on, for
    /// `budget` in all where that holds more turns than the fewest. Nothing where what it loads cannot be given by
    /// environment variables.
    ///
    /// # Errors
    /// It fails, or the allocation ends before the fewest turns.
    pub fn turns(
        &mut self,
        loading: &Loading,
        platform: &Platform,
        traced: Duration,
        budget: Duration,
    ) -> Result<Vec<ApplicationTurn>> {
        let Some(with) = self.with(loading, platform)? else {
            say!(
                "application: not run again, since {} is not loaded by environment variables alone; the command \
                 below loads it",
                loading.file
            );
            return Ok(Vec::new());
        };
        say!(
            "application: runs in turns without and with {}; what it prints is in {}",
            loading.file,
            self.run.file(&self.folder).display()
        );
        let mut turns = Vec::new();
        let mut spent = Duration::ZERO;
        for number in 1..=MAX_TURNS {
            let is_further = number > MIN_TURNS;
            if is_further && spent + spent / (number - 1) > budget {
                break;
            }
            if is_further && !self.has_time_for(2 * traced) {
                say!("application: the allocation ends too soon for more turns");
                break;
            }
            let mut runs = [None, None];
            let order = if number % 2 == 1 { [0, 1] } else { [1, 0] };
            for index in order {
                let (name, settings) =
                    [("without", without()), ("with", with.clone())][index].clone();
                let start = Start {
                    step: format!("application, turn {number} {name} {}", loading.file),
                    name: format!("turn-{number}-{name}"),
                    settings,
                    expected: Some(traced),
                };
                let one = ApplicationRun::of(&self.once(&start)?);
                spent += Duration::try_from_secs_f64(one.seconds).unwrap_or(traced);
                runs[index] = Some(one);
            }
            if let [Some(without), Some(with)] = runs {
                let [a, b] = [without, with].map(|run| format_seconds(run.seconds));
                say!("application, turn {number}: {a} without, {b} with");
                turns.push(ApplicationTurn { without, with });
            }
        }
        Ok(turns)
    }

    /// What the ranks are given to load it; nothing where variables alone do not.
    fn with(&self, loading: &Loading, platform: &Platform) -> Result<Option<Vec<JobSetting>>> {
        let mut settings = match loading.way {
            LoadWay::Rules => without(),
            LoadWay::Preload | LoadWay::Both => Vec::new(),
        };
        for &part in loading.way.parts() {
            let target = LoadTarget::new(part, platform);
            let Some(variables) = variables_of_run(self.run, loading.way, &target)? else {
                return Ok(None);
            };
            let set = |(name, value): (String, String)| JobSetting::Variable(name, value.into());
            settings.extend(variables.into_iter().map(set));
        }
        Ok(Some(settings))
    }

    fn has_time_for(&mut self, wanted: Duration) -> bool {
        let time = self.site.open(self.run).and_then(|site| site.time_for_a_job(wanted));
        time.is_ok_and(|time| time >= wanted)
    }

    /// A file of its folder, which is made.
    fn path(&self, name: &str) -> Result<PathBuf> {
        let folder = self.run.file(&self.folder);
        fs::create_dir_all(&folder)
            .map_err(|error| FileError::io(&folder, "make this directory", &error))?;
        Ok(folder.join(name))
    }

    /// One run, or what is recorded of it.
    fn once(&mut self, start: &Start) -> Result<Usage> {
        let Start { step, name, settings, expected } = start;
        let [log, part, kept] = ["log", "part.json", "json"].map(|end| format!("{name}.{end}"));
        let (log, part, kept) = (self.path(&log)?, self.path(&part)?, self.path(&kept)?);
        if kept.exists() {
            return Ok(document::read(&kept)?);
        }
        if let Some(expected) = *expected
            && !self.has_time_for(expected)
        {
            bail!(
                "{step}: the allocation ends before the application, which runs for {}; what was recorded is \
                 kept, and --resume continues from there",
                format_duration(expected)
            );
        }
        // Of a run that was killed.
        remove(&part)?;
        let trace = JobSetting::Variable("COLIBRI_TRACE".into(), part.clone().into_os_string());
        let settings = [&[JobSetting::PreloadLibrary, trace], &settings[..]].concat();
        let limit = expected.map(|expected| expected.mul_f64(LIMIT_FACTOR) + LIMIT_START);
        let site = self.site.open(self.run)?;
        if expected.is_none() {
            let ranks = counted(site.ranks(), "rank");
            say!("{step}: runs on {ranks}; what it prints is in {}", log.display());
        }
        let application = Application { words: self.words, step, log: &log, limit };
        match site.run_application(&application, &settings) {
            // It ran before: a node or the network may have failed for a moment.
            Err(error) if expected.is_some() && !interrupted() => {
                say!("{error:#}\n{step}: trying once more");
                remove(&part)?;
                site.run_application(&application, &settings)?;
            }
            ended => ended?,
        }
        let usage = read(&part, step, &log, site.ranks())?;
        fs::rename(&part, &kept).map_err(|error| FileError::io(&part, "rename", &error))?;
        Ok(usage)
    }
}

/// Removes a file, where it is there.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FileError::io(path, "remove", &error).into())
        }
        _ => Ok(()),
    }
}

/// What runs untuned is given: what the user may have set himself would be loaded, too.
fn without() -> Vec<JobSetting> {
    vec![JobSetting::Variable(PROFILES_VARIABLE.into(), OsString::new())]
}

/// The trace of a run that has ended well.
fn read(trace: &Path, step: &str, log: &Path, ranks: u32) -> Result<Usage> {
    if !trace.exists() {
        bail!(
            "{step}: it ended well, but no rank recorded its calls: expected a dynamically linked MPI program that \
             reaches MPI_Finalize; what it printed: {}",
            log.display()
        );
    }
    let usage: Usage = document::read(trace)?;
    match usage.procs {
        procs if procs == ranks => Ok(usage),
        1 => usage!(
            "{step}: each of the {ranks} ranks ran as an MPI program of its own: the application was built for another \
             MPI library than the launcher's; load that library's module, or give its launcher by --launcher"
        ),
        procs => usage!(
            "{step}: it ran with {procs} ranks where {ranks} were started; name the MPI program itself behind --, \
             and the number of ranks by --ranks"
        ),
    }
}

/// Whether the application uses the library that is tuned.
fn check_library(usage: &Usage, platform: &Platform) -> Result<()> {
    let is_open_mpi = OpenMpiLibrary.says(&platform.mpi_library);
    let has_either = |name: &str| usage.library == name;
    let differs = (has_either("Open MPI") && !is_open_mpi) || (has_either("MPICH") && is_open_mpi);
    if differs {
        usage!(
            "the application uses {}, but the library that would be tuned is {}; load the application's module, so \
             that its mpirun is on PATH",
            usage.library,
            platform.library()
        );
    }
    Ok(())
}

/// What turns show of an application.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ApplicationGain {
    /// Time without over time with what is loaded: geometric mean over the turns.
    pub speed_up: f64,
    /// Its interval (95 %) from three turns on, else the least and the greatest of the turns.
    pub interval: [f64; 2],
}

impl ApplicationGain {
    /// Of these turns; nothing of none.
    pub fn of(turns: &[ApplicationTurn]) -> Option<Self> {
        let pairs: Vec<[f64; 2]> =
            turns.iter().map(|turn| [turn.with.seconds, turn.without.seconds]).collect();
        let paired = PairedJobs::new(&pairs);
        let speed_up = paired.ratio()?;
        let interval = match paired.estimate(0.95) {
            Some(gain) if paired.count() > MIN_TURNS as usize => [gain.low, gain.high],
            _ => pairs
                .iter()
                .map(|[with, without]| without / with)
                .fold([f64::INFINITY, 0.0], |[least, greatest], ratio| {
                    [ratio.min(least), ratio.max(greatest)]
                }),
        };
        Some(ApplicationGain { speed_up, interval })
    }

    /// Whether it surely runs faster, slower, or neither can be seen.
    pub fn is_faster(&self) -> Option<bool> {
        match self.interval {
            [low, _] if low > 1.0 => Some(true),
            [_, high] if high < 1.0 => Some(false),
            _ => None,
        }
    }
}

/// The median, the least and the greatest of what the turns show, without and with what is loaded.
pub fn spread(turns: &[ApplicationTurn], of: fn(&ApplicationRun) -> f64) -> [[f64; 3]; 2] {
    [|turn: &ApplicationTurn| turn.without, |turn: &ApplicationTurn| turn.with].map(|side| {
        let values: Vec<f64> = turns.iter().map(|turn| of(&side(turn))).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(0.0, f64::max);
        [median(&values).unwrap_or_default(), least, greatest]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(times: &[[f64; 2]]) -> Vec<ApplicationTurn> {
        let run = |seconds: f64| ApplicationRun {
            seconds,
            collective_seconds: seconds / 2.0,
            calls: 10,
            replaced_calls: 0,
        };
        let turn = |&[without, with]: &[f64; 2]| ApplicationTurn {
            without: run(without),
            with: run(with),
        };
        times.iter().map(turn).collect()
    }

    #[test]
    fn an_application_is_faster_where_its_turns_agree() {
        let gain = |times: &[[f64; 2]]| ApplicationGain::of(&turns(times)).unwrap();
        let two = gain(&[[2.0, 1.0], [4.5, 1.5]]);
        assert_eq!((two.interval, two.is_faster()), ([2.0, 3.0], Some(true)));
        assert!((two.speed_up - 6.0_f64.sqrt()).abs() < 1e-12, "{two:?}");
        assert_eq!(gain(&[[1.0, 1.1], [1.0, 1.2]]).is_faster(), Some(false));
        assert_eq!(gain(&[[1.0, 1.1], [1.2, 1.0]]).is_faster(), None);
        let three = gain(&[[1.0, 0.9], [1.0, 0.88], [1.0, 0.91]]);
        let [low, high] = three.interval;
        assert!(1.0 < low && low < three.speed_up && three.speed_up < high, "{three:?}");
        assert_eq!(gain(&[[1.0, 0.5], [1.0, 0.99], [1.0, 1.4]]).is_faster(), None);
        assert_eq!(ApplicationGain::of(&[]), None);
    }

    #[test]
    fn what_runs_show_is_told_by_median_and_ends() {
        let turns = turns(&[[1.0, 0.5], [3.0, 0.25], [1.5, 0.75]]);
        assert_eq!(spread(&turns, |run| run.seconds), [[1.5, 1.0, 3.0], [0.5, 0.25, 0.75]]);
    }

    #[test]
    fn an_application_of_another_library_is_refused() {
        let usage = |library: &str| Usage::of_all_ranks(2, library.into(), 1.0, []);
        let platform =
            |library: &str| Platform { mpi_library: library.into(), ..Platform::default() };
        let check = |of: &str, at: &str| check_library(&usage(of), &platform(at)).is_ok();
        assert!(check("Open MPI", "Open MPI v4.1.4") && check("MPICH", "MPICH Version: 4.0.2"));
        assert!(check("MPICH", "Intel(R) MPI Library 2021.19"));
        assert!(check("the ABI of MPI 5", "MPICH Version: 5.0.2"));
        assert!(!check("MPICH", "Open MPI v4.1.4") && !check("Open MPI", "MPICH Version: 4.0.2"));
    }
}
