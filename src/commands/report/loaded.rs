//! What a report begins with: where, when, whether to load what was found, how, and what then runs.

use std::{collections::BTreeSet, fs, time::SystemTime};

use anyhow::Result;
use maud::{Markup, html};
use records::{
    Method, Point,
    choices::{Choices, Chosen, Evidence},
    confirmed::{Advice, PairedSpeedUp, sizes},
    platform::Platform,
    summary::{Gain, Loading, TuningSummary},
};
use site::run_directory::RunDirectory;

use super::{
    figure::{beside, figure},
    table,
};
use crate::commands::shared::{gains, output::percent};

/// When the last record of a run was written, UTC; nothing where the file system does not tell.
fn date(run: &RunDirectory) -> Option<String> {
    let entries = fs::read_dir(run.path()).ok()?.filter_map(Result::ok);
    let records = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "csv"));
    let times = records.filter_map(|entry| entry.metadata().ok()?.modified().ok());
    let last = times.filter(|time| *time > SystemTime::UNIX_EPOCH).max()?;
    let text = humantime::format_rfc3339_seconds(last).to_string();
    Some(text.get(..16)?.replace('T', ", ") + " UTC")
}

/// Cluster, date, library, verdict.
pub(super) fn opening(
    platform: &Platform,
    summary: Option<&TuningSummary>,
    run: &RunDirectory,
) -> Markup {
    let others = |advised: &Loading| {
        let others = summary.into_iter().flat_map(TuningSummary::loadings);
        others.filter(|other| other.file != advised.file).map(gains::verdict).collect::<Vec<_>>()
    };
    html! {
        h1 { "Colibri" }
        dl.facts {
            dt { "Cluster" }
            dd { (platform.cluster()) (machine(platform)) }
            @if let Some(date) = date(run) {
                dt { "Measured" }
                dd { (date) }
            }
            dt { "MPI library" }
            dd { (platform.library()) }
            @if let Some(summary) = summary {
                @let advised = summary.advised();
                dt { "Verdict" }
                dd {
                    p.verdict.load[advised.verdict.advice == Advice::Load] { (prose(&gains::verdict(advised))) }
                    @for other in others(advised) { p { (prose(&other)) } }
                }
            }
        }
    }
}

/// Text with commands and options between backquotes.
pub(super) fn prose(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// What its nodes are, as far as it is known.
fn machine(platform: &Platform) -> String {
    let names: BTreeSet<&str> = platform.hosts.iter().map(String::as_str).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "unknown").collect();
    let named = match names[..] {
        [] => String::new(),
        [first, .., last] if names.len() > NAMED => format!(" ({first} to {last})"),
        _ => format!(" ({})", names.join(", ")),
    };
    match platform.processor.as_str() {
        "" => named,
        processor => format!("{named}; {processor}, {}", records::counted(platform.cores, "core")),
    }
}

/// So many hosts are named.
const NAMED: usize = 4;

/// A box to copy from for each way of loading.
pub(super) fn how_to_load(summary: &TuningSummary, run: &RunDirectory) -> Markup {
    let (ways, none): (Vec<&Loading>, Vec<&Loading>) =
        by_advice(summary).into_iter().partition(|loading| loading.counts.replaced() > 0);
    html! {
        h2 { "How to load it" }
        @for loading in &ways {
            h3 { (gains::heading(loading.way, &summary.platform)) }
            p {
                "Mean speed-up " (gains::mean(loading)) " over all points. " (gains::counts(loading))
                @if loading.verdict.advice != Advice::Load { " Do not load it yet: see the verdict." }
            }
            @match gains::loading_commands(loading, &summary.platform, run) {
                Ok(commands) => (copied(&commands)),
                Err(error) => p {
                    "How it is loaded is told by a report made where the MPI library is installed: "
                    (format!("{error:#}")) "."
                },
            }
        }
        @for loading in none {
            p { (gains::heading(loading.way, &summary.platform)) ": nothing to load." }
        }
        @if !ways.is_empty() {
            p { "Started without these options a program runs as before: nothing else is to be undone." }
        }
    }
}

/// The way that is advised comes first.
fn by_advice(summary: &TuningSummary) -> Vec<&Loading> {
    let advised = summary.advised();
    let others = summary.loadings().filter(|other| other.file != advised.file);
    std::iter::once(advised).chain(others).collect()
}

