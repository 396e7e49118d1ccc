//! Times an exchange of all ranks of a communicator by one of the schemes.

use std::thread::available_parallelism;

use runner::{Handle, Mpi};
use statistics::stopping::Rule;

use crate::{
    Error, Result,
    clock::{self, Nanos},
    margin::Margin,
    peers::Peers,
    repeating::{self, TimedSummary, repeat},
    scheme::{self, CallReport, Scheme, Start, TimedCall, TimingScheme},
    synchronisation::{ClockGroups, ClockLine, Synchroniser},
    table_communicator::TableCommunicator,
};

/// Times exchanges of the ranks of one communicator.
#[derive(Debug)]
pub struct Stopwatch {
    comm: TableCommunicator,
    scheme: Scheme,
    /// Where clocks are compared.
    synchroniser: Option<Synchroniser<TableCommunicator>>,
    resolution_seconds: f64,
}

/// What a rank tells of itself: its clock, its machine, the machine's processors, its clock's smallest step.
type AboutRank = (String, String, usize, f64);

/// What all ranks then know: by whose clock each goes, whether all can watch a clock, the coarsest clock's
/// smallest step in seconds.
type AboutAll = (Vec<u32>, bool, f64);

fn about_all(ranks: &[AboutRank]) -> AboutAll {
    let first = |clock: &str| ranks.iter().position(|rank| rank.0 == clock).unwrap_or_default();
    let first_of = ranks.iter().map(|rank| first(&rank.0) as u32).collect();
    let fits = |(_, machine, processors, _): &AboutRank| {
        ranks.iter().filter(|rank| rank.1 == *machine).count() <= *processors
    };
    let resolution = ranks.iter().map(|rank| rank.3).fold(0.0, f64::max);
    (first_of, ranks.iter().all(fits), resolution)
}

impl Stopwatch {
    /// For the ranks of a communicator, all of which must call this. Where the scheme compares clocks that
    /// are not one, these are synchronised, which takes a second.
    ///
    /// # Safety
    /// `of` must be a communicator of the table's library, which must be initialised.
    ///
    /// # Errors
    /// The library refuses; the scheme needs two ranks.
    pub unsafe fn new(mpi: &Mpi, of: Handle, timing: TimingScheme) -> Result<Self> {
        // SAFETY: `of` is a communicator of the initialised library, and all its ranks are here (contract of
        // this function).
        let comm = unsafe { TableCommunicator::new(mpi, of)? };
        if timing == TimingScheme::Bcast && comm.size() < 2 {
            let problem = "the timing scheme bcast needs a rank that confirms: at least 2 ranks";
            return Err(Error::Refused(problem.into()));
        }
        let processors = available_parallelism().map_or(1, usize::from);
        let resolution = clock::resolution_seconds();
        let own = (clock::identity(), clock::machine(), processors, resolution);
        let of_ranks = comm.collect(own)?;
        let (first_of, watched, resolution_seconds) = comm.agree(about_all(&of_ranks))?;
        let scheme = Scheme { timing, watched };
        let mut synchroniser = None;
        if scheme.compares_clocks() {
            let has_referee = vec![false; first_of.len()];
            // SAFETY: as above.
            let apart = unsafe { TableCommunicator::new(mpi, comm.handle())? };
            let mut made = Synchroniser::new(apart, ClockGroups { first_of, has_referee });
            made.begin()?;
            synchroniser = Some(made);
        }
        Ok(Stopwatch { comm, scheme, synchroniser, resolution_seconds })
    }

    /// The ranks, on a communicator of their own.
    pub fn comm(&self) -> &TableCommunicator {
        &self.comm
    }

    /// The scheme in words, for a record.
    pub fn description(&self) -> String {
        let is_shared = self.synchroniser.as_ref().is_none_or(Synchroniser::is_exact);
        self.scheme.description(is_shared)
    }

    /// Makes the exchange once, not timed (it pays for connections), and then until the rule is content with
    /// its times. Every rank must call this, and gets the same summary; rank 0 sees each timed call in
    /// `observed`.
    ///
    /// # Errors
    /// The rule can't be followed; the library refuses; the exchange fails.
    pub fn time(
        &mut self,
        rule: &Rule,
        mut exchange: impl FnMut() -> Result<()>,
        mut observed: impl FnMut(TimedCall) -> Result<()>,
    ) -> Result<TimedSummary> {
        repeating::check(rule)?;
        if let Some(synchroniser) = &mut self.synchroniser
            && !synchroniser.is_exact()
        {
            synchroniser.pass()?;
        }
        exchange()?;
        let rule = Rule { resolution_seconds: self.resolution_seconds, ..*rule };
        let baseline = scheme::baseline(self.scheme, &self.comm)?;
        let mut margin = Margin::new(self.comm.size());
        let this = &*self;
        repeat(&this.comm, &rule, |calls| {
            let mut timed = Vec::new();
            if this.scheme.calls_in_a_row() {
                let own = (0..calls).map(|_| this.call(Start::default(), &mut exchange));
                let reports = this.comm.collect(own.collect::<Result<Vec<_>>>()?)?;
                // Rank 0 has one list of each rank, with a report of each call.
                for number in 0..reports.first().map_or(0, Vec::len) {
                    let of_call: Vec<CallReport> =
                        reports.iter().map(|rank| rank[number]).collect();
                    timed.extend(scheme::combine(this.scheme, Start::default(), &[], &of_call));
                }
            } else {
                for _ in 0..calls {
                    timed.extend(this.one_by_one(&mut margin, &baseline, &mut exchange)?);
                }
            }
            timed.into_iter().map(|call| observed(call).map(|()| call.seconds)).collect()
        })
    }

    /// One repetition of a scheme in which rank 0 says how each call begins or ends.
    fn one_by_one(
        &self,
        margin: &mut Margin,
        baseline: &[Nanos],
        exchange: &mut impl FnMut() -> Result<()>,
    ) -> Result<Option<TimedCall>> {
        let replies = match self.scheme.timing {
            TimingScheme::Bcast => 1..self.comm.size(),
            _ => 0..1,
        };
        let mut longest: Option<TimedCall> = None;
        for reply in replies {
            let agreed = match self.scheme.timing {
                TimingScheme::Global => self.comm.agree(margin.agree())?,
                _ => 0,
            };
            let start = Start { agreed, reply };
            let reports = self.comm.collect(self.call(start, exchange)?)?;
            margin.learn(&reports);
            let call = scheme::combine(self.scheme, start, baseline, &reports);
            let is_longer = |call: &TimedCall| longest.is_none_or(|it| call.seconds > it.seconds);
            longest = call.filter(is_longer).or(longest);
        }
        Ok(longest)
    }

    fn call(&self, start: Start, exchange: &mut impl FnMut() -> Result<()>) -> Result<CallReport> {
        let line = self.synchroniser.as_ref().map_or(ClockLine::EXACT, Synchroniser::line);
        scheme::call(self.scheme, &self.comm, self.comm.size(), &line, start, exchange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_one_clock_keep_one_line_and_watch_it_where_they_fit() {
        let rank =
            |clock: &str, processors, step| (clock.to_owned(), clock.to_owned(), processors, step);
        let told = [rank("a", 2, 1e-9), rank("b", 1, 4e-9), rank("a", 2, 1e-9)];
        assert_eq!(about_all(&told), (vec![0, 1, 0], true, 4e-9));
        let crowded = [rank("a", 2, 1e-9), rank("b", 1, 1e-9), rank("b", 1, 1e-9)];
        assert_eq!(about_all(&crowded), (vec![0, 1, 1], false, 1e-9));
    }
}
