//! The file of rules of component coll/han, as Open MPI 5.0 reads it: which component takes a call.
//!
//! Where coll/han stands before coll/tuned, tuned's own rules are read only for calls that this file hands
//! on to it. All others stay with coll/han, as without a file. Its reader takes words between blanks and skips
//! `#` comments; the last communicator size and the last message size that are not above a call's
//! decide (`coll_han_dynamic_file.c`). It drops a file whole that does not begin with size 1, and with message
//! size 0.

use records::{Collective, Method};

use super::{forcing::as_variable, han, tuned::one_for_all_sizes};
use crate::{
    error::Result,
    exporter::Export,
    rules::Rules,
    spans::{ProcsSpan, spans},
};

/// What follows the name of the file of tuned's rules.
pub const ENDING: &str = ".han";

/// The parameter that names the file.
pub const RULES_FILE: &str = "coll_han_dynamic_rules_filename";

/// The environment variables by which it is read.
pub fn environment(file: &str) -> [(String, String); 2] {
    [
        (as_variable("coll_han_use_dynamic_file_rules"), "1".to_owned()),
        (as_variable(RULES_FILE), format!("{file}{ENDING}")),
    ]
}

/// The text of the file, which names no collective where coll/han has none of those exported.
///
/// # Errors
/// As [`spans`].
pub fn text(export: &Export<'_>, target: &str) -> Result<String> {
    let concerned = export.rules.iter().filter(|rules| han::has(rules.collective));
    let concerned: Vec<&Rules> = concerned.collect();
    let mut text = format!("# coll/han rules of {target}, written by colibri\n");
    for line in export.comments {
        text += &format!("# {line}\n");
    }
    text += &format!("{} # collectives\n", concerned.len());
    for rules in concerned {
        let collective = rules.collective;
        let spans = spans(rules, one_for_all_sizes(collective).is_some())?;
        let sizes = spans.len() + 2;
        text += &format!("{collective} 1 # levels\nglobal_communicator {sizes} # sizes\n");
        // A communicator of one process, the least that can be named, has no levels.
        text += "1 1 # smaller than measured\n0 han\n";
        for span in &spans {
            text += &section(collective, span);
        }
        let after = spans.last().map_or(2, |span| span.last + 1);
        text += &format!("{after} 1 # larger than measured\n0 han\n");
    }
    Ok(text)
}

fn section(collective: Collective, span: &ProcsSpan) -> String {
    let named = span
        .ranges
        .iter()
        .map(|range| (range.first_bytes, component(collective, &range.choice.method)));
    let mut lines: Vec<(u64, String)> = named.collect();
    lines.dedup_by(|next, kept| next.1 == kept.1);
    let lines_of = |(from, component): &(u64, String)| format!("{from} {component}\n");
    let written: String = lines.iter().map(lines_of).collect();
    format!("{} {} # processes, bands: bytes component\n{written}", span.first, lines.len())
}

/// Who takes the call; an algorithm stands behind a blank.
fn component(collective: Collective, method: &Method) -> String {
    let Method::Native(native) = method else { return "han".into() };
    match han::find(collective, native.algorithm) {
        Some(algorithm) => format!("han @{}", algorithm.name),
        None => "tuned".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::section;

    fn rules(collective: Collective, methods: &[(u64, &str)]) -> Rules {
        Rules { collective, sections: vec![section("4x2", methods, 65536)] }
    }

    /// What the library's reader sees: words, without comments.
    fn words(text: &str) -> String {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_what_tuned_is_better_at_is_handed_on() {
        let all = [
            rules(
                Collective::Bcast,
                &[
                    (64, "native:openmpi:linear"),
                    (1024, "native:openmpi:pipeline,segment=1KiB"),
                    (4096, "default"),
                    (8192, "native:openmpi:han-simple"),
                    (32768, "native:openmpi:han"),
                ],
            ),
            rules(Collective::Alltoall, &[(64, "native:openmpi:pairwise")]),
        ];
        let export = Export { rules: &all, comments: &[] };
        let told = words(&text(&export, "Open MPI 5.0").unwrap());
        let wanted = "1 bcast 1 global_communicator 3 1 1 0 han 8 6 0 han 64 tuned 4096 han \
                      8192 han @simple 32768 han @intra 65537 han 9 1 0 han";
        assert_eq!(told, wanted);
        let alltoall = Export { rules: &all[1..], comments: &[] };
        assert_eq!(words(&text(&alltoall, "Open MPI 5.0").unwrap()), "0", "as it was");
    }
}
