use std::collections::BTreeMap;

use records::{RangeMethod, Ranges};

use super::*;
use crate::{
    openmpi::{algorithms::methods, rules as loaded},
    rules::section,
};

/// The numbers that Open MPI's reader sees: comments go, the rest is split at blanks.
fn numbers(text: &str) -> Vec<u64> {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .flat_map(str::split_whitespace)
        .map(|word| word.parse().unwrap())
        .collect()
}

fn written(version: &str, collective: Collective, sections: Vec<LayoutRanges>) -> Result<String> {
    let rules = [Rules { collective, sections }];
    let origin = ["a test with 3 words".into()];
    let export = Export { rules: &rules, comments: &origin };
    Ok(Classic::new(Some(version))?.files(&export)?.remove(0).text)
}

#[test]
fn nothing_is_claimed_outside_the_grid() {
    let methods = [
        (1, "default"),
        (3000, "native:openmpi:k-chain,segment=1KiB"),
        (65536, "native:openmpi:pipeline,segment=8KiB"),
    ];
    let sections = vec![section("8", &methods, 1 << 20)];
    let wanted = [
        1, 7, 3, // one collective: bcast, three communicator sizes
        0, 1, 0, 0, 0, 0, // smaller ones
        8, 4, 0, 0, 0, 0, 3000, 2, 4, 1024, 65536, 3, 0, 8192, 1_048_577, 0, 0, 0, // 8
        9, 1, 0, 0, 0, 0, // larger ones
    ];
    assert_eq!(numbers(&written("4.1", Collective::Bcast, sections).unwrap()), wanted);
}

/// Sizes over all ranks, a size 0 that may be MPI_IN_PLACE, a method for two ranks only.
#[test]
fn allgather_counts_all_blocks_and_leaves_size_0_alone() {
    let two = [(0, "native:openmpi:two-procs"), (100, "native:openmpi:ring")];
    let four = [(0, "native:openmpi:ring")];
    let sections = vec![section("2", &two, 1000), section("4", &four, 1000)];
    let wanted = [
        1, 0, 5, // allgather
        0, 1, 0, 0, 0, 0, // smaller
        2, 4, 0, 0, 0, 0, 1, 6, 0, 0, 200, 4, 0, 0, 2002, 0, 0, 0, // 2
        3, 3, 0, 0, 0, 0, 300, 4, 0, 0, 3003, 0, 0, 0, // 3: no algorithm for two processes
        4, 3, 0, 0, 0, 0, 1, 4, 0, 0, 4004, 0, 0, 0, // 4
        5, 1, 0, 0, 0, 0, // larger
    ];
    let text = written("5.0", Collective::Allgather, sections).unwrap();
    assert_eq!(numbers(&text), wanted, "{text}");
}

#[test]
fn gather_and_scatter_have_one_band_without_end() {
    for (collective, id) in [(Collective::Gather, 9), (Collective::Scatter, 15)] {
        let sections = vec![section("4", &[(1, "native:openmpi:binomial")], 1000)];
        let wanted = [1, id, 3, 0, 1, 0, 0, 0, 0, 4, 1, 0, 2, 0, 0, 5, 1, 0, 0, 0, 0];
        assert_eq!(numbers(&written("4.1", collective, sections).unwrap()), wanted);
    }
}

#[test]
fn what_open_mpi_cannot_run_is_refused() {
    for method in ["own:pipeline", "native:openmpi:rabenseifner", "mockup:bcast_as_scatter"] {
        let sections = vec![section("8", &[(1, method)], 1)];
        assert!(written("4.1", Collective::Bcast, sections).is_err(), "{method}");
    }
    let point = Point::flat(Collective::Bcast, 8, 4);
    let fails = |method: &str| express("Open MPI", point, &method.parse().unwrap()).is_err();
    assert!(fails("native:openmpi:scatter-allgather"), "fewer elements than processes");
    assert!(fails("native:mpich:binomial"));
    assert!(!fails("native:openmpi:binomial"));
}

