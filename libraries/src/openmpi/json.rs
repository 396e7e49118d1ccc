//! Open MPI 6's rules for component coll/tuned, in JSON.
//!
//! A communicator takes the first entry that holds its size, a call the first rule in it that
//! holds its message; what none holds is left to the library. Both ends belong to a range. The
//! reader ends the program over names of collectives that it has no algorithms for, and never
//! matches `"comm_size_max": "inf"`: neither is written.

use records::{Algorithm, Collective, Method, Point};
use serde::Serialize;

use super::{
    algorithms::{algorithms, named as names},
    forcing::as_variable,
    tuned::{environment, express, lines, message_size, named, one_for_all_sizes},
};
use crate::{
    danger::UnsafeFor,
    error::{Result, fail, usage},
    exporter::{ALL_BLOCKS, Export, Exporter, File, HowToLoad},
    spans::{narrow, spans},
    version::{Versions, numbers},
};

/// The fan-out that makes Open MPI 6's k-ary Bruck the classic one.
const BRUCK_FAN_OUT: u32 = 2;

const VERSIONS: Versions = Versions { target: "Open MPI", known: &[(6, 0)] };

/// The JSON form.
pub struct Json {
    version: (u32, u32),
}

#[derive(Serialize)]
struct RulesDocument {
    rule_file_version: u32,
    module: &'static str,
    collectives: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize)]
struct Communicators {
    comm_size_min: u32,
    comm_size_max: u32,
    rules: Vec<Messages>,
}

#[derive(Serialize)]
struct Messages {
    msg_size_min: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg_size_max: Option<u64>,
    alg: u32,
    faninout: u32,
    seg_size: u64,
}

impl Json {
    /// For a version.
    ///
    /// # Errors
    /// The version reads another form.
    pub fn new(version: Option<&str>) -> Result<Self> {
        let version = version.unwrap_or("6.0");
        if let Some((major @ (4 | 5), minor)) = numbers(version) {
            usage!("Open MPI {major}.{minor} reads no JSON rules; write them by --target openmpi");
        }
        Ok(Json { version: VERSIONS.read(version)? })
    }
}

impl Exporter for Json {
    fn target(&self) -> String {
        format!("Open MPI {}.{}", self.version.0, self.version.1)
    }

    fn named(&self, algorithm: Algorithm, segment_bytes: u64) -> Method {
        named(algorithm, segment_bytes)
    }

    fn express(&self, point: Point, method: &Method) -> Result<(), String> {
        express(&self.target(), point, method)
    }

    /// What is chosen for two ranks ends below the next number of them.
    fn keeps_from(&self, calls: UnsafeFor) -> bool {
        calls == UnsafeFor::NotTwoRanks
    }

    fn algorithms(&self, collective: Collective) -> Vec<Algorithm> {
        names(collective)
    }

