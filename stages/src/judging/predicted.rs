//! The models' times of everything that was measured.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anyhow::Result;
use choosing::samples::{MethodTimes, Samples};
use figures::{Axis, Curve, Figure, FigureError, PlotPoint, Quantity, Trace, panels};
use models::Model;
use records::{Collective, Layout, Method, Point, quantity::format_bytes};
use statistics::quantile;
use verification::prediction::PredictedTime;

use super::decisions::parameter_sources;
use crate::source::CalibrationSource;

/// What each model predicts, with each set of parameters, for every method that it knows at every
/// point measured.
///
/// # Errors
/// The parameters are not the models'.
pub fn predicted_times(
    source: &CalibrationSource,
    samples: &Samples,
    models: &[Model],
) -> Result<Vec<PredictedTime>> {
    let mut times = Vec::new();
    for (suffix, source) in parameter_sources(source) {
        for &model in models.iter().filter(|model| source.holds(**model)) {
            let predictor = source.predictor(model)?;
            for point in samples.points() {
                let of = |(method, measured): (&Method, &MethodTimes)| {
                    // What the model does not know has no predicted time.
                    let predicted = predictor.predict_method_seconds(point, method).ok()?;
                    Some(PredictedTime {
                        model: format!("{}{suffix}", model.name()),
                        point,
                        method: method.clone(),
                        predicted,
                        measured: measured.midmean()?,
                    })
                };
                times.extend(samples.at(point).filter_map(of));
            }
        }
    }
    Ok(times)
}

/// So many panels are looked at together.
const MAX_METHODS: usize = 8;
/// Fewer show no course.
const MIN_PLACES: usize = 3;

/// Predicted against measured times of a collective, a panel for each method: over the size at the
/// number of processes, and over the number of processes at the size, with the most points measured.
/// No figure of fewer than three places.
///
/// # Errors
/// The figure cannot be drawn.
pub fn draw(
    times: &[PredictedTime],
    samples: &Samples,
    collective: Collective,
) -> Result<Vec<(String, Figure)>, FigureError> {
    let times: Vec<&PredictedTime> =
        times.iter().filter(|time| time.point.collective == collective).collect();
    let mut drawn = Vec::new();
    for over in [FigureAxis::Size, FigureAxis::Processes] {
        if let Some(figure) = over.figure(&times, samples, collective)? {
            drawn.push((format!("predicted-{collective}-{}", over.name()), figure));
        }
    }
    Ok(drawn)
}

/// What a figure goes over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FigureAxis {
    Size,
    Processes,
}

/// What the points of a figure have in common: a layout where it goes over sizes, else a size and how many ranks
/// each node has.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum FigureCommon {
    Layout(Layout),
    Size(u64, String),
}

impl fmt::Display for FigureCommon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FigureCommon::Layout(layout) => f.write_str(&layout.in_words()),
            FigureCommon::Size(bytes, nodes) if nodes == "1 per node" => {
                f.write_str(&format_bytes(*bytes))
            }
            FigureCommon::Size(bytes, nodes) => write!(f, "{}, {nodes}", format_bytes(*bytes)),
        }
    }
}

impl FigureAxis {
    fn name(self) -> &'static str {
        match self {
            FigureAxis::Size => "size",
            FigureAxis::Processes => "procs",
        }
    }

    /// Where on the axis a point is.
    fn place(self, point: Point) -> u64 {
        match self {
            FigureAxis::Size => point.bytes,
            FigureAxis::Processes => point.procs().into(),
        }
    }

    /// What all points of the figure have in common.
    fn common_of(self, Point { layout, bytes, .. }: Point) -> FigureCommon {
        match self {
            FigureAxis::Size => FigureCommon::Layout(layout),
            FigureAxis::Processes => FigureCommon::Size(bytes, layout.per_node_in_words()),
        }
    }

    /// Of what is common the value with the most places, and the greatest of these; none with
    /// fewer than three places.
    fn common(self, times: &[&PredictedTime]) -> Option<FigureCommon> {
        let mut places: BTreeMap<FigureCommon, BTreeSet<u64>> = BTreeMap::new();
        for time in times {
            let common = self.common_of(time.point);
            places.entry(common).or_default().insert(self.place(time.point));
        }
        places.retain(|_, places| places.len() >= MIN_PLACES);
        places.into_iter().max_by_key(|(_, places)| places.len()).map(|(common, _)| common)
    }

    fn figure(
        self,
        times: &[&PredictedTime],
        samples: &Samples,
        collective: Collective,
    ) -> Result<Option<Figure>, FigureError> {
        let Some(common) = self.common(times) else { return Ok(None) };
        let mut of_methods: BTreeMap<&Method, Vec<&PredictedTime>> = BTreeMap::new();
        for &time in times.iter().filter(|time| self.common_of(time.point) == common) {
            of_methods.entry(&time.method).or_default().push(time);
        }
        let left_out = of_methods.len().saturating_sub(MAX_METHODS);
        // Those at the most places show the course best.
        let mut methods: Vec<_> = of_methods.iter().collect();
        methods.sort_by_key(|(_, times)| {
            let places: BTreeSet<u64> = times.iter().map(|time| self.place(time.point)).collect();
            std::cmp::Reverse(places.len())
        });
        let note = format!("not shown: {}", records::counted(left_out, "further method"));
        let panel = |(method, times): (&&Method, &Vec<&PredictedTime>)| {
            let name = method.short_beside(of_methods.keys().copied());
            (name, self.curves(times, samples))
        };
        let drawn: Vec<(String, Vec<Curve>)> =
            methods.into_iter().take(MAX_METHODS).map(panel).collect();
        let (label, quantity) = match self {
            FigureAxis::Size => {
                (format!("message size ({})", collective.message_size()), Quantity::Bytes)
            }
            FigureAxis::Processes => ("processes".into(), Quantity::Processes),
        };
        let x = Axis { label, quantity };
        let y = Axis { label: "time".into(), quantity: Quantity::Seconds };
        let lines: Vec<String> = (left_out > 0).then_some(note).into_iter().collect();
        let title = format!("Predicted against measured: {collective}, {common}");
        panels(&title, &lines, (x, y), &drawn).map(Some)
    }

    /// What was measured of a method, with the middle half of its times, and what each model says.
    fn curves(self, times: &[&PredictedTime], samples: &Samples) -> Vec<Curve> {
        let mut measured = BTreeMap::new();
        let mut models: BTreeMap<&str, BTreeMap<u64, f64>> = BTreeMap::new();
        for time in times {
            let place = self.place(time.point);
            let seconds =
                samples.get(time.point, &time.method).map_or(&[][..], MethodTimes::seconds);
            let end = |share| quantile(seconds, share).unwrap_or(time.measured);
            let (low, high) = (end(0.25).min(time.measured), end(0.75).max(time.measured));
            measured.insert(place, PlotPoint { x: place as f64, y: time.measured, low, high });
            models.entry(&time.model).or_default().insert(place, time.predicted);
        }
        let points = measured.into_values().collect();
        let mut curves = vec![Curve { name: "measured".into(), trace: Trace::Marked, points }];
        curves.extend(models.into_iter().map(|(name, predicted)| {
            let exact = |(place, seconds)| PlotPoint::exact(place as f64, seconds);
            let points = predicted.into_iter().map(exact).collect();
            Curve { name: name.into(), trace: Trace::Line, points }
        }));
        curves
    }
}
