//! `choices.json`: what was chosen at each point, and what that rests on. `decide`, `verify`,
//! `guidelines` and `tune` end in this document; exports read it and choose nothing by themselves.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use crate::confirmed::Evidence;
use crate::{
    Collective, Method, Point,
    confirmed::{ConfirmedRange, LoadVerdict, LoadedCounts, PairedSpeedUp},
    document::Document,
    number::check_procs,
    platform::Platform,
    summary::LoadWay,
};

/// What a run has chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choices {
    /// What was measured on.
    pub platform: Platform,
    /// What a message size means, per collective.
    pub message_size: BTreeMap<Collective, String>,
    /// Where predictions come from, if the choices rest on any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<PredictionSource>,
    /// Among all methods measured or predicted, however they are loaded: ascending by collective,
    /// model, procs, bytes.
    pub choices: Vec<Chosen>,
    /// What was confirmed for each way of loading, in the same order.
    pub confirmed: Vec<ConfirmedWay>,
}

/// Where predictions come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictionSource {
    /// A preset or a calibration file.
    pub calibration: String,
    /// `printed` or `corrected` closed forms.
    pub forms: String,
    /// `measured` or `fitted` parameters.
    pub parameters: String,
}

/// What jobs made after the choice have left of it, for one way of loading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmedWay {
    /// How it is loaded.
    pub way: LoadWay,
    /// Whether to load it.
    pub verdict: LoadVerdict,
    /// At every point of [`Choices::choices`], and at sizes between these that were not measured. What was not
    /// confirmed, or that way can't load, is left to the default.
    pub choices: Vec<Chosen>,
}

impl ConfirmedWay {
    /// At how many points it replaces the default.
    pub fn counts(&self) -> LoadedCounts {
        counts(&self.choices)
    }

    /// What was confirmed together, each once, in the order of the points.
    pub fn ranges(&self) -> Vec<ConfirmedRange> {
        let mut ranges: Vec<ConfirmedRange> = Vec::new();
        for chosen in &self.choices {
            let Chosen { point: Point { collective, layout, bytes }, ref method, .. } = *chosen;
            let is_it = |range: &ConfirmedRange| {
                (range.collective, range.layout, &range.method) == (collective, layout, method)
                    && Some(range.confirmed) == chosen.confirmed
            };
            match (ranges.last_mut(), chosen.confirmed) {
                (Some(last), Some(_)) if is_it(last) => last.last_bytes = bytes,
                (_, Some(confirmed)) => ranges.push(ConfirmedRange {
                    collective,
                    layout,
                    first_bytes: bytes,
                    last_bytes: bytes,
                    method: method.clone(),
                    confirmed,
                }),
                (_, None) => {}
            }
        }
        ranges
    }
}

/// At how many points the default is replaced by what is loaded, and what that rests on.
pub fn counts(loaded: &[Chosen]) -> LoadedCounts {
    let mut counts = LoadedCounts::default();
    for chosen in loaded {
        if chosen.by_other_layout {
            counts.shadowed += 1;
            continue;
        }
        counts.points += 1;
        match (&chosen.method, chosen.rests_on) {
            (Method::Default, _) => counts.withheld += u32::from(chosen.unconfirmed.is_some()),
            (_, Evidence::Confirmed) => counts.confirmed += 1,
            (_, Evidence::BetweenConfirmed) => counts.between += 1,
            (_, Evidence::Measured | Evidence::Predicted) => counts.unconfirmed += 1,
        }
    }
    counts
}

/// What is to run at one point: measured, believed by measurements there and nearby, or predicted. Confirming adds what
/// it showed, and an export takes out what its target cannot express.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    #[serde(flatten)]
    pub point: Point,
    /// The model that decided, where the choice rests on a prediction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What to load; [`Method::Default`] where the library is left alone.
    pub method: Method,
    /// Its time, as it is predicted, believed or was measured.
    pub seconds: f64,
    /// The default's time, as it is believed or was measured; a prediction does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_seconds: Option<f64>,
    /// What these times rest on.
    pub rests_on: Evidence,
    /// Standard deviation of the logarithm of `default_seconds / seconds`, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<f64>,
    /// Lower and upper end of the interval (95 %) of a predicted time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<[f64; 2]>,
    /// Other methods that the uncertainty of a prediction does not tell apart, cheapest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ties: Vec<Method>,
    /// A prediction for more processes or a larger message than was calibrated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extrapolated: bool,
    /// The next best method, where another one was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<TimedMethod>,
    /// The other methods measured there, best first: where a target cannot express the method, it
    /// takes the first of these that it can express.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<TimedMethod>,
    /// Why the point is left to the default, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_because: Option<String>,
    /// What confirmed it, together with the other sizes that have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<PairedSpeedUp>,
    /// What was chosen here and is not loaded, as it was not confirmed; `--unconfirmed` loads it. Nothing where it was
    /// shown not to be faster, or timed only while others disturbed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<TimedMethod>,
    /// Whether the file applies here what was chosen for another layout of as many processes, which it does not tell
    /// apart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_other_layout: bool,
    /// Whether it was timed only while others took too much of the processors. Such a choice is never loaded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
}

