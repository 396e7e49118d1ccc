use records::{
    Collective,
    agreement::Agreement,
    candidates::{CandidateClass, Candidates},
    check::Check,
    choices::Choices,
    document::Document,
    learned::Learned,
    pairs::PairMap,
    penalty::Penalties,
    plan::Plan,
    summary::TuningSummary,
    usage::Usage,
    violations::Violations,
};

use super::{document, reads_back};
use crate::{Answer, Inputs, Parser, files};

/// Words that most documents have.
const COMMON: &[&str] = &[
    "schema",
    "platform",
    "hosts",
    "message_size",
    "collective",
    "procs",
    "bytes",
    "method",
    "seconds",
    "warnings",
    "bcast",
    "barrier",
    "reduce_scatter",
    "allgatherv",
    "default",
    "own:linear",
    "native:openmpi:pipeline,segment=8KiB",
    "mockup:bcast_as_scatter_allgather",
    "plugin:libmine.so:MPIB_Bcast_x,suboptions=v",
    "points",
    "value",
    "low",
    "high",
    "testbed",
    "ranks",
];

fn parser(name: &'static str, sample: String, inputs: Inputs, read: fn(&[u8]) -> Answer) -> Parser {
    Parser { name, samples: vec![sample.into_bytes()], words: COMMON, inputs, read }
}

/// A drawn figure is checked where it is cheap to draw; what can't be drawn is told.
fn drawn(figure: Result<figures::Figure, figures::FigureError>) {
    match figure.map(|figure| figure.svg()) {
        Ok(Ok(svg)) => assert!(svg.contains("<svg"), "no drawing"),
        Ok(Err(error)) | Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Traces of applications.
pub fn usage() -> Parser {
    const WORDS: &[&str] = &[
        "schema",
        "colibri/usage/1",
        "procs",
        "library",
        "seconds",
        "calls",
        "collective",
        "bytes",
        "method",
        "bcast",
        "barrier",
        "allreduce",
        "own:ring",
        "default",
        "mockup:scan_as_exscan_reduce_local",
    ];
    fn read(input: &[u8]) -> Answer {
        document::<Usage>(input, |usage| {
            let counted = usage.calls.iter().cloned();
            let all =
                Usage::of_all_ranks(usage.procs, usage.library.clone(), usage.seconds, counted);
            reads_back(&all);
        })
    }
    Parser { name: "usage", samples: files::usages(), words: WORDS, inputs: Inputs::SMALL, read }
}

/// What applications have taught.
pub fn learned() -> Parser {
    const WORDS: &[&str] = &[
        "schema",
        "colibri/learned/1",
        "classes",
        "last_bytes",
        "calls",
        "default_seconds",
        "chosen",
        "tried",
        "trials",
        "log_ratio",
        "squares",
        "collective",
        "bcast",
        "8x4:cyclic",
        "own:ring",
        "default",
    ];
    fn read(input: &[u8]) -> Answer {
        document::<Learned>(input, |learned| {
            let mut all = Learned::new(learned.library.clone(), learned.processor.clone());
            all.merge(learned);
            all.merge(learned);
            reads_back(&all);
            reads_back(&all.since(learned));
        })
    }
    let samples = vec![files::learned().into_bytes()];
    Parser { name: "learned", samples, words: WORDS, inputs: Inputs::SMALL, read }
}

/// What the preload library tries first.
pub fn candidates() -> Parser {
    parser("candidates", files::candidates(), Inputs::SMALL, |input| {
        document::<Candidates>(input, |candidates| {
            for CandidateClass { point, last_bytes, methods } in &candidates.classes {
                for bytes in [point.bytes, *last_bytes] {
                    assert_eq!(candidates.find(point.collective, point.layout, bytes), methods);
                }
            }
        })
    })
}

fn collectives(named: impl Iterator<Item = Collective>) -> Vec<Collective> {
    let mut all: Vec<Collective> = named.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Plans of measurements.
pub fn plan() -> Parser {
    parser("plan", files::plan(), Inputs::LARGE, |input| {
        document::<Plan>(input, |plan| {
            let cells: Vec<_> =
                plan.visits.iter().map(|visit| &plan.cells[visit.cell as usize]).collect();
            assert!(cells.iter().all(|cell| cell.point.procs() <= plan.ranks));
        })
    })
}

/// What decision functions cost.
pub fn penalties() -> Parser {
    parser("penalty", files::penalties(), Inputs::LARGE, |input| {
        document::<Penalties>(input, |penalties| {
            for region in &penalties.regions {
                let _ = (region.region.procs_in_words(), region.region.bytes_in_words());
            }
            let _ = (penalties.platform.busy(), penalties.platform.summary());
            for collective in
                collectives(penalties.penalties.iter().map(|one| one.point.collective))
            {
                drawn(figures::penalty_map(penalties, collective));
            }
        })
    })
}

/// Links between ranks.
pub fn pairs() -> Parser {
    parser("pairs", files::pairs(), Inputs::LARGE, |input| {
        document::<PairMap>(input, |map| {
            let findings = verification::pairs::findings(&map.links, "node", |rank| rank);
            assert!(findings.iter().all(|finding| !finding.text.is_empty()));
            drawn(figures::pair_map(map));
        })
    })
}

/// What tuning gained.
pub fn summary() -> Parser {
    only_read::<TuningSummary>("summary", files::summary())
}

/// What a check of a tuning found.
pub fn check() -> Parser {
    only_read::<Check>("check", files::check())
}

/// Guidelines that were broken.
pub fn violations() -> Parser {
    parser("violations", files::violations(), Inputs::LARGE, |input| {
        document::<Violations>(input, |found| {
            for violation in &found.violations {
                assert!(!violation.better.to_string().is_empty());
            }
        })
    })
}

/// Where two decision functions differ.
pub fn agreement() -> Parser {
    only_read::<Agreement>("agreement", files::agreement())
}

/// What a run has chosen.
pub fn choices() -> Parser {
    only_read::<Choices>("choices", files::choices())
}

fn only_read<T: Document + std::fmt::Debug>(name: &'static str, sample: String) -> Parser {
    parser(name, sample, Inputs::LARGE, |input| document::<T>(input, |_| ()))
}
