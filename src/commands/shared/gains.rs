//! Tells what a run gained.

use std::collections::BTreeMap;

use anyhow::Result;
use records::{
    Method, Point,
    choices::{Choices, Chosen},
    confirmed::{Advice, ConfirmedRange, PairedSpeedUp, sizes},
    document,
    platform::Platform,
    quantity::{format_bytes, format_seconds},
    summary::{
        Application, ApplicationRun, ApplicationTurn, Gain, Harm, LoadWay, Loading, NotLoaded,
        RemovedPoint, RootGain, Slower, TuningSummary, WithheldMethod,
    },
};

use super::{on_testbed, output};
use site::run_directory::RunDirectory;
use stages::{
    application::{self, ApplicationGain},
    drawing,
    export_formats::{HowToLoad, preload_variables},
    exporting, loading,
};

/// The ranges with the greatest gains that are shown of each way: with them the summary fits a screen.
const RANGES_SHOWN: usize = 6;

/// What was gained and how it is loaded, for people: what fits a screen. The rest is in
/// `summary.json` and the report.
///
/// # Errors
/// As [`exporting::how_to_load`].
pub fn text(summary: &TuningSummary, run: &RunDirectory) -> Result<String> {
    let mut text: String = summary.loadings().map(|loading| verdict(loading) + "\n").collect();
    let to_load = summary.loadings().filter(|loading| loading.verdict.advice == Advice::Load);
    if to_load.count() > 1 {
        text += &format!("Load one of them: {} gains most.\n", summary.advised().file);
    }
    text += "\n";
    for warning in warnings(summary) {
        text += &format!("{warning}\n");
    }
    text += &format!("Tuned: {}\n", summary.platform.summary());
    for loading in summary.loadings() {
        text += &gains(loading, summary);
    }
    text += &withheld(&summary.withheld);
    if let Some(application) = &summary.application {
        text += &format!("\n{}\n", expectation(application, summary).join("\n"));
    }
    if let Some(regret) = summary.regret {
        let weighted =
            if summary.application.is_some() { " of the time in collectives" } else { "" };
        text += &format!(
            "\nExpected penalty for what was not measured: {:.1} %{weighted} on average, {:.0} % \
             at most.\n",
            regret.mean * 100.0,
            regret.greatest * 100.0
        );
    }
    for loading in summary.loadings() {
        text += &format!("\n{}", how_to_load(loading, &summary.platform, run)?);
    }
    Ok(text)
}

/// What may have spoilt the run.
pub fn warnings(summary: &TuningSummary) -> Vec<String> {
    let disturbance = summary.disturbance.and_then(|disturbance| disturbance.warning());
    let busy = summary.platform.busy().map(|busy| format!("Warning: {busy}"));
    disturbance.into_iter().chain(busy).collect()
}

/// Whether to load what a way loads, and why.
pub fn verdict(loading: &Loading) -> String {
    format!("{}: {}", loading.file, loading.verdict)
}

/// What a way is called.
pub fn heading(way: LoadWay, platform: &Platform) -> String {
    let library = libraries::recognise(&platform.mpi_library).map_or("Open MPI", |it| it.title());
    match way {
        LoadWay::Rules => format!("By a rules file, with {library}'s own algorithms"),
        LoadWay::Preload => "By the preload library, with Colibri's own schedules".into(),
        LoadWay::Both => "By both at once, each with what it is better at".into(),
    }
}

