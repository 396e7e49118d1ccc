//! What the jobs of a confirming round show.

use records::{
    Method, Point,
    observation::CollectiveCall,
    summary::{Harm, Way},
};
use verification::{
    harm::{self, Compared},
    samples::Samples,
    selection::Choice,
};

/// The jobs of a round.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfirmingRound {
    /// The default's times without anything loaded.
    pub default: Samples,
    /// With something loaded, for each way of loading that replaces the default anywhere.
    pub loaded: Vec<LoadedTimes>,
    /// What all jobs spent, in seconds.
    pub spent: f64,
}

/// What was seen with something loaded.
#[derive(Debug, Clone)]
pub(crate) struct LoadedTimes {
    pub way: Way,
    pub samples: Samples,
    pub rows: Vec<CollectiveCall>,
}

impl ConfirmingRound {
    /// What the default takes without and with something loaded, in seconds: midmeans, since a call may
    /// have two modes, and a program meets both.
    pub fn times(&self, way: Way, point: Point) -> Option<(f64, f64)> {
        let time = |samples: &Samples| samples.get(point, &Method::Default)?.midmean();
        time(&self.default).zip(time(self.loaded(way)?))
    }

    /// The default's times with something loaded.
    pub fn loaded(&self, way: Way) -> Option<&Samples> {
        self.loaded.iter().find(|loaded| loaded.way == way).map(|loaded| &loaded.samples)
    }

    /// Whether what was loaded made calls slower where it replaces the default; nothing where
    /// nothing was loaded.
    pub fn harm<'c>(&self, way: Way, replaced: impl Iterator<Item = &'c Choice>) -> Option<Harm> {
        let loaded = self.loaded(way)?;
        let compared = |choice: &Choice| {
            let times = |samples: &Samples| {
                Some(samples.get(choice.point, &Method::Default)?.seconds().to_vec())
            };
            Some(Compared {
                point: choice.point,
                method: choice.method.clone(),
                default: times(&self.default)?,
                loaded: times(loaded)?,
            })
        };
        Some(harm::judge(&replaced.filter_map(compared).collect::<Vec<_>>()))
    }

    /// Every call made with something loaded.
    pub fn rows(&self, way: Way) -> impl Iterator<Item = &CollectiveCall> {
        let loaded = self.loaded.iter().filter(move |loaded| loaded.way == way);
        loaded.flat_map(|loaded| &loaded.rows)
    }
}
