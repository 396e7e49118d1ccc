use std::collections::{BTreeMap, BTreeSet};

use records::{Collective, Layout};

use crate::{
    Figure, FigureError,
    page::Heading,
    plot::{Axis, Curve, Notes, Plot, PlotPoint, Plots, SHARED_LEGEND, Trace},
    ticks::Quantity,
};

/// The methods of one process count beside the library's default.
#[derive(Debug, Clone, PartialEq)]
pub struct RelativePanel {
    pub layout: Layout,
    /// The methods, the default among them.
    pub methods: Vec<RelativeMethod>,
    /// Message sizes at which a method is significantly faster than the default.
    pub violated: Vec<u64>,
}

/// One method's times over the message size.
#[derive(Debug, Clone, PartialEq)]
pub struct RelativeMethod {
    /// For the legend.
    pub name: String,
    /// Ascending by size.
    pub points: Vec<RelativePoint>,
}

/// Times of several jobs, each over the median of the default's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelativePoint {
    /// Message size; see [`Collective::message_size`].
    pub bytes: u64,
    /// Median of the jobs' medians.
    pub median: f64,
    /// The least of them.
    pub least: f64,
    pub greatest: f64,
}

/// The times of all methods relative to the default's: one panel per process count, the median of
/// the jobs' medians with a bar from the least to the greatest, an asterisk above each size at which
/// the default is significantly slower than a method (as PGMPITuneLib's Figure 4). Of many methods those are
/// shown that come nearest to the fastest.
///
/// `lines` stand below the title: the platform, what the asterisks mean.
///
/// # Errors
/// There is no positive, finite point with a message; more than a figure can hold.
pub fn relative(
    collective: Collective,
    lines: &[String],
    relatives: &[RelativePanel],
) -> Result<Figure, FigureError> {
    let mut heading = Heading {
        title: format!("Time relative to the library's default: {collective}"),
        lines: lines.to_vec(),
    };
    let shown = told_apart(relatives);
    let all: BTreeSet<&str> = methods(relatives).map(|method| method.name.as_str()).collect();
    if shown.len() < all.len() {
        let rest = records::counted(all.len() - shown.len(), "method");
        heading.lines.push(format!("not shown: {rest} that come less near to the fastest"));
    }
    let panels = relatives.iter().map(|relative| panel(collective, relative, &shown));
    Figure::of_plots(Plots::new(heading, panels.collect())?)
}

fn methods(relatives: &[RelativePanel]) -> impl Iterator<Item = &RelativeMethod> {
    relatives.iter().flat_map(|relative| &relative.methods)
}

/// The default, which is the first, and those that come nearest to the fastest anywhere, as many as a legend holds.
fn told_apart(relatives: &[RelativePanel]) -> BTreeSet<&str> {
    let mut least: BTreeMap<(usize, u64), f64> = BTreeMap::new();
    for (index, relative) in relatives.iter().enumerate() {
        for point in relative.methods.iter().flat_map(|method| &method.points) {
            let known = least.entry((index, point.bytes)).or_insert(f64::INFINITY);
            *known = known.min(point.median);
        }
    }
    let mut nearest: BTreeMap<&str, f64> = BTreeMap::new();
    for (index, relative) in relatives.iter().enumerate() {
        for method in &relative.methods {
            let known = nearest.entry(&method.name).or_insert(f64::INFINITY);
            for point in &method.points {
                *known = known.min(point.median / least[&(index, point.bytes)]);
            }
        }
    }
    let first = methods(relatives).next().map(|method| method.name.as_str());
    let mut names: Vec<(&str, f64)> = nearest.into_iter().collect();
    names.sort_by(|(a, near), (b, other)| {
        (Some(*b) == first).cmp(&(Some(*a) == first)).then(near.total_cmp(other))
    });
    names.into_iter().take(SHARED_LEGEND).map(|(name, _)| name).collect()
}

fn panel(collective: Collective, relative: &RelativePanel, shown: &BTreeSet<&str>) -> Plot {
    let series = |method: &RelativeMethod| Curve {
        name: method.name.clone(),
        trace: Trace::Marked,
        points: method
            .points
            .iter()
            .map(|point| PlotPoint {
                x: point.bytes as f64,
                y: point.median,
                low: point.least,
                high: point.greatest,
            })
            .collect(),
    };
    let marks = relative.violated.iter().map(|&bytes| (bytes as f64, "*".to_owned()));
    Plot {
        title: relative.layout.in_words(),
        detail: format!(
            "significantly slower than a method at {}",
            records::counted(relative.violated.len(), "point")
        ),
        x: Axis {
            label: format!("message size ({})", collective.message_size()),
            quantity: Quantity::Bytes,
        },
        y: Axis { label: "time / default's".into(), quantity: Quantity::Number },
        series: relative
            .methods
            .iter()
            .filter(|method| shown.contains(method.name.as_str()))
            .map(series)
            .collect(),
        notes: Some(Notes { label: "slower".into(), texts: marks.collect() }),
    }
}
