//! Which methods may be tried for a class of calls, in which order.
//!
//! First what earlier jobs found to be good, then what a calibration has ranked, else the list below: by medium (ranks of
//! one node share memory, others send messages) and size, what wins most often in published comparisons and on the
//! machines where Colibri was measured.

use choosing::exploring::{CallClass, Candidate};
use records::{Collective, Layout, Method, learned::LearnedClass};

use super::Exploring;

/// Short messages: latency decides. In bytes.
const SHORT: u64 = 4 << 10;
/// Long ones: bandwidth decides. In bytes.
const LONG: u64 = 128 << 10;
/// At most so many methods are tried for a class: each trial is paid from the budget.
const MOST: usize = 5;

/// A method of whose time nothing is known.
pub fn unbounded(method: Method) -> Candidate {
    Candidate { method, max_seconds: None }
}

/// The methods, best first.
pub fn candidates(
    class: CallClass,
    layout: Layout,
    exploring: Option<&Exploring>,
    learned: Option<&LearnedClass>,
) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    let mut add = |candidate: Candidate| {
        if candidate.method != Method::Default
            && !all.iter().any(|other| other.method == candidate.method)
        {
            all.push(candidate);
        }
    };
    if let Some(learned) = learned {
        add(unbounded(learned.chosen.clone()));
    }
    let ranked = exploring.map(|exploring| exploring.ranked(class, layout)).unwrap_or_default();
    let is_ranked = !ranked.is_empty();
    let memory = of_memory(class, layout);
    memory.into_iter().filter_map(parsed).for_each(&mut add);
    ranked.into_iter().for_each(&mut add);
    if !is_ranked {
        of_messages(class, layout).into_iter().filter_map(parsed).for_each(&mut add);
    }
    all.truncate(MOST);
    all
}

fn parsed(method: &str) -> Option<Candidate> {
    method.parse().ok().map(unbounded)
}

/// Methods of ranks that share memory.
fn of_memory(class: CallClass, layout: Layout) -> Vec<&'static str> {
    use Collective::{
        Allgather, Allreduce, Alltoall, Barrier, Bcast, Gather, Reduce, ReduceScatterBlock, Scatter,
    };
    let bytes = class.size.first_bytes();
    if layout.nodes() == 1 {
        return match class.collective {
            Barrier if layout.procs() <= 16 => vec!["own:shared-flags"],
            Barrier => vec!["own:shared-flags,fan-out=8", "own:shared-flags"],
            Bcast => vec!["own:shared-cells"],
            Allreduce | Reduce | ReduceScatterBlock => vec!["own:shared-slices"],
            // Each byte is copied twice; longer blocks are faster by one copy.
            Allgather | Alltoall | Gather | Scatter if bytes < LONG => vec!["own:shared-slots"],
            _ => Vec::new(),
        };
    }
    if layout.max_per_node() == 1 {
        return Vec::new();
    }
    match class.collective {
        Barrier => vec!["own:two-level,intra=shared-flags"],
        Bcast if bytes < LONG => vec!["own:two-level,intra=shared-cells"],
        Bcast => vec![
            "own:two-level,inter=pipeline,intra=shared-cells,segment=32KiB",
            "own:two-level,inter=scatter-allgather,intra=shared-cells",
        ],
        Reduce => vec!["own:two-level,intra=shared-slices"],
        Allreduce if bytes < LONG => vec!["own:two-level,intra=shared-slices"],
        Allreduce => vec!["own:two-level,inter=rabenseifner,intra=shared-slices"],
        Allgather if bytes < SHORT => vec!["own:two-level,intra=shared-slots"],
        _ => Vec::new(),
    }
}

