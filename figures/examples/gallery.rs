//! Draws every kind of figure from made-up results, to be looked at:
//! `cargo run --example gallery DIR`.

use std::{error::Error, path::PathBuf};

use colibri_figures::{
    self as figures, Axis, Curve, Figure, GainPanel, GainPoint, PlotPoint, Quantity, Trace, gain,
    panels, save,
};
use records::{Algorithm, Collective, Method};

#[path = "../tests/made_up/mod.rs"]
mod made_up;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: gallery DIR")?);
    std::fs::create_dir_all(&folder)?;
    let few = [2, 4, 8];
    let many: Vec<u32> = (2..=32).collect();
    let bcast = Collective::Bcast;
    let mut figures: Vec<(&str, Figure)> = Vec::new();
    for (name, procs, count) in [("few", few.as_slice(), 21), ("many", &many, 24)] {
        let sizes = made_up::sizes(count);
        let mut penalties = made_up::penalties(procs, &sizes);
        let mut decisions = made_up::decisions(procs, &sizes);
        for decision in &mut decisions.choices {
            decision.extrapolated =
                decision.point.layout.procs() > 20 || decision.point.bytes > 1 << 19;
        }
        let map = figures::decision_map(&decisions, Some(&penalties), bcast)?;
        figures.push(if name == "few" { ("decisions_few", map) } else { ("decisions_many", map) });
        penalties.penalties.retain(|p| {
            p.decided_by != "plogp" || p.point.bytes < 1 << 18 || p.point.layout.procs() < 8
        });
        let map = figures::penalty_map(&penalties, bcast)?;
        figures.push(if name == "few" { ("penalty_few", map) } else { ("penalty_many", map) });
        if name == "few" {
            let gains = made_up::gains(procs, &sizes);
            let lines = [penalties.platform.summary(), "tuned: the measured best".into()];
            figures.push(("gain", gain(bcast, &lines, &gains)?));
        }
    }
    for (name, procs) in [("difference_few", few.as_slice()), ("difference_many", &many)] {
        let points = made_up::differences(procs, &made_up::sizes(24));
        let names = ["decisions.json, loggp", "decisions.json, plogp"];
        let judge = "predicted by plogp with calibration.json";
        figures.push((name, figures::difference_map(bcast, names, judge, &points)?));
    }
    figures.push(("mixed", mixed()?));
    let one = made_up::penalties(&[8], &[0]);
    figures.push(("one_cell", figures::penalty_map(&one, bcast)?));
    figures.push(("pairs", figures::pair_map(&made_up::pairs(8))?));
    figures.push(("parameters", figures::parameters(&made_up::calibration())?));
    let mut fitted = made_up::calibration();
    made_up::complete(&mut fitted);
    figures.push(("parameters_fitted", figures::parameters(&fitted)?));
    figures.push(("fits", figures::fits(&fitted)?));
    figures.push(("algorithm_fits", figures::algorithm_fits(&fitted, bcast)?));
    figures.push(("curves", predictions()?));
    figures.push(("gain_barrier", barrier()?));
    for (name, figure) in figures {
        for path in save(&figure, &folder.join(name))? {
            println!("{}", path.display());
        }
    }
    Ok(())
}

/// Many algorithms, origins and segment sizes in one map.
fn mixed() -> Result<Figure, figures::FigureError> {
    let mut decisions = made_up::decisions(&[4, 8, 16, 32], &made_up::sizes(19));
    for (index, decision) in decisions.choices.iter_mut().enumerate() {
        let algorithm = Algorithm::ALL[index % Algorithm::ALL.len()];
        decision.method = match index % 7 {
            0 => Method::Mockup("bcast_as_scatter_allgather".into()),
            1 => Method::Default,
            2 | 3 => Method::own(algorithm),
            step => match decision.method.clone() {
                Method::Native(native) => Method::Native(records::Native {
                    algorithm,
                    segment_bytes: (1000 * index as u64) >> step,
                    ..native
                }),
                other => other,
            },
        };
    }
    figures::decision_map(&decisions, None, Collective::Bcast)
}

/// Predictions by four models and a measurement, with intervals.
fn predictions() -> Result<Figure, figures::FigureError> {
    let names = ["measured", "hockney", "loggp", "plogp", "simulated"];
    let series = names.iter().zip([1.0, 1.9, 1.3, 0.8, 1.05]).map(|(name, factor)| Curve {
        name: (*name).into(),
        trace: if *name == "measured" { Trace::Marked } else { Trace::Line },
        points: made_up::sizes(24)
            .into_iter()
            .map(|bytes| {
                let y = factor * made_up::seconds(8, bytes);
                PlotPoint { x: bytes as f64, y, low: y * 0.8, high: y * 1.3 }
            })
            .collect(),
    });
    let x = Axis { label: "message size (count x type size)".into(), quantity: Quantity::Bytes };
    let y = Axis { label: "time of one call".into(), quantity: Quantity::Seconds };
    let lines = ["pipeline 8 KiB, 8 ranks".to_owned(), made_up::platform(8).summary()];
    panels(
        "Predicted against measured: bcast",
        &lines,
        (x, y),
        &[(String::new(), series.collect())],
    )
}

fn barrier() -> Result<Figure, figures::FigureError> {
    let gains = (2..=32).map(|procs| {
        let tuned_seconds = made_up::seconds(procs, 0);
        let default_seconds = tuned_seconds * (1.0 + f64::from(procs) / 16.0);
        GainPanel {
            layout: procs.into(),
            points: vec![GainPoint {
                bytes: 0,
                default_seconds,
                tuned_seconds: Some(tuned_seconds),
                interval: None,
            }],
        }
    });
    let lines = [made_up::platform(32).summary()];
    gain(Collective::Barrier, &lines, &gains.collect::<Vec<_>>())
}
