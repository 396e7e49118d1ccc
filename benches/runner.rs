//! How long our algorithms take on the runner, against the MPI library's own of the same name:
//! paired, alternated in one run, with bootstrap intervals, as tables in Markdown.
//!
//!     cargo bench --bench runner              two ranks over shared memory, and the virtual cluster
//!     cargo bench --bench runner -- shared    one of them
//!     cargo bench --bench runner -- cluster --rounds 20 --sizes 1024,1048576 --keep FOLDER
//!     cargo bench --bench runner -- shared --collectives allreduce,allgather
//!
//! With a folder to keep the record in, a run that was ended goes on where it was.
//!
//! Wants the programs of `cargo build --release --workspace`, Open MPI, a quiet machine and, for
//! the cluster, root.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};
use libraries::openmpi;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use records::{
    Collective, Method, Point,
    disturbance::MOST_TAKEN,
    document,
    observation::{CollectiveCall, ObservationStatus},
    plan::{Cell, Plan, Visit},
    record,
};
use statistics::{median, percentile_interval};
use testbed::{OpenMpi, Shims, Spec};

/// What is compared: the algorithms that send the same messages in the same steps, by the library's
/// name. Left out are barriers that the library makes of synchronous sends, which are answered.
const ALGORITHMS: [(Collective, &str); 26] = [
    (Collective::Bcast, "linear"),
    (Collective::Bcast, "pipeline,segment=8KiB"),
    (Collective::Bcast, "binomial"),
    (Collective::Bcast, "binary,segment=8KiB"),
    (Collective::Bcast, "splitted-binary,segment=8KiB"),
    (Collective::Reduce, "pipeline,segment=8KiB"),
    (Collective::Reduce, "binomial"),
    (Collective::Reduce, "rabenseifner"),
    (Collective::Allreduce, "recursive-doubling"),
    (Collective::Allreduce, "ring"),
    (Collective::Allreduce, "segmented-ring,segment=8KiB"),
    (Collective::Allreduce, "rabenseifner"),
    (Collective::Allgather, "ring"),
    (Collective::Allgather, "recursive-doubling"),
    (Collective::Allgather, "bruck"),
    (Collective::Allgather, "neighbor-exchange"),
    (Collective::Alltoall, "linear"),
    (Collective::Alltoall, "pairwise"),
    (Collective::Alltoall, "bruck"),
    (Collective::ReduceScatter, "recursive-halving"),
    (Collective::ReduceScatter, "ring"),
    (Collective::ReduceScatterBlock, "recursive-halving"),
    (Collective::Gather, "binomial"),
    (Collective::Scatter, "binomial"),
    (Collective::Scan, "recursive-doubling"),
    (Collective::Barrier, "linear"),
];

/// Our name of an algorithm of the library's.
fn own_name(collective: Collective, algorithm: &str) -> &str {
    match (collective, algorithm) {
        // Ours of that name lets the ranks send in turn.
        (Collective::Alltoall, "linear") => "linear-concurrent",
        _ => algorithm,
    }
}

/// The interval's lower end that our algorithms are to stay below.
const ALLOWED: f64 = 1.05;

/// Times our algorithms against the library's own
#[derive(Debug, Parser)]
struct Flags {
    /// Where; both if not given
    place: Option<ComparedNetwork>,
    /// How often each pair is visited (default: 60 shared, 10 on the cluster)
    #[arg(long)]
    rounds: Option<u32>,
    /// Message sizes in bytes
    #[arg(long, value_delimiter = ',', default_values_t = [1, 64, 1024, 8192, 65_536, 262_144, 1 << 20])]
    sizes: Vec<u64>,
    /// Collectives, such as allreduce,allgather (default: all that are compared)
    #[arg(long, value_delimiter = ',')]
    collectives: Vec<Collective>,
    /// Seconds for each place, after which nothing new is begun
    #[arg(long, default_value_t = 280)]
    seconds: u32,
    /// Folder for the records, which are then kept and completed
    #[arg(long)]
    keep: Option<PathBuf>,
    /// What cargo passes
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ComparedNetwork {
    /// Two ranks over shared memory
    Shared,
    /// The virtual cluster, 8 nodes at 100 Mbit/s
    Cluster,
}

fn main() -> Result<()> {
    let flags = Flags::parse();
    let own = env::current_exe()?;
    let programs = own.parent().and_then(Path::parent).context("no folder of programs")?;
    for place in ComparedNetwork::value_variants() {
        if flags.place.is_none_or(|wanted| wanted == *place) {
            place.compare(&flags, programs)?;
        }
    }
    Ok(())
}

impl ComparedNetwork {
    fn ranks(self) -> u32 {
        match self {
            ComparedNetwork::Shared => 2,
            ComparedNetwork::Cluster => 8,
        }
    }

