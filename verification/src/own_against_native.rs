//! The best of Colibri's own methods against the best of the MPI library's.

use records::{Method, Point};
use statistics::{PairedJobs, family_wise_control, midmean};

use choosing::samples::Samples;

/// An own method that takes more than so many times what the library's takes is behind.
pub const BEHIND: f64 = 1.03;
/// Level of the test whether it is.
const LEVEL: f64 = 0.05;

/// The best of both kinds at a point. Each is chosen by one half of the jobs and timed by the other, both
/// ways.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnAgainstNative {
    pub point: Point,
    /// The best of ours by all jobs.
    pub own: Method,
    /// The best of the library's by all jobs.
    pub native: Method,
    /// What ours takes, in seconds: geometric mean over the jobs.
    pub own_seconds: f64,
    /// Time of ours over that of the library's: geometric mean over the jobs.
    pub ratio: f64,
    /// Whether jobs show that the ratio is above [`BEHIND`] (family-wise over all points, at 5 %).
    pub is_behind: bool,
}

/// The kinds of methods that are compared.
const KINDS: [fn(&Method) -> bool; 2] = [Method::is_own, Method::is_native];

/// All points at which both kinds were measured, in at least two jobs.
pub fn own_against_native(jobs: &[Samples]) -> Vec<OwnAgainstNative> {
    let points = jobs.iter().flat_map(Samples::points);
    let points: std::collections::BTreeSet<Point> = points.collect();
    let compared = points.into_iter().filter_map(|point| compare(jobs, point));
    let (mut all, p_values): (Vec<_>, Vec<f64>) = compared.unzip();
    let corrected = family_wise_control(&p_values);
    for (one, p_value) in all.iter_mut().zip(corrected) {
        one.is_behind = p_value < LEVEL;
    }
    all
}

/// The comparison at one point, and the probability of its ratio if ours were not behind.
fn compare(jobs: &[Samples], point: Point) -> Option<(OwnAgainstNative, f64)> {
    let of_half = |odd: usize| jobs.iter().skip(odd).step_by(2).collect::<Vec<_>>();
    let halves = [of_half(0), of_half(1)];
    let mut pairs = Vec::new();
    for (choosing, timing) in [(&halves[0], &halves[1]), (&halves[1], &halves[0])] {
        let [own, native] = KINDS.map(|kind| best(choosing, point, kind));
        let [own, native] = [own?, native?];
        pairs.extend(timing.iter().filter_map(|job| {
            let time = |method| job.get(point, method)?.midmean();
            Some([time(native)?, time(own)?])
        }));
    }
    let all: Vec<&Samples> = jobs.iter().collect();
    let [own, native] = KINDS.map(|kind| best(&all, point, kind));
    let own_seconds: Vec<f64> = pairs.iter().map(|[_, own]| *own).collect();
    let ratios = PairedJobs::new(&pairs);
    let compared = OwnAgainstNative {
        point,
        own: own?.clone(),
        native: native?.clone(),
        own_seconds: statistics::geometric_mean(&own_seconds)?,
        ratio: ratios.ratio()?,
        is_behind: false,
    };
    Some((compared, ratios.p_value_above(BEHIND)))
}

/// The method of a kind with the least midmean over some jobs.
fn best<'a>(jobs: &[&'a Samples], point: Point, kind: fn(&Method) -> bool) -> Option<&'a Method> {
    let methods = jobs.first()?.well_visited(point).map(|(method, _)| method);
    let seconds = |method: &Method| {
        let times = jobs.iter().map(|job| Some(job.get(point, method)?.seconds()));
        midmean(&times.collect::<Option<Vec<_>>>()?.concat())
    };
    let timed = methods.filter(|method| kind(method));
    let timed = timed.filter_map(|method| Some((method, seconds(method)?)));
    timed.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(method, _)| method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::call;

    /// A job in which two own methods, one of the library and the default take these times.
    fn job(times: [f64; 4]) -> Samples {
        let methods =
            ["own:binomial", "own:fitted,trip=2,gap=1", "native:openmpi:linear", "default"];
        let rows = methods.into_iter().zip(times).map(|(method, time)| call(method, "", 64, time));
        Samples::gather(&rows.collect::<Vec<_>>(), libraries::ran_as_asked)
    }

    #[test]
    fn the_best_of_one_half_of_the_jobs_is_timed_by_the_other() {
        // By the first and third job the binomial tree is the best of ours, by the others the fitted one.
        let jobs = [[1.0, 3.0, 2.0, 0.1], [4.0, 1.0, 2.0, 0.1]];
        let jobs: Vec<Samples> = [jobs[0], jobs[1], jobs[0], jobs[1]].map(job).into();
        let [found] = own_against_native(&jobs).try_into().unwrap();
        assert_eq!(found.own.to_string(), "own:fitted,trip=2,gap=1");
        assert_eq!(found.native.to_string(), "native:openmpi:linear");
        // 4 / 2 in two jobs, 3 / 2 in the others.
        assert!((found.ratio - 3.0_f64.sqrt()).abs() < 1e-12, "{}", found.ratio);
        assert!((found.own_seconds - 12.0_f64.sqrt()).abs() < 1e-12, "{}", found.own_seconds);
    }

    #[test]
    fn behind_is_what_jobs_show_to_be_behind() {
        let found = |ours: [f64; 4]| {
            let jobs = ours.map(|own| job([own, 9.0, 1.0, 1.0]));
            own_against_native(&jobs)[0].is_behind
        };
        assert!(found([1.10, 1.11, 1.09, 1.10]));
        assert!(!found([1.02, 1.03, 1.02, 1.01]), "by no more than 3 %");
        assert!(!found([0.8, 1.5, 0.9, 1.4]), "jobs differ by more than that");
    }

    #[test]
    fn one_job_or_one_kind_shows_nothing() {
        assert!(own_against_native(&[job([1.0; 4])]).is_empty());
        let natives =
            Samples::gather(&[call("native:openmpi:linear", "", 64, 1.0)], libraries::ran_as_asked);
        assert!(own_against_native(&[natives.clone(), natives]).is_empty());
    }
}
