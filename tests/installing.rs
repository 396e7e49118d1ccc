//! What `make install` lays out, and what is found there.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{skipped::skipped, support::have_mpirun};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The directory of the command under test and of what was built with it.
fn built() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_colibri")).parent().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn succeeded(output: Output) -> String {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// `make install` below a directory of its own; nothing where not all is built.
fn installed(test: &str, prefix: &str) -> Option<tempfile::TempDir> {
    for file in [
        "colibri-mpi",
        "colibri-switch",
        "libcolibri.so",
        "libcolibri_bench.so",
        "libcolibri_yield.so",
    ] {
        if !built().join(file).is_file() {
            skipped(test, &format!("{file} is not built: cargo build --workspace"));
            return None;
        }
    }
    let place = tempfile::tempdir().unwrap();
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "-C", ROOT, "install"]);
    make.arg(format!("BUILT={}", built().display()));
    make.arg(format!("PREFIX={prefix}")).arg(format!("DESTDIR={}", place.path().display()));
    succeeded(make.output().unwrap());
    Some(place)
}

/// A script in a folder.
fn script(folder: &Path, name: &str, lines: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A launcher that says this of its version and starts nothing.
fn launcher(place: &Path, name: &str, version: &str) -> PathBuf {
    script(place, name, &format!("[ \"$1\" = --version ] && echo '{version}' && exit\nexit 1"))
}

#[test]
fn what_is_installed_finds_its_parts_and_can_be_read_about() {
    let Some(_turn) = have_mpirun("installing") else { return };
    let Some(place) = installed("installing", "/opt/colibri") else { return };
    let prefix = place.path().join("opt/colibri");
    let command = prefix.join("bin/colibri");
    succeeded(Command::new(&command).arg("--version").output().unwrap());
    let mode = |path: &str| fs::metadata(prefix.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("lib/colibri/libcolibri.so"), 0o755);
    assert_eq!(mode("share/doc/colibri/docs/tune.md"), 0o644);
    for file in ["bin/colibri", "lib/colibri/libcolibri.so", "lib/colibri/colibri-switch"] {
        let mut readelf = Command::new("readelf");
        let sections = succeeded(readelf.arg("-SW").arg(prefix.join(file)).output().unwrap());
        assert!(sections.contains(".text"), "{sections}");
        for section in [".symtab", ".debug_line"] {
            assert!(!sections.contains(section), "{file}: {sections}");
        }
    }

    let manual = prefix.join("share/man");
    let page = |words: &[&str]| {
        let mut man = Command::new("man");
        man.arg("-M").arg(&manual).args(words).env("MANPAGER", "cat").env("MANWIDTH", "100");
        man.output()
    };
    match page(&["colibri", "tune"]) {
        // Some images have a `man` that only says that pages were left out.
        Ok(output) if output.status.success() && !text(&output.stdout).contains("minimized") => {
            let shown = text(&output.stdout);
            assert!(shown.contains("--budget <TIME>"), "{shown}");
            let overview = text(&page(&["colibri"]).unwrap().stdout);
            assert!(overview.contains("colibri-guidelines(1)"), "{overview}");
            assert!(!overview.contains("pages"), "what is hidden is shown: {overview}");
        }
        _ => skipped("man pages", "there is no `man`"),
    }

    let completions = prefix.join("share/bash-completion/completions/colibri");
    let complete = format!(
        ". '{}'; COMP_WORDS=(colibri tun) COMP_CWORD=1; _colibri colibri tun colibri; \
         echo \"${{COMPREPLY[@]}}\"",
        completions.display()
    );
    let offered = succeeded(Command::new("bash").args(["-c", &complete]).output().unwrap());
    assert_eq!(offered.trim(), "tune");
    for shell in ["zsh/site-functions/_colibri", "fish/vendor_completions.d/colibri.fish"] {
        assert!(prefix.join("share").join(shell).is_file(), "{shell}");
    }
}

/// The program's folder is told by the launcher's version.
#[test]
fn the_program_for_the_library_at_hand_is_taken() {
    let Some(_turn) = have_mpirun("programs") else { return };
    let Some(place) = installed("programs", "/opt/colibri") else { return };
    let prefix = place.path().join("opt/colibri");
    let programs = prefix.join("lib/colibri/programs");
    // The same program under other names: nothing is started that would notice.
    let folders: Vec<_> = fs::read_dir(&programs).unwrap().map(|it| it.unwrap().path()).collect();
    let [own] = &folders[..] else { panic!("{folders:?}") };
    for name in ["openmpi-9.1.2", "mpich-9.0.1"] {
        fs::create_dir(programs.join(name)).unwrap();
        fs::copy(own.join("colibri-mpi"), programs.join(name).join("colibri-mpi")).unwrap();
    }
    let calibrate = |launcher: &Path| {
        let mut colibri = Command::new(prefix.join("bin/colibri"));
        colibri.args(["calibrate", "run", "--ranks", "2", "--launcher"]);
        colibri.arg(format!("{} {{np}}", launcher.display())).current_dir(place.path());
        let output = colibri.output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    for (version, folder) in [
        ("mpirun (Open MPI) 9.1.7", "openmpi-9.1.2"),
        ("HYDRA build details: Version: 9.0.1", "mpich-9.0.1"),
    ] {
        let (_, told) = calibrate(&launcher(place.path(), "start", version));
        assert!(told.contains(&format!("programs/{folder}/colibri-mpi")), "{told}");
    }
    let lacking = launcher(place.path(), "start", "Intel(R) MPI Library, Version 2021.19 Build 1");
    fs::remove_dir_all(place.path().join("run")).unwrap_or_default();
    let (code, told) = calibrate(&lacking);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("no colibri-mpi for Intel MPI 2021.19"), "{told}");
    assert!(told.contains("openmpi-9.1.2") && told.contains("make programs MPICC="), "{told}");
    assert!(!place.path().join("run").exists());

    // One for the ABI of MPI 5 serves the library that it finds, and no other.
    let finds = "Intel(R) MPI Library 2021.19.0 for Linux* OS";
    fs::create_dir(programs.join("mpiabi-1.0")).unwrap();
    let script =
        format!("#!/bin/sh\n[ \"$1\" = --mpi-library ] && echo '{finds}' && exit\nexit 1\n");
    let abi = programs.join("mpiabi-1.0/colibri-mpi");
    fs::write(&abi, script).unwrap();
    fs::set_permissions(&abi, fs::Permissions::from_mode(0o755)).unwrap();
    let (_, told) = calibrate(&lacking);
    assert!(told.contains("programs/mpiabi-1.0/colibri-mpi"), "{told}");
    let other = launcher(place.path(), "start", "HYDRA build details: Version: 8.0.1");
    fs::remove_dir_all(place.path().join("run")).unwrap_or_default();
    let (code, told) = calibrate(&other);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("no colibri-mpi for MPICH 8.0.1"), "{told}");
}

