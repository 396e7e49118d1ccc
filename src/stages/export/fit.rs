//! Fits decisions to what a target can be told, and books what that costs.

use std::collections::BTreeMap;

use libraries::Exporter;
use records::{Method, Point, export::Unexpressed};
use verification::selection::Choice;

/// What is known of the methods that a target could take instead.
pub trait Possible {
    /// The best method at a point that the target can be told, and its time where it is known.
    fn best(&self, point: Point) -> (Method, Option<f64>);

    /// The time of a method at a point, where it is known.
    fn seconds(&self, point: Point, method: &Method) -> Option<f64>;
}

/// The decisions as the target can be told them, and those that it can't.
///
/// Where one method has to serve for all sizes of a collective, it is the one that loses least on
/// geometric average over the sizes decided.
pub fn fit(
    exporter: &dyn Exporter,
    wanted: &[Choice],
    possible: &dyn Possible,
) -> (Vec<Choice>, Vec<Unexpressed>) {
    let mut fitted: Vec<NearestMethod> = wanted
        .iter()
        .map(|choice| {
            let mut fitted = NearestMethod {
                method: choice.method.clone(),
                seconds: Some(choice.seconds),
                reason: None,
            };
            if choice.method != Method::Default
                && let Err(reason) = exporter.express(choice.point, &choice.method)
            {
                let (method, seconds) = possible.best(choice.point);
                fitted = NearestMethod { method, seconds, reason: Some(reason) };
            }
            fitted
        })
        .collect();
    unify(exporter, wanted, &mut fitted, possible);
    let unexpressed = wanted.iter().zip(&fitted).filter_map(|(choice, fitted)| {
        let Point { collective, procs, bytes } = choice.point;
        Some(Unexpressed {
            collective,
            procs,
            bytes,
            method: choice.method.clone(),
            seconds: choice.seconds,
            reason: fitted.reason.clone()?,
            exported: fitted.method.clone(),
            exported_seconds: fitted.seconds,
            loss: fitted.seconds.map(|seconds| seconds / choice.seconds - 1.0),
        })
    });
    let unexpressed = unexpressed.collect();
    let choices = wanted.iter().zip(fitted).map(|(choice, fitted)| Choice {
        method: fitted.method,
        seconds: fitted.seconds.unwrap_or(choice.default_seconds),
        ..choice.clone()
    });
    (choices.collect(), unexpressed)
}

struct NearestMethod {
    method: Method,
    seconds: Option<f64>,
    /// Why it is not what was wanted.
    reason: Option<String>,
}

/// One method for all sizes, where the target has no more.
fn unify(
    exporter: &dyn Exporter,
    wanted: &[Choice],
    fitted: &mut [NearestMethod],
    possible: &dyn Possible,
) {
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, choice) in wanted.iter().enumerate() {
        if exporter.one_for_all_sizes(choice.point.collective).is_some() {
            groups.entry((choice.point.collective, choice.point.procs)).or_default().push(index);
        }
    }
    for ((collective, _), members) in groups {
        let Some(reason) = exporter.one_for_all_sizes(collective) else { continue };
        let seconds = |index: usize, method: &Method| match &fitted[index] {
            NearestMethod { method: own, seconds: Some(seconds), .. } if own == method => {
                Some(*seconds)
            }
            _ => possible.seconds(wanted[index].point, method),
        };
        let allowed = |index: usize, method: &Method| {
            *method == Method::Default || exporter.express(wanted[index].point, method).is_ok()
        };
        // The least loss; where times are not known, what was decided most often.
        let loss = |method: &Method| {
            let losses = members
                .iter()
                .map(|&index| Some((seconds(index, method)? / wanted[index].seconds).ln()));
            losses.sum::<Option<f64>>().unwrap_or(f64::INFINITY)
        };
        let decided = |method: &Method| {
            members.iter().filter(|&&index| fitted[index].method == *method).count()
        };
        let mut methods: Vec<Method> =
            members.iter().map(|&index| fitted[index].method.clone()).collect();
        methods.push(Method::Default);
        methods.retain(|method| members.iter().all(|&index| allowed(index, method)));
        let best = methods
            .iter()
            .min_by(|a, b| loss(a).total_cmp(&loss(b)).then(decided(b).cmp(&decided(a))));
        let Some(best) = best.cloned() else { continue };
        let times: Vec<Option<f64>> = members.iter().map(|&index| seconds(index, &best)).collect();
        for (&index, seconds) in members.iter().zip(times) {
            if fitted[index].method != best {
                let reason = Some(format!("{reason}; one method serves for all sizes"));
                fitted[index] = NearestMethod { method: best.clone(), seconds, reason };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libraries::MpiLibrary;
    use records::Collective;

    fn exporter() -> Box<dyn Exporter> {
        (libraries::openmpi::OpenMpiLibrary.formats()[0].exporter)(None, None).unwrap()
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

    fn choice(collective: Collective, bytes: u64, method: &str, seconds: f64) -> Choice {
        let point = Point { collective, procs: 8, bytes };
        Choice { point, method: method.parse().unwrap(), seconds, default_seconds: 9.0 }
    }

    #[test]
    fn what_cannot_be_told_is_replaced_and_its_cost_is_booked() {
        let exporter = exporter();
        let wanted = [
            choice(Collective::Bcast, 64, "native:openmpi:pipeline", 0.5),
            choice(Collective::Bcast, 128, "own:pipeline", 0.25),
            choice(Collective::Bcast, 256, "default", 9.0),
        ];
        let (choices, unexpressed) = fit(exporter.as_ref(), &wanted, &MadeUpTimes);
        let methods: Vec<_> = choices.iter().map(|choice| choice.method.to_string()).collect();
        assert_eq!(methods, ["native:openmpi:pipeline", "native:openmpi:binomial", "default"]);
        let [one] = unexpressed.as_slice() else { panic!("{unexpressed:?}") };
        assert_eq!((one.bytes, one.loss), (128, Some(3.0)));
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
        let (choices, unexpressed) = fit(exporter.as_ref(), &wanted, &MadeUpTimes);
        assert!(choices.iter().all(|choice| choice.method.to_string() == binomial));
        let [one] = unexpressed.as_slice() else { panic!("{unexpressed:?}") };
        assert_eq!((one.bytes, one.loss), (1, Some(0.0)));
        assert!(one.reason.contains("not significant on every rank"), "{}", one.reason);
    }
}
