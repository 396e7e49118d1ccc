//! Decisions as a target can express them, and what that costs.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use libraries::{Exporter, LayoutKey};
use records::{
    Collective, Layout, Method, Point,
    choices::{Chosen, Evidence},
    export::InexpressibleDecision,
    ranges::held,
};

use super::careful::CarefulExporter;

/// What is known of the methods that a target could take instead.
pub trait Possible {
    /// The best method at a point that the target can express, and its time where it is known.
    fn best(&self, point: Point) -> (Method, Option<f64>);

    /// The time of a method at a point, where it is known.
    fn seconds(&self, point: Point, method: &Method) -> Option<f64>;
}

/// The decisions as the target can express them, and those that it can't.
///
/// Where one method has to serve for all sizes of a collective, it is the one that loses least on
/// geometric average over the sizes decided. Where the target does not tell layouts apart, what is
/// chosen for one of them serves for all: for the first of `used`, else for the one with most ranks per
/// node.
pub fn express_choices(
    exporter: &CarefulExporter,
    wanted: &[Chosen],
    possible: &dyn Possible,
    used: &[Layout],
) -> (Vec<Chosen>, Vec<InexpressibleDecision>) {
    let mut nearest: Vec<NearestMethod> = wanted
        .iter()
        .map(|choice| {
            let mut nearest = NearestMethod {
                method: choice.method.clone(),
                seconds: Some(choice.seconds),
                reason: None,
            };
            if choice.method != Method::Default
                && let Err(reason) = exporter.allows(choice.point, &choice.method)
            {
                let (method, seconds) = possible.best(choice.point);
                nearest = NearestMethod { method, seconds, reason: Some(reason) };
            }
            nearest
        })
        .collect();
    unify(exporter, wanted, &mut nearest, possible);
    unify_layouts(&**exporter, wanted, &mut nearest, possible, used);
    let unexpressed = wanted.iter().zip(&nearest).filter_map(|(choice, nearest)| {
        Some(InexpressibleDecision {
            point: choice.point,
            method: choice.method.clone(),
            seconds: choice.seconds,
            reason: nearest.reason.clone()?,
            exported: nearest.method.clone(),
            exported_seconds: nearest.seconds,
            loss: nearest.seconds.map(|seconds| seconds / choice.seconds - 1.0),
        })
    });
    let unexpressed = unexpressed.collect();
    let choices = wanted.iter().zip(nearest).map(|(choice, nearest)| {
        let is_wanted = nearest.method == choice.method;
        // What stands in for a choice was measured or predicted as that was, but not confirmed.
        Chosen {
            method: nearest.method,
            seconds: nearest.seconds.unwrap_or(choice.without_seconds()),
            rests_on: if is_wanted {
                choice.rests_on
            } else {
                choice.rests_on.min(Evidence::Measured)
            },
            confirmed: choice.confirmed.filter(|_| is_wanted),
            ..choice.clone()
        }
    });
    let mut choices: Vec<Chosen> = choices.collect();
    let is_leading = is_representative(&**exporter, &choices, used);
    choices.iter_mut().for_each(|choice| choice.by_other_layout = !is_leading(choice.point));
    (choices, unexpressed)
}

struct NearestMethod {
    method: Method,
    seconds: Option<f64>,
    /// Why it is not what was wanted.
    reason: Option<String>,
}

/// One method for all sizes, where the target has no more.
fn unify(
    exporter: &CarefulExporter,
    wanted: &[Chosen],
    nearest: &mut [NearestMethod],
    possible: &dyn Possible,
) {
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, choice) in wanted.iter().enumerate() {
        if exporter.one_for_all_sizes(choice.point.collective).is_some() {
            groups.entry(choice.point.line()).or_default().push(index);
        }
    }
    for ((collective, _), members) in groups {
        let Some(reason) = exporter.one_for_all_sizes(collective) else { continue };
        let seconds = |index: usize, method: &Method| match &nearest[index] {
            NearestMethod { method: own, seconds: Some(seconds), .. } if own == method => {
                Some(*seconds)
            }
            _ => possible.seconds(wanted[index].point, method),
        };
        let allowed = |index: usize, method: &Method| {
            *method == Method::Default || exporter.allows(wanted[index].point, method).is_ok()
        };
        // The least loss; where times are not known, what was decided most often.
        let loss = |method: &Method| {
            let losses = members
                .iter()
                .map(|&index| Some((seconds(index, method)? / wanted[index].seconds).ln()));
            losses.sum::<Option<f64>>().unwrap_or(f64::INFINITY)
        };
        let decided = |method: &Method| {
            members.iter().filter(|&&index| nearest[index].method == *method).count()
        };
        let mut methods: Vec<Method> =
            members.iter().map(|&index| nearest[index].method.clone()).collect();
        methods.push(Method::Default);
        methods.retain(|method| members.iter().all(|&index| allowed(index, method)));
        let best = methods
            .iter()
            .min_by(|a, b| loss(a).total_cmp(&loss(b)).then(decided(b).cmp(&decided(a))));
        let Some(best) = best.cloned() else { continue };
        let times: Vec<Option<f64>> = members.iter().map(|&index| seconds(index, &best)).collect();
        for (&index, seconds) in members.iter().zip(times) {
            if nearest[index].method != best {
                let reason = Some(format!("{reason}; one method serves for all sizes"));
                nearest[index] = NearestMethod { method: best.clone(), seconds, reason };
            }
        }
    }
}

