//! What several tests need.

use records::{Collective, Method, Point, observation::CollectiveCall, plan::Cell};

/// A broadcast on 8 processes that took so many seconds, of a visit 0.
pub fn call(method: &str, ran: &str, bytes: u64, seconds: f64) -> CollectiveCall {
    let method = method.parse().unwrap();
    let cell = Cell { point: Point::flat(Collective::Bcast, 8, bytes), method };
    CollectiveCall { ran: ran.into(), ..CollectiveCall::timed(&cell, seconds) }
}

/// Where it does not matter what ran.
pub fn any(_: Collective, _: &Method, _: &str) -> bool {
    true
}
