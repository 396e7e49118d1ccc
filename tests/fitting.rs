//! Parameters fitted to what was imported, and what is decided by them.

use std::{
    fmt::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use records::Collective;

use crate::{
    importing::{imported, pico, sample, text},
    support::run,
};

/// Open MPI's methods, some with segments of 8 KiB, whose times are made up.
const METHODS: &[(Collective, &str)] = &[
    (Collective::Allgather, "linear bruck recursive-doubling ring neighbor-exchange"),
    (Collective::Allreduce, "linear recursive-doubling ring segmented-ring/8 rabenseifner"),
    (Collective::Alltoall, "linear pairwise bruck"),
    (
        Collective::Bcast,
        "linear k-chain pipeline splitted-binary binary binomial k-nomial scatter-allgather \
         scatter-allgather-ring k-chain/8 pipeline/8 splitted-binary/8 binary/8 binomial/8",
    ),
    (Collective::Exscan, "linear recursive-doubling"),
    (Collective::Gather, "linear binomial"),
    (
        Collective::Reduce,
        "linear k-chain pipeline binary binomial in-order-binary rabenseifner k-chain/8 pipeline/8 \
         binary/8 binomial/8",
    ),
    (Collective::ReduceScatter, "recursive-halving ring"),
    (Collective::ReduceScatterBlock, "recursive-halving"),
    (Collective::Scan, "linear recursive-doubling"),
    (Collective::Scatter, "linear binomial"),
];

/// Imports a record of all these methods at 2, 4, 8, ... up to 8,192 ranks, and tells how many cells it has.
fn made_up_record(folder: &Path, sizes: &[u64]) -> (std::path::PathBuf, usize) {
    let (mut rows, mut cells) = (String::from("collective,method,procs,bytes,seconds,job\n"), 0);
    let methods = METHODS.iter().flat_map(|&(collective, names)| {
        names.split_whitespace().map(move |name| (collective, name))
    });
    for (collective, name) in methods {
        let (name, segment) =
            name.split_once('/').map_or((name, ""), |(name, _)| (name, ",segment=8KiB"));
        let is_logarithmic = !name.ends_with("ring") && !name.ends_with("chain");
        let is_logarithmic = is_logarithmic && !["linear", "pairwise", "pipeline"].contains(&name);
        for procs in (1..=13).map(|power| 1_u32 << power) {
            for &bytes in sizes {
                let rounds = if is_logarithmic { procs.ilog2() } else { procs - 1 };
                for job in 1..3 {
                    // Each a little off.
                    cells += usize::from(job == 1);
                    let off = 1.0 + 0.1 * f64::sin(f64::from(cells as u32) + 0.1 * f64::from(job));
                    let seconds = off * (2e-6 * f64::from(rounds) + 2e-10 * bytes as f64);
                    writeln!(
                        rows,
                        "{collective},\"native:openmpi:{name}{segment}\",{procs},{bytes},{seconds:e},{job}"
                    )
                    .unwrap();
                }
            }
        }
    }
    let file = folder.join("times.csv");
    std::fs::write(&file, rows).unwrap();
    (imported(folder, "csv", &[file], &["--mpi-library", "Open MPI 4.1.5"]).0, cells)
}

/// A ring on so many ranks has a message for each pair of them: 6.7e7.
#[test]
#[ignore = "takes minutes: make test-long"]
fn times_on_thousands_of_ranks_are_fitted_and_replayed_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (run_directory, cells) = made_up_record(folder.path(), &[1 << 16]);
    assert!(cells > 500, "{cells}");
    let begun = Instant::now();
    let (table, _) = run(0, &["fit", text(&run_directory)]);
    assert!(table.contains("reduce_scatter  native:openmpi:ring"), "{table}");
    let judged = ["fit", "--leave-out", "procs", "--procs", "8192", text(&run_directory)];
    let (table, _) = run(0, &judged);
    assert!(of_all(&table, "structure").0 < 100.0, "{table}");
    let (table, _) = run(0, &["tune", "--cells", "50%", "--replay", text(&run_directory)]);
    assert!(table.contains("share of time"), "{table}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn four_thousand_cells_are_fitted_without_each_number_of_processes_within_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    let sizes: Vec<u64> = (2..8).map(|power| 1_u64 << (3 * power)).collect();
    let (run_directory, cells) = made_up_record(folder.path(), &sizes);
    assert!((3800..4200).contains(&cells), "{cells}");
    let begun = Instant::now();
    let (table, stderr) = run(0, &["fit", "--leave-out", "procs", text(&run_directory)]);
    let took = begun.elapsed();
    assert!(table.contains("allreduce"), "{table}");
    assert!(took < Duration::from_secs(60), "{took:?}");
    // A line each 10 s.
    let told = stderr.contains("fitting to a part and judging the rest: ");
    assert!(told || took < Duration::from_secs(15), "{took:?}: {stderr}");
}

/// Mean and 95th percentile in the line of all collectives, in per cent.
fn of_all(table: &str, decided_by: &str) -> (f64, f64) {
    let begins = |line: &&str| line.split_whitespace().take(2).eq(["all", decided_by]);
    let line = table.lines().find(begins).unwrap_or_else(|| panic!("{decided_by}: {table}"));
    let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    (numbers[1], numbers[2])
}

#[test]
fn parameters_are_fitted_to_collectives_and_models_judged_by_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = pico(folder.path(), "mare-nostrum-5");
    let (run_directory, _) = imported(folder.path(), "pico", &[file], &["--library-only"]);
    let (table, _) = run(0, &["fit", text(&run_directory)]);
    assert!(table.contains("collectives cannot separate L, o and g"), "{table}");
    let path = run_directory.join("calibration.json");
    let fitted: records::calibration::Calibration = records::document::read(&path).unwrap();
    let hockney = &fitted.measured.hockney;
    // 200 Gbit/s ports, and some microseconds from program to program.
    assert!((1e-6..5e-6).contains(&hockney.alpha_seconds.value), "{hockney:?}");
    assert!((4e-11..2e-10).contains(&hockney.beta_seconds_per_byte.value), "{hockney:?}");
    let (_, stderr) = run(2, &["fit", text(&run_directory)]);
    assert!(stderr.contains("--overwrite"), "{stderr}");

    let (table, _) = run(0, &["verify", "--from-record", text(&run_directory)]);
    assert!(table.contains("Prediction error, |predicted / measured - 1|"), "{table}");
    let judged: records::penalty::Penalties =
        records::document::read(&run_directory.join("penalty.json")).unwrap();
    let ring: records::Method = "native:openmpi:ring".parse().unwrap();
    let of_ring = judged.prediction_errors.iter().filter(|it| it.method == Some(ring.clone()));
    let in_regions = of_ring.clone().filter(|it| it.region.is_some()).count();
    assert!(in_regions > 0 && of_ring.count() > in_regions);
    assert!(run_directory.join("figures/predicted-allreduce-size.svg").exists());

    let figure = folder.path().join("models.svg");
    let leave_out = ["fit", "--leave-out", "sizes", "--procs", "32", "--figure", text(&figure)];
    let (table, _) = run(0, &[&leave_out[..], &[text(&run_directory)]].concat());
    let (_, stderr) = run(2, &["fit", "--leave-out", "sizes", "--figure", "f.pdf", "no-such-run"]);
    assert!(stderr.contains("ends with .svg or .png"), "{stderr}");
    let drawn = std::fs::read_to_string(&figure).unwrap();
    assert!(drawn.contains("refined") && drawn.contains("hockney"));
    assert!(table.contains("where all decide"), "{table}");
    // The tables know no allgather; its schedules are known.
    let is_unknown = |line: &str| line.split_whitespace().filter(|word| *word == "-").count() == 3;
    let of_allgather = |line: &&str| line.contains("allgather") && line.contains("ring");
    assert!(table.lines().find(of_allgather).is_some_and(is_unknown), "{table}");
    let (transferred, nearest) = (of_all(&table, "transferred"), of_all(&table, "nearest"));
    assert!(transferred.0 < 6.0 && transferred.1 < 30.0, "{table}");
    assert!(transferred.0 < nearest.0, "{table}");
    assert!(table.contains("Times interpolated at sizes left out"), "{table}");
    assert!(of_all(&table, "default").0 > 50.0, "{table}");
}

