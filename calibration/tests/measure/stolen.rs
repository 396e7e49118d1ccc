//! What is done about processors that others take.

use std::fs;

use colibri_calibration::proc_stat::STAND_IN;
use records::{
    Collective,
    disturbance::Stretch,
    observation::ObservationStatus,
    plan::{Plan, Visit},
};

use super::{
    Run, TASK, cell,
    common::{Mpi, PROGRAM, assert_success, stand_in},
    plan,
};

#[test]
fn what_was_made_while_processors_were_stolen_is_marked_and_made_again() {
    let Some(mpi) = Mpi::find() else { return };
    let cells = vec![cell(Collective::Bcast, "default", 3, 1 << 20)];
    let visits = vec![Visit { cell: 0, warmups: 0, repetitions: 2, calls: 20 }; 100];
    let run = Run::new(Plan { seed: 1, ranks: 3, cells, visits });
    let end = stand_in(run.path("stat"), run.record_path(), |made, _| (20..26).contains(&made));
    let mut command = mpi.command(3);
    command.env(STAND_IN, run.path("stat")).args([PROGRAM, TASK]).args(run.args(3, "300"));
    let output = command.output().unwrap();
    end();
    assert_success(&output);
    let record = run.record();
    let disturbed: Vec<&Stretch> = record.stretches.iter().filter(|of| of.is_disturbed()).collect();
    let count = |status| record.rows.iter().filter(|row| row.status == status).count();
    assert!(
        !disturbed.is_empty() && count(ObservationStatus::Disturbed) > 0,
        "{:?}",
        record.stretches
    );
    assert!(disturbed.iter().all(|of| of.stolen.unwrap() > 0.05 && of.others == Some(0.0)));
    assert!(disturbed.iter().all(|of| of.load.is_some() && of.host == disturbed[0].host));
    for index in 0..100 {
        let of_visit = record.rows.iter().filter(|row| row.visit == index);
        let good = of_visit
            .clone()
            .filter(|row| matches!(row.status, ObservationStatus::Ok | ObservationStatus::Late));
        assert_eq!(good.count(), 2, "visit {index}");
        let numbers: Vec<u32> = of_visit.map(|row| row.repetition).collect();
        assert!(numbers.iter().is_sorted(), "{numbers:?}");
    }
    let placed = &record.header["placement"];
    assert_eq!(placed.split("; ").count(), 3, "{placed}");
    // Nothing is left to do.
    let before = fs::read(run.record_path()).unwrap();
    assert_success(&run.measure(&mpi));
    assert_eq!(fs::read(run.record_path()).unwrap(), before);
}

#[test]
fn what_the_kernel_does_not_tell_is_not_known_and_disturbs_nothing() {
    let Some(mpi) = Mpi::find() else { return };
    let run = Run::new(plan(2, vec![cell(Collective::Bcast, "default", 2, 1024)], 3));
    assert_success(&run.measure(&mpi));
    let record = run.record();
    assert!(!record.stretches.is_empty());
    assert!(record.stretches.iter().all(|of| of.taken().is_none()), "{:?}", record.stretches);
    run.assert_complete();
}
