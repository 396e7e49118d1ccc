//! Whether to load what a tuning has written, and why.

use records::confirmed::{Advice, LoadVerdict, LoadedCounts, MIN_PAIRS};

/// At how many points nothing is confirmed, by the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unshown {
    /// The time was too short for enough pairs of jobs.
    pub unreached: u32,
    /// There were enough, but others disturbed them.
    pub disturbed: u32,
    /// The pairs of jobs leave it open whether it is faster.
    pub open: u32,
    /// It was shown to be slower.
    pub slower: u32,
    /// The default was not timed, so that nothing could be chosen.
    pub untimed: u32,
}

/// What a run was like.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RunConditions {
    /// The budget of the whole run in minutes; nothing where it had none.
    pub budget_minutes: Option<f64>,
    /// The budget by which every point that was chosen could be confirmed.
    pub needed_minutes: Option<f64>,
    /// The mean share of the processors that others took, where that disturbed it often.
    pub taken: Option<f64>,
}

/// How many times the budget is advised at most: what is needed is an estimate.
const MAX_TIMES: f64 = 12.0;

/// Whether to load what was confirmed.
pub fn verdict(counts: LoadedCounts, unshown: Unshown, run: &RunConditions) -> LoadVerdict {
    let Unshown { unreached, disturbed, open, untimed, .. } = unshown;
    let not_confirmed = unreached + disturbed + open;
    let whys = whys(unshown, run);
    let points = records::counted(counts.points, "point");
    let not_timed = match untimed {
        0 => String::new(),
        _ => format!(
            " At {untimed} of {} the default was not timed, so that nothing can be said.",
            records::counted(counts.points + untimed, "point")
        ),
    };
    if counts.confirmed > 0 {
        let more = match repeat(unshown, run) {
            Advice::Repeat { budget_minutes: Some(minutes), .. } if unreached > 0 => {
                let greater = run.budget_minutes.unwrap_or_default() as u64 + 1;
                format!("; `--resume --budget {}m` has time for more", minutes.max(greater))
            }
            _ => String::new(),
        };
        let rest = match not_confirmed {
            0 => String::new(),
            some => format!(
                " Not loaded: {}, of which {some} seemed faster and {} not confirmed ({whys}{more}).",
                counts.left(),
                if some == 1 { "is" } else { "are" }
            ),
        };
        return LoadVerdict::load(counts, &(rest + &not_timed));
    }
    let mut reason = match not_confirmed {
        0 if untimed > 0 && counts.points == 0 => String::new(),
        0 if untimed > 0 => "Where the default was timed, no method is faster.".into(),
        0 => match run.taken {
            None => "No method that can be loaded is faster than the default.".into(),
            Some(taken) => format!(
                "No method seemed faster than the default while other processes used {:.0} % of the processors.",
                100.0 * taken
            ),
        },
        some => format!(
            "Nothing is confirmed to be faster. At {some} of {points} something seems so: {whys}."
        ),
    };
    reason += &not_timed;
    let advice = match not_confirmed + untimed {
        0 if run.taken.is_none() => Advice::Nothing,
        _ => repeat(unshown, run),
    };
    LoadVerdict { advice, reason: reason.trim_start().into() }
}

/// Why points were not confirmed, the most frequent reason first.
fn whys(unshown: Unshown, run: &RunConditions) -> String {
    let Unshown { unreached, disturbed, open, .. } = unshown;
    let taken =
        run.taken.map(|taken| format!(", which used {:.0} % of the processors", 100.0 * taken));
    let too_few = format!("fewer than {MIN_PAIRS} pairs of jobs within the budget");
    let mut whys = [
        (unreached, too_few),
        (
            disturbed,
            format!("pairs of jobs disturbed by other processes{}", taken.unwrap_or_default()),
        ),
        (open, "a speed-up whose interval includes 1".to_owned()),
    ];
    whys.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let reasons = whys.into_iter().filter(|(count, _)| *count > 0);
    reasons.map(|(count, why)| format!("{count} had {why}")).collect::<Vec<_>>().join(", ")
}

