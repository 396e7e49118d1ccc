use std::path::Path;

use super::*;

fn read(text: &str) -> Result<Script, FileError> {
    Script::read(Lines::new(Path::new("job.sh"), text.as_bytes()))
}

/// The ranks of a script, and where they are: `8`, `32 4x8`; or why they are not known.
fn told(text: &str) -> String {
    let script = read(text).unwrap();
    match (script.ranks(), script.layout()) {
        (Ok(ranks), Some(layout)) => format!("{ranks} {layout:#}"),
        (Ok(ranks), None) => ranks.to_string(),
        (Err(why), _) => why,
    }
}

/// The same where Slurm was asked for 4 nodes with 8 ranks on each.
fn of(commands: &str) -> String {
    told(&format!("#!/bin/bash\n#SBATCH -N 4\n#SBATCH --ntasks-per-node=8\n{commands}\n"))
}

#[test]
fn ranks_nodes_and_library_are_told() {
    let script = read(
        "#!/bin/bash\n#SBATCH --ntasks=64\n#SBATCH --ntasks-per-node=32 --time=0:10:0\n\
         module load gcc/9.3.0-5abm3xg\nmodule load openmpi/4.0.3-qpsxmnc\n\
         export UCX_NET_DEVICES=mlx5_0:1\nsrun osu_allreduce\n",
    )
    .unwrap();
    assert_eq!(script.layout().unwrap().to_string(), "2x32");
    assert_eq!((script.ranks(), script.library.as_str()), (Ok(64), "openmpi/4.0.3-qpsxmnc"));
    assert_eq!(script.settings, ["UCX_NET_DEVICES=mlx5_0:1"]);
}

/// As Slurm 22.05 did with each: `srun sh -c 'echo $SLURMD_NODENAME'` in a job of 4 nodes.
#[test]
fn srun_starts_what_slurm_was_seen_to_start() {
    for (asked, step, wanted) in [
        ("-N 4 --ntasks-per-node=8", "srun x", "32 4x8"),
        ("-N4 --ntasks-per-node 8", "srun -n8 x", "8"),
        ("-N 4 --ntasks-per-node=8", "srun -n 8 x", "8"),
        ("-N 4 --ntasks-per-node=8", "srun --ntasks=8 --nodes=4 --ntasks-per-node=2 x", "8 4x2"),
        ("-N 4 --ntasks-per-node=8", "srun -N 4 x", "32 4x8"),
        ("-N 4 -n 8", "srun x", "8"),
        ("-N 4 -n 8 --exclusive", "srun x", "8 4x2"),
        ("-N 4 -n 4", "srun x", "4 4x1"),
        ("-N 4 -n 8", "srun --ntasks-per-node=2 -n 8 x", "8"),
        ("-n 16 --ntasks-per-node=8", "srun --ntasks-per-node=2 -n 8 x", "8"),
        ("-N 4", "srun x", "4 4x1"),
        ("-N 4", "srun -N 2 x", "2 2x1"),
        ("-N 4 -c 2", "srun --ntasks-per-node=2 x", "8 4x2"),
        ("-N 4", "srun --ntasks-per-node=2 -N 2 x", "4 2x2"),
        ("-N 4 -n 8 --ntasks-per-node=2", "srun x", "8 4x2"),
        ("-N 4 -n 6 --ntasks-per-node=2", "srun x", "6"),
        ("-n 16 --ntasks-per-node=8", "srun x", "16 2x8"),
        ("-n 16 --ntasks-per-node=8", "srun -N 2 x", "16 2x8"),
        ("-n 16 --ntasks-per-node=8", "srun -m cyclic x", "16"),
        ("-N 2-4 -n 8", "srun x", "8"),
        ("--nodes=4-4 -n 8 -x bad[1-3]", "srun x", "8"),
        ("-n 8 # eight", "srun x", "8"),
        (
            "-N 2 --ntasks-per-node=4 -c 4",
            "srun -c 4 --cpu_bind=cores --gpus-per-task=1 x",
            "8 2x4",
        ),
        ("-N 4 --ntasks-per-node=8", "srun -w v0 x", "32"),
    ] {
        let script = format!("#!/bin/bash\n#SBATCH {asked}\n{step}\n");
        assert_eq!(told(&script), wanted, "{asked}; {step}");
    }
}