/// A method at a point beside the one that is chosen there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimedMethod {
    pub method: Method,
    /// Its time, as it is believed or was measured.
    pub seconds: f64,
    /// Whether it is significantly faster than the default, so that it may replace it: of alternatives alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beats_default: Option<bool>,
    /// What its time rests on, where that may be something else than the choice's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rests_on: Option<Evidence>,
}

impl TimedMethod {
    /// Of which nothing else is said.
    pub fn new(method: Method, seconds: f64) -> Self {
        TimedMethod { method, seconds, beats_default: None, rests_on: None }
    }
}

impl Chosen {
    /// A choice with its times, in seconds, and nothing else known of it.
    pub fn new(
        point: Point,
        method: Method,
        (seconds, default_seconds): (f64, Option<f64>),
        rests_on: Evidence,
    ) -> Self {
        Chosen {
            point,
            model: None,
            method,
            seconds,
            default_seconds,
            rests_on,
            doubt: None,
            interval_seconds: None,
            ties: Vec::new(),
            extrapolated: false,
            next: None,
            alternatives: Vec::new(),
            default_because: None,
            confirmed: None,
            unconfirmed: None,
            by_other_layout: false,
            disturbed: false,
        }
    }

    /// One that was measured, or is believed by measurements, with its time and the default's.
    pub fn measured(point: Point, method: Method, seconds: f64, default_seconds: f64) -> Self {
        Self::new(point, method, (seconds, Some(default_seconds)), Evidence::Measured)
    }

    /// What a model decides, with the time that it predicts.
    pub fn predicted(point: Point, model: &str, method: Method, seconds: f64) -> Self {
        let chosen = Self::new(point, method, (seconds, None), Evidence::Predicted);
        Chosen { model: Some(model.into()), ..chosen }
    }

    /// The interval of a predicted time, in seconds; where there is none, the time itself.
    pub fn interval(&self) -> [f64; 2] {
        self.interval_seconds.unwrap_or([self.seconds; 2])
    }

    /// The default's time; where it is not known the choice's own, which claims no gain.
    pub fn without_seconds(&self) -> f64 {
        self.default_seconds.unwrap_or(self.seconds)
    }

    /// The default's time over the choice's, where both are known.
    pub fn speed_up(&self) -> Option<f64> {
        Some(self.default_seconds? / self.seconds)
    }

    fn validate(&self) -> Result<(), (&'static str, String)> {
        let is_time = |seconds: f64| match self.rests_on {
            // By some models a message of no bytes costs nothing.
            Evidence::Predicted => seconds.is_finite() && seconds >= 0.0,
            Evidence::Measured | Evidence::BetweenConfirmed | Evidence::Confirmed => {
                seconds.is_finite() && seconds > 0.0
            }
        };
        let next = self.next.iter().map(|next| ("next", next));
        let alternatives = self.alternatives.iter().map(|other| ("alternatives", other));
        let unconfirmed = self.unconfirmed.iter().map(|other| ("unconfirmed", other));
        let others = || next.clone().chain(alternatives.clone()).chain(unconfirmed.clone());
        let times = [("seconds", Some(self.seconds)), ("default_seconds", self.default_seconds)];
        let times = times.into_iter().filter_map(|(field, seconds)| Some((field, seconds?)));
        for (field, seconds) in times.chain(others().map(|(field, of)| (field, of.seconds))) {
            if !is_time(seconds) {
                return Err((field, format!("is {seconds}; expected a time above 0")));
            }
        }
        check_procs(self.point.layout.procs()).map_err(|problem| ("procs", problem))?;
        let ties = self.ties.iter().map(|method| ("ties", method));
        let methods = others().map(|(field, of)| (field, &of.method)).chain(ties);
        for (field, method) in std::iter::once(("method", &self.method)).chain(methods) {
            method.check_collective(self.point.collective).map_err(|problem| (field, problem))?;
        }
        if let Some(PairedSpeedUp { speed_up, interval: [low, high], .. }) = self.confirmed
            && !(0.0 < low && low <= speed_up && speed_up <= high && high.is_finite())
        {
            let problem =
                format!("is {speed_up} in {low} to {high}; expected a number in its interval");
            return Err(("confirmed", problem));
        }
        match self.doubt {
            Some(doubt) if !(doubt.is_finite() && doubt >= 0.0) => {
                Err(("doubt", "expected a standard deviation of 0 or more".into()))
            }
            _ => Ok(()),
        }
    }
}

