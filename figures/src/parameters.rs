use records::{
    calibration::{
        Calibration, Estimate, GammaKnot, GapKnot, HockneyEstimates, LogGpEstimates, ManyGap,
        PLogPEstimates, Parameters,
    },
    quantity::{format_seconds, format_seconds_per_byte},
};

use crate::{
    Figure, FigureError,
    page::{self, Heading},
    plot::{Axis, Curve, Plot, PlotPoint, Plots, Trace},
    ticks::Quantity,
};

/// The parameters of a platform over the message size, in the manner of the paper's Figure 1.
///
/// One panel has the time of one message by each model (Hockney alpha + beta m, LogGP
/// L + 2 o + (m - 1) G, PLogP L + g(m)), one the parameters of PLogP that depend on the size; where
/// the calibration has fitted parameters, two more. What else was measured has a panel each: Hockney
/// over the size, the gap to and from several partners beside that of as many messages to one, and
/// gamma by operation. Intervals are the calibration's.
///
/// # Errors
/// No parameter is positive and finite.
pub fn parameters(calibration: &Calibration) -> Result<Figure, FigureError> {
    let inside = calibration.inside.as_ref();
    let sets = [
        ("measured", Some(&calibration.measured)),
        ("fitted", calibration.fitted.as_ref()),
        ("inside a node", inside.map(|inside| &inside.measured)),
    ];
    let mut lines =
        vec![format!("parameters: {}", calibration.source), calibration.platform.summary()];
    let mut panels = Vec::new();
    for (origin, parameters) in sets {
        let Some(parameters) = parameters else { continue };
        lines.push(format!("{origin}: {}", scalars(parameters)));
        panels.push(message_times(origin, parameters));
        panels.push(of_plogp(origin, &parameters.plogp));
    }
    let measured = &calibration.measured;
    let further: [fn(&Parameters) -> Option<Plot>; 3] = [of_hockney, of_partners, of_gamma];
    for panel in further {
        panels.extend(panel(measured));
    }
    if !calibration.measured.derived.is_empty() {
        lines.push(format!("converted, not measured: {}", calibration.measured.derived.join(", ")));
    }
    lines.extend(page::warnings(&calibration.warnings));
    let heading = Heading { title: "Parameters of the models".into(), lines };
    Figure::of_plots(Plots::new(heading, panels)?)
}

fn size_axis() -> Axis {
    Axis { label: "message size m".into(), quantity: Quantity::Bytes }
}

fn message_times(origin: &str, parameters: &Parameters) -> Plot {
    let Parameters { hockney, loggp, plogp, .. } = parameters;
    let sizes = sizes(plogp);
    let over_sizes = |time: &dyn Fn(u64) -> Estimate| {
        sizes.iter().map(|bytes| point(*bytes, time(*bytes))).collect::<Vec<PlotPoint>>()
    };
    let plogp_points = plogp.knots.iter().map(|knot| {
        point(knot.bytes, sum([(plogp.latency_seconds, 1.0), (knot.gap_seconds, 1.0)]))
    });
    Plot {
        title: format!("time of one message, {origin}"),
        detail: "bands and bars: 95 % intervals".into(),
        x: size_axis(),
        y: Axis { label: "time".into(), quantity: Quantity::Seconds },
        series: vec![
            Curve {
                name: "Hockney: alpha + beta m".into(),
                trace: Trace::Line,
                points: over_sizes(&|bytes| hockney_time(hockney, bytes)),
            },
            Curve {
                name: "LogGP: L + 2 o + (m - 1) G".into(),
                trace: Trace::Line,
                points: over_sizes(&|bytes| loggp_time(loggp, bytes)),
            },
            marked("PLogP: L + g(m)", plogp_points.collect()),
        ],
        notes: None,
    }
}

fn of_plogp(origin: &str, plogp: &PLogPEstimates) -> Plot {
    let over_knots = |value: fn(&records::calibration::PLogPKnot) -> Estimate| {
        plogp.knots.iter().map(|knot| point(knot.bytes, value(knot))).collect()
    };
    let latency = plogp.knots.iter().map(|knot| point(knot.bytes, plogp.latency_seconds));
    Plot {
        title: format!("PLogP, {origin}"),
        detail: format!("{} message sizes", plogp.knots.len()),
        x: size_axis(),
        y: Axis { label: "time".into(), quantity: Quantity::Seconds },
        series: vec![
            marked("PLogP: g(m)", over_knots(|knot| knot.gap_seconds)),
            marked("PLogP: os(m)", over_knots(|knot| knot.send_overhead_seconds)),
            marked("PLogP: or(m)", over_knots(|knot| knot.receive_overhead_seconds)),
            Curve { name: "PLogP: L".into(), trace: Trace::Line, points: latency.collect() },
        ],
        notes: None,
    }
}

fn of_hockney(parameters: &Parameters) -> Option<Plot> {
    let knots = &parameters.hockney_by_size;
    let alpha = knots.iter().map(|knot| point(knot.bytes, knot.alpha_seconds));
    let stream = knots
        .iter()
        .map(|knot| point(knot.bytes, sum([(knot.beta_seconds_per_byte, knot.bytes as f64)])));
    (!knots.is_empty()).then(|| Plot {
        title: "Hockney over m, measured".into(),
        detail: "the line through the sizes next to m".into(),
        x: size_axis(),
        y: Axis { label: "time".into(), quantity: Quantity::Seconds },
        series: vec![
            marked("Hockney: alpha(m)", alpha.collect()),
            marked("Hockney: beta(m) m", stream.collect()),
        ],
        notes: None,
    })
}

