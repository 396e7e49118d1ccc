//! How ranks are best brought together.

use crate::scheme::{TOGETHER, TimingScheme};

/// The scheme for ranks that start so far apart, in seconds, after a barrier and at an agreed instant: the barrier,
/// as programs and the usual benchmarks call, unless agreed instants bring the ranks together and it does not.
///
/// A rank comes out of a barrier up to a latency after another. Where that is much beside a call, the time of
/// short calls is the barrier's.
pub fn scheme_for(barrier: f64, agreed: f64) -> TimingScheme {
    match barrier > TOGETHER && agreed < barrier / 2.0 {
        true => TimingScheme::Global,
        false => TimingScheme::Barrier,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_agreed_where_a_barrier_leaves_the_ranks_apart() {
        assert_eq!(scheme_for(2e-3, 60e-6), TimingScheme::Global);
        assert_eq!(scheme_for(2e-3, 1.5e-3), TimingScheme::Barrier, "no better");
        assert_eq!(scheme_for(40e-6, 1e-6), TimingScheme::Barrier, "together");
    }
}