/// The layout that is exported for each collective, of those that the target does not distinguish.
type Leading = BTreeMap<(Collective, LayoutKey), Layout>;

/// Whose choices are exported. Of layouts that it distinguishes, but whose choices it can't express
/// together, one leads, too.
fn leading<'a>(
    exporter: &dyn Exporter,
    choices: impl Iterator<Item = (Point, &'a Method)> + Clone,
    used: &[Layout],
) -> Leading {
    let place = |layout: Layout| used.iter().position(|one| *one == layout).unwrap_or(used.len());
    let rank = |layout: Layout| (place(layout), Reverse(layout));
    let mut leading = Leading::new();
    for (point, _) in choices.clone() {
        let key = (point.collective, exporter.layout_key(point.layout));
        let best = leading.entry(key).or_insert(point.layout);
        *best = std::cmp::min_by_key(*best, point.layout, |layout| rank(*layout));
    }
    for ((collective, one), other) in clashes(exporter, choices, &leading) {
        let first = std::cmp::min_by_key(one, other, |layout| rank(*layout));
        for layout in [one, other] {
            leading.insert((collective, exporter.layout_key(layout)), first);
        }
    }
    leading
}

/// The pairs of leading layouts whose choices the target can't express together.
fn clashes<'a>(
    exporter: &dyn Exporter,
    choices: impl Iterator<Item = (Point, &'a Method)> + Clone,
    leading: &Leading,
) -> Vec<((Collective, Layout), Layout)> {
    let mut methods: BTreeMap<(Collective, Layout), Vec<&Method>> = BTreeMap::new();
    for (Point { collective, layout, .. }, method) in choices {
        methods.entry((collective, layout)).or_default().push(method);
    }
    let leaders: Vec<(Collective, Layout)> =
        leading.iter().map(|((collective, _), layout)| (*collective, *layout)).collect();
    let pairs = leaders.iter().enumerate().flat_map(|(index, one)| {
        let others = leaders[index + 1..].iter();
        others.map(move |other| (*one, *other))
    });
    let clash = |(one, other): &((Collective, Layout), (Collective, Layout))| {
        one.0 == other.0
            && one.1.procs() == other.1.procs()
            && exporter.clash(one.0, (one.1, &methods[one]), (other.1, &methods[other]))
    };
    pairs.filter(clash).map(|(one, other)| (one, other.1)).collect()
}

/// The layouts that a target does not distinguish or can't express together, where none of them is in use.
pub fn conflicts<'a>(
    exporter: &dyn Exporter,
    choices: impl Iterator<Item = (Point, &'a Method)> + Clone,
    used: &[Layout],
) -> BTreeMap<LayoutKey, BTreeSet<Layout>> {
    let mut layouts: BTreeMap<LayoutKey, BTreeSet<Layout>> = BTreeMap::new();
    let leading = leading(exporter, choices.clone(), used);
    for (Point { collective, layout, .. }, _) in choices {
        let leader = leading[&(collective, exporter.layout_key(layout))];
        layouts.entry(exporter.layout_key(leader)).or_default().insert(layout);
    }
    let is_open =
        |all: &BTreeSet<Layout>| all.len() > 1 && !used.iter().any(|one| all.contains(one));
    layouts.retain(|_, all| is_open(all));
    layouts
}

