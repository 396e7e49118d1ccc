//! What cannot be measured, and what is said then.

use std::{fs, process::Output};

use records::{Collective, Point, document, plan::Cell};

use super::{
    Run, TASK, cell,
    common::{Mpi, assert_success, stderr},
    plan,
};

#[track_caller]
pub fn assert_refused(output: &Output, part: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
    let text = stderr(output);
    assert!(
        text.lines().any(|line| line.starts_with("colibri-mpi: error") && line.contains(part)),
        "{text}"
    );
}

#[test]
fn what_cannot_be_done_is_refused_in_one_line() {
    let Some(mpi) = Mpi::find() else { return };
    let default = |procs| vec![cell(Collective::Bcast, "default", procs, 8)];

    let run = Run::new(plan(4, default(2), 1));
    let output = mpi.run(2, TASK, &run.args(4, "60"));
    assert_refused(&output, "the job has 2 ranks, --ranks says 4");

    let output = mpi.run(2, TASK, &run.args(2, "60"));
    assert_refused(&output, "field ranks: is 4, but the job has 2 ranks");

    let run = Run::new(plan(2, vec![cell(Collective::Bcast, "own:bruck", 2, 8)], 1));
    assert_refused(&run.measure(&mpi), "bcast has no algorithm bruck (known: binary");

    let run = Run::new(plan(2, default(2), 1));
    fs::write(run.path("plan.json"), "{\"schema\": \"colibri/plan/1\", \"seed\": 1").unwrap();
    assert_refused(&run.measure(&mpi), "truncated");

    let run = Run::new(plan(2, default(2), 1));
    assert_success(&run.measure(&mpi));
    let other = plan(2, vec![cell(Collective::Bcast, "default", 2, 16)], 1);
    document::write(&run.path("plan.json"), &other).unwrap();
    assert_refused(&run.measure(&mpi), "another plan");
}

#[test]
fn algorithms_are_not_forced_where_the_library_would_ignore_it() {
    let Some(mpi) = Mpi::find() else { return };
    let mpi = mpi.without_dynamic_rules();
    let cells = vec![cell(Collective::Bcast, "native:openmpi:pipeline", 2, 8)];
    let run = Run::new(plan(2, cells, 1));
    assert_refused(&run.measure(&mpi), "--mca coll_tuned_use_dynamic_rules 1");
    assert!(!run.record_path().exists(), "a record is begun only when it can be filled");
}

#[test]
fn wrong_flags_are_answered_once() {
    let Some(mpi) = Mpi::find() else { return };
    let output = mpi.run(2, TASK, &["--ranks".to_owned(), "many".to_owned()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output).matches("invalid value 'many'").count(), 1, "{}", stderr(&output));
}

#[test]
fn mock_ups_that_cannot_carry_out_a_cell_are_refused_with_it() {
    let Some(mpi) = Mpi::find() else { return };
    let small = cell(Collective::Scatter, "mockup:scatter_as_bcast", 2, 8);
    let large = Cell { point: Point { bytes: (32 << 20) + 1, ..small.point }, ..small.clone() };
    let run = Run::new(plan(2, vec![small, large], 1));
    let wanted = "cells[1].method: mockup:scatter_as_bcast: 67108880 bytes";
    assert_refused(&run.measure(&mpi), wanted);
    assert!(!run.record_path().exists(), "a record is begun only when it can be filled");
}
