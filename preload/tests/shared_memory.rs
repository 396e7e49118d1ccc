//! Ranks that share memory: where files cannot be had, processes end, communicators come and go, and limits are met.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{fs, path::PathBuf, process::Output};

use common::{FORCE_SHARED, TestFolder, TestLibrary, assert_success, skipped, stderr, stdout};
use records::{Collective, Method, Ranges, document, profile::Profile, usage::Usage};

const LIBRARIES: [TestLibrary; 2] = [TestLibrary::OpenMpi, TestLibrary::Mpich];

/// Those of `FORCE_SHARED`.
const COLLECTIVES: u64 = 9;

/// A job takes some seconds.
const LONGEST_SECONDS: u32 = 60;

/// The program, compiled for one library.
struct SharingProgram {
    bench: TestFolder,
    program: PathBuf,
    trace: PathBuf,
}

/// The program for each library that is there.
fn programs() -> impl Iterator<Item = SharingProgram> {
    LIBRARIES.into_iter().filter_map(SharingProgram::new)
}

/// How many calls of the collectives of `FORCE_SHARED` went through shared memory, and how many were the library's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    shared: u64,
    library: u64,
}

impl SharingProgram {
    fn new(family: TestLibrary) -> Option<Self> {
        let bench = TestFolder::new(family)?;
        let program = bench.compile("shared_memory.c", &["-Wall", "-Werror"]).unwrap();
        let trace = bench.folder.path().join("usage.json");
        Some(SharingProgram { bench, program, trace })
    }

    /// With the system that refuses files in the way.
    fn with_refusals(family: TestLibrary) -> Option<Self> {
        let mut this = SharingProgram::new(family)?;
        let options = ["-shared", "-fPIC", "-Wall", "-Werror"];
        this.bench.before = this.bench.compile("no_files.c", &options);
        Some(this)
    }

    fn run(&self, ranks: u32, variables: &[(&str, &str)], words: &[&str]) -> Output {
        self.bench.run_within(LONGEST_SECONDS, ranks, true, variables, words)
    }

    /// All results are right; what was seen to run. Forced, where no variable says otherwise.
    fn holds(
        &self,
        is_sharing: bool,
        ranks: u32,
        variables: &[(&str, &str)],
        way: &[&str],
    ) -> (Seen, Output) {
        let mut words = vec![self.program.to_str().unwrap()];
        words.extend(way);
        let mut variables = variables.to_vec();
        if variables.iter().all(|(name, _)| *name != "COLIBRI_PROFILES") {
            variables.push(("COLIBRI_FORCE", FORCE_SHARED));
        }
        let run = |variables: &[(&str, &str)]| {
            let output = self.run(ranks, variables, &words);
            let told =
                format!("{:?} {variables:?} {way:?}: {}", self.bench.family, stderr(&output));
            assert_success(&output);
            assert!(stdout(&output).contains("wrong: 0"), "{told}{}", stdout(&output));
            output
        };
        // Where calls are traced, none is carried out by what is remembered of another, as only those are that share.
        if is_sharing {
            run(&variables);
        }
        variables.push(("COLIBRI_TRACE", self.trace.to_str().unwrap()));
        let output = run(&variables);
        (seen(&common::usage(&self.trace)), output)
    }

    /// All calls went through shared memory.
    fn holds_by_sharing(&self, ranks: u32, variables: &[(&str, &str)], way: &[&str]) -> Output {
        let (seen, output) = self.holds(true, ranks, variables, way);
        let told = format!("{:?} {variables:?} {way:?}", self.bench.family);
        assert!(seen.shared >= 3 && seen.library == 0, "{told}: {seen:?}");
        output
    }

    /// All calls were the library's.
    fn holds_by_library(&self, ranks: u32, variables: &[(&str, &str)], way: &[&str]) -> Output {
        let (seen, output) = self.holds(false, ranks, variables, way);
        let told = format!("{:?} {variables:?} {way:?}", self.bench.family);
        assert!(seen.library >= 3 && seen.shared == 0, "{told}: {seen:?}");
        output
    }
}

