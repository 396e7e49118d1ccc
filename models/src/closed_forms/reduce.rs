//! Table 3: reduction of m bytes to one root. gamma is the time to combine a byte.
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

/// The rows of Table 3.
pub(super) const FORMS: &[ClosedForm] = &[
    ClosedForm::segmented(Algorithm::Linear, linear, ByCase(linear_text)),
    ClosedForm::segmented(Algorithm::Pipeline, pipeline, ByCase(pipeline_text)),
    ClosedForm::segmented(Algorithm::Binomial, binomial, ByCase(binomial_text)),
    ClosedForm::segmented(Algorithm::Binary, binary, ByCase(binary_text)),
];

/// Table 3, "Flat Tree": seconds. The root receives and combines every segment of every process.
///
/// - LogGP, printed: g inside the maximum lacks its factor P - 1, and (m_s - 1) G is charged twice
///   (P = 2 costs more than a message). Corrected: the root is bound by the gap or by its
///   processor, whichever chain is longer; exact in both cases.
/// - PLogP, printed: hides the last combination behind the gap; corrected by the same two chains.
fn linear(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    let (p, n_s, m_s) = (shape.procs(), shape.segments(), shape.segment_bytes());
    let combine = network.combine(m_s);
    let messages = n_s * (p - 1.0);
    match (&network.model, forms) {
        (PointToPointParameters::Hockney(net), _) => messages * (net.message(m_s) + combine),
        (PointToPointParameters::LogGp(net), Forms::Printed) => {
            let busy = (p - 1.0) * (net.overhead + net.stream(m_s) + combine);
            net.overhead + net.stream(m_s) + net.latency + n_s * net.gap.max(busy)
        }
        (PointToPointParameters::LogGp(net), Forms::Corrected) => {
            let gap_bound =
                net.latency + 2.0 * net.overhead - net.gap + messages * net.gap(m_s) + combine;
            let processor_bound =
                net.latency + net.overhead + net.stream(m_s) + messages * (net.overhead + combine);
            gap_bound.max(processor_bound)
        }
        (PointToPointParameters::PLogP(net), Forms::Printed) => {
            let costs = net.at(m_s);
            net.latency() + messages * costs.gap.max(costs.receive + combine)
        }
        (PointToPointParameters::PLogP(net), Forms::Corrected) => {
            let costs = net.at(m_s);
            let gap_bound = messages * costs.gap + combine;
            let processor_bound = messages * (costs.receive + combine);
            net.latency() + gap_bound.max(processor_bound)
        }
    }
}

fn linear_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), _) => "n_s (P - 1)(alpha + beta m_s + gamma m_s)",
        (PointToPointParameters::LogGp(_), Forms::Printed) => {
            "o + (m_s - 1) G + L + n_s max{g, (P - 1)(o + (m_s - 1) G + gamma m_s)}"
        }
        (PointToPointParameters::LogGp(_), Forms::Corrected) => {
            "max{L + 2 o - g + n_s (P - 1)(g + (m_s - 1) G) + gamma m_s, L + o + (m_s - 1) G + \
             n_s (P - 1)(o + gamma m_s)}"
        }
        (PointToPointParameters::PLogP(_), Forms::Printed) => {
            "L + (P - 1) n_s max{g(m_s), or(m_s) + gamma m_s}"
        }
        (PointToPointParameters::PLogP(_), Forms::Corrected) => {
            "L + max{n_s (P - 1) g(m_s) + gamma m_s, n_s (P - 1)(or(m_s) + gamma m_s)}"
        }
    })
}

/// Table 3, "Pipeline": seconds. A chain towards the root, segment by segment.
///
/// Printed, LogGP's and PLogP's periods are 14 to 31 % too long: without combining, this is the
/// broadcast run backwards. Corrected: the gap, or the processor's work per segment if longer.
/// Independent of P as n_s grows, in both. Exact for LogGP corrected, for P > 2.
fn pipeline(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    let (p, n_s, m_s) = (shape.procs(), shape.segments(), shape.segment_bytes());
    let combine = network.combine(m_s);
    match &network.model {
        PointToPointParameters::Hockney(net) => (p + n_s - 2.0) * (net.message(m_s) + combine),
        PointToPointParameters::LogGp(net) => {
            let overheads = 2.0 * net.overhead;
            let period = match forms {
                Forms::Printed => net.gap.max(overheads + net.stream(m_s) + combine),
                Forms::Corrected => net.gap(m_s).max(overheads + combine),
            };
            (p - 1.0) * (net.message(m_s) + combine) + (n_s - 1.0) * period
        }
        PointToPointParameters::PLogP(net) => {
            let costs = net.at(m_s);
            let received = costs.gap.max(costs.receive + combine);
            let period = match forms {
                Forms::Printed => received + costs.send,
                Forms::Corrected => costs.gap.max(costs.receive + costs.send + combine),
            };
            (p - 1.0) * (net.latency() + received) + (n_s - 1.0) * period
        }
    }
}

