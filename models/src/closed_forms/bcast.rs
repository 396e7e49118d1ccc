//! Table 2: broadcast of m bytes from one root.
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

/// The rows of Table 2.
pub(super) const FORMS: &[ClosedForm] = &[
    ClosedForm::segmented(Algorithm::Linear, linear, ByCase(linear_text)),
    ClosedForm::segmented(Algorithm::Pipeline, pipeline, ByCase(pipeline_text)),
    ClosedForm::segmented(Algorithm::Binomial, binomial, ByCase(binomial_text)),
    ClosedForm::segmented(Algorithm::Binary, binary, ByCase(binary_text)),
    ClosedForm::segmented(Algorithm::SplittedBinary, splitted_binary, ByCase(splitted_binary_text)),
];

/// Table 2, "Linear": seconds. The root sends every segment to every other process.
///
/// Exact for LogGP and PLogP where o <= gap.
fn linear(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let m_s = shape.segment_bytes();
    let messages = shape.segments() * (shape.procs() - 1.0);
    match &network.model {
        PointToPointParameters::Hockney(net) => messages * net.message(m_s),
        PointToPointParameters::LogGp(net) => {
            net.latency + 2.0 * net.overhead - net.gap + messages * net.gap(m_s)
        }
        PointToPointParameters::PLogP(net) => net.latency() + messages * net.gap(m_s),
    }
}

fn linear_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), _) => "n_s (P - 1)(alpha + m_s beta)",
        (PointToPointParameters::LogGp(_), _) => "L + 2 o - g + n_s (P - 1)(g + (m_s - 1) G)",
        (PointToPointParameters::PLogP(_), _) => "L + n_s (P - 1) g(m_s)",
    })
}

/// Table 2, "Pipeline": seconds. A chain; each process forwards segment by segment.
///
/// Printed, the period of a forwarding process is the gap. Corrected, it is at least the two
/// overheads that the process spends per segment. Exact for LogGP and PLogP then, for P > 2; with two
/// processes none forwards, and 2 o is an upper bound.
fn pipeline(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    let (p, n_s, m_s) = (shape.procs(), shape.segments(), shape.segment_bytes());
    match &network.model {
        PointToPointParameters::Hockney(net) => (p + n_s - 2.0) * net.message(m_s),
        PointToPointParameters::LogGp(net) => {
            let period = match forms {
                Forms::Printed => net.gap(m_s),
                Forms::Corrected => net.gap(m_s).max(2.0 * net.overhead),
            };
            (p - 1.0) * net.message(m_s) + (n_s - 1.0) * period
        }
        PointToPointParameters::PLogP(net) => {
            let costs = net.at(m_s);
            let period = match forms {
                Forms::Printed => costs.gap,
                Forms::Corrected => costs.gap.max(costs.send + costs.receive),
            };
            (p - 1.0) * (net.latency() + costs.gap) + (n_s - 1.0) * period
        }
    }
}

fn pipeline_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), _) => "(P + n_s - 2)(alpha + m_s beta)",
        (PointToPointParameters::LogGp(_), Forms::Printed) => {
            "(P - 1)(L + 2 o + (m_s - 1) G) + (n_s - 1)(g + (m_s - 1) G)"
        }
        (PointToPointParameters::LogGp(_), Forms::Corrected) => {
            "(P - 1)(L + 2 o + (m_s - 1) G) + (n_s - 1) max{g + (m_s - 1) G, 2 o}"
        }
        (PointToPointParameters::PLogP(_), Forms::Printed) => {
            "(P - 1)(L + g(m_s)) + (n_s - 1) g(m_s)"
        }
        (PointToPointParameters::PLogP(_), Forms::Corrected) => {
            "(P - 1)(L + g(m_s)) + (n_s - 1) max{g(m_s), os(m_s) + or(m_s)}"
        }
    })
}

/// Table 2, "Binomial": seconds. ceil(lg P) rounds; a child gets all segments before the next.
///
/// Exact for LogGP and PLogP where P is a power of two, an upper bound elsewhere.
fn binomial(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let (k, n_s, m_s) = (shape.rounds(), shape.segments(), shape.segment_bytes());
    match &network.model {
        PointToPointParameters::Hockney(net) => k * n_s * net.message(m_s),
        PointToPointParameters::LogGp(net) => k * (net.message(m_s) + (n_s - 1.0) * net.gap(m_s)),
        PointToPointParameters::PLogP(net) => k * (net.latency() + n_s * net.gap(m_s)),
    }
}

fn binomial_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), _) => "ceil(lg P) n_s (alpha + m_s beta)",
        (PointToPointParameters::LogGp(_), _) => {
            "ceil(lg P)(L + 2 o + (m_s - 1) G + (n_s - 1)(g + (m_s - 1) G))"
        }
        (PointToPointParameters::PLogP(_), _) => "ceil(lg P)(L + n_s g(m_s))",
    })
}

