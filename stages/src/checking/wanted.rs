//! Which points of a tuning matter: what was confirmed, what lies at a switch of methods, and some that are left to the
//! default.

use records::{
    Layout, Method, check::CheckedFor, choices::Chosen, confirmed::Evidence, first_job::FirstJob,
    summary::Gain,
};

/// A point that is to be timed again.
pub struct WantedPoint {
    pub chosen: Chosen,
    pub timed_for: CheckedFor,
    /// default / loaded when it was tuned.
    pub before: Option<f64>,
}

impl WantedPoint {
    /// Whether anything is loaded there.
    pub fn is_loaded(&self) -> bool {
        self.chosen.method != Method::Default
    }
}

/// Points that are left to the default and are not beside a switch, at most: they show whether loading alone costs
/// something, which is alike at all of them.
const SENTINELS: usize = 4;

/// The points that matter of what is loaded in one way. What is applied of another layout's choice is left out: no jobs
/// confirmed it there.
pub fn points(choices: &[Chosen], gains: &[Gain]) -> Vec<WantedPoint> {
    let own: Vec<&Chosen> = choices.iter().filter(|chosen| !chosen.by_other_layout).collect();
    let mut wanted = Vec::new();
    let mut left: Vec<&Chosen> = Vec::new();
    for line in own.chunk_by(|one, next| one.point.line() == next.point.line()) {
        let differs = |index: usize, other: Option<usize>| {
            let other = other.and_then(|other| line.get(other));
            other.is_some_and(|other| other.method != line[index].method)
        };
        let mut sentinel: Option<&Chosen> = None;
        for (index, &chosen) in line.iter().enumerate() {
            let is_switch = differs(index, index.checked_sub(1)) || differs(index, Some(index + 1));
            let is_confirmed =
                chosen.method != Method::Default && chosen.rests_on == Evidence::Confirmed;
            let timed_for = match (is_confirmed, is_switch) {
                (true, _) => CheckedFor::Confirmed,
                (false, true) => CheckedFor::Switch,
                (false, false) => {
                    if chosen.method == Method::Default {
                        sentinel.get_or_insert(chosen);
                    }
                    continue;
                }
            };
            wanted.push(of(chosen, timed_for, gains));
        }
        left.extend(sentinel);
    }
    let every = left.len().div_ceil(SENTINELS).max(1);
    let sentinels = left.into_iter().step_by(every);
    wanted.extend(sentinels.map(|chosen| of(chosen, CheckedFor::Sentinel, gains)));
    wanted
}

fn of(chosen: &Chosen, timed_for: CheckedFor, gains: &[Gain]) -> WantedPoint {
    let gain = gains.iter().find(|gain| gain.point == chosen.point);
    WantedPoint { chosen: chosen.clone(), timed_for, before: gain.map(|gain| gain.alone.speed_up) }
}

/// Whether a job of these ranks holds a communicator: a node of its own for each of the layout's, or, of a number of
/// processes alone, as many ranks.
pub fn is_held(now: &FirstJob, layout: Layout) -> bool {
    if layout.is_flat() {
        return layout.procs() as usize <= now.platform.hosts.len();
    }
    let wanted = layout.counts();
    let held: Vec<u32> = now.nodes.iter().map(|node| node.ranks.len() as u32).collect();
    let first_holds = wanted.first() <= held.first();
    let sorted = |mut counts: Vec<u32>| {
        counts.sort_unstable_by(|one, other| other.cmp(one));
        counts
    };
    let others = |counts: &[u32]| sorted(counts.iter().skip(1).copied().collect());
    let (wanted, held) = (others(&wanted), others(&held));
    first_holds
        && wanted.len() <= held.len()
        && wanted.iter().zip(&held).all(|(wanted, held)| wanted <= held)
}

#[cfg(test)]
mod tests {
    use records::{Collective, Point, first_job::NodeFacts, platform::Platform};

    use super::*;

    fn chosen(collective: Collective, bytes: u64, method: &str) -> Chosen {
        let point = Point::flat(collective, 4, bytes);
        let rests_on = if method == "default" { Evidence::Measured } else { Evidence::Confirmed };
        Chosen { rests_on, ..Chosen::measured(point, method.parse().unwrap(), 1e-3, 1e-3) }
    }

    #[test]
    fn what_was_confirmed_switches_and_a_few_others_are_timed() {
        let mut choices: Vec<Chosen> = (0..8)
            .map(|power| {
                let method = if power < 5 { "default" } else { "own:pipeline,segment=8KiB" };
                chosen(Collective::Bcast, 1 << power, method)
            })
            .collect();
        choices[6].rests_on = Evidence::BetweenConfirmed;
        for collective in [Collective::Reduce, Collective::Allreduce, Collective::Alltoall] {
            choices.extend((0..3).map(|power| chosen(collective, 1 << power, "default")));
        }
        let wanted = points(&choices, &[]);
        let named: Vec<(Collective, u64, CheckedFor)> = wanted
            .iter()
            .map(|one| (one.chosen.point.collective, one.chosen.point.bytes, one.timed_for))
            .collect();
        assert_eq!(
            named,
            [
                (Collective::Bcast, 16, CheckedFor::Switch),
                (Collective::Bcast, 32, CheckedFor::Confirmed),
                (Collective::Bcast, 128, CheckedFor::Confirmed),
                (Collective::Bcast, 1, CheckedFor::Sentinel),
                (Collective::Reduce, 1, CheckedFor::Sentinel),
                (Collective::Allreduce, 1, CheckedFor::Sentinel),
                (Collective::Alltoall, 1, CheckedFor::Sentinel),
            ]
        );
    }

    #[test]
    fn a_layout_is_held_where_its_nodes_find_nodes() {
        let job = |counts: &[u32]| {
            let mut next = 0;
            let node = |&count: &u32| {
                let ranks: Vec<u32> = (next..next + count).collect();
                next += count;
                NodeFacts {
                    host: String::new(),
                    ranks,
                    processors: 4,
                    memory_bytes: None,
                    memory_limit_bytes: None,
                    sees_run: true,
                }
            };
            let nodes: Vec<NodeFacts> = counts.iter().map(node).collect();
            let hosts = vec![String::new(); counts.iter().sum::<u32>() as usize];
            FirstJob {
                platform: Platform { hosts, ..Platform::default() },
                allowed_processors: Vec::new(),
                nodes,
                start_spread: None,
            }
        };
        for (counts, layout, held) in [
            (&[4, 4][..], "8", true),
            (&[4, 4], "9", false),
            (&[4, 4], "2x4", true),
            (&[4, 4], "2x2", true),
            (&[8], "2x4", false),
            (&[4, 4, 2], "4+2+4", true),
            (&[2, 4, 4], "4+4+2", false),
        ] {
            assert_eq!(is_held(&job(counts), layout.parse().unwrap()), held, "{counts:?} {layout}");
        }
    }
}
