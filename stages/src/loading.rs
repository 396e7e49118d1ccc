//! How what a run wrote is loaded by the launcher at hand.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;

use libraries::{MpiLibrary, openmpi::OpenMpiLibrary};
use records::{FileError, Method, choices::Chosen, platform::Platform, summary::LoadWay};

use crate::{
    export_formats::{LoadTarget, PROFILES_VARIABLE},
    exporting,
};

use site::{run_directory::RunDirectory, template::Template};

/// The directory of the files that are loaded together.
///
/// # Errors
/// The system refuses.
fn both_directory(run: &RunDirectory, stage: &str) -> Result<PathBuf> {
    let directory = run.file(&format!("{stage}{BOTH}"));
    fs::create_dir_all(&directory)
        .map_err(|error| FileError::io(&directory, "make this directory", &error))?;
    Ok(directory)
}

/// Where a run has what a part of a way loads; `stage` is put before its name.
///
/// # Errors
/// The system refuses.
pub fn part_in_run(
    run: &RunDirectory,
    way: LoadWay,
    target: &LoadTarget,
    stage: &str,
) -> Result<PathBuf> {
    match way {
        LoadWay::Both => Ok(both_directory(run, stage)?.join(target.file())),
        LoadWay::Rules | LoadWay::Preload => Ok(run.file(&format!("{stage}{}", target.file()))),
    }
}

/// What a run calls it.
pub const BOTH: &str = "both";

/// The file or directory that a part of a way loads; `path` is the way's. Of both at once a part of which nothing was
/// confirmed may have none.
pub fn part_at(way: LoadWay, target: &LoadTarget, path: &Path) -> Option<PathBuf> {
    match way {
        LoadWay::Both => Some(path.join(target.file())).filter(|file| file.exists()),
        LoadWay::Rules | LoadWay::Preload => Some(path.into()),
    }
}

/// What the parts of a way load, and where that is; see [`part_at`].
pub fn parts_at(way: LoadWay, path: &Path, platform: &Platform) -> Vec<(LoadTarget, PathBuf)> {
    let parts = way.parts().iter().filter_map(|&part| {
        let target = LoadTarget::new(part, platform);
        part_at(way, &target, path).map(|file| (target, file))
    });
    parts.collect()
}

/// The variables that load what a run wrote for a part of a way, where these are the same for every job.
///
/// # Errors
/// As [`LoadTarget::exporter`].
pub fn variables_of_run(
    run: &RunDirectory,
    way: LoadWay,
    target: &LoadTarget,
) -> Result<Option<Vec<(String, String)>>> {
    let path = match way {
        LoadWay::Both => run.file(BOTH),
        LoadWay::Rules | LoadWay::Preload => run.file(target.file()),
    };
    let Some(file) = part_at(way, target, &path) else { return Ok(Some(Vec::new())) };
    let file = file.display().to_string();
    match target.way() {
        LoadWay::Preload => Ok(Some(vec![(PROFILES_VARIABLE.to_owned(), file)])),
        LoadWay::Rules | LoadWay::Both => exporting::environment(target, &file),
    }
}

/// The choices with what one part of a way loads of them; the default elsewhere.
pub fn part_of(way: LoadWay, part: LoadWay, choices: &[Chosen]) -> Vec<Chosen> {
    let mut choices = choices.to_vec();
    for choice in choices.iter_mut().filter(|one| !way.loads_by(part, &one.method)) {
        choice.method = Method::Default;
    }
    choices
}

/// What stands for the application in commands.
pub const APPLICATION: &str = "./application";

/// The command that starts an [`APPLICATION`] with these variables as a run's jobs were started; nothing
/// where that launcher's way to hand variables on is not known, or the run was on a virtual cluster.
pub fn command(platform: &Platform, variables: &[(String, String)]) -> Option<String> {
    if platform.launcher.is_empty() || !platform.testbed.is_empty() {
        return None;
    }
    let words = shlex::split(&platform.launcher)?;
    let program = words.first()?.rsplit('/').next()?;
    let pairs = variables.iter().map(|(name, value)| format!("{name}={value}"));
    let options: Vec<String> = match program {
        "srun" if variables.is_empty() => Vec::new(),
        // It parts its list by commas.
        "srun" if variables.iter().any(|(_, value)| value.contains(',')) => return None,
        "srun" => vec![format!("--export=ALL,{}", pairs.collect::<Vec<_>>().join(","))],
        "mpirun" | "mpiexec" if is_open_mpi(platform) => {
            pairs.flat_map(|pair| ["-x".to_owned(), pair]).collect()
        }
        "mpirun" | "mpiexec" => variables
            .iter()
            .flat_map(|(name, value)| ["-genv".to_owned(), name.clone(), value.clone()])
            .collect(),
        "flux" => pairs.map(|pair| format!("--env={pair}")).collect(),
        _ => return None,
    };
    let ranks = platform.hosts.len().to_string();
    // Flux's own subcommand comes first.
    let first = if program == "flux" { 2 } else { 1 };
    let mut all: Vec<String> = words.iter().take(first).cloned().collect();
    all.extend(options);
    all.extend(words.iter().skip(first).map(|word| word.replace("{np}", &ranks)));
    let command = Template::quoted_text(&all);
    Some(format!("{command} {APPLICATION}"))
}

