//! Table 4: alltoall of m bytes between each pair of processes.

use records::Algorithm;

use super::{Form, Shape};
use crate::{
    Forms,
    parameters::{Network, PointToPoint},
};

/// The rows of Table 4.
pub(super) const FORMS: &[Form] =
    &[Form::segmented(Algorithm::Linear, linear), Form::unsegmented(Algorithm::Pairwise, pairwise)];

/// Table 4, "Linear": seconds. A process begins to send, segment by segment around all others,
/// once the message of the process before it has arrived; (P - 1)(n_s P + 1 - P/2) messages pass
/// in sequence. Not the linear algorithm of the MPI libraries, which post all messages at once.
///
/// - Hockney, printed: the bytes of most messages are missing; corrected: all messages whole.
/// - LogGP, printed: L + 2 o on each of the P hops, each too long by g; corrected: L + 2 o - g.
///
/// LogGP corrected and PLogP are exact.
fn linear(network: &Network, shape: &Shape, forms: Forms) -> f64 {
    let (p, m_s) = (shape.procs(), shape.segment_bytes());
    let messages = (p - 1.0) * (shape.segments() * p + 1.0 - p / 2.0);
    match (&network.model, forms) {
        (PointToPoint::Hockney(net), Forms::Printed) => p * net.message(m_s) + messages * net.alpha,
        (PointToPoint::Hockney(net), Forms::Corrected) => messages * net.message(m_s),
        (PointToPoint::LogGp(net), _) => {
            let hop = match forms {
                Forms::Printed => net.latency + 2.0 * net.overhead,
                Forms::Corrected => net.latency + 2.0 * net.overhead - net.gap,
            };
            p * hop + messages * net.gap(m_s)
        }
        (PointToPoint::PLogP(net), _) => p * net.latency() + messages * net.gap(m_s),
    }
}

/// Table 4, "Pairwise exchange": seconds. P - 1 exchanges of whole messages, full duplex.
///
/// LogGP is printed as L + o + (m - 1) G + g per exchange, where a message takes
/// L + 2 o + (m - 1) G; corrected to that.
fn pairwise(network: &Network, shape: &Shape, forms: Forms) -> f64 {
    let m = shape.bytes();
    let exchange = match (&network.model, forms) {
        (PointToPoint::Hockney(net), _) => net.message(m),
        (PointToPoint::LogGp(net), Forms::Printed) => net.latency + net.overhead + net.gap(m),
        (PointToPoint::LogGp(net), Forms::Corrected) => net.message(m),
        (PointToPoint::PLogP(net), _) => net.message(m),
    };
    (shape.procs() - 1.0) * exchange
}