/// Points and what is chosen there.
fn methods_of(choices: &[Chosen]) -> impl Iterator<Item = (Point, &Method)> + Clone {
    choices.iter().map(|choice| (choice.point, &choice.method))
}

/// Whose choices are exported at a point: of several layouts that it does not distinguish, or whose choices it
/// can't express together, those of one.
pub fn representative<'a>(
    exporter: &'a dyn Exporter,
    choices: &[Chosen],
    used: &[Layout],
) -> impl Fn(Point) -> Option<Layout> + use<'a> {
    let leading = leading(exporter, methods_of(choices), used);
    move |point: Point| leading.get(&(point.collective, exporter.layout_key(point.layout))).copied()
}

/// Whether what was chosen is exported at a point.
pub fn is_representative<'a>(
    exporter: &'a dyn Exporter,
    choices: &[Chosen],
    used: &[Layout],
) -> impl Fn(Point) -> bool + use<'a> {
    let representative = representative(exporter, choices, used);
    move |point: Point| representative(point) == Some(point.layout)
}

/// The choices that are exported.
pub fn exported_choices(
    exporter: &dyn Exporter,
    choices: &[Chosen],
    used: &[Layout],
) -> Vec<Chosen> {
    let is_exported = is_representative(exporter, choices, used);
    choices.iter().filter(|choice| is_exported(choice.point)).cloned().collect()
}

