//! The main job on real MPI: measured, resumed after kills, exported, loaded, seen to take effect.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use records::{observation::CollectiveCall, record};
use serde_json::Value;

use crate::support::{can_make_a_testbed, colibri_process, have_mpirun, run};

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The bytes of every raw record in a run's directory.
fn records(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let Ok(entries) = fs::read_dir(directory) else { return BTreeMap::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let records = paths.filter(|path| path.extension().is_some_and(|end| end == "csv"));
    records.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

/// Every file in a run's directory that analysis makes of the records.
fn results(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut results = BTreeMap::new();
    for folder in [directory.to_path_buf(), directory.join("figures")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                results.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    results
}

/// Every batch of a run: its record completes its plan, or follows it to where its time was over.
fn assert_plans_followed(directory: &Path) {
    assert_plan_followed(directory, "plan.json", "measurements.csv");
    for batch in 2.. {
        let [plan, record] = [format!("plan-{batch}.json"), format!("measurements-{batch}.csv")];
        if !directory.join(&plan).exists() {
            return;
        }
        assert_plan_followed(directory, &plan, &record);
    }
}

/// No visit has more repetitions than wanted, and none has any after one that has fewer; whether all
/// have as many as wanted.
fn assert_plan_followed(directory: &Path, plan: &str, record: &str) -> bool {
    let plan = json(&directory.join(plan));
    let mut made: BTreeMap<u64, u64> = BTreeMap::new();
    for line in rows(&directory.join(record)) {
        if line.ends_with(",ok") || line.ends_with(",late") {
            let visit = line.split(',').next().unwrap().parse().unwrap();
            *made.entry(visit).or_default() += 1;
        }
    }
    assert!(!made.is_empty(), "{record} holds nothing");
    let mut is_over = false;
    for (visit, wanted) in (0_u64..).zip(plan["visits"].as_array().unwrap()) {
        let made = made.get(&visit).copied().unwrap_or_default();
        let wanted = wanted["repetitions"].as_u64().unwrap();
        assert!(made <= if is_over { 0 } else { wanted }, "visit {visit} of {record}: {made}");
        is_over |= made < wanted;
    }
    !is_over
}

/// The observations of a record, none where it is not there yet.
fn rows(record: &Path) -> Vec<String> {
    let text = fs::read_to_string(record).unwrap_or_default();
    // Before them, what is said of all, and the names of the columns.
    let table = text.lines().filter(|line| !line.starts_with('#'));
    table.skip(1).map(Into::into).collect()
}

/// Starts the command in a group of its own and kills that as soon as a record whose name begins so
/// has some observations.
fn kill_when_recorded(command: &mut Command, directory: &Path, record: &str) {
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(300);
    let is_recorded = |(path, _): &(PathBuf, Vec<u8>)| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(record) && rows(path).len() >= 3
    };
    while !records(directory).into_iter().any(|one| is_recorded(&one)) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before {record} had observations");
        assert!(Instant::now() < limit, "{record} has no observations");
        std::thread::sleep(Duration::from_millis(10));
    }
    // The shell's own kill: a small system has no program of that name.
    let kill = format!("kill -KILL -{}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    child.wait().unwrap();
}

fn namespaces_of_ours() -> Vec<String> {
    let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| line.starts_with("colibri-run-")).map(Into::into).collect()
}

/// On a busy machine anything may be slower; then it was taken out.
fn assert_nothing_slower_is_loaded(loading: &Value) {
    let place = |of: &Value| ["collective", "procs", "bytes", "method"].map(|key| of[key].clone());
    let places = |all: &Value| all.as_array().unwrap().iter().map(place).collect::<Vec<_>>();
    let harm = &loading["harm"];
    assert!(harm["points"].as_u64().unwrap() > 0, "{loading:#}");
    let (rejected, gains) = (places(&loading["rejected"]), places(&loading["gains"]));
    for slower in places(&harm["slower"]) {
        assert!(rejected.contains(&slower) && !gains.contains(&slower), "{loading:#}");
    }
}

/// What is exported after the tuning is what the tuning wrote, and where it wrote none, the same choices.
fn assert_exports_are_what_was_written(directory: &Path, summary: &Value) {
    let outside = tempfile::tempdir().unwrap();
    let export = |format: &str| {
        let path = outside.path().join(format);
        let run_directory = directory.to_str().unwrap();
        let export = ["export", run_directory, "--target", format, "-o", path.to_str().unwrap()];
        // Of another version than the run's.
        let of_6 = ["--target-version", "6.0"].into_iter().filter(|_| format == "openmpi-json");
        run(0, &export.into_iter().chain(of_6).collect::<Vec<_>>());
        path
    };
    let choices = json(&directory.join("choices.json"));
    let confirmed = |way: usize| choices["confirmed"][way]["choices"].as_array().unwrap();
    for (way, gains) in [(0, &summary["gains"]), (1, &summary["preload"]["gains"])] {
        let replaced = confirmed(way).iter().filter(|one| one["method"] != "default");
        let replaced: Vec<&Value> = replaced.collect();
        assert_eq!(replaced.len(), gains.as_array().unwrap().len());
        assert!(replaced.iter().all(|one| one["rests_on"] == "confirmed"), "{choices:#}");
        let left = confirmed(way).iter().filter(|one| one["method"] == "default");
        assert!(left.clone().all(|one| one["default_because"].is_string()), "{choices:#}");
    }

    assert_eq!(
        fs::read(export("openmpi")).unwrap(),
        fs::read(directory.join("openmpi.rules")).unwrap()
    );
    let profiles = export("profile");
    let names = |of: &Path| {
        let entries = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().file_name());
        entries.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(names(&profiles), names(&directory.join("profiles")));
    for name in names(&profiles) {
        let written = fs::read(directory.join("profiles").join(&name)).unwrap();
        assert_eq!(fs::read(profiles.join(&name)).unwrap(), written, "{name:?}");
    }
    let of_json = json(&export("openmpi-json").with_extension("export.json"));
    assert_eq!(of_json["basis"], "confirmed");
    assert_eq!(of_json["decisions"], confirmed(0).len());
    assert_eq!(of_json["unexpressed"], serde_json::json!([]), "{of_json:#}");

    // Without its choices a run is not chosen from anew.
    let (hidden, shown) = (directory.join("hidden.json"), directory.join("choices.json"));
    fs::rename(&shown, &hidden).unwrap();
    let (_, stderr) = run(2, &["export", directory.to_str().unwrap(), "--target", "openmpi"]);
    assert!(stderr.contains("--resume' completes it"), "{stderr}");
    fs::rename(&hidden, &shown).unwrap();
}

/// Each job had the next root, and each root its gain.
fn assert_roots_took_turns(directory: &Path, summary: &Value, stdout: &str) {
    // Where jobs start slowly, as on a busy machine, there is no time for two rounds.
    let has_two = directory.join("confirmation-2-1-default.csv").exists();
    let last = if has_two { "confirmation-2" } else { "confirmation-1" };
    for (file, root) in [
        ("measurements.csv", "0"),
        (&*format!("{last}-1-default.csv"), "0"),
        (&*format!("{last}-2-default.csv"), "last"),
        (&*format!("{last}-2-rules.csv"), "last"),
    ] {
        let header = record::read::<CollectiveCall>(&directory.join(file)).unwrap().header;
        assert_eq!(header.get("root").map(String::as_str), Some(root), "{file}");
    }
    let roots = summary["roots"].as_array().unwrap().iter().map(|gain| gain["root"].clone());
    assert_eq!(roots.collect::<Vec<_>>(), ["0", "last"]);
    assert!(stdout.contains("(root 0), ") && stdout.contains("(root last)."), "{stdout}");
}

/// The same through the preload library, by our own schedules.
fn assert_preloaded(directory: &Path, summary: &Value, stdout: &str) {
    let preload = &summary["preload"];
    assert_nothing_slower_is_loaded(preload);
    let gains = preload["gains"].as_array().unwrap();
    assert!(!gains.is_empty(), "{stdout}");
    assert!(gains.iter().all(|gain| gain["method"].as_str().unwrap().starts_with("own:")));
    assert!(preload["calls_observed"].as_u64().unwrap() > 0, "{stdout}");
    assert_eq!(preload["calls_observed"], preload["calls_as_told"], "{stdout}");
    assert!(stdout.contains("COLIBRI_PROFILES=") && stdout.contains("libcolibri.so"), "{stdout}");
    let profile = json(&directory.join("profiles/bcast-4.json"));
    assert_eq!((&profile["schema"], &profile["procs"]), (&"colibri/profile/1".into(), &4.into()));
    assert!(!profile["ranges"].as_array().unwrap().is_empty(), "{profile:#}");
}

/// One page with all figures in it, and nothing to fetch from a network.
fn assert_report_is_one_page(directory: &Path) {
    run(0, &["report", directory.to_str().unwrap()]);
    let page = fs::read_to_string(directory.join("report.html")).unwrap();
    for wanted in ["How to load it", "penalties", "parameters", "Measured on", "coll_tuned_dynamic"]
    {
        assert!(page.contains(wanted), "{wanted}");
    }
    let unfolded: String =
        page.split("<details>").map(|part| part.split("</details>").last().unwrap()).collect();
    assert!(page.contains("<table>") && !unfolded.contains("<table>"), "a table is not folded");
    assert!(page.find("Verdict").unwrap() < page.find("coll_tuned_dynamic").unwrap());
    assert!(page.matches("<svg").count() >= 4, "{}", page.matches("<svg").count());
    assert!(!page.contains("src=") && !page.contains("href="), "something is fetched");
    fs::remove_file(directory.join("report.html")).unwrap();
}

/// Kills of everything while it calibrates, measures and confirms: nothing recorded is lost or changed, the same
/// plan is completed, nothing stays behind, the exported file takes effect.
#[test]
fn a_killed_tuning_run_is_resumed_to_its_end() {
    let Some(_turn) = can_make_a_testbed("a_killed_tuning_run_is_resumed_to_its_end") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("run");
    let arguments = [
        "tune",
        directory.to_str().unwrap(),
        "--testbed",
        "4",
        "--collective",
        "bcast",
        "--procs",
        "2,4",
        "--sizes",
        "64,8KiB,256KiB",
        "--budget",
        "40s",
        "--roots",
        "0,last",
    ];
    // Repeated or not, the options are the same.
    let mut resume = None;
    for record in ["observations", "measurements", "confirmation-1"] {
        let mut command = colibri_process(arguments.iter().copied().chain(resume));
        kill_when_recorded(&mut command, &directory, record);
        resume = Some("--resume");
    }
    let resume = [arguments[0], arguments[1], "--resume", "--details"];
    let before = records(&directory);
    let plan_before = fs::read(directory.join("plan.json")).unwrap();

    let (mut stdout, stderr) = run(0, &resume);
    for (path, bytes) in before {
        let now = fs::read(&path).unwrap();
        assert!(now.starts_with(&bytes), "{} was changed\n{stderr}", path.display());
    }
    assert_eq!(fs::read(directory.join("plan.json")).unwrap(), plan_before, "another plan");
    assert_plans_followed(&directory);
    assert_eq!(namespaces_of_ours(), Vec::<String>::new());

    // At 256 KiB over 4 nodes the default's binomial tree is far behind a pipeline. On a busy machine there may be no
    // time for enough pairs of jobs to confirm that: then with more of it, as the verdict advises.
    let mut summary = json(&directory.join("summary.json"));
    let is_empty = |gains: &Value| gains.as_array().unwrap().is_empty();
    if is_empty(&summary["gains"]) || is_empty(&summary["preload"]["gains"]) {
        assert!(stdout.contains("`--resume --budget "), "{stdout}");
        (stdout, _) = run(0, &[&resume[..], &["--budget", "3m"]].concat());
        summary = json(&directory.join("summary.json"));
    }
    assert!(!summary["gains"].as_array().unwrap().is_empty(), "{stdout}");
    assert!(summary["calls_observed"].as_u64().unwrap() > 0, "{stdout}");
    assert_eq!(summary["calls_observed"], summary["calls_as_told"], "{stdout}");
    assert!(stdout.contains("coll_tuned_dynamic_rules_filename"), "{stdout}");
    assert!(stdout.contains("significantly more than 5 %"));
    assert_nothing_slower_is_loaded(&summary);
    // All links at once, among 3 nodes and among 4, at 6 sizes: as many as there was time for.
    let links = json(&directory.join("penalty.json"))["busy_links"].clone();
    assert!((1..=2 * 6).contains(&links.as_array().unwrap().len()), "{links}");

    assert_roots_took_turns(&directory, &summary, &stdout);
    assert_preloaded(&directory, &summary, &stdout);
    assert_exports_are_what_was_written(&directory, &summary);
    assert_report_is_one_page(&directory);

    // The same record analysed again gives the same files.
    let first = results(&directory);
    assert!(first.keys().any(|path| path.ends_with("figures/penalty-bcast.svg")));
    let (again, _) = run(0, &resume);
    assert_eq!(again, stdout);
    for (path, bytes) in results(&directory) {
        assert!(first.get(&path) == Some(&bytes), "{} differs", path.display());
    }
    let (_, stderr) = run(2, &[&resume[..], &["--seed", "2"]].concat());
    assert!(stderr.contains("--seed was 1 by default, is now 2;"), "{stderr}");
}

/// Steps by hand on local ranks, as the documentation tells them.
#[test]
fn calibrate_decide_verify_and_export_work_on_local_ranks() {
    let Some(_turn) = have_mpirun("calibrate_decide_verify_and_export_work_on_local_ranks") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let directory = path("run");
    let calibrate =
        ["calibrate", &directory, "--ranks", "2", "--sizes", "0..64KiB", "--budget", "5s"];
    let (stdout, _) = run(0, &calibrate);
    assert!(stdout.contains("LogGP") && stdout.contains("2 ranks"), "{stdout}");
    let calibration = path("run/calibration.json");
    let first = fs::read(&calibration).unwrap();
    run(0, &["calibrate", &directory, "--from-record"]);
    assert_eq!(fs::read(&calibration).unwrap(), first, "the same record, another calibration");

    let grid = ["--collective", "bcast,reduce", "--procs", "2", "--sizes", "64,4KiB"];
    let decide = ["decide", "--calibration", &calibration, "--target", "openmpi"];
    let decisions = path("decisions.json");
    run(0, &[&decide[..], &grid, &["--output", &decisions]].concat());

    // What a rules file can name: methods of memory, which may be faster, are not among it.
    let verify = ["verify", &directory, "--ranks", "2", "--rounds", "2", "--methods", "native"];
    let (stdout, _) = run(0, &[&verify[..], &grid].concat());
    assert!(stdout.contains("reduce") && stdout.contains("plogp"), "{stdout}");
    // There was no budget.
    assert!(assert_plan_followed(Path::new(&directory), "plan.json", "measurements.csv"));
    let penalty = path("run/penalty.json");
    let first = fs::read(&penalty).unwrap();
    run(0, &["verify", &directory, "--from-record"]);
    assert_eq!(fs::read(&penalty).unwrap(), first, "the same record, other penalties");

    // What is exported, judged by what it was made of, is what was measured best.
    let (exported, plain) = (path("exported.rules"), path("plain.rules"));
    let export = ["export", &directory, "--target", "openmpi", "--commutative", "--unconfirmed"];
    run(0, &[&export[..], &["--output", &exported]].concat());
    fs::write(&plain, "1\n7 1\n0 1\n0 3 0 4 # 4-byte segments were not measured\n").unwrap();
    let others = [("exported", &exported), ("plain", &plain), ("models", &decisions)];
    let others = others.map(|(name, path)| format!("--judge={name}={path}"));
    let judge = ["verify", &directory, "--from-record", "--compare", "exported,measured"];
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let (stdout, _) = run(0, &[&judge[..], &others].concat());
    assert!(stdout.contains("exported and measured agree at 4 of 4 points"), "{stdout}");
    assert!(stdout.contains("models:plogp") && stdout.contains("noise of reduce"), "{stdout}");
    let untimed = "plain: at 2 points the decided method was not measured";
    assert!(stdout.contains(untimed), "{stdout}");
    let agreement = json(&dir.path().join("run/agreement.json"));
    assert_eq!(agreement["differing"], 0);
    let (_, stderr) = run(2, &["verify", &directory, "--from-record", "--compare", "mine,default"]);
    assert!(stderr.contains("no decisions of 'mine' are judged; there are: "), "{stderr}");
    fs::write(&plain, "1\n7 1\n0 1\n8 3 0 4\n").unwrap();
    let (_, stderr) = run(1, &["verify", &directory, "--from-record", others[1]]);
    assert!(stderr.contains("plain.rules, line 4: the first message size is 8"), "{stderr}");

    let (rules, _) = run(0, &["export", &directory, "--target", "openmpi", "--unconfirmed"]);
    assert!(rules.contains("# bcast") && rules.contains("# reduce"), "{rules}");
    let model = ["--decisions", &decisions, "--calibration", &calibration, "--model", "loggp"];
    let (rules, _) =
        run(0, &[&["export", "--unconfirmed", "--target", "openmpi"], &model[..]].concat());
    assert!(rules.contains("decided by the model loggp, not measured"), "{rules}");
}
