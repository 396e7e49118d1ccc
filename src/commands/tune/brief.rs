//! What `colibri tune` ends with: five lines by which to decide. The rest is in `summary.txt`.

use std::{collections::BTreeMap, ffi::OsString};

use anyhow::Result;
use records::{
    Collective,
    confirmed::{Advice, sizes},
    counted,
    quantity::format_seconds,
    summary::{Loading, TuningSummary},
};
use site::run_directory::RunDirectory;
use stages::{application::ApplicationGain, loading::APPLICATION};

use super::application::typed;
use crate::commands::shared::gains;

/// Whether to load what a run has written, what that gains, what is left to the default, how it is loaded, and how
/// long that holds. Where nothing is to be loaded the first line says all. Of an `application` that the run has
/// started: its own times, and its own command lines.
///
/// # Errors
/// As [`gains::loading_commands`].
pub fn text(
    summary: &TuningSummary,
    run: &RunDirectory,
    application: &[OsString],
) -> Result<String> {
    let advised = summary.advised();
    let turns = summary.application.as_ref().map_or(&[][..], |application| &application.turns);
    let of_application = ApplicationGain::of(turns);
    let mut text = match of_application.and_then(|gain| gain.is_faster()) {
        Some(false) => format!(
            "Verdict  {}: Do not load it: the application runs slower with it, though calls are faster.\n",
            advised.file
        ),
        _ => format!("Verdict  {}\n", gains::verdict(advised)),
    };
    for warning in gains::warnings(summary) {
        text += &format!("         {warning}\n");
    }
    if advised.counts.replaced() == 0 {
        if let (Some(traced), false) = (&summary.application, application.is_empty()) {
            text += &format!(
                "         The application ran for {}, {} of that in collectives; it was not run again.\n",
                format_seconds(traced.seconds),
                format_seconds(traced.collective_seconds)
            );
        }
        return Ok(text);
    }
    if let Some(of_application) = of_application {
        let gain = gains::application_gain(&of_application, turns);
        text += &format!("Gain     The application: {gain}.\n");
        text += &format!("         {}\n", gains::application_times(turns));
        text += &format!("         Calls: {}\n", self::gain(advised, summary));
    } else {
        text += &format!("Gain     {}\n", gain(advised, summary));
    }
    text += &format!("Loaded   {}\n", loaded(advised));
    let with = |commands: Vec<String>| match application {
        [] => commands.join("; then "),
        words => commands.join("; then ").replace(APPLICATION, &typed(words)),
    };
    let commands = with(gains::loading_commands(advised, &summary.platform, run)?);
    let unloaded = match application {
        [] => String::new(),
        _ => with(gains::unloading_commands(&summary.platform, run)?),
    };
    text += &match &unloaded[..] {
        "" => format!("To load  {commands}  (without these options it is unloaded)\n"),
        unloaded => format!("To load  {commands}\nUnload   {unloaded}\n"),
    };
    text += &format!(
        "Holds    on {}. After an upgrade of the MPI library, the kernel or the network: colibri check {}\n",
        summary.platform.summary(),
        run.path().display()
    );
    Ok(text)
}

/// Over what was tried, with the greatest, and with what the other ways of loading gain.
fn gain(loading: &Loading, summary: &TuningSummary) -> String {
    let points = counted(loading.counts.points, "point");
    let mut text = format!("{} in the mean over all {points}", gains::mean(loading));
    if let [greatest, ..] = gains::greatest(loading)[..] {
        text += &format!(
            "; greatest {}: {} of {} on {} ranks",
            greatest.confirmed,
            greatest.collective,
            sizes(greatest.first_bytes, greatest.last_bytes),
            greatest.layout
        );
    }
    let others = summary.loadings().filter(|other| other.file != loading.file);
    for other in others.filter(|other| other.verdict.advice == Advice::Load) {
        text += &format!("; by {} {:.2}", other.file, other.mean_speed_up);
    }
    if let (Some(application), Some(with)) = (&summary.application, loading.application_seconds)
        && application.turns.is_empty()
    {
        text += &format!("; the traced application: {:.2}", application.seconds / with);
    }
    text + "."
}

