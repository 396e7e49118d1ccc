//! Ranks read off the scripts of jobs as strangers write them: the right number, or the line that is not
//! understood.

use std::fs;

use crate::{
    importing::{calls, text},
    support::run,
};

const OSU: &str = "# OSU MPI Broadcast Latency Test v7.3\n# Size       Avg Latency(us)\n1     13.52\n2     14.06\n";

/// The ranks that an import takes from a script, or what it says.
fn ranks(script: &str, flags: &[&str]) -> Result<u32, String> {
    let folder = tempfile::tempdir().unwrap();
    let (file, target) = (folder.path().join("bcast.txt"), folder.path().join("run"));
    fs::write(&file, OSU).unwrap();
    fs::write(folder.path().join("bcast.sh"), script).unwrap();
    let command = ["import", "--from", "osu"].iter().chain(flags).copied();
    let all: Vec<&str> = command.chain([text(&file), text(&target)]).collect();
    let (code, _, stderr) = crate::support::run_output(&all);
    match code {
        0 => Ok(calls(&target, "measurements.csv").rows[0].point.layout.procs()),
        _ => Err(stderr),
    }
}

const GRANTED: &str = "#!/bin/bash\n#SBATCH -N 4\n#SBATCH --ntasks-per-node=8\n";

#[test]
fn launchers_are_read_as_they_count() {
    for (line, wanted) in [
        ("srun ./osu_bcast", 32),
        ("srun -n8 ./osu_bcast", 8),
        ("mpirun -npernode 1 ./osu_bcast", 4),
        ("mpirun --map-by ppr:1:node ./osu_bcast", 4),
        ("mpirun_rsh -np 8 -hostfile hosts ./osu_bcast", 8),
        ("mpirun \\\n   -np 8 \\\n   ./osu_bcast", 8),
        ("MPIRUN=mpirun.openmpi\n$MPIRUN -np 8 ./osu_bcast", 8),
    ] {
        assert_eq!(ranks(&format!("{GRANTED}{line}\n"), &[]), Ok(wanted), "{line}");
    }
}

#[test]
fn a_line_that_is_not_understood_is_named() {
    for (line, wanted) in [
        ("$MPIRUN -np 8 ./osu_bcast", "bcast.sh, line 4: '$MPIRUN -np 8 ./osu_bcast'"),
        ("srun -N 2 ./osu_bcast", "bcast.sh, line 4: 'srun -N 2 ./osu_bcast'"),
        ("for n in 2 4; do\n mpirun -np $n osu_bcast\ndone", "line 5: 'mpirun -np $n osu_bcast'"),
        ("mpirun -np 2 osu_bcast\nmpirun -np 4 osu_bcast", "2 (line 4) and 4 (line 5)"),
        ("./all.sh", "bcast.sh: no line starts ranks"),
    ] {
        let script = format!("{GRANTED}{line}\n");
        let error = ranks(&script, &[]).unwrap_err();
        assert!(error.contains(wanted), "{line}: {error}");
        assert!(error.contains("does not say how many ranks ran"), "{line}: {error}");
        assert!(error.contains("give --procs or --layouts"), "{line}: {error}");
        assert_eq!(ranks(&script, &["--procs", "8"]), Ok(8), "{line}");
    }
}

/// Where only -N and -n are asked for, Slurm may put 5, 1, 1 and 1 ranks on 4 nodes.
#[test]
fn a_layout_is_told_only_where_it_is_sure() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bcast.txt");
    fs::write(&file, OSU).unwrap();
    for (number, (script, procs, layout)) in [
        ("#SBATCH -N 4 --ntasks-per-node=8\nsrun osu_bcast\n", None, Some("4x8")),
        ("#SBATCH -N 4 -n 8\nsrun osu_bcast\n", None, None),
        ("#SBATCH -N 4 -n 8 --exclusive\nsrun osu_bcast\n", None, Some("4x2")),
        ("#SBATCH -N 4 --ntasks-per-node=8\nsrun osu_bcast\n", Some("16"), None),
        ("#SBATCH -N 4 --ntasks-per-node=8\nsrun -m cyclic osu_bcast\n", None, None),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(folder.path().join("bcast.sh"), script).unwrap();
        let target = folder.path().join(format!("run-{number}"));
        let procs = procs.map(|procs| ["--procs", procs]);
        let mut command = vec!["import", "--from", "osu"];
        command.extend(procs.iter().flatten());
        command.extend([text(&file), text(&target)]);
        run(0, &command);
        let header = calls(&target, "measurements.csv").header;
        assert_eq!(header.get("layout").map(String::as_str), layout, "{script}");
    }
}
