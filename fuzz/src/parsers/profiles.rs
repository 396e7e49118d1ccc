use std::path::Path;

use records::profile::{self, Profile, pgtune as text};

use super::{FILE, document, reads_back, refused_with};
use crate::{Answer, Inputs, Parser, files};

/// Profiles, in Colibri's form.
pub fn profile() -> Parser {
    const WORDS: &[&str] = &[
        "schema",
        "colibri/profile/1",
        "collective",
        "message_size",
        "procs",
        "nodes",
        "other_procs",
        "library",
        "ranges",
        "first_bytes",
        "last_bytes",
        "method",
        "gain",
        "exact",
        "nearest_below",
        "interpolated",
        "bcast",
        "reduce_scatter_block",
        "alltoallv",
        "barrier",
        "own:pipeline",
        "segment=8KiB",
        "mockup:bcast_as_scatter_allgather",
        "plugin:a.so:f",
        "native:mpich:ring",
        "default",
    ];
    let read = |input: &[u8]| document::<Profile>(input, look_up);
    Parser {
        name: "profile",
        samples: files::profiles(),
        words: WORDS,
        inputs: Inputs::SMALL,
        read,
    }
}

/// Profiles, in PGMPITuneLib's form.
pub fn pgtune() -> Parser {
    const WORDS: &[&str] = &[
        "MPI_Bcast",
        "MPI_Scatter",
        "MPI_Reduce_scatter_block",
        "MPI_Scan",
        "bcast_as_allgatherv",
        "scatter_as_bcast",
        "scan_as_exscan_reducelocal",
        "reduce_as_reducescatter_gatherv",
        "1 1 2",
        "# ",
        "\n1 2 1\n",
        "_as_",
    ];
    Parser {
        name: "pgtune",
        samples: files::pgtune(),
        words: WORDS,
        inputs: Inputs::SMALL,
        read: read_text,
    }
}

fn read_text(input: &[u8]) -> Answer {
    let Ok(told) = str::from_utf8(input) else { return Answer::Refused };
    match text::parse(told, Path::new(FILE)) {
        Ok(profile) => {
            look_up(&profile);
            reads_back(&profile);
            Answer::Accepted
        }
        Err(error) => refused_with(&error),
    }
}

/// Every range is found at its ends, nothing beside it, and nothing in two ways.
fn look_up(profile: &Profile) {
    for (index, range) in profile.ranges.iter().enumerate() {
        for bytes in [range.first_bytes, range.last_bytes] {
            assert_eq!(profile.method(bytes), Some(&range.choice.method), "at the end of a range");
        }
        let before = index.checked_sub(1).map(|index| profile.ranges[index].last_bytes);
        if let Some(below) = range.first_bytes.checked_sub(1).filter(|&below| before != Some(below))
        {
            assert_eq!(profile.method(below), None, "below a range");
        }
    }
    let _ = (
        profile.method(0),
        profile.method(u64::MAX),
        profile::REPLACED.contains(&profile.collective),
    );
    if let Ok(written) = text::format(profile) {
        let again = text::parse(&written, Path::new(FILE)).expect("what was written can be read");
        assert_eq!((again.collective, again.procs), (profile.collective, profile.procs));
        let plain = |of: &Profile| -> Vec<_> {
            of.ranges
                .iter()
                .map(|range| (range.first_bytes, range.last_bytes, range.choice.method.clone()))
                .collect()
        };
        assert_eq!(plain(&again), plain(profile), "another profile is read back");
    }
}