/// How what a run wrote for one way is loaded.
///
/// # Errors
/// As [`exporting::how_to_load`].
pub fn how_to_load(loading: &Loading, platform: &Platform, run: &RunDirectory) -> Result<String> {
    let path = run.file(&loading.file);
    if let Some(by) = nothing_by(loading) {
        let yet = if loading.counts.withheld > 0 { " yet: nothing was confirmed" } else { "" };
        return Ok(format!("{by} there is nothing to load{yet}.\n"));
    }
    let mut text = format!("To load: {}\n", path.display());
    let LoadSettings { variables: set, by_hand } = load_settings(loading, platform, run)?;
    if let (Some(variables), false) = (&set, platform.testbed.is_empty()) {
        // The commands of a real cluster would start the application beside the virtual one.
        for (heading, command) in on_testbed::commands(run, variables)? {
            text += &format!("{heading}:  {command}\n");
        }
        return Ok(text);
    }
    text.extend(by_hand.iter().map(|part| format!("{part}\n")));
    if !platform.testbed.is_empty() {
        text += "(there: colibri testbed mpirun in place of mpirun)\n";
    }
    let here = set.and_then(|variables| loading::command(platform, &variables));
    text += &here.map_or_else(String::new, |line| format!("As this run was started:  {line}\n"));
    Ok(text)
}

/// The commands alone that load it where the run was made, one after the other.
///
/// # Errors
/// As [`exporting::how_to_load`].
pub fn loading_commands(
    loading: &Loading,
    platform: &Platform,
    run: &RunDirectory,
) -> Result<Vec<String>> {
    commands_of(load_settings(loading, platform, run)?, platform, run)
}

fn commands_of(
    settings: LoadSettings,
    platform: &Platform,
    run: &RunDirectory,
) -> Result<Vec<String>> {
    let LoadSettings { variables: set, by_hand } = settings;
    if let (Some(set), false) = (&set, platform.testbed.is_empty()) {
        let commands = on_testbed::commands(run, set)?;
        return Ok(commands.into_iter().map(|(_, command)| command).collect());
    }
    if let Some(here) = set.and_then(|set| loading::command(platform, &set)) {
        return Ok(vec![here]);
    }
    let first = |part: HowToLoad| {
        let (_, command) = part.commands.into_iter().next()?;
        Some(match command.strip_suffix(" ...") {
            Some(command) => format!("{command} {}", loading::APPLICATION),
            None => command,
        })
    };
    Ok(by_hand.into_iter().filter_map(first).collect())
}

/// The commands that start an application without what a run wrote.
///
/// # Errors
/// As [`loading_commands`].
pub fn unloading_commands(platform: &Platform, run: &RunDirectory) -> Result<Vec<String>> {
    let nothing = LoadSettings { variables: Some(Vec::new()), by_hand: Vec::new() };
    commands_of(nothing, platform, run)
}

/// What loads something.
struct LoadSettings {
    /// Environment variables with their values, where these are the same for every job.
    variables: Option<Vec<(String, String)>>,
    /// What else does, of each part.
    by_hand: Vec<HowToLoad>,
}

/// What loads a way.
fn load_settings(
    loading: &Loading,
    platform: &Platform,
    run: &RunDirectory,
) -> Result<LoadSettings> {
    let path = run.file(&loading.file);
    let (mut all, mut by_hand) = (Some(Vec::new()), Vec::new());
    for (target, file) in loading::parts_at(loading.way, &path, platform) {
        let file = file.display().to_string();
        by_hand.push(exporting::how_to_load(&target, &file)?);
        let variables = match target.way() {
            LoadWay::Preload => Some(preload_variables(&file)),
            LoadWay::Rules | LoadWay::Both => exporting::environment(&target, &file)?,
        };
        all = all.zip(variables).map(|(all, more)| [all, more].concat());
    }
    Ok(LoadSettings { variables: all, by_hand })
}

/// The way that loads nothing, where nothing was confirmed for it.
fn nothing_by(loading: &Loading) -> Option<&'static str> {
    (loading.counts.replaced() == 0).then_some(match loading.way {
        LoadWay::Rules => "By a rules file",
        LoadWay::Preload => "For the preload library",
        LoadWay::Both => "By both at once",
    })
}

