//! Constants of algorithms as a user gets and uses them: on local ranks.

use std::{collections::BTreeSet, fs, path::Path};

use records::{
    Collective, Method,
    observation::{CollectiveCall, ObservationStatus},
    record,
};
use serde_json::Value;

use crate::support::{have_mpirun, run};

fn fits(calibration: &Path) -> Vec<Value> {
    let text = fs::read_to_string(calibration).unwrap();
    let calibration: Value = serde_json::from_str(&text).unwrap();
    calibration["algorithms"]["fits"].as_array().unwrap().clone()
}

fn fit_of<'a>(fits: &'a [Value], method: &str, model: &str) -> Option<&'a Value> {
    fits.iter().find(|fit| fit["method"] == method && fit["model"] == model)
}

/// One hop takes n_s (alpha + beta m_s), with the constants of whose algorithm it is.
fn assert_predicted_by_constants(ours: &[&str], fits: &[Value]) {
    let at = ["--collective", "bcast", "--procs", "2", "--sizes", "4KiB", "--segments", "0"];
    let predict = [&["predict"], ours, &at, &["--format", "json"]].concat();
    let (json, _) = run(0, &predict);
    let rows: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert!(rows.iter().any(|row| row["model"] == "refined"), "{json}");
    for row in rows.iter().filter(|row| row["model"] == "hockney" && row["algorithm"] == "pipeline")
    {
        let fit = fit_of(fits, row["method"].as_str().unwrap(), "hockney").unwrap();
        let value = |name: &str| fit[name]["value"].as_f64().unwrap();
        let wanted = value("alpha_seconds") + 4096.0 * value("beta_seconds_per_byte");
        assert!((row["seconds"].as_f64().unwrap() / wanted - 1.0).abs() < 1e-9, "{row}");
    }
    let (table, _) = run(0, &[&["decide"], ours, &at].concat());
    assert!(table.contains("hockney") && table.contains("refined"), "{table}");
    let (text, _) = run(0, &[&["explain"], ours, &["--procs", "2", "-m", "4KiB"]].concat());
    assert!(text.contains("own:pipeline") && text.contains("alpha"), "{text}");
}

/// What is not there, or makes no sense, is said.
fn assert_refused(directory: &str, ours: &[&str]) {
    for (arguments, wanted) in [
        (&["--model", "plogp"][..], "--model hockney or refined"),
        (&["--forms", "printed"], "leave out --forms"),
        (&["--collective", "reduce"], "no constants of hockney were fitted for reduce"),
    ] {
        let (_, stderr) = run(2, &[&["decide"], ours, arguments].concat());
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
    }
    let simulate = ["predict", "--model", "simulated", "--collective", "bcast", "--procs", "2"];
    let (_, stderr) = run(2, &[&simulate[..], ours].concat());
    assert!(stderr.contains("--parameters measured") || stderr.contains("hockney"), "{stderr}");
    let again = ["calibrate", directory, "--from-record", "--algorithms-of", "bcast,allgather"];
    let (_, stderr) = run(2, &again);
    assert!(stderr.contains("no times of allgather"), "{stderr}");
}

