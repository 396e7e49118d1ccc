//! Curves of whatever a caller has, as a figure.

use crate::{
    Figure, FigureError,
    page::Heading,
    plot::{Axis, Curve, Plot, Plots},
};

/// Curves over a common axis, both axes logarithmic, with intervals where points have them.
///
/// `lines` stand below the title: the platform, the parameters. Points that a logarithmic axis
/// cannot show (zero, negative, not finite) are left out, and the figure says how many. The panels
/// have one legend: series of one name look the same in all. A panel without a name has no title.
///
/// # Errors
/// No point can be shown, or there are more panels or series than can be told apart.
pub fn panels(
    title: &str,
    lines: &[String],
    (x, y): (Axis, Axis),
    panels: &[(String, Vec<Curve>)],
) -> Result<Figure, FigureError> {
    let panels = panels.iter().map(|(name, series)| Plot {
        title: name.clone(),
        detail: String::new(),
        x: x.clone(),
        y: y.clone(),
        series: series.clone(),
        notes: None,
    });
    let heading = Heading { title: title.into(), lines: lines.to_vec() };
    Figure::of_plots(Plots::new(heading, panels.collect())?)
}
