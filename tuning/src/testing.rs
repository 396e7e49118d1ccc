//! What several tests need.

use records::{Collective, Layout, observation::CollectiveCall, plan::Cell};

/// A broadcast on 8 processes that took so many seconds, of a visit 0.
pub fn call(method: &str, ran: &str, bytes: u64, seconds: f64) -> CollectiveCall {
    let method = method.parse().unwrap();
    let cell = Cell { collective: Collective::Bcast, method, layout: Layout::flat(8), bytes };
    CollectiveCall { ran: ran.into(), ..CollectiveCall::timed(&cell, seconds) }
}