fn gains(loading: &Loading, summary: &TuningSummary) -> String {
    let mut text = format!("\n{}\n", heading(loading.way, &summary.platform));
    text += &format!("{}\n", counts(loading));
    if !loading.gains.is_empty() {
        text += &format!("Mean speed-up {} over all points. Greatest:\n", mean(loading));
        let ranges = greatest(loading);
        text += &output::aligned(&RANGE, ranges.into_iter().take(RANGES_SHOWN).map(range));
        text += &match loading.calls_observed {
            0 => "With this MPI library it cannot be observed whether the selected methods ran.\n"
                .into(),
            observed => format!(
                "With it loaded, {} of {observed} observed calls ran the selected method.\n",
                loading.calls_as_selected
            ),
        };
    }
    if !loading.roots.is_empty() {
        let of_root = |of: &RootGain| format!("{:.2} (root {})", of.speed_up, of.root);
        let all: Vec<String> = loading.roots.iter().map(of_root).collect();
        text += &format!("Mean speed-up over the replaced points: {}.\n", all.join(", "));
    }
    if loading.counts.withheld > 0 {
        text += &withheld_points(loading);
    }
    if loading.counts.shadowed > 0 {
        text += &elsewhere(loading);
    }
    if let Some(found) = &loading.harm {
        text += &harm(found);
    }
    text += &not_confirmed(&loading.rejected);
    text + &not_loaded(&loading.unexpressed)
}

/// At how many points what is written replaces the default.
pub fn counts(loading: &Loading) -> String {
    match loading.gains.is_empty() && loading.counts.replaced() == 0 {
        true => "No method was confirmed to be faster than the default; every call is left to it."
            .into(),
        false => format!("{}.", loading.counts),
    }
}

/// `1.28 (95 % interval 1.20 to 1.37)`
pub fn mean(loading: &Loading) -> String {
    let interval = loading
        .mean_interval
        .map_or_else(String::new, |[low, high]| format!(" (95 % interval {low:.2} to {high:.2})"));
    format!("{:.2}{interval}", loading.mean_speed_up)
}

/// The ranges that were confirmed, the greatest gain first.
pub fn greatest(loading: &Loading) -> Vec<&ConfirmedRange> {
    let mut ranges: Vec<&ConfirmedRange> = loading.ranges.iter().collect();
    ranges.sort_by(|a, b| b.confirmed.speed_up.total_cmp(&a.confirmed.speed_up));
    ranges
}

/// The columns of [`range`].
pub const RANGE: [&str; 7] =
    ["collective", "procs", "sizes", "tuned method", "speed-up", "95 % interval", "pairs of jobs"];

/// A range that was confirmed as a row of a table.
pub fn range(range: &ConfirmedRange) -> Vec<String> {
    let [speed_up, interval, pairs] = speed_up(range.confirmed);
    vec![
        range.collective.to_string(),
        range.layout.to_string(),
        sizes(range.first_bytes, range.last_bytes),
        range.method.short(),
        speed_up,
        interval,
        pairs,
    ]
}

/// The last columns of [`range`] and [`row`].
fn speed_up(
    PairedSpeedUp { pairs, speed_up, interval: [low, high] }: PairedSpeedUp,
) -> [String; 3] {
    [format!("{speed_up:.2}"), format!("{low:.2} to {high:.2}"), pairs.to_string()]
}

/// Where something seemed faster and is not loaded, in words.
pub fn withheld_points(loading: &Loading) -> String {
    format!(
        "At {} of those left to the default a method seemed faster when it was measured or predicted, and \
         was not confirmed; `colibri export --unconfirmed` writes it, too.\n",
        loading.counts.withheld
    )
}

/// Where it runs what was chosen for another layout, in words.
pub fn elsewhere(loading: &Loading) -> String {
    format!(
        "At {} the file applies what was chosen for another layout of as many ranks, as it cannot tell \
         layouts apart. They are not in the mean: they were timed with it to leave out what is slower there. \
         `colibri export --layouts` takes another layout.\n",
        records::counted(loading.counts.shadowed, "point")
    )
}

