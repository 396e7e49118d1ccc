//! Predictions on nodes of several ranks, each simulated.

use anyhow::Result;
use models::{Model, simulated::Run};
use records::{Algorithm, Layout, Point};

use super::row::PredictionRow;
use crate::{
    commands::shared::{
        levels::{LevelOptions, PlacedAlgorithm},
        options::{GridOptions, List, SegmentOption},
    },
    error::{WrongUse, usage},
    stages::{deciding::sizes, source::CalibrationSource},
};

/// One row for each algorithm, those that look at nodes included, each segment size and each size.
///
/// # Errors
/// A model is asked for that doesn't know nodes, or an algorithm can't serve a call.
pub(super) fn rows(
    (levels, layout): (&LevelOptions, Layout),
    source: &CalibrationSource,
    grid: &GridOptions,
    (models, algorithms): (Option<&[Model]>, Option<&List<Algorithm>>),
) -> Result<Vec<PredictionRow>> {
    const MODEL: Model = Model::Simulated;
    if let Some(other) = models.into_iter().flatten().find(|model| **model != MODEL) {
        usage!(
            "--model {other}: it knows no nodes; with --layout times are simulated: leave out --model"
        );
    }
    let SegmentOption::These(segments) = &grid.segments else {
        usage!("--segments auto: with --layout name a list of sizes, such as 0,1KiB,8KiB");
    };
    if grid.layouts.is_some() {
        usage!("--layouts and --layout: name one; --layouts takes models that know no nodes");
    }
    let given = grid.procs.as_ref().map(|procs| &procs.0[..]);
    levels.procs(given, Vec::new)?;
    let mut predictor = source.levelled_predictor(MODEL)?;
    let (procs, mut rows) = (layout.procs(), Vec::new());
    for &collective in &grid.collective.0 {
        let placed: Vec<PlacedAlgorithm> = match algorithms {
            None => levels.all(collective)?,
            Some(List(asked)) => {
                let named = asked.iter().map(|one| levels.named(collective, one.name()));
                named.collect::<Result<_>>()?
            }
        };
        for placed in placed {
            if placed.leaves_out(procs, algorithms.is_none()) {
                continue;
            }
            for &segment_bytes in placed.segments(segments) {
                for &bytes in sizes(collective, &grid.sizes.0) {
                    let run = Run {
                        entry: placed.entry,
                        procs,
                        root: 0,
                        fan_out: None,
                        pace: records::TreePace::EVEN,
                        bytes,
                        segment_bytes,
                        levels: placed.levels,
                    };
                    let prediction =
                        predictor.predict(&run).map_err(|error| WrongUse(error.to_string()))?;
                    let point = Point { collective, layout, bytes };
                    rows.push(PredictionRow {
                        collective,
                        algorithm: placed.entry.algorithm,
                        method: placed.method.clone().with_segment(segment_bytes),
                        tells_origin: true,
                        segment_bytes,
                        layout,
                        bytes,
                        model: MODEL.name(),
                        seconds: prediction.seconds,
                        low_seconds: prediction.low,
                        high_seconds: prediction.high,
                        greatest_seconds: None,
                        limit_seconds: None,
                        extrapolated: !source.reach().covers(point),
                    });
                }
            }
        }
    }
    Ok(rows)
}
