//! `all` collectives, models and kinds of methods, in every command that takes it: what there is nothing of is
//! left out.

use std::{collections::BTreeSet, path::Path};

use records::Collective;

use crate::support::{have_mpirun, run};

/// One number of processes and one size, of parameters that need no run.
const HERE: [&str; 6] = ["--calibration", "preset:frodo", "-p", "8", "-m", "1KiB"];

/// The collectives in the first column of what a command prints as csv.
fn collectives(command: &str, arguments: &[&str]) -> BTreeSet<String> {
    let all = [&[command], &HERE[..], arguments, &["--format", "csv"]].concat();
    let (table, _) = run(0, &all);
    let rows = table.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned());
    rows.collect()
}

fn names(all: &[Collective]) -> BTreeSet<String> {
    all.iter().map(|collective| collective.name().to_owned()).collect()
}

/// Those of which Colibri has schedules.
fn scheduled() -> BTreeSet<String> {
    let is_scheduled = |of: &Collective| schedules::of_collective(*of).next().is_some();
    names(&Collective::ALL.into_iter().filter(is_scheduled).collect::<Vec<_>>())
}

#[test]
fn all_collectives_and_models_are_predicted_decided_and_simulated() {
    use Collective::{Alltoall, Barrier, Bcast, Reduce};
    let scheduled = scheduled();
    assert!(scheduled.len() > 10 && !scheduled.contains("alltoallv"), "{scheduled:?}");
    let in_tables = names(&[Alltoall, Barrier, Bcast, Reduce]);
    for command in ["predict", "decide"] {
        let of = |arguments: &[&str]| collectives(command, arguments);
        assert_eq!(of(&["--collective", "all", "--model", "all"]), scheduled, "{command}");
        assert_eq!(of(&["--collective", "all", "--model", "simulated"]), scheduled, "{command}");
        assert_eq!(of(&["--collective", "all", "--model", "hockney"]), in_tables, "{command}");
        assert_eq!(of(&["--collective", "allgather,bcast", "--model", "all"]).len(), 2);
    }
    let of = |arguments: &[&str]| collectives("predict", arguments);
    assert_eq!(of(&["--collective", "all"]), scheduled);
    let rings = of(&["--collective", "all", "--model", "refined", "--algorithm", "ring,k-ring"]);
    let of_ring = [Collective::Allgather, Collective::Allreduce, Collective::ReduceScatter];
    assert_eq!(rings, names(&[&of_ring[..], &[Collective::ReduceScatterBlock]].concat()));
    let levels = ["--layouts", "2x4", "--algorithm", "two-level", "--collective", "all"];
    let without_procs = [&["predict"], &HERE[..2], &HERE[4..], &levels, &["--model", "all"]];
    let (table, _) = run(0, &without_procs.concat());
    assert!(table.contains("two-level") && table.contains("allgather"), "{table}");
    let simulated = ["--collective", "all", "--model", "simulated"];
    assert_eq!(collectives("predict", &simulated), scheduled);
    let rooted = [&simulated[..], &["--algorithm", "binomial", "--root", "3"]].concat();
    assert!(collectives("predict", &rooted).contains("scatter"));
    let for_openmpi = collectives("decide", &["--collective", "all", "--target", "openmpi"]);
    assert_eq!(for_openmpi, in_tables);
    let shorter = ["--compress", "table", "--collective", "all", "--model", "all"];
    let (table, _) = run(0, &[&["decide"], &HERE[..], &shorter].concat());
    assert!(table.contains("scatterv") && table.contains("barrier"), "{table}");
    for collective in ["bcast", "allgather", "scan"] {
        let all = ["--model", "all", "--collective", collective];
        let (text, _) = run(0, &[&["explain"], &HERE[..], &all].concat());
        assert!(text.contains("by refined"), "{text}");
    }
}

/// What is told is not what was given.
#[test]
fn where_nothing_is_left_of_all_it_is_said() {
    for (arguments, wanted) in [
        (&["predict", "--collective", "alltoallv", "--model", "refined"][..], "none in any model"),
        (&["predict", "--collective", "alltoallv", "--model", "all"], "no model of those named"),
        (
            &["predict", "--collective", "all", "--algorithm", "two-procs"],
            "no model of those named",
        ),
        (&["decide", "--collective", "alltoallv", "--model", "all"], "no model of those named"),
        (&["explain", "--collective", "alltoallv", "--model", "all"], "none in any model"),
        (&["predict", "--collective", "all", "--algorithm", "rong"], "did you mean 'ring'?"),
    ] {
        let (_, stderr) = run(2, &[arguments, &HERE].concat());
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
    }
}

/// Runs a command, whose last word the directory follows, on two ranks of this machine.
fn measured(command: &[&str], directory: &Path, arguments: &[&str]) {
    let launcher = "mpirun --oversubscribe --mca mpi_yield_when_idle 1 -np {np}";
    let here = [directory.to_str().unwrap(), "--launcher", launcher, "--ranks", "2"];
    run(0, &[command, &here, arguments].concat());
}

const SMALL: [&str; 6] = ["-p", "2", "-m", "64", "--collective", "all"];

#[test]
#[ignore = "takes minutes: make test-long"]
fn all_collectives_are_repeated_and_verified_by_all_methods() {
    let name = "all_collectives_are_repeated_and_verified_by_all_methods";
    let Some(_turn) = have_mpirun(name) else { return };
    let folder = tempfile::tempdir().unwrap();
    let few = ["--min", "5", "--max", "5", "--jobs", "2", "--budget", "20s"];
    for (name, method) in [("every", "default"), ("rings", "own:ring")] {
        let method = ["--method", method];
        measured(
            &["bench", "--nrep"],
            &folder.path().join(name),
            &[&SMALL[..], &few, &method].concat(),
        );
    }
    let of = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    let plan = of("every/nrep-plan.json");
    assert!(Collective::ALL.iter().all(|it| plan.contains(it.name())), "{plan}");
    let plan = of("rings/nrep-plan.json");
    assert!(plan.contains("reduce_scatter") && !plan.contains("barrier"), "{plan}");

    let judged = ["--model", "all", "--methods", "all", "--calibration", "preset:frodo"];
    let once = ["--rounds", "1"];
    measured(&["verify"], &folder.path().join("run"), &[&SMALL[..], &judged, &once].concat());
    let plan = of("run/plan.json");
    assert!(plan.contains("mockup:scan") && plan.contains("own:"), "{plan}");
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn all_collectives_are_compared_fitted_and_tuned() {
    let Some(_turn) = have_mpirun("all_collectives_are_compared_fitted_and_tuned") else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let of = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    let all = ["--methods", "all"];
    measured(&["guidelines"], &at("g"), &[&SMALL[..], &all, &["--budget", "60s"]].concat());
    assert!(of("g/job-1-plan.json").contains("native:openmpi"));
    let timed = ["--algorithms-of", "all", "--pair-only", "--sizes", "0,1,1KiB,8KiB"];
    measured(&["calibrate"], &at("c"), &[&timed[..], &["--budget", "30s"]].concat());
    assert!(of("c/algorithms-plan.json").contains("exscan"));
    measured(&["tune"], &at("t"), &[&SMALL[..], &all, &["--budget", "60s"]].concat());
    assert!(of("t/plan.json").contains("mockup:"));
}
