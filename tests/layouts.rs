//! One run holds several layouts of one number of ranks, each timed, chosen for and exported on its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use records::{Layout, choices::Choices, document, penalty::Penalties};

use crate::{
    importing::{calls, imported, text},
    support::{StandingTestbed, can_make_a_testbed, levelled_calibration, run},
};

const SIZES: [u64; 3] = [64, 8192, 262_144];

/// Methods of bcast and how long each takes on both layouts, by the fastest one's time on four nodes.
const METHODS: [(&str, [f64; 2]); 5] = [
    ("default", [4.0, 6.0]),
    ("native:openmpi:binomial", [2.0, 5.0]),
    ("native:openmpi:pipeline,segment=8KiB", [3.0, 2.4]),
    ("own:binomial", [1.0, 5.0]),
    ("own:pipeline,segment=8KiB", [3.0, 2.0]),
];

/// Four jobs as a table: 4 ranks on 4 nodes and on 2, in some jobs both.
fn table(folder: &Path) -> PathBuf {
    let mut text =
        "collective,method,procs,bytes,seconds,repetition,job,nodes,library\n".to_owned();
    for job in 0..4 {
        for (place, layout) in ["4x1", "2x2"].into_iter().enumerate() {
            for bytes in SIZES {
                for (method, times) in METHODS {
                    for repetition in 0..6 {
                        let noise = 1.0 + 1e-3 * f64::from((7 * repetition + 3 * job) % 5);
                        let seconds = times[place] * noise * (1e-5 + 1e-9 * bytes as f64);
                        text += &format!(
                            "bcast,\"{method}\",4,{bytes},{seconds},{repetition},job {job},{layout},Open MPI v4.1.4\n"
                        );
                    }
                }
            }
        }
    }
    let file = folder.join("table.csv");
    fs::write(&file, text).unwrap();
    file
}

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// How many calls there are on each layout.
fn counted(run: &Path) -> BTreeMap<Layout, usize> {
    let mut counts = BTreeMap::new();
    let names =
        ["measurements.csv", "measurements-2.csv", "measurements-3.csv", "measurements-4.csv"];
    for row in names.into_iter().flat_map(|name| calls(run, name).rows) {
        *counts.entry(row.point.layout).or_default() += 1;
    }
    counts
}

/// What is chosen on each layout.
fn chosen(run: &Path) -> BTreeMap<Layout, BTreeSet<String>> {
    let choices: Choices = document::read(&run.join("choices.json")).unwrap();
    let mut of_layouts: BTreeMap<Layout, BTreeSet<String>> = BTreeMap::new();
    for chosen in choices.choices {
        of_layouts.entry(chosen.point.layout).or_default().insert(chosen.method.to_string());
    }
    of_layouts
}