/// What the confirming jobs did not show to be faster, the worst in words.
fn not_confirmed(all: &[RemovedPoint]) -> String {
    let Some(worst) = all.iter().min_by(|a, b| a.speed_up.total_cmp(&b.speed_up)) else {
        return String::new();
    };
    let RemovedPoint { point, method, speed_up } = worst;
    format!(
        "Not faster when loaded, so left to the default: {}. The lowest estimate of a speed-up there is \
         {speed_up:.2} ({} for {point}).\n",
        records::counted(all.len() as u32, "point"),
        method.short()
    )
}

/// Beyond, the slowdown that would have been detected tells nobody anything.
const MAX_DETECTABLE: f64 = 0.5;

/// What was found of harm, for people.
pub fn harm(harm: &Harm) -> String {
    let Harm { points, jobs, tolerance, level, greatest_slowdown, detectable, slower, too_few } =
        harm;
    let tests = match jobs {
        1 => "one pair of jobs".to_owned(),
        jobs => format!("paired tests over {jobs} pairs of jobs"),
    };
    let mut text = format!(
        "Compared with the default in the last jobs at {}: {} significantly more than \
         {:.0} % slower ({tests}, significance level {:.0} % for all points together)",
        records::counted(*points, "point"),
        slower.len(),
        tolerance * 100.0,
        level * 100.0,
    );
    // A median that is not significant is noise, and no news.
    text += &match greatest_slowdown {
        Some(greatest) if slower.iter().any(|one| one.slowdown >= *greatest) => format!(
            "; the worst median is {:.1} % slower. Points at which it was slower are left to the default.\n",
            greatest * 100.0
        ),
        Some(greatest) if *greatest <= 0.0 => "; no median is slower.\n".into(),
        _ => ".\n".into(),
    };
    match detectable {
        Some(detectable) if *detectable <= MAX_DETECTABLE => {
            text += &format!(
                "With the differences seen between jobs, these tests detect a slowdown of {:.0} % at half of the \
                 points (power 80 %).\n",
                detectable * 100.0
            );
        }
        Some(_) => {
            text += "The jobs differ too much for these tests to detect a slowdown reliably.\n"
        }
        None if *jobs > 1 => {
            text += &format!("{jobs} pairs of jobs are too few to detect a slowdown reliably.\n");
        }
        None => {}
    }
    if *too_few > 0 {
        text +=
            &format!("At {too_few} of them there are too few jobs for a significant difference.\n");
    }
    for one in slower {
        let Slower { point, method, slowdown, p_value, .. } = one;
        text += &format!(
            "  {point}: {} is {:.0} % slower ({} against {}, p {p_value:.1e})\n",
            method.short(),
            slowdown * 100.0,
            format_seconds(one.loaded_seconds),
            format_seconds(one.default_seconds),
        );
    }
    text
}

/// The columns of [`row`].
pub const GAIN: [&str; 9] = [
    "collective",
    "procs",
    "size",
    "tuned method",
    "default",
    "tuned",
    "speed-up",
    "95 % interval of this size",
    "pairs of jobs",
];

/// A gain as a row of a table.
pub fn row(gain: &Gain) -> Vec<String> {
    let [speed_up, interval, pairs] = speed_up(gain.alone);
    vec![
        gain.point.collective.to_string(),
        gain.point.layout.to_string(),
        format_bytes(gain.point.bytes),
        gain.method.short(),
        format_seconds(gain.default_seconds),
        format_seconds(gain.tuned_seconds),
        speed_up,
        interval,
        pairs,
    ]
}