/// How many points of which collectives, and how many are left.
fn loaded(loading: &Loading) -> String {
    let mut collectives: BTreeMap<Collective, u32> = BTreeMap::new();
    for gain in &loading.gains {
        *collectives.entry(gain.point.collective).or_default() += 1;
    }
    let named = collectives.iter().map(|(collective, points)| format!("{collective} at {points}"));
    // Which they are, the files say.
    let unconfirmed = loading.counts.unconfirmed;
    let unconfirmed = (unconfirmed > 0).then(|| format!("{unconfirmed} not confirmed"));
    let named = named.chain(unconfirmed).collect::<Vec<_>>().join(", ");
    let left = loading.counts.left();
    let points = if loading.counts.replaced() == 1 { "point" } else { "points" };
    match left {
        0 => format!("{named} {points}; nothing is left to the library's default."),
        1 => format!("{named} {points}; 1 is left to the library's default."),
        left => format!("{named} {points}; {left} are left to the library's default."),
    }
}

#[cfg(test)]
mod tests {
    use records::{
        confirmed::{LoadVerdict, LoadedCounts},
        platform::Platform,
        summary::{Application, ApplicationRun, ApplicationTurn, LoadWay},
    };

    use super::*;

    /// Of an application that ran so long without and with what is loaded.
    fn told(turns: &[[f64; 2]], replaced: u32) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("summary.json"), "").unwrap();
        let run = RunDirectory::read(folder.path()).unwrap();
        let ran = |seconds| ApplicationRun {
            seconds,
            collective_seconds: seconds / 4.0,
            calls: 10,
            replaced_calls: 8,
        };
        let turns = turns
            .iter()
            .map(|&[without, with]| ApplicationTurn { without: ran(without), with: ran(with) });
        let loading = Loading {
            way: LoadWay::Preload,
            file: "profiles".into(),
            verdict: LoadVerdict { advice: Advice::Load, reason: "It is faster.".into() },
            counts: LoadedCounts { points: 3, confirmed: replaced, ..LoadedCounts::default() },
            mean_speed_up: 1.5,
            ..Loading::default()
        };
        let platform = Platform {
            hosts: vec!["n".into(); 4],
            launcher: "srun -n {np}".into(),
            mpi_library: "Open MPI v4.1.4".into(),
            ..Platform::default()
        };
        let summary = TuningSummary {
            platform,
            message_size: BTreeMap::new(),
            points: 3,
            loading,
            preload: None,
            both: None,
            application: Some(Application {
                trace: "usage.json".into(),
                seconds: 9.0,
                collective_seconds: 3.0,
                tunable_seconds: 2.0,
                turns: turns.collect(),
            }),
            regret: None,
            disturbance: None,
            withheld: Vec::new(),
            warnings: Vec::new(),
        };
        text(&summary, &run, &["./my app".into(), "-n".into()]).unwrap()
    }

    #[test]
    fn an_applications_own_times_decide() {
        let faster = told(&[[8.0, 4.0], [9.0, 4.5], [8.0, 4.1]], 2);
        assert!(faster.starts_with("Verdict  profiles: Load it."), "{faster}");
        assert!(faster.contains("Gain     The application: it runs 1.98 times as fast (95 %"));
        assert!(
            faster.contains("8.00 s (8.00 s to 9.00 s) without, 4.10 s (4.00 s to 4.50 s) with"),
            "{faster}"
        );
        assert!(faster.contains("in collectives 2.00 s (2.00 s to 2.25 s) without"), "{faster}");
        assert!(faster.contains("profiles carried out 24 of 30 calls"), "{faster}");
        assert!(faster.contains(" -n 4 './my app' -n\nUnload   srun -n 4 './my app' -n\n"));
        let slower = told(&[[8.0, 9.0], [8.0, 9.5]], 2);
        assert!(slower.starts_with("Verdict  profiles: Do not load it: the application"));
        assert!(slower.contains("it runs slower, 0.87 times as fast (0.84 to 0.89 in 2 turns)"));
        let neither = told(&[[8.0, 7.0], [7.0, 8.0]], 2);
        assert!(neither.contains("no difference can be seen"), "{neither}");
        let loaded = |counts| loaded(&Loading { counts, ..Loading::default() });
        let counts = LoadedCounts { points: 3, unconfirmed: 2, ..LoadedCounts::default() };
        assert_eq!(loaded(counts), "2 not confirmed points; 1 is left to the library's default.");
        let nothing = told(&[], 0);
        assert!(nothing.contains("The application ran for 9.00 s, 3.00 s of that in collectives"));
        assert_eq!(nothing.lines().count(), 2, "{nothing}");
    }
}