fn seen(usage: &Usage) -> Seen {
    let mut seen = Seen { shared: 0, library: 0 };
    for calls in &usage.calls {
        let method = calls.method.to_string();
        if FORCE_SHARED.contains(&format!("{}=", calls.point.collective)) {
            match &calls.method {
                Method::Default => seen.library += calls.calls,
                _ if method.starts_with("own:shared-") => seen.shared += calls.calls,
                other => panic!("{other} was asked for by nobody"),
            }
        }
    }
    seen
}

/// The user is told once why calls are the library's.
#[track_caller]
fn assert_told(output: &Output, why: &str) {
    let said = stderr(output);
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("colibri: ")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].starts_with("colibri: own:shared-") && lines[0].contains(why), "{said}");
    assert!(lines[0].ends_with("; such calls are the MPI library's"), "{said}");
}

/// Files of areas in `/dev/shm`.
fn left_behind() -> Vec<String> {
    let names = fs::read_dir("/dev/shm").map(|all| all.flatten().map(|entry| entry.file_name()));
    let names = names.into_iter().flatten().filter_map(|name| name.into_string().ok());
    names.filter(|name| name.starts_with("colibri-")).collect()
}

/// More ranks than processors, by force: no hang.
#[test]
fn all_nine_collectives_are_right() {
    for program in programs() {
        for ranks in [1, 2, 3, 8] {
            program.holds_by_sharing(ranks, &[], &["lengths"]);
        }
    }
}

/// Also where memory is scarce, so that data of few calls have room for several places.
#[test]
fn short_and_long_calls_by_turns_are_right() {
    for program in programs() {
        for (ranks, memory) in [(2, "64MiB"), (3, "3MiB"), (5, "64MiB")] {
            program.holds_by_sharing(ranks, &[("COLIBRI_SHARED_MEMORY", memory)], &["mixed"]);
        }
    }
}

#[test]
fn calls_that_come_again_are_right_whatever_differs() {
    for program in programs() {
        for ranks in [1, 2, 3] {
            program.holds_by_sharing(ranks, &[], &["again"]);
        }
    }
}

#[test]
fn without_memfd_posix_shared_memory_serves_and_is_removed() {
    for family in LIBRARIES {
        let Some(program) = SharingProgram::with_refusals(family) else { continue };
        for refused in ["memfd_create", "open_other"] {
            program.holds_by_sharing(3, &[("REFUSED", refused)], &["lengths"]);
            assert_eq!(left_behind(), [""; 0], "{family:?} {refused}");
        }
    }
}

#[test]
fn without_files_calls_are_the_librarys_on_all_ranks() {
    for family in LIBRARIES {
        let Some(program) = SharingProgram::with_refusals(family) else { continue };
        for (refused, rank) in [
            ("memfd_create shm_open", ""),
            ("open_other shm_open", "1"),
            // A full /dev/shm, found by who makes the file and by who takes its part of it into possession.
            ("fallocate", ""),
            ("fallocate", "0"),
            ("fallocate", "2"),
            ("mmap", "1"),
        ] {
            // MPICH's transport puts itself in the place of mmap.
            if refused == "mmap" && family == TestLibrary::Mpich {
                continue;
            }
            let variables = [("REFUSED", refused), ("REFUSED_RANK", rank)];
            let output = program.holds_by_library(3, &variables, &["lengths"]);
            assert_told(&output, " could not map the memory of its node in /dev/shm: ");
            assert_eq!(left_behind(), [""; 0], "{family:?} {refused} {rank}");
        }
    }
}

