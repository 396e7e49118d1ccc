//! Files that tell apart layouts of one number of ranks.

use std::{fs, path::Path};

use serde_json::json;

use super::{decisions, export, export_of, libraries, tracer};
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
    let from = export_of(&decisions);
    let (_, stderr) = run(2, &[&from[..], &["--target", "ucc-conf"]].concat());
    assert!(
        stderr.contains(
            "UCC 1.3 distinguishes only the numbers of ranks and of nodes, but 8 ranks were \
             measured as"
        ) && stderr.contains("--layouts 2x4"),
        "{stderr}"
    );
    let format = ["--target", "ucc-conf", "--layouts", "2x4"];
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

/// What Open MPI 5.0 runs for broadcasts on so many nodes and ranks per node, by the tracer, with parameters.
fn ran(
    (library, program): (&libraries::Library, &Path),
    (nodes, per_node): (u32, u32),
    parameters: &[(String, String)],
    calls: &[&str],
) -> Vec<String> {
    let name = format!("t{}-han", std::process::id());
    let spec = testbed::Spec::new(&name, nodes, "1gbit".parse().unwrap()).unwrap();
    let spec = spec.with_ranks_per_node(testbed::RanksPerNode::Same(per_node)).unwrap();
    let cluster = StandingCluster(testbed::up(&spec).unwrap());
    let mpi = testbed::OpenMpi::at(library.launcher_path().as_ref()).unwrap();
    let shims = testbed::Shims::in_folder(tracer().parent().unwrap()).unwrap();
    let ranks = nodes * per_node;
    let command = || {
        let mut command = cluster.0.mpirun(&mpi, ranks, &shims, &[]).unwrap();
        parameters.iter().for_each(|(name, value)| {
            command.args(["--mca", name, value]);
        });
        command
    };
    let told = libraries::run(library, command, ranks, program, calls);
    told.into_iter().map(|call| call.ran).collect()
}

/// Whether the outermost function that ran is this one.
fn is(ran: &str, function: &str) -> bool {
    ran.split(['>', ',']).next() == Some(function)
}

/// The parameters that load tuned's rules, and with `of_han` those of coll/han.
fn parameters(rules: &Path, of_han: bool) -> Vec<(String, String)> {
    let file = rules.display().to_string();
    let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut all = vec![
        named("coll_tuned_use_dynamic_rules", "1"),
        named("coll_tuned_dynamic_rules_filename", &file),
    ];
    if of_han {
        all.push(named("coll_han_use_dynamic_file_rules", "1"));
        all.push(named("coll_han_dynamic_rules_filename", &format!("{file}.han")));
    }
    all
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
    let format = ["--target", "openmpi", "--target-version", "5.0"];
    let (rules, _, stderr) = export(dir.path(), &wanted, &format);
    let of_han = format!("{}.han", rules.display());
    assert!(
        stderr.contains(&format!("--mca coll_han_dynamic_rules_filename {of_han}")),
        "{stderr}"
    );
    let calls = ["bcast:20000", "bcast:64"];
    let with = ran((&library, &program), (2, 2), &parameters(&rules, true), &calls);
    assert_eq!(with[0], "bcast_intra_pipeline,segment=1KiB");
    assert!(is(&with[1], "han_bcast_intra"), "not chosen: {with:?}");
    let without = ran((&library, &program), (2, 2), &parameters(&rules, false), &calls);
    assert!(without.iter().all(|ran| is(ran, "han_bcast_intra")), "{without:?}");
}

/// Four ranks: what coll/han carries out on 2 x 2 leaves tuned's rules to 4 x 1, which it does not take.
#[test]
fn open_mpi_5_0_runs_on_each_layout_what_was_chosen_for_it() {
    let test = "open_mpi_5_0_runs_on_each_layout_what_was_chosen_for_it";
    let dir = tempfile::tempdir().unwrap();
    let wanted = [
        ("bcast", "4x1", 64, "own:linear"),
        ("bcast", "4x1", 20_000, "own:pipeline,segment=1KiB"),
        ("bcast", "2x2", 64, "default"),
        ("bcast", "2x2", 20_000, "native:openmpi:han-simple"),
    ];
    let format = ["--target", "openmpi", "--target-version", "5.0"];
    let (rules, report, _) = export(dir.path(), &wanted, &format);
    assert_eq!(report["unexpressed"], json!([]));
    if can_make_a_testbed(test).is_none() {
        return;
    }
    let Some(library) = libraries::open_mpi_5_0(test) else { return };
    let program = library.program(dir.path(), &[]);
    let calls = ["bcast:64", "bcast:20000"];
    let loaded = parameters(&rules, true);
    let on_nodes = ran((&library, &program), (4, 1), &loaded, &calls);
    let chosen = ["bcast_intra_basic_linear", "bcast_intra_pipeline,segment=1KiB"];
    assert_eq!(on_nodes, chosen);
    let on_levels = ran((&library, &program), (2, 2), &loaded, &calls);
    assert!(is(&on_levels[0], "han_bcast_intra"), "{on_levels:?}");
    assert!(is(&on_levels[1], "han_bcast_intra_simple"), "{on_levels:?}");
}

/// What coll/han hands on falls under the rules of all layouts of that size: one layout's choices serve for
/// both, and what that costs is told.
#[test]
fn open_mpi_5_0_cannot_be_told_tuned_algorithms_of_two_layouts() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = [
        ("bcast", "8x1", 64, "native:openmpi:pipeline"),
        ("bcast", "2x4", 64, "native:openmpi:binomial"),
    ];
    let decisions = decisions(dir.path(), &wanted);
    let from = export_of(&decisions);
    let format = ["--target", "openmpi", "--target-version", "5.0"];
    let to = dir.path().join("rules");
    let to = ["--output", to.to_str().unwrap()];
    let (_, stderr) = run(2, &[&from[..], &format, &to].concat());
    assert!(stderr.contains("calls that coll/han carries out, but 8 ranks"), "{stderr}");
    assert!(stderr.contains("8x1 and 2x4") && stderr.contains("--layouts 2x4"), "{stderr}");
    for (told, layout, exported) in [("2x4", "8", "binomial"), ("8x1", "2x4", "pipeline")] {
        let layouts = [&format[..], &["--layouts", told]].concat();
        let (rules, report, _) = export(dir.path(), &wanted, &layouts);
        let [other] = report["unexpressed"].as_array().unwrap().as_slice() else {
            panic!("{report}")
        };
        let procs = other["procs"].as_str().map_or(other["procs"].to_string(), Into::into);
        assert_eq!(
            (procs.as_str(), other["exported"].as_str()),
            (layout, Some(format!("native:openmpi:{exported}").as_str()))
        );
        assert!(other["loss"].is_number(), "{other}");
        let text = fs::read_to_string(&rules).unwrap();
        assert!(text.contains(&format!(": {exported}\n")), "{text}");
    }
}
