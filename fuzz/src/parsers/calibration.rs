use std::collections::BTreeSet;

use models::{
    Forms, Model, Predictor, Reach, closed_forms::refined, explain::Explainer, parameters::Network,
};
use records::{
    Algorithm, Collective, Method, Point,
    calibration::{Calibration, Parameters},
};

use super::document;
use crate::{Answer, Inputs, Parser, files};

/// Parameters of platforms.
pub fn calibration() -> Parser {
    const WORDS: &[&str] = &[
        "schema",
        "colibri/calibration/1",
        "source",
        "preset:frodo",
        "measured",
        "fitted",
        "algorithms",
        "hockney",
        "loggp",
        "plogp",
        "knots",
        "bytes",
        "value",
        "low",
        "high",
        "partners",
        "gamma",
        "operation",
        "sum-double",
        "derived",
        "plogp from loggp",
        "hosts",
        "records",
        "fits",
        "points",
        "procs",
        "own:linear",
        "native:openmpi:binomial",
        "refined",
        "gap_by_sources",
        "protocol_changes",
    ];
    Parser {
        name: "calibration",
        samples: files::calibrations(),
        words: WORDS,
        inputs: Inputs::LARGE,
        read,
    }
}

fn read(input: &[u8]) -> Answer {
    document::<Calibration>(input, |calibration| {
        let Calibration { measured, fitted, inside, algorithms, .. } = calibration;
        for model in Model::ALL {
            Predictor::new(model, Forms::Corrected, measured)
                .and_then(|predictor| predictor.on_nodes(measured, inside.as_ref(), true))
                .expect("what was accepted are parameters");
        }
        for parameters in std::iter::once(measured).chain(fitted) {
            let reach = Reach::from_calibration(calibration, parameters);
            predict(parameters, reach);
        }
        if let Some(algorithms) = algorithms {
            let reach = Reach::of_algorithms(&algorithms.fits);
            for model in [Model::Hockney, Model::Refined] {
                let predictor = Predictor::of_algorithms(model, &algorithms.fits, measured)
                    .expect("what was accepted are parameters");
                ask(
                    &predictor.within(reach),
                    algorithms.fits.iter().map(|fit| (fit.collective, fit.method.clone())),
                );
            }
        }
        draw(calibration);
    })
}

fn predict(parameters: &Parameters, reach: Reach) {
    for model in Model::ALL {
        Network::ends(model, parameters).expect("what was accepted are parameters");
        // Simulating takes long, and takes the parameters of `refined`.
        if model == Model::Simulated {
            continue;
        }
        let predictor = Predictor::new(model, Forms::Corrected, parameters)
            .expect("what was accepted are parameters")
            .within(reach);
        let methods = [Collective::Bcast, Collective::Allreduce, Collective::Barrier]
            .into_iter()
            .flat_map(|collective| {
                let algorithms: Vec<Algorithm> = model.algorithms(collective);
                let with = |algorithm| {
                    [0, 1024]
                        .map(|segment_bytes| Method::own(algorithm).with_segment(segment_bytes))
                };
                algorithms.into_iter().flat_map(with).map(move |method| (collective, method))
            });
        ask(&predictor, methods);
        let of = Point::flat(Collective::Bcast, 5, 3000);
        let explainer = Explainer::new(&predictor, parameters, None, false)
            .expect("what was accepted are parameters");
        let method = Method::own(Algorithm::Binomial).with_segment(1024);
        let _ = (explainer.terms(of, &method), explainer.formula(of, &method));
    }
}

/// No time is below 0 or none at all.
fn ask(predictor: &Predictor, methods: impl Iterator<Item = (Collective, Method)>) {
    for (collective, method) in methods {
        for (procs, bytes) in [(1, 0), (2, 1), (13, 100_000), (1 << 20, 1 << 30)] {
            let point = Point::flat(collective, procs, bytes);
            let _ = predictor.reach().excess(point);
            if procs > MAX_SIMULATED && is_simulated(predictor.model(), collective, &method) {
                continue;
            }
            if let Ok(prediction) = predictor.predict_method(point, &method) {
                let seconds = prediction.value;
                assert!(seconds >= 0.0, "a time of {seconds} s");
            }
        }
    }
}

/// On more ranks a simulation, once for each end of an interval, takes more than a second.
const MAX_SIMULATED: u32 = 1000;

/// What `refined` has no form for it simulates.
fn is_simulated(model: Model, collective: Collective, method: &Method) -> bool {
    let has_form = || {
        let forms = refined::forms(collective);
        forms.iter().any(|form| Some(form.algorithm) == method.algorithm())
    };
    model == Model::Refined && !has_form()
}

fn draw(calibration: &Calibration) {
    let of_algorithms = calibration.algorithms.iter().flat_map(|algorithms| &algorithms.fits);
    let collectives: BTreeSet<Collective> = of_algorithms.map(|fit| fit.collective).collect();
    let figures = [figures::parameters(calibration), figures::fits(calibration)].into_iter();
    let figures =
        figures.chain(collectives.into_iter().map(|of| figures::algorithm_fits(calibration, of)));
    for figure in figures {
        let _ = figure.map(|figure| figure.svg().map_err(|error| error.to_string()));
    }
}
