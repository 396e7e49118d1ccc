//! What confirming makes of jobs that differ from one another, though what they call does not.

use records::{
    Collective, Method, Point,
    choices::Chosen,
    plan::Cell,
    summary::{Harm, LoadWay},
};
use tuning::{
    JobCosts, JobName,
    confirm::{self, ConfirmingTask},
};

use crate::{
    synthetic::{Killed, SyntheticBench, SyntheticCluster},
    tuned::candidate,
};

/// By this deviation of the logarithm two jobs differ 1.3 times in the median, as supercomputers' do.
const STRONG: f64 = 0.275;

fn points() -> impl Iterator<Item = Point> {
    (0..10).map(|power| Point::flat(Collective::Bcast, 8, 1 << (2 * power)))
}

/// Ten sizes, all by one method, believed to gain a fifth.
fn choices() -> Vec<Chosen> {
    let choice = |point| {
        let method = "native:openmpi:binomial".parse().unwrap();
        Chosen { doubt: Some(0.05), ..Chosen::measured(point, method, 1.6e-3, 2e-3) }
    };
    points().map(choice).collect()
}

/// Jobs that differ so much; what is loaded takes so many times as long as the default.
fn world(seed: u64, job_noise: f64, loaded: fn(&Method) -> f64) -> SyntheticCluster {
    SyntheticCluster {
        truth: |_: &Cell| 2e-3,
        loaded,
        job_noise,
        drift: 0.0,
        ..SyntheticCluster::new(seed)
    }
}

/// What confirming tells of harm, if anything is left for the last round, how many points it leaves replaced,
/// and the turns of that round.
fn confirmed(world: &SyntheticCluster) -> (Option<Harm>, usize, u32) {
    let candidate = candidate(LoadWay::Rules, choices(), &|_, _| false);
    let task = ConfirmingTask {
        ranks: 8,
        seconds: 240.0,
        costs: JobCosts::expected(0.0),
        min_turns: 1,
        seed: 1,
    };
    let mut bench = SyntheticBench::new(world);
    let (ways, _) = confirm::run_jobs(&mut bench, vec![candidate], &task).unwrap();
    let turns = bench.record.iter().filter_map(|job| match job.name {
        JobName::Confirming { round: 2, turn, .. } => Some(turn),
        _ => None,
    });
    let replaced = ways[0].choices.iter().filter(|choice| choice.method != Method::Default);
    (ways[0].loading.harm.clone(), replaced.count(), turns.max().unwrap_or_default())
}

/// The jobs of each way differ by a third; neither is faster. By the calls that they made, hundreds of each,
/// nearly every point would be "significantly" slower in half of the runs.
#[test]
fn what_jobs_differ_by_is_neither_called_harm_nor_a_gain() {
    let (mut blamed, mut judged) = (0, 0);
    for seed in 0..12 {
        let (harm, ..) = confirmed(&world(seed, STRONG, |_| 1.0));
        judged += u32::from(harm.is_some());
        blamed += u32::from(harm.is_some_and(|harm| !harm.slower.is_empty()));
    }
    assert!(judged >= 3, "only {judged} of 12 runs have anything left to judge");
    assert!(blamed <= 2, "{blamed} of 12 runs; one in twenty is expected at most");
}

/// Few pairs of jobs happen to agree now and then, so that several runs tell.
#[test]
fn more_turns_are_made_where_jobs_leave_it_open() {
    let faster = |method: &Method| if *method == Method::Default { 1.0 } else { 0.7 };
    let (mut calm_turns, mut turns) = (0, 0);
    for seed in 0..10 {
        let (harm, replaced, calm) = confirmed(&world(seed, 0.005, faster));
        assert!(harm.unwrap().slower.is_empty() && replaced == 10);
        calm_turns += calm;
        let (harm, _, of_run) = confirmed(&world(seed, STRONG, faster));
        let harm = harm.unwrap();
        assert!(harm.slower.is_empty() && harm.detectable.unwrap() > 0.1, "{harm:?}");
        assert!(harm.jobs >= of_run, "{harm:?}");
        turns += of_run;
    }
    assert!(turns >= calm_turns + 5, "{turns} after {calm_turns}");
}

/// Two ways to load the choices, with time for the jobs of one. Killed in any job, it goes on with the same jobs, by the
/// same plans.
#[test]
fn confirming_that_was_killed_leaves_out_the_same_ways() {
    let world = world(1, 0.005, |method| if *method == Method::Default { 1.0 } else { 0.7 });
    let candidates = || {
        [LoadWay::Rules, LoadWay::Preload]
            .map(|way| candidate(way, choices(), &|_, _| false))
            .to_vec()
    };
    let costs = JobCosts::expected(0.0);
    let task = ConfirmingTask {
        ranks: 8,
        // In three turns four starts of three jobs are too many, those of two are not.
        seconds: 11.5 * costs.start_seconds(),
        costs,
        min_turns: 1,
        seed: 1,
    };
    let mut whole = SyntheticBench::new(&world);
    confirm::run_jobs(&mut whole, candidates(), &task).unwrap();
    let of_way = |wanted: Option<LoadWay>| {
        let is_of =
            |name: JobName| matches!(name, JobName::Confirming { way, .. } if way == wanted);
        whole.record.iter().filter(|job| is_of(job.name)).count()
    };
    let made = [None, Some(LoadWay::Rules), Some(LoadWay::Preload)].map(of_way);
    assert!(made[0] >= 3 && made[1..].contains(&0), "{made:?}");
    for killed_after in 0..whole.record.len() {
        let mut bench =
            SyntheticBench { jobs_to_live: killed_after, ..SyntheticBench::new(&world) };
        assert!(matches!(confirm::run_jobs(&mut bench, candidates(), &task), Err(Killed)));
        bench.jobs_to_live = usize::MAX;
        confirm::run_jobs(&mut bench, candidates(), &task).unwrap();
        assert_eq!(bench.record, whole.record, "killed after {killed_after} jobs");
    }
}