/// Table 2, "Binary": seconds. A binary tree; each process sends every segment to two children.
///
/// - Hockney, printed: 2 alpha + m_s beta per step; corrected: 2 (alpha + m_s beta), two messages.
/// - LogGP, printed: no dependence on n_s, up to 8 times too low; corrected by the missing
///   factor n_s - 1 and the g that belongs outside 2 (...).
///
/// LogGP corrected (where 2 o <= gap) and PLogP are exact for P = 2^i - 1, an upper bound elsewhere.
fn binary(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    let m_s = shape.segment_bytes();
    match (&network.model, forms) {
        (PointToPointParameters::LogGp(net), Forms::Printed) => {
            let gap = net.gap(m_s);
            shape.depth() * (net.latency + 2.0 * (net.overhead + gap)) + 2.0 * gap
        }
        _ => binary_tree(network, shape, forms, shape.segments()),
    }
}

fn binary_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), Forms::Printed) => {
            "(ceil(lg(P + 1)) + n_s - 2)(2 alpha + m_s beta)"
        }
        (PointToPointParameters::Hockney(_), Forms::Corrected) => {
            "2 (ceil(lg(P + 1)) + n_s - 2)(alpha + m_s beta)"
        }
        (PointToPointParameters::LogGp(_), Forms::Printed) => {
            "(ceil(lg(P + 1)) - 1)(L + 2 (o + (m_s - 1) G + g)) + 2 ((m_s - 1) G + g)"
        }
        (PointToPointParameters::LogGp(_), Forms::Corrected) => {
            "(ceil(lg(P + 1)) - 1)(L + g + 2 (o + (m_s - 1) G)) + 2 (n_s - 1)(g + (m_s - 1) G)"
        }
        (PointToPointParameters::PLogP(_), _) => {
            "(ceil(lg(P + 1)) - 1)(L + 2 g(m_s)) + (n_s - 1) max{2 g(m_s), or(m_s) + g(m_s) + \
             os(m_s)}"
        }
    })
}

/// Table 2, "Splitted-binary": seconds. Each half of the message goes down one half of a binary
/// tree, then pairs exchange halves.
///
/// - Hockney, printed: 2 alpha + m_s beta per step of the tree; corrected as for "Binary".
/// - PLogP, printed: without the final exchange, 16 to 25 % low; corrected by L + g(m/2).
/// - Not as printed: PLogP's row has n_s / 2 - 1 periods, the other two ceil(n_s / 2) - 1; all are
///   taken with the latter. They differ where n_s is odd.
///
/// Exact for LogGP and PLogP for P = 2^i - 1 and even n_s; needs n_s >= 2 to make sense.
fn splitted_binary(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    let tree = binary_tree(network, shape, forms, shape.half_segments());
    let half = shape.bytes() / 2.0;
    match (&network.model, forms) {
        (PointToPointParameters::Hockney(net), _) => tree + net.message(half),
        (PointToPointParameters::LogGp(net), _) => tree + net.message(half),
        (PointToPointParameters::PLogP(_), Forms::Printed) => tree,
        (PointToPointParameters::PLogP(net), Forms::Corrected) => tree + net.message(half),
    }
}

fn splitted_binary_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), Forms::Printed) => {
            "(ceil(lg(P + 1)) + ceil(n_s / 2) - 2)(2 alpha + m_s beta) + alpha + (m / 2) beta"
        }
        (PointToPointParameters::Hockney(_), Forms::Corrected) => {
            "2 (ceil(lg(P + 1)) + ceil(n_s / 2) - 2)(alpha + m_s beta) + alpha + (m / 2) beta"
        }
        (PointToPointParameters::LogGp(_), _) => {
            "(ceil(lg(P + 1)) - 1)(L + g + 2 (o + (m_s - 1) G)) + 2 (ceil(n_s / 2) - 1)(g + (m_s \
             - 1) G) + L + 2 o + (m / 2 - 1) G"
        }
        (PointToPointParameters::PLogP(_), Forms::Printed) => {
            "(ceil(lg(P + 1)) - 1)(L + 2 g(m_s)) + (ceil(n_s / 2) - 1) max{2 g(m_s), or(m_s) + \
             g(m_s) + os(m_s)}"
        }
        (PointToPointParameters::PLogP(_), Forms::Corrected) => {
            "(ceil(lg(P + 1)) - 1)(L + 2 g(m_s)) + (ceil(n_s / 2) - 1) max{2 g(m_s), or(m_s) + \
             g(m_s) + os(m_s)} + L + g(m / 2)"
        }
    })
}

/// Down a binary tree: `segments` segments, two children per process.
///
/// Printed and corrected differ for Hockney alone.
fn binary_tree(network: &Network, shape: &CallShape, forms: Forms, segments: f64) -> f64 {
    let (levels, m_s) = (shape.depth(), shape.segment_bytes());
    match &network.model {
        PointToPointParameters::Hockney(net) => {
            let step = match forms {
                Forms::Printed => 2.0 * net.alpha + m_s * net.beta,
                Forms::Corrected => 2.0 * net.message(m_s),
            };
            (levels + segments - 1.0) * step
        }
        PointToPointParameters::LogGp(net) => {
            let gap = net.gap(m_s);
            levels * (net.message(m_s) + gap) + 2.0 * (segments - 1.0) * gap
        }
        PointToPointParameters::PLogP(net) => {
            let costs = net.at(m_s);
            let period = (2.0 * costs.gap).max(costs.receive + costs.gap + costs.send);
            levels * (net.latency() + 2.0 * costs.gap) + (segments - 1.0) * period
        }
    }
}
