//! How far models' predicted times are from the measured ones.

use std::collections::BTreeMap;

use records::{
    Collective, Method, Point,
    penalty::{PredictionError, Region},
};
use statistics::{median, quantile};

/// A measured time with what a model predicts.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictedTime {
    /// The model's name.
    pub model: String,
    pub point: Point,
    /// By which method.
    pub method: Method,
    /// What the model says, in seconds.
    pub predicted: f64,
    /// What was measured, in seconds.
    pub measured: f64,
}

/// What the errors of a row are of: collective, model, method, region.
type Part<'a> = (Collective, &'a str, Option<&'a Method>, Option<Region>);

/// Median and 95th percentile of |predicted / measured - 1|, for each collective and model over all
/// methods, for each method, and for each method and region.
pub fn prediction_errors(times: &[PredictedTime]) -> Vec<PredictionError> {
    let mut errors: BTreeMap<Part<'_>, Vec<f64>> = BTreeMap::new();
    for time in times.iter().filter(|time| time.measured > 0.0) {
        let Point { collective, layout, bytes } = time.point;
        let (model, method) = (time.model.as_str(), Some(&time.method));
        let error = (time.predicted / time.measured - 1.0).abs();
        let region = Some(Region::containing(layout.procs(), bytes));
        for part in [
            (collective, model, None, None),
            (collective, model, method, None),
            (collective, model, method, region),
        ] {
            errors.entry(part).or_default().push(error);
        }
    }
    let row = |((collective, model, method, region), values): (Part<'_>, Vec<f64>)| {
        Some(PredictionError {
            collective,
            model: model.into(),
            method: method.cloned(),
            region,
            times: values.len() as u32,
            median: median(&values)?,
            percentile_95: quantile(&values, 0.95)?,
        })
    };
    errors.into_iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_for_all_methods_for_each_and_for_each_region() {
        let time = |method: &str, bytes, predicted| PredictedTime {
            model: "hockney".into(),
            point: Point::flat(Collective::Bcast, 8, bytes),
            method: method.parse().unwrap(),
            predicted,
            measured: 2.0,
        };
        let (linear, pipeline) = ("own:linear", "own:pipeline");
        let rows = prediction_errors(&[
            time(linear, 1, 1.0),
            time(linear, 1 << 20, 3.0),
            time(pipeline, 1, 2.0),
        ]);
        let told: Vec<(Option<String>, Option<u64>, u32, f64)> = rows
            .iter()
            .map(|row| {
                let method = row.method.as_ref().map(ToString::to_string);
                (method, row.region.map(|region| region.first_bytes), row.times, row.median)
            })
            .collect();
        let named = |name: &str| Some(name.to_owned());
        for wanted in [
            (None, None, 3, 0.5),
            (named(linear), None, 2, 0.5),
            (named(linear), Some(0), 1, 0.5),
            (named(linear), Some(65_536), 1, 0.5),
            (named(pipeline), None, 1, 0.0),
            (named(pipeline), Some(0), 1, 0.0),
        ] {
            assert!(told.contains(&wanted), "{wanted:?}: {told:?}");
        }
        assert_eq!(told.len(), 6);
        assert!((rows[0].percentile_95 - 0.5).abs() < 1e-12);
    }
}
