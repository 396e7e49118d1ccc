//! Table 1: barrier. Every message is empty; alpha = alpha(0), g = g(0).
//!
//! Where Hockney's rows are printed with alpha(0), they are taken with constants.

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

/// The rows of Table 1.
pub(super) const FORMS: &[ClosedForm] = &[
    ClosedForm::unsegmented(Algorithm::Linear, linear, ByCase(linear_text))
        .with_greatest(linear_greatest),
    ClosedForm::unsegmented(Algorithm::DoubleRing, double_ring, ByCase(double_ring_text)),
    ClosedForm::unsegmented(
        Algorithm::RecursiveDoubling,
        recursive_doubling,
        ByCase(recursive_doubling_text),
    ),
    ClosedForm::unsegmented(Algorithm::Bruck, bruck, ByCase(bruck_text)),
];

/// Table 1, "Flat-Tree": seconds, T_min. All report to the root, then the root releases all.
///
/// The paper counts the fan-in as one message, since the libraries it measured delivered P - 1
/// empty messages in the time of one. Its Hockney row, (P - 1) alpha, leaves the fan-in out;
/// corrected: P alpha.
fn linear(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    let p = shape.procs();
    match &network.model {
        PointToPointParameters::Hockney(net) => match forms {
            Forms::Printed => (p - 1.0) * net.alpha,
            Forms::Corrected => p * net.alpha,
        },
        PointToPointParameters::LogGp(net) => {
            (p - 2.0) * net.gap + 2.0 * (net.latency + 2.0 * net.overhead)
        }
        PointToPointParameters::PLogP(net) => p * net.gap(0.0) + 2.0 * net.latency(),
    }
}

fn linear_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), Forms::Printed) => "(P - 1) alpha",
        (PointToPointParameters::Hockney(_), Forms::Corrected) => "P alpha",
        (PointToPointParameters::LogGp(_), _) => "(P - 2) g + 2 (L + 2 o)",
        (PointToPointParameters::PLogP(_), _) => "P g(0) + 2 L",
    })
}

/// Table 1, "Flat-Tree": seconds, T_max: the root spends o (or) on each report.
///
/// Hockney knows no overhead, so its two bounds are the same.
fn linear_greatest(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    let p = shape.procs();
    match &network.model {
        PointToPointParameters::Hockney(_) => linear(network, shape, forms),
        PointToPointParameters::LogGp(net) => {
            (p - 2.0) * (net.gap + net.overhead) + 2.0 * (net.latency + 2.0 * net.overhead)
        }
        PointToPointParameters::PLogP(net) => {
            let costs = net.at(0.0);
            p * (costs.gap + costs.receive) + 2.0 * (net.latency() - costs.receive)
        }
    }
}

/// Table 1, "Double Ring": seconds. A token goes around the ring twice: 2 P messages in sequence.
fn double_ring(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    2.0 * shape.procs() * step(network, forms)
}

fn double_ring_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), _) => "2 P alpha",
        (PointToPointParameters::LogGp(_), Forms::Printed) => "2 P (L + o + g)",
        (PointToPointParameters::LogGp(_), Forms::Corrected) => "2 P (L + 2 o)",
        (PointToPointParameters::PLogP(_), _) => "2 P (L + g(0))",
    })
}

/// Table 1, "Recursive Doubling": seconds. lg P exchanges, two more where P is no power of two.
///
/// Not as printed: Hockney's row there has lg P + 2 without the floor, which the other two have; all
/// are taken with it.
fn recursive_doubling(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    shape.doubling_rounds() * step(network, forms)
}

fn recursive_doubling_text(
    model: &PointToPointParameters,
    forms: Forms,
    shape: &CallShape,
) -> Text {
    if shape.ranks().is_power_of_two() {
        return whole_rounds_text(model, forms, shape);
    }
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), _) => "(floor(lg P) + 2) alpha",
        (PointToPointParameters::LogGp(_), Forms::Printed) => "(floor(lg P) + 2)(L + o + g)",
        (PointToPointParameters::LogGp(_), Forms::Corrected) => "(floor(lg P) + 2)(L + 2 o)",
        (PointToPointParameters::PLogP(_), _) => "(floor(lg P) + 2)(L + g(0))",
    })
}

fn whole_rounds_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), _) => "lg P alpha",
        (PointToPointParameters::LogGp(_), Forms::Printed) => "lg P (L + o + g)",
        (PointToPointParameters::LogGp(_), Forms::Corrected) => "lg P (L + 2 o)",
        (PointToPointParameters::PLogP(_), _) => "lg P (L + g(0))",
    })
}

/// Table 1, "Bruck" (dissemination): seconds. ceil(lg P) exchanges.
fn bruck(network: &Network, shape: &CallShape, forms: Forms) -> f64 {
    shape.rounds() * step(network, forms)
}

fn bruck_text(model: &PointToPointParameters, forms: Forms, _: &CallShape) -> Text {
    Formula(match (model, forms) {
        (PointToPointParameters::Hockney(_), _) => "ceil(lg P) alpha",
        (PointToPointParameters::LogGp(_), Forms::Printed) => "ceil(lg P) (L + o + g)",
        (PointToPointParameters::LogGp(_), Forms::Corrected) => "ceil(lg P) (L + 2 o)",
        (PointToPointParameters::PLogP(_), _) => "ceil(lg P) (L + g(0))",
    })
}

/// One empty message, or exchange of empty messages, in sequence with others.
///
/// LogGP is printed as L + o + g where its own point-to-point time is L + 2 o; corrected to that.
/// Valid while g <= L + 2 o.
fn step(network: &Network, forms: Forms) -> f64 {
    match &network.model {
        PointToPointParameters::Hockney(net) => net.alpha,
        PointToPointParameters::LogGp(net) => match forms {
            Forms::Printed => net.latency + net.overhead + net.gap,
            Forms::Corrected => net.latency + 2.0 * net.overhead,
        },
        PointToPointParameters::PLogP(net) => net.latency() + net.gap(0.0),
    }
}