    fn title(self) -> &'static str {
        match self {
            ComparedNetwork::Shared => "2 ranks over shared memory",
            ComparedNetwork::Cluster => "8 nodes at 100 Mbit/s",
        }
    }

    fn rounds(self) -> u32 {
        match self {
            ComparedNetwork::Shared => 60,
            ComparedNetwork::Cluster => 10,
        }
    }

    /// Calls in a visit that count: more where they are short, and more of these on the cluster,
    /// where few begin on all ranks together.
    fn repetitions(self, bytes: u64) -> u32 {
        match (self, bytes) {
            (_, ..=1024) => 15,
            (ComparedNetwork::Shared, _) => 5,
            (ComparedNetwork::Cluster, ..=65_536) => 3,
            (ComparedNetwork::Cluster, _) => 1,
        }
    }

    /// Measures and prints all pairs.
    fn compare(self, flags: &Flags, programs: &Path) -> Result<()> {
        let rounds = flags.rounds.unwrap_or(self.rounds());
        let plan = plan(self, rounds, flags)?;
        let (folder, is_kept) = match &flags.keep {
            Some(folder) => (folder.clone(), true),
            None => (env::temp_dir().join(format!("colibri-bench-{}", std::process::id())), false),
        };
        std::fs::create_dir_all(&folder)?;
        let name = self.to_possible_value().context("a place without a name")?;
        let path = |kind: &str| folder.join(format!("{}.{kind}", name.get_name()));
        document::write(&path("json"), &plan)?;
        let text = |kind: &str| path(kind).display().to_string();
        let arguments = [
            ("--ranks", self.ranks().to_string()),
            ("--plan", text("json")),
            ("--record", text("csv")),
            ("--deadline-seconds", flags.seconds.to_string()),
        ];
        self.measure(&arguments.map(|(flag, value)| [flag.to_owned(), value]).concat(), programs)?;
        let rows = record::read::<CollectiveCall>(&path("csv"))?.rows;
        if !is_kept {
            std::fs::remove_dir_all(&folder)?;
        }
        self.report(&plan, &rows)
    }

    fn measure(self, arguments: &[String], programs: &Path) -> Result<()> {
        let program = programs.join("colibri-mpi");
        if self == ComparedNetwork::Shared {
            let mut command = Command::new(OpenMpi::find()?.mpirun());
            command
                .args(["-np", "2", "--mca", "btl", "self,vader"])
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
                .arg(program)
                .arg("measure")
                .args(arguments);
            return run(command);
        }
        let name = format!("bench-{}", std::process::id());
        let testbed = testbed::up(&Spec::new(&name, self.ranks(), "100mbit".parse()?)?)?;
        let shims =
            Shims { sleep_on_yield: Some(programs.join("libcolibri_yield.so")), tracer: None };
        let outcome = OpenMpi::find()
            .and_then(|mpi| testbed.mpirun(&mpi, self.ranks(), &shims, &[]))
            .map_err(anyhow::Error::from)
            .and_then(|mut command| {
                command.arg(program).arg("measure").args(arguments);
                run(command)
            });
        testbed::down(&name)?;
        outcome
    }

    fn report(self, plan: &Plan, rows: &[CollectiveCall]) -> Result<()> {
        println!("### {}\n", self.title());
        println!(
            "| collective | algorithm | bytes | library (us) | ours (us) | ratio | lower | upper | \
             in time | |"
        );
        println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---|");
        let mut visits = vec![Vec::new(); plan.visits.len()];
        rows.iter().for_each(|row| visits[row.visit as usize].push(row));
        let (mut within, mut disturbed) = (0, 0.0);
        for (number, pair) in plan.cells.chunks(2).enumerate() {
            let rounds = PairTimings::of(plan, &visits, number as u32 * 2);
            within += u32::from(rounds.report(&pair[1])?);
            disturbed += rounds.disturbed;
        }
        let pairs = plan.cells.len() / 2;
        println!(
            "\n{within} of {pairs} rows within {ALLOWED}; others took more than {:.0} % of the \
             processors beside {:.0} % of the calls.\n",
            100.0 * MOST_TAKEN,
            100.0 * disturbed / pairs.max(1) as f64
        );
        Ok(())
    }
}

fn run(mut command: Command) -> Result<()> {
    command.env("OMPI_MCA_coll_tuned_use_dynamic_rules", "1");
    let output = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    said.lines().filter(|line| line.contains("deadline")).for_each(|line| eprintln!("{line}"));
    Ok(())
}

