//! Damaged settings and profiles, and what is looked up in them.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::Path};

use ::fuzz::{Answer, Inputs, Parser, files, parsers::refused_with};
use records::{
    Collective, Layout, document,
    profile::{OtherProcs, Profile},
    usage::{Calls, Usage},
};
use runner::Runnable;

use crate::{
    choice::{MethodTables, runnable},
    report, settings,
};

::fuzz::fuzz! {
    preload_settings: super::words(),
    profiles_looked_up: super::profiles(),
    usage_of_ranks: super::of_ranks(),
}

const SETTINGS: &[&str] = &[
    "COLIBRI_FORCE=bcast=own:pipeline,segment=8KiB; reduce = reduce_as_allreduce;scan=default",
    "COLIBRI_FORCE=gather=own:linear-ready;barrier=own:bruck",
    "COLIBRI_MEMORY=64MiB",
    "COLIBRI_FOOTER=1",
    "COLIBRI_TRACE=usage.json",
];

const SETTING_WORDS: &[&str] = &[
    "COLIBRI_FORCE",
    "COLIBRI_PROFILES",
    "COLIBRI_MEMORY",
    "COLIBRI_COUNTS_MEMORY",
    "COLIBRI_FOOTER",
    "COLIBRI_",
    "=",
    ";",
    "bcast",
    "allreduce",
    "own:",
    "mockup:",
    "native:openmpi:linear",
    "plugin:a:b",
    "_as_",
    "segment=",
    "default",
    "KiB",
    "allgather_as_gather_bcast",
    "0",
    "1",
];

/// A variable's name and value, with `=` between them.
fn words() -> Parser {
    fn read(input: &[u8]) -> Answer {
        let mut parts = input.splitn(2, |byte| *byte == b'=');
        let [name, value] =
            [(); 2].map(|()| OsString::from_vec(parts.next().unwrap_or_default().to_vec()));
        for warning in settings::unknown_settings([name.clone()].into_iter()) {
            refused_with(&warning);
        }
        // A directory would be read.
        if name == "COLIBRI_PROFILES" {
            return Answer::Refused;
        }
        match settings::follow(|wanted| (name == *wanted).then(|| value.clone())) {
            Ok(settings) => {
                let tables = MethodTables::new(&settings.forced, &[], 4, None, false);
                for (collective, choice) in &settings.forced {
                    for bytes in [0, 1, u64::MAX] {
                        let found =
                            tables.for_collective(*collective).find(bytes).map(Runnable::method);
                        assert_eq!(found, choice.as_ref().map(Runnable::method));
                    }
                }
                Answer::Accepted
            }
            Err(settings::SettingFault::Fatal(why) | settings::SettingFault::Untuned(why)) => {
                refused_with(&why)
            }
        }
    }
    let samples = SETTINGS.iter().map(|sample| sample.as_bytes().to_vec()).collect();
    Parser { name: "preload settings", samples, words: SETTING_WORDS, inputs: Inputs::SMALL, read }
}

/// A profile as the library loads it, beside one of twice its size, and every look-up in it.
fn profiles() -> Parser {
    const WORDS: &[&str] = &[
        "first_bytes",
        "last_bytes",
        "procs",
        "nodes",
        "other_procs",
        "exact",
        "nearest_below",
        "interpolated",
        "own:binomial",
        "own:pipeline",
        "own:linear",
        "mockup:bcast_as_scatter_allgather",
        "bcast",
        "ranges",
    ];
    fn read(input: &[u8]) -> Answer {
        let Ok(text) = str::from_utf8(input) else { return Answer::Refused };
        let profile = match document::parse::<Profile>(text, Path::new("FILE")) {
            Ok(profile) => profile,
            Err(error) => return refused_with(&error),
        };
        for range in profile.ranges.iter() {
            if let Err(problem) = runnable(profile.collective, &range.choice.method) {
                return refused_with(&problem);
            }
        }
        look_up(&profile);
        Answer::Accepted
    }
    let samples = files::loadable_profiles();
    Parser { name: "profiles looked up", samples, words: WORDS, inputs: Inputs::SMALL, read }
}

fn look_up(profile: &Profile) {
    let collective = profile.collective;
    let ends = profile.ranges.iter().flat_map(|range| [range.first_bytes, range.last_bytes]);
    let near = ends.flat_map(|end| [end.saturating_sub(1), end, end.saturating_add(1)]);
    let messages: Vec<u64> = near.chain([0, 1, 1000, u64::MAX]).collect();
    let found = |tables: &MethodTables, bytes| {
        tables.for_collective(collective).find(bytes).map(|choice| choice.method())
    };

    // One of so many nodes, if there can be one.
    let layout = profile.layout.or_else(|| {
        let nodes = profile.nodes.filter(|nodes| (1..=profile.procs.min(64)).contains(nodes))?;
        let mut counts = vec![1; nodes as usize];
        counts[0] = profile.procs - nodes + 1;
        Layout::from_counts(&counts, records::RankPlacement::Block).ok()
    });
    if layout.is_none() && profile.nodes.is_some() {
        return;
    }
    let alone = std::slice::from_ref(profile);
    let exact = MethodTables::new(&[], alone, profile.procs, layout, false);
    for &bytes in &messages {
        assert_eq!(found(&exact, bytes), profile.method(bytes).cloned(), "{bytes} bytes");
    }
    if profile.layout.is_some() {
        return;
    }
    let mut larger = profile.clone();
    larger.procs = profile.procs.saturating_mul(2);
    let both = [larger, profile.clone()];
    for procs in [1, profile.procs.saturating_sub(1), profile.procs.saturating_add(1), u32::MAX] {
        let tables = MethodTables::new(&[], &both, procs, layout, true);
        let is_between = profile.procs < procs && procs < both[0].procs;
        if is_between && profile.other_procs != OtherProcs::Exact {
            for &bytes in &messages {
                assert_eq!(
                    found(&tables, bytes),
                    profile.method(bytes).cloned(),
                    "{bytes} bytes between"
                );
            }
        }
        assert!(
            Collective::ALL
                .iter()
                .all(|other| *other == collective || tables.for_collective(*other).is_empty())
        );
    }
}

/// What ranks tell the first of their calls.
fn of_ranks() -> Parser {
    const SAMPLE: &str = r#"[{"collective":"bcast","procs":8,"bytes":64,"method":"own:ring","calls":3,"seconds":0.5},
{"collective":"bcast","procs":8,"bytes":64,"method":"own:ring","calls":4,"seconds":0.25}]"#;
    const WORDS: &[&str] =
        &["collective", "procs", "bytes", "method", "calls", "seconds", "barrier", "default"];
    fn read(input: &[u8]) -> Answer {
        let calls: Vec<Calls> = report::parse(input);
        if calls.is_empty() {
            return Answer::Refused;
        }
        let usage = Usage::of_all_ranks(8, "MPICH".into(), 1.5, calls);
        assert!(document::text(&usage).is_ok());
        Answer::Accepted
    }
    Parser {
        name: "usage of ranks",
        samples: vec![SAMPLE.into()],
        words: WORDS,
        inputs: Inputs::SMALL,
        read,
    }
}