/// One layout's methods for all layouts that the target does not distinguish.
fn unify_layouts(
    exporter: &dyn Exporter,
    wanted: &[Chosen],
    nearest: &mut [NearestMethod],
    possible: &dyn Possible,
    used: &[Layout],
) {
    let methods = wanted.iter().zip(nearest.iter());
    let methods = methods.map(|(choice, nearest)| (choice.point, &nearest.method));
    let leading = leading(exporter, methods, used);
    let leading_layout =
        |point: Point| leading[&(point.collective, exporter.layout_key(point.layout))];
    let exported = wanted
        .iter()
        .zip(nearest.iter())
        .filter(|(choice, _)| leading_layout(choice.point) == choice.point.layout)
        .map(|(choice, nearest)| (choice.point, nearest.method.clone()));
    let exported = held(exported);
    for (choice, nearest) in wanted.iter().zip(nearest) {
        let point = choice.point;
        let layout = leading_layout(point);
        if layout == point.layout {
            continue;
        }
        let method = exported.get(&(point.collective, layout)).and_then(|of| of.at(point.bytes));
        let method = method.cloned().unwrap_or(Method::Default);
        if method != nearest.method {
            let seconds = possible.seconds(point, &method);
            let reason = format!(
                "{} distinguishes only {}: {} ranks take the choices for {layout:#}",
                exporter.target(),
                exporter.layout_key(layout),
                point.procs()
            );
            *nearest = NearestMethod { method, seconds, reason: Some(reason) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libraries::MpiLibrary;
    use records::confirmed::PairedSpeedUp;

    fn exporter() -> CarefulExporter {
        let exporter = (libraries::openmpi::OpenMpiLibrary.formats()[0].exporter)(None, None);
        CarefulExporter::new(exporter.unwrap(), None, false)
    }

    /// Rules know the number of processes alone: one layout's methods serve for the others, and what
    /// that costs is told.
    #[test]
    fn layouts_that_a_target_does_not_tell_apart_take_the_methods_of_one() {
        let choice = |layout: &str, bytes, name: &str, seconds| {
            let point = Point::new(Collective::Bcast, layout.parse().unwrap(), bytes);
            let method = format!("native:openmpi:{name}").parse().unwrap();
            Chosen::measured(point, method, seconds, 9.0)
        };
        let wanted = [
            choice("8", 1, "binomial", 1.0),
            choice("8", 4, "binomial", 1.0),
            choice("2x4", 1, "linear", 1.0),
            choice("2x4", 4, "binomial", 1.0),
        ];
        let exporter = exporter();
        let (flat, nested): (Layout, Layout) = ("8".parse().unwrap(), "2x4".parse().unwrap());
        for (told, layout, (lost, cost)) in [
            // Without a word, what has most ranks on a node.
            (vec![], nested, (1, 0.0)),
            (vec![nested], nested, (1, 0.0)),
            (vec![flat], flat, (1, 0.0)),
        ] {
            let (choices, lost_choices) = express_choices(&exporter, &wanted, &MadeUpTimes, &told);
            let kept = exported_choices(&*exporter, &choices, &told);
            assert!(choices.iter().all(|one| one.by_other_layout == (one.point.layout != layout)));
            assert!(
                kept.len() == 2 && kept.iter().all(|one| one.point.layout == layout),
                "{kept:?}"
            );
            assert_eq!(choices[0].method, choices[2].method);
            assert_eq!(lost_choices.len(), lost);
            assert_eq!(lost_choices[0].loss, Some(cost));
            assert!(
                lost_choices[0]
                    .reason
                    .contains("distinguishes only the number of ranks: 8 ranks take")
            );
            assert_ne!(lost_choices[0].point.layout, layout);
        }
        let points = || methods_of(&wanted);
        let open = conflicts(&*exporter, points(), &[]);
        let wanted = [(LayoutKey::Procs(8), BTreeSet::from([flat, nested]))];
        assert_eq!(open.into_iter().collect::<Vec<_>>(), wanted);
        assert!(conflicts(&*exporter, points(), &[flat]).is_empty());
        assert!(conflicts(&*exporter, points().take(2), &[]).is_empty());
    }

    /// Binomial takes a second whatever the size, linear as many as there are bytes, nothing is
    /// known of the default.
    struct MadeUpTimes;

    impl Possible for MadeUpTimes {
        fn best(&self, point: Point) -> (Method, Option<f64>) {
            let method: Method = "native:openmpi:binomial".parse().unwrap();
            let seconds = self.seconds(point, &method);
            (method, seconds)
        }

        fn seconds(&self, point: Point, method: &Method) -> Option<f64> {
            match method.to_string().as_str() {
                "native:openmpi:binomial" => Some(1.0),
                "native:openmpi:linear" => Some(point.bytes as f64),
                _ => None,
            }
        }
    }

    fn choice(collective: Collective, bytes: u64, method: &str, seconds: f64) -> Chosen {
        let point = Point::flat(collective, 8, bytes);
        Chosen::measured(point, method.parse().unwrap(), seconds, 9.0)
    }

    #[test]
    fn what_cannot_be_told_is_replaced_and_its_cost_is_booked() {
        let exporter = exporter();
        let confirmed = PairedSpeedUp { pairs: 4, speed_up: 2.5, interval: [2.1, 3.0] };
        let wanted = [
            choice(Collective::Bcast, 64, "native:openmpi:pipeline", 0.5),
            choice(Collective::Bcast, 128, "own:pipeline", 0.25),
            choice(Collective::Bcast, 256, "default", 9.0),
        ];
        let wanted = wanted.map(|choice| Chosen {
            rests_on: Evidence::Confirmed,
            confirmed: Some(confirmed),
            ..choice
        });
        let (choices, unexpressed) = express_choices(&exporter, &wanted, &MadeUpTimes, &[]);
        // What stands in for a choice was not confirmed.
        let rests_on = choices.iter().map(|one| (one.rests_on, one.confirmed.is_some()));
        let own = (Evidence::Confirmed, true);
        assert_eq!(rests_on.collect::<Vec<_>>(), [own, (Evidence::Measured, false), own]);
        let methods: Vec<_> = choices.iter().map(|choice| choice.method.to_string()).collect();
        assert_eq!(methods, ["native:openmpi:pipeline", "native:openmpi:binomial", "default"]);
        let [one] = unexpressed.as_slice() else { panic!("{unexpressed:?}") };
        assert_eq!((one.point.bytes, one.loss), (128, Some(3.0)));
        assert!(one.reason.contains("it has: linear, k-chain"), "{}", one.reason);
    }

    #[test]
    fn gather_gets_one_method_for_all_sizes_the_one_that_loses_least() {
        let exporter = exporter();
        let (linear, binomial) = ("native:openmpi:linear", "native:openmpi:binomial");
        let wanted = [
            choice(Collective::Gather, 1, linear, 1.0),
            choice(Collective::Gather, 2, binomial, 1.0),
            choice(Collective::Gather, 1000, binomial, 1.0),
        ];
        let (choices, unexpressed) = express_choices(&exporter, &wanted, &MadeUpTimes, &[]);
        assert!(choices.iter().all(|choice| choice.method.to_string() == binomial));
        let [one] = unexpressed.as_slice() else { panic!("{unexpressed:?}") };
        assert_eq!((one.point.bytes, one.loss), (1, Some(0.0)));
        assert!(one.reason.contains("not significant on every rank"), "{}", one.reason);
    }
}
