//! The archive of `make release`, where it is meant to run: without a compiler, by the MPI library that is there.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::exports::libraries::{self, Library};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The archive, unpacked.
fn unpacked(place: &Path) -> PathBuf {
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
    let archive = archive.filter(|path| path.extension().is_some_and(|end| end == "xz")).max();
    let tar = Command::new("tar").arg("-xf").arg(archive.unwrap()).current_dir(place).status();
    assert!(tar.unwrap().success());
    fs::read_dir(place).unwrap().flatten().next().unwrap().path()
}

/// A short tuning by the unpacked command alone; which program it took.
fn tune(release: &Path, library: &Library, run: &Path) -> String {
    let launcher = library.launcher();
    let words = launcher.get_args().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = [library.launcher_path()].into_iter().chain(words).collect();
    let mut colibri = Command::new(release.join("bin/colibri"));
    colibri.env_clear().env("PATH", "/usr/bin:/bin").envs(library.environment().iter().cloned());
    // What a module does.
    colibri.env("LD_LIBRARY_PATH", library.directory());
    colibri.arg("tune").arg(run).args(["--collective", "bcast", "--sizes", "8,64KiB"]);
    colibri.args(["--budget", "30s", "--ranks", "2", "--launcher"]);
    colibri.arg(format!("{} -n {{np}}", words.join(" ")));
    let output = colibri.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    assert!(run.join("choices.json").is_file(), "{errors}");
    fs::read_to_string(run.join("first-job.json")).unwrap()
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn the_archive_tunes_with_each_library_that_it_is_made_for() {
    let place = tempfile::tempdir().unwrap();
    let release = unpacked(place.path());
    let name = "the_archive_tunes_with_each_library_that_it_is_made_for";
    for (find, said) in [
        (libraries::open_mpi_4_1 as fn(&str) -> Option<Library>, "Open MPI v4.1"),
        (libraries::open_mpi_5_0, "Open MPI v5.0"),
        (libraries::mpich_4_0, "MPICH Version:      4.0"),
        (libraries::mpich_5_0, "MPICH Version:      5.0"),
        (libraries::intel, "Intel(R) MPI Library"),
    ] {
        let Some(library) = find(name) else { continue };
        let runs = tempfile::tempdir().unwrap();
        let first_job = tune(&release, &library, &runs.path().join("run"));
        let [said, first_job] = [said, &first_job].map(|text| text.replace([' ', '\t'], ""));
        assert!(first_job.contains(&said), "{said}: {first_job}");
    }
}