fn pipeline_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), _) => "(P + n_s - 2)(alpha + beta m_s + gamma m_s)",
        (PointToPointParameters::LogGp(_), Forms::Printed) => {
            "(P - 1)(L + 2 o + (m_s - 1) G + gamma m_s) + (n_s - 1) max{g, 2 o + (m_s - 1) G + \
             gamma m_s}"
        }
        (PointToPointParameters::LogGp(_), Forms::Corrected) => {
            "(P - 1)(L + 2 o + (m_s - 1) G + gamma m_s) + (n_s - 1) max{g + (m_s - 1) G, 2 o + \
             gamma m_s}"
        }
        (PointToPointParameters::PLogP(_), Forms::Printed) => {
            "(P - 1)(L + max{g(m_s), or(m_s) + gamma m_s}) + (n_s - 1)(max{g(m_s), or(m_s) + \
             gamma m_s} + os(m_s))"
        }
        (PointToPointParameters::PLogP(_), Forms::Corrected) => {
            "(P - 1)(L + max{g(m_s), or(m_s) + gamma m_s}) + (n_s - 1) max{g(m_s), or(m_s) + \
             os(m_s) + gamma m_s}"
        }
    })
}

/// Table 3, "Binomial": seconds. ceil(lg P) rounds of receive and combine.
///
/// For P = 2^i without combining PLogP is exact and LogGP low by at most k (g - o); with it they
/// are up to 11 % low.
fn binomial(network: &Network, shape: &CallShape, _: Forms) -> f64 {
    let (k, n_s, m_s) = (shape.rounds(), shape.segments(), shape.segment_bytes());
    let combine = network.combine(m_s);
    match &network.model {
        PointToPointParameters::Hockney(net) => n_s * k * (net.message(m_s) + combine),
        PointToPointParameters::LogGp(net) => {
            let period = net.stream(m_s) + net.gap.max(net.overhead + combine);
            k * (net.overhead + net.latency + n_s * period)
        }
        PointToPointParameters::PLogP(net) => {
            let costs = net.at(m_s);
            let period = costs.gap.max(costs.receive + combine + costs.send);
            k * (net.latency() + n_s * period)
        }
    }
}

fn binomial_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), _) => "n_s ceil(lg P)(alpha + beta m_s + gamma m_s)",
        (PointToPointParameters::LogGp(_), _) => {
            "ceil(lg P)(o + L + n_s ((m_s - 1) G + max{g, o + gamma m_s}))"
        }
        (PointToPointParameters::PLogP(_), _) => {
            "ceil(lg P)(L + n_s max{g(m_s), or(m_s) + gamma m_s + os(m_s)})"
        }
    })
}

/// Table 3, "Binary": seconds. A binary tree; each process combines the segments of two children.
///
/// - LogGP, printed: n_s - 1 stands inside the factor of the depth (3 times high for P = 31,
///   n_s = 64), and only one of the two children's (m_s - 1) G is charged. Corrected: exact for
///   P = 2^i - 1, up to 14 % high where combining dominates.
/// - PLogP, printed: one os too many per segment, 15 % high; corrected: 2 g or the processor's
///   work.
fn binary(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    let (levels, n_s, m_s) = (shape.depth(), shape.segments(), shape.segment_bytes());
    let combine = network.combine(m_s);
    match (&network.model, forms) {
        (PointToPointParameters::Hockney(net), _) => {
            2.0 * (levels + n_s - 1.0) * (net.message(m_s) + combine)
        }
        (PointToPointParameters::LogGp(net), Forms::Printed) => {
            let (overheads, combines) = (3.0 * net.overhead, 2.0 * combine);
            let filled = net.latency + overheads + net.stream(m_s) + combines;
            let period = net.stream(m_s) + net.gap.max(overheads + combines);
            levels * (filled + (n_s - 1.0) * period)
        }
        (PointToPointParameters::LogGp(net), Forms::Corrected) => {
            let second_child = net.gap(m_s).max(net.overhead + combine);
            let filled = net.message(m_s) + combine + second_child;
            let busy = 3.0 * net.overhead + 2.0 * combine;
            levels * filled + (n_s - 1.0) * (2.0 * net.gap(m_s)).max(busy)
        }
        (PointToPointParameters::PLogP(net), _) => {
            let costs = net.at(m_s);
            let received = 2.0 * costs.gap.max(costs.receive + combine);
            let period = match forms {
                Forms::Printed => costs.send + received,
                Forms::Corrected => {
                    (2.0 * costs.gap).max(2.0 * (costs.receive + combine) + costs.send)
                }
            };
            levels * (net.latency() + received) + (n_s - 1.0) * period
        }
    }
}

