//! What all points of a check say together, and whether to tune again.

use std::collections::BTreeMap;

use records::{
    Method,
    check::{Check, CheckVerdict, CheckedPoint, PointVerdict},
    counted,
    quantity::format_bytes,
};

use super::changes::TELLING;

/// Fills in what follows from the points and the changes. `is_missing`: the ranks at hand don't hold some of the points.
pub fn settle(check: &mut Check, is_missing: bool) {
    let counts = LoadedVerdicts::of(check);
    let LoadedVerdicts { loaded, unknown, .. } = counts;
    check.verdict = if check.count(PointVerdict::NowSlower) > 0 {
        CheckVerdict::Harm
    } else if is_missing || 2 * (loaded - unknown) < loaded || loaded == 0 {
        CheckVerdict::CannotTell
    } else {
        CheckVerdict::Holds
    };
    check.reason = match check.verdict {
        CheckVerdict::Harm => why_harm(check),
        CheckVerdict::Holds => why_holds(check, counts),
        CheckVerdict::CannotTell => why_unknown(check, counts),
    };
    check.tune_again = why_tune_again(check);
}

/// How many points there are at which something is loaded, by verdict.
#[derive(Clone, Copy)]
struct LoadedVerdicts {
    loaded: usize,
    holding: usize,
    unknown: usize,
}

impl LoadedVerdicts {
    fn of(check: &Check) -> Self {
        let loaded = || check.points.iter().filter(|one| one.method != Method::Default);
        let of = |verdict| loaded().filter(|one| one.verdict == verdict).count();
        LoadedVerdicts {
            loaded: loaded().count(),
            holding: of(PointVerdict::Holds),
            unknown: of(PointVerdict::CannotTell),
        }
    }
}

fn why_harm(check: &Check) -> String {
    let slower = || check.points.iter().filter(|one| one.verdict == PointVerdict::NowSlower);
    let slowness = |one: &&CheckedPoint| one.speed_up.map_or(1.0, |speed_up| 1.0 / speed_up);
    let worst = slower().max_by(|a, b| slowness(a).total_cmp(&slowness(b)));
    let worst = worst.map_or_else(String::new, |one| {
        format!(
            "; most: {} of {} on {} ranks takes {:.2} times as long as the default",
            one.point.collective,
            format_bytes(one.point.bytes),
            one.point.layout,
            slowness(&one)
        )
    });
    format!(
        "it is slower than the default by more than {:.0} % at {} of {}{worst}",
        100.0 * check.tolerance,
        slower().count(),
        counted(check.points.len(), "point")
    )
}

fn why_holds(check: &Check, counts: LoadedVerdicts) -> String {
    let rest = [
        (check.count(PointVerdict::NoLongerFaster), "it gains nothing any more at"),
        (counts.unknown, "nothing can be told of"),
    ];
    let rest = rest.into_iter().filter(|(count, _)| *count > 0);
    let rest: String = rest.map(|(count, what)| format!("; {what} {count}")).collect();
    format!("it is faster than the default at {} of {}{rest}", counts.holding, timed(counts.loaded))
}

fn why_unknown(check: &Check, LoadedVerdicts { loaded, unknown, .. }: LoadedVerdicts) -> String {
    if loaded == 0 {
        return "the budget is too short to time anything; give a greater --budget".into();
    }
    let doubtful = check
        .points
        .iter()
        .filter(|one| one.method != Method::Default && one.verdict == PointVerdict::CannotTell);
    let mut whys: BTreeMap<&str, usize> = BTreeMap::new();
    for why in doubtful.filter_map(|one| one.because.as_deref()) {
        *whys.entry(why).or_default() += 1;
    }
    let whys: Vec<String> = whys.iter().map(|(why, count)| format!("{count}: {why}")).collect();
    format!("{} of {} could be judged ({})", loaded - unknown, timed(loaded), whys.join("; "))
}

