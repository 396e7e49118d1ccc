//! What measuring costs: jobs, visits and calls.

use records::observation::CollectiveCall;

use crate::constants::constants;

/// What observations cost, starting their jobs not counted, in seconds.
pub fn spent_seconds(rows: &[CollectiveCall]) -> f64 {
    let visits = rows.chunk_by(|one, next| one.visit == next.visit).count();
    let calls: f64 = rows.iter().map(|row| row.seconds + synchronisation(row.layout.procs())).sum();
    constants().waking_seconds * visits as f64 + calls
}

/// Warm-ups and repetitions of one visit. Short calls are noisy and cheap, long ones neither. A
/// visit's first call takes longer, as others have been called meanwhile (caches, connections that
/// were idle), and not of every method alike: of pipelines of 3 to 40 ms 5 to 10 % were seen, of
/// linear broadcasts of 70 to 400 ms up to 30 %, of 600 ms 2 to 5 %. What one visit's calls have in
/// common (where the scheduler put the ranks, say) is a third and more of the variance of a short call, so
/// that, as waking the ranks costs about a call, a third one tells less than a further visit does.
pub(crate) fn calls(cost_seconds: f64) -> (u32, u32) {
    match cost_seconds {
        cost if cost < constants().two_calls_seconds => (1, 2),
        cost if cost < constants().warm_up_seconds => (1, 1),
        _ => (0, 1),
    }
}

/// What a visit with so many warm-ups and repetitions costs, in seconds.
pub(crate) fn visit_seconds(procs: u32, cost: f64, (warmups, repetitions): (u32, u32)) -> f64 {
    constants().waking_seconds + f64::from(warmups + repetitions) * (cost + synchronisation(procs))
}

/// What the barriers before and after a call cost beside it, in seconds.
pub(crate) fn synchronisation(procs: u32) -> f64 {
    constants().synchronisation_seconds * f64::from(procs)
}
