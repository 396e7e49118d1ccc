//! How long our algorithms take on the runner, against the MPI library's own of the same name:
//! paired, alternated in one run, with bootstrap intervals.
//!
//!     cargo bench --bench runner              two ranks over shared memory, and the virtual cluster
//!     cargo bench --bench runner -- shared    one of them
//!     cargo bench --bench runner -- cluster 20 1024,1048576      rounds and sizes
//!
//! Wants the programs of `cargo build --release --workspace`, Open MPI, a quiet machine and, for
//! the cluster, root.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use records::{
    Collective, Method, document,
    observation::{CollectiveCall, Status},
    openmpi,
    plan::{Cell, Plan, Visit},
    record,
};
use testbed::{OpenMpi, Shims, Spec};
use verification::statistics::{median, quantile};

/// What is compared: the same algorithm, ours and the library's.
const ALGORITHMS: [(Collective, &str); 7] = [
    (Collective::Bcast, "linear"),
    (Collective::Bcast, "pipeline,segment=8KiB"),
    (Collective::Bcast, "binomial"),
    (Collective::Bcast, "binary,segment=8KiB"),
    (Collective::Bcast, "splitted-binary,segment=8KiB"),
    (Collective::Reduce, "pipeline,segment=8KiB"),
    (Collective::Reduce, "binomial"),
];

const SIZES: [u64; 6] = [1, 64, 1024, 8192, 65_536, 1 << 20];

/// The interval's lower end that our algorithms are to stay below.
const ALLOWED: f64 = 1.05;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).filter(|text| text != "--bench").collect();
    let place = arguments.first().map_or("both", |text| text);
    ensure!(
        ["both", "shared", "cluster"].contains(&place),
        "{place} is neither shared nor cluster"
    );
    let rounds = arguments.get(1).map_or(Ok(30), |text| text.parse()).context("rounds")?;
    let sizes = match arguments.get(2) {
        Some(text) => text.split(',').map(str::parse).collect::<Result<_, _>>().context("sizes")?,
        None => SIZES.to_vec(),
    };
    let own = env::current_exe()?;
    let programs = own.parent().and_then(Path::parent).context("no folder of programs")?;
    if place != "cluster" {
        println!("2 ranks over shared memory");
        compare(2, rounds, &sizes, |arguments| {
            let mut command = Command::new(OpenMpi::find()?.mpirun());
            command
                .args(["-np", "2", "--mca", "btl", "self,vader"])
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
                .arg(programs.join("colibri-measure"))
                .args(arguments);
            run(command)
        })?;
    }
    if place != "shared" {
        println!("8 nodes at 100 Mbit/s");
        let name = format!("bench-{}", std::process::id());
        let testbed = testbed::up(&Spec::new(&name, 8, "100mbit".parse()?)?)?;
        let shims =
            Shims { sleep_on_yield: Some(programs.join("libcolibri_yield.so")), tracer: None };
        let outcome = compare(8, rounds, &sizes, |arguments| {
            let mut command = testbed.mpirun(&OpenMpi::find()?, 8, &shims, &[])?;
            command.arg(programs.join("colibri-measure")).args(arguments);
            run(command)
        });
        testbed::down(&name)?;
        outcome?;
    }
    Ok(())
}

