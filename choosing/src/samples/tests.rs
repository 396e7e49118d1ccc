use super::*;
use crate::testing::{any, call};

const POINT: Point = Point::flat(Collective::Bcast, 8, 64);

#[test]
fn the_best_is_chosen_on_one_half_and_timed_on_the_other() {
    let rows: Vec<_> = [1.0, 9.0, 1.0, 9.0]
        .into_iter()
        .map(|seconds| call("native:openmpi:linear", "", 64, seconds))
        .chain([3.0; 4].map(|seconds| call("default", "", 64, seconds)))
        .collect();
    let samples = Samples::gather(&rows, any);
    let (method, seconds) = samples.best(POINT, ObservationHalf::Choosing).unwrap();
    assert_eq!((method.to_string().as_str(), seconds), ("native:openmpi:linear", 9.0));
}

#[test]
fn a_method_that_was_given_up_is_not_the_best_by_chance() {
    let best = |visits| {
        let linear = vec![call("native:openmpi:linear", "", 64, 1.0); visits];
        let default = vec![call("default", "", 64, 3.0); 12];
        Samples::gather(&[linear, default].concat(), any)
            .best(POINT, ObservationHalf::Choosing)
            .unwrap()
            .1
    };
    assert_eq!((best(2), best(3)), (3.0, 1.0));
}

#[test]
fn observations_are_told_by_visit() {
    let visits = [(3, 0, 1.0), (3, 1, 1.1), (8, 0, 5.0), (8, 1, 5.1), (8, 0, 2.0)];
    let rows: Vec<_> = visits
        .into_iter()
        .map(|(visit, repetition, seconds)| CollectiveCall {
            visit,
            repetition,
            ..call("default", "", 64, seconds)
        })
        .collect();
    let samples = Samples::gather(&rows, any);
    let times = samples.get(POINT, &Method::Default).unwrap();
    assert_eq!(times.visits().collect::<Vec<_>>(), [&[1.0, 1.1][..], &[5.0, 5.1], &[2.0]]);
}

#[test]
fn a_cell_is_halved_by_visits_where_there_were_several() {
    let made = |visits: &[(u32, u32, f64)]| {
        let rows: Vec<_> = visits
            .iter()
            .map(|&(visit, repetition, seconds)| CollectiveCall {
                visit,
                repetition,
                ..call("default", "", 64, seconds)
            })
            .collect();
        let samples = Samples::gather(&rows, any);
        let times = samples.get(POINT, &Method::Default).unwrap();
        [ObservationHalf::Choosing, ObservationHalf::Timing]
            .map(|half| times.midmean_of(half).unwrap())
    };
    assert_eq!(made(&[(3, 1, 1.0), (3, 2, 1.0), (7, 1, 5.0), (7, 2, 5.0)]), [1.0, 5.0]);
    let of_two_records = [(3, 1, 1.0), (3, 2, 1.0), (3, 1, 5.0), (3, 2, 5.0)];
    assert_eq!(made(&of_two_records), [1.0, 5.0]);
    assert_eq!(made(&[(3, 1, 1.0), (3, 2, 5.0), (3, 3, 1.0)]), [1.0, 5.0]);
    assert_eq!(made(&[(3, 1, 1.0)]), [1.0, 1.0]);
}

#[test]
fn a_fall_back_is_not_booked_under_the_name_asked_for() {
    let rows = [call("native:openmpi:scatter-allgather", "bcast_intra_basic_linear", 64, 1.0)];
    let samples = Samples::gather(&rows, |_, _, ran| ran.contains("scatter_allgather"));
    assert_eq!(samples.at(POINT).count(), 0);
    assert!(samples.warnings[0].contains("ran bcast_intra_basic_linear instead"));
}

#[test]
fn the_same_under_two_names_has_its_times_in_common() {
    let (binomial, ran) = ("native:openmpi:binomial", "bcast_intra_binomial");
    let at =
        |method, ran, visit, seconds| CollectiveCall { visit, ..call(method, ran, 64, seconds) };
    let rows = [
        at(binomial, ran, 0, 1.0),
        at("default", ran, 1, 2.0),
        at("native:openmpi:binomial,segment=8", "bcast_intra_binomial,segment=8", 2, 9.0),
        at(binomial, ran, 3, 3.0),
    ];
    let samples = Samples::gather(&rows, any);
    let default = samples.get(POINT, &Method::Default).unwrap();
    assert_eq!(samples.get(POINT, &binomial.parse().unwrap()), Some(default));
    assert_eq!((default.count(), default.median()), (3, Some(2.0)));
    assert_eq!((default.visits().count(), default.ran()), (3, Some(ran)));
    let other = samples.get(POINT, &"native:openmpi:binomial,segment=8".parse().unwrap());
    assert_eq!(other.unwrap().seconds(), [9.0]);
}

