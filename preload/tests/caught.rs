//! Every call of every caught collective is seen once, from C and from Fortran, and carried out by
//! the method that was asked for; what can't be followed is told in one line.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{fs, path::Path, process::Command};

use common::{TestFolder, TestLibrary, assert_success, stderr};
use records::{Collective, Method, Ranges, document, profile::Profile};

const FORCE: &str = "bcast=own:binomial;reduce=reduce_as_allreduce;barrier=own:bruck";

/// Each collective was called three times.
fn each_is_seen_once(bench: &TestFolder, source: &str, options: &[&str], times: u64) {
    let Some(program) = bench.compile(source, options) else { return };
    let trace = bench.folder.path().join("usage.json");
    let variables = [("COLIBRI_FORCE", FORCE), ("COLIBRI_TRACE", trace.to_str().unwrap())];
    let output = bench.run(2, true, &variables, &[program.to_str().unwrap()]);
    assert_success(&output);
    let usage = common::usage(&trace);
    assert_eq!(usage.procs, 2);
    for collective in Collective::ALL.into_iter().filter(|c| !c.name().ends_with('v')) {
        let calls: Vec<_> =
            usage.calls.iter().filter(|c| c.point.collective == collective).collect();
        let twice = matches!(collective, Collective::Bcast | Collective::Allreduce);
        let wanted = if twice { times } else { 3 };
        assert_eq!(calls.len(), 1, "{source} {collective}: {calls:?}");
        assert_eq!(
            (calls[0].calls, calls[0].point.layout.procs()),
            (wanted, 2),
            "{source} {collective}"
        );
        let bytes = if collective == Collective::Barrier { 0 } else { 8 };
        assert_eq!(calls[0].point.bytes, bytes, "{source} {collective}");
        let method = match collective {
            Collective::Bcast => "own:binomial",
            Collective::Reduce => "mockup:reduce_as_allreduce",
            Collective::Barrier => "own:bruck",
            _ => "default",
        };
        assert_eq!(calls[0].method.to_string(), method, "{source} {collective}");
    }
}

#[test]
fn calls_are_seen_once() {
    for family in [TestLibrary::OpenMpi, TestLibrary::Mpich] {
        let Some(bench) = TestFolder::new(family) else { continue };
        each_is_seen_once(&bench, "caught.c", &[], 3);
        for source in ["caught_mpif.f90", "caught_usempi.f90", "caught_f08.f90"] {
            each_is_seen_once(&bench, source, &["-fallow-argument-mismatch"], 3);
        }
        if family == TestLibrary::Mpich {
            each_is_seen_once(&bench, "caught.c", &["-DLARGE"], 6);
        }
    }
}

fn profile(folder: &Path, name: &str, collective: Collective, procs: u32, method: &str) {
    let method: Method = method.parse().unwrap();
    let ranges = Ranges::from_starts([(1, method.into())].into(), 64);
    document::write(&folder.join(name), &Profile::new(collective, procs, ranges)).unwrap();
}

/// Several profiles of one collective live side by side, and each holds at its own size.
#[test]
fn profiles_are_followed() {
    let Some(bench) = TestFolder::new(TestLibrary::OpenMpi) else { return };
    let program = bench.compile("caught.c", &[]).unwrap();
    let folder = bench.folder.path().join("profiles");
    fs::create_dir(&folder).unwrap();
    profile(&folder, "a.json", Collective::Bcast, 2, "own:linear");
    profile(&folder, "b.json", Collective::Bcast, 3, "own:pipeline,segment=1KiB");
    profile(&folder, "c.json", Collective::Allreduce, 2, "mockup:allreduce_as_reduce_bcast");
    let text = "MPI_Gather\n3\n1\n2 gather_as_allgather\n1\n8 8 2\n";
    fs::write(folder.join("d.prf"), text).unwrap();
    let trace = bench.folder.path().join("usage.json");
    let footer = |ranks| {
        let variables = [
            ("COLIBRI_PROFILES", folder.to_str().unwrap()),
            ("COLIBRI_TRACE", trace.to_str().unwrap()),
            ("COLIBRI_FOOTER", "1"),
        ];
        let output = bench.run(ranks, true, &variables, &[program.to_str().unwrap()]);
        assert_success(&output);
        assert_eq!(stderr(&output), "");
        common::usage(&trace);
        common::stdout(&output)
    };
    let two = footer(2);
    assert!(two.contains("#@pgmpi alg MPI_Bcast 8 own:linear\n"), "{two}");
    assert!(two.contains("#@pgmpi alg MPI_Allreduce 8 allreduce_as_reduce_bcast\n"), "{two}");
    assert!(two.contains("#@pgmpi alg MPI_Gather 8 default\n"), "{two}");
    let limits = "#@pgmpi config size_msg_buffer_bytes 67108864\n#@pgmpi config size_int_buffer_bytes 1048576\n";
    assert!(two.ends_with(limits), "{two}");
    let three = footer(3);
    assert!(three.contains("#@pgmpi alg MPI_Bcast 8 own:pipeline,segment=1KiB\n"), "{three}");
    assert!(three.contains("#@pgmpi alg MPI_Allreduce 8 default\n"), "{three}");
    assert!(three.contains("#@pgmpi alg MPI_Gather 8 gather_as_allgather\n"), "{three}");
}