impl Choices {
    /// The models that have chosen, each once, in alphabetical order; none where measurements have.
    pub fn models(&self) -> Vec<&str> {
        let models: BTreeSet<&str> =
            self.choices.iter().filter_map(|chosen| chosen.model.as_deref()).collect();
        models.into_iter().collect()
    }

    /// What one model has chosen; with none given, what measurements have.
    pub fn of_model(&self, model: Option<&str>) -> impl Iterator<Item = &Chosen> {
        self.choices.iter().filter(move |chosen| chosen.model.as_deref() == model)
    }

    /// What was confirmed at each point, in whichever way of loading gained most there; nothing
    /// where no way was tried.
    pub fn confirmed_in_any_way(&self) -> Option<Vec<&Chosen>> {
        let gain = |chosen: &Chosen| match chosen.method {
            Method::Default => 1.0,
            _ => chosen.speed_up().unwrap_or(1.0),
        };
        let mut best: BTreeMap<Point, &Chosen> = BTreeMap::new();
        for chosen in self.confirmed.iter().flat_map(|way| &way.choices) {
            let before = best.entry(chosen.point).or_insert(chosen);
            if gain(chosen) > gain(before) {
                *before = chosen;
            }
        }
        (!self.confirmed.is_empty()).then(|| best.into_values().collect())
    }

    /// Whether to load what was confirmed in any way: where several were tried, the verdict on the one that replaces
    /// most.
    pub fn verdict_in_any_way(&self) -> Option<&LoadVerdict> {
        let most = self.confirmed.iter().max_by_key(|way| way.counts().replaced());
        most.map(|confirmed| &confirmed.verdict)
    }

    /// What was confirmed for a way of loading; nothing where that way was not tried.
    pub fn confirmed_way(&self, way: LoadWay) -> Option<&ConfirmedWay> {
        self.confirmed.iter().find(|confirmed| confirmed.way == way)
    }
}

impl Document for Choices {
    const SCHEMA: &'static str = "colibri/choices/1";

    fn validate(&self) -> Result<(), (String, String)> {
        validate("choices", &self.choices)?;
        let confirmed = self.confirmed.iter().enumerate();
        confirmed.into_iter().try_for_each(|(index, confirmed)| {
            validate(&format!("confirmed[{index}].choices"), &confirmed.choices)
        })
    }
}