/// Runs a script in a container for each rank, with process numbers of its own, of which no other has the same.
fn in_containers(program: &SharingProgram, variables: &[(&str, &str)], script: &str) -> Output {
    let script = format!(
        "for i in $(seq $((3 + 5 * ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}))); do /bin/true; done; \
         {script}; true"
    );
    let words = ["unshare", "-pfm", "--mount-proc", "sh", "-c", &script];
    let mut variables = variables.to_vec();
    let trace = program.trace.to_str().unwrap();
    variables.extend([("COLIBRI_FORCE", FORCE_SHARED), ("COLIBRI_TRACE", trace)]);
    let output = program.run(3, &variables, &words);
    assert_success(&output);
    output
}

/// The program, where containers can be made.
fn in_containers_of_its_own() -> Option<SharingProgram> {
    let unshared = std::process::Command::new("unshare").args(["-pfm", "true"]).output();
    if !unshared.is_ok_and(|output| output.status.success()) {
        skipped("containers with process numbers of their own", "unshare -pm is not allowed");
        return None;
    }
    // MPICH's transport does not begin in containers of this kind.
    SharingProgram::new(TestLibrary::OpenMpi)
}

/// Each in a container of its own: what one calls process 7 is another one's process 7.
#[test]
fn processes_of_other_containers_are_not_taken_for_ended_ones() {
    let Some(program) = in_containers_of_its_own() else { return };
    let output = in_containers(&program, &[], &format!("{} early", program.program.display()));
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert!(said.contains("wrong: 0") && !said.contains("has ended"), "{said}");
    let seen = seen(&common::usage(&program.trace));
    assert!(seen.shared >= 3 && seen.library == 0, "{seen:?}");
}

/// Containers of one host that have no file in common: neither /dev/shm nor what /proc has of each other's processes.
#[test]
fn containers_that_have_no_file_in_common_leave_calls_to_messages() {
    let Some(program) = in_containers_of_its_own() else { return };
    let script = format!("mount -t tmpfs none /dev/shm && {} lengths", program.program.display());
    // Open MPI's own memory of a node needs /dev/shm, too.
    let output = in_containers(&program, &[("OMPI_MCA_btl", "tcp,self")], &script);
    assert!(stdout(&output).contains("wrong: 0"), "{}{}", stdout(&output), stderr(&output));
    assert_told(&output, " could not map the memory of its node");
    let seen = seen(&common::usage(&program.trace));
    assert!(seen.library >= 3 && seen.shared == 0, "{seen:?}");
}

/// Where it cannot be said why there is no shared memory, too.
#[test]
fn limits_of_files_leave_calls_to_the_library() {
    for program in programs() {
        let output = program.holds_by_library(2, &[], &["short-files"]);
        assert_told(&output, " could not map the memory of its node");
        program.holds_by_library(2, &[], &["unread"]);
    }
}

/// A mock-up takes what a call needs, not all that it may take.
#[test]
fn short_calls_of_mock_ups_need_little_memory() {
    let scan = [("COLIBRI_FORCE", "scan=mockup:scan_as_exscan_reduce_local")];
    for program in programs() {
        let words = [program.program.to_str().unwrap(), "scarce"];
        let output = program.run(2, &scan, &words);
        assert_success(&output);
        assert!(stdout(&output).contains("wrong: 0"), "{}", stdout(&output));
    }
}

/// Its next call must not take for its own what was meant for the one that failed.
#[test]
fn a_rank_that_fails_alone_is_in_step_again_with_the_next_call() {
    for program in programs() {
        program.holds_by_sharing(
            2,
            &[("COLIBRI_FORCE", "bcast=own:shared-cells")],
            &["scarce-alone"],
        );
    }
}

#[test]
fn errors_of_types_go_to_the_handler_of_the_communicator() {
    for program in programs() {
        for ranks in [1, 2] {
            let words = [program.program.to_str().unwrap(), "no-type"];
            for force in
                [FORCE_SHARED, "allgather=own:ring;alltoall=own:linear;gather=own:binomial"]
            {
                let output = program.run(ranks, &[("COLIBRI_FORCE", force)], &words);
                assert_success(&output);
                let said = format!("{}{}", stdout(&output), stderr(&output));
                assert!(said.contains("wrong: 0"), "{:?} {force}: {said}", program.bench.family);
            }
        }
    }
}

