//! Feeds damaged files to a parser and says which of them it could not bear.

use std::{
    collections::BTreeMap,
    env, fmt,
    io::{self, Write},
    time::{Duration, Instant},
};

use crate::{
    cuts::cuts,
    mutate::Mutator,
    parser::{Answer, Parser},
    trial::{InputFailure, Trial, try_one},
    watchdog::Watched,
};

/// What a run says.
#[derive(Debug)]
pub struct Report {
    name: &'static str,
    seed: u64,
    inputs: u64,
    accepted: u64,
    took: Duration,
    slowest: Duration,
    peak_bytes: usize,
    /// The first input of each kind, reduced.
    faults: BTreeMap<String, Vec<u8>>,
}

/// Right inputs of another kind are rarer and rarer among those damaged again and again.
const POOL: usize = 256;
/// After so many kinds of fault the rest is left.
const MAX_FAULTS: usize = 12;
/// Inputs that were accepted are damaged further up to so many times the size of the largest sample:
/// they would grow and grow.
const MAX_GROWTH: usize = 4;

/// Runs a parser as long as the environment says (`FUZZ`, `FUZZ_SEED`) and ends in a panic if there
/// was anything that it could not bear.
///
/// # Panics
/// There was: every kind of fault is told, with the smallest input that was found for it.
pub fn run(parser: &Parser) {
    let seed = match env::var("FUZZ_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("FUZZ_SEED={text}: expected a number")),
        Err(_) => 20_261_122,
    };
    run_with(parser, parser.inputs.wanted(), seed).tell();
}

/// Runs a parser on its samples from the middle on: each is cut at every line, and what is left is read by itself,
/// before what was cut off, and behind the beginning of another sample. Ends in a panic as [`run`] does.
///
/// # Panics
/// There was an input that it could not bear, or none was accepted.
pub fn run_cut(parser: &Parser) {
    let watched = Watched::new(parser.name);
    let mut report = Report::new(parser.name, 0);
    let begun = Instant::now();
    for input in cuts(&parser.samples) {
        report.inputs += 1;
        let trial = try_one(parser, &input, &watched, report.inputs);
        report.note(parser, &input, &trial, &watched);
        if matches!(trial.answer, Ok(Answer::Accepted)) {
            report.accepted += 1;
        }
    }
    report.took = begun.elapsed();
    report.tell();
}

/// Runs a parser on so many inputs.
fn run_with(parser: &Parser, inputs: u64, seed: u64) -> Report {
    let watched = Watched::new(parser.name);
    let mut mutator = Mutator::new(seed ^ of_name(parser.name), parser.words);
    let mut pool = parser.samples.clone();
    let mut report = Report::new(parser.name, seed);
    let begun = Instant::now();
    for sample in &parser.samples {
        let trial = try_one(parser, sample, &watched, 0);
        if matches!(trial.answer, Ok(Answer::Refused)) {
            let kind = "a sample is refused".to_owned();
            report.faults.entry(kind).or_insert_with(|| sample.clone());
        }
        report.note(parser, sample, &trial, &watched);
    }
    let samples = parser.samples.len();
    let largest = parser.samples.iter().map(Vec::len).max().unwrap_or_default();
    let mut input = Vec::new();
    while report.inputs < inputs && report.faults.len() < MAX_FAULTS {
        input.clone_from(&pool[mutator.below(pool.len())]);
        let other = mutator.below(pool.len());
        mutator.damage(&mut input, &pool[other]);
        report.inputs += 1;
        let trial = try_one(parser, &input, &watched, report.inputs);
        report.note(parser, &input, &trial, &watched);
        if matches!(trial.answer, Ok(Answer::Accepted)) {
            report.accepted += 1;
            if input.len() <= MAX_GROWTH * largest {
                match pool.len() {
                    POOL.. => pool[samples + mutator.below(POOL - samples)].clone_from(&input),
                    _ => pool.push(input.clone()),
                }
            }
        }
    }
    report.took = begun.elapsed();
    report
}

