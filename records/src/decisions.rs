//! `decisions.json`: which method each model takes at each point of a grid.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Collective, Layout, Method, document::Document, number::check_procs};

/// One decision function per model, tabulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decisions {
    /// Where the parameters come from: a preset or a calibration file.
    pub calibration: String,
    /// `printed` or `corrected` closed forms.
    pub forms: String,
    /// `measured` or `fitted` parameters.
    pub parameters: String,
    /// What a message size means, per collective.
    pub message_size: BTreeMap<Collective, String>,
    /// The decisions: ascending by collective, model, procs, bytes.
    pub decisions: Vec<Decision>,
}

impl Document for Decisions {
    const SCHEMA: &'static str = "colibri/decisions/1";

    fn validate(&self) -> Result<(), (String, String)> {
        for (index, decision) in self.decisions.iter().enumerate() {
            let field = |name: &str| format!("decisions[{index}].{name}");
            check_procs(decision.layout.procs()).map_err(|problem| (field("procs"), problem))?;
            for (name, method) in std::iter::once(("method", &decision.method))
                .chain(decision.ties.iter().map(|method| ("ties", method)))
            {
                let checked = method.check_collective(decision.collective);
                checked.map_err(|problem| (field(name), problem))?;
            }
            if decision.seconds < 0.0 {
                let problem = format!("is {}; expected 0 or more", decision.seconds);
                return Err((field("seconds"), problem));
            }
        }
        Ok(())
    }
}

/// What one model takes at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The collective.
    pub collective: Collective,
    /// The model that decided.
    pub model: String,
    /// The communicator's ranks and nodes; `procs` in files, where a number is one rank per node.
    #[serde(rename = "procs")]
    pub layout: Layout,
    /// Message size.
    pub bytes: u64,
    /// The cheapest method.
    pub method: Method,
    /// Its predicted time.
    pub seconds: f64,
    /// Lower end of that prediction's interval (95 %).
    pub low_seconds: f64,
    /// Upper end of that prediction's interval (95 %).
    pub high_seconds: f64,
    /// Other methods that the uncertainty of the parameters does not tell apart, cheapest first.
    pub ties: Vec<Method>,
    /// The point lies beyond what the calibration measured: more processes than its platform has,
    /// or a larger message than its largest. Files of older versions do not say it.
    #[serde(default)]
    pub extrapolated: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_communicator_is_empty_and_no_time_negative() {
        let text = |procs: u32, seconds: f64| {
            format!(
                r#"{{"schema": "colibri/decisions/1", "calibration": "", "forms": "", "parameters":
                "", "message_size": {{}}, "decisions": [{{"collective": "bcast", "model": "loggp",
                "procs": {procs}, "bytes": 1, "method": "own:linear", "seconds": {seconds},
                "low_seconds": 1.0, "high_seconds": 1.0, "ties": []}}]}}"#
            )
        };
        let read = |procs, seconds| {
            let path = std::path::Path::new("decisions.json");
            let decisions = crate::document::parse::<Decisions>(&text(procs, seconds), path);
            decisions.map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(read(2, 1.5), Ok(()));
        for (procs, seconds, field) in
            [(0, 1.5, "[0].procs: is 0"), (u32::MAX, 1.5, "[0].procs"), (2, -1.5, "[0].seconds")]
        {
            let error = read(procs, seconds).unwrap_err();
            assert!(error.contains(field), "{error}");
        }
    }

    #[test]
    fn a_mock_up_of_another_collective_is_refused() {
        let mock_up = r#"{"schema": "colibri/decisions/1", "calibration": "", "forms": "",
            "parameters": "", "message_size": {}, "decisions": [{"collective": "bcast",
            "model": "loggp", "procs": 4, "bytes": 1, "method": "mockup:scan_as_exscan_reduce_local",
            "seconds": 1.0, "low_seconds": 1.0, "high_seconds": 1.0, "ties": []}]}"#;
        let path = std::path::Path::new("decisions.json");
        let error = crate::document::parse::<Decisions>(mock_up, path).unwrap_err().to_string();
        assert!(error.contains("decisions[0].method: is scan_as_exscan_reduce_local"), "{error}");
    }

    #[test]
    fn a_file_from_before_extrapolations_were_marked_is_read() {
        let old = r#"{"collective": "bcast", "model": "loggp", "procs": 8, "bytes": 1,
            "method": "own:linear", "seconds": 1.0, "low_seconds": 1.0, "high_seconds": 1.0,
            "ties": []}"#;
        let decision: Decision = serde_json::from_str(old).unwrap();
        assert!(!decision.extrapolated);
        let text = serde_json::to_string(&Decision { extrapolated: true, ..decision }).unwrap();
        assert!(text.contains("\"extrapolated\":true"), "{text}");
    }
}
