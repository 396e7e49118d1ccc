//! The corrected forms against the algorithms themselves: every message of every process, in
//! program order, under LogGP. Sizes and shapes are those for which the tables' derivation is
//! exact: full trees, g <= L + 2 o, and processors that keep up where a form assumes it.

use models::{Forms, Model, Point, Predictor};
use proptest::prelude::*;
use records::{Algorithm, Collective};

use crate::numbers::PlainParameters;

/// What a process does next.
enum ProcessStep {
    /// Receive the next segment of its parent.
    Receive,
    /// Combine the segment with its own.
    Combine,
    /// Send a segment to this process.
    Send(usize),
}

/// When every process of a tree is done; parents have lower numbers than their children.
///
/// The processor is busy for o per message, and for `combine` per combination; a process sends no
/// two messages closer than g + (m_s - 1) G; a message's last byte arrives L + (m_s - 1) G after
/// its sending overhead.
fn run(programs: &[Vec<ProcessStep>], n: &PlainParameters, segment: u64, combine: f64) -> f64 {
    let stream = (segment as f64 - 1.0).max(0.0) * n.gap_per_byte;
    let mut arrivals: Vec<std::collections::VecDeque<f64>> =
        vec![Default::default(); programs.len()];
    let mut end: f64 = 0.0;
    for (rank, program) in programs.iter().enumerate() {
        let (mut processor, mut network) = (0.0_f64, 0.0_f64);
        for step in program {
            match step {
                ProcessStep::Receive => {
                    let arrival = arrivals[rank].pop_front().unwrap();
                    processor = processor.max(arrival) + n.overhead;
                }
                ProcessStep::Combine => processor += combine,
                ProcessStep::Send(to) => {
                    let start = processor.max(network);
                    processor = start + n.overhead;
                    network = start + n.gap + stream;
                    arrivals[*to].push_back(processor + n.latency + stream);
                }
            }
        }
        assert!(arrivals[rank].is_empty(), "process {rank} leaves messages");
        end = end.max(processor);
    }
    end
}

fn tree(
    procs: usize,
    segments: usize,
    children: impl Fn(usize) -> Vec<usize>,
) -> Vec<Vec<ProcessStep>> {
    let program = |rank: usize| {
        let mut steps = Vec::new();
        for _ in 0..segments {
            if rank > 0 {
                steps.push(ProcessStep::Receive);
            }
            steps.extend(children(rank).into_iter().map(ProcessStep::Send));
        }
        steps
    };
    (0..procs).map(program).collect()
}

/// Children one after the other, each with all segments.
fn binomial(procs: usize, segments: usize) -> Vec<Vec<ProcessStep>> {
    let program = |rank: usize| {
        let mut steps: Vec<ProcessStep> = Vec::new();
        if rank > 0 {
            steps.extend((0..segments).map(|_| ProcessStep::Receive));
        }
        // The highest bit of a rank is the round in which it was reached.
        let from = usize::BITS - rank.leading_zeros();
        let children = (from..usize::BITS).map(|bit| rank + (1 << bit));
        for child in children.take_while(|child| *child < procs) {
            steps.extend((0..segments).map(|_| ProcessStep::Send(child)));
        }
        steps
    };
    (0..procs).map(program).collect()
}

/// g <= L, and o up to `overhead` of g.
fn network(overhead: f64) -> impl Strategy<Value = PlainParameters> {
    (1e-6..1e-4_f64, 0.01..1.0_f64, 0.0..overhead, 1e-10..1e-7_f64).prop_map(
        |(latency, gap, overhead, gap_per_byte)| {
            let gap = gap * latency;
            let n = PlainParameters {
                alpha: 0.0,
                beta: 0.0,
                latency,
                overhead: overhead * gap,
                gap,
                gap_per_byte,
                gamma: 0.0,
                plogp_latency: 0.0,
                knots: Vec::new(),
            };
            n.with_plogp_of_loggp()
        },
    )
}

/// `segments` segments of `segment` bytes over `procs` processes.
#[derive(Debug, Clone, Copy)]
struct SegmentedCall {
    collective: Collective,
    algorithm: Algorithm,
    procs: usize,
    segments: usize,
    segment: u64,
}

impl SegmentedCall {
    fn check(
        &self,
        n: &PlainParameters,
        models: &[Model],
        wanted: f64,
    ) -> Result<(), TestCaseError> {
        let bytes = self.segments as u64 * self.segment;
        let point = Point::flat(self.collective, self.procs as u32, bytes);
        for &model in models {
            let predictor = Predictor::new(model, Forms::Corrected, &n.parameters()).unwrap();
            let got = predictor.predict(point, self.algorithm, self.segment).unwrap();
            let right = (got - wanted).abs() <= 1e-9 * wanted;
            prop_assert!(right, "{model} {self:?}: {got}, expected {wanted}");
        }
        Ok(())
    }
}

const BOTH: &[Model] = &[Model::LogGp, Model::PLogP];

fn chain(procs: usize, segments: usize) -> Vec<Vec<ProcessStep>> {
    tree(procs, segments, |rank| (rank + 1..procs).take(1).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Chains with a process that forwards are exact, whether the network or the processor is the
    /// slower one. A reduction along
    /// a chain is a broadcast that combines after each receive.
    #[test]
    fn chains_take_what_their_messages_take(
        mut n in network(3.0), procs in 3_usize..40, segments in 1_usize..20,
        segment in 1_u64..20_000, combine in 0.0..1e-4_f64,
    ) {
        let (collective, algorithm) = (Collective::Bcast, Algorithm::Pipeline);
        let bcast = SegmentedCall { collective, algorithm, procs, segments, segment };
        let mut programs = chain(procs, segments);
        bcast.check(&n, BOTH, run(&programs, &n, segment, 0.0))?;

        for program in &mut programs {
            *program = std::mem::take(program)
                .into_iter()
                .flat_map(|step| match step {
                    ProcessStep::Receive => vec![ProcessStep::Receive, ProcessStep::Combine],
                    other => vec![other],
                })
                .collect();
        }
        let wanted = run(&programs, &n, segment, combine);
        n.gamma = combine / segment as f64;
        // PLogP hides the last combination behind the gap.
        SegmentedCall { collective: Collective::Reduce, ..bcast }.check(&n, &[Model::LogGp], wanted)?;
    }

    /// Trees are exact where they are full and processors keep up with the gap.
    #[test]
    fn trees_take_what_their_messages_take(
        n in network(0.5), levels in 1_u32..6, segments in 1_usize..20, segment in 1_u64..20_000,
    ) {
        let procs = 1 << levels;
        let bcast = |algorithm, procs| {
            SegmentedCall { collective: Collective::Bcast, algorithm, procs, segments, segment }
        };
        let all = |rank: usize| if rank == 0 { (1..procs).collect() } else { Vec::new() };
        let wanted = run(&tree(procs, segments, all), &n, segment, 0.0);
        bcast(Algorithm::Linear, procs).check(&n, BOTH, wanted)?;

        let wanted = run(&binomial(procs, segments), &n, segment, 0.0);
        bcast(Algorithm::Binomial, procs).check(&n, BOTH, wanted)?;

        let full = 2 * procs - 1;
        let two =
            |rank: usize| (2 * rank + 1..=2 * rank + 2).filter(|child| *child < full).collect();
        let wanted = run(&tree(full, segments, two), &n, segment, 0.0);
        bcast(Algorithm::Binary, full).check(&n, BOTH, wanted)?;
    }
}