/// Of a library whose methods Colibri can't load, models decide among what was measured.
#[test]
fn models_decide_among_the_measured_methods_of_any_library() {
    let folder = tempfile::tempdir().unwrap();
    let file = pico(folder.path(), "lumi-4-to-32");
    let (run_directory, _) = imported(folder.path(), "pico", &[file], &["--library-only"]);
    run(0, &["fit", text(&run_directory)]);
    let (table, _) = run(0, &["verify", "--from-record", text(&run_directory)]);
    assert!(!table.contains("was not measured"), "{table}");
    let judged: records::penalty::Penalties =
        records::document::read(&run_directory.join("penalty.json")).unwrap();
    let by_refined = judged.penalties.iter().filter(|one| one.decided_by == "refined");
    assert!(by_refined.clone().count() > 30);
    assert!(by_refined.clone().all(|one| one.decided.to_string().starts_with("native:mpich:")));
}

/// What was measured on 8 and 64 nodes decides on 512.
#[test]
fn decisions_are_carried_to_more_processes() {
    let folder = tempfile::tempdir().unwrap();
    let file = pico(folder.path(), "fugaku-8-64-512");
    let (run_directory, _) = imported(folder.path(), "pico", &[file], &["--library-only"]);
    let leave_out = ["fit", "--leave-out", "procs", "--procs", "512", text(&run_directory)];
    let (table, _) = run(0, &leave_out);
    let (mean, upper) = of_all(&table, "transferred");
    assert!(mean < 5.0 && upper < 25.0, "{table}");
    assert!(mean < of_all(&table, "nearest").0, "{table}");
}

