//! The violations of guidelines, for people: a table and figures.

use std::collections::BTreeMap;

use anyhow::Result;
use figures::{FigureError, RelativeMethod, RelativePanel, RelativePoint};
use records::{
    Collective, Layout, Method,
    violations::{Class, Violation, Violations},
};
use statistics::quantile;
use verification::guidelines::JobMedians;

use crate::commands::shared::{output, violations};
use site::run_directory::RunDirectory;
use stages::drawing;

/// All of them, with how they were judged.
pub fn summary(found: &Violations) -> String {
    let verdict = &found.verdict;
    let jobs = records::counted(verdict.jobs, "job");
    let mut text = format!(
        "Performance guidelines: {}\n\nCompared: {}, {}, {} test, one-sided; false discovery \
         rate {} over {} comparisons; gains of {} and more. The smallest p-value possible with {} \
         is {:.2e}.\n\n",
        found.platform.summary(),
        verdict.unit,
        jobs,
        verdict.test,
        output::whole_percent(verdict.level),
        verdict.comparisons,
        output::whole_percent(verdict.least_gain),
        jobs,
        verdict.least_p_value,
    );
    let counts = |class: Class| {
        let of_class = found.counts.iter().filter(move |count| count.class == class);
        of_class.map(violations::counted)
    };
    let rows = Class::ALL.into_iter().flat_map(counts);
    text += &output::aligned(&violations::COUNTED, rows);
    if !found.violations.is_empty() {
        text.push('\n');
        let heading = [&violations::COMPARED[..], &["gain", "p", "k calls"]].concat();
        text += &output::aligned(&heading, found.violations.iter().map(row));
        text += "* the gain is smaller than a barrier's time; k calls: measured gain of a split into k calls\n";
    }
    for warning in &found.warnings {
        text += &format!("note: {warning}\n");
    }
    text
}

fn row(violation: &Violation) -> Vec<String> {
    let small = violation.gains_less_than_a_barrier == Some(true);
    let mut row = violations::compared(violation).to_vec();
    row.extend([
        format!("{}{}", output::whole_percent(violation.gain), if small { " *" } else { "" }),
        violation.corrected_p_value.map_or_else(|| "-".into(), |p| format!("{p:.1e}")),
        violation.calls_gain.map_or_else(|| "-".into(), output::whole_percent),
    ]);
    row
}

/// Draws the times of all methods relative to the default's, one figure per collective, with the
/// sizes marked at which a pattern is violated.
///
/// # Errors
/// A figure cannot be written.
pub fn draw(run: &RunDirectory, jobs: &JobMedians, found: &Violations) -> Result<()> {
    let mut collectives: Vec<Collective> = jobs.points().map(|point| point.collective).collect();
    collectives.dedup();
    let mut drawn = Vec::new();
    for collective in collectives.into_iter().filter(|of| *of != Collective::Barrier) {
        let of_collective = jobs.points().filter(|point| point.collective == collective);
        let mut layouts: Vec<Layout> = of_collective.map(|point| point.layout).collect();
        layouts.dedup();
        let relatives: Vec<RelativePanel> =
            layouts.into_iter().map(|layout| relative(jobs, found, collective, layout)).collect();
        if relatives.iter().all(|relative| relative.methods.len() < 2) {
            continue;
        }
        let lines = [
            found.platform.summary(),
            format!(
                "medians of {}: their median, least and greatest; * a mock-up is significantly faster",
                records::counted(found.verdict.jobs, "job")
            ),
        ];
        match figures::relative(collective, &lines, &relatives) {
            Ok(figure) => drawn.push((format!("relative-{collective}"), figure)),
            // All is judged; many methods only cannot be distinguished in one figure.
            Err(error @ FigureError::TooMuch { .. }) => {
                say!("note: no figure of {collective}'s relative times: {error}");
            }
            Err(error) => return Err(error.into()),
        }
    }
    drawing::save(run, &drawn).map(drop)
}

fn relative(
    jobs: &JobMedians,
    found: &Violations,
    collective: Collective,
    layout: Layout,
) -> RelativePanel {
    let mut methods: BTreeMap<&Method, Vec<RelativePoint>> = BTreeMap::new();
    for point in jobs.points().filter(|at| (at.collective, at.layout) == (collective, layout)) {
        let Some(default) = jobs.median(point, &Method::Default) else { continue };
        for (method, seconds) in jobs.at(point) {
            let at = |share| quantile(seconds, share).map(|seconds| seconds / default);
            if let (Some(least), Some(median), Some(greatest)) = (at(0.0), at(0.5), at(1.0)) {
                let points = methods.entry(method).or_default();
                points.push(RelativePoint { bytes: point.bytes, median, least, greatest });
            }
        }
    }
    let mut violated: Vec<u64> = found
        .violations
        .iter()
        .filter(|one| one.class == Class::Pattern)
        .filter(|one| one.point.line() == (collective, layout))
        .map(|one| one.point.bytes)
        .collect();
    violated.dedup();
    // The same in all panels of a figure.
    let of_collective = || jobs.points().filter(|at| at.collective == collective);
    let all = || of_collective().flat_map(|point| jobs.at(point)).map(|(method, _)| method);
    let method = |(method, points): (&Method, _)| {
        let name = method.short_beside(all());
        RelativeMethod { name, points }
    };
    RelativePanel { layout, methods: methods.into_iter().map(method).collect(), violated }
}
