//! What applications have taught, from the directory that `COLIBRI_ADAPT` names: read for reports, and written as
//! profiles.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use choosing::learned::{CONFIDENCE, shown_faster, speed_up};
use records::{
    Collective, Layout, Method, RangeMethod, Ranges, SizeRange,
    confirmed::sizes,
    counted,
    document::{self, Document as _},
    learned::{Learned, LearnedClass, store},
    profile::{OtherLayouts, Profile},
    reading,
};

use crate::export_formats::{CarefulExporter, File};

/// What was learned of each MPI library and kind of processor, with its file.
pub type LearnedFiles = Vec<(PathBuf, Learned)>;

/// What a directory holds that applications write to, or a file there is; nothing where a path is neither. What cannot
/// be read is printed and left out.
///
/// # Errors
/// There is nothing in it that can be read.
pub fn read(path: &Path) -> Result<Option<LearnedFiles>> {
    if path.is_file() {
        let text = reading::text_file(path)?;
        return match document::schema(&text).is_some_and(|schema| schema == Learned::SCHEMA) {
            true => Ok(Some(vec![(path.into(), document::parse(&text, path)?)])),
            false => Ok(None),
        };
    }
    if !store::folder(path).is_dir() {
        return Ok(None);
    }
    let found = store::read_all(path)?;
    for (_, error) in &found.unusable {
        say!("warning: left out: {error}");
    }
    if found.learned.is_empty() {
        let directory = path.display();
        bail!(
            "{directory}: no application has taught anything that can be read there; one that runs under \
             libcolibri.so with COLIBRI_ADAPT={directory} writes what it learns into {directory}/learned"
        );
    }
    Ok(Some(found.learned))
}

/// Profiles of what was learned.
pub struct LearnedProfiles {
    pub files: Vec<File>,
    /// Classes of calls with a method that trials show to be faster than the default.
    pub faster: usize,
    /// Classes with a method that is used and not shown to be faster.
    pub not_shown: usize,
    /// Why methods that would be written are not.
    pub left_out: Vec<String>,
}

/// What replaces the default by what was learned: methods that trials show to be faster; with `unconfirmed` all
/// that are used. They hold for communicators of the layouts that were seen, and for no others.
///
/// # Errors
/// A profile is not to be had as JSON.
pub fn profiles(
    learned: &Learned,
    exporter: &CarefulExporter,
    unconfirmed: bool,
) -> Result<LearnedProfiles> {
    let mut found =
        LearnedProfiles { files: Vec::new(), faster: 0, not_shown: 0, left_out: Vec::new() };
    let mut classes: Vec<&LearnedClass> = learned.classes.iter().collect();
    classes.sort_by_key(|class| class.point);
    let mut lines: BTreeMap<(Collective, Layout), Vec<&LearnedClass>> = BTreeMap::new();
    for class in classes.into_iter().filter(|class| class.chosen != Method::Default) {
        let shown = shown_faster(class);
        match shown {
            Some(_) => found.faster += 1,
            None => found.not_shown += 1,
        }
        if shown.is_none() && !unconfirmed {
            continue;
        }
        if let Err(reason) = exporter.allows(class.point, &class.chosen) {
            found.left_out.push(reason);
            continue;
        }
        lines.entry(class.point.line()).or_default().push(class);
    }
    for ((collective, layout), classes) in lines {
        let mut ranges = Vec::new();
        classes.iter().for_each(|class| add(&mut ranges, class));
        let mut profile = Profile::of_layout(collective, layout, Ranges::try_from(ranges)?);
        profile.other_layouts = OtherLayouts::Exact;
        profile.library.clone_from(&learned.library);
        profile.about = vec![about(learned)];
        profile.about.extend(classes.into_iter().map(rests_on));
        let name = format!("{}.json", profile.file_stem());
        found.files.push(File { name, text: document::text(&profile)? });
    }
    Ok(found)
}

/// A class of sizes behind those before it, joined with the last where both have one method: its gain is then the lesser
/// one.
fn add(ranges: &mut Vec<SizeRange<RangeMethod>>, class: &LearnedClass) {
    let gain = class.evidence().and_then(speed_up).map(|speed_up| speed_up.value);
    if let Some(last) = ranges.last_mut()
        && last.next_bytes() == Some(class.point.bytes)
        && last.choice.method == class.chosen
    {
        last.last_bytes = class.last_bytes;
        last.choice.gain = last.choice.gain.zip(gain).map(|(last, gain)| last.min(gain));
        return;
    }
    let choice = RangeMethod { method: class.chosen.clone(), gain };
    ranges.push(SizeRange::new(class.point.bytes, class.last_bytes, choice));
}

/// Where it comes from, in a line.
pub fn about(learned: &Learned) -> String {
    let jobs = counted(usize::try_from(learned.jobs).unwrap_or(usize::MAX), "job");
    format!("Learned while applications ran: {}, {jobs}.", platform(learned))
}

/// The library and the processor.
pub fn platform(learned: &Learned) -> String {
    match learned.processor.as_str() {
        "" => learned.library.clone(),
        processor => format!("{} on {processor}", learned.library),
    }
}

fn rests_on(class: &LearnedClass) -> String {
    let sizes = sizes(class.point.bytes, class.last_bytes);
    let method = &class.chosen;
    let shown = if shown_faster(class).is_some() { "" } else { ", not shown to be faster" };
    match class.evidence().and_then(|tried| Some((tried, speed_up(tried)?))) {
        Some((tried, of)) => format!(
            "{sizes}: {method}, {:.2} times as fast as the default ({} %: {:.2} to {:.2}, {} trials){shown}.",
            of.value,
            CONFIDENCE * 100.0,
            of.low,
            of.high,
            tried.ratios.trials
        ),
        None => format!("{sizes}: {method}{shown}."),
    }
}