/// Methods of messages.
fn of_messages(class: CallClass, layout: Layout) -> Vec<&'static str> {
    use Collective::{
        Allgather, Allreduce, Alltoall, Barrier, Bcast, Exscan, Gather, Reduce, ReduceScatter,
        ReduceScatterBlock, Scan, Scatter,
    };
    let bytes = class.size.first_bytes();
    let all_bytes = bytes.saturating_mul(layout.procs().into());
    match class.collective {
        Barrier => vec!["own:bruck", "own:recursive-doubling"],
        Bcast | Reduce if bytes < SHORT => vec!["own:binomial", "own:k-nomial"],
        Bcast if bytes < LONG => {
            vec!["own:binary,segment=8KiB", "own:scatter-allgather", "own:binomial"]
        }
        Bcast => vec![
            "own:pipeline,segment=32KiB",
            "own:scatter-allgather-ring",
            "own:binary,segment=32KiB",
            "own:scatter-allgather",
        ],
        Reduce if bytes < LONG => {
            vec!["own:binary,segment=8KiB", "own:rabenseifner", "own:binomial"]
        }
        Reduce => vec![
            "own:rabenseifner",
            "own:pipeline,segment=32KiB",
            "own:binary,segment=32KiB",
            "mockup:reduce_as_allreduce",
        ],
        Allreduce if bytes < SHORT => vec!["own:recursive-doubling", "own:recursive-multiplying"],
        Allreduce if bytes < LONG => vec!["own:rabenseifner", "own:recursive-doubling"],
        Allreduce => vec![
            "own:rabenseifner",
            "own:ring",
            "own:segmented-ring,segment=64KiB",
            "mockup:allreduce_as_reduce_bcast",
        ],
        Allgather if all_bytes < LONG => {
            vec!["own:bruck", "own:recursive-doubling", "mockup:allgather_as_gather_bcast"]
        }
        Allgather => vec!["own:ring", "own:neighbor-exchange", "own:bruck"],
        Alltoall if bytes < 256 => vec!["own:bruck", "own:linear-concurrent"],
        Alltoall => vec!["own:pairwise", "own:linear-concurrent"],
        Gather | Scatter if bytes < SHORT => vec!["own:binomial", "own:linear"],
        Gather => vec!["own:linear", "own:linear-ready", "mockup:gather_as_allgather"],
        Scatter => vec!["own:linear", "own:binomial"],
        ReduceScatter | ReduceScatterBlock if all_bytes < LONG => {
            vec!["own:recursive-halving", "own:circulant"]
        }
        ReduceScatter | ReduceScatterBlock => {
            vec!["own:pairwise", "own:ring", "own:recursive-halving"]
        }
        Scan => vec!["own:recursive-doubling", "mockup:scan_as_exscan_reduce_local"],
        Exscan => vec!["own:recursive-doubling"],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use choosing::exploring::SizeClass;
    use records::profile::REPLACED;

    use super::*;
    use crate::choice::runnable;

    /// A name that is none would never be tried, and nobody would see it.
    #[test]
    fn every_method_of_the_list_can_be_carried_out() {
        for layout in ["8x1", "1x8", "1x32", "4x4", "3+2"] {
            let layout: Layout = layout.parse().unwrap();
            for collective in REPLACED {
                for bytes in (0..24).map(|power| 1 << power) {
                    let class = CallClass { collective, size: SizeClass::of(bytes) };
                    let named =
                        of_memory(class, layout).into_iter().chain(of_messages(class, layout));
                    for name in named {
                        let method = name.parse::<Method>().unwrap();
                        runnable(collective, &method)
                            .unwrap_or_else(|why| panic!("{collective} {name}: {why}"));
                    }
                    assert!(!candidates(class, layout, None, None).is_empty(), "{collective}");
                }
            }
        }
    }

    #[test]
    fn what_was_learned_goes_first_and_nothing_stands_twice() {
        let layout: Layout = "8x1".parse().unwrap();
        let class = CallClass { collective: Collective::Bcast, size: SizeClass::of(8) };
        let method: Method = "own:k-nomial".parse().unwrap();
        let learned = super::super::of_profile(class, layout, method.clone());
        let found = candidates(class, layout, None, Some(&learned));
        assert_eq!(found[0].method, method);
        assert_eq!(found.iter().filter(|candidate| candidate.method == method).count(), 1);
    }
}
