//! The archive of `make release`, where it is meant to run: without a compiler, by the MPI library that is there.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use records::{document, first_job::FirstJob};

use crate::{
    exports::libraries::{self, Library},
    skipped::skipped,
    support::turn,
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The archive, made once.
fn archive() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let archives = Path::new(env!("CARGO_TARGET_TMPDIR")).join("release");
        let output = Command::new("packaging/release")
            .arg(&archives)
            .current_dir(ROOT)
            // Those of cargo's run of this test are not meant for another build.
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let archive = fs::read_dir(&archives).unwrap().flatten().map(|entry| entry.path());
        let archive = archive.filter(|path| path.extension().is_some_and(|end| end == "xz"));
        archive.max().unwrap()
    })
}

/// Unpacks it in a folder; the command in it.
fn unpacked(place: &Path) -> PathBuf {
    let tar = Command::new("tar").arg("-xf").arg(archive()).current_dir(place).status();
    assert!(tar.unwrap().success());
    fs::read_dir(place).unwrap().flatten().next().unwrap().path().join("bin/colibri")
}

/// A short tuning by the unpacked command alone, which sees no more than `variables`; what the MPI library of its first job
/// says of itself. `colibri` starts the command, which knows the run's directory `run` by the name `named`.
fn tune(
    mut colibri: Command,
    variables: &[(String, String)],
    launcher: &str,
    [named, run]: [&Path; 2],
) -> String {
    colibri.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    // Open MPI 5 wants one.
    colibri.env("HOME", "/tmp");
    colibri.envs(variables.iter().cloned());
    colibri.arg("tune").arg(named).args(["--collective", "bcast", "--sizes", "8,64KiB"]);
    colibri.args(["--budget", "30s", "--ranks", "2", "--launcher", launcher]);
    let output = colibri.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    assert!(run.join("choices.json").is_file(), "{errors}");
    let first_job: FirstJob = document::read(&run.join("first-job.json")).unwrap();
    let words: Vec<&str> = first_job.platform.mpi_library.split_whitespace().collect();
    words.join(" ")
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn the_archive_tunes_with_each_library_that_it_is_made_for() {
    let place = tempfile::tempdir().unwrap();
    let command = unpacked(place.path());
    let name = "the_archive_tunes_with_each_library_that_it_is_made_for";
    for (find, said) in [
        (libraries::open_mpi_4_1 as fn(&str) -> Option<Library>, "Open MPI v4.1"),
        (libraries::open_mpi_5_0, "Open MPI v5.0"),
        (libraries::mpich_4_0, "MPICH Version: 4.0"),
        (libraries::mpich_5_0, "MPICH Version: 5.0"),
        (libraries::intel, "Intel(R) MPI Library"),
    ] {
        let Some(library) = find(name) else { continue };
        let runs = tempfile::tempdir().unwrap();
        let run = runs.path().join("run");
        let started = library.launcher();
        let words = started.get_args().map(|word| word.to_string_lossy().into_owned());
        let words: Vec<String> = [library.launcher_path()].into_iter().chain(words).collect();
        let mut variables = library.environment().to_vec();
        let directory = library.directory();
        if directory.is_absolute() {
            // What a module does.
            variables.push(("LD_LIBRARY_PATH".into(), directory.display().to_string()));
        }
        let launcher = format!("{} -n {{np}}", words.join(" "));
        let ran = tune(Command::new(&command), &variables, &launcher, [&run, &run]);
        assert!(ran.contains(said), "{said}: {ran}");
    }
}

/// In a directory that a command sees as `/`.
const IN_ROOT: &str = r#"
set -e
root=$1
shift
mount -t proc proc "$root/proc"
for one in dev sys; do mount --rbind "/$one" "$root/$one"; done
exec chroot "$root" "$@"
"#;

/// The root of a Debian 11, with its MPI libraries and without any compiler; why there is none.
fn debian_11() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("debian-11");
    let whole = root.join("whole");
    if whole.is_file() {
        return Ok(root);
    }
    let id = Command::new("id").arg("-u").output().map_err(|error| error.to_string())?;
    if String::from_utf8_lossy(&id.stdout).trim() != "0" {
        return Err("only root can make the root of another system".into());
    }
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", "--include=openmpi-bin,mpich", "bullseye"]).arg(&root);
    let output = debootstrap.output().map_err(|error| format!("debootstrap: {error}"))?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        return Err(format!("debootstrap: {}", told.lines().last().unwrap_or_default()));
    }
    // MPICH asks for this machine's address by its name.
    fs::copy("/etc/hosts", root.join("etc/hosts")).map_err(|error| error.to_string())?;
    fs::write(&whole, "").map_err(|error| error.to_string())?;
    Ok(root)
}

/// glibc 2.31, Open MPI 4.1.0, MPICH 3.4.
#[test]
#[ignore = "takes minutes: make test-long"]
fn the_archive_tunes_in_debian_11() {
    let root = match debian_11() {
        Ok(root) => root,
        Err(why) => return skipped("the_archive_tunes_in_debian_11", &why),
    };
    let _turn = turn();
    let place = tempfile::tempdir_in(root.join("opt")).unwrap();
    let command = unpacked(place.path());
    let inside = |path: &Path| Path::new("/").join(path.strip_prefix(&root).unwrap());
    let open_mpi = "mpirun.openmpi --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1";
    for (launcher, said) in [(open_mpi, "Open MPI v4.1.0"), ("mpirun.mpich", "MPICH Version: 3.4")]
    {
        let runs = tempfile::tempdir_in(root.join("tmp")).unwrap();
        let run = runs.path().join("run");
        let mut colibri = Command::new("unshare");
        colibri.args(["--mount", "sh", "-c", IN_ROOT, "sh"]).arg(&root).arg(inside(&command));
        let launcher = format!("{launcher} -n {{np}}");
        let ran = tune(colibri, &[], &launcher, [&inside(&run), &run]);
        assert!(ran.contains(said), "{said}: {ran}");
        assert!(!root.join("usr/bin/cc").exists(), "a compiler is there");
    }
}
