use records::{Collective, Layout};

use crate::{
    Figure, FigureError,
    page::{Heading, panel_name},
    plot::{Axis, Curve, Notes, Plot, PlotPoint, Plots, Trace},
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
/// the default is significantly slower than a method (as PGMPITuneLib's Figure 4).
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
    let heading = Heading {
        title: format!("Time relative to the library's default: {collective}"),
        lines: lines.to_vec(),
    };
    let panels =
        relatives.iter().enumerate().map(|(index, relative)| panel(collective, index, relative));
    Figure::of_plots(Plots::new(heading, panels.collect())?)
}

fn panel(collective: Collective, index: usize, relative: &RelativePanel) -> Plot {
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
        title: format!("{} {}", panel_name(index), relative.layout.in_words()),
        detail: format!(
            "significantly slower than a method at {}",
            records::counted(relative.violated.len(), "point")
        ),
        x: Axis {
            label: format!("message size ({})", collective.message_size()),
            quantity: Quantity::Bytes,
        },
        y: Axis { label: "time / default's".into(), quantity: Quantity::Number },
        series: relative.methods.iter().map(series).collect(),
        notes: Some(Notes { label: "slower".into(), texts: marks.collect() }),
    }
}