/// Cells by twos, the library's first; visits alternate, and so does which of a pair comes first.
fn plan(place: ComparedNetwork, rounds: u32, flags: &Flags) -> Result<Plan> {
    let ranks = place.ranks();
    let mut cells = Vec::new();
    let is_wanted = |collective: Collective| {
        flags.collectives.is_empty() || flags.collectives.contains(&collective)
    };
    for (collective, algorithm) in ALGORITHMS.into_iter().filter(|(of, _)| is_wanted(*of)) {
        let sizes = if collective == Collective::Barrier { &[0] } else { &flags.sizes[..] };
        for &bytes in sizes {
            let native: Method = format!("native:openmpi:{algorithm}").parse()?;
            let own: Method = format!("own:{}", own_name(collective, algorithm)).parse()?;
            if let Method::Native(forced) = &native
                && openmpi::falls_back(collective, forced, ranks, bytes)
            {
                continue;
            }
            cells.extend(
                [native, own].map(|method| Cell {
                    point: Point::new(collective, ranks.into(), bytes),
                    method,
                }),
            );
        }
    }
    let number = cells.len() as u32;
    let visits = (0..rounds).flat_map(|round| {
        let cells = &cells;
        (0..number).map(move |at| {
            let cell = at ^ (round % 2);
            let repetitions = place.repetitions(cells[cell as usize].point.bytes);
            Visit { cell, warmups: 1, repetitions, calls: 1 }
        })
    });
    let visits = visits.collect();
    Ok(Plan { seed: 1, ranks, cells, visits })
}

/// What was seen of a pair.
struct PairTimings {
    /// By round, the medians of both members.
    times: Vec<(f64, f64)>,
    /// Calls that began on all ranks together, of all that count.
    in_time: f64,
    /// Calls beside which others took the processors, of all that count.
    disturbed: f64,
}

impl PairTimings {
    /// Of the pair whose first cell this is. Where no call of a visit began on all ranks together,
    /// those that didn't stand for it: on few processors that is so for both members alike. So it
    /// is with calls that others disturbed, whose share is told.
    fn of(plan: &Plan, rows_of_visits: &[Vec<&CollectiveCall>], first: u32) -> Self {
        let (mut counted, mut together, mut disturbed) = (0, 0, 0);
        let mut medians = |cell: u32| -> Vec<Option<f64>> {
            let visits = plan.visits.iter().zip(rows_of_visits);
            let visits = visits.filter(|(visit, _)| visit.cell == cell);
            visits
                .map(|(_, rows)| {
                    let of_status = |status| -> Vec<f64> {
                        let rows = rows.iter().filter(|row| row.status == status);
                        rows.map(|row| row.seconds).collect()
                    };
                    let [mut good, late, beside_others] = [
                        ObservationStatus::Ok,
                        ObservationStatus::Late,
                        ObservationStatus::Disturbed,
                    ]
                    .map(of_status);
                    disturbed += beside_others.len();
                    good.extend(beside_others);
                    counted += good.len() + late.len();
                    together += good.len();
                    median(if good.is_empty() { &late } else { &good })
                })
                .collect()
        };
        let (library, ours) = (medians(first), medians(first + 1));
        let times = library.into_iter().zip(ours).filter_map(|(a, b)| Some((a?, b?))).collect();
        let share = |calls: usize| calls as f64 / counted.max(1) as f64;
        PairTimings { times, in_time: share(together), disturbed: share(disturbed) }
    }

    /// Prints a row; whether it is within what is allowed.
    fn report(
        &self,
        Cell { point: Point { collective, bytes, .. }, method, .. }: &Cell,
    ) -> Result<bool> {
        let algorithm = method.to_string();
        let algorithm = algorithm.trim_start_matches("own:");
        let ratios: Vec<f64> = self.times.iter().map(|(library, ours)| ours / library).collect();
        let microseconds = |of: fn(&(f64, f64)) -> f64| {
            median(&self.times.iter().map(of).collect::<Vec<_>>()).map(|seconds| seconds * 1e6)
        };
        let (Some(library), Some(ours), Some(ratio)) =
            (microseconds(|t| t.0), microseconds(|t| t.1), median(&ratios))
        else {
            println!("| {collective} | {algorithm} | {bytes} | | | | | | | not measured |");
            return Ok(false);
        };
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let resampled: Vec<f64> = (0..2000)
            .filter_map(|_| {
                let draw: Vec<f64> = (0..ratios.len())
                    .map(|_| ratios[random.random_range(0..ratios.len())])
                    .collect();
                median(&draw)
            })
            .collect();
        let Some([low, high]) = percentile_interval(resampled, 0.95) else {
            bail!("no interval of {method}");
        };
        let is_within = low <= ALLOWED;
        let verdict = if is_within { "" } else { "above" };
        let in_time = 100.0 * self.in_time;
        println!(
            "| {collective} | {algorithm} | {bytes} | {library:.1} | {ours:.1} | {ratio:.3} | \
             {low:.3} | {high:.3} | {in_time:.0} % | {verdict} |"
        );
        Ok(is_within)
    }
}