#[test]
fn launchers_start_what_they_were_seen_or_are_said_to_start() {
    for (line, wanted) in [
        ("mpirun x", "32 4x8"),
        ("mpirun -np 64 osu_bcast -i 100", "64"),
        ("mpirun -np 32 ./osu_bcast", "32 4x8"),
        ("mpirun -npernode 1 x", "4 4x1"),
        ("mpirun -pernode x", "4 4x1"),
        ("mpirun -N 1 x", "4 4x1"),
        ("mpirun --map-by ppr:1:node x", "4 4x1"),
        ("mpirun -np 6 --map-by ppr:2:node:PE=4 x", "6 3x2"),
        ("mpirun -np 32 --map-by node x", "32"),
        ("mpirun --map-by node x", "32"),
        ("mpirun --map-by core x", "32 4x8"),
        ("mpirun --mca btl self,vader -mca pml ob1 -x A=1 -x B -n 8 x", "8"),
        ("mpirun --bind-to core --report-bindings --np 8 -- x", "8"),
        ("orterun -np 8 x", "8"),
        ("/opt/ompi/bin/mpirun.openmpi -c 8 x", "8"),
        ("mpirun.mpich -n 8 -genv A 1 -ppn 2 x", "8 4x2"),
        ("mpiexec.mpich -ppn 2 x", "8 4x2"),
        ("mpiexec -genv A=1 -genv B 2 -n 8 x", "8"),
        ("mpiexec.hydra -n=8 -bind-to core -genvall x", "8"),
        ("mpiexec -n 8 -ppn 2 -hosts a,b,c,d x", "8"),
        ("mpirun_rsh -np 8 -hostfile hosts MV2_CPU=1 x", "8"),
        ("mpirun_rsh -rsh -n 4 n0 n0 n1 n1 x", "4"),
        ("ibrun x", "32 4x8"),
        ("ibrun -n 8 -o 0 x", "8"),
        ("aprun -n32 -N8 -cc depth x", "32"),
        ("aprun -n 4 x : -n 28 y", "32"),
        ("jsrun -n4 -a8 -c8 -bpacked:7 x", "32"),
        ("jsrun --np 16 x", "16"),
        ("flux run -N2 -n8 x", "8"),
        ("flux run -N 2 --tasks-per-node=4 x", "8 2x4"),
        ("flux mini run -n 8 x", "8"),
        ("mpirun -np 2 x : -np 6 y", "8"),
        ("prun -n 8 x", "8"),
        ("time -p mpirun -np 8 x", "8"),
        ("OMP_NUM_THREADS=1 mpirun -np 8 x > out.txt 2>&1", "8"),
        ("nohup mpirun -np 8 x &", "8"),
        ("timeout 60 mpirun -np 8 x || exit 1", "8"),
        ("mpirun \\\n  -np 8 \\\n  x", "8"),
        ("mpirun -np 8 x | tee out.txt; echo mpirun -np 4", "8"),
        ("mpirun -np $SLURM_NTASKS x", "32 4x8"),
        ("time /usr/bin/mpirun -n ${SLURM_NTASKS} x", "32 4x8"),
        ("mpirun -np 8 $BIN/osu_bcast -i 100", "8"),
        ("mpirun -np 8 $EXE", "8"),
        ("N=8\nmpirun -np $N x", "8"),
        ("MPIRUN=`which mpirun`\n${MPIRUN} -np 8 x", "8"),
        ("RUN=\"mpirun -np 8 --bind-to core\"\n$RUN x", "8"),
        ("for s in 1 2; do mpirun -np 8 x -m $s; done", "8"),
        ("for n in 8; do mpirun -np $n x; done", "8"),
        ("# mpirun -np 2 x\nmpirun -np 8 x", "8"),
        ("cat > job2.sh <<EOF\nmpirun -np 2 x\nEOF\nmpirun -np 8 x", "8"),
        ("if command -v mpirun; then mpirun -np 8 x; fi", "8"),
        ("which mpirun\nmpirun --version | head -1\nmpirun -np 8 x", "8"),
        ("srun -n 4 hostname\nsrun x", "32 4x8"),
        ("mpirun -n 4 hostname\nmpirun -n 8 x", "8"),
        ("echo 'it is'\nmpirun -np 8 x 'a b'", "8"),
    ] {
        assert_eq!(of(line), wanted, "{line}");
    }
}

