use std::fmt;

use records::{Algorithm, Collective};
use schedules::Entry;

use crate::{Error, Result};

/// An algorithm of one collective with its parameters.
#[derive(Debug, Clone, Copy)]
pub struct OwnMethod {
    pub(crate) entry: &'static Entry,
    segment_bytes: u64,
    fan_out: u32,
}

impl OwnMethod {
    /// The number of chains of k-chain and the radix of k-nomial: what Open MPI has by default.
    const FAN_OUT: u32 = 4;

    /// An algorithm with segments of so many bytes; 0 means one segment.
    ///
    /// # Errors
    /// The collective has no such algorithm, or it has no segments; says what there is.
    pub fn new(collective: Collective, algorithm: Algorithm, segment_bytes: u64) -> Result<Self> {
        let entry = schedules::find(collective, algorithm).ok_or_else(|| {
            let known: Vec<&str> =
                schedules::of_collective(collective).map(|entry| entry.name).collect();
            let known = known.join(", ");
            Error::Refused(format!("{collective} has no algorithm {algorithm} (known: {known})"))
        })?;
        OwnMethod::from_entry(entry, segment_bytes)
    }

    /// A form of an algorithm; see [`OwnMethod::new`].
    ///
    /// # Errors
    /// The algorithm has no segments.
    pub fn from_entry(entry: &'static Entry, segment_bytes: u64) -> Result<Self> {
        if segment_bytes > 0 && !entry.segmented {
            return Err(Error::Refused(format!(
                "{} {} has no segments; expected a segment size of 0",
                entry.collective, entry.name
            )));
        }
        Ok(OwnMethod { entry, segment_bytes, fan_out: Self::FAN_OUT })
    }

    /// What it is for.
    pub fn collective(&self) -> Collective {
        self.entry.collective
    }

    /// Whether it can run on so many ranks at all.
    ///
    /// # Errors
    /// It needs an even number of ranks.
    pub fn check_ranks(&self, ranks: u32) -> Result<()> {
        if self.entry.requirements.even && ranks > 1 && !ranks.is_multiple_of(2) {
            let problem = format!("{self} needs an even number of ranks; got {ranks}");
            return Err(Error::Refused(problem));
        }
        Ok(())
    }

    /// Elements per segment: as many whole elements as fit, at least one; 0 means one segment.
    pub(crate) fn segment(&self, element_bytes: u64) -> u64 {
        match (self.segment_bytes, element_bytes) {
            (0, _) | (_, 0) => 0,
            (segment, element) => (segment / element).max(1),
        }
    }

    pub(crate) fn fan_out(&self) -> u32 {
        self.fan_out
    }
}

impl PartialEq for OwnMethod {
    fn eq(&self, other: &Self) -> bool {
        let parameters = |method: &OwnMethod| (method.segment_bytes, method.fan_out);
        std::ptr::eq(self.entry, other.entry) && parameters(self) == parameters(other)
    }
}

/// `own:pipeline(segment=8192)`, `own:linear`: what is recorded as having run.
impl fmt::Display for OwnMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "own:{}", self.entry.name)?;
        if self.segment_bytes > 0 {
            write!(f, "(segment={})", self.segment_bytes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_hold_whole_elements() {
        let method = OwnMethod::new(Collective::Reduce, Algorithm::Pipeline, 100).unwrap();
        assert_eq!([8, 100, 101, 0].map(|bytes| method.segment(bytes)), [12, 1, 1, 0]);
        let method = OwnMethod::new(Collective::Reduce, Algorithm::Pipeline, 0).unwrap();
        assert_eq!(method.segment(8), 0);
    }

    #[test]
    fn a_method_that_is_none_is_refused_with_what_there_is() {
        let error = OwnMethod::new(Collective::Bcast, Algorithm::Bruck, 0).unwrap_err().to_string();
        assert!(error.contains("known: binary"), "{error}");
        let error =
            OwnMethod::new(Collective::Reduce, Algorithm::Rabenseifner, 8).unwrap_err().to_string();
        assert!(error.contains("no segments"), "{error}");
    }

    #[test]
    fn what_ran_is_written_as_the_tracer_does() {
        let method = OwnMethod::new(Collective::Bcast, Algorithm::Pipeline, 8192).unwrap();
        assert_eq!(method.to_string(), "own:pipeline(segment=8192)");
        let method = OwnMethod::new(Collective::Bcast, Algorithm::Linear, 0).unwrap();
        assert_eq!(method.to_string(), "own:linear");
    }
}