    fn one_for_all_sizes(&self, collective: Collective) -> Option<&'static str> {
        one_for_all_sizes(collective)
    }

    fn message_size(&self, collective: Collective) -> Option<&'static str> {
        message_size(collective)
    }

    fn files(&self, export: &Export<'_>) -> Result<Vec<File>> {
        let mut collectives = serde_json::Map::new();
        for rules in export.rules {
            let collective = rules.collective;
            if algorithms(collective).is_empty() {
                fail!("Open MPI's rules know no {collective}");
            }
            let total = message_size(collective) == Some(ALL_BLOCKS);
            let spans = spans(rules, one_for_all_sizes(collective).is_some())?;
            let spans = if total { narrow(spans) } else { spans };
            let mut entries = Vec::new();
            for span in &spans {
                let lines = lines(collective, span, total)?;
                let ends = lines.iter().skip(1).map(|(next, _)| Some(next.from_bytes - 1));
                let bruck = |method: &Method| method.algorithm() == Some(Algorithm::Bruck);
                let rules = lines
                    .iter()
                    .zip(ends.chain([None]))
                    .filter(|((line, _), _)| line.id > 0)
                    .map(|((line, method), end)| Messages {
                        msg_size_min: line.from_bytes,
                        msg_size_max: end,
                        alg: line.id,
                        faninout: match collective {
                            Collective::Allgather if bruck(method) => BRUCK_FAN_OUT,
                            _ => line.fan_out,
                        },
                        seg_size: line.segment_bytes,
                    })
                    .collect();
                entries.push(Communicators {
                    comm_size_min: span.first,
                    comm_size_max: span.last,
                    rules,
                });
            }
            collectives.insert(collective.name().into(), serde_json::to_value(entries)?);
        }
        let document = RulesDocument { rule_file_version: 3, module: "tuned", collectives };
        let text = serde_json::to_string_pretty(&document)? + "\n";
        Ok(vec![File { name: String::new(), text }])
    }

    fn environment(&self, file: &str, _: &Export<'_>) -> Option<Vec<(String, String)>> {
        let mut settings = environment(file);
        // Where coll/han comes first, across nodes, it is set aside.
        settings.push((as_variable("coll_han_priority"), "0".to_owned()));
        Some(settings)
    }

    fn how_to_load(&self, file: &str, _: &Export<'_>) -> HowToLoad {
        let command = format!(
            "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename \
             {file} ..."
        );
        HowToLoad::new(self.target(), command).with_remark(
            "(across nodes: also --mca coll_han_priority 0; to see what is selected: --mca \
             coll_tuned_verbose 25)",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Rules, section};

    /// The rule that Open MPI 6 takes, by its documented search: first communicator entry that
    /// holds the size, first rule in it that holds the message.
    fn taken(document: &serde_json::Value, name: &str, procs: u64, bytes: u64) -> Option<u64> {
        let within = |entry: &serde_json::Value, low: &str, high: &str, value: u64| {
            let end = |key| entry.get(key).map(|end| end.as_u64().unwrap());
            end(low).unwrap_or(0) <= value && value <= end(high).unwrap_or(u64::MAX)
        };
        let entries = document["collectives"][name].as_array().unwrap();
        let entry =
            entries.iter().find(|entry| within(entry, "comm_size_min", "comm_size_max", procs))?;
        let rules = entry["rules"].as_array().unwrap();
        let rule = rules.iter().find(|rule| within(rule, "msg_size_min", "msg_size_max", bytes))?;
        Some(rule["alg"].as_u64().unwrap())
    }

    #[test]
    fn the_readers_search_finds_what_was_chosen_and_nothing_else() {
        let of_four = [
            (8, "native:openmpi:binomial"),
            (1000, "default"),
            (5000, "native:openmpi:pipeline,segment=8KiB"),
        ];
        let of_eight = [(0, "native:openmpi:linear")];
        let bcast = vec![section("4", &of_four, 9999), section("8", &of_eight, 10)];
        let allgather = vec![section("4", &[(0, "native:openmpi:bruck")], 100)];
        let rules = [
            Rules { collective: Collective::Bcast, sections: bcast },
            Rules { collective: Collective::Allgather, sections: allgather },
        ];
        let export = Export { rules: &rules, comments: &[] };
        let text = Json::new(None).unwrap().files(&export).unwrap().remove(0).text;
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (procs, bytes, wanted) in [
            (3, 100, None),
            (4, 7, None),
            (4, 8, Some(6)),
            (7, 999, Some(6)),
            (4, 1000, None),
            (4, 5000, Some(3)),
            (4, 9999, Some(3)),
            (4, 10000, None),
            (8, 0, Some(1)),
            (8, 11, None),
            (9, 0, None),
        ] {
            assert_eq!(taken(&document, "bcast", procs, bytes), wanted, "{procs} {bytes}");
        }
        assert_eq!(taken(&document, "allgather", 4, 0), None, "0 may be MPI_IN_PLACE");
        assert_eq!(taken(&document, "allgather", 4, 400), Some(2));
        assert_eq!(taken(&document, "allgather", 4, 404), None);
        let rule = &document["collectives"]["allgather"][0]["rules"][0];
        assert_eq!(rule["faninout"], 2);
        let keys = ["msg_size_min", "msg_size_max", "alg", "faninout", "seg_size"];
        assert!(rule.as_object().unwrap().keys().all(|key| keys.contains(&key.as_str())));
        assert!(!text.contains("inf"));
        assert!(Json::new(Some("5.0")).is_err());
    }
}