fn run(mut command: Command) -> Result<()> {
    command.env("OMPI_MCA_coll_tuned_use_dynamic_rules", "1");
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Measures and prints all pairs.
fn compare(
    ranks: u32,
    rounds: u32,
    sizes: &[u64],
    measure: impl Fn(&[String]) -> Result<()>,
) -> Result<()> {
    let folder = env::temp_dir().join(format!("colibri-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let plan = plan(ranks, rounds, sizes)?;
    let path = |name: &str| -> PathBuf { folder.join(name) };
    document::write(&path("plan.json"), &plan)?;
    let text = |name: &str| path(name).display().to_string();
    measure(&[
        "--ranks".into(),
        ranks.to_string(),
        "--plan".into(),
        text("plan.json"),
        "--record".into(),
        text("measurements.csv"),
        "--deadline-seconds".into(),
        "280".into(),
    ])?;
    let rows = record::read::<CollectiveCall>(&path("measurements.csv"))?.rows;
    std::fs::remove_dir_all(&folder)?;
    println!(
        "| collective | algorithm | bytes | library (us) | ours (us) | ratio | 95 % interval | |"
    );
    println!("|---|---|---:|---:|---:|---:|---|---|");
    for (number, pair) in plan.cells.chunks(2).enumerate() {
        report(pair, &of_pair(&plan, &rows, number as u32 * 2))?;
    }
    Ok(())
}

/// Cells by twos, the library's first; visits alternate, and so does which of a pair comes first.
fn plan(ranks: u32, rounds: u32, sizes: &[u64]) -> Result<Plan> {
    let mut cells = Vec::new();
    for (collective, algorithm) in ALGORITHMS {
        for &bytes in sizes {
            let native: Method = format!("native:openmpi:{algorithm}").parse()?;
            let own: Method = format!("own:{algorithm}").parse()?;
            if let Method::Native(forced) = &native
                && openmpi::falls_back(collective, forced, ranks, bytes)
            {
                continue;
            }
            cells.extend([native, own].map(|method| Cell {
                collective,
                method,
                procs: ranks,
                bytes,
            }));
        }
    }
    let pairs = cells.len() as u32 / 2;
    let visits = (0..rounds).flat_map(|round| {
        let cells = &cells;
        (0..2 * pairs).map(move |place| {
            let cell = place ^ (round % 2);
            let repetitions = if cells[cell as usize].bytes <= 1024 { 9 } else { 3 };
            Visit { cell, warmups: 1, repetitions }
        })
    });
    let visits = visits.collect();
    Ok(Plan { seed: 1, ranks, cells, visits })
}

/// By round, the medians of both members of a pair.
fn of_pair(plan: &Plan, rows: &[CollectiveCall], first: u32) -> Vec<(f64, f64)> {
    let medians = |cell: u32| {
        let visits = plan.visits.iter().enumerate().filter(move |(_, visit)| visit.cell == cell);
        visits.map(|(index, _)| {
            let times: Vec<f64> = rows
                .iter()
                .filter(|row| row.visit == index as u32 && row.status == Status::Ok)
                .map(|row| row.seconds)
                .collect();
            median(&times)
        })
    };
    medians(first).zip(medians(first + 1)).filter_map(|(a, b)| Some((a?, b?))).collect()
}

fn report(pair: &[Cell], times: &[(f64, f64)]) -> Result<()> {
    let ratios: Vec<f64> = times.iter().map(|(library, ours)| ours / library).collect();
    let microseconds = |of: fn(&(f64, f64)) -> f64| {
        median(&times.iter().map(of).collect::<Vec<_>>()).map(|seconds| seconds * 1e6)
    };
    let (Some(library), Some(ours), Some(ratio)) =
        (microseconds(|t| t.0), microseconds(|t| t.1), median(&ratios))
    else {
        // One row without an observation is no reason to lose the others.
        let Cell { collective, method, bytes, .. } = &pair[1];
        println!("| {collective} | {method} | {bytes} | | | | no round with all ranks in time | |");
        return Ok(());
    };
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let resampled: Vec<f64> = (0..2000)
        .filter_map(|_| {
            let draw: Vec<f64> =
                (0..ratios.len()).map(|_| ratios[random.random_range(0..ratios.len())]).collect();
            median(&draw)
        })
        .collect();
    let (Some(low), Some(high)) = (quantile(&resampled, 0.025), quantile(&resampled, 0.975)) else {
        bail!("no interval of {}", pair[1].method);
    };
    let Cell { collective, method, bytes, .. } = &pair[1];
    let verdict = if low <= ALLOWED { "" } else { "above" };
    let algorithm = method.to_string();
    let algorithm = algorithm.trim_start_matches("own:");
    println!(
        "| {collective} | {algorithm} | {bytes} | {:.1} | {:.1} | {ratio:.3} | {low:.3} to {high:.3} | {verdict} |",
        library, ours
    );
    Ok(())
}
