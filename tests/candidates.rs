//! `decide --candidates`: what the preload library tries first while an application runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use records::{
    Collective, Layout, Method,
    candidates::{Candidates, FILE},
    document,
    penalty::{Penalties, PredictionError},
    platform::Platform,
    profile::REPLACED,
};
use runner::Runnable;

use crate::support::{levelled_calibration, run};

fn written(calibration: &Path, directory: &Path, flags: &[&str]) -> (Candidates, String) {
    let [calibration, to] = [calibration, directory].map(|path| path.to_str().unwrap());
    let command = ["decide", "--calibration", calibration, "--candidates", to];
    let (stdout, stderr) = run(0, &[&command, flags].concat());
    assert!(stderr.contains(&format!("written: {to}/{FILE}")), "{stderr}");
    (Candidates::read(directory).unwrap().unwrap(), stdout)
}

fn calibrated(folder: &Path) -> PathBuf {
    let path = folder.join("calibration.json");
    levelled_calibration(&path);
    path
}

#[test]
fn the_best_few_of_each_size_can_be_run_and_have_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("new/adapt");
    let flags = [
        "--layouts",
        "4x1,4x4",
        "--collective",
        "all",
        "--sizes",
        "1,48KiB,60KiB",
        "--format",
        "csv",
    ];
    let (found, stdout) = written(&calibrated(dir.path()), &to, &flags);
    assert_eq!(found.model, "refined");
    let collectives: BTreeSet<Collective> =
        found.classes.iter().map(|class| class.point.collective).collect();
    assert_eq!(collectives, BTreeSet::from(REPLACED));
    for class in &found.classes {
        let collective = class.point.collective;
        let range = (class.point.bytes, class.last_bytes);
        let wanted = match collective {
            Collective::Barrier => &[(0, 0)][..],
            _ => &[(1, 1), (32768, 65535)],
        };
        assert!(wanted.contains(&range), "{class:?}");
        assert!((1..=4).contains(&class.methods.len()), "{class:?}");
        assert!(class.methods.is_sorted_by_key(|of| of.seconds), "{class:?}");
        let algorithms: BTreeSet<Method> =
            class.methods.iter().map(|of| of.method.clone().with_segment(0)).collect();
        assert_eq!(algorithms.len(), class.methods.len(), "{class:?}");
        for of in &class.methods {
            assert!(Runnable::new(collective, &of.method).unwrap().is_some(), "{}", of.method);
            assert!(of.method.is_own() && !of.method.shares_memory(), "{}", of.method);
            assert!(of.max_seconds >= 3.0 * of.seconds, "{of:?}: no error was measured");
        }
    }
    // A class for each size, the two long ones in one; on both layouts.
    let of = |collective| {
        found.classes.iter().filter(|class| class.point.collective == collective).count()
    };
    assert_eq!([Collective::Barrier, Collective::Bcast].map(of), [2, 4]);
    let layout: Layout = "4x4".parse().unwrap();
    let best = &found.find(Collective::Bcast, layout, 50_000)[0];
    let row = format!("bcast,4x4,32768,65535,\"{}\",", best.method);
    assert!(best.method.is_node_aware() && stdout.contains(&row), "{row}: {stdout}");
}

/// On four ranks a linear tree, chains of one and a 4-nomial tree are the same: one of them is enough.
#[test]
fn what_sends_the_same_messages_takes_no_place() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--procs", "4", "--collective", "bcast", "--sizes", "8"];
    let (found, _) = written(&calibrated(dir.path()), dir.path(), &flags);
    let seconds: BTreeSet<u64> =
        found.classes[0].methods.iter().map(|of| of.seconds.to_bits()).collect();
    assert_eq!(seconds.len(), 4, "{found:?}");
}

/// A tuning beside the calibration has measured how far the model is off.
#[test]
fn the_bound_is_of_the_error_that_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let calibration = calibrated(dir.path());
    let flags = ["--procs", "8", "--collective", "bcast,reduce", "--sizes", "8KiB"];
    let bounds = || -> BTreeMap<Collective, f64> {
        let (found, _) = written(&calibration, dir.path(), &flags);
        let bounds =
            found.classes.iter().map(|of| (of.point.collective, of.methods[0].max_seconds));
        bounds.collect()
    };
    let before = bounds();
    let error = |model: &str, method: Option<&str>, percentile_95| PredictionError {
        collective: Collective::Bcast,
        model: model.into(),
        method: method.map(|method| method.parse().unwrap()),
        region: None,
        times: 9,
        median: 0.1,
        percentile_95,
    };
    let penalties = Penalties {
        platform: Platform::default(),
        timing: String::new(),
        best: String::new(),
        message_size: BTreeMap::new(),
        summaries: Vec::new(),
        regions: Vec::new(),
        prediction_errors: vec![
            error("plogp", None, 0.1),
            error("refined", Some("own:linear"), 0.2),
            error("refined", None, 0.25),
        ],
        noise: Vec::new(),
        busy_links: Vec::new(),
        penalties: Vec::new(),
        warnings: Vec::new(),
    };
    document::write(&dir.path().join("penalty.json"), &penalties).unwrap();
    let after = bounds();
    let ratio = after[&Collective::Bcast] / before[&Collective::Bcast];
    assert!((ratio - 1.0 / 0.75 / 3.0).abs() < 1e-9, "{ratio}");
    assert_eq!(after[&Collective::Reduce], before[&Collective::Reduce], "not measured");
}

#[test]
fn what_cannot_be_ranked_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("adapt");
    let command = [
        "decide",
        "--calibration",
        "preset:frodo",
        "--procs",
        "8",
        "--candidates",
        to.to_str().unwrap(),
    ];
    for (flags, wanted) in [
        (
            &["--collective", "allgatherv"][..],
            "allgatherv: the preload library does not replace its calls",
        ),
        (&["--collective", "scan", "--model", "plogp"], "scan has no closed forms in model plogp"),
        (&["--segments", "auto"], "list the segment sizes, as in --segments 0,1KiB,8KiB"),
        (&["--model", "plogp,refined"], "name one model"),
        (&["--output", "x"], "cannot be used with"),
    ] {
        let (_, stderr) = run(2, &[&command[..], flags].concat());
        assert!(stderr.contains(wanted), "{flags:?}: {stderr}");
    }
    assert!(!to.exists(), "what is refused makes nothing");
}