#[test]
fn what_cannot_be_followed_is_one_line() {
    let Some(bench) = TestFolder::new(TestLibrary::OpenMpi) else { return };
    let program = bench.compile("caught.c", &[]).unwrap();
    let program = program.to_str().unwrap();
    let ours = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("colibri: ")).map(String::from).collect()
    };
    let told = |variables: &[(&str, &str)], well: bool| {
        let output = bench.run(2, true, variables, &[program]);
        let lines = ours(&stderr(&output));
        assert_eq!(output.status.success(), well, "{lines:?}");
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines[0].clone()
    };
    let line = told(&[("COLIBRI_FORCE", "bcast=own:binomal")], false);
    assert!(line.contains("did you mean 'binomial'?"), "{line}");
    let line = told(&[("COLIBRI_FORCE", "bcast=bcast_as_scater_allgather")], false);
    assert!(line.contains("did you mean 'bcast_as_scatter_allgather'?"), "{line}");
    let line = told(&[("COLIBRI_PROFILE", "x")], true);
    assert!(line.contains("did you mean COLIBRI_PROFILES?"), "{line}");
    let line = told(&[("COLIBRI_PROFILES", "/nowhere/at/all")], true);
    assert!(line.contains("no such file") && line.contains("untuned"), "{line}");

    let folder = bench.folder.path().join("profiles");
    fs::create_dir(&folder).unwrap();
    profile(&folder, "a.json", Collective::Bcast, 2, "native:openmpi:pipeline");
    let line = told(&[("COLIBRI_PROFILES", folder.to_str().unwrap())], true);
    assert!(line.contains("native:openmpi:pipeline") && line.contains("untuned"), "{line}");

    // Each process is told something else.
    let script = bench.folder.path().join("differing.sh");
    let text = format!(
        "#!/bin/sh\nCOLIBRI_FORCE=bcast=own:linear\n[ $OMPI_COMM_WORLD_RANK = 0 ] || \
         COLIBRI_FORCE=bcast=own:binomial\nexport COLIBRI_FORCE\nLD_PRELOAD={} exec {program}\n",
        common::library().display()
    );
    fs::write(&script, text).unwrap();
    let output = bench.run(2, false, &[], &["sh", script.to_str().unwrap()]);
    assert_success(&output);
    let lines = ours(&stderr(&output));
    assert!(lines.len() == 1 && lines[0].contains("different settings"), "{lines:?}");
}

/// A profile that can't be used costs itself alone; a pipe is not waited for.
#[test]
fn an_unusable_profile_is_left_out_and_the_others_hold() {
    let Some(bench) = TestFolder::new(TestLibrary::OpenMpi) else { return };
    let program = bench.compile("caught.c", &[]).unwrap();
    let folder = bench.folder.path().join("profiles");
    fs::create_dir(&folder).unwrap();
    profile(&folder, "a.json", Collective::Bcast, 2, "own:linear");
    profile(&folder, "b.json", Collective::Scatterv, 2, "own:linear");
    profile(&folder, "c.json", Collective::Reduce, 2, "native:openmpi:pipeline");
    make_pipe(&folder.join("d.json"));
    let trace = bench.folder.path().join("usage.json");
    let variables = [
        ("COLIBRI_PROFILES", folder.to_str().unwrap()),
        ("COLIBRI_TRACE", trace.to_str().unwrap()),
    ];
    let output = bench.run_within(60, 2, true, &variables, &[program.to_str().unwrap()]);
    assert_success(&output);
    let lines = stderr(&output);
    for (name, why) in [("b.json", "scatterv"), ("c.json", "native"), ("d.json", "named pipe")] {
        let is_it = |line: &&str| line.contains(name) && line.contains("this profile is ignored");
        let line = lines.lines().find(is_it).unwrap_or_else(|| panic!("{name}: {lines}"));
        assert!(line.contains(why), "{line}");
    }
    assert_eq!(lines.lines().count(), 3, "{lines}");
    let usage = common::usage(&trace);
    let bcast =
        usage.calls.iter().find(|calls| calls.point.collective == Collective::Bcast).unwrap();
    assert_eq!(bcast.method.to_string(), "own:linear");
}