fn repeat(unshown: Unshown, run: &RunConditions) -> Advice {
    let Unshown { unreached, disturbed, open, untimed, .. } = unshown;
    let is_disturbed = disturbed > 0 || run.taken.is_some();
    let budget = run.budget_minutes.map(|budget| {
        let needed = if unreached > 0 { run.needed_minutes.unwrap_or(0.0) } else { 0.0 };
        // The noise of a mean falls by a third with twice as many pairs. What it takes to time the default is not known.
        let is_twice = untimed > 0 || open > unreached.max(disturbed);
        let twice = if is_twice { 2.0 * budget } else { budget };
        let minutes = needed.max(twice).min(MAX_TIMES * budget).ceil().max(1.0);
        // A run goes on with a greater budget alone.
        if is_disturbed { minutes as u64 } else { minutes.max(budget.floor() + 1.0) as u64 }
    });
    Advice::Repeat { budget_minutes: budget, on_idle_nodes: is_disturbed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(confirmed: u32, unshown: Unshown, run: &RunConditions) -> String {
        let counts = LoadedCounts { points: 126, confirmed, ..LoadedCounts::default() };
        verdict(counts, unshown, run).to_string()
    }

    const FIVE: RunConditions =
        RunConditions { budget_minutes: Some(5.0), needed_minutes: Some(11.2), taken: None };

    #[test]
    fn what_is_confirmed_is_to_be_loaded_and_the_rest_told() {
        assert_eq!(
            told(20, Unshown::default(), &FIVE),
            "Load it. It is faster at 20 of 126 points, each confirmed by at least 3 pairs of jobs."
        );
        let rest = Unshown { open: 4, unreached: 2, ..Unshown::default() };
        let counts =
            LoadedCounts { points: 126, confirmed: 20, between: 5, ..LoadedCounts::default() };
        let told = verdict(counts, rest, &FIVE).to_string();
        let wanted = "Not loaded: 101, of which 6 seemed faster and are not confirmed (4 had a speed-up whose \
                      interval includes 1, 2 had fewer than 3 pairs of jobs within the budget; `--resume --budget 12m` \
                      has time for more).";
        assert!(told.ends_with(wanted), "{told}");
    }

    #[test]
    fn what_to_repeat_with_follows_from_the_reason() {
        let unreached = Unshown { unreached: 41, ..Unshown::default() };
        assert_eq!(
            told(0, unreached, &FIVE),
            "Do not load it yet: go on with `--resume --budget 12m`. Nothing is confirmed to be faster. At 41 of 126 \
             points something seems so: 41 had fewer than 3 pairs of jobs within the budget."
        );
        let disturbed = Unshown { disturbed: 41, ..Unshown::default() };
        let busy = RunConditions { taken: Some(0.75), ..FIVE };
        let text = told(0, disturbed, &busy);
        assert!(
            text.starts_with("Do not load it yet: tune again in another directory, on idle nodes with `--budget 5m`. "),
            "{text}"
        );
        assert!(text.contains("used 75 % of the processors"), "{text}");
        let short = RunConditions { needed_minutes: Some(4.0), ..FIVE };
        assert!(told(0, unreached, &short).contains("go on with `--resume --budget 6m`. "));
        assert!(told(5, unreached, &short).contains("`--resume --budget 6m` has time for more"));
        let open = Unshown { open: 41, ..Unshown::default() };
        assert!(told(0, open, &FIVE).contains("`--resume --budget 10m`. "));
        let without = RunConditions::default();
        assert!(
            told(0, open, &without)
                .starts_with("Do not load it yet: tune again in another directory. ")
        );
        let nothing =
            "There is nothing to load. No method that can be loaded is faster than the default.";
        let slower = Unshown { slower: 3, ..Unshown::default() };
        assert_eq!(told(0, slower, &FIVE), nothing);
        let text = told(0, slower, &busy);
        let repeated = "Do not load it yet: tune again in another directory, on idle nodes with `--budget 5m`. No method seemed faster";
        assert!(text.starts_with(repeated), "{text}");
        assert!(text.ends_with("while other processes used 75 % of the processors."), "{text}");
    }

    #[test]
    fn where_the_default_was_not_timed_nothing_is_said() {
        let untimed = Unshown { untimed: 4, ..Unshown::default() };
        let not_timed =
            "At 4 of 130 points the default was not timed, so that nothing can be said.";
        assert_eq!(
            told(0, untimed, &FIVE),
            format!(
                "Do not load it yet: go on with `--resume --budget 10m`. Where the default was timed, no method is \
                 faster. {not_timed}"
            )
        );
        for (confirmed, unshown) in [(20, untimed), (0, Unshown { unreached: 2, ..untimed })] {
            let text = told(confirmed, unshown, &FIVE);
            assert!(text.ends_with(not_timed), "{text}");
        }
        let nowhere = verdict(LoadedCounts::default(), untimed, &FIVE).to_string();
        assert!(!nowhere.contains("no method is faster"), "{nowhere}");
        assert!(
            nowhere.contains("`--resume --budget 10m`. At 4 of 4 points the default"),
            "{nowhere}"
        );
    }
}