/// The same for a name on every machine, and for no other parser.
fn of_name(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Report {
    fn new(name: &'static str, seed: u64) -> Self {
        Report {
            name,
            seed,
            inputs: 0,
            accepted: 0,
            took: Duration::ZERO,
            slowest: Duration::ZERO,
            peak_bytes: 0,
            faults: BTreeMap::new(),
        }
    }

    /// Prints it, and panics where it holds a fault.
    fn tell(&self) {
        match env::var_os("FUZZ") {
            // Not kept back until the test fails: it is what was asked for.
            Some(_) => drop(writeln!(io::stdout(), "{self}")),
            None => println!("{self}"),
        }
        assert!(self.faults.is_empty(), "{}: see above", self.name);
        // Few inputs may all be refused by chance.
        let vain = self.inputs >= 200 && self.accepted == 0;
        assert!(!vain, "{}: no damaged input is accepted", self.name);
    }

    fn note(&mut self, parser: &Parser, input: &[u8], trial: &Trial, watched: &Watched) {
        self.slowest = self.slowest.max(trial.took);
        self.peak_bytes = self.peak_bytes.max(trial.peak_bytes);
        if let Err(fault) = &trial.answer {
            let kind = fault.kind.clone();
            let reduce = || reduced(parser, input, fault, watched);
            self.faults.entry(kind).or_insert_with(reduce);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { name, seed, inputs, accepted, took, slowest, peak_bytes, faults } = self;
        write!(
            f,
            "fuzz {name}: {inputs} inputs, {accepted} accepted, {:.1} s, slowest {:.1} ms, at most \
             {:.1} MiB, {} faults (FUZZ_SEED={seed})",
            took.as_secs_f64(),
            slowest.as_secs_f64() * 1e3,
            *peak_bytes as f64 / f64::from(1 << 20),
            faults.len()
        )?;
        for (kind, input) in faults {
            const SHOWN: usize = 2000;
            let shown = &input[..input.len().min(SHOWN)];
            write!(f, "\n  {kind}\n    by {} bytes: \"{}\"", input.len(), shown.escape_ascii())?;
        }
        Ok(())
    }
}

/// The smallest input found in a short time that shows the same fault.
fn reduced(parser: &Parser, input: &[u8], fault: &InputFailure, watched: &Watched) -> Vec<u8> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let begun = Instant::now();
    let mut smallest = input.to_vec();
    let mut part = smallest.len() / 2;
    while part > 0 {
        let mut at = 0;
        while at < smallest.len() {
            if begun.elapsed() > PATIENCE {
                return smallest;
            }
            let mut without = smallest.clone();
            without.drain(at..(at + part).min(without.len()));
            match try_one(parser, &without, watched, 0).answer {
                Err(same) if same.kind == fault.kind => smallest = without,
                _ => at += part,
            }
        }
        part /= 2;
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Inputs;

    /// A parser with three faults: it panics at `!`, loses its way at `?` and hoards at `&`.
    fn read(input: &[u8]) -> Answer {
        assert!(!input.contains(&b'!'), "an exclamation mark");
        if input.contains(&b'?') {
            let begun = Instant::now();
            let mut sum = 0_u64;
            while begun.elapsed() < Duration::from_secs(9)
                && crate::trial::spent() < Duration::from_secs(2)
            {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
        }
        if input.contains(&b'&') {
            drop(std::hint::black_box(Vec::<u8>::with_capacity(crate::memory::MOST + 1)));
        }
        match input.first() {
            Some(b'a') => Answer::Accepted,
            _ => Answer::Refused,
        }
    }

    fn parser(words: &'static [&'static str]) -> Parser {
        let samples = vec![b"abc def ghi".to_vec()];
        Parser { name: "trial", samples, words, inputs: Inputs::SMALL, read }
    }

    #[test]
    fn a_panic_is_told_once_with_the_least_input() {
        let report = run_with(&parser(&["!", "x!y"]), 3000, 1);
        assert!(report.accepted > 100, "{report}");
        let panics: Vec<_> =
            report.faults.iter().filter(|(kind, _)| kind.contains("panic")).collect();
        let [(kind, input)] = panics[..] else { panic!("{report}") };
        assert!(kind.contains("an exclamation mark") && kind.contains("campaign.rs"), "{kind}");
        assert_eq!(input, b"!");
    }

    #[test]
    fn what_takes_too_long_or_too_much_is_told() {
        let told = |input: &str| {
            let parser = parser(&[]);
            let trial = try_one(&parser, input.as_bytes(), &Watched::new("trial"), 1);
            trial.answer.unwrap_err().kind
        };
        assert!(told("a?").contains("more than 1 s"), "{}", told("a?"));
        assert!(told("a&").contains("more than 1 GiB"), "{}", told("a&"));
    }

    #[test]
    fn a_refused_sample_is_a_fault() {
        let parser = Parser { samples: vec![b"no".to_vec()], ..parser(&[]) };
        assert!(run_with(&parser, 0, 1).to_string().contains("a sample is refused"));
    }
}