#[test]
fn messages_between_pairs_tell_latency_rate_and_how_a_port_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["latency", "bw", "mbw_mr_2", "mbw_mr_16", "mbw_mr_32"];
    let files = names.map(|name| sample(&format!("osu/omb-Osu_{name}.txt")));
    let (run_directory, _) = imported(folder.path(), "osu", &files, &[]);
    let (table, _) = run(0, &["fit", text(&run_directory)]);
    assert!(table.contains("16 pairs together"), "{table}");
    assert!(table.contains("o is between 0 and"), "{table}");
    let path = run_directory.join("calibration.json");
    let fitted: records::calibration::Calibration = records::document::read(&path).unwrap();
    let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.05;
    assert!(near(fitted.measured.hockney.alpha_seconds.value, 1e-6));
    assert!(near(fitted.measured.loggp.gap_seconds_per_byte.value, 1.0 / 12.07e9));
    assert!(near(fitted.measured.loggp.gap_seconds.value, 132e-9));
    // An allreduce of 4 bytes on 2x32 was measured to take 5.47 us: with one rank's rate for all of a
    // node's it would be twice that.
    let sought = ["--collective", "allreduce", "--algorithm", "recursive-doubling", "--sizes", "4"];
    let how = ["--layouts", "2x32", "--model", "refined", "--segments", "0", "--format", "csv"];
    let calibration = ["predict", "--calibration", text(&path)];
    let (table, _) = run(0, &[&calibration[..], &sought, &how].concat());
    let seconds: f64 = table.lines().nth(1).unwrap().split(',').nth(8).unwrap().parse().unwrap();
    assert!((4e-6..8e-6).contains(&seconds), "{table}");
}

