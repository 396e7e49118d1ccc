//! The programs that start ranks, and what their options do to the number of ranks.

/// What an option does to the number of ranks, or to where they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionEffect {
    /// Nothing; it takes so many values.
    None(usize),
    /// Its value is the number of ranks.
    Ranks,
    /// Its value is the number of ranks on each node.
    RanksPerNode,
    /// One rank on each node.
    OneRankPerNode,
    /// Its value is the number of nodes.
    Nodes,
    /// Its value is how ranks are put, `ppr:2:node`.
    MapBy,
    /// A parameter and its value, which may do what other options do.
    Parameter,
    /// Its value is the number of resource sets.
    ResourceSets,
    /// Its value is the number of ranks in each resource set.
    RanksPerSet,
    /// In which order ranks run on nodes; it takes so many values.
    Order(usize),
    /// Where ranks run, or on what their number rests where nothing else tells it; it takes so many values.
    Placement(usize),
    /// What each rank has: only where no ranks were asked for it may change their number; it takes so many values.
    Share(usize),
    /// How many ranks there are with it is not followed.
    NotFollowed,
}

use OptionEffect::{
    MapBy, Nodes, None as Nothing, NotFollowed, OneRankPerNode, Order, Parameter, Placement, Ranks,
    RanksPerNode, RanksPerSet, ResourceSets, Share,
};

/// From what a launcher takes the number of ranks where no option tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultRanks {
    /// The ranks that the batch system was asked for.
    Granted,
    /// As Slurm's own launcher does.
    Srun,
    /// It has to be told, or starts a single one.
    MustBeTold,
}