#[test]
fn a_trace_to_a_pipe_is_refused_at_once_and_an_older_one_is_kept() {
    let Some(bench) = TestFolder::new(TestLibrary::OpenMpi) else { return };
    let program = bench.compile("caught.c", &[]).unwrap();
    let run = |trace: &Path| {
        let variables = [("COLIBRI_TRACE", trace.to_str().unwrap())];
        let output = bench.run_within(60, 2, true, &variables, &[program.to_str().unwrap()]);
        assert_success(&output);
        stderr(&output)
    };
    let pipe = bench.folder.path().join("pipe");
    make_pipe(&pipe);
    let lines = run(&pipe);
    assert!(lines.lines().count() == 1 && lines.contains("regular file"), "{lines}");

    let trace = bench.folder.path().join("usage.json");
    assert_eq!(run(&trace), "");
    let older = fs::read(&trace).unwrap();
    let lines = run(&trace);
    assert!(lines.lines().count() == 1 && lines.contains("usage.json.1"), "{lines}");
    assert_eq!(fs::read(bench.folder.path().join("usage.json.1")).unwrap(), older);
    common::usage(&trace);
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// One rank has the runtime of a GPU loaded: all leave everything to the library, as one, and say so.
#[test]
fn where_buffers_may_lie_on_a_gpu_all_calls_are_the_librarys() {
    let Some(bench) = TestFolder::new(TestLibrary::OpenMpi) else { return };
    let program = bench.compile("caught.c", &[]).unwrap();
    let runtime = bench.folder.path().join("libcudart.so.12");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-Wl,-soname,libcudart.so.12", "-x", "c", "/dev/null", "-o"]);
    assert_success(&compiler.arg(&runtime).output().unwrap());
    let script = bench.folder.path().join("one_with_gpu.sh");
    let text = format!(
        "#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 0 ] || LD_PRELOAD={}:$LD_PRELOAD\nexec {}\n",
        runtime.display(),
        program.display()
    );
    fs::write(&script, text).unwrap();
    let trace = bench.folder.path().join("usage.json");
    let run = |gpu: &str| {
        let trace = trace.to_str().unwrap();
        let variables = [("COLIBRI_FORCE", FORCE), ("COLIBRI_TRACE", trace), ("COLIBRI_GPU", gpu)];
        let output = bench.run(2, true, &variables, &["sh", script.to_str().unwrap()]);
        assert_success(&output);
        let by_default = |calls: &records::usage::Calls| calls.method == Method::Default;
        (stderr(&output), common::usage(Path::new(trace)).calls.iter().all(by_default))
    };
    let (lines, is_left) = run("");
    assert!(is_left);
    assert!(lines.lines().count() == 1 && lines.contains("COLIBRI_GPU=host"), "{lines}");
    assert_eq!(run("host"), (String::new(), false));
}

/// MPICH's launcher ends the job as soon as one process wants that; the reason was cut in one of ten
/// runs, or lost.
#[test]
fn the_reason_for_an_end_is_told_whole() {
    let Some(bench) = TestFolder::new(TestLibrary::Mpich) else { return };
    let program = bench.compile("caught.c", &[]).unwrap();
    for _ in 0..22 {
        let variables = [("COLIBRI_FORCE", "bcast=own:binomal")];
        let output = bench.run(2, true, &variables, &[program.to_str().unwrap()]);
        assert!(!output.status.success());
        let lines = stderr(&output);
        let is_whole = |line: &&str| {
            line.starts_with("colibri: COLIBRI_FORCE: 'bcast=own:binomal'")
                && line.contains("known")
        };
        assert_eq!(lines.lines().filter(is_whole).count(), 1, "{lines}");
    }
}

#[test]
fn a_program_with_many_communicators_does_not_miss_those_that_are_ours() {
    let Some(bench) = TestFolder::new(TestLibrary::Mpich) else { return };
    let program = bench.compile("many.c", &[]).unwrap();
    let trace = bench.folder.path().join("usage.json");
    let variables =
        [("COLIBRI_FORCE", "allreduce=own:ring"), ("COLIBRI_TRACE", trace.to_str().unwrap())];
    let output = bench.run(2, true, &variables, &[program.to_str().unwrap()]);
    assert_success(&output);
    let by_ours = |calls: &&records::usage::Calls| calls.method != Method::Default;
    let usage = common::usage(&trace);
    let (ours, rest): (Vec<_>, Vec<_>) = usage.calls.iter().partition(by_ours);
    let number = |calls: &[&records::usage::Calls]| calls.iter().map(|c| c.calls).sum::<u64>();
    // 256 of each turn, of which the world is one; those freed count no more.
    assert_eq!((number(&ours), number(&rest)), (2 * 255, 2 * (1700 - 255)));
}
