use records::{
    Collective,
    calibration::{AlgorithmFit, Calibration, TimedPoint},
};

use crate::{
    Figure, FigureError,
    page::{self, Heading},
    plot::{Axis, Curve, Plot, PlotPoint, Plots, Trace},
    ticks::Quantity,
};

/// Methods named with what they are off by; the file has the rest.
const NAMED: usize = 4;

/// How well the forms of one collective's algorithms hold with constants of their own: each time over
/// what its form says, over the time. One panel for each model; a point for each number of processes,
/// message and segment size that was timed.
///
/// # Errors
/// The calibration holds no constants of the collective's algorithms.
pub fn algorithm_fits(
    calibration: &Calibration,
    collective: Collective,
) -> Result<Figure, FigureError> {
    let all = calibration.algorithms.iter().flat_map(|algorithms| &algorithms.fits);
    let fits: Vec<&AlgorithmFit> = all.filter(|fit| fit.collective == collective).collect();
    let mut models: Vec<&str> = Vec::new();
    for fit in &fits {
        if !models.contains(&fit.model.as_str()) {
            models.push(&fit.model);
        }
    }
    let of_model = |model: &&str| -> Vec<&AlgorithmFit> {
        fits.iter().filter(|fit| fit.model == *model).copied().collect()
    };
    let panels = models.iter().map(|model| Plot {
        title: format!("{model} forms"),
        detail: "1: as the form says".into(),
        x: Axis { label: "measured time".into(), quantity: Quantity::Seconds },
        y: Axis { label: "measured / form".into(), quantity: Quantity::Number },
        series: of_model(model).into_iter().map(series).collect(),
        notes: None,
    });
    let panels = panels.collect();
    let mut texts =
        vec![format!("constants: {}", calibration.source), calibration.platform.summary()];
    texts.extend(models.iter().map(|model| off(model, of_model(model))));
    texts.extend(page::warnings(&calibration.warnings));
    let title = format!("Constants of algorithms: residuals of {collective}");
    Figure::of_plots(Plots::new(Heading { title, lines: texts }, panels)?)
}

fn series(fit: &AlgorithmFit) -> Curve {
    let over_form = |point: &TimedPoint| {
        let form = point.seconds - point.residual_seconds;
        PlotPoint::exact(point.seconds, point.seconds / form)
    };
    let points = fit.points.iter().map(over_form).collect();
    Curve { name: fit.method.to_string(), trace: Trace::Scattered, points }
}

/// Which forms hold least, by the median residual.
fn off(model: &str, mut fits: Vec<&AlgorithmFit>) -> String {
    fits.sort_by(|one, other| other.median_residual.total_cmp(&one.median_residual));
    let name = |fit: &&AlgorithmFit| format!("{} {:.1} %", fit.method, 100.0 * fit.median_residual);
    let worst: Vec<String> = fits.iter().take(NAMED).map(name).collect();
    let rest = fits.len().saturating_sub(NAMED);
    let rest = if rest > 0 { format!("; the other {rest} by less") } else { String::new() };
    format!("{model} forms are off by (median): {}{rest}", worst.join("; "))
}