#[test]
fn a_prefix_that_is_no_whole_path_is_refused() {
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "-C", ROOT, "install", "PREFIX=here"]);
    let output = make.arg(format!("BUILT={}", built().display())).output().unwrap();
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("give a path from the root on"), "{output:?}");
    assert!(!Path::new(ROOT).join("here").exists());
}

/// Both forms of a modulefile set the same, whatever is in the path of what they load.
#[test]
fn modulefiles_are_understood_by_both_languages() {
    let place = tempfile::tempdir().unwrap();
    let odd = place.path().join(r#"a b$x[y]{"q\"#);
    fs::create_dir(&odd).unwrap();
    let colibri = |words: &str| {
        let mut command = crate::support::colibri();
        command.args(words.split_whitespace()).current_dir(&odd);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
        text(&output.stderr)
    };
    colibri("decide --calibration preset:frodo --model plogp -p 8 -m 1KiB,64KiB --output d.json");
    let told = colibri(
        "export d.json --unconfirmed --target openmpi --target-version 5.0 --output o.rules --modulefiles mods \
         --module hal-openmpi-5.0.3",
    );
    assert!(told.contains("module load colibri/hal-openmpi-5.0.3"), "{told}");
    let file = odd.canonicalize().unwrap().join("o.rules");
    let wanted = format!(
        "OMPI_MCA_coll_tuned_use_dynamic_rules=1\n\
         OMPI_MCA_coll_tuned_dynamic_rules_filename={file}\n\
         OMPI_MCA_coll_han_use_dynamic_file_rules=1\n\
         OMPI_MCA_coll_han_dynamic_rules_filename={file}.han\n",
        file = file.display()
    );
    let module = odd.join("mods/colibri/hal-openmpi-5.0.3");
    assert!(fs::read_to_string(&module).unwrap().starts_with("#%Module"));
    let tcl = "proc setenv {name value} {puts \"$name=$value\"}\nproc conflict args {}\n\
               proc module-whatis args {}\nsource [lindex $argv 0]\n";
    let lua = "function setenv(name, value) print(name .. '=' .. value) end\n\
               function help() end\nfunction whatis() end\ndofile(arg[1])\n";
    let forms = [
        ("tclsh", tcl, module.clone()),
        ("lua", lua, odd.join("mods/colibri/hal-openmpi-5.0.3.lua")),
    ];
    for (language, reader, modulefile) in forms {
        let script = place.path().join(language);
        fs::write(&script, reader).unwrap();
        match Command::new(language).arg(&script).arg(&modulefile).output() {
            Ok(output) => assert_eq!(succeeded(output), wanted, "{language}"),
            Err(_) => skipped("modulefiles", &format!("there is no {language}")),
        }
    }

    // What one file of variables can't load is refused before anything is written.
    let mut command = crate::support::colibri();
    let words = "export d.json --unconfirmed --target intel --output i.sh --modulefiles more";
    let output = command.args(words.split_whitespace()).current_dir(&odd).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("no modulefile"), "{}", text(&output.stderr));
    assert!(!odd.join("more").exists() && !odd.join("i.sh").exists());

    // Where nothing replaces the default there is nothing to load.
    colibri("decide --calibration preset:frodo --model plogp -p 8 -m 64 --output s.json");
    let path = odd.join("s.json");
    let mut kept: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    for choice in kept["choices"].as_array_mut().unwrap() {
        choice["method"] = "default".into();
    }
    fs::write(&path, kept.to_string()).unwrap();
    let told = colibri(
        "export s.json --unconfirmed --target profile --output profiles --modulefiles more",
    );
    assert!(told.contains("nothing replaces the default"), "{told}");
    assert!(!told.contains("module load") && !told.contains("LD_PRELOAD"), "{told}");
    assert!(!odd.join("more").exists());
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn programs_for_another_library_are_built_by_its_mpicc() {
    if Command::new("mpicc.mpich").arg("-show").output().is_err() {
        return skipped("programs by mpicc.mpich", "there is no mpicc.mpich");
    }
    let place = tempfile::tempdir().unwrap();
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "-C", ROOT, "programs", "MPICC=mpicc.mpich"]);
    make.arg(format!("BUILT={}", place.path().display()));
    let told = succeeded(make.output().unwrap());
    let folders = fs::read_dir(place.path().join("programs")).unwrap();
    let folders: Vec<_> = folders.map(|it| it.unwrap().path()).collect();
    let [folder] = &folders[..] else { panic!("{folders:?}\n{told}") };
    let name = folder.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("mpich-"), "{name}");
    let program = folder.join("colibri-mpi");
    let said = succeeded(Command::new(program).arg("--mpi-library").output().unwrap());
    assert!(said.starts_with("MPICH Version"), "{said}");
}