fn is_open_mpi(platform: &Platform) -> bool {
    OpenMpiLibrary.says(&platform.mpi_library)
}

#[cfg(test)]
mod tests {
    use records::{Collective, Point};

    use super::*;

    #[test]
    fn of_both_ways_each_loads_its_own_kind_and_alone_a_way_loads_all() {
        let choice = |bytes, method: &str| {
            let point = Point::flat(Collective::Bcast, 8, bytes);
            Chosen::measured(point, method.parse().unwrap(), 1.0, 2.0)
        };
        let choices = [
            choice(1, "native:openmpi:linear"),
            choice(2, "own:pipeline"),
            choice(3, "mockup:bcast_as_scatter_allgather"),
            choice(4, "default"),
        ];
        let of = |way, part| -> Vec<String> {
            part_of(way, part, &choices).iter().map(|one| one.method.to_string()).collect()
        };
        let all: Vec<String> = choices.iter().map(|one| one.method.to_string()).collect();
        assert_eq!(of(LoadWay::Preload, LoadWay::Preload), all);
        let rules = of(LoadWay::Both, LoadWay::Rules);
        assert_eq!(rules, [all[0].as_str(), "default", "default", "default"]);
        let profiles = of(LoadWay::Both, LoadWay::Preload);
        assert_eq!(profiles, ["default", all[1].as_str(), all[2].as_str(), "default"]);
    }

    /// A module of it would name a directory that is not there.
    #[test]
    fn of_both_ways_a_part_without_a_file_is_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let platform = Platform { mpi_library: "Open MPI v4.1.4".into(), ..Platform::default() };
        let files = |way| -> Vec<PathBuf> {
            let parts = parts_at(way, folder.path(), &platform);
            parts.into_iter().map(|(_, file)| file).collect()
        };
        let [rules, profiles] = ["openmpi.rules", "profiles"].map(|name| folder.path().join(name));
        fs::write(&rules, "").unwrap();
        assert_eq!(files(LoadWay::Both), std::slice::from_ref(&rules));
        fs::create_dir(&profiles).unwrap();
        assert_eq!(files(LoadWay::Both), [rules, profiles]);
        assert_eq!(files(LoadWay::Preload), [folder.path()]);
    }

    fn line(launcher: &str, library: &str, file: &str) -> Option<String> {
        let platform = Platform {
            hosts: vec!["n".into(); 8],
            launcher: launcher.into(),
            mpi_library: library.into(),
            ..Platform::default()
        };
        command(
            &platform,
            &[("OMPI_MCA_coll_tuned_dynamic_rules_filename".to_owned(), file.to_owned())],
        )
    }

    #[test]
    fn each_launcher_hands_variables_on_in_its_own_way() {
        let name = "OMPI_MCA_coll_tuned_dynamic_rules_filename";
        for (launcher, library, wanted) in [
            (
                "srun --mpi=pmix -n {np}",
                "Open MPI v4.1.4",
                format!("srun --export=ALL,{name}=/r --mpi=pmix -n 8 ./application"),
            ),
            (
                "/opt/bin/mpirun -np {np}",
                "Open MPI v4.1.4",
                format!("/opt/bin/mpirun -x {name}=/r -np 8 ./application"),
            ),
            (
                "mpiexec -n {np}",
                "MPICH Version: 4.0.2",
                format!("mpiexec -genv {name} /r -n 8 ./application"),
            ),
            (
                "flux run -N 2 -n {np}",
                "Open MPI v5.0.3",
                format!("flux run --env={name}=/r -N 2 -n 8 ./application"),
            ),
        ] {
            assert_eq!(line(launcher, library, "/r"), Some(wanted));
        }
        assert_eq!(line("sh start {np}", "Open MPI v4.1.4", "/r"), None);
        assert_eq!(line("srun -n {np}", "Open MPI v4.1.4", "/a,b"), None);
        let spaces = line("mpirun -np {np}", "Open MPI v4.1.4", "/my run").unwrap();
        assert!(spaces.contains(&format!("-x '{name}=/my run'")), "{spaces}");
    }
}
