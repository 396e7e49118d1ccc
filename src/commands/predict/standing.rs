//! How the methods of a point compare by one model: the fastest, those that tie with it, the others.

use std::collections::BTreeMap;

use models::{Predictor, decide::decide_among};
use records::{Method, Point};

use super::row::PredictionRow;

fn point(row: &PredictionRow) -> Point {
    Point { collective: row.collective, layout: row.layout, bytes: row.bytes }
}

/// Marks what `decide` calls ties with the fastest of each point; all rows are of one model.
pub(super) fn mark_ties(predictor: &Predictor, rows: &mut [PredictionRow]) {
    let mut points: BTreeMap<Point, Vec<&mut PredictionRow>> = BTreeMap::new();
    for row in rows {
        points.entry(point(row)).or_default().push(row);
    }
    for (point, mut rows) in points {
        let Some(best) = rows.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds)) else {
            continue;
        };
        let (least, limit) = (best.seconds, best.high_seconds.unwrap_or(best.seconds));
        // Where intervals are apart there is no tie, and nothing is to be simulated once more.
        rows.retain(|row| row.low_seconds.unwrap_or(row.seconds) <= limit);
        if rows.len() < 2 {
            continue;
        }
        let methods: Vec<Method> = rows.iter().map(|row| row.asked.clone()).collect();
        // What no method is decided for has no fastest one.
        let Ok(decision) = decide_among(predictor, point, &methods) else { continue };
        for row in rows {
            let segment = point.segment(row.method.segment_bytes());
            let method = row.method.clone().with_segment(segment);
            let is_named = method == decision.method || decision.ties.contains(&method);
            row.tie = is_named || row.seconds == least;
        }
    }
}

/// Orders rows by point and model, as these came, and then by time.
pub(super) fn best_first(rows: &mut [PredictionRow]) {
    let mut places: [Vec<String>; 4] = Default::default();
    for row in rows.iter() {
        for (known, value) in places.iter_mut().zip(values(row)) {
            if !known.contains(&value) {
                known.push(value);
            }
        }
    }
    rows.sort_by_cached_key(|row| {
        let place =
            |(known, value): (&Vec<String>, String)| known.iter().position(|it| *it == value);
        let places: Vec<Option<usize>> = places.iter().zip(values(row)).map(place).collect();
        // Times are not negative, so that their bits are in their order.
        (places, row.seconds.to_bits())
    });
}

/// What tells a point, and the model.
fn values(row: &PredictionRow) -> [String; 4] {
    [row.collective.to_string(), row.layout.to_string(), row.bytes.to_string(), row.model.into()]
}

/// Where a row stands among those of its point and model.
pub(super) struct RowPlace {
    /// From 0 on.
    pub(super) number: usize,
    best_seconds: f64,
}

/// Of each row, as [`best_first`] orders them.
pub(super) fn places(rows: &[PredictionRow]) -> Vec<RowPlace> {
    let groups = rows.chunk_by(|a, b| values(a) == values(b));
    let of = |group: &[PredictionRow]| {
        let best_seconds = group.first().map_or(0.0, |best| best.seconds);
        (0..group.len()).map(|number| RowPlace { number, best_seconds }).collect::<Vec<_>>()
    };
    groups.flat_map(of).collect()
}

/// `best`, `tie` or how many times the best one's time it is: `1.12 x`.
pub(super) fn of_best(row: &PredictionRow, place: &RowPlace) -> String {
    match (place.number, row.tie) {
        (0, _) => "best".into(),
        (_, true) => "tie".into(),
        (_, false) if place.best_seconds > 0.0 => {
            format!("{:.2} x", row.seconds / place.best_seconds)
        }
        (_, false) => String::new(),
    }
}