/// As on a machine without network and without anybody's crates.
#[test]
#[ignore = "takes minutes: make test-long"]
fn the_source_archive_builds_without_network() {
    let place = tempfile::tempdir().unwrap();
    if !Path::new(ROOT).join(".git").exists() {
        return skipped("the source archive", "this is no git repository");
    }
    let dist = Path::new(ROOT).join("packaging/dist");
    succeeded(Command::new(dist).arg(place.path()).output().unwrap());
    let version = env!("CARGO_PKG_VERSION");
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(place.path().join(format!("colibri-{version}.tar.gz")));
    succeeded(tar.arg("-C").arg(place.path()).output().unwrap());
    let source = place.path().join(format!("colibri-{version}"));
    let prefix = place.path().join("installed");
    let mut make = Command::new("make");
    make.args(["-C"]).arg(&source).args(["compile", "install"]);
    make.arg(format!("PREFIX={}", prefix.display()));
    make.env("CARGO_HOME", place.path().join("home")).env("CARGO_NET_OFFLINE", "true");
    make.env_remove("CARGO_TARGET_DIR");
    succeeded(make.output().unwrap());
    let command = prefix.join("bin/colibri");
    let said = succeeded(Command::new(command).arg("--version").output().unwrap());
    assert!(said.contains(version), "{said}");
}

/// Seen: with the headers of Open MPI 5.0 the linker took the system's MPICH 4.0.
#[test]
fn a_program_that_found_another_library_than_its_headers_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let mpicc = script(
        place.path(),
        "mpicc",
        "[ \"$1\" = -show ] && { echo cc -lmpi; exit; }\n\
         printf '#define OMPI_MAJOR_VERSION 5\\n#define OMPI_MINOR_VERSION 0\\n'",
    );
    let build = |release: &str| {
        let program = format!("printf '#!/bin/sh\\necho {release}\\n' >");
        let to = "$CARGO_TARGET_DIR/release/colibri-mpi";
        let lines = format!("mkdir -p $CARGO_TARGET_DIR/release\n{program} {to}\nchmod +x {to}");
        let cargo = script(place.path(), "cargo", &lines);
        let mut command = Command::new(Path::new(ROOT).join("packaging/mpi-program"));
        command.env("CARGO", cargo).arg(place.path()).arg(&mpicc);
        command.output().unwrap()
    };
    let told = succeeded(build("openmpi-5.0.11"));
    assert!(told.contains("programs/openmpi-5.0.11/colibri-mpi"), "{told}");
    let refused = build("mpich-4.0.2");
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(why.contains("headers are of openmpi-5.0, but the program found mpich-4.0.2"), "{why}");
    assert!(!place.path().join("programs/mpich-4.0.2").exists());
}
