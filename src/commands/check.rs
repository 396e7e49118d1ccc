//! `colibri check`: whether what a tuning chose still holds.

use std::{
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use clap::{Args, builder::PossibleValue};
use maud::{PreEscaped, html};
use records::{
    check::{Check, CheckVerdict, CheckedPoint, PointVerdict},
    document,
    quantity::{self, format_bytes},
    summary::LoadWay,
};

use crate::commands::shared::{
    options::{SiteOptions, named},
    output,
};
use site::{
    allocation::within_allocation, error::ExitWith, lazy::LazySite, run_directory::RunDirectory,
};
use stages::checking::{self, CheckOptions, TunedRun};

/// Times again, after an upgrade or every night, what a tuning chose, and says whether it still holds; exit code 0: it
/// holds, 4: it does harm, 3: can't tell
#[derive(Debug, Args)]
pub struct CheckCommand {
    /// Directory of a run of `colibri tune`; its ranks are started as they were then, where nothing else is said.
    /// Nothing is written to it but a record of its own, in RUN/checks
    #[arg(default_value = "colibri-run", value_name = "RUN")]
    directory: PathBuf,

    #[command(flatten)]
    site: SiteOptions,

    /// What to load [default: what the tuning advised]
    #[arg(long, value_name = "WAY", value_parser = named(&WAYS, named_way))]
    way: Option<LoadWay>,

    /// Time limit, the start of the ranks included: 90s, 10m, 1h30m; from 1ms to 10000h
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration, default_value = "60s")]
    budget: Duration,

    /// Also write the result for CI systems (JUnit's XML): a test case for each point
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// How a check is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
}

const WAYS: [LoadWay; 3] = [LoadWay::Rules, LoadWay::Preload, LoadWay::Both];

fn named_way(way: LoadWay) -> PossibleValue {
    match way {
        LoadWay::Rules => PossibleValue::new("rules").help("The MPI library's rules file"),
        LoadWay::Preload => PossibleValue::new("preload").help("The preload library's profiles"),
        LoadWay::Both => PossibleValue::new("both").help("Both at once"),
    }
}

impl CheckCommand {
    /// Runs the subcommand.
    pub fn run(self) -> Result<()> {
        let begun = Instant::now();
        let budget = within_allocation(self.budget)?;
        let run = RunDirectory::judge(&self.directory)?;
        let tuned = TunedRun::read(&run, self.way)?;
        if !run.is_written_to() {
            bail!("{}: the record of the check cannot be written", run.path().display());
        }
        let options = self.site.as_begun(tuned.given())?;
        let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let date = date.trim_end_matches('Z').to_owned();
        // Before the site, so that it is there until a virtual cluster is taken down.
        let mut place = RunDirectory::at(&checking::directory(&run, &date))?;
        let mut site = LazySite::new(&options);
        site.find()?;
        place.make()?;
        site.open(&place)?;
        place.stay();
        let wanted = CheckOptions { budget, begun, date };
        let check = checking::check(&tuned, &place, &mut site, &wanted)?;
        drop(site);
        let name = run.path().display().to_string();
        if let Some(path) = &self.junit {
            document::write_text(path, &junit(&check, &name, begun.elapsed()))?;
        }
        let text = match self.format {
            Format::Table => text(&check),
            Format::Json => document::text(&check).context("the result")?,
        };
        output::print(&text)?;
        say!("recorded: {}", place.path().display());
        match check.verdict.exit_code() {
            0 => Ok(()),
            code => Err(ExitWith(code).into()),
        }
    }
}

const HEADING: [&str; 9] = [
    "collective",
    "procs",
    "size",
    "loaded",
    "speed-up then",
    "now",
    "95 % interval",
    "pairs",
    "verdict",
];

