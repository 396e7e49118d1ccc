//! Making one rank's program takes no longer per rank on many ranks than on few: no round looks at all ranks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{hint::black_box, time::Instant};

use colibri_schedules::{Call, ENTRIES, Entry, NODE_AWARE, NodesOfRanks, Round, VARIANTS};

/// The numbers of ranks that are compared.
const RANKS: [u32; 2] = [512, 4096];
/// Of programs with as many rounds or steps as there are ranks, each as long as the others, the greater takes 8
/// times as long; with a logarithm, 10.7 times.
const MAX_GROWTH: f64 = 12.0;
/// What disturbs a time makes it longer: the least of several counts, of more where others use the processors.
const MAX_REPETITIONS: usize = 100;
/// Ranks whose programs are made, as shares of the way from the first to the last.
const PLACES: [f64; 4] = [0.0, 0.3, 0.5, 1.0];
/// Elements and those of a segment; 0: one segment.
const SIZES: [(u64, u64); 2] = [(1, 0), (1 << 16, 1 << 14)];

/// Makes all of a rank's program.
fn make(entry: &Entry, call: &Call<'_>, rank: u32, scratch: &mut Round) {
    scratch.begin_call();
    let needs = entry.needs_in(call, rank, scratch);
    let header = vec![call.count; needs.header as usize];
    for round in 0..needs.rounds {
        let header = if round == 0 { &[][..] } else { &header };
        assert!(entry.round(&Call { header, ..*call }, rank, round, scratch));
        black_box(scratch.steps());
    }
}

/// A call on some number of ranks, as one of them knows it.
struct KnownCall {
    ranks: u32,
    rank: u32,
    nodes: NodesOfRanks,
    counts: Vec<u64>,
    displacements: Vec<u64>,
    size: (u64, u64),
}

impl KnownCall {
    fn new(entry: &Entry, ranks: u32, place: f64, size: (u64, u64)) -> Self {
        let rank = (f64::from(ranks - 1) * place) as u32;
        let knows_own = entry.collective.is_rooted() && rank != 0;
        let blocks = if knows_own { 1 } else { u64::from(ranks) };
        KnownCall {
            ranks,
            rank,
            nodes: NodesOfRanks::block(ranks / 8, 8),
            counts: vec![size.0; blocks as usize],
            displacements: (0..blocks).map(|block| block * size.0).collect(),
            size,
        }
    }

    /// Seconds to make the program.
    fn seconds(&self, entry: &Entry, scratch: &mut Round) -> f64 {
        let (count, segment) = self.size;
        let call = Call {
            segment,
            counts: &self.counts,
            displacements: &self.displacements,
            nodes: Some(&self.nodes),
            ..Call::new(self.ranks, count)
        };
        entry.check(&call).unwrap();
        let begun = Instant::now();
        make(entry, &call, self.rank, scratch);
        begun.elapsed().as_secs_f64()
    }
}

#[test]
fn making_a_program_takes_in_proportion_to_the_ranks_at_most() {
    let mut scratch = Round::default();
    let mut too_long = Vec::new();
    let variants = VARIANTS.iter().map(|(_, entry)| entry);
    for entry in ENTRIES.iter().chain(variants).chain(NODE_AWARE) {
        for (place, size) in PLACES.iter().flat_map(|place| SIZES.map(|size| (*place, size))) {
            let calls = RANKS.map(|ranks| KnownCall::new(entry, ranks, place, size));
            let mut least = [f64::INFINITY; 2];
            for repetition in 0..MAX_REPETITIONS {
                for (least, call) in least.iter_mut().zip(&calls) {
                    *least = call.seconds(entry, &mut scratch).min(*least);
                }
                if repetition > 0 && least[1] < MAX_GROWTH * least[0] {
                    break;
                }
            }
            let growth = least[1] / least[0];
            if growth >= MAX_GROWTH {
                let [few, many] = RANKS;
                let (rank, (count, segment)) = (calls[1].rank, size);
                too_long.push(format!(
                    "{entry:?}, {count} elements, segment {segment}, rank {rank}: {growth:.1} times as \
                     long on {many} ranks as on {few}"
                ));
            }
        }
    }
    assert!(too_long.is_empty(), "{too_long:#?}");
}
