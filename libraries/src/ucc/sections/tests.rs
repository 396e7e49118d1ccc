use proptest::prelude::*;

use super::*;
use crate::rules::section;

/// A section as UCC reads it: its conditions, each by its key with both ends, and its string.
type Section = (BTreeMap<String, (u32, u32)>, String);

/// Bands of message sizes, each with the first size and the method.
type Bands<'a> = &'a [(u64, &'a str)];

fn read(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines() {
        assert!(line.len() <= 197, "{line}");
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            assert!(name.len() < 50, "MAX_SECTION: {name}");
            let condition = |word: &str| {
                let (key, range) = word.split_once('=').unwrap();
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                (key.to_owned(), (first.parse().unwrap(), last.parse().unwrap()))
            };
            sections.push((name.split(' ').map(condition).collect(), String::new()));
        } else if let Some(string) = line.strip_prefix("UCC_TL_UCP_TUNE=") {
            let last = sections.last_mut().expect("no string before the first section");
            assert!(last.1.is_empty(), "found duplicate: {line}");
            last.1 = string.into();
        } else {
            assert!(line.is_empty() || line.starts_with("# "), "{line}");
        }
    }
    sections
}

/// The strings of the sections that hold for a team, by its nodes' ranks: `ucc_check_section`.
fn held(sections: &[Section], counts: &[u32]) -> Vec<String> {
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    let holds = |(key, (first, last)): (&String, &(u32, u32))| match key.as_str() {
        "team_size" => (*first..=*last).contains(&counts.iter().sum()),
        "nnodes" => (*first..=*last).contains(&(counts.len() as u32)),
        "ppn" => first <= least && most <= last,
        key => panic!("key {key} not defined"),
    };
    let holding = sections.iter().filter(|(conditions, _)| conditions.iter().all(holds));
    holding.map(|(_, string)| string.clone()).collect()
}

fn rules(collective: Collective, sections: &[(&str, Bands<'_>, u64)]) -> Rules {
    let section = |&(layout, bands, last): &(&str, Bands<'_>, u64)| section(layout, bands, last);
    Rules { collective, sections: sections.iter().map(section).collect() }
}

fn written(rules: &[Rules]) -> String {
    text(&Export { rules, comments: &["x".into()] }, "UCC 1.3").unwrap()
}

const K_NOMIAL: Bands<'_> = &[(1, "own:k-nomial")];
const BOTH: Bands<'_> = &[(1, "own:k-nomial"), (4096, "own:scatter-allgather")];
const LARGE: Bands<'_> = &[(1, "default"), (100, "own:scatter-allgather")];

#[test]
fn each_layout_has_its_section() {
    let bcast = [
        ("1x4", K_NOMIAL, 65535),
        ("8", LARGE, 65535),
        ("2x4", BOTH, 65535),
        ("4+4+3", K_NOMIAL, 65535),
        ("5x4:cyclic", K_NOMIAL, 999),
    ];
    let allgather: &[(&str, Bands<'_>, u64)] =
        &[("2x4", &[(1, "own:ring")], 1023), ("3x4", &[(1, "own:ring"), (512, "own:bruck")], 1023)];
    let all = [rules(Collective::Bcast, &bcast), rules(Collective::Allgather, allgather)];
    let wanted = "# Algorithms for UCC 1.3, written by colibri\n\
        # x\n\
        \n[team_size=4 nnodes=1]\n\
        UCC_TL_UCP_TUNE=bcast:1-64k:@knomial\n\
        \n[team_size=8 nnodes=2]\n\
        UCC_TL_UCP_TUNE=bcast:1-4k:@knomial#bcast:4k-64k:@sag_knomial#allgather:8-8k:@ring\n\
        \n[team_size=8 nnodes=8]\n\
        UCC_TL_UCP_TUNE=bcast:100-64k:@sag_knomial\n\
        \n[team_size=11 nnodes=3]\n\
        UCC_TL_UCP_TUNE=bcast:1-64k:@knomial\n\
        \n[team_size=12 nnodes=3]\n\
        UCC_TL_UCP_TUNE=bcast:1-4k:@knomial#bcast:4k-64k:@sag_knomial#\
        allgather:12-6k:@ring#allgather:6k-12k:@bruck\n\
        \n[nnodes=4 ppn=4]\n\
        UCC_TL_UCP_TUNE=bcast:1-4k:@knomial#bcast:4k-64k:@sag_knomial\n\
        \n[team_size=20 nnodes=5]\n\
        UCC_TL_UCP_TUNE=bcast:1-1000:@knomial\n";
    assert_eq!(written(&all), wanted);
}

/// 4 + 4 + 4 lies within the range 3-5 of ranks per node: no file can have both.
#[test]
fn an_uneven_layout_takes_its_numbers_from_between_even_ones() {
    let bcast = [("2x4", BOTH, 65535), ("3+4+5", K_NOMIAL, 65535), ("8x4", K_NOMIAL, 65535)];
    let sections = read(&written(&[rules(Collective::Bcast, &bcast)]));
    let small = vec!["bcast:1-64k:@knomial".to_owned()];
    for counts in [&[3, 4, 5][..], &[5, 3, 4], &[4, 4, 4], &[4; 8]] {
        assert_eq!(held(&sections, counts), small, "{counts:?}");
    }
    let both = vec!["bcast:1-4k:@knomial#bcast:4k-64k:@sag_knomial".to_owned()];
    for counts in [&[4, 4][..], &[1, 7], &[4; 4], &[4; 7]] {
        assert_eq!(held(&sections, counts), both, "{counts:?}");
    }
    for counts in [&[4][..], &[4; 9], &[2; 4], &[3, 4, 4], &[4, 4, 4, 3]] {
        assert_eq!(held(&sections, counts), [""; 0], "{counts:?}");
    }
}

#[test]
fn what_its_reader_would_cut_is_refused_and_comments_are_wrapped() {
    let bands: Vec<(u64, &str)> = (0..12)
        .map(|power| (1 << (2 * power), ["own:k-nomial", "own:scatter-allgather"][power % 2]))
        .collect();
    let long = [rules(Collective::Bcast, &[("2x4", &bands, 1 << 25)])];
    let error = text(&Export { rules: &long, comments: &[] }, "UCC 1.3").unwrap_err().to_string();
    assert!(error.starts_with("[team_size=8 nnodes=2] takes a line of "), "{error}");
    assert!(error.contains("more than 197;") && error.contains("--target ucc"), "{error}");
    let words = vec!["word"; 99].join(" ");
    let none = text(&Export { rules: &[], comments: &[words.into()] }, "UCC 1.3").unwrap();
    assert!(read(&none).is_empty());
    assert_eq!(none.matches("word").count(), 99);
}

proptest! {
    /// For every team at most one section holds; for one that was measured its own string does.
    #[test]
    fn no_two_sections_hold_for_one_team(
        layouts in prop::collection::btree_set(prop::collection::vec(1_u32..5, 1..6), 1..7),
        team in prop::collection::vec(1_u32..5, 1..6),
        skipped in 0_usize..7,
    ) {
        // Of those that UCC can't tell apart one is told.
        let mut told: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for counts in &layouts {
            told.insert((counts.iter().sum(), counts.len() as u32), counts.clone());
        }
        let names: Vec<String> = told.values().map(|counts| match counts.as_slice() {
            [one] => format!("1x{one}"),
            all => all.iter().map(u32::to_string).collect::<Vec<_>>().join("+"),
        }).collect();
        // Sections are ascending; what each chooses shows in its last size.
        let mut sections: Vec<(&str, Bands<'_>, u64)> =
            names.iter().zip(100..).map(|(name, last)| (name.as_str(), K_NOMIAL, last)).collect();
        sections.sort_by_key(|(name, ..)| name.parse::<Layout>().unwrap());
        let bcast = rules(Collective::Bcast, &sections);
        let last = |section: &LayoutRanges| (section.layout, section.ranges[0].last_bytes);
        let last: BTreeMap<Layout, u64> = bcast.sections.iter().map(last).collect();
        let mut allgather = bcast.clone();
        allgather.collective = Collective::Allreduce;
        allgather.sections.remove(skipped % allgather.sections.len());
        let read = read(&written(&[bcast, allgather]));
        prop_assert!(held(&read, &team).len() <= 1, "{:?} {:?}", read, team);
        for (layout, last) in last {
            let found = held(&read, &layout.counts());
            let wanted = format!("bcast:1-{}:@knomial", last + 1);
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(found[0].split('#').next(), Some(wanted.as_str()));
            prop_assert!(found[0].matches("allreduce").count() <= 1);
        }
    }
}
