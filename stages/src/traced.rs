//! What an application uses, by a trace of the preload library: which points to tune, and how much
//! each matters.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    slice,
};

use anyhow::Result;
use records::{
    Collective, FileError, Layout, Point, document,
    profile::REPLACED,
    summary::{Application, Loading},
    usage::{Calls, Usage},
};
use tuning::{Weights, plan::Grid};

use crate::{compared::ComparedKinds, layouts::WantedLayouts, measuring};
use site::{ranks::Site, run_directory::file_or_in_run, usage};

/// Larger messages are not measured: their elements, single bytes, could not be counted.
const LARGEST: u64 = 1 << 30;

/// What a rank of a traced application does and spends, on average over its ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// At each point of the grid of powers of two.
    at: BTreeMap<Point, Use>,
    /// In all collectives, in seconds.
    collective_seconds: f64,
    /// From `MPI_Init` to `MPI_Finalize`, in seconds.
    seconds: f64,
}

/// What a rank does at a point, on average.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Use {
    /// How often it calls.
    calls: f64,
    /// What it spends in these calls, waiting for late ranks included.
    seconds: f64,
}

/// Reads a trace that has something to tune in it.
///
/// # Errors
/// It is none, is empty, or holds no call that a better method could replace.
pub fn read(path: &Path) -> Result<Usage> {
    let path = &file_or_in_run(path, "usage.json");
    let usage: Usage = document::read(path)?;
    let fault = |problem: &str| FileError::new(path, problem).in_field("calls");
    if usage.calls.is_empty() {
        return Err(fault(
            "is empty: the application called no collective of those that are traced between \
             MPI_Init and MPI_Finalize",
        )
        .into());
    }
    if !usage.calls.iter().any(is_tunable) {
        return Err(fault(
            "holds no call that can be tuned: expected one with data on two or more ranks, of \
             a collective that the preload library replaces",
        )
        .into());
    }
    Ok(usage)
}

fn is_tunable(calls: &Calls) -> bool {
    let has_data = calls.point.bytes > 0 || calls.point.collective == Collective::Barrier;
    calls.point.layout.procs() > 1
        && has_data
        && calls.point.bytes <= LARGEST
        && calls.seconds > 0.0
        && REPLACED.contains(&calls.point.collective)
}

impl Traced {
    /// For a job of `ranks` ranks, which holds no larger communicators.
    ///
    /// Calls of a size between two powers of two count for both, the more for the nearer (by the
    /// logarithm of their ratio): what is chosen at both then holds for the size between.
    ///
    /// # Errors
    /// Every call that can be tuned is on more processes than these.
    pub fn new(usage: &Usage, ranks: u32) -> Result<Self> {
        let collective_seconds = usage.collective_seconds();
        let mut traced = Traced { at: BTreeMap::new(), collective_seconds, seconds: usage.seconds };
        for calls in &usage.calls {
            let of_ranks = usage.share_of_ranks(calls);
            let seconds = calls.seconds * of_ranks;
            if is_tunable(calls) && calls.point.layout.procs() <= ranks {
                for (bytes, share) in neighbours(calls.point.bytes) {
                    let used = traced.at.entry(Point { bytes, ..calls.point }).or_default();
                    used.seconds += share * seconds;
                    used.calls += share * of_ranks * calls.calls as f64;
                }
            }
        }
        if traced.at.is_empty() {
            let fewest = usage
                .calls
                .iter()
                .filter(|calls| is_tunable(calls))
                .map(|c| c.point.layout.procs());
            usage!(
                "the trace's calls are on {} ranks and more, but a job has {ranks} ranks; give \
                 --ranks",
                fewest.min().unwrap_or_default()
            );
        }
        Ok(traced)
    }

    /// The points that the application uses and a job at the site has ranks and nodes for, and what is to be compared
    /// there.
    ///
    /// # Errors
    /// As [`measuring::grid`]; the site has nodes for none of them.
    pub fn grid(&self, site: &Site, kinds: &ComparedKinds, segments: Vec<u64>) -> Result<Grid> {
        let without = self.layouts_without_nodes(site);
        let mut held = self.at.keys().filter(|point| !without.contains(&point.layout)).peekable();
        if held.peek().is_none() {
            measuring::check_layouts(&without, site)?;
        }
        let held: Vec<Point> = held.copied().collect();
        let collectives = distinct(held.iter().map(|point| point.collective));
        let layouts = WantedLayouts::Layouts(distinct(held.iter().map(|point| point.layout)));
        let sizes = distinct(held.iter().map(|point| point.bytes));
        let grid = measuring::grid(site, kinds, &collectives, &layouts, sizes, segments)?;
        Ok(Grid { weights: self.weights(), ..grid })
    }

    /// Layouts of the application's communicators that a job at the site has no nodes for.
    pub fn layouts_without_nodes(&self, site: &Site) -> Vec<Layout> {
        let mut layouts = distinct(self.at.keys().map(|point| point.layout));
        layouts.retain(|layout| measuring::check_layouts(slice::from_ref(layout), site).is_err());
        layouts
    }

    /// How much each point matters.
    pub fn weights(&self) -> Weights {
        Weights::from_seconds(&self.at.iter().map(|(&point, used)| (point, used.seconds)).collect())
    }

