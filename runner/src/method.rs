use std::fmt;

use records::{Algorithm, Collective, NodeAware, ParametrizedAlgorithm, TreePace};
use schedules::{
    Call, Entry, SHARED, find_node_aware, find_part, find_part_inside, find_shared, parts,
};

use crate::{Error, Result};

/// An algorithm of one collective with its parameters.
#[derive(Debug, Clone, Copy)]
pub struct OwnMethod {
    pub(crate) entry: &'static Entry,
    pub(crate) segment_bytes: u64,
    fan_out: u32,
    /// As [`Call::pace`].
    pace: TreePace,
    /// As [`Call::inter`].
    inter: Option<Algorithm>,
    /// As [`Call::intra`].
    intra: Option<Algorithm>,
}

impl OwnMethod {
    /// An algorithm with segments of so many bytes; 0 means one segment.
    ///
    /// # Errors
    /// The collective has no such algorithm, or it has no segments; says what there is.
    pub fn new(collective: Collective, algorithm: Algorithm, segment_bytes: u64) -> Result<Self> {
        let found = schedules::find(collective, algorithm);
        let entry = found.or_else(|| find_shared(collective, algorithm)).ok_or_else(|| {
            let shared = SHARED.iter().filter(|entry| entry.collective == collective);
            let known: Vec<&str> = schedules::of_collective(collective)
                .chain(shared)
                .map(|entry| entry.name)
                .collect();
            let known = known.join(", ");
            Error::Refused(format!("{collective} has no algorithm {algorithm} (known: {known})"))
        })?;
        OwnMethod::from_entry(entry, segment_bytes)
    }

    /// An algorithm with a fan-out of its own, or made for a network.
    ///
    /// # Errors
    /// As [`OwnMethod::new`], or it has no fan-out, or one that the algorithm can't do.
    pub fn shaped(collective: Collective, method: &ParametrizedAlgorithm) -> Result<Self> {
        let ParametrizedAlgorithm { algorithm, fan_out, pace, segment_bytes } = *method;
        let plain = OwnMethod::new(collective, algorithm, segment_bytes)?;
        if !plain.entry.fanned {
            let problem = format!("{method}: {collective} {algorithm} has no fan-out");
            return Err(Error::Refused(problem));
        }
        let fan_out = if fan_out == 0 { plain.fan_out } else { fan_out };
        let least = plain.entry.min_fan_out();
        if fan_out < least {
            let problem = format!("{method}: fan-out {fan_out}; expected at least {least}");
            return Err(Error::Refused(problem));
        }
        Ok(OwnMethod { fan_out, pace, ..plain })
    }

    /// Algorithms composed by the nodes of the ranks.
    ///
    /// # Errors
    /// The collective has no such composition, no phase of it has an algorithm of the name, or there
    /// are no segments; says what there is.
    pub fn node_aware(collective: Collective, method: &NodeAware) -> Result<Self> {
        let NodeAware { scheme, inter, intra, segment_bytes } = *method;
        let refuse = |problem: String| Err(Error::Refused(format!("{method}: {problem}")));
        let Some(entry) = find_node_aware(collective, scheme) else {
            return refuse(format!("there is no {scheme} of {collective}"));
        };
        let (between, inside) = parts(entry);
        let is_between = |algorithm: &Algorithm| find_part(between, *algorithm).is_some();
        let is_inside = |algorithm: &Algorithm| find_part_inside(inside, *algorithm).is_some();
        for (unknown, parts, shared) in [
            (inter.filter(|named| !is_between(named)), between, &[][..]),
            (intra.filter(|named| !is_inside(named)), inside, SHARED),
        ] {
            if let Some(algorithm) = unknown {
                let shared = shared.iter().filter(|entry| parts.contains(&entry.collective));
                let names: Vec<&str> = parts
                    .iter()
                    .flat_map(|part| schedules::of_collective(*part))
                    .chain(shared)
                    .map(|entry| entry.name)
                    .collect();
                let (of, names) = (parts.first().copied().unwrap_or(collective), names.join(", "));
                return refuse(format!("{of} has no algorithm {algorithm} (known: {names})"));
            }
        }
        // Renumbered ranks run an algorithm that may have no segments.
        let has_segments = match (scheme, inter.and_then(|inter| find_part(between, inter))) {
            (Algorithm::NodeOrder, Some(inner)) => inner.segmented,
            _ => entry.segmented,
        };
        if segment_bytes > 0 && !has_segments {
            return refuse("it has no segments; expected a segment size of 0".into());
        }
        Ok(OwnMethod { inter, intra, ..OwnMethod::plain(entry, segment_bytes) })
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
        Ok(OwnMethod::plain(entry, segment_bytes))
    }

    fn plain(entry: &'static Entry, segment_bytes: u64) -> Self {
        let fan_out = ParametrizedAlgorithm::standard_fan_out(entry.algorithm);
        OwnMethod { entry, segment_bytes, fan_out, pace: TreePace::EVEN, inter: None, intra: None }
    }

