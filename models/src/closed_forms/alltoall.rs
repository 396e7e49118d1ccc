//! Table 4: alltoall of m bytes between each pair of processes.
//!
//! Where Hockney's rows are printed with alpha(m) and beta(m), they are taken with constants.

use records::Algorithm;

use super::{
    form::ClosedForm,
    shape::CallShape,
    text::{
        Text::{self, Formula},
        Texts::ByCase,
    },
};
use crate::{
    Forms,
    parameters::{Network, PointToPointParameters},
};

/// The rows of Table 4.
pub(super) const FORMS: &[ClosedForm] = &[
    ClosedForm::segmented(Algorithm::Linear, linear, ByCase(linear_text)),
    ClosedForm::unsegmented(Algorithm::Pairwise, pairwise, ByCase(pairwise_text)),
];

/// Table 4, "Linear": seconds. A process begins to send, segment by segment around all others,
/// once the message of the process before it has arrived; (P - 1)(n_s P + 1 - P/2) messages pass
/// in sequence. Not the linear algorithm of the MPI libraries, which post all messages at once.
///
/// - Hockney, printed: the bytes of most messages are missing; corrected: all messages whole.
/// - LogGP, printed: L + 2 o on each of the P hops, each too long by g; corrected: L + 2 o - g.
///
/// LogGP corrected and PLogP are exact.
fn linear(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    let (p, m_s) = (shape.procs(), shape.segment_bytes());
    let messages = (p - 1.0) * (shape.segments() * p + 1.0 - p / 2.0);
    match (&network.model, forms) {
        (PointToPointParameters::Hockney(net), Forms::Printed) => {
            p * net.message(m_s) + messages * net.alpha
        }
        (PointToPointParameters::Hockney(net), Forms::Corrected) => messages * net.message(m_s),
        (PointToPointParameters::LogGp(net), _) => {
            let hop = match forms {
                Forms::Printed => net.latency + 2.0 * net.overhead,
                Forms::Corrected => net.latency + 2.0 * net.overhead - net.gap,
            };
            p * hop + messages * net.gap(m_s)
        }
        (PointToPointParameters::PLogP(net), _) => p * net.latency() + messages * net.gap(m_s),
    }
}

fn linear_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), Forms::Printed) => {
            "P (alpha + beta m_s) + (P - 1)(n_s P + 1 - P / 2) alpha"
        }
        (PointToPointParameters::Hockney(_), Forms::Corrected) => {
            "(P - 1)(n_s P + 1 - P / 2)(alpha + beta m_s)"
        }
        (PointToPointParameters::LogGp(_), Forms::Printed) => {
            "P (L + 2 o) + (P - 1)(n_s P + 1 - P / 2)(g + (m_s - 1) G)"
        }
        (PointToPointParameters::LogGp(_), Forms::Corrected) => {
            "P (L + 2 o - g) + (P - 1)(n_s P + 1 - P / 2)(g + (m_s - 1) G)"
        }
        (PointToPointParameters::PLogP(_), _) => "P L + (P - 1)(n_s P + 1 - P / 2) g(m_s)",
    })
}

/// Table 4, "Pairwise exchange": seconds. P - 1 exchanges of whole messages, full duplex.
///
/// LogGP is printed as L + o + (m - 1) G + g per exchange, where a message takes
/// L + 2 o + (m - 1) G; corrected to that.
fn pairwise(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    let m = shape.bytes();
    let exchange = match (&network.model, forms) {
        (PointToPointParameters::Hockney(net), _) => net.message(m),
        (PointToPointParameters::LogGp(net), Forms::Printed) => {
            net.latency + net.overhead + net.gap(m)
        }
        (PointToPointParameters::LogGp(net), Forms::Corrected) => net.message(m),
        (PointToPointParameters::PLogP(net), _) => net.message(m),
    };
    (shape.procs() - 1.0) * exchange
}

fn pairwise_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), _) => "(P - 1)(alpha + beta m)",
        (PointToPointParameters::LogGp(_), Forms::Printed) => "(P - 1)(L + o + (m - 1) G + g)",
        (PointToPointParameters::LogGp(_), Forms::Corrected) => "(P - 1)(L + 2 o + (m - 1) G)",
        (PointToPointParameters::PLogP(_), _) => "(P - 1)(L + g(m))",
    })
}