/// One line for each reason.
fn not_loaded(unexpressed: &[NotLoaded]) -> String {
    let mut reasons: BTreeMap<&str, u32> = BTreeMap::new();
    for one in unexpressed {
        *reasons.entry(&one.reason).or_default() += 1;
    }
    let line = |(reason, points): (&str, u32)| {
        format!(
            "Left to the default at {}, since the choice cannot be loaded this way: {reason}.\n",
            records::counted(points, "point")
        )
    };
    reasons.into_iter().map(line).collect()
}

/// What was measured to be faster and cannot be loaded, the greatest gain in words.
fn withheld(all: &[WithheldMethod]) -> String {
    let [greatest, others @ ..] = all else { return String::new() };
    let others = match others.len() {
        0 => String::new(),
        more => format!("\n{more} more such; all are in summary.json."),
    };
    format!("\n{}{others}\n", not_loadable(greatest))
}

/// A method that was measured to be faster and cannot be loaded, in words.
pub fn not_loadable(WithheldMethod { points, speed_up, reason }: &WithheldMethod) -> String {
    format!(
        "Not loaded by the library's own file, though measured up to {speed_up:.1} times as fast as the default \
         ({}): {reason}.",
        records::counted(*points, "point")
    )
}

/// What the traced application can expect, in lines.
pub fn expectation(application: &Application, summary: &TuningSummary) -> Vec<String> {
    let Application { trace, seconds, collective_seconds, tunable_seconds, turns } = application;
    let mut lines = vec![format!(
        "Expected for the application of {trace}, which ran for {}: a rank spends {} in \
         collectives, {} of it in calls that could be replaced.",
        format_seconds(*seconds),
        format_seconds(*collective_seconds),
        format_seconds(*tunable_seconds)
    )];
    for loading in summary.loadings() {
        let Some(with) = loading.application_seconds else { continue };
        lines.push(format!(
            "{}: it would run for {}, {:.2} times as fast.",
            heading(loading.way, &summary.platform),
            format_seconds(with),
            seconds / with
        ));
    }
    lines.push(
        "(This assumes that each call gains what was measured; it gains less where ranks do not \
         wait for each other, or wait for late ones.)"
            .into(),
    );
    if let Some(gain) = ApplicationGain::of(turns) {
        lines.push(format!(
            "Run in turns without and with {}: {}. {}",
            summary.advised().file,
            application_gain(&gain, turns),
            application_times(turns)
        ));
    }
    lines
}

/// Whether an application runs faster with what is loaded, in words.
pub fn application_gain(gain: &ApplicationGain, turns: &[ApplicationTurn]) -> String {
    let ApplicationGain { speed_up, interval: [low, high] } = gain;
    let how = match gain.is_faster() {
        Some(true) => format!("it runs {speed_up:.2} times as fast"),
        Some(false) => format!("it runs slower, {speed_up:.2} times as fast"),
        None => format!("no difference can be seen, {speed_up:.2} times as fast"),
    };
    match turns.len() {
        ..=2 => {
            format!("{how} ({low:.2} to {high:.2} in {})", records::counted(turns.len(), "turn"))
        }
        turns => format!("{how} (95 % interval {low:.2} to {high:.2} over {turns} turns)"),
    }
}

/// How long an application ran in its turns, as a whole and in collectives, in words.
pub fn application_times(turns: &[ApplicationTurn]) -> String {
    let times = |of| {
        let side = |[median, least, greatest]: [f64; 3]| {
            let [median, least, greatest] = [median, least, greatest].map(format_seconds);
            format!("{median} ({least} to {greatest})")
        };
        let [without, with] = application::spread(turns, of).map(side);
        format!("{without} without, {with} with")
    };
    let calls = |of: fn(&ApplicationRun) -> u64| turns.iter().map(|turn| of(&turn.with)).sum();
    let (all, replaced): (u64, u64) = (calls(|run| run.calls), calls(|run| run.replaced_calls));
    let carried = match replaced {
        0 => String::new(),
        replaced => format!("; profiles carried out {replaced} of {all} calls"),
    };
    format!(
        "Median (least to greatest): {}; in collectives {}{carried}.",
        times(|run| run.seconds),
        times(|run| run.collective_seconds)
    )
}

