//! The package files for EasyBuild and Spack install from the source archive of `make dist`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{exports::pypi, skipped::skipped};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Without what cargo sets for this test, which is not meant for another build. By the way the quickest: what is built is
/// not timed.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO")) {
        command.env_remove(name);
    }
    command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    command
}

#[track_caller]
fn assert_done(output: &Output) {
    let [told, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{told}\n{errors}");
}

/// The installed command starts, and has all that it needs beside it.
fn assert_installed(prefix: &Path) {
    let output = Command::new(prefix.join("bin/colibri")).arg("--version").output().unwrap();
    let version = concat!("colibri ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), version);
    let parts = prefix.join("lib/colibri");
    for part in ["libcolibri.so", "libcolibri_tracer.so", "colibri-switch"] {
        assert!(parts.join(part).is_file(), "{part}");
    }
    let programs = fs::read_dir(parts.join("programs")).unwrap().flatten();
    let programs: Vec<PathBuf> = programs.map(|of| of.path().join("colibri-mpi")).collect();
    assert!(!programs.is_empty() && programs.iter().all(|one| one.is_file()), "{programs:?}");
    assert!(prefix.join("share/man/man1/colibri.1").is_file());
}

/// Modules that EasyBuild's toolchain asks for, and what each loads. They stand for what this machine has.
const MODULES: [(&str, &[&str]); 6] = [
    ("GCCcore/14.3.0", &[]),
    ("GCC/14.3.0", &["GCCcore/14.3.0"]),
    ("OpenMPI/5.0.8-GCC-14.3.0", &["GCC/14.3.0"]),
    ("gompi/2025b", &["GCC/14.3.0", "OpenMPI/5.0.8-GCC-14.3.0"]),
    ("Rust/1.91.1-GCCcore-14.3.0", &["GCCcore/14.3.0"]),
    ("LLVM/20.1.8-GCCcore-14.3.0", &["GCCcore/14.3.0"]),
];

fn write_modules(folder: &Path) {
    for (module, loads) in MODULES {
        let (name, version) = module.split_once('/').unwrap();
        let [upper, number] = [&name.to_uppercase(), version.split('-').next().unwrap()];
        let loads: String = loads.iter().map(|load| format!("module load {load}\n")).collect();
        let text = format!(
            "#%Module\n{loads}setenv EBROOT{upper} /usr\nsetenv EBVERSION{upper} {number}\n"
        );
        let path = folder.join(module);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// EasyBuild with these modules.
const EASYBUILD: &str = r#"
. /usr/share/modules/init/bash
module use "$1"
shift
exec eb "$@"
"#;

/// Stands for Spack, which no package registry has: the names that its package files use. Runs the phases of one as
/// Spack does, in the directory of the unpacked archive.
const SPACK: &str = r##"
import glob, os, runpy, subprocess, sys, types

file, prefix, mpicc, stage = sys.argv[1:]

class Prefix(str):
    def __getattr__(self, name):
        return Prefix(os.path.join(self, name))

# Debian's, where libclang is; other distributions'.
llvm = Prefix(max(glob.glob("/usr/lib/llvm-*"), default="/usr"))

class Environment:
    def set(self, name, value):
        os.environ[name] = value

class Stands:
    path = stage
    def __getitem__(self, name):
        return types.SimpleNamespace(mpicc=mpicc, prefix=llvm)

class MakefilePackage:
    stage = spec = Stands()
    prefix = Prefix(prefix)

def directive(*arguments, **named):
    pass

def decorator(*arguments, **named):
    return lambda function: function

def make(*arguments):
    subprocess.run(["make", *arguments], check=True)

package = types.ModuleType("spack.package")
for name in ["license", "version", "depends_on", "requires"]:
    setattr(package, name, directive)
for name in ["run_after", "on_package_attributes"]:
    setattr(package, name, decorator)
package.join_path = os.path.join
package.make = make
package.Executable = lambda path: lambda *arguments: subprocess.run([path, *arguments], check=True)
package.MakefilePackage = MakefilePackage
sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": package})

colibri = runpy.run_path(file)["Colibri"]()
colibri.setup_build_environment(Environment())
colibri.build(colibri.spec, colibri.prefix)
colibri.install(colibri.spec, colibri.prefix)
colibri.starts()
"##;

#[test]
#[ignore = "takes minutes: make test-long"]
fn easybuild_and_spack_install_from_the_source_archive() {
    let test = "easybuild_and_spack_install_from_the_source_archive";
    if !Path::new("/usr/share/modules/init/bash").is_file() {
        return skipped(test, "no module command (Debian: environment-modules)");
    }
    let easybuild = match pypi::environment("easybuild", &["easybuild==5.4.1"]) {
        Ok(environment) => environment,
        Err(why) => return skipped(test, &why),
    };
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let packaging = Path::new(ROOT).join("packaging");
    assert_done(
        &command("packaging/dist").arg(path("archive")).current_dir(ROOT).output().unwrap(),
    );

    write_modules(&path("installed/modules/all"));
    let search = std::env::var("PATH").unwrap_or_default();
    let mut eb = command("bash");
    eb.args(["-c", EASYBUILD, "bash"]).arg(path("installed/modules/all")).current_dir(&place);
    eb.env("PATH", format!("{}:{search}", easybuild.join("bin").display()));
    eb.args(["--modules-tool=EnvironmentModules", "--module-syntax=Tcl", "--robot"]);
    // Tests run as root in containers.
    eb.args(["--allow-use-as-root-and-accept-consequences", "--disable-cleanup-builddir"]);
    let folders = [
        ("sourcepath", "archive"),
        ("installpath", "installed"),
        ("buildpath", "build"),
        ("tmpdir", "tmp"),
    ];
    eb.args(folders.map(|(option, name)| format!("--{option}={}", path(name).display())));
    let file = packaging.join("easybuild/Colibri-0.1.0-gompi-2025b.eb");
    assert_done(&eb.arg(file).output().unwrap());
    assert_installed(&path("installed/software/Colibri/0.1.0-gompi-2025b"));

    // Where EasyBuild has built, so that little is built again.
    let stage = path("build/Colibri/0.1.0/gompi-2025b");
    let mut spack = command("python3");
    spack.args(["-c", SPACK]).arg(packaging.join("spack/packages/colibri/package.py"));
    spack
        .args([&path("spack"), Path::new("mpicc"), &stage])
        .current_dir(stage.join("colibri-0.1.0"));
    assert_done(&spack.output().unwrap());
    assert_installed(&path("spack"));
}