    fn shape(&self) -> ParametrizedAlgorithm {
        let (algorithm, fan_out) = (self.entry.algorithm, self.fan_out);
        ParametrizedAlgorithm {
            algorithm,
            fan_out,
            pace: self.pace,
            segment_bytes: self.segment_bytes,
        }
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

    /// Whether it looks at the nodes of the ranks, which have to be found before it runs.
    pub(crate) fn is_node_aware(&self) -> bool {
        self.entry.is_node_aware()
    }

    /// Whether ranks of a node carry it out, or a part of it, through memory that they share.
    pub(crate) fn uses_shared_memory(&self) -> bool {
        self.entry.shares_memory() || self.intra.is_some_and(Algorithm::shares_memory)
    }

    /// A call with what the method says of it.
    pub(crate) fn apply<'a>(&self, call: Call<'a>, element_bytes: u64) -> Call<'a> {
        Call {
            segment: self.segment(element_bytes),
            fan_out: self.fan_out,
            pace: self.pace,
            inter: self.inter,
            intra: self.intra,
            ..call
        }
    }

    /// Elements per segment: as many whole elements as fit, at least one; 0 means one segment.
    fn segment(&self, element_bytes: u64) -> u64 {
        match (self.segment_bytes, element_bytes) {
            (0, _) | (_, 0) => 0,
            (segment, element) => (segment / element).max(1),
        }
    }
}

impl PartialEq for OwnMethod {
    fn eq(&self, other: &Self) -> bool {
        let parameters = |method: &OwnMethod| {
            (method.segment_bytes, method.fan_out, method.pace, method.inter, method.intra)
        };
        std::ptr::eq(self.entry, other.entry) && parameters(self) == parameters(other)
    }
}

/// `own:pipeline(segment=8192)`, `own:linear`, `own:two-level(inter=ring)`: what is recorded as having
/// run.
impl fmt::Display for OwnMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parameters = Vec::new();
        let name = match (self.entry.algorithm, self.inter) {
            (Algorithm::NodeOrder, Some(inner)) => {
                parameters.push("order=node".to_owned());
                inner.name()
            }
            _ => self.entry.name,
        };
        if self.entry.algorithm != Algorithm::NodeOrder {
            parameters.extend(self.inter.map(|inter| format!("inter={inter}")));
            parameters.extend(self.intra.map(|intra| format!("intra={intra}")));
        }
        if let records::Method::Parametrized(shaped) = self.shape().into() {
            parameters.extend(shaped.parameters());
        }
        if self.segment_bytes > 0 {
            parameters.push(format!("segment={}", self.segment_bytes));
        }
        match parameters.is_empty() {
            true => write!(f, "own:{name}"),
            false => write!(f, "own:{name}({})", parameters.join(",")),
        }
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
        for (text, part) in [
            ("own:binomial,fan-out=8", "binomial has no fan-out"),
            ("own:k-nomial,fan-out=1", "expected at least 2"),
        ] {
            let records::Method::Parametrized(shaped) = text.parse().unwrap() else {
                panic!("{text}")
            };
            let error = OwnMethod::shaped(Collective::Bcast, &shaped).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let error =
            OwnMethod::new(Collective::Reduce, Algorithm::Rabenseifner, 8).unwrap_err().to_string();
        assert!(error.contains("no segments"), "{error}");
    }

    #[test]
    fn compositions_name_algorithms_of_their_phases() {
        let made = |collective, text: &str| match text.parse().unwrap() {
            records::Method::NodeAware(method) => OwnMethod::node_aware(collective, &method)
                .map(|method| method.to_string())
                .map_err(|error| error.to_string()),
            other => panic!("{other}"),
        };
        for (collective, text, written) in [
            (Collective::Bcast, "own:two-level", "own:two-level"),
            (
                Collective::Allreduce,
                "own:two-level,inter=ring,intra=binomial,segment=8KiB",
                "own:two-level(inter=ring,intra=binomial,segment=8192)",
            ),
            (Collective::Alltoall, "own:pairwise,order=node", "own:pairwise(order=node)"),
        ] {
            assert_eq!(made(collective, text), Ok(written.to_owned()));
        }
        for (collective, text, part) in [
            (
                Collective::Bcast,
                "own:two-level,inter=bruck",
                "bcast has no algorithm bruck (known: bin",
            ),
            (Collective::Scan, "own:two-level", "there is no two-level of scan"),
            (Collective::Allgather, "own:two-level,segment=8", "no segments"),
            (Collective::Allreduce, "own:ring,order=node,segment=8", "no segments"),
            (Collective::Allreduce, "own:bruck,order=node", "allreduce has no algorithm bruck"),
        ] {
            let error = made(collective, text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn what_ran_is_written_as_the_tracer_does() {
        let method = OwnMethod::new(Collective::Bcast, Algorithm::Pipeline, 8192).unwrap();
        assert_eq!(method.to_string(), "own:pipeline(segment=8192)");
        let method = OwnMethod::new(Collective::Bcast, Algorithm::Linear, 0).unwrap();
        assert_eq!(method.to_string(), "own:linear");
        let fitted = ParametrizedAlgorithm {
            fan_out: 3,
            pace: TreePace { trip: 57, gap: 24 },
            ..ParametrizedAlgorithm::plain(Algorithm::Fitted)
        };
        let method = OwnMethod::shaped(Collective::Bcast, &fitted).unwrap();
        assert_eq!(method.to_string(), "own:fitted(fan-out=3,trip=57,gap=24)");
    }
}
