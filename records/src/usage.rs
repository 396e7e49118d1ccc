//! `usage.json`: which collectives an application called, how often, how long, and what ran.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::IgnoredAny};

use crate::{Method, Point, document::Document, number::check_procs};

/// An application's collectives between `MPI_Init` and `MPI_Finalize`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Checked and written by [`document`](crate::document); named here since no other field may
    /// stand in the file.
    #[serde(default, skip_serializing)]
    schema: IgnoredAny,
    /// The processes of the application.
    pub procs: u32,
    /// The MPI library.
    pub library: String,
    /// From `MPI_Init` to `MPI_Finalize`, on the first rank.
    pub seconds: f64,
    /// One entry for each kind of call; the longest time first.
    pub calls: Vec<Calls>,
}

/// Calls of one collective with one message size on communicators of one size by one method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    #[serde(flatten)]
    pub point: Point,
    /// What really ran.
    pub method: Method,
    /// How often; a call of all ranks of a communicator counts once.
    pub calls: u64,
    /// The time of all these calls together, the mean of the ranks.
    pub seconds: f64,
}

impl Document for Usage {
    const SCHEMA: &'static str = "colibri/usage/1";

    fn validate(&self) -> Result<(), (String, String)> {
        if self.seconds < 0.0 {
            return Err(("seconds".into(), format!("is {}; expected 0 or more", self.seconds)));
        }
        for (index, calls) in self.calls.iter().enumerate() {
            check_procs(calls.point.layout.procs())
                .map_err(|problem| (format!("calls[{index}].procs"), problem))?;
            if calls.seconds < 0.0 {
                let problem = format!("is {}; expected 0 or more", calls.seconds);
                return Err((format!("calls[{index}].seconds"), problem));
            }
        }
        Ok(())
    }
}

impl Usage {
    /// What a rank spends in collectives, on average over the ranks, in seconds. A call is on a communicator
    /// of some of them; the others spend nothing on it.
    pub fn collective_seconds(&self) -> f64 {
        self.calls.iter().map(|calls| calls.seconds * self.share_of_ranks(calls)).sum()
    }

    /// The share of all ranks that is in the calls.
    pub fn share_of_ranks(&self, calls: &Calls) -> f64 {
        f64::from(calls.point.layout.procs()) / f64::from(self.procs.max(1))
    }

    /// From what every rank has counted and timed of its own calls.
    pub fn of_all_ranks(
        procs: u32,
        library: String,
        seconds: f64,
        counted: impl IntoIterator<Item = Calls>,
    ) -> Self {
        let mut sums: BTreeMap<(Point, Method), (u64, f64)> = BTreeMap::new();
        for one in counted {
            let (calls, seconds) = sums.entry((one.point, one.method)).or_default();
            *calls = calls.saturating_add(one.calls);
            *seconds += one.seconds;
        }
        let calls = sums.into_iter().map(|((point, method), (calls, seconds))| {
            let ranks = point.procs().max(1);
            let calls = calls.div_ceil(u64::from(ranks));
            Calls { point, method, calls, seconds: seconds / f64::from(ranks) }
        });
        let mut calls: Vec<Calls> = calls.collect();
        calls.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Usage { schema: IgnoredAny, procs, library, seconds, calls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collective;
    use crate::document;

    fn calls(procs: u32, bytes: u64, calls: u64, seconds: f64) -> Calls {
        let method = "own:binomial".parse().unwrap();
        Calls { point: Point::flat(Collective::Bcast, procs, bytes), method, calls, seconds }
    }

    /// Three ranks; two of them share a communicator as well.
    #[test]
    fn a_call_of_all_ranks_counts_once() {
        let counted = vec![
            calls(3, 8, 10, 1.0),
            calls(3, 8, 10, 2.0),
            calls(3, 8, 10, 6.0),
            calls(2, 8, 7, 9.0),
            calls(2, 8, 7, 11.0),
        ];
        let usage = Usage::of_all_ranks(3, "Open MPI".into(), 60.0, counted);
        assert_eq!(usage.calls, [calls(2, 8, 7, 10.0), calls(3, 8, 10, 3.0)]);
    }

    #[test]
    fn what_is_written_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("usage.json");
        let usage = Usage::of_all_ranks(1, "MPICH".into(), 1.5, vec![calls(1, 8, 10, 1.0)]);
        document::write(&path, &usage).unwrap();
        assert_eq!(document::read::<Usage>(&path).unwrap(), usage);
        let text = std::fs::read_to_string(&path).unwrap().replace("\"procs\": 1", "\"procs\": 0");
        let error = document::parse::<Usage>(&text, &path).unwrap_err().to_string();
        assert!(error.contains("procs: is 0"), "{error}");
        for (seconds, wanted) in [("1.7e308", "calls[0].seconds: is 1.7e308"), ("-1", "is -1")] {
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.replace("\"seconds\": 1.0", &format!("\"seconds\": {seconds}"));
            let error = document::parse::<Usage>(&text, &path).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
