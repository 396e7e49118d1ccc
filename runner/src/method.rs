use std::fmt;

use records::{Algorithm, Collective};
use schedules::{Call, Entry, SHARED, find_method, find_part, find_part_inside, parts};

use crate::{Error, Result};

/// A method of ours that a collective has, with its schedule.
#[derive(Debug, Clone, Copy)]
pub struct ScheduledMethod {
    pub(crate) entry: &'static Entry,
    pub(crate) method: records::OwnMethod,
}

impl ScheduledMethod {
    /// Looks up the schedule of a method.
    ///
    /// # Errors
    /// The collective has no such algorithm, or it has no segments, no fan-out or none like this, or its phases
    /// have none of the algorithms that are named for them; says what there is.
    pub fn new(collective: Collective, method: &records::OwnMethod) -> Result<Self> {
        let algorithm = method.algorithm;
        let refuse = |problem: String| Err(Error::Refused(format!("{method}: {problem}")));
        let Some(entry) = find_method(collective, method) else {
            return match (method.by_node, algorithm.is_node_aware()) {
                (true, _) => refuse(format!("the ranks of {collective} keep their order")),
                (false, true) => refuse(format!("there is no {algorithm} of {collective}")),
                (false, false) => Err(no_algorithm(&[collective], SHARED, algorithm)),
            };
        };
        let (between, inside) = parts(entry);
        let inter = if method.by_node { Some(algorithm) } else { method.inter };
        let found = inter.map(|inter| find_part(between, inter).ok_or(inter)).transpose();
        let inter = found.map_err(|unknown| no_algorithm(between, &[], unknown))?;
        if let Some(intra) = method.intra.filter(|one| find_part_inside(inside, *one).is_none()) {
            return Err(no_algorithm(inside, SHARED, intra));
        }
        // Of renumbered ranks it is the algorithm that they run which has segments.
        let of = inter.filter(|_| method.by_node).unwrap_or(entry);
        if method.segment_bytes > 0 && !of.segmented {
            return refuse("it has no segments; expected a segment size of 0".into());
        }
        if method.is_parametrized() && !of.fanned {
            return refuse(format!("{collective} {algorithm} has no fan-out"));
        }
        if let Some(problem) = of.fan_out_problem(method.fan_out) {
            return refuse(problem);
        }
        Ok(ScheduledMethod { entry, method: *method })
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
        self.method.shares_memory()
    }

    /// A call with what the method says of it.
    pub(crate) fn apply<'a>(&self, call: Call<'a>, element_bytes: u64) -> Call<'a> {
        Call { segment: self.segment(element_bytes), ..call.with_method(&self.method) }
    }

    /// Elements per segment: as many whole elements as fit, at least one; 0 means one segment.
    fn segment(&self, element_bytes: u64) -> u64 {
        match (self.method.segment_bytes, element_bytes) {
            (0, _) | (_, 0) => 0,
            (segment, element) => (segment / element).max(1),
        }
    }
}

impl PartialEq for ScheduledMethod {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.entry, other.entry) && self.method == other.method
    }
}

/// As files and flags spell it.
impl fmt::Display for ScheduledMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.method.fmt(f)
    }
}

/// Says which algorithms there are of these collectives, and of these of shared memory.
fn no_algorithm(of: &[Collective], shared: &'static [Entry], algorithm: Algorithm) -> Error {
    let shared = shared.iter().filter(|entry| of.contains(&entry.collective));
    let known = of.iter().flat_map(|one| schedules::of_collective(*one)).chain(shared);
    let names: Vec<&str> = known.map(|entry| entry.name).collect();
    let of = of.first().map_or("it", |one| one.name());
    Error::Refused(format!("{of} has no algorithm {algorithm} (known: {})", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::Method;

    fn new(collective: Collective, text: &str) -> Result<ScheduledMethod> {
        match text.parse().unwrap() {
            Method::Own(method) => ScheduledMethod::new(collective, &method),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn segments_hold_whole_elements() {
        let method = new(Collective::Reduce, "own:pipeline,segment=100").unwrap();
        assert_eq!([8, 100, 101, 0].map(|bytes| method.segment(bytes)), [12, 1, 1, 0]);
        let method = new(Collective::Reduce, "own:pipeline").unwrap();
        assert_eq!(method.segment(8), 0);
    }

    #[test]
    fn a_method_that_is_none_is_refused_with_what_there_is() {
        for (collective, text, part) in [
            (Collective::Bcast, "own:bruck", "bcast has no algorithm bruck (known: binary"),
            (Collective::Bcast, "own:binomial,fan-out=8", "binomial has no fan-out"),
            (Collective::Bcast, "own:k-nomial,fan-out=1", "expected at least 2"),
            (Collective::Reduce, "own:rabenseifner,segment=8", "no segments"),
            (
                Collective::Bcast,
                "own:two-level,inter=bruck",
                "bcast has no algorithm bruck (known: bin",
            ),
            (Collective::Bcast, "own:multi-lane,intra=pipeline", "scatter has no algorithm pipe"),
            (Collective::Scan, "own:two-level", "there is no two-level of scan"),
            (Collective::Scan, "own:linear,order=node", "the ranks of scan keep their order"),
            (Collective::Allgather, "own:two-level,segment=8", "no segments"),
            (Collective::Allreduce, "own:ring,order=node,segment=8", "no segments"),
            (Collective::Allreduce, "own:bruck,order=node", "allreduce has no algorithm bruck"),
        ] {
            let error = new(collective, text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn what_runs_is_spelled_as_it_was_asked_for() {
        for (collective, text) in [
            (Collective::Bcast, "own:linear"),
            (Collective::Bcast, "own:pipeline,segment=8KiB"),
            (Collective::Bcast, "own:fitted,fan-out=3,trip=57,gap=24"),
            (Collective::Bcast, "own:two-level"),
            (Collective::Allreduce, "own:two-level,inter=ring,intra=binomial,segment=8KiB"),
            (Collective::Alltoall, "own:pairwise,order=node"),
        ] {
            assert_eq!(new(collective, text).unwrap().to_string(), text);
        }
    }
}