/// Commands alone, as they are to be typed. A line breaks between options.
fn copied(commands: &[String]) -> Markup {
    html! {
        div.copy {
            button type="button" hidden { "Copy" }
            pre {
                code {
                    @for (index, command) in commands.iter().enumerate() {
                        span.command {
                            @for (index, option) in options(command).iter().enumerate() {
                                @if index > 0 { " " }
                                span { (option) }
                            }
                            @if index + 1 < commands.len() { "\n" }
                        }
                    }
                }
            }
        }
    }
}

/// A command in pieces that stay together: an option with its value, a variable, the program.
fn options(command: &str) -> Vec<String> {
    let is_variable = |word: &str| {
        let name = word.split('=').next().unwrap_or_default();
        word.contains('=')
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut pieces: Vec<String> = Vec::new();
    for word in command.split(' ') {
        let follows_variable = pieces.last().is_some_and(|last| is_variable(last));
        let follows_option = pieces.last().is_some_and(|last| last.starts_with('-'));
        let begins = word.starts_with('-')
            || word.starts_with("./")
            || follows_variable
            || is_variable(word) && !follows_option;
        match pieces.last_mut() {
            Some(last) if !begins => *last += &format!(" {word}"),
            _ => pieces.push(word.to_owned()),
        }
    }
    pieces
}

/// What runs with it loaded, by range of sizes, and what that gains.
pub(super) fn what_is_loaded(
    summary: &TuningSummary,
    choices: Option<&Choices>,
    run: &RunDirectory,
) -> Result<Markup> {
    let mut ways = Vec::new();
    for loading in by_advice(summary) {
        let heading = gains::heading(loading.way, &summary.platform);
        let known = [summary.platform.summary(), heading];
        let way = choices.and_then(|choices| choices.confirmed_way(loading.way));
        let mut figures = Vec::new();
        for collective in summary.message_size.keys() {
            let name = gains::figure_name(loading.way, collective.name());
            figures.extend(figure(run, &name, &known)?);
        }
        ways.push((loading, way.map_or(&[][..], |way| &way.choices), figures));
    }
    let is_first = |loading: &Loading| loading.file == summary.advised().file;
    Ok(html! {
        h2 { "What is loaded" }
        @for (loading, chosen, figures) in ways {
            @if is_first(loading) {
                h3 { (gains::heading(loading.way, &summary.platform)) }
                (way(loading, chosen, &figures))
            } @else if loading.counts.replaced() > 0 {
                details {
                    summary { (gains::heading(loading.way, &summary.platform)) ", in its place" }
                    (way(loading, chosen, &figures))
                }
            }
        }
        @if let Some(application) = &summary.application {
            h3 { "The traced application" }
            @for line in gains::expectation(application, summary) { p { (line) } }
        }
        @if let Some(regret) = summary.regret {
            p {
                "Expected penalty for what was not measured: " (percent(regret.mean))
                " on average, " (percent(regret.greatest)) " at most."
            }
        }
        @for method in &summary.withheld { p { (prose(&gains::not_loadable(method))) } }
    })
}

const LOADED: [&str; 6] =
    ["collective", "ranks", "message sizes", "runs", "speed-up, 95 % interval", "why"];

/// One way to load what was chosen.
fn way(loading: &Loading, chosen: &[Chosen], figures: &[Markup]) -> Markup {
    let mut gains: Vec<&Gain> = loading.gains.iter().collect();
    gains.sort_by(|a, b| b.alone.speed_up.total_cmp(&a.alone.speed_up));
    let ranges = match chosen {
        [] => open_table(&gains::RANGE, loading.ranges.iter().map(gains::range)),
        chosen => open_table(&LOADED, rows(chosen)),
    };
    html! {
        @if loading.counts.replaced() > 0 {
            (ranges)
        } @else {
            p { "Nothing: every call is left to the library's default." }
            details { summary { "Why, range by range" } (ranges) }
        }
        @if loading.counts.shadowed > 0 { p { (prose(&gains::elsewhere(loading))) } }
        @if loading.counts.withheld > 0 { p { (prose(&gains::withheld_points(loading))) } }
        (beside(figures))
        @if !gains.is_empty() {
            (table("Every size that was confirmed", &gains::GAIN, gains.iter().map(|gain| gains::row(gain))))
        }
        details {
            summary { "How it was confirmed" }
            p {
                "The mean is geometric. Times are midmeans of jobs with and without it loaded, made \
                 after the choice. Intervals are over pairs of jobs that others did not disturb."
            }
            @if loading.calls_observed > 0 {
                p {
                    (loading.calls_as_selected) " of " (loading.calls_observed)
                    " observed calls ran the selected method."
                }
            }
            @if let Some(harm) = &loading.harm {
                @for line in gains::harm(harm).lines() { p { (line) } }
            }
        }
    }
}

fn open_table(heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Markup {
    html! {
        div.scrolled {
            table.loaded {
                tr { @for name in heading { th scope="col" { (name) } } }
                @for row in rows {
                    tr.default[row.iter().any(|cell| cell == LEFT)] {
                        @for cell in row { td { (cell) } }
                    }
                }
            }
        }
    }
}

/// In the place of a method.
const LEFT: &str = "the library's default";

/// A row for each range of sizes over which the same runs, confirmed together.
fn rows(chosen: &[Chosen]) -> Vec<Vec<String>> {
    let here: Vec<&Chosen> = chosen.iter().filter(|one| !one.by_other_layout).collect();
    let is_same = |one: &&Chosen, next: &&Chosen| {
        let of = |it: &Chosen| (it.point.collective, it.point.layout, it.confirmed);
        of(one) == of(next) && one.method == next.method
    };
    let row = |range: &[&Chosen]| {
        let (first, last) = (range[0], range[range.len() - 1].point.bytes);
        let mut reasons: Vec<String> = Vec::new();
        for reason in range.iter().map(|one| why(one)) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let why = match &reasons[..] {
            [one] => one.clone(),
            [one, others @ ..] => {
                let others = records::counted(others.len(), "other reason");
                format!("{one}; {others} at other sizes: see Explore")
            }
            [] => String::new(),
        };
        let Point { collective, layout, bytes } = first.point;
        let method = match first.method {
            Method::Default => LEFT.to_owned(),
            ref method => method.short(),
        };
        let speed_up = first.confirmed.map(|confirmed| confirmed.to_string());
        vec![
            collective.to_string(),
            layout.to_string(),
            sizes(bytes, last),
            method,
            speed_up.unwrap_or_default(),
            why,
        ]
    };
    here.chunk_by(is_same).map(row).collect()
}

/// Why this runs at a point, for people.
pub(super) fn why(chosen: &Chosen) -> String {
    if let Some(because) = &chosen.default_because {
        return because.clone();
    }
    match (&chosen.method, chosen.rests_on, chosen.confirmed) {
        (Method::Default, ..) => "nothing was faster".into(),
        (_, Evidence::Confirmed, Some(PairedSpeedUp { pairs, .. })) => {
            format!("confirmed by {} of jobs", records::counted(pairs, "pair"))
        }
        (_, Evidence::Confirmed, None) => "confirmed by jobs with it loaded".into(),
        (_, Evidence::BetweenConfirmed, _) => {
            "the same method is confirmed at a smaller and at a larger size".into()
        }
        (_, Evidence::Measured, _) => "measured, not confirmed".into(),
        (_, Evidence::Predicted, _) => "predicted, not measured".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_breaks_between_options() {
        for (command, wanted) in [
            (
                "mpirun -x A=/b -np 4 ./application",
                &["mpirun", "-x A=/b", "-np 4", "./application"][..],
            ),
            (
                "A=/b LD_PRELOAD=/c colibri testbed mpirun ./application",
                &["A=/b", "LD_PRELOAD=/c", "colibri testbed mpirun", "./application"],
            ),
            (
                "srun --export=ALL,A=/b --mpi=pmix -n 8 ./application",
                &["srun", "--export=ALL,A=/b", "--mpi=pmix", "-n 8", "./application"],
            ),
            (
                "OMPI_MCA_coll_rules=1 OMPI_MCA_coll_file=/my-run/a colibri testbed mpirun ./a",
                &[
                    "OMPI_MCA_coll_rules=1",
                    "OMPI_MCA_coll_file=/my-run/a",
                    "colibri testbed mpirun",
                    "./a",
                ],
            ),
            ("mpiexec -genv A /b -n 8 ./a", &["mpiexec", "-genv A /b", "-n 8", "./a"]),
            ("colibri testbed up --nodes 4", &["colibri testbed up", "--nodes 4"]),
        ] {
            assert_eq!(options(command), wanted);
            assert_eq!(options(command).join(" "), command);
        }
    }
}