    /// What is known of the application.
    pub fn application(&self, trace: String) -> Application {
        Application {
            trace,
            seconds: self.seconds,
            collective_seconds: self.collective_seconds,
            tunable_seconds: self.at.values().map(|used| used.seconds).sum(),
            turns: Vec::new(),
        }
    }

    /// How long the application is expected to run with something loaded, if every call gains from its
    /// first start to its last end what was measured. Nothing where that is more than it ran: then its
    /// calls overlap, and what one of them takes is not what the application waits for.
    ///
    /// It is not what a rank spends in the calls that is scaled: half of the ranks of a binomial reduce
    /// send one message and are through, while the program goes on when the last one is.
    pub fn seconds_with(&self, loading: &Loading) -> Option<f64> {
        let saved = loading.gains.iter().map(|gain| {
            let calls = self.at.get(&gain.point).map_or(0.0, |used| used.calls);
            calls * (gain.default_seconds - gain.tuned_seconds)
        });
        Some(self.seconds - saved.sum::<f64>()).filter(|seconds| *seconds > 0.0)
    }
}

fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.collect::<BTreeSet<T>>().into_iter().collect()
}

/// The powers of two around a size, with their shares of it; 0 and powers of two stand for
/// themselves.
fn neighbours(bytes: u64) -> Vec<(u64, f64)> {
    let below = match bytes.checked_ilog2() {
        Some(power) => 1_u64 << power,
        None => return vec![(0, 1.0)],
    };
    if below == bytes {
        return vec![(bytes, 1.0)];
    }
    let above = (bytes as f64 / below as f64).log2();
    vec![(below, 1.0 - above), (2 * below, above)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::Method;

    fn calls(collective: Collective, procs: u32, bytes: u64, seconds: f64) -> Calls {
        Calls {
            point: Point::flat(collective, procs, bytes),
            method: Method::Default,
            calls: 10,
            seconds,
        }
    }

    fn usage(calls: Vec<Calls>) -> Usage {
        // All of eight ranks count and time.
        let all = calls
            .into_iter()
            .flat_map(|call| vec![call.clone(); call.point.layout.procs() as usize]);
        Usage::of_all_ranks(8, "Open MPI".into(), 60.0, all)
    }

    fn point(procs: u32, bytes: u64) -> Point {
        Point::flat(Collective::Bcast, procs, bytes)
    }

    #[test]
    fn sizes_between_powers_of_two_count_for_both() {
        for (bytes, wanted) in [(0, vec![(0, 1.0)]), (1, vec![(1, 1.0)]), (64, vec![(64, 1.0)])] {
            assert_eq!(neighbours(bytes), wanted);
        }
        for bytes in [3, 1000, 1025, 65535, (1 << 30) - 1] {
            let [(below, a), (above, b)] = neighbours(bytes)[..] else { panic!("{bytes}") };
            assert!(below < bytes && bytes < above && above == 2 * below, "{bytes}");
            assert!((a + b - 1.0).abs() < 1e-12 && a > 0.0 && b > 0.0);
            // The shares of the logarithms give the size back.
            let middle = (below as f64).powf(a) * (above as f64).powf(b);
            assert!((middle / bytes as f64 - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_rank_spends_its_share_and_no_time_is_lost() {
        let usage = usage(vec![
            calls(Collective::Bcast, 8, 1 << 16, 4.0),
            calls(Collective::Bcast, 4, 1 << 16, 2.0),
            calls(Collective::Bcast, 8, 3 << 10, 1.0),
            calls(Collective::Allreduce, 1, 8, 3.0),
            calls(Collective::Bcast, 8, 0, 0.5),
        ]);
        let traced = Traced::new(&usage, 8).unwrap();
        assert_eq!(traced.at[&point(8, 1 << 16)], Use { calls: 10.0, seconds: 4.0 });
        let half = Use { calls: 5.0, seconds: 1.0 };
        assert_eq!(traced.at[&point(4, 1 << 16)], half, "half of the ranks are in it");
        assert_eq!(traced.at.len(), 4);
        let application = traced.application("x".into());
        assert!((application.tunable_seconds - 6.0).abs() < 1e-12);
        assert_eq!(application.collective_seconds, 4.0 + 1.0 + 1.0 + 3.0 / 8.0 + 0.5);
        assert!((traced.weights().at(point(8, 1 << 16)) - 4.0 / (6.0 / 4.0)).abs() < 1e-12);

        let smaller = Traced::new(&usage, 4).unwrap();
        assert_eq!(smaller.at.keys().collect::<Vec<_>>(), [&point(4, 1 << 16)]);
        let error = Traced::new(&usage, 3).unwrap_err().to_string();
        assert!(error.contains("on 4 ranks and more"), "{error}");
    }

    #[test]
    fn traces_without_anything_to_tune_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("usage.json");
        for (calls, wanted) in [
            (vec![], "is empty"),
            (vec![calls(Collective::Bcast, 1, 64, 1.0)], "no call that can be tuned"),
            (vec![calls(Collective::Gatherv, 8, 64, 1.0)], "no call that can be tuned"),
        ] {
            document::write(&path, &usage(calls)).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains("usage.json") && error.contains(wanted), "{error}");
        }
        std::fs::write(&path, "{\"schema\": \"colibri/plan/1\"}").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("expected colibri/usage/1"), "{error}");
        std::fs::remove_file(&path).unwrap();
        document::write(&path, &usage(vec![calls(Collective::Barrier, 2, 0, 1.0)])).unwrap();
        read(&path).unwrap();
    }
}