fn text(check: &Check) -> String {
    let mut text = output::aligned(&HEADING, check.points.iter().map(row));
    text += "\n";
    if check.left_out > 0 {
        text += &format!(
            "Left out {}: the budget has no time for them\n",
            records::counted(check.left_out, "point")
        );
    }
    for change in &check.changes {
        text += &format!("Changed  {}: {} -> {}\n", change.what, change.before, change.now);
    }
    if check.calls_observed > 0 {
        text += &format!(
            "Ran      {} of {} observed calls as chosen\n",
            check.calls_as_selected, check.calls_observed
        );
    }
    let disturbance = check.disturbance.and_then(|disturbance| disturbance.warning());
    for warning in disturbance.into_iter().chain(check.platform.busy()) {
        text += &format!("Warning  {warning}\n");
    }
    text + &format!("Verdict  {}: {}\n", check.file, verdict(check))
}

/// In a line.
fn verdict(check: &Check) -> String {
    let again = match (&check.tune_again, check.verdict) {
        (Some(why), _) => format!(" Tune again: {why}."),
        (None, CheckVerdict::CannotTell) => {
            " Check again on calm machines, or with a greater --budget.".into()
        }
        (None, _) => " There is no reason to tune again.".into(),
    };
    format!("{}: {}.{again}", check.verdict.words(), check.reason)
}

fn row(one: &CheckedPoint) -> Vec<String> {
    let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".into(), |it| format!("{it:.2}"));
    let interval = one.interval.map(|[low, high]| format!("{low:.2} to {high:.2}"));
    let verdict = match (&one.because, one.p_value) {
        (Some(because), _) => format!("{} ({because})", one.verdict.words()),
        (None, Some(p)) => format!("{} ({})", one.verdict.words(), probability(p)),
        (None, None) => one.verdict.words().into(),
    };
    vec![
        one.point.collective.to_string(),
        one.point.layout.to_string(),
        format_bytes(one.point.bytes),
        one.method.to_string(),
        ratio(one.speed_up_before),
        ratio(one.speed_up),
        interval.unwrap_or_else(|| "-".into()),
        one.pairs.to_string(),
        verdict,
    ]
}

/// `p = 0.0012`: two digits, down to a millionth.
fn probability(p_value: f64) -> String {
    if p_value < 1e-6 {
        return "p < 0.000001".into();
    }
    let decimals = (1.0 - p_value.log10().floor()).clamp(2.0, 6.0) as usize;
    format!("p = {p_value:.decimals$}")
}

/// JUnit's XML, as CI systems read it: what does harm has failed, what is undecided was skipped.
fn junit(check: &Check, run: &str, took: Duration) -> String {
    let took = format!("{:.3}", took.as_secs_f64());
    let suite = html! {
        testsuite name={ "colibri check " (run) } timestamp=(check.date) time=(took)
            tests=(check.points.len()) failures=(check.count(PointVerdict::NowSlower)) errors="0"
            skipped=(check.count(PointVerdict::CannotTell))
        {
            properties {
                property name="verdict" value=(verdict(check)) {}
                @for change in &check.changes {
                    property name=(change.what) value={ (change.before) " -> " (change.now) } {}
                }
            }
            @for one in &check.points {
                testcase classname={ "colibri." (one.point.collective) } name=(case(one)) {
                    @match one.verdict {
                        PointVerdict::NowSlower => {
                            failure message=(in_words(one)) type="now slower" {}
                        }
                        PointVerdict::CannotTell => {
                            skipped message=(one.because.as_deref().unwrap_or("can't tell")) {}
                        }
                        PointVerdict::Holds | PointVerdict::NoLongerFaster => {
                            system-out { (in_words(one)) }
                        }
                    }
                }
            }
        }
    };
    let prolog = PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    html! { (prolog) (suite) }.into_string() + "\n"
}

fn case(one: &CheckedPoint) -> String {
    format!("{} on {}: {}", format_bytes(one.point.bytes), one.point.layout, one.method)
}

