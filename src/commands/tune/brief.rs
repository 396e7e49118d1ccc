//! What `colibri tune` ends with: five lines by which to decide. The rest is in `summary.txt`.

use std::collections::BTreeMap;

use anyhow::Result;
use records::{
    Collective,
    confirmed::{Advice, sizes},
    counted,
    summary::{Loading, TuningSummary},
};
use site::run_directory::RunDirectory;

use crate::commands::shared::gains;

/// Whether to load what a run has written, what that gains, what is left to the default, how it is loaded, and how
/// long that holds. Where nothing is to be loaded the first line says all.
///
/// # Errors
/// As [`gains::loading_commands`].
pub fn text(summary: &TuningSummary, run: &RunDirectory) -> Result<String> {
    let advised = summary.advised();
    let mut text = format!("Verdict  {}\n", gains::verdict(advised));
    for warning in gains::warnings(summary) {
        text += &format!("         {warning}\n");
    }
    if advised.counts.replaced() == 0 {
        return Ok(text);
    }
    text += &format!("Gain     {}\n", gain(advised, summary));
    text += &format!("Loaded   {}\n", loaded(advised));
    let commands = gains::loading_commands(advised, &summary.platform, run)?.join("; then ");
    text += &format!("To load  {commands}  (without these options it is unloaded)\n");
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
            "; greatest {}: {} of {} on {} processes",
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
    if let (Some(application), Some(with)) = (&summary.application, loading.application_seconds) {
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
    let named = named.collect::<Vec<_>>().join(", ");
    let left = loading.counts.points.saturating_sub(loading.counts.replaced());
    match left {
        0 => format!("{named} points; nothing is left to the library's default."),
        left => format!("{named} points; {left} are left to the library's default."),
    }
}
