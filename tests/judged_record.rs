//! A record of every method on 16 ranks of a node, judged by the command.

use std::{collections::BTreeMap, fs, path::Path};

use crate::support::run;

/// The mean penalty of `refined` in percent, with its number of points; 0 where it is within the noise.
fn refined_of(directory: &Path) -> BTreeMap<String, (usize, f64)> {
    let (table, _) = run(0, &["verify", directory.to_str().unwrap(), "--from-record"]);
    let (table, _) = table.split_once("\nMean penalty by region").unwrap();
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [collective, "refined", points, mean, ..] = words[..] else { return None };
        let mean = if mean == "noise" { 0.0 } else { mean.parse().ok()? };
        Some((collective.to_owned(), (points.parse().ok()?, mean)))
    };
    table.lines().filter_map(row).collect()
}

/// Whatever a model chooses was timed: at all seven sizes it has a penalty. The bounds are what choosing on one half of
/// the observations costs on the other (the record's noise), and three percent more.
#[test]
fn on_a_node_of_16_cores_refined_chooses_nearly_the_best_of_all_that_was_timed() {
    let directory = tempfile::tempdir().unwrap();
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("figures/data/node-16");
    for entry in fs::read_dir(record).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap();
        let mut file = fs::File::create(directory.path().join(name)).unwrap();
        let mut packed = flate2::read::GzDecoder::new(fs::File::open(&path).unwrap());
        std::io::copy(&mut packed, &mut file).unwrap();
    }
    let penalties = refined_of(directory.path());
    let bounds = [
        ("allgather", 6.3),
        ("allreduce", 7.0),
        ("alltoall", 4.8),
        ("bcast", 4.4),
        ("reduce", 6.7),
    ];
    for (collective, bound) in bounds {
        let (points, penalty) = penalties[collective];
        assert_eq!(points, 7, "{collective}");
        assert!(penalty <= bound, "{collective}: {penalty} %");
    }
}