/// `holds: 2.55 times as fast as the default (2.40 to 2.71)`.
fn in_words(one: &CheckedPoint) -> String {
    let interval = one.interval.map(|[low, high]| format!(" ({low:.2} to {high:.2})"));
    let speed_up = one.speed_up.map_or_else(String::new, |speed_up| {
        let interval = interval.unwrap_or_default();
        format!(": {speed_up:.2} times as fast as the default{interval}")
    });
    format!("{}{speed_up}", one.verdict.words())
}

#[cfg(test)]
mod tests {
    use records::{
        Collective, Point,
        check::{Change, CheckedFor},
        platform::Platform,
    };

    use super::*;

    fn check() -> Check {
        let point = |bytes, verdict, because: Option<&str>| CheckedPoint {
            point: Point::flat(Collective::Bcast, 4, bytes),
            method: "own:pipeline,segment=8KiB".parse().unwrap(),
            timed_for: CheckedFor::Confirmed,
            verdict,
            because: because.map(Into::into),
            speed_up_before: Some(2.6),
            speed_up: Some(0.5),
            interval: Some([0.4, 0.6]),
            p_value: (verdict == PointVerdict::NowSlower).then_some(0.0012),
            pairs: 6,
            default_seconds_before: None,
            default_seconds: None,
            loaded_seconds: None,
        };
        Check {
            date: "2026-11-27T01:15:00".into(),
            verdict: CheckVerdict::Harm,
            reason: "1 of 3 points are slower".into(),
            tune_again: Some("1 point is slower".into()),
            way: LoadWay::Preload,
            file: "profiles".into(),
            platform: Platform::default(),
            changes: vec![Change {
                what: "kernel".into(),
                before: "6.1 <a & \"b\">".into(),
                now: "6.2".into(),
            }],
            points: vec![
                point(64, PointVerdict::Holds, None),
                point(8192, PointVerdict::NowSlower, None),
                point(65536, PointVerdict::CannotTell, Some("noisy")),
            ],
            left_out: 2,
            pairs: 6,
            tolerance: 0.05,
            level: 0.05,
            calls_observed: 10,
            calls_as_selected: 10,
            disturbance: None,
        }
    }

    #[test]
    fn the_verdict_is_the_last_line_and_changes_stand_before() {
        let text = text(&check());
        let last = text.lines().last().unwrap();
        assert_eq!(
            last,
            "Verdict  profiles: a choice does harm: 1 of 3 points are slower. Tune again: 1 point is slower."
        );
        assert!(text.contains("Changed  kernel: 6.1 <a & \"b\"> -> 6.2\n"), "{text}");
        assert!(text.contains("now slower (p = 0.0012)"), "{text}");
        assert!(text.contains("Left out 2 points"), "{text}");
    }

    #[test]
    fn no_probability_is_told_as_zero() {
        let all = [1.0, 0.04, 0.0012, 2e-6, 3e-9].map(probability);
        assert_eq!(all, ["p = 1.00", "p = 0.040", "p = 0.0012", "p = 0.000002", "p < 0.000001"]);
    }

    #[test]
    fn junit_has_a_case_for_each_point_and_escapes_what_is_told() {
        let text = junit(&check(), "/a/RUN", Duration::from_secs(58));
        let first = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"colibri check /a/RUN\" \
                     timestamp=\"2026-11-27T01:15:00\" time=\"58.000\" tests=\"3\" failures=\"1\" errors=\"0\" \
                     skipped=\"1\"><properties>";
        assert!(text.starts_with(first), "{text}");
        assert!(text.contains("value=\"6.1 &lt;a &amp; &quot;b&quot;&gt; -&gt; 6.2\""), "{text}");
        let case = "<testcase classname=\"colibri.bcast\" name=\"8 KiB on 4: own:pipeline,segment=8KiB\">\
                    <failure message=\"now slower: 0.50 times as fast as the default (0.40 to 0.60)\" \
                    type=\"now slower\"></failure></testcase>";
        assert!(text.contains(case), "{text}");
        assert!(text.contains("<skipped message=\"noisy\"></skipped>"), "{text}");
        assert!(text.ends_with("</testsuite>\n"), "{text}");
    }
}