/// The line is named, with why.
#[test]
fn what_is_not_understood_is_said_and_not_guessed() {
    for (line, wanted) in [
        (
            "$MPIRUN -np 8 x",
            "line 4: '$MPIRUN -np 8 x' is not understood: $MPIRUN is not set in the script",
        ),
        ("$RUNNER ./osu_bcast", "$RUNNER is not set"),
        ("\"$CMD\" osu_bcast", "$CMD is not set"),
        ("$(pick) osu_bcast", "what another command tells"),
        ("srun -N 2 x", "differs between versions of Slurm"),
        ("srun --ntasks-per-node=2 x", "differs between versions of Slurm"),
        ("srun -n 4 --het-group=0,1 x", "what its option 'het-group' does is not followed"),
        ("srun -n 2 x : -n 6 y", "it starts several programs"),
        ("srun $OPTIONS x", "$OPTIONS is not set"),
        ("srun -N 2-4 x", "differs between versions of Slurm"),
        ("mpirun -np 8 4 x", "'4' is no program"),
        ("srun -n 8 --new-option x", "its option '--new-option' is not known"),
        ("mpirun -n8 x", "its option '-n8' is not known"),
        ("mpirun -ppn 2 x", "its option 'ppn' leaves the number of ranks open"),
        ("mpirun -host a,b x", "its option 'host' leaves the number of ranks open"),
        ("mpirun --map-by ppr:2:socket x", "its option 'map-by' leaves the number of ranks open"),
        (
            "mpirun --mca rmaps_ppr_n_pernode 2 x",
            "its option 'rmaps_ppr_n_pernode' leaves the number",
        ),
        ("mpirun -np 8 -np 4 x", "is given twice"),
        ("mpirun -np 2 x : y", "the number of ranks of each program (:) is not given"),
        ("mpirun -np 0 x", "its option 'np' is '0'; expected a number of 1 or more"),
        ("mpirun -np", "its option 'np' has no value"),
    ] {
        let told = of(line);
        assert!(
            told.contains(wanted) && told.starts_with("job.sh"),
            "{line}: {told}, not {wanted}"
        );
    }
}

/// What a variable is, or what runs a launcher, may be known only when the script runs.
#[test]
fn what_only_a_run_can_tell_is_said_and_not_guessed() {
    for (line, wanted) in [
        ("mpirun -np $n x", "$n is not set"),
        ("mpirun -np $1 x", "$1 is not set"),
        ("mpirun -np $((2*4)) x", "what another command tells"),
        ("mpirun -np $(wc -l < hosts) x", "what another command tells"),
        ("mpirun -np ${N:-8} x", "$N is not set"),
        ("for n in 2 4; do mpirun -np $n x; done", "$n is 2 or 4"),
        ("N=2\nmpirun -np $N x\nN=4\nmpirun -np $N x", "$N is 2 or 4"),
        (
            "N=2\nwhile read N; do mpirun -np $N x; done < list",
            "$N is known only when the script runs",
        ),
        (
            "mpirun -np 2 x\nmpirun -np 4 x",
            "job.sh: launchers start 2 (line 4) and 4 (line 5) ranks",
        ),
        ("./all.sh", "job.sh: no line starts ranks by a launcher that is known"),
        ("python3 -m runner mpirun -np 8", "what 'python3' does with a launcher is not known"),
        ("bash -c \"mpirun -np 8 x\"", "what runs 'mpirun -np 8 x' is not known"),
        ("ssh head <<EOF\nmpirun -np 8 x\nEOF", "what is given to it as its input is not followed"),
        ("srun -n 1 mpirun -np 8 x", "one launcher starts another"),
        ("mpiexec_mpt -n 8 x", "the options of 'mpiexec_mpt' are not known"),
        ("mpirun.lsf x", "the options of 'mpirun.lsf' are not known"),
        ("poe x -procs 8", "the options of 'poe' are not known"),
        ("jsrun -n 4 x", "the number of ranks is not given"),
        ("flux run -N 2 x", "the number of nodes is not given"),
        ("flux submit -n 8 x", "of flux only 'flux run' is understood"),
        ("aprun -B x", "what its option 'B' does is not followed"),
        ("mpirun_rsh -config file", "what its option 'config' does is not followed"),
        ("SLURM_NTASKS=4 srun x", "what 'SLURM_NTASKS=4' does is not followed"),
        ("export SLURM_NTASKS=4\nsrun x", "the script sets $SLURM_NTASKS"),
        ("mpirun -np 8 'x", "a quote is not closed"),
    ] {
        let told = of(line);
        assert!(
            told.contains(wanted) && told.starts_with("job.sh"),
            "{line}: {told}, not {wanted}"
        );
    }
}

