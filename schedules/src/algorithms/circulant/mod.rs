//! Circulant graphs: every rank sends to the rank some distance after it, and hears from the rank
//! as far before it, for any number of ranks.
//!
//! `halving.rs`: one block each, in ceil(log2 p) rounds (Träff, "Optimal, Non-pipelined
//! Reduce-scatter and Allreduce Algorithms", arXiv 2410.14234). `blocks.rs`: n blocks of one rank, in
//! n - 1 + ceil(log2 p) rounds (Träff, "Optimal Broadcast Schedules in Logarithmic Time", arXiv
//! 2407.18004).

mod blocks;
mod halving;

pub(super) use blocks::BlockSchedule;
pub(super) use halving::Turned;