/// Draws what was gained, per collective and way, from the jobs that confirmed it.
///
/// # Errors
/// A figure cannot be drawn or written.
pub fn draw_gains(run: &RunDirectory, summary: &TuningSummary) -> Result<()> {
    let choices: Choices = document::read(&run.choices())?;
    let mut drawn = Vec::new();
    for loading in summary.loadings().filter(|loading| !loading.gains.is_empty()) {
        let way = choices.confirmed_way(loading.way);
        let points = gain_points(loading, way.map_or(&[], |way| &way.choices));
        for collective in summary.message_size.keys().copied() {
            let mut gains: Vec<figures::GainPanel> = Vec::new();
            for (point, gain) in points.iter().filter(|(point, _)| point.collective == collective) {
                match gains.last_mut().filter(|panel| panel.layout == point.layout) {
                    Some(panel) => panel.points.push(*gain),
                    None => {
                        let layout = point.layout;
                        gains.push(figures::GainPanel { layout, points: vec![*gain] });
                    }
                }
            }
            if gains.iter().flat_map(|panel| &panel.points).all(|it| it.tuned_seconds.is_none()) {
                continue;
            }
            let lines = [summary.platform.summary(), heading(loading.way, &summary.platform)];
            let name = figure_name(loading.way, collective.name());
            drawn.push((name, figures::gain(collective, &lines, &gains)?));
        }
    }
    drawing::save(run, &drawn).map(drop)
}

/// What each point gains, those left to the default included.
fn gain_points(loading: &Loading, loaded: &[Chosen]) -> BTreeMap<Point, figures::GainPoint> {
    let of_choice = |chosen: &Chosen| {
        let is_replaced = chosen.method != Method::Default;
        let point = figures::GainPoint {
            bytes: chosen.point.bytes,
            default_seconds: chosen.without_seconds(),
            tuned_seconds: is_replaced.then_some(chosen.seconds),
            interval: None,
        };
        (chosen.point, point)
    };
    let here = loaded.iter().filter(|chosen| !chosen.by_other_layout);
    let mut points: BTreeMap<Point, figures::GainPoint> = here.map(of_choice).collect();
    points.extend(loading.gains.iter().map(|gain| {
        let point = figures::GainPoint {
            bytes: gain.point.bytes,
            default_seconds: gain.default_seconds,
            tuned_seconds: Some(gain.tuned_seconds),
            interval: Some(gain.alone.interval),
        };
        (gain.point, point)
    }));
    points
}

/// The name of a figure of gains.
pub fn figure_name(way: LoadWay, collective: &str) -> String {
    match way {
        LoadWay::Rules => format!("gain-{collective}"),
        LoadWay::Preload => format!("gain-preload-{collective}"),
        LoadWay::Both => format!("gain-both-{collective}"),
    }
}

#[cfg(test)]
mod tests {
    use records::confirmed::LoadedCounts;

    use super::*;

    #[test]
    fn where_nothing_was_confirmed_no_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("summary.json"), "").unwrap();
        let run = RunDirectory::read(folder.path()).unwrap();
        for (way, by) in
            [(LoadWay::Rules, "By a rules file"), (LoadWay::Preload, "For the preload library")]
        {
            let loading = Loading { way, ..Loading::default() };
            let told = how_to_load(&loading, &Platform::default(), &run).unwrap();
            assert_eq!(told, format!("{by} there is nothing to load.\n"));
            let counts = LoadedCounts { withheld: 1, ..LoadedCounts::default() };
            let told =
                how_to_load(&Loading { counts, ..loading }, &Platform::default(), &run).unwrap();
            assert_eq!(
                told,
                format!("{by} there is nothing to load yet: nothing was confirmed.\n")
            );
        }
    }
}
