//! JSON files of others, by what they hold: each is called by its name where a file of ours is expected.

use serde_json::{Map, Value};

/// More fields are not listed.
const MAX_LISTED: usize = 4;

/// What a JSON text is that states no schema of ours: `is MPICH's tuning file ...`. Nothing where it is no JSON, or one
/// with a schema.
pub fn kind(text: &str) -> Option<String> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let fields = match serde_json::from_str(text).ok()? {
        Value::Object(fields) if fields.contains_key("schema") => return None,
        Value::Object(fields) => fields,
        _ => return Some("is a list in JSON".into()),
    };
    let known = KINDS.iter().find(|(_, is)| is(&fields)).map(|(name, _)| (*name).to_owned());
    Some(known.unwrap_or_else(|| {
        let names: Vec<String> =
            fields.keys().take(MAX_LISTED).map(|name| records::quoted(name)).collect();
        let more = if fields.len() > MAX_LISTED { ", ..." } else { "" };
        match names.is_empty() {
            true => "is JSON without fields".to_owned(),
            false => {
                format!("is JSON of an unknown kind, with the fields {}{more}", names.join(", "))
            }
        }
    }))
}

/// A kind, and how it is recognised.
type JsonKind = (&'static str, fn(&Map<String, Value>) -> bool);

/// The kinds that are known.
const KINDS: [JsonKind; 5] = [
    (
        "is MPICH's tuning file (MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE), which is not read",
        |fields| {
            let begins = ["collective=", "comm_type=", "comm_size", "avg_msg_size", "name="];
            fields.keys().any(|name| begins.iter().any(|begin| name.starts_with(begin)))
        },
    ),
    ("holds Open MPI 6's rules in JSON, which are not read", |fields| {
        fields.contains_key("rule_file_version") && fields.contains_key("collectives")
    }),
    ("is what a command of Slurm prints with --json", |fields| {
        fields.get("meta").is_some_and(|meta| {
            ["slurm", "Slurm", "plugin", "plugins"].iter().any(|name| meta.get(name).is_some())
        })
    }),
    ("is a set of resources of Flux (R)", |fields| {
        fields.get("execution").is_some_and(|execution| execution.get("R_lite").is_some())
    }),
    ("is a job of Flux (jobspec)", |fields| {
        ["resources", "tasks", "attributes"].iter().all(|name| fields.contains_key(*name))
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_are_called_by_their_names() {
        for (text, wanted) in [
            ("{\"collective=bcast\": {\"comm_type=intra\": {}}}", "is MPICH's tuning file"),
            ("{\"comm_type=intra\": {}}", "is MPICH's tuning file"),
            (
                "{\"rule_file_version\": 3, \"module\": \"tuned\", \"collectives\": {}}",
                "Open MPI 6",
            ),
            ("{\"meta\": {\"slurm\": {\"release\": \"23.11\"}}, \"jobs\": []}", "Slurm"),
            ("{\"version\": 1, \"execution\": {\"R_lite\": []}}", "resources of Flux"),
            ("{\"version\": 1, \"resources\": [], \"tasks\": [], \"attributes\": {}}", "jobspec"),
            (
                "\u{feff}{\"a\": 1, \"b\": 2}",
                "is JSON of an unknown kind, with the fields 'a', 'b'",
            ),
            ("{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1}", "'a', 'b', 'c', 'd', ..."),
            ("{}", "is JSON without fields"),
            (" [1, 2]", "is a list in JSON"),
        ] {
            let told = kind(text).unwrap();
            assert!(told.contains(wanted), "{text}: {told}");
        }
        for text in ["{\"schema\": \"colibri/plan/1\"}", "{", "3 2\n", "", "[1] # rules"] {
            assert_eq!(kind(text), None, "{text}");
        }
    }
}
