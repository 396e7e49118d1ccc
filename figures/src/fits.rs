use records::calibration::{Calibration, FitPoint, LineFit};

use crate::{
    Figure, FigureError,
    page::{self, Heading},
    plot::{Axis, Curve, Plot, PlotPoint, Plots, Trace},
    ticks::Quantity,
};

/// Curves in a panel; more can't be told apart.
const MOST: usize = 8;

/// The lines that collectives were fitted by, over the number of processes: the times with their
/// lines, and the times over their lines, which are the residuals.
///
/// The barrier and at most 7 message sizes are shown, evenly among those fitted, the largest one
/// in any case.
///
/// # Errors
/// The calibration holds no fits.
pub fn fits(calibration: &Calibration) -> Result<Figure, FigureError> {
    let shown = spread(&calibration.fits);
    let name = |fit: &LineFit| match fit.bytes {
        0 => format!("{}, 0 B", fit.experiment),
        bytes => format!("{}, {}", fit.experiment, records::quantity::format_bytes(bytes)),
    };
    let line = |fit: &LineFit, point: &FitPoint| {
        fit.intercept_seconds + fit.slope_seconds * f64::from(point.procs)
    };
    let series = |of: &dyn Fn(&LineFit, &FitPoint) -> f64| -> Vec<Curve> {
        let points = |fit: &LineFit| {
            fit.points
                .iter()
                .map(|point| PlotPoint::exact(point.procs.into(), of(fit, point)))
                .collect()
        };
        let series =
            |fit: &&LineFit| Curve { name: name(fit), trace: Trace::Marked, points: points(fit) };
        shown.iter().map(series).collect()
    };
    let times = series(&|_, point| point.seconds);
    let x = || Axis { label: "ranks P".into(), quantity: Quantity::Processes };
    let panels = vec![
        Plot {
            title: "times over P".into(),
            detail: "medians".into(),
            x: x(),
            y: Axis { label: "time".into(), quantity: Quantity::Seconds },
            series: times,
            notes: None,
        },
        Plot {
            title: "times over their lines".into(),
            detail: "1: on the line".into(),
            x: x(),
            y: Axis { label: "measured / line".into(), quantity: Quantity::Number },
            series: series(&|fit, point| point.seconds / line(fit, point)),
            notes: None,
        },
    ];
    let mut texts = vec![format!("fits: {}", calibration.source), calibration.platform.summary()];
    let squared: Vec<String> =
        shown.iter().map(|fit| format!("{} {:.4}", name(fit), fit.r_squared)).collect();
    texts.push(format!("R^2: {}", squared.join("; ")));
    texts.extend(page::warnings(&calibration.warnings));
    let heading = Heading { title: "Fits of collectives".into(), lines: texts };
    Figure::of_plots(Plots::new(heading, panels)?)
}

/// The first and at most 7 of the others, evenly, the last among them.
fn spread(fits: &[LineFit]) -> Vec<&LineFit> {
    let Some((first, others)) = fits.split_first() else { return Vec::new() };
    let every = others.len().div_ceil(MOST - 1).max(1);
    let offset = others.len().saturating_sub(1) % every;
    std::iter::once(first).chain(others.iter().skip(offset).step_by(every)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(bytes: u64) -> LineFit {
        LineFit {
            experiment: "pipelined bcast".into(),
            bytes,
            intercept_seconds: 0.0,
            slope_seconds: 1.0,
            r_squared: 1.0,
            points: Vec::new(),
        }
    }

    #[test]
    fn few_fits_are_all_shown_and_many_evenly_with_the_last() {
        for count in [0, 1, 2, 8, 9, 19, 40] {
            let fits: Vec<LineFit> = (0..count).map(fit).collect();
            let shown: Vec<u64> = spread(&fits).iter().map(|fit| fit.bytes).collect();
            assert!(shown.len() <= MOST, "{shown:?}");
            assert_eq!(shown.first().copied(), (count > 0).then_some(0));
            assert_eq!(shown.last().copied(), count.checked_sub(1));
            assert!(count > MOST as u64 || shown.len() as u64 == count);
        }
    }
}
