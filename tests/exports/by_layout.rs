//! Files that tell apart layouts of one number of processes.

use std::fs;

use serde_json::json;

use super::{decisions, export, libraries, tracer};
use crate::support::{can_make_a_testbed, run};

/// UCC's configuration file tells 8 x 1 from 2 x 4, but no order of ranks.
#[test]
fn ucc_has_a_section_for_each_layout_and_what_it_cannot_tell_apart_has_its_cost() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = [
        ("bcast", "8", 64, "own:k-nomial"),
        ("bcast", "2x4", 64, "own:scatter-allgather"),
        ("bcast", "2x4:cyclic", 64, "own:k-nomial"),
        ("bcast", "4x4", 64, "own:k-nomial"),
    ];
    let decisions = decisions(dir.path(), &wanted);
    let from = ["export", &decisions, "--calibration", "preset:frodo", "--model", "plogp"];
    let (_, stderr) = run(2, &[&from[..], &["--format", "ucc-conf"]].concat());
    assert!(
        stderr.contains(
            "UCC 1.3 distinguishes only the numbers of processes and of nodes, but 8 processes were \
             measured as"
        ) && stderr.contains("--layouts 2x4"),
        "{stderr}"
    );
    let format = ["--format", "ucc-conf", "--layouts", "2x4"];
    let (file, report, stderr) = export(dir.path(), &wanted, &format);
    let text = fs::read_to_string(&file).unwrap();
    let sections = text.split_once("\n\n").unwrap().1;
    let expected = "[team_size=8 nnodes=2]\n\
                    UCC_TL_UCP_TUNE=bcast:64-65:@sag_knomial\n\
                    \n[team_size=8 nnodes=8]\n\
                    UCC_TL_UCP_TUNE=bcast:64-65:@knomial\n\
                    \n[nnodes=3 ppn=4]\n\
                    UCC_TL_UCP_TUNE=bcast:64-65:@sag_knomial\n\
                    \n[team_size=16 nnodes=4]\n\
                    UCC_TL_UCP_TUNE=bcast:64-65:@knomial\n";
    assert_eq!(sections, expected, "{text}");
    let [cyclic] = report["unexpressed"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!(
        (&cyclic["procs"], &cyclic["exported"]),
        (&json!("2x4:cyclic"), &json!("own:scatter-allgather"))
    );
    assert!(cyclic["loss"].is_number(), "{cyclic}");
    assert!(stderr.contains(&format!("UCC_CONFIG_FILE={}", file.display())), "{stderr}");
}

/// Takes its virtual cluster down when the test ends, however it ends.
struct StandingCluster(testbed::Testbed);

impl Drop for StandingCluster {
    fn drop(&mut self) {
        if let Err(error) = testbed::down(&self.0.spec().name) {
            eprintln!("{error}");
        }
    }
}

/// Across nodes Open MPI 5.0 gives all calls to coll/han, which hands on what its own file says, and
/// nothing else.
#[test]
fn open_mpi_5_0_across_nodes_takes_from_han_what_was_chosen_alone() {
    let test = "open_mpi_5_0_across_nodes_takes_from_han_what_was_chosen_alone";
    // The library takes a turn of its own.
    if can_make_a_testbed(test).is_none() {
        return;
    }
    let Some(library) = libraries::open_mpi_5_0(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let program = library.program(dir.path(), &[]);
    let wanted = [("bcast", 4, 20_000, "own:pipeline,segment=1KiB")];
    let format = ["--format", "openmpi", "--target-version", "5.0"];
    let (rules, _, stderr) = export(dir.path(), &wanted, &format);
    let of_han = format!("{}.han", rules.display());
    assert!(
        stderr.contains(&format!("--mca coll_han_dynamic_rules_filename {of_han}")),
        "{stderr}"
    );

    let name = format!("t{}-han", std::process::id());
    let spec = testbed::Spec::new(&name, 2, "1gbit".parse().unwrap()).unwrap();
    let spec = spec.with_ranks_per_node(testbed::RanksPerNode::Same(2)).unwrap();
    let cluster = StandingCluster(testbed::up(&spec).unwrap());
    let mpi = testbed::OpenMpi::at(library.launcher_path().as_ref()).unwrap();
    let shims = testbed::Shims::in_folder(tracer().parent().unwrap()).unwrap();
    let ran = |parameters: &[&str]| {
        let command = || {
            let mut command = cluster.0.mpirun(&mpi, 4, &shims, &[]).unwrap();
            command
                .args(["--mca", "coll_tuned_use_dynamic_rules", "1"])
                .args(["--mca", "coll_tuned_dynamic_rules_filename", rules.to_str().unwrap()])
                .args(parameters);
            command
        };
        let told = libraries::run(&library, command, 4, &program, &["bcast:20000", "bcast:64"]);
        told.into_iter().map(|call| call.ran).collect::<Vec<String>>()
    };
    let pipeline = "bcast_intra_pipeline(segment=1024)";
    let with = ran(&[
        ["--mca", "coll_han_use_dynamic_file_rules", "1"],
        ["--mca", "coll_han_dynamic_rules_filename", &of_han],
    ]
    .concat());
    assert_eq!(with[0], pipeline);
    assert!(with[1].starts_with("han_bcast_intra("), "not chosen: {with:?}");
    let without = ran(&[]);
    assert!(without.iter().all(|ran| ran.starts_with("han_bcast_intra(")), "{without:?}");
}
