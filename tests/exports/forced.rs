//! Algorithms forced for a whole job, by the variables that each library's folder names: that they
//! ran.

use std::path::Path;

use ::libraries::{MpiLibrary, mpich::MpichLibrary, openmpi::OpenMpiLibrary, ran_as_asked};
use records::{Collective, Method, Native, Point};

use super::{
    libraries::{self, Library, LibraryCall},
    mpich_and_intel::watched_program,
    tracer,
};

/// What one job forces: an algorithm for each of some collectives.
type Forced = Vec<(Collective, Native)>;

/// Jobs that force every algorithm once.
fn jobs(mpi: &dyn MpiLibrary, procs: u32, bytes: u64) -> Vec<Forced> {
    let (mut jobs, mut in_memory): (Vec<Forced>, Forced) = Default::default();
    // The test program knows no others.
    let called = Collective::ALL.into_iter().filter(|it| !it.name().ends_with('v'));
    for collective in called {
        let natives = mpi.algorithms(collective).into_iter().map(|algorithm| Native {
            library: mpi.library(),
            algorithm,
            segment_bytes: 0,
        });
        let point = Point::flat(collective, procs, bytes);
        let (of_one_node, others): (Vec<_>, Vec<_>) = natives
            .filter(|native| mpi.runs(point, native))
            .partition(|native| Some(*native) == mpi.of_one_node(collective));
        for (turn, native) in others.into_iter().enumerate() {
            jobs.resize_with(jobs.len().max(turn + 1), Vec::new);
            jobs[turn].push((collective, native));
        }
        in_memory.extend(of_one_node.into_iter().map(|native| (collective, native)));
    }
    // What forces one of these forces all.
    jobs.extend((!in_memory.is_empty()).then_some(in_memory));
    jobs
}

/// Runs a job and gives each of its calls with what was forced in it.
fn run(
    (mpi, version): (&dyn MpiLibrary, (u32, u32)),
    (library, program): (&Library, &Path),
    forced: &Forced,
    procs: u32,
    bytes: u64,
) -> Vec<(Collective, Native, LibraryCall)> {
    let command = || {
        let mut command = library.launcher();
        if let Some(tracer) = mpi.tracer().map(|_| tracer()) {
            command.args(["-x", &format!("LD_PRELOAD={}", tracer.display())]);
        }
        for (collective, native) in forced {
            command.envs(mpi.forced_by(version, *collective, native).unwrap());
        }
        command
    };
    let size = |collective| if collective == Collective::Barrier { 0 } else { bytes };
    let call = |collective: Collective| format!("{collective}:{}", size(collective));
    let calls: Vec<String> = forced.iter().map(|(collective, _)| call(*collective)).collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let told = libraries::run(library, command, procs, program, &calls).into_iter();
    told.map(|told| {
        let of = forced.iter().find(|(collective, _)| call(*collective) == told.call);
        let (collective, native) = *of.unwrap();
        (collective, native, told)
    })
    .collect()
}

#[test]
fn open_mpi_4_1_runs_what_is_forced_for_a_job() {
    let test = "open_mpi_4_1_runs_what_is_forced_for_a_job";
    let Some(library) = libraries::open_mpi_4_1(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let program = library.program(dir.path(), &[]);
    let jobs = jobs(&OpenMpiLibrary, 4, 4096);
    assert!(jobs.len() >= 9 && jobs[0].len() >= 12, "{jobs:?}");
    for forced in jobs {
        let mpi = (&OpenMpiLibrary as &dyn MpiLibrary, (4, 1));
        for (collective, native, told) in run(mpi, (&library, &program), &forced, 4, 4096) {
            let as_asked = ran_as_asked(collective, &Method::Native(native), &told.ran);
            assert!(as_asked && !told.ran.is_empty(), "{native:?}: {told:?}");
        }
    }
}

#[test]
fn mpich_4_0_runs_what_is_forced_for_a_job() {
    let test = "mpich_4_0_runs_what_is_forced_for_a_job";
    let Some(library) = libraries::mpich_4_0(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = watched_program(test, &library, dir.path()) else { return };
    let mut seen = 0;
    for forced in jobs(&MpichLibrary, 4, 4096) {
        let mpi = (&MpichLibrary as &dyn MpiLibrary, (4, 0));
        // What is of later versions can't be forced, what is not watched can't be seen.
        let forced: Forced = forced
            .into_iter()
            .filter(|(collective, native)| mpi.0.forced_by(mpi.1, *collective, native).is_some())
            .collect();
        for (collective, native, told) in run(mpi, (&library, &program), &forced, 4, 4096) {
            let set = mpi.0.forced_by(mpi.1, collective, &native).unwrap();
            let (_, name) =
                set.iter().find(|(variable, _)| variable.ends_with("ALGORITHM")).unwrap();
            if told.ran.is_empty() {
                continue;
            }
            seen += 1;
            assert!(told.ran.ends_with(&format!("_intra_{name}")), "{name}: {told:?}");
        }
    }
    assert!(seen >= 10, "{seen} algorithms were seen");
}