/// A family of launchers that are told in the same way.
#[derive(Debug)]
pub struct LauncherProgram {
    /// Names of the programs.
    pub names: &'static [&'static str],
    /// Whether the value of a one-letter option may follow without a blank: `-n8`.
    pub attached: bool,
    /// Whether `:` parts programs that run together as one.
    pub colons: bool,
    /// The ranks where no option tells them.
    pub without: DefaultRanks,
    /// Options without their dashes, by what they do: tables of which the first counts that has it.
    pub options: &'static [&'static [(OptionEffect, &'static str)]],
}

impl LauncherProgram {
    /// What an option does; none where it is not known.
    pub fn effect(&self, name: &str) -> Option<OptionEffect> {
        let is_listed = |names: &str| names.split_whitespace().any(|other| other == name);
        let mut all = self.options.iter().copied().flatten();
        let known = all.find(|(_, names)| is_listed(names)).map(|(effect, _)| *effect);
        // Older versions of Slurm write `--cpu_bind`.
        let is_old = known.is_none() && name.contains('_');
        known.or_else(|| if is_old { self.effect(&name.replace('_', "-")) } else { None })
    }
}

/// What Open MPI's `mpirun` takes, versions 1.8 to 5 (`--help all`).
const OPEN_MPI: &[(OptionEffect, &str)] = &[
    (Ranks, "n np c"),
    (RanksPerNode, "N npernode"),
    (OneRankPerNode, "pernode"),
    (MapBy, "map-by"),
    (Parameter, "mca gmca omca gomca prtemca gprtemca pmixmca gpmixmca"),
    (
        Placement(1),
        "H host hostfile machinefile default-hostfile add-host add-hostfile rf rankfile npersocket ppr \
         cpus-per-proc cpus-per-rank cpu-set pset max-vm-size",
    ),
    (Order(1), "rank-by"),
    (Order(0), "bynode"),
    (Placement(0), "nolocal use-hwthread-cpus loadbalance"),
    (NotFollowed, "app initial-hostfile do-not-launch"),
    (
        Nothing(1),
        "bind-to x wd wdir cpu-list cf cartofile timeout output-filename output output-directory xml-file xterm \
         stdin debugger launch-agent path personality prefix preload-files ompi-server hnp report-events report-pid \
         report-uri max-restarts spawn-timeout display runtime-options stream-buffering pmixam am",
    ),
    (
        Nothing(0),
        "bycore byslot bysocket q quiet v verbose allow-run-as-root bind-to-core bind-to-socket bind-to-none report-bindings oversubscribe \
         nooversubscribe display-map display-allocation display-devel-map display-devel-allocation display-topo \
         display-diffable-map tag-output timestamp-output merge-stderr-to-stdout xml get-stack-traces \
         report-state-on-timeout debug debug-devel debug-daemons debug-daemons-file leave-session-attached continuous \
         noprefix novm index-argv-by-rank preload-binary show-progress use-regexp enable-recovery disable-recovery \
         fwd-mpirun-port fwd-environment stop-on-exec forward-signals output-proctable \
         report-child-jobs-separately enable-instant-on-support set-cwd-to-session-dir tv do-not-resolve",
    ),
];

/// What Hydra takes, MPICH's and Intel MPI's, but the ranks of a node: the two count them differently.
const HYDRA: &[(OptionEffect, &str)] = &[
    (Ranks, "n np"),
    (MapBy, "map-by"),
    (Nothing(2), "genv env"),
    (Placement(1), "f host hosts hostfile machine machinefile hosts-group grr"),
    (Order(1), "order-nodes"),
    (Placement(0), "skip-launch-node nolocal rr"),
    (NotFollowed, "configfile"),
    (
        Nothing(1),
        "genvlist envlist wdir dir path launcher launcher-exec bootstrap bootstrap-exec bootstrap-exec-args rmk topolib \
         bind-to binding membind demux iface prepend-pattern outfile-pattern errfile-pattern nameserver localhost \
         usize gpus-per-proc port gtool gtoolfile cpu-bind",
    ),
    (
        Nothing(0),
        "l prepend-rank genvall genvnone envall envnone enable-x disable-x v verbose info print-all-exitcodes \
         disable-auto-cleanup disable-hostname-propagation pmi-port print-rank-map prepend-timestamp silent-abort prot \
         aps mps gdb check_mpi check-mpi trace",
    ),
];

/// The same of MPICH alone.
const HYDRA_OF_MPICH: &[(OptionEffect, &str)] = &[(RanksPerNode, "ppn"), (Nothing(0), "profile")];
/// The same where it may be either's.
const HYDRA_OF_ANY: &[(OptionEffect, &str)] =
    &[(Placement(1), "ppn perhost"), (Nothing(1), "depth mem-bind")];

/// What `srun` takes, versions 20 to 24.
const SRUN: &[(OptionEffect, &str)] = &[
    (Ranks, "n ntasks"),
    (RanksPerNode, "ntasks-per-node tasks-per-node"),
    (Nodes, "N nodes"),
    (NotFollowed, "het-group pack-group Z no-allocate"),
    (Order(1), "m distribution"),
    (Placement(1), "w nodelist F nodefile x exclude r relative"),
    (Share(1), "c cpus-per-task ntasks-per-core ntasks-per-socket ntasks-per-gpu gpus-per-task"),
    (Placement(0), "spread-job E preserve-env"),
    (
        Nothing(1),
        "A account acctg-freq bb bbf bcast-exclude b begin comment container container-id cpu-freq cpus-per-gpu d \
         dependency deadline delay-boot D chdir export export-file e error epilog gres gres-flags i input jobid J \
         job-name L licenses M clusters mail-type mail-user mcs-label mpi o output p partition power priority prolog \
         profile q qos S core-spec signal slurmd-debug switches task-epilog task-prolog thread-spec T threads t time \
         time-min W wait wckey cluster-constraint C constraint mem mem-per-cpu mem-per-gpu mem-bind mincpus \
         reservation tmp B extra-node-info sockets-per-node cores-per-socket threads-per-core G gpus gpu-bind \
         gpu-freq gpus-per-node gpus-per-socket cpu-bind hint accel-bind network open-mode tres-per-task tres-bind \
         uid gid treewidth prefer msg-timeout",
    ),
    (
        Nothing(0),
        "l label u unbuffered v verbose Q quiet O overcommit s oversubscribe k no-kill K kill-on-bad-exit I immediate \
         H hold X disable-status exact exclusive overlap contiguous use-min-nodes reboot pty multi-prog \
         resv-ports quit-on-interrupt compress bcast send-libs nice propagate x11 test-only",
    ),
];

/// What `flux run` takes.
const FLUX: &[(OptionEffect, &str)] = &[
    (Ranks, "n ntasks"),
    (RanksPerNode, "tasks-per-node"),
    (Nodes, "N nodes"),
    (NotFollowed, "tasks-per-core cores"),
    (Placement(1), "taskmap requires"),
    (
        Nothing(1),
        "c cores-per-task g gpus-per-task gpus-per-node o setopt S setattr env env-remove env-file rlimit input output \
         error t time-limit q queue B bank urgency dependency begin-time signal cwd job-name flags add-file conf",
    ),
    (Nothing(0), "l label-io u unbuffered x exclusive v verbose quiet"),
];

/// What Cray's `aprun` takes.
const APRUN: &[(OptionEffect, &str)] = &[
    (Ranks, "n"),
    (NotFollowed, "B"),
    (Placement(1), "N S sn sl L p"),
    (Nothing(1), "d cc cp j m r t e a M w y"),
    (Nothing(0), "b q ss C D T F z"),
];

/// What IBM's `jsrun` takes.
const JSRUN: &[(OptionEffect, &str)] = &[
    (Ranks, "p np"),
    (ResourceSets, "n nrs"),
    (RanksPerSet, "a tasks_per_rs"),
    (NotFollowed, "f appfile U use_resource"),
    (Placement(1), "r rs_per_host d launch_distribution H use_hosts"),
    (
        Nothing(1),
        "c cpu_per_rs g gpu_per_rs m memory_per_rs l latency_priority b bind E env env_eval F env_no_propagate h chdir \
         k stdio_stderr o stdio_stdout t stdio_input e stdio_mode M mpi X exit_on_error smpiargs K rs_per_socket",
    ),
    (Nothing(0), "D i immediate P progress"),
];

/// What TACC's `ibrun` takes.
const IBRUN: &[(OptionEffect, &str)] = &[(Ranks, "n np"), (Nothing(1), "o")];

/// What MVAPICH2's `mpirun_rsh` takes.
const MPIRUN_RSH: &[(OptionEffect, &str)] = &[
    (Ranks, "n np"),
    (NotFollowed, "config"),
    (Nothing(1), "hostfile tv sg ckpoint-interval spawnfile"),
    (
        Nothing(0),
        "rsh ssh debug xterm show v verbose use-xlauncher fastssh nopmi legacy export export-all",
    ),
];

/// The launchers whose options are known. `mpirun` and `mpiexec` may be Open MPI's, Hydra's, or another's: what they
/// take is the union, in which no option has two meanings.
#[rustfmt::skip]
pub const LAUNCHERS: &[LauncherProgram] = &[
    launcher(&["mpirun", "mpiexec", "mpiexec.hydra"], GIVEN, &[OPEN_MPI, HYDRA, HYDRA_OF_ANY]),
    launcher(&["orterun", "mpirun.openmpi", "mpiexec.openmpi", "prterun", "prun"], GIVEN, &[OPEN_MPI]),
    launcher(&["mpirun.mpich", "mpiexec.mpich"], GIVEN, &[HYDRA, HYDRA_OF_MPICH]),
    LauncherProgram { attached: true, ..launcher(&["srun"], DefaultRanks::Srun, &[SRUN]) },
    LauncherProgram { attached: true, ..launcher(&["flux"], DefaultRanks::MustBeTold, &[FLUX]) },
    LauncherProgram { attached: true, colons: true, ..launcher(&["aprun"], DefaultRanks::MustBeTold, &[APRUN]) },
    LauncherProgram { attached: true, ..launcher(&["jsrun"], DefaultRanks::MustBeTold, &[JSRUN]) },
    LauncherProgram { colons: false, ..launcher(&["ibrun"], GIVEN, &[IBRUN]) },
    launcher(&["mpirun_rsh"], DefaultRanks::MustBeTold, &[MPIRUN_RSH]),
];

const GIVEN: DefaultRanks = DefaultRanks::Granted;

const fn launcher(
    names: &'static [&'static str],
    without: DefaultRanks,
    options: &'static [&'static [(OptionEffect, &'static str)]],
) -> LauncherProgram {
    LauncherProgram { names, attached: false, colons: matches!(without, GIVEN), without, options }
}

/// Further programs that start ranks, whose options are not known here.
const OTHERS: [&str; 8] =
    ["lrun", "poe", "runjob", "mprun", "yod", "charmrun", "mpiexec_mpt", "mpirun_mpt"];

/// The launcher of a program's name or path; `Some(None)` of one whose options are not known.
pub fn launcher_of(word: &str) -> Option<Option<&'static LauncherProgram>> {
    let name = word.rsplit('/').next().unwrap_or(word);
    let known = LAUNCHERS.iter().find(|launcher| launcher.names.contains(&name));
    // `mpirun.lsf`, `mpiexec.slurm`: whatever a site calls its own.
    let is_other = OTHERS.contains(&name)
        || ["mpirun", "mpiexec"].iter().any(|begin| {
            name.strip_prefix(begin).is_some_and(|rest| rest.starts_with(['.', '-', '_']))
        });
    known.map(Some).or_else(|| is_other.then_some(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_of_a_launcher_has_two_meanings() {
        for launcher in LAUNCHERS {
            for (effect, names) in launcher.options.iter().copied().flatten() {
                for name in names.split_whitespace() {
                    assert_eq!(launcher.effect(name), Some(*effect), "{:?} {name}", launcher.names);
                }
            }
        }
    }

    #[test]
    fn launchers_are_known_by_name_and_path() {
        let names = |word: &str| launcher_of(word).map(|it| it.map(|it| it.names[0]));
        assert_eq!(names("/opt/ompi/bin/mpirun"), Some(Some("mpirun")));
        assert_eq!(names("mpiexec.openmpi"), Some(Some("orterun")));
        assert_eq!(names("mpirun.lsf"), Some(None));
        assert_eq!(names("mpirun_rsh"), Some(Some("mpirun_rsh")));
        assert_eq!((names("mpirunner"), names("osu_bcast"), names("")), (None, None, None));
    }
}