/// coll/han has 2x4 for itself; on 8 nodes, and for all collectives that it lacks, coll/tuned is asked.
#[test]
fn what_han_carries_out_stands_beside_what_tuned_does() {
    let sections = vec![
        section("8", &[(1, "native:openmpi:pipeline")], 1023),
        section("2x4", &[(1, "default"), (64, "native:openmpi:han-simple")], 1023),
        section("12", &[(1, "native:openmpi:binomial")], 1023),
    ];
    let rules = [Rules { collective: Collective::Bcast, sections }];
    let export = Export { rules: &rules, comments: &[] };
    let exporter = Classic::new(Some("5.0")).unwrap();
    let files = exporter.files(&export).unwrap();
    let wanted = [
        1, 7, 4, 0, 1, 0, 0, 0, 0, // one collective, smaller ones
        8, 3, 0, 0, 0, 0, 1, 3, 0, 0, 1024, 0, 0, 0, // pipeline
        12, 3, 0, 0, 0, 0, 1, 6, 0, 0, 1024, 0, 0, 0, // binomial
        13, 1, 0, 0, 0, 0, // larger ones
    ];
    assert_eq!(numbers(&files[0].text), wanted, "{}", files[0].text);
    let of_han: Vec<&str> = files[1].text.lines().skip(1).collect();
    let wanted = "1 # collectives\nbcast 1 # levels\nglobal_communicator 4 # sizes\n\
                  1 1 # smaller than measured\n0 han\n\
                  8 3 # processes, bands: bytes component\n0 han\n64 han @simple\n1024 han\n\
                  12 3 # processes, bands: bytes component\n0 han\n1 tuned\n1024 han\n\
                  13 1 # larger than measured\n0 han";
    assert_eq!(of_han.join("\n"), wanted);

    let [flat, levels]: [Layout; 2] = ["8", "2x4"].map(|layout| layout.parse().unwrap());
    let [default, simple, linear] =
        ["default", "native:openmpi:han-simple", "native:openmpi:linear"]
            .map(|name| name.parse::<Method>().unwrap());
    let clash = |collective, of_levels: &[&Method]| {
        exporter.clash(collective, (flat, &[&linear]), (levels, of_levels))
    };
    assert!(!clash(Collective::Bcast, &[&default, &simple]));
    assert!(clash(Collective::Bcast, &[&default, &linear]), "it hands calls on");
    assert!(clash(Collective::Alltoall, &[&default]), "coll/han has none");
    assert_eq!(exporter.layout_key("3+5".parse().unwrap()), exporter.layout_key(flat));
    assert_ne!(exporter.layout_key(levels), exporter.layout_key(flat));
    let older = Classic::new(Some("4.1")).unwrap();
    assert_eq!(older.layout_key(levels), older.layout_key(flat));
}

#[test]
fn open_mpi_6_does_not_get_a_classic_file() {
    let error = Classic::new(Some("6.0")).err().unwrap().to_string();
    assert!(error.contains("shifted by one") && error.contains("openmpi-json"), "{error}");
    assert!(Classic::new(Some("4.0.7")).is_ok());
    assert!(Classic::new(Some("3.1")).is_err());
    assert!(Classic::new(Some("x")).is_err());
}

/// What is written is read back as the library reads it: at every point that was decided the
/// method decided for, outside of them the default.
#[test]
fn the_file_says_at_every_point_what_was_decided() {
    let names = ["default", "native:openmpi:pipeline,segment=1KiB", "native:openmpi:binomial"];
    for collective in [Collective::Bcast, Collective::Allreduce, Collective::Allgather] {
        let mut decided = Vec::new();
        let mut sections: Vec<LayoutRanges> = Vec::new();
        for procs in [2, 3, 8] {
            let mut starts: BTreeMap<u64, RangeMethod> = BTreeMap::new();
            for bytes in 0..=20 {
                let mut known = vec![Method::Default];
                known.extend(names.iter().map(|name| name.parse().unwrap()));
                known.extend(methods(collective, &[0, 1024], procs, 1 << bytes));
                let point = Point::flat(collective, procs, 1 << bytes);
                known.retain(|method| {
                    *method == Method::Default
                        || express("Open MPI", point, method).is_ok()
                            && method.segment_bytes() < point.bytes
                });
                let method = known[(procs as usize * 7 + bytes * 5) % known.len()].clone();
                decided.push((point, method.clone()));
                starts.insert(point.bytes, method.into());
            }
            let ranges = Ranges::from_starts(starts, 1 << 20);
            let ranges = ranges.merged(|one, next| one.method == next.method);
            sections.push(LayoutRanges { layout: procs.into(), ranges });
        }
        let rules = [Rules { collective, sections }];
        let export = Export { rules: &rules, comments: &[] };
        let text = Classic::new(None).unwrap().files(&export).unwrap().remove(0).text;
        let read = loaded::parse(&text, std::path::Path::new("x.rules")).unwrap();
        for (point, method) in &decided {
            assert_eq!(read.method(*point).as_ref(), Ok(method), "{point:?}\n{text}");
        }
        for (procs, bytes) in [(1, 64), (9, 64), (8, 1 << 21)] {
            let point = Point::flat(collective, procs, bytes);
            assert_eq!(read.method(point), Ok(Method::Default));
        }
    }
}
