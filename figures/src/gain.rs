use std::collections::BTreeMap;

use records::{Collective, Layout};
use statistics::geometric_mean;

use crate::{
    Figure, FigureError,
    page::Heading,
    plot::{Axis, Curve, Notes, Plot, PlotPoint, Plots, Trace},
    ticks::Quantity,
};

/// The times of one process count, before and after tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct GainPanel {
    pub layout: Layout,
    /// One per message size, ascending.
    pub points: Vec<GainPoint>,
}

/// The times of one message size, before and after tuning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GainPoint {
    /// Message size; see [`Collective::message_size`].
    pub bytes: u64,
    /// What the library takes by itself.
    pub default_seconds: f64,
    /// What it takes with what is loaded; none where the default is left.
    pub tuned_seconds: Option<f64>,
    /// The interval (95 %) of the default's time over it, where it is known.
    pub interval: Option<[f64; 2]>,
}

impl GainPoint {
    /// What it takes with what is loaded, with its interval.
    fn tuned(&self, x: f64) -> Option<PlotPoint> {
        let y = self.tuned_seconds?;
        let [least, greatest] = self.interval.unwrap_or([1.0; 2]);
        let ends = [self.default_seconds / greatest, self.default_seconds / least];
        let [low, high] = if self.interval.is_some() { ends } else { [y; 2] };
        Some(PlotPoint { x, y, low: low.min(y), high: high.max(y) })
    }
}

/// What the default costs and what is loaded instead: one panel per process count, time over message size, with the
/// ratio of the two above each size that is replaced. Without messages (barrier) one panel,
/// time over process count.
///
/// `lines` stand below the title: the platform, whose decision it is.
///
/// # Errors
/// There is no point with two positive, finite times.
pub fn gain(
    collective: Collective,
    lines: &[String],
    gains: &[GainPanel],
) -> Result<Figure, FigureError> {
    let heading =
        Heading { title: format!("Default against tuned: {collective}"), lines: lines.to_vec() };
    let without_messages = gains.iter().flat_map(|gain| &gain.points).all(|point| point.bytes == 0);
    let panels = if without_messages {
        // Several layouts of one number of processes do not lie on one curve.
        let mut curves: BTreeMap<String, Vec<(f64, GainPoint)>> = BTreeMap::new();
        for gain in gains {
            let points = gain.points.iter().map(|point| (f64::from(gain.layout.procs()), *point));
            curves.entry(gain.layout.per_node_in_words()).or_default().extend(points);
        }
        let axis = Axis { label: "ranks".into(), quantity: Quantity::Processes };
        let is_one = curves.len() == 1;
        let titled = curves.iter().map(|(nodes, points)| {
            let title = if is_one { String::new() } else { nodes.clone() };
            panel(title, axis.clone(), points)
        });
        titled.collect()
    } else {
        let label = format!("message size ({})", collective.message_size());
        let axis = Axis { label, quantity: Quantity::Bytes };
        let by_procs = gains.iter().map(|gain| {
            let points: Vec<(f64, GainPoint)> =
                gain.points.iter().map(|point| (point.bytes as f64, *point)).collect();
            panel(gain.layout.in_words(), axis.clone(), &points)
        });
        by_procs.collect()
    };
    Figure::of_plots(Plots::new(heading, panels)?)
}

fn panel(title: String, x: Axis, points: &[(f64, GainPoint)]) -> Plot {
    let curve =
        |name: &str, points| Curve { name: String::from(name), trace: Trace::Marked, points };
    let exact = |(x, point): &(f64, GainPoint)| PlotPoint::exact(*x, point.default_seconds);
    let mut series = vec![curve("the library's default", points.iter().map(exact).collect())];
    // No line goes over sizes at which the default is left.
    let replaced = points.split(|(_, point)| point.tuned_seconds.is_none());
    for run in replaced.filter(|run| !run.is_empty()) {
        let tuned = run.iter().filter_map(|(x, point)| point.tuned(*x)).collect();
        series.push(curve("with it loaded", tuned));
    }
    let ratios: Vec<(f64, f64)> = points
        .iter()
        .filter_map(|(x, point)| Some((*x, point.default_seconds / point.tuned_seconds?)))
        .filter(|(x, ratio)| *x > 0.0 && ratio.is_finite() && *ratio > 0.0)
        .collect();
    let greatest = ratios.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max);
    let alone: Vec<f64> = ratios.iter().map(|(_, ratio)| *ratio).collect();
    let mean = geometric_mean(&alone).unwrap_or(1.0);
    Plot {
        title,
        detail: match ratios.len() {
            0 => "all left to the default".into(),
            replaced => format!(
                "speed-up {} (geometric mean), at most {}, at {replaced} of {}",
                times(mean),
                times(greatest),
                points.len()
            ),
        },
        x,
        y: Axis { label: "time of one call".into(), quantity: Quantity::Seconds },
        series,
        notes: Some(Notes {
            label: "speed-up".into(),
            texts: ratios.iter().map(|(x, ratio)| (*x, times(*ratio))).collect(),
        }),
    }
}

/// `1.2`, `63`, `1e9`.
fn times(ratio: f64) -> String {
    match ratio {
        r if r < 0.05 => format!("{r:.0e}"),
        r if r < 9.95 => format!("{r:.1}"),
        r if r < 9999.5 => format!("{r:.0}"),
        r => format!("{r:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_short() {
        assert_eq!(times(6.266), "6.3");
        assert_eq!(times(0.92), "0.9");
        assert_eq!(times(63.2), "63");
        assert_eq!(times(1e12), "1e12");
    }
}