#[test]
fn a_rank_that_has_ended_is_told_within_seconds() {
    for program in programs() {
        let family = program.bench.family;
        // The launcher knows the shell alone, and does not end the others meanwhile.
        let script = format!("{} dies; sleep 4; true", program.program.display());
        let output = program.run(3, &[("COLIBRI_FORCE", FORCE_SHARED)], &["sh", "-c", &script]);
        let (text, said) = (stdout(&output), stderr(&output));
        let others = 2;
        let ended: Vec<&str> = text.lines().filter(|line| line.contains(" had ")).collect();
        assert_eq!(ended.len(), others, "{family:?}: {text}{said}");
        for line in ended {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(words[1..5], ["had", "an", "error", "after"], "{line}: {said}");
            assert!(words[5].parse::<f64>().unwrap() < 5.0, "{line}");
        }
        let is_told = |line: &&str| {
            line.starts_with("colibri: MPI_Barrier by own:shared-flags: process ")
                && line.ends_with("of this node has ended, with which this rank shares memory")
        };
        assert_eq!(said.lines().filter(is_told).count(), others, "{family:?}: {said}");
    }
}

/// It has done its part, and has nothing more to do with what the others wait for.
#[test]
fn a_rank_that_is_done_early_is_no_loss() {
    for program in programs() {
        let family = program.bench.family;
        let output = program.holds_by_sharing(3, &[], &["early"]);
        assert!(!stderr(&output).contains("colibri"), "{family:?}: {}", stderr(&output));
    }
}

#[test]
fn threads_share_memory_on_communicators_of_their_own() {
    for program in programs() {
        for ranks in [2, 4] {
            program.holds_by_sharing(ranks, &[], &["threads"]);
        }
    }
}

/// Kilobytes, mappings of ours and open files, as the program tells at each time.
fn possessions(text: &str, when: &str) -> [i64; 3] {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{when}: "))).unwrap();
    let numbers: Vec<i64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().unwrap()
}

/// Most communicators see short calls alone. What the first long call of a size needs is given and mapped then, all of
/// it, of both ranks: later ones don't stop for it.
#[test]
fn short_calls_take_little_memory() {
    const MAX_KILOBYTES: i64 = 100;
    for program in programs() {
        let output = program.holds_by_sharing(2, &[], &["sized"]);
        let text = stdout(&output);
        let line = text.lines().find_map(|line| line.strip_prefix("touched: ")).unwrap();
        let numbers: Vec<i64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [by_short, by_first, by_all] = numbers[..] else { panic!("{text}") };
        assert!((4..MAX_KILOBYTES).contains(&by_short), "{text}");
        assert!(by_first > 10 * MAX_KILOBYTES && by_all == by_first, "{text}");
    }
}

/// Thousands of communicators, each made, used and freed.
fn communicators_leave_nothing(family: TestLibrary) {
    const MAX_KILOBYTES: i64 = 2048;
    let Some(program) = SharingProgram::new(family) else { return };
    let output = program.holds_by_sharing(2, &[], &["freed", "3000"]);
    let text = stdout(&output);
    let [_, one, _] = possessions(&text, "one alive");
    let [before, mapped_before, files_before] = possessions(&text, "a tenth");
    let [after, mapped_after, files_after] = possessions(&text, "at the end");
    assert_eq!(one, 1, "{text}");
    assert!(mapped_before <= 1 && mapped_after <= 1, "{text}");
    assert_eq!(files_before, files_after, "{text}");
    assert!(after < before + MAX_KILOBYTES, "{text}");
}

#[test]
fn communicators_that_are_freed_leave_nothing_of_open_mpi() {
    communicators_leave_nothing(TestLibrary::OpenMpi);
}

#[test]
fn communicators_that_are_freed_leave_nothing_of_mpich() {
    communicators_leave_nothing(TestLibrary::Mpich);
}