#[test]
fn what_the_batch_system_gives_is_known_or_not() {
    for (head, wanted) in [
        ("#SBATCH -N 2 -n 8\n#SBATCH hetjob\n#SBATCH -n 4", "its parts have ranks of their own"),
        ("#PBS -l select=4:mpiprocs=8", "is written for several batch systems"),
        ("#PBS -l nodes=4\n#SBATCH -n 8", "is written for several batch systems"),
        ("#SBATCH -N 2", "the batch script asks for no number of ranks"),
        ("", "the batch script asks for no number of ranks"),
        // Behind the first command Slurm does not look.
        ("true\n#SBATCH -n 8", "the batch script asks for no number of ranks"),
        ("##SBATCH -n 8", "the batch script asks for no number of ranks"),
    ] {
        let told = told(&format!("#!/bin/bash\n{head}\nmpirun x\n"));
        assert!(told.contains(wanted), "{head}: {told}, not {wanted}");
    }
    for asked in ["#SBATCH -N 4 --ntasks-per-socket=2\nsrun x\n", "#SBATCH -N 4\nsrun -c 2 x\n"] {
        assert!(told(asked).contains("asks for no number of ranks"), "{}", told(asked));
    }
    let placed = told("#SBATCH -N 4\nsrun -w v0 x\n");
    assert!(placed.contains("its option 'w' leaves the number of ranks open"), "{placed}");
}

#[test]
fn a_wrong_number_is_told_with_its_line_and_field() {
    let error = read("#!/bin/sh\n#SBATCH --ntasks=many\n").unwrap_err().to_string();
    assert!(error.starts_with("job.sh, line 2, field --ntasks: is 'many'"), "{error}");
    let error = read("#SBATCH -N x\n").unwrap_err().to_string();
    assert!(error.starts_with("job.sh, line 1, field -N: is 'x'"), "{error}");
    let long = format!("{}\n", "x".repeat(1_000_000)).repeat(5);
    let error = read(&long).unwrap_err().to_string();
    assert!(error.contains("is longer than 4 MiB"), "{error}");
}

#[test]
fn what_a_script_forces_is_what_was_timed() {
    let forced =
        |commands: &str, collective: Collective| match read(commands).unwrap().forced(collective) {
            Some(Ok(method)) => method.to_string(),
            Some(Err(why)) => why,
            None => "default".to_owned(),
        };
    let dynamic = "--mca coll_tuned_use_dynamic_rules";
    let bcast = |options: &str| {
        forced(&format!("mpirun -n 4 {dynamic} 1 {options} ./osu_bcast\n"), Collective::Bcast)
    };
    assert_eq!(bcast(""), "default");
    assert_eq!(bcast("--mca coll_tuned_bcast_algorithm 0"), "default");
    assert_eq!(bcast("--mca coll_tuned_reduce_algorithm 2"), "default");
    let chain = "--mca coll_tuned_bcast_algorithm 3";
    assert_eq!(bcast(chain), "native:openmpi:pipeline");
    let segments = "--mca coll_tuned_bcast_algorithm_segmentsize";
    assert_eq!(bcast(&format!("{chain} {segments} 1024")), "native:openmpi:pipeline,segment=1KiB");
    for (options, why) in [
        (
            "--mca coll_tuned_bcast_algorithm $A".to_owned(),
            "no algorithm of Open MPI has this number",
        ),
        (
            "--mca coll_tuned_bcast_algorithm 77".to_owned(),
            "no algorithm of Open MPI has this number",
        ),
        (format!("{chain} {segments} $S"), "the segment size is no number"),
        (format!("{chain} --mca coll_tuned_bcast_algorithm_chain_fanout 8"), "a fan-out is set"),
        (
            "--mca coll_tuned_dynamic_rules_filename my.rules".to_owned(),
            "that names algorithms of several collectives",
        ),
    ] {
        let told = bcast(&options);
        assert!(
            told.contains(why) && told.contains("--method") && told.contains("line 1"),
            "{told}"
        );
    }

    let exported = "export OMPI_MCA_coll_tuned_use_dynamic_rules=1\n\
                    export OMPI_MCA_coll_tuned_bcast_algorithm=6\nsrun -n 4 a\nsrun -n 4 b\n";
    assert_eq!(forced(exported, Collective::Bcast), "native:openmpi:binomial");
    let twice = format!("mpirun -n 4 {dynamic} 1 {chain} a\nmpirun -n 4 a\n");
    for (commands, why) in [
        (twice.as_str(), "starts ranks by 2 lines"),
        ("mpirun -n 4 --mca coll_tuned_bcast_algorithm 3 a\n", "Open MPI does not heed it"),
        ("UCC_TL_UCP_TUNE=bcast:@knomial mpirun -n 4 a\n", "several collectives"),
        ("I_MPI_ADJUST_BCAST='1:0-1024;2' mpirun -n 4 a\n", "the library's version"),
        ("I_MPI_ADJUST_BCAST=2 mpirun -n 4 a\n", "depends on the library's version"),
        (
            "export MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial\nmpirun -n 4 a\n",
            "the library's version",
        ),
    ] {
        let told = forced(commands, Collective::Bcast);
        assert!(told.contains(why), "{told}");
    }
    for nothing in [
        "# export I_MPI_ADJUST_BCAST=2\nmpirun -n 4 a\n",
        "unset I_MPI_ADJUST_BCAST\nmpirun -n 4 a\n",
        "echo I_MPI_ADJUST_BCAST=2\nmpirun -n 4 a\n",
        "export MPIR_CVAR_BCAST_INTRA_ALGORITHM=auto\nmpirun -n 4 a\n",
    ] {
        assert_eq!(forced(nothing, Collective::Bcast), "default", "{nothing}");
    }
}

