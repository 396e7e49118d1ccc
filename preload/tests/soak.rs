//! Random calls under random profiles: results, memory, and that it ends. SEED repeats a run.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{
    env, fs,
    ops::RangeInclusive,
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use common::{TestFolder, TestLibrary, methods, stderr, stdout};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;
use records::{Method, SizeRange, document, profile::Profile};

/// A profile of every collective for communicators of every size, with a random method for each of
/// some random ranges.
fn profiles(folder: &Path, ranks: u32, random: &mut impl Rng) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir(folder).unwrap();
    for (collective, names) in methods() {
        for procs in 1..=ranks {
            let mut ranges = Vec::new();
            let mut first_bytes = 0;
            while first_bytes < 1 << 20 {
                let last_bytes = first_bytes + random.random_range(0..2 * first_bytes + 64);
                if random.random_bool(0.8) {
                    let name = &names[random.random_range(0..names.len())];
                    let method: Method = name.parse().unwrap();
                    ranges.push(SizeRange::new(first_bytes, last_bytes, method));
                }
                first_bytes = last_bytes + 1;
            }
            let path = folder.join(format!("{collective}-{procs}.json"));
            document::write(&path, &Profile::new(collective, procs, ranges.try_into().unwrap()))
                .unwrap();
        }
    }
}

/// Jobs of so many seconds each until the time is over.
fn soak(family: TestLibrary, ranks: RangeInclusive<u32>, job: u64, whole: Duration, seed: u64) {
    let Some(bench) = TestFolder::new(family) else { return };
    let program = bench.compile("soak.c", &[]).unwrap();
    let folder = bench.folder.path().join("profiles");
    let mut random = Pcg64::seed_from_u64(seed);
    println!("{family:?}, SEED={seed}");
    let end = Instant::now() + whole;
    while Instant::now() < end {
        let ranks = random.random_range(ranks.clone());
        profiles(&folder, ranks, &mut random);
        let (seed, seconds) = (random.random::<u32>().to_string(), job.to_string());
        let limit = (20 * job + 600).to_string();
        let program = ["timeout", &limit, program.to_str().unwrap(), &seed, &seconds];
        let mut variables = vec![("COLIBRI_PROFILES", folder.to_str().unwrap())];
        // What needs more is then the library's, in the midst of what is ours.
        if random.random_bool(0.3) {
            variables.push(("COLIBRI_MEMORY", "100KiB"));
        }
        let output = bench.run(ranks, true, &variables, &program);
        let text = stdout(&output);
        if !output.status.success() {
            let told = format!("{ranks} ranks: {text}{}", stderr(&output));
            // The same calls without the library; layouts.c has each kind of call as a case by itself.
            let alone = bench.run(ranks, false, &[], &program);
            assert!(!alone.status.success(), "{told}");
            println!("{family:?} by itself fails with seed {seed}: set aside\n{told}");
            return;
        }
        print!("{ranks} ranks, {text}");
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
        let [.., early, late] = numbers[..] else { panic!("{text}") };
        // What MPI libraries keep grows a little, too.
        assert!(late < early + early / 4 + (32 << 10), "{ranks} ranks: memory grows: {text}");
    }
}

#[test]
fn a_few_seconds() {
    soak(TestLibrary::OpenMpi, 3..=3, 3, Duration::from_secs(1), 1);
}

#[test]
#[ignore = "takes as long as SECONDS says: make soak"]
fn as_long_as_wanted() {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse().unwrap());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seed = number("SEED").unwrap_or_else(now);
    let half = Duration::from_secs(number("SECONDS").unwrap_or(3600) / 2);
    soak(TestLibrary::OpenMpi, 1..=8, 20, half, seed);
    soak(TestLibrary::Mpich, 1..=3, 20, half, seed);
}