/// Open MPI's allgatherv is forced for a whole job, as a setting that is read-only within one.
#[test]
fn algorithms_that_cannot_be_changed_within_a_job_are_measured_in_jobs_of_their_own() {
    let test = "algorithms_that_cannot_be_changed_within_a_job_are_measured_in_jobs_of_their_own";
    let Some(_turn) = have_mpirun(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("run").to_str().unwrap().to_owned();
    let grid = ["--collective", "allgather,allgatherv", "--procs", "2", "--sizes", "64"];
    let here = ["--ranks", "2", "--rounds", "1", "--calibration", "preset:frodo"];
    let (stdout, _) = run(0, &[&["verify", &directory][..], &grid, &here].concat());
    assert!(stdout.contains("allgatherv"), "{stdout}");
    let record = record::read::<CollectiveCall>(&Path::new(&directory).join("measurements.csv"));
    let rows = record.unwrap().rows;
    for collective in [Collective::Allgather, Collective::Allgatherv] {
        for method in ["native:openmpi:bruck", "native:openmpi:ring"] {
            let method: Method = method.parse().unwrap();
            let of = |row: &&CollectiveCall| {
                (row.point.collective, &row.method) == (collective, &method)
            };
            assert!(rows.iter().any(|row| of(&row)), "{method} of {collective} was not timed");
            let ran = format!("intra_{}", method.to_string().rsplit(':').next().unwrap());
            let as_asked = rows.iter().filter(of).all(|row| row.ran.contains(&ran));
            assert!(as_asked, "{method} of {collective} did not run");
        }
    }
}

/// Whether two of our methods were timed at as many sizes as constants need.
fn has_sizes_enough(directory: &str) -> bool {
    let record = record::read::<CollectiveCall>(&Path::new(directory).join("algorithms.csv"));
    let Ok(record) = record else { return false };
    ["own:linear", "own:pipeline"].iter().all(|name| {
        let method: Method = name.parse().unwrap();
        let of =
            |row: &&CollectiveCall| row.method == method && row.status == ObservationStatus::Ok;
        let sizes: BTreeSet<u64> =
            record.rows.iter().filter(of).map(|row| row.point.bytes).collect();
        sizes.len() >= 4
    })
}

/// Calibrates; once more for longer where other programs left the budget no time for sizes enough. Gives the directory
/// and what was printed.
fn calibrated_with_algorithms(place: &Path) -> (String, String) {
    let calibrate = |budget: &str| {
        let directory = place.join(budget).display().to_string();
        let of = ["calibrate", &directory, "--algorithms-of", "bcast", "--no-pairs"];
        let here =
            ["--ranks", "2", "--sizes", "0,1,1KiB,8KiB", "--pair-only", "--precision", "0.5"];
        let (stdout, _) = run(0, &[&of[..], &here, &["--budget", budget]].concat());
        (directory, stdout)
    };
    let mut calibrated = ["15s", "1m", "4m"].into_iter().map(calibrate);
    let found = calibrated.find(|(directory, _)| has_sizes_enough(directory));
    found.expect("also 4 minutes left no time for four sizes of each algorithm")
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn constants_of_algorithms_are_measured_predicted_with_decided_by_and_judged() {
    let Some(_turn) =
        have_mpirun("constants_of_algorithms_are_measured_predicted_with_decided_by_and_judged")
    else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (directory, stdout) = calibrated_with_algorithms(dir.path());
    assert!(stdout.contains("Constants of each algorithm"), "{stdout}");
    assert!(stdout.contains("own:pipeline") && stdout.contains("algorithms.csv"), "{stdout}");
    let calibration = format!("{directory}/calibration.json");
    let all = fits(calibration.as_ref());
    for fit in &all {
        let [alpha, beta] = ["alpha_seconds", "beta_seconds_per_byte"].map(|name| &fit[name]);
        assert!(alpha["value"].as_f64().unwrap() + beta["value"].as_f64().unwrap() > 0.0, "{fit}");
        assert!(alpha["low"].as_f64() <= alpha["high"].as_f64(), "{fit}");
        assert!(fit["points"].as_array().unwrap().len() >= 4 && fit["r_squared"].is_number());
    }
    // A chain of the library's is known to the refined forms alone.
    let native = "native:openmpi:k-chain";
    let by_open_mpi = fit_of(&all, native, "refined").is_some();
    assert!(fit_of(&all, native, "hockney").is_none());
    assert!(fit_of(&all, "own:linear", "hockney").is_some());

    // The same record, the same file.
    let first = fs::read(&calibration).unwrap();
    run(0, &["calibrate", &directory, "--from-record"]);
    assert_eq!(fs::read(&calibration).unwrap(), first);

    let ours = ["--calibration", &calibration, "--parameters", "algorithms"];
    assert_predicted_by_constants(&ours, &all);
    assert_refused(&directory, &ours);

    // Judged beside the others; and fitted to what was timed for that.
    if by_open_mpi {
        let grid = ["--collective", "bcast,reduce", "--procs", "2", "--sizes", "64,512,4KiB"];
        let verify = ["verify", &directory, "--ranks", "2", "--rounds", "1"];
        let (stdout, _) = run(0, &[&verify[..], &grid].concat());
        assert!(stdout.contains("refined-algorithms"), "{stdout}");
        let fit = ["calibrate", &directory, "--from-record", "--algorithms-of", "reduce"];
        let (stdout, _) = run(0, &fit);
        assert!(stdout.contains("measurements.csv"), "{stdout}");
        assert!(fits(calibration.as_ref()).iter().all(|fit| fit["collective"] == "reduce"));
        let (stdout, _) = run(0, &["verify", &directory, "--from-record"]);
        assert!(stdout.contains("rest on constants fitted to these measurements"), "{stdout}");
    }
}
