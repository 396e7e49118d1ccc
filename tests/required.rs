//! A test that is skipped shows nothing: where all are wanted, it fails.

use std::{env, process::Command};

#[test]
fn a_skipped_test_fails_where_all_are_wanted() {
    let skips = |required: &str| {
        let mut test = Command::new(env::current_exe().unwrap());
        test.args([
            "--exact",
            "slurm::a_rank_that_crashes_ends_the_job_at_once_which_is_tried_once_more",
        ]);
        // Where no launcher can be found.
        test.env("PATH", "/nowhere").env("COLIBRI_TEST_REQUIRE", required);
        let output = test.output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("running 1 test"), "{output:?}");
        output.status.success()
    };
    assert!(skips(""));
    assert!(!skips("all"));
}
