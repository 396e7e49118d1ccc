//! What models predict of methods that a target can express.

use models::Predictor;
use records::{Collective, Layout, Method, Point, choices::Chosen};

use crate::export_formats::{CarefulExporter, Possible};

/// Algorithms of the target that the model knows.
pub struct Predicted<'a> {
    pub predictor: &'a Predictor,
    pub exporter: &'a CarefulExporter,
    pub wanted: &'a [Chosen],
}

impl Possible for Predicted<'_> {
    fn best(&self, point: Point) -> (Method, Option<f64>) {
        let wanted = self.wanted.iter().find(|choice| choice.point == point);
        let segments = [0, wanted.map_or(0, |choice| choice.method.segment_bytes())];
        let algorithms = self.exporter.algorithms(point.collective).into_iter();
        let methods = algorithms
            .flat_map(|algorithm| segments.map(|bytes| self.exporter.named(algorithm, bytes)))
            .filter(|method| self.exporter.allows(point, method).is_ok());
        let known = methods.filter_map(|method| Some((self.seconds(point, &method)?, method)));
        match known.min_by(|(a, _), (b, _)| a.total_cmp(b)) {
            Some((seconds, method)) => (method, Some(seconds)),
            None => (Method::Default, None),
        }
    }

    fn seconds(&self, point: Point, method: &Method) -> Option<f64> {
        self.predictor.predict_method_seconds(point, method).ok()
    }
}

/// The first size in (`low`, `high`] at which the second method is predicted to be faster, if the
/// first one is at `low` and the second at `high`.
pub fn crossing(
    predictor: &Predictor,
    (collective, layout): (Collective, Layout),
    [first, second]: [&Method; 2],
    [mut low, mut high]: [u64; 2],
) -> Option<u64> {
    let second_is_faster = |bytes| {
        let seconds = |method| {
            let point = Point { collective, layout, bytes };
            predictor.predict_method_seconds(point, method).ok()
        };
        Some(seconds(second)? < seconds(first)?)
    };
    if second_is_faster(low)? || !second_is_faster(high)? {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if second_is_faster(middle)? { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use models::Model;

    use super::*;

    #[test]
    fn a_threshold_lies_where_the_predictions_cross() {
        let frodo = models::presets::preset("frodo").unwrap();
        let predictor =
            Predictor::new(Model::PLogP, models::Forms::Corrected, &frodo.measured).unwrap();
        let [linear, pipeline] = ["linear", "pipeline,segment=1KiB"]
            .map(|name| format!("native:openmpi:{name}").parse::<Method>().unwrap());
        let seconds = |bytes, method| {
            let point = Point::flat(Collective::Bcast, 8, bytes);
            predictor.predict_method(point, method).unwrap().value
        };
        let at = (Collective::Bcast, Layout::flat(8));
        let crossed = crossing(&predictor, at, [&linear, &pipeline], [1, 1 << 20]).unwrap();
        assert!(seconds(crossed, &pipeline) < seconds(crossed, &linear));
        assert!(seconds(crossed - 1, &pipeline) >= seconds(crossed - 1, &linear));
        assert_eq!(crossing(&predictor, at, [&pipeline, &linear], [1, 1 << 20]), None);
        assert_eq!(crossing(&predictor, at, [&Method::Default, &linear], [1, 1 << 20]), None);
    }
}