#[test]
fn launchers_in_substitutions_and_scripts_that_scripts_run_are_no_secret() {
    assert_eq!(told("R=$(mpirun -np 64 ./osu_bcast)\n"), "64");
    assert_eq!(told("mpirun -np 64 a\nN=`mpirun -n 2 hostname | wc -l`\n"), "64");
    assert!(told("mpirun -n 2 a\nR=$(mpirun -np 64 b)\n").contains("2 (line 1) and 64 (line 2)"));
    for script in
        ["bash bench_osu.sh 64", "source ./real_run.sh", "./run_osu.sh", "time ./sweep.sh"]
    {
        let told = told(&format!("mpirun -n 2 a\n{script}\n"));
        assert!(told.contains("line 2") && told.contains("is not followed"), "{told}");
    }
    for setup in [
        "source env.sh",
        ". /opt/intel/mpi/latest/env/vars.sh",
        "source mpivars.sh",
        "./build_osu.sh",
    ] {
        assert_eq!(told(&format!("{setup}\nmpirun -n 2 a\n")), "2", "{setup}");
    }
}

#[test]
fn a_placement_outside_of_the_launchers_line_leaves_the_layout_open() {
    for (asked, commands) in [
        ("--distribution=cyclic", "srun a"),
        ("-m cyclic", "srun a"),
        ("", "export SLURM_DISTRIBUTION=cyclic\nsrun a"),
        ("", "export OMPI_MCA_rmaps_base_mapping_policy=node\nmpirun -n 16 a"),
        ("", "PRTE_MCA_rmaps_default_mapping_policy=node mpirun -n 16 a"),
        ("", "export MPICH_RANK_REORDER_METHOD=0\nsrun -n 16 a"),
    ] {
        let text = format!("#!/bin/bash\n#SBATCH -N 4 --ntasks-per-node=4 {asked}\n{commands}\n");
        assert_eq!(told(&text), "16", "{text}");
    }
    let block =
        "#!/bin/bash\n#SBATCH -N 4 --ntasks-per-node=4 --distribution=block:cyclic\nsrun a\n";
    assert_eq!(told(block), "16 4x4");
    // Slurm reads directives at the beginning of lines alone.
    assert_eq!(told("#!/bin/bash\n#SBATCH --ntasks=16\n  #SBATCH --ntasks=64\nsrun a\n"), "16");
}

#[test]
fn a_script_is_read_as_a_shell_reads_it() {
    let bytes = b"# r\xe9sum\xe9\nmpirun -n 4 a";
    let script = Script::read(Lines::of_script(Path::new("job.sh"), &bytes[..])).unwrap();
    assert_eq!(script.ranks(), Ok(4));
}

#[test]
fn commands_in_a_log_are_understood() {
    assert_eq!(launched_ranks("$ ssh n1 mpirun --mca a 1 -np 4 -hostfile h ./osu_bcast"), Some(4));
    assert_eq!(launched_ranks("+ srun -n 8 ./osu_bcast"), Some(8));
    assert_eq!(launched_ranks("mpirun noticed that process rank 1 exited"), None);
    assert_eq!(launched_ranks("--------"), None);
    assert!(check_forced("$ mpirun --mca coll_tuned_allreduce_algorithm 4 -np 4 a").is_err());
    assert!(check_forced("[0] MPI startup(): I_MPI_ADJUST_BCAST=2").is_err());
    for other in [
        "I_MPI_ADJUST_BCAST_LIST is ignored",
        "MCA coll tuned: parameter \"coll_tuned_bcast_algorithm\" (current value: \"ignore\", data source: default)",
        "coll_tuned_bcast_algorithm: not set",
    ] {
        assert_eq!(check_forced(other), Ok(()), "{other}");
    }
}
