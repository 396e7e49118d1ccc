//! Batch jobs that Slurm ends: what was recorded stays, and the same job or another one goes on.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use super::{ONE_HOST, cluster::SlurmCluster, in_allocation};
use crate::support::{have_mpirun, run};

/// Waits until something holds.
#[track_caller]
fn wait(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < limit, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The record of a run's measurements so far, once it has some.
#[track_caller]
fn begun(record: &Path, log: &Path) -> Vec<u8> {
    let holds = || fs::read(record).unwrap_or_default();
    let mut last = Vec::new();
    let rows = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    let limit = Instant::now() + Duration::from_secs(60);
    while rows(&last) < 40 {
        let log = fs::read_to_string(log).unwrap_or_default();
        assert!(Instant::now() < limit, "{}: no rows\n{log}", record.display());
        std::thread::sleep(Duration::from_millis(50));
        last = holds();
    }
    last
}

/// Submits a script; the job's number.
#[track_caller]
fn submit(cluster: &SlurmCluster, place: &Path, script: &str) -> String {
    let mut sbatch = cluster.client("sbatch");
    let output = sbatch.arg("--parsable").arg(script).current_dir(place).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[track_caller]
fn control(cluster: &SlurmCluster, program: &str, arguments: &[&str]) {
    let output = cluster.client(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}

/// The script that `--sbatch` writes, with what one host needs put in.
fn script(place: &Path) {
    let run_directory = place.join("run");
    let options = ["--collective", "bcast", "--procs", "4", "--sizes", "64,1KiB,64KiB"];
    let tune = ["tune", run_directory.to_str().unwrap(), "--budget", "20s"];
    let sbatch = ["--sbatch=-N 4 -n 4 --time=5"];
    let (said, _) = run(0, &[&tune[..], &options, &sbatch].concat());
    assert!(said.starts_with("Submit it by: sbatch "), "{said}");
    assert!(!run_directory.exists());
    let path = place.join("run.sbatch");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("#SBATCH --requeue") && text.contains("--resume"), "{text}");
    let yields = "export OMPI_MCA_mpi_yield_when_idle=1 COLIBRI_PROC_STAT=/dev/null";
    let text = text.replacen("\ncd ", &format!("\n{ONE_HOST}{yields}\ncd "), 1);
    fs::write(path, text).unwrap();
    let (_, stderr) = run(2, &[&tune[..], &sbatch].concat());
    assert!(stderr.contains("run.sbatch: already exists"), "{stderr}");
}

/// A job that is requeued in the middle goes on, and one that was cancelled by another one.
#[test]
#[ignore = "takes minutes: make test-long"]
fn a_batch_job_that_slurm_ends_goes_on() {
    let test = "a_batch_job_that_slurm_ends_goes_on";
    let Some(_turn) = have_mpirun(test) else { return };
    let Some(cluster) = SlurmCluster::up(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path();
    script(place);
    let [record, log] = ["run/observations.csv", "run.log"].map(|name| place.join(name));
    let said = || fs::read_to_string(&log).unwrap_or_default();

    let first = submit(&cluster, place, "run.sbatch");
    let before = begun(&record, &log);
    control(&cluster, "scancel", &[&first]);
    wait("scancel", Duration::from_secs(30), || cluster.state(&first) == "CANCELLED");
    let cancelled = fs::read(&record).unwrap();
    assert!(cancelled.starts_with(&before), "{}", said());

    let second = submit(&cluster, place, "run.sbatch");
    wait("resuming", Duration::from_secs(60), || fs::read(&record).unwrap() != cancelled);
    control(&cluster, "scontrol", &["requeue", &second]);
    wait("requeue", Duration::from_secs(30), || cluster.state(&second) != "RUNNING");
    let requeued = fs::read(&record).unwrap();
    assert!(requeued.starts_with(&cancelled), "{}", said());
    wait("the end", Duration::from_secs(180), || {
        ["COMPLETED", "FAILED"].contains(&cluster.state(&second).as_str())
    });
    assert_eq!(cluster.state(&second), "COMPLETED", "{}", said());
    assert!(fs::read(&record).unwrap().starts_with(&requeued));
    assert!(place.join("run/summary.json").exists(), "{}", said());
}

/// Slurm ends the allocation of a run whose budget knows nothing of it: that is told, and not tried again.
#[test]
#[ignore = "takes minutes: make test-long"]
fn an_allocation_that_ends_is_told_in_a_line() {
    let test = "an_allocation_that_ends_is_told_in_a_line";
    let Some(_turn) = have_mpirun(test) else { return };
    let Some(cluster) = SlurmCluster::up(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let tune = "\"$COLIBRI\" tune run --collective bcast --procs 4 --sizes 64 --budget 10m";
    let cancel = "(sleep 6; scancel $SLURM_JOB_ID) & ";
    let script = format!("trap '' TERM; {ONE_HOST}{cancel}{tune}");
    let (_, said) = in_allocation(&cluster, &["-N", "4", "-n", "4"], dir.path(), &script);
    let last = said.lines().rfind(|line| line.starts_with("colibri: ")).unwrap_or_default();
    assert!(last.contains("Slurm's job ") && last.contains("has ended (CANCELLED)"), "{said}");
    assert!(last.contains("--resume continues"), "{said}");
    assert!(!said.contains("once more"), "{said}");
}

/// What may be spent ends before the allocation does.
#[test]
fn the_time_that_is_left_bounds_the_budget() {
    let test = "the_time_that_is_left_bounds_the_budget";
    let Some(_turn) = have_mpirun(test) else { return };
    let Some(cluster) = SlurmCluster::up(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let calibrate = "\"$COLIBRI\" calibrate run --budget 1h --ranks 999";
    let wanted = ["-N", "1", "-n", "1", "--time", "10"];
    let (code, said) = in_allocation(&cluster, &wanted, dir.path(), calibrate);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("budget: 9m") && said.contains("in place of 1h, since Slurm's"),
        "{said}"
    );
}