/// Times of one node, as OSU's benchmarks tell them: sizes up to 64 KiB decide those above.
#[test]
fn ranks_of_one_node_are_fitted_by_their_memory_and_larger_sizes_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("times.csv");
    let mut rows = String::from("collective,algorithm,procs,layout,bytes,us\n");
    for (name, per_procs, per_level) in
        [("linear", 0.5, 0.0), ("pipeline", 1.0, 0.0), ("chain", 0.25, 0.0), ("binomial", 0.0, 1.8)]
    {
        for procs in [8_u32, 16] {
            for bytes in [4096_u32, 16384, 65536, 262_144, 1_048_576] {
                let messages = per_procs * f64::from(procs) + per_level * f64::from(procs.ilog2());
                let us = messages * (0.3 + 1e-4 * f64::from(bytes));
                writeln!(rows, "bcast,{name},{procs},1x{procs},{bytes},{us}").unwrap();
            }
        }
    }
    std::fs::write(&file, rows).unwrap();
    let columns = "collective=collective,procs=procs,bytes=bytes,method=algorithm,nodes=layout,\
                   seconds=us:us,statistic:=mean over repetitions and ranks";
    let flags = ["--mpi-library", "Open MPI 4.1.6", "--columns", columns];
    let (run_directory, _) = imported(folder.path(), "csv", &[file], &flags);
    let (table, _) = run(0, &["fit", text(&run_directory)]);
    let told =
        "Copies in the memory of one node, fitted to 40 times, which are means over the ranks";
    assert!(table.contains(told), "{table}");
    let path = run_directory.join("calibration.json");
    let fitted: records::calibration::Calibration = records::document::read(&path).unwrap();
    let memory = fitted.measured.memory.unwrap();
    assert_eq!(memory.slowdown.iter().map(|row| row.busy_ranks).collect::<Vec<_>>(), [4, 8, 16]);

    let above = ["fit", "--leave-out", "sizes", "--above", "64KiB", text(&run_directory)];
    let (table, _) = run(0, &above);
    let points = |line: &str| line.split_whitespace().nth(2).map(str::to_owned);
    let of_refined =
        table.lines().find(|line| line.starts_with("bcast") && line.contains("refined"));
    assert_eq!(of_refined.and_then(points).as_deref(), Some("4"), "{table}");
    let (_, stderr) =
        run(2, &["fit", "--leave-out", "procs", "--above", "1", text(&run_directory)]);
    assert!(stderr.contains("--above is for --leave-out sizes, not for procs"), "{stderr}");
}

/// Two methods with one crossing at 90 kB, and a third that never wins: the engine need not look at all of that.
#[test]
fn a_replay_tells_how_few_cells_would_have_sufficed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("times.csv");
    let mut rows = String::from("collective,method,procs,bytes,seconds\n");
    for bytes in (0..12).map(|power| 4_u64.pow(power)) {
        let m = bytes as f64;
        for (method, seconds) in [
            ("default", 3e-5 + 1.2e-9 * m),
            ("native:openmpi:binomial", 1e-5 + 1e-9 * m),
            ("native:openmpi:pipeline", 6e-5 + 4.5e-10 * m),
            ("native:openmpi:linear", 9e-5 + 3e-9 * m),
        ] {
            rows += &format!("bcast,{method},8,{bytes},{seconds:e}\n");
        }
    }
    std::fs::write(&file, rows).unwrap();
    let (run_directory, _) = imported(folder.path(), "csv", &[file], &[]);
    let (table, _) = run(0, &["tune", "--replay", text(&run_directory), "--cells", "0.5,10%,100%"]);
    let rows: Vec<Vec<f64>> = table
        .lines()
        .skip_while(|line| !line.contains("share of time"))
        .skip(1)
        .map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
        .filter(|numbers: &Vec<f64>| numbers.len() == 5)
        .collect();
    // Cells, their share, share of the time, mean and 95th percentile of the penalty.
    assert_eq!(rows[0][0], 5.0, "{table}");
    let (half, last) = (&rows[1], rows.last().unwrap());
    assert!(half[0] <= 24.0 && half[3] < 154.4 / 2.0, "{table}");
    assert!(last[3] < 2.0, "{table}");
    assert!(
        table.contains("\nPenalty of the default: mean 154.4 %, 95th percentile 200.0 %\n"),
        "{table}"
    );
    for cells in ["0", "101%", "50", "x", "10%,,20%"] {
        let (_, stderr) = run(2, &["tune", "--cells", cells, "--replay", text(&run_directory)]);
        let wanted = "expected a share above 0% and up to 100%, as 5% or 0.05";
        assert!(stderr.contains(wanted), "{cells}: {stderr}");
    }
}