/// Nothing where there is no reason.
fn why_tune_again(check: &Check) -> Option<String> {
    let verdicts = [PointVerdict::NowSlower, PointVerdict::NoLongerFaster];
    let [slower, no_longer] = verdicts.map(|verdict| check.count(verdict));
    let changes = check.changes.iter().map(|change| change.what.as_str());
    let changed: Vec<&str> = changes.filter(|what| TELLING.contains(what)).collect();
    let reasons = [
        (slower > 0).then(|| {
            let are = if slower == 1 { "is" } else { "are" };
            format!("{} {are} slower", counted(slower, "point"))
        }),
        (no_longer > 0).then(|| {
            let gain = if no_longer == 1 { "gains" } else { "gain" };
            format!("{} {gain} nothing any more", counted(no_longer, "point"))
        }),
        (check.calls_as_selected < check.calls_observed).then(|| {
            format!(
                "{} of {} observed calls ran another method than the one chosen",
                check.calls_observed - check.calls_as_selected,
                check.calls_observed
            )
        }),
        (!changed.is_empty()).then(|| format!("changed: {}", changed.join(", "))),
    ];
    let reasons: Vec<String> = reasons.into_iter().flatten().collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn timed(count: usize) -> String {
    format!("{} with something loaded", counted(count, "point"))
}

#[cfg(test)]
mod tests {
    use records::{
        Collective, Point,
        check::{Change, CheckedFor},
        platform::Platform,
        summary::LoadWay,
    };

    use super::*;

    fn point(index: u32, method: &str, verdict: PointVerdict) -> CheckedPoint {
        CheckedPoint {
            point: Point::flat(Collective::Bcast, 8, 1 << index),
            method: method.parse().unwrap(),
            timed_for: CheckedFor::Confirmed,
            verdict,
            because: (verdict == CannotTell).then(|| "noisy".into()),
            speed_up_before: Some(1.4),
            speed_up: Some(if verdict == NowSlower { 0.5 } else { 1.4 }),
            interval: None,
            p_value: None,
            pairs: 6,
            default_seconds_before: None,
            default_seconds: None,
            loaded_seconds: None,
        }
    }

    fn settled(verdicts: &[PointVerdict], sentinel: PointVerdict) -> Check {
        let points =
            verdicts.iter().zip(0..).map(|(&verdict, index)| point(index, "own:binomial", verdict));
        let mut points: Vec<CheckedPoint> = points.collect();
        points.push(point(20, "default", sentinel));
        let mut check = Check {
            date: "2026-11-27T01:15:00".into(),
            verdict: CheckVerdict::Holds,
            reason: String::new(),
            tune_again: None,
            way: LoadWay::Preload,
            file: "profiles".into(),
            platform: Platform::default(),
            changes: Vec::new(),
            points,
            left_out: 0,
            pairs: 6,
            tolerance: 0.05,
            level: 0.05,
            calls_observed: 10,
            calls_as_selected: 10,
            disturbance: None,
        };
        settle(&mut check, false);
        check
    }

    use PointVerdict::{CannotTell, Holds, NoLongerFaster, NowSlower};

    #[test]
    fn it_holds_where_enough_is_judged_and_nothing_is_slower() {
        let check = settled(&[Holds, Holds, NoLongerFaster, CannotTell], CannotTell);
        assert_eq!(check.verdict, CheckVerdict::Holds);
        assert_eq!(
            check.reason,
            "it is faster than the default at 2 of 4 points with something loaded; it gains nothing any \
             more at 1; nothing can be told of 1"
        );
        assert_eq!(check.tune_again.as_deref(), Some("1 point gains nothing any more"));
        assert_eq!(settled(&[Holds, Holds], Holds).tune_again, None);
    }

    #[test]
    fn one_slower_point_is_harm_be_it_one_with_nothing_loaded() {
        let check = settled(&[Holds, NowSlower, CannotTell], Holds);
        assert_eq!((check.verdict, check.verdict.exit_code()), (CheckVerdict::Harm, 4));
        assert!(
            check.reason.contains("more than 5 % at 1 of 4 points; most: bcast"),
            "{}",
            check.reason
        );
        assert!(check.reason.ends_with("takes 2.00 times as long as the default"));
        assert_eq!(settled(&[Holds, Holds], NowSlower).verdict, CheckVerdict::Harm);
    }

    #[test]
    fn too_little_judged_or_not_at_hand_cannot_be_told() {
        let check = settled(&[Holds, CannotTell, CannotTell], Holds);
        assert_eq!((check.verdict, check.verdict.exit_code()), (CheckVerdict::CannotTell, 3));
        assert!(check.reason.ends_with("could be judged (2: noisy)"), "{}", check.reason);
        let mut check = settled(&[Holds, Holds, CannotTell], Holds);
        assert_eq!(check.verdict, CheckVerdict::Holds);
        settle(&mut check, true);
        assert_eq!(check.verdict, CheckVerdict::CannotTell);
        assert_eq!(settled(&[], Holds).verdict, CheckVerdict::CannotTell);
    }

    #[test]
    fn a_new_library_and_calls_that_ran_something_else_are_reasons_to_tune_again() {
        let mut check = settled(&[Holds, Holds], Holds);
        let change = |what: &str| Change { what: what.into(), before: "1".into(), now: "2".into() };
        check.changes = vec![change("MPI library"), change("kernel")];
        check.calls_as_selected = 7;
        settle(&mut check, false);
        assert_eq!(
            check.tune_again.as_deref(),
            Some(
                "3 of 10 observed calls ran another method than the one chosen; changed: MPI library"
            )
        );
    }
}