fn validate(field: &str, choices: &[Chosen]) -> Result<(), (String, String)> {
    let mut points: BTreeSet<(Option<&str>, Point)> = BTreeSet::new();
    for (index, chosen) in choices.iter().enumerate() {
        let wrong = |(inner, problem)| (format!("{field}[{index}].{inner}"), problem);
        chosen.validate().map_err(wrong)?;
        if !points.insert((chosen.model.as_deref(), chosen.point)) {
            return Err((format!("{field}[{index}]"), "this point occurs twice".into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::document;

    fn chosen(bytes: u64) -> Chosen {
        let point = Point::flat(Collective::Bcast, 8, bytes);
        let method: Method = "own:pipeline,segment=8KiB".parse().unwrap();
        Chosen {
            doubt: Some(0.02),
            next: Some(TimedMethod::new(Method::Default, 0.04)),
            ..Chosen::new(point, method, (0.01, Some(0.04)), Evidence::Confirmed)
        }
    }

    fn choices(chosen: Vec<Chosen>) -> Choices {
        let confirmed = vec![ConfirmedWay {
            way: LoadWay::Preload,
            verdict: LoadVerdict::default(),
            choices: chosen.clone(),
        }];
        Choices {
            platform: Platform::default(),
            message_size: BTreeMap::new(),
            prediction: None,
            choices: chosen,
            confirmed,
        }
    }

    #[test]
    fn it_reads_back_and_a_way_is_found() {
        let written = choices(vec![chosen(64), chosen(128)]);
        let text = document::text(&written).unwrap();
        let read: Choices = document::parse(&text, Path::new("x")).unwrap();
        assert_eq!(read, written);
        assert_eq!(read.confirmed_way(LoadWay::Preload).unwrap().choices.len(), 2);
        assert_eq!(read.confirmed_way(LoadWay::Rules), None);
    }

    #[test]
    fn what_is_wrong_in_a_speed_up_is_named_once() {
        let confirmed = PairedSpeedUp { pairs: 3, speed_up: 2.0, interval: [1.5, 2.5] };
        let written = choices(vec![Chosen { confirmed: Some(confirmed), ..chosen(1) }]);
        let text = document::text(&written).unwrap().replace("\"pairs\": 3", "\"pairs\": true");
        let error = document::parse::<Choices>(&text, Path::new("x")).unwrap_err().to_string();
        assert!(error.contains("field choices[0].confirmed.pairs: "), "{error}");
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_field() {
        let cases: [(&str, Vec<Chosen>); 5] = [
            ("choices[0].seconds", vec![Chosen { seconds: 0.0, ..chosen(1) }]),
            (
                "choices[0].procs",
                vec![Chosen { point: Point::flat(Collective::Bcast, 0, 1), ..chosen(1) }],
            ),
            ("choices[0].doubt", vec![Chosen { doubt: Some(-1.0), ..chosen(1) }]),
            (
                "choices[0].unconfirmed: is -1",
                vec![Chosen {
                    unconfirmed: Some(TimedMethod::new(Method::Default, -1.0)),
                    ..chosen(1)
                }],
            ),
            ("choices[1]: this point", vec![chosen(1), chosen(1)]),
        ];
        for (wanted, chosen) in cases {
            let text = document::text(&choices(chosen)).unwrap();
            let error = document::parse::<Choices>(&text, Path::new("x")).unwrap_err().to_string();
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
    }

    #[test]
    fn what_models_decided_is_told_apart_by_model() {
        let point = Point::flat(Collective::Bcast, 8, 1);
        let method: Method = "own:linear".parse().unwrap();
        let decision = |model: &str, seconds| Chosen {
            interval_seconds: Some([0.0, 2.0]),
            ties: vec!["own:binomial".parse().unwrap()],
            extrapolated: true,
            ..Chosen::predicted(point, model, method.clone(), seconds)
        };
        let prediction = PredictionSource {
            calibration: "preset:frodo".into(),
            forms: "corrected".into(),
            parameters: "measured".into(),
        };
        let decided = vec![decision("loggp", 0.0), decision("plogp", 1.0)];
        let written = Choices { prediction: Some(prediction), ..choices(decided) };
        let text = document::text(&written).unwrap();
        let read: Choices = document::parse(&text, Path::new("x")).unwrap();
        assert_eq!(read, written);
        assert_eq!(read.models(), ["loggp", "plogp"]);
        let of_plogp: Vec<f64> = read.of_model(Some("plogp")).map(|one| one.seconds).collect();
        assert_eq!(of_plogp, [1.0]);
        assert_eq!(read.of_model(None).count(), 0);
    }

    #[test]
    fn of_several_ways_the_one_that_gained_most_is_taken() {
        let fast = Chosen { seconds: 0.005, ..chosen(64) };
        let left = Chosen { method: Method::Default, seconds: 0.04, ..chosen(128) };
        let mut written = choices(vec![chosen(64), left.clone()]);
        written.confirmed.push(ConfirmedWay {
            way: LoadWay::Rules,
            verdict: LoadVerdict::default(),
            choices: vec![fast.clone(), left],
        });
        let confirmed = written.confirmed_in_any_way().unwrap();
        assert_eq!((confirmed[0], &confirmed[1].method), (&fast, &Method::Default));
        written.confirmed.clear();
        assert_eq!(written.confirmed_in_any_way(), None);
    }
}