#[test]
fn imported_layouts_of_one_number_of_ranks_are_judged_and_exported_each_on_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (all, _) = imported(folder.path(), "csv", &[table(folder.path())], &[]);
    let each = 4 * SIZES.len() * METHODS.len() * 6;
    assert_eq!(counted(&all), BTreeMap::from([(layout("4"), each), (layout("2x2"), each)]));

    // They come back from other forms.
    for form in ["csv", "reprompi"] {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("files");
        run(0, &["export", text(&all), "--record", form, "--output", text(&files)]);
        let written = fs::read_dir(&files).unwrap().map(|entry| entry.unwrap().path());
        let (back, _) = imported(folder.path(), form, &written.collect::<Vec<_>>(), &[]);
        assert_eq!(counted(&back), counted(&all), "{form}");
    }

    run(0, &["verify", "--from-record", text(&all)]);
    let best = |name: &str| BTreeSet::from([name.to_owned()]);
    let wanted = BTreeMap::from([
        (layout("4"), best("own:binomial")),
        (layout("2x2"), best("own:pipeline,segment=8KiB")),
    ]);
    assert_eq!(chosen(&all), wanted);
    let penalties: Penalties = document::read(&all.join("penalty.json")).unwrap();
    for (of, penalty) in [("4", 3.0), ("2x2", 2.0)] {
        let here = penalties
            .penalties
            .iter()
            .filter(|one| one.point.layout == layout(of) && one.decided_by == "default");
        let here: Vec<f64> = here.map(|one| one.penalty).collect();
        assert_eq!(here.len(), SIZES.len());
        assert!(here.iter().all(|one| (one - penalty).abs() < 0.1), "{of}: {here:?}");
    }

    // A profile is of one layout; rules know the number of ranks alone: it is said whose they hold, and what
    // the others lose.
    let target = |name: &str| folder.path().join(name);
    let export = |format: &'static str, name: &str, layouts: &[&str], code| {
        let to = target(name);
        let command =
            ["export", text(&all), "--target", format, "--unconfirmed", "--output", text(&to)];
        let (_, stderr) = run(code, &[&command[..], layouts].concat());
        stderr
    };
    export("profile", "profiles", &[], 0);
    assert_eq!(fs::read_dir(target("profiles")).unwrap().count(), 2);
    for (format, asked) in [("openmpi", "Open MPI 4.1"), ("pgtune", "PGMPITuneLib")] {
        let error = export(format, "none", &[], 2);
        let wanted =
            format!("{asked} distinguishes only the number of ranks, but 4 ranks were measured");
        assert!(error.contains(&wanted) && error.contains("as 4x1 and 2x2"), "{error}");
        assert!(!target("none").exists());
    }
    for (of, algorithm, lost, where_lost) in [
        ("4x1", 6, 150, "on 4 ranks (2 nodes x 2), binomial instead of pipeline"),
        ("2x2", 3, 200, "on 4 ranks, pipeline 8 KiB instead of binomial"),
    ] {
        let said = export("openmpi", of, &["--layouts", of], 0);
        for wanted in [
            &format!("4 ranks take the choices for {of}"),
            &format!("  {lost}.0 % at most: bcast of "),
            where_lost,
        ] {
            assert!(said.contains(wanted), "{wanted}: {said}");
        }
        let rules = fs::read_to_string(target(of)).unwrap();
        assert!(rules.contains(&format!("\n64 {algorithm} ")), "{rules}");
    }

    run(0, &["report", text(&all)]);
    let report = fs::read_to_string(all.join("report.html")).unwrap();
    for words in ["4 ranks", "4 ranks (2 nodes x 2)"] {
        assert!(report.contains(words), "{words}");
    }

    // Parameters of both levels follow from both layouts, and decide for each.
    let (fitted, _) = run(0, &["fit", text(&all)]);
    assert!(fitted.contains("alpha inside nodes"), "{fitted}");
    let decide =
        ["decide", "--calibration", text(&all), "--collective", "bcast", "--model", "hockney"];
    let (decided, _) = run(0, &[&decide[..], &["--layouts", "4x1,2x2", "-m", "8KiB"]].concat());
    assert!(decided.contains(" 2x2 ") && decided.contains(" 4 "), "{decided}");
    let predict = ["predict", "--calibration", text(&all), "--collective", "bcast", "--layouts"];
    let figure = target("predicted.svg");
    let at = ["--model", "hockney", "-m", "64,8KiB", "--figure", text(&figure)];
    run(0, &[&predict[..], &["4x1,2x2"], &at].concat());
    let drawn = fs::read_to_string(&figure).unwrap();
    assert!(drawn.contains("2 nodes x 2"), "each layout has its panel");
    // Times of two layouts lie on no common curve.
    run(0, &["verify", "--from-record", text(&all)]);
    let drawn = fs::read_to_string(all.join("figures/predicted-bcast-size.svg")).unwrap();
    assert!(drawn.contains("bcast, 4 ranks (2 nodes x 2)"), "one layout is drawn");
}

/// What is not wanted is left out, and said.
#[test]
fn some_of_several_layouts_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--only-layouts", "2x2"];
    let (some, said) = imported(folder.path(), "csv", &[table(folder.path())], &flags);
    assert_eq!(counted(&some).into_keys().collect::<Vec<_>>(), [layout("2x2")]);
    let rows = 4 * SIZES.len() * METHODS.len() * 6;
    assert!(said.contains(&format!("left out: 4 ranks as 4x1 ({rows} rows)")), "{said}");
}

/// Both layouts are communicators of one job; each is timed by several methods and has its own choice.
#[test]
fn layouts_of_one_number_of_ranks_are_measured_each_on_its_own() {
    let test = "layouts_of_one_number_of_ranks_are_measured_each_on_its_own";
    let Some(_turn) = can_make_a_testbed(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("run");
    fs::create_dir(&target).unwrap();
    levelled_calibration(&target.join("calibration.json"));
    let standing = StandingTestbed::up("layouts", &["--nodes", "4", "--ppn", "2"]);
    let verify = ["verify", text(&target), "--testbed", &standing.name, "--layouts", "4x1,2x2"];
    let what = ["--collective", "bcast", "--sizes", "64", "--methods", "native", "--segments", "0"];
    run(0, &[&verify[..], &what, &["--budget", "5s"]].concat());
    drop(standing);
    let timed = calls(&target, "measurements.csv").rows;
    for name in ["4", "2x2"] {
        let here = timed.iter().filter(|row| row.point.layout == layout(name));
        let methods: BTreeSet<String> = here.map(|row| row.method.to_string()).collect();
        assert!(methods.contains("default") && methods.len() > 2, "{name}: {methods:?}");
    }
    assert_eq!(chosen(&target).into_keys().collect::<Vec<_>>(), [layout("4"), layout("2x2")]);
}