#[test]
fn what_ran_is_not_known_where_it_changed() {
    let rows = [("", 1.0), ("bcast_intra_pipeline", 2.0)]
        .map(|(ran, seconds)| call("default", ran, 64, seconds));
    let samples = Samples::gather(&rows, any);
    assert_eq!(samples.get(POINT, &Method::Default).unwrap().ran(), None);
}

#[test]
fn what_others_disturbed_is_not_averaged_in() {
    let row =
        |bytes, seconds, status| CollectiveCall { status, ..call("default", "", bytes, seconds) };
    let rows = [
        row(64, 1.0, ObservationStatus::Ok),
        row(64, 7.0, ObservationStatus::Disturbed),
        row(64, 1.2, ObservationStatus::Late),
        row(128, 9.0, ObservationStatus::Disturbed),
    ];
    let samples = Samples::gather(&rows, any);
    let times = |bytes| samples.get(Point { bytes, ..POINT }, &Method::Default).unwrap();
    assert_eq!(times(64).seconds, [1.0]);
    assert_eq!(times(128).seconds, [9.0], "there is nothing else");
    assert!(samples.warnings[0].contains("1 cells were timed only while other processes"));
    assert_eq!(Samples::gather(&rows[..3], any).warnings, Vec::<String>::new());
}

#[test]
fn warm_ups_are_left_out_and_late_starts_used_only_where_they_are_usual() {
    const LINEAR: &str = "native:openmpi:linear";
    let row = |method, seconds, status| CollectiveCall { status, ..call(method, "", 64, seconds) };
    let times = |rows: &[CollectiveCall], method: &str| {
        Samples::gather(rows, any).get(POINT, &method.parse().unwrap()).unwrap().seconds.clone()
    };
    let mut rows = vec![
        row("default", 1.0, ObservationStatus::Warmup),
        row("default", 2.0, ObservationStatus::Ok),
        row("default", 50.0, ObservationStatus::Late),
        row(LINEAR, 3.0, ObservationStatus::Ok),
        row(LINEAR, 3.1, ObservationStatus::Ok),
    ];
    assert_eq!(times(&rows, "default"), [2.0]);
    rows.push(row("default", 51.0, ObservationStatus::Late));
    rows.push(row(LINEAR, 60.0, ObservationStatus::Late));
    assert_eq!(times(&rows, "default"), [2.0], "half of the calls are late, not most");
    rows.push(row(LINEAR, 61.0, ObservationStatus::Late));
    assert_eq!(times(&rows, "default"), [2.0, 50.0, 51.0]);
    assert_eq!(times(&rows, LINEAR), [3.0, 3.1, 60.0, 61.0], "of one method as of the other");
    let alone = [row("default", 50.0, ObservationStatus::Late)];
    assert_eq!(
        times(&[&alone[..], &vec![row(LINEAR, 3.0, ObservationStatus::Ok); 9]].concat(), "default"),
        [50.0]
    );
}

/// A tuning took 8.5 ms for the time of a method of 2 ms, whose calls a rank had begun 6.8 ms late.
#[test]
fn a_call_of_which_most_was_waiting_for_a_rank_tells_nothing() {
    let linear = |waited| CollectiveCall {
        status: ObservationStatus::Late,
        last_start_seconds: waited,
        ..call("native:openmpi:linear", "", 64, 8.5)
    };
    let defaults: [CollectiveCall; 9] = std::array::from_fn(|_| call("default", "", 64, 3.0));
    let of_linear = |waited| {
        let samples = Samples::gather(&[&[linear(waited)], &defaults[..]].concat(), any);
        let times = samples.get(POINT, &"native:openmpi:linear".parse().unwrap()).cloned();
        (times.map(|times| times.seconds), samples.warnings)
    };
    let (times, warnings) = of_linear(6.8);
    assert_eq!(times, None);
    assert!(warnings[0].starts_with("1 cells were timed only in calls that a rank began so late"));
    assert_eq!(of_linear(2.0), (Some(vec![8.5]), vec![]), "it is at least 6.5");
}

/// Most visits to the fastest method met a rank that was late, which is not usual there: it was visited as often as
/// the others all the same.
#[test]
fn a_method_of_which_few_visits_count_was_not_given_up() {
    let row = |method, visit, seconds, status| CollectiveCall {
        visit,
        status,
        ..call(method, "", 64, seconds)
    };
    let mut rows: Vec<CollectiveCall> = (0..8)
        .map(|visit| {
            let in_time = visit == 5;
            let status = if in_time { ObservationStatus::Ok } else { ObservationStatus::Late };
            row("native:openmpi:linear", visit, if in_time { 1.0 } else { 2.5 }, status)
        })
        .collect();
    rows.extend((0..8).map(|visit| row("default", 8 + visit, 2.0, ObservationStatus::Ok)));
    let samples = Samples::gather(&rows, any);
    assert_eq!(samples.get(POINT, &Method::Default).unwrap().visits.len(), 8);
    let (best, seconds) = samples.best(POINT, ObservationHalf::Choosing).unwrap();
    assert_eq!((best.to_string().as_str(), seconds), ("native:openmpi:linear", 1.0));
}