fn binary_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), _) => {
            "2 (ceil(lg(P + 1)) + n_s - 2)(alpha + beta m_s + gamma m_s)"
        }
        (PointToPointParameters::LogGp(_), Forms::Printed) => {
            "(ceil(lg(P + 1)) - 1)((L + 3 o + (m_s - 1) G + 2 gamma m_s) + (n_s - 1)((m_s - 1) G \
             + max{g, 3 o + 2 gamma m_s}))"
        }
        (PointToPointParameters::LogGp(_), Forms::Corrected) => {
            "(ceil(lg(P + 1)) - 1)(L + 2 o + (m_s - 1) G + gamma m_s + max{g + (m_s - 1) G, o + \
             gamma m_s}) + (n_s - 1) max{2 (g + (m_s - 1) G), 3 o + 2 gamma m_s}"
        }
        (PointToPointParameters::PLogP(_), Forms::Printed) => {
            "(ceil(lg(P + 1)) - 1)(L + 2 max{g(m_s), or(m_s) + gamma m_s}) + (n_s - 1)(os(m_s) + \
             2 max{g(m_s), or(m_s) + gamma m_s})"
        }
        (PointToPointParameters::PLogP(_), Forms::Corrected) => {
            "(ceil(lg(P + 1)) - 1)(L + 2 max{g(m_s), or(m_s) + gamma m_s}) + (n_s - 1) max{2 \
             g(m_s), 2 (or(m_s) + gamma m_s) + os(m_s)}"
        }
    })
}

/// The paper's conditions (section 6.2) under which cutting a binomial reduction of `bytes` into
/// segments of `segment_bytes` makes it faster; they do not depend on P.
///
/// - Hockney: alpha(m) / m + beta(m) > alpha(m_s) / m_s + beta(m_s). Never for constant
///   alpha > 0.
/// - LogGP, printed: max{g, o + y m} > (n_s - 1)(m_s - 1) G + n_s max{g, o + y m_s}. Never.
///   This takes (m_s - 1) G where the whole message costs (m - 1) G; corrected:
///   max{g, o + y m} + (n_s - 1) G > n_s max{g, o + y m_s}. Never where G <= o.
/// - PLogP: max{g(m), or(m) + os(m) + y m} > max{n_s g(m_s), n_s (or(m_s) + os(m_s)) + y m}.
///
/// They hold for m = n_s m_s; elsewhere compare the forms. One segment never pays.
pub fn binomial_segmentation_pays(
    network: &Network,
    forms: Forms,
    bytes: u64,
    segment_bytes: u64,
) -> bool {
    binomial_segmentation_sides(network, forms, bytes, segment_bytes)
        .is_some_and(|(whole, segmented)| whole > segmented)
}

/// The two sides of the condition of [`binomial_segmentation_pays`], (whole, segmented), as the
/// paper's Figure 4 draws them over the message size: seconds per byte by Hockney, else seconds.
/// None where the message is one segment.
pub fn binomial_segmentation_sides(
    network: &Network,
    forms: Forms,
    bytes: u64,
    segment_bytes: u64,
) -> Option<(f64, f64)> {
    let shape = CallShape::new(2, bytes, segment_bytes);
    let (m, n_s, m_s) = (shape.bytes(), shape.segments(), shape.segment_bytes());
    if n_s <= 1.0 {
        return None;
    }
    let combine = |bytes| network.combine(bytes);
    Some(match &network.model {
        PointToPointParameters::Hockney(net) => {
            (net.alpha / m + net.beta, net.alpha / m_s + net.beta)
        }
        PointToPointParameters::LogGp(net) => {
            let whole = net.gap.max(net.overhead + combine(m));
            let segmented = n_s * net.gap.max(net.overhead + combine(m_s));
            match forms {
                Forms::Printed => (whole, (n_s - 1.0) * net.stream(m_s) + segmented),
                Forms::Corrected => (whole + (n_s - 1.0) * net.gap_per_byte, segmented),
            }
        }
        PointToPointParameters::PLogP(net) => {
            let (whole, segment) = (net.at(m), net.at(m_s));
            let overheads = n_s * (segment.receive + segment.send);
            (
                whole.gap.max(whole.receive + whole.send + combine(m)),
                (n_s * segment.gap).max(overheads + n_s * combine(m_s)),
            )
        }
    })
}