/// g(m, k) / (k g(m)): 1 where partners are no matter.
fn of_partners(parameters: &Parameters) -> Option<Plot> {
    let plogp = &parameters.plogp;
    let series = |direction: &str, gaps: &[ManyGap]| -> Vec<Curve> {
        let ratio = |many: &ManyGap, knot: &GapKnot| {
            let alone = plogp.knots.iter().find(|alone| alone.bytes == knot.bytes)?;
            let one = alone.gap_seconds.value * f64::from(many.partners);
            let Estimate { value, low, high } = knot.gap_seconds;
            // A logarithmic axis has no empty message.
            let x = knot.bytes.max(1) as f64;
            (one > 0.0).then(|| PlotPoint { x, y: value / one, low: low / one, high: high / one })
        };
        gaps.iter()
            .map(|many| {
                let points = many.knots.iter().filter_map(|knot| ratio(many, knot)).collect();
                marked(&format!("{direction} {}", many.partners), points)
            })
            .collect()
    };
    let mut both = series("g(m, k): 1 to", &plogp.gap_by_destinations);
    both.extend(series("g(m, k): to 1 from", &plogp.gap_by_sources));
    (!both.is_empty()).then(|| Plot {
        title: "gap of k partners over k g(m)".into(),
        detail: "1: as many messages to one partner".into(),
        x: size_axis(),
        y: Axis { label: "g(m, k) / (k g(m))".into(), quantity: Quantity::Number },
        series: both,
        notes: None,
    })
}

fn of_gamma(parameters: &Parameters) -> Option<Plot> {
    let series = parameters.gamma.iter().map(|gamma| {
        let nanoseconds = |knot: &GammaKnot| {
            let Estimate { value, low, high } = knot.seconds_per_byte;
            let x = knot.bytes.max(1) as f64;
            PlotPoint { x, y: value * 1e9, low: low * 1e9, high: high * 1e9 }
        };
        let points = gamma.knots.iter().map(nanoseconds).collect();
        marked(&format!("gamma: {}", gamma.operation.name()), points)
    });
    (!parameters.gamma.is_empty()).then(|| Plot {
        title: "gamma(m), measured".into(),
        detail: "MPI_Reduce_local".into(),
        x: size_axis(),
        y: Axis { label: "ns per byte".into(), quantity: Quantity::Number },
        series: series.collect(),
        notes: None,
    })
}

fn marked(name: &str, points: Vec<PlotPoint>) -> Curve {
    Curve { name: name.into(), trace: Trace::Marked, points }
}

/// Sizes at which the straight lines are drawn: powers of two up to the greatest knot, at least to
/// 1 MiB.
fn sizes(plogp: &PLogPEstimates) -> Vec<u64> {
    let greatest = plogp.knots.last().map_or(0, |knot| knot.bytes).max(1 << 20);
    (0..64).map(|shift| 1_u64 << shift).take_while(|bytes| *bytes <= greatest).collect()
}

fn point(bytes: u64, Estimate { value, low, high }: Estimate) -> PlotPoint {
    PlotPoint { x: bytes as f64, y: value, low, high }
}

fn hockney_time(hockney: &HockneyEstimates, bytes: u64) -> Estimate {
    sum([(hockney.alpha_seconds, 1.0), (hockney.beta_seconds_per_byte, bytes as f64)])
}

fn loggp_time(loggp: &LogGpEstimates, bytes: u64) -> Estimate {
    sum([
        (loggp.latency_seconds, 1.0),
        (loggp.overhead_seconds, 2.0),
        (loggp.gap_seconds_per_byte, bytes.saturating_sub(1) as f64),
    ])
}

/// The sum of parameters, each taken so many times; its interval is as wide as those together,
/// since nothing is known of how they hang together.
fn sum<const N: usize>(terms: [(Estimate, f64); N]) -> Estimate {
    let total = |end: fn(&Estimate) -> f64| terms.iter().map(|(e, factor)| end(e) * factor).sum();
    Estimate { value: total(|e| e.value), low: total(|e| e.low), high: total(|e| e.high) }
}

/// The parameters that do not depend on the size, in words.
fn scalars(parameters: &Parameters) -> String {
    let Parameters { hockney, loggp, plogp, gamma_seconds_per_byte, .. } = parameters;
    let time = |estimate: Estimate| format_seconds(estimate.value);
    let rate = |estimate: Estimate| format_seconds_per_byte(estimate.value);
    format!(
        "Hockney alpha {}, beta {}; LogGP L {}, o {}, g {}, G {}; PLogP L {}; gamma {}",
        time(hockney.alpha_seconds),
        rate(hockney.beta_seconds_per_byte),
        time(loggp.latency_seconds),
        time(loggp.overhead_seconds),
        time(loggp.gap_seconds),
        rate(loggp.gap_seconds_per_byte),
        time(plogp.latency_seconds),
        rate(*gamma_seconds_per_byte),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_times_are_the_models() {
        let hockney = HockneyEstimates {
            alpha_seconds: Estimate { value: 1e-4, low: 9e-5, high: 2e-4 },
            beta_seconds_per_byte: Estimate { value: 1e-7, low: 1e-7, high: 2e-7 },
        };
        let time = hockney_time(&hockney, 1000);
        assert!((time.value - 2e-4).abs() < 1e-12);
        assert!((time.low - 1.9e-4).abs() < 1e-12);
        assert!((time.high - 4e-4).abs() < 1e-12);
        let loggp = LogGpEstimates {
            latency_seconds: Estimate::exact(5e-5),
            overhead_seconds: Estimate::exact(1e-5),
            gap_seconds: Estimate::exact(2e-5),
            gap_seconds_per_byte: Estimate::exact(1e-7),
        };
        assert!((loggp_time(&loggp, 0).value - 7e-5).abs() < 1e-12, "(m - 1) G is never negative");
        assert!((loggp_time(&loggp, 1001).value - 1.7e-4).abs() < 1e-12);
    }
}