/// Beyond the limit they are the library's; all are alive when MPI ends.
#[test]
fn communicators_beyond_the_limit_are_the_librarys() {
    for program in programs() {
        let family = program.bench.family;
        program.holds_by_sharing(2, &[], &["alive", "10"]);
        let limit = [("COLIBRI_SHARED_MEMORY", "8MiB")];
        let (seen, output) = program.holds(true, 2, &limit, &["alive", "10"]);
        assert_told(&output, "COLIBRI_SHARED_MEMORY sets the limit");
        let calls = 4 * COLLECTIVES;
        assert_eq!(seen.shared + seen.library, 10 * calls, "{family:?}: {seen:?}");
        // Each takes half of the limit at most.
        assert!(seen.shared >= 2 * calls && seen.shared < 10 * calls, "{family:?}: {seen:?}");
        assert_eq!(seen.shared % calls, 0, "{family:?}: {seen:?}");
    }
}

#[test]
fn a_limit_of_nothing_is_the_librarys_and_a_wrong_one_is_told() {
    for program in programs() {
        let family = program.bench.family;
        let limited = |limit: &str| {
            program.holds_by_library(2, &[("COLIBRI_SHARED_MEMORY", limit)], &["lengths"])
        };
        assert_told(&limited("4KiB"), "4096 bytes of shared memory are too few for 2 ranks");
        // Who allows nothing knows.
        let output = limited("0");
        assert!(!stderr(&output).contains("colibri"), "{family:?}: {}", stderr(&output));
        for wrong in ["much", "-1", "64 Mib?"] {
            let variables = [("COLIBRI_FORCE", FORCE_SHARED), ("COLIBRI_SHARED_MEMORY", wrong)];
            let output = program.run(2, &variables, &[program.program.to_str().unwrap()]);
            let said = stderr(&output);
            assert!(!output.status.success(), "{family:?} {wrong}");
            assert!(said.contains("colibri: COLIBRI_SHARED_MEMORY: "), "{family:?}: {said}");
            assert!(said.contains(wrong), "{family:?}: {said}");
        }
    }
}

#[test]
fn children_that_know_nothing_of_mpi_disturb_nothing() {
    for program in programs() {
        program.holds_by_sharing(3, &[], &["forks"]);
    }
}

/// Whoever waits for a flag lets MPI go on: what another rank waits for may be a message of this one.
#[test]
fn messages_go_on_while_a_rank_waits_in_a_collective() {
    for program in programs() {
        for ranks in [2, 3] {
            program.holds_by_sharing(ranks, &[], &["waits"]);
        }
    }
}

/// Elements with gaps are not in memory as the bytes that go through it.
#[test]
fn elements_with_gaps_are_the_librarys() {
    for program in programs() {
        program.holds_by_library(3, &[], &["gaps"]);
    }
}

/// A profile was made where each rank had a processor; what is forced holds anywhere.
#[test]
fn by_a_profile_more_ranks_than_processors_are_the_librarys() {
    let processors = std::thread::available_parallelism().unwrap().get() as u32;
    for program in programs() {
        let crowd = processors + 1;
        let folder = program.bench.folder.path().join("profiles");
        fs::create_dir(&folder).unwrap();
        for part in FORCE_SHARED.split(';') {
            let (collective, method) = part.split_once('=').unwrap();
            let collective: Collective = collective.parse().unwrap();
            for procs in [2, crowd] {
                let method: Method = method.parse().unwrap();
                let ranges = Ranges::from_starts([(0, method.into())].into(), 1 << 30);
                let path = folder.join(format!("{collective}-{procs}.json"));
                document::write(&path, &Profile::new(collective, procs, ranges)).unwrap();
            }
        }
        let profiles = [("COLIBRI_PROFILES", folder.to_str().unwrap())];
        let output = program.holds_by_library(crowd, &profiles, &["lengths"]);
        assert_told(&output, "the ranks of a node outnumber the processors");
        if processors >= 2 {
            program.holds_by_sharing(2, &profiles, &["lengths"]);
        }
    }
}
