//! Files as strangers have them: other versions' headers, several runs in a file, launchers' messages
//! between the rows. Each is read rightly, or refused with line and field.

use std::fs;

use records::{
    imported::{OtherStatistic, PairStreams},
    record,
};

use crate::{
    importing::{calls, imported, refused, text},
    support::run,
};

/// What a file's text becomes: `JOB collective method procs bytes microseconds` of each call, and what
/// was said.
pub fn read(from: &str, content: &str, flags: &[&str]) -> (Vec<String>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("output.txt");
    fs::write(&file, content).unwrap();
    let (run_directory, said) = imported(folder.path(), from, &[file], flags);
    let names = (1..).map(|job| match job {
        1 => (job, "measurements.csv".to_owned()),
        _ => (job, format!("measurements-{job}.csv")),
    });
    let records = names.take_while(|(_, name)| run_directory.join(name).exists());
    let told = records.flat_map(|(job, name)| {
        let told = calls(&run_directory, &name).rows.into_iter().map(move |row| {
            let microseconds = (row.seconds * 1e10).round() / 1e4;
            let procs = row.point.layout.procs();
            format!(
                "{job} {} {} {procs} {} {microseconds}",
                row.point.collective, row.method, row.point.bytes
            )
        });
        told.collect::<Vec<_>>()
    });
    (told.collect(), said)
}

const PROCS: [&str; 2] = ["--procs", "4"];

#[test]
fn osu_of_version_7_in_full_with_validation_and_quantiles() {
    let (rows, _) = read(
        "osu",
        "\n# OSU MPI Allreduce Latency Test v7.5\n# Datatype: MPI_FLOAT.\n\
         # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations    P50 Tail Lat(us)    \
         P90 Tail Lat(us)    P99 Tail Lat(us)          Validation\n\
         4                       2.50              1.50              3.50        1000                2.40                \
         2.90                3.40                Pass\n\
         8                       2.60              1.60              3.60        1000                2.50                \
         2.95                3.50                Pass\n",
        &PROCS,
    );
    assert_eq!(rows, ["1 allreduce default 4 4 2.5", "1 allreduce default 4 8 2.6"]);
    let (rows, _) = read(
        "osu",
        "# OSU MPI Barrier Latency Test v7.2\n# Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n             \
         1.52              1.10              1.90        1000\n",
        &PROCS,
    );
    assert_eq!(rows, ["1 barrier default 4 0 1.52"]);
    let error = refused(
        "osu",
        "# OSU MPI Bcast Latency Test v7.5\n# Size       Avg Latency(us)        Validation\n1   2.50   Pass\n2   2.50   Fail\n"
            .replace("Bcast", "Broadcast")
            .as_str(),
        &PROCS,
    );
    assert!(error.contains("output.txt, line 4, field Validation: is 'Fail'"), "{error}");
}

#[test]
fn osu_statistics_beside_the_mean_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reduce.txt");
    fs::write(
        &file,
        "# OSU MPI Reduce Latency Test v6.2\n\
         # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n\
         100000                132.14             31.23            831.04         100\n",
    )
    .unwrap();
    let (run_directory, _) = imported(folder.path(), "osu", &[file], &PROCS);
    let others = record::read::<OtherStatistic>(&run_directory.join("statistics.csv")).unwrap();
    let told: Vec<_> = others
        .rows
        .iter()
        .map(|row| (row.statistic.as_str(), row.repetitions, (row.seconds * 1e8).round() / 1e2))
        .collect();
    assert_eq!(told, [("least over ranks", 100, 31.23), ("greatest over ranks", 100, 831.04)]);
}

#[test]
fn osu_between_messages_of_launchers_with_ends_of_windows() {
    let (rows, said) = read(
        "osu",
        "\u{feff}srun: job 3521915 queued and waiting for resources\r\n\
         [1663.12] [node1:77 :0] parser.c:1889 UCX  WARN  unused env variable: UCX_HANDLE (maybe: X?)\r\n\
         \r\n# OSU MPI Broadcast Latency Test v5.9\r\n# Size       Avg Latency(us)\r\n1                       2.50\r\n\
         [node1:22534] 3 more processes have sent help message help-mpi-btl-openib.txt / no device\r\n\
         2                       2.60\r\n\
         slurmstepd: error: *** STEP 1.0 ON node1 CANCELLED ***\r\n",
        &PROCS,
    );
    assert_eq!(rows, ["1 bcast default 4 1 2.5", "1 bcast default 4 2 2.6"]);
    let told = "left out what is no row of a table: line 1, 'srun: job 3521915 queued";
    assert!(said.contains(told) && said.contains("and 3 more"), "{said}");
    let broken =
        "# OSU MPI Broadcast Latency Test v5.9\n# Size       Avg Latency(us)\n1  2.50\nx  2.60\n";
    let error = refused("osu", broken, &PROCS);
    assert!(error.contains("line 4, field Size: is 'x'"), "{error}");
}

#[test]
fn osu_starts_in_one_file_are_jobs_and_other_tests_are_left_out() {
    let bcast = "# OSU MPI Broadcast Latency Test v5.9\n# Size       Avg Latency(us)\n1  2.50\n";
    let reduce = "# OSU MPI Reduce Latency Test v5.9\n# Size       Avg Latency(us)\n4  3.50\n";
    let others = "# OSU MPI Non-blocking Broadcast Latency Test v5.9\n\
                  # Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\
                  # Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)\n\
                  1  9.0  4.0  4.5  80.0\n\
                  # OSU UPC Broadcast Latency Test v5.9\n# Size       Avg Latency(us)\n1  9.50\n\
                  # OSU NCCL Allreduce Latency Test v7.0\n# Size       Avg Latency(us)\n4  9.50\n\
                  # OSU MPI Init Test v5.9\nnprocs: 4, min: 120 ms, max: 130 ms, avg: 125 ms\n";
    let (rows, said) = read("osu", &format!("{bcast}{others}{reduce}{bcast}"), &PROCS);
    let wanted = ["1 bcast default 4 1 2.5", "1 reduce default 4 4 3.5", "2 bcast default 4 1 2.5"];
    assert_eq!(rows, wanted);
    for left_out in ["Non-blocking Broadcast", "UPC Broadcast", "NCCL Allreduce", "MPI Init"] {
        assert!(said.contains(left_out), "{left_out}: {said}");
    }
    assert!(said.contains("stands there again"), "{said}");
    // Another version of a test is another start.
    let (rows, _) = read("osu", &format!("{bcast}{}", bcast.replace("v5.9", "v7.3")), &PROCS);
    assert_eq!(rows, ["1 bcast default 4 1 2.5", "2 bcast default 4 1 2.5"]);
    let error = refused("osu", others, &PROCS);
    assert!(error.contains("line 1: 'MPI Non-blocking Broadcast"), "{error}");
}

#[test]
fn osu_tables_of_several_datatypes_give_the_first() {
    let (rows, said) = read(
        "osu",
        "# OSU MPI Allgather Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n1  2.50\n2  2.60\n\
         # Datatype: MPI_INT.\n# Size       Avg Latency(us)\n4  2.70\n",
        &PROCS,
    );
    assert_eq!(rows, ["1 allgather default 4 1 2.5", "1 allgather default 4 2 2.6"]);
    assert!(said.contains("elements of MPI_INT are left out: those of MPI_CHAR"), "{said}");
}

#[test]
fn osu_point_to_point_of_old_and_new_versions_is_the_same() {
    let old = "# OSU MPI Latency Test v3.1.1\n# Size            Latency (us)\n0  1.00\n8  1.25\n";
    let new = "# OSU MPI-CUDA Latency Test v7.5\n# Send Buffer on HOST (H) and Receive Buffer on HOST (H)\n\
         # Datatype: MPI_CHAR.\n# Size       Avg Latency(us)        Validation\n0  1.00  Pass\n8  1.25  Pass\n";
    let streams = [old, new].map(|content| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("latency.txt");
        fs::write(&file, content).unwrap();
        let (run_directory, _) = imported(folder.path(), "osu", &[file], &[]);
        let rows =
            record::read::<PairStreams>(&run_directory.join("pair-streams.csv")).unwrap().rows;
        rows.iter().map(|row| (row.bytes, row.pairs, row.seconds)).collect::<Vec<_>>()
    });
    assert_eq!(streams[0], [(0, 1, 2e-6), (8, 1, 2.5e-6)]);
    assert_eq!(streams[0], streams[1]);
}

/// An output of IMB: what stands between its first and last words.
fn imb(beginning: &str, tables: &str) -> String {
    format!(
        "#----------------------------------------\n#    {beginning}, MPI-1 part    \n\
         #----------------------------------------\n# Date                  : Sun Nov 19 21:33:46 2006\n\n\
         {tables}\n\n# All processes entering MPI_Finalize\n\n"
    )
}

const IMB_BCAST: &str = "#----------------------------------------\n# Benchmarking Bcast \n# #processes = 4 \n\
     # ( 60 additional processes waiting in MPI_Barrier)\n#----------------------------------------\n       \
     #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n            8         1000         0.50         0.75         0.60\n";

#[test]
fn imb_of_old_versions_and_tables_of_several_numbers_of_ranks() {
    for beginning in [
        "Intel (R) MPI Benchmark Suite V3.2.3",
        "Intel(R) MPI Benchmarks 4.1",
        "Intel(R) MPI Benchmarks 2021.3",
    ] {
        let (rows, _) = read("imb", &imb(beginning, IMB_BCAST), &[]);
        assert_eq!(rows, ["1 bcast default 4 8 0.75"], "{beginning}");
    }
    let more = IMB_BCAST.replace("processes = 4", "processes = 64").replace("0.75", "1.75");
    let two = imb("Intel(R) MPI Benchmarks 2019 Update 5", &format!("{IMB_BCAST}\n{more}"));
    let (rows, _) = read("imb", &two, &[]);
    assert_eq!(rows, ["1 bcast default 4 8 0.75", "1 bcast default 64 8 1.75"]);
    // Each start is a job; version 2 does not say that it ends.
    let first = imb("Intel (R) MPI Benchmark Suite V2.3", IMB_BCAST)
        .replace("# All processes entering MPI_Finalize", "");
    let (rows, _) = read("imb", &format!("{first}{first}"), &[]);
    assert_eq!(rows, ["1 bcast default 4 8 0.75", "2 bcast default 4 8 0.75"]);
    let cut = two.replace("# All processes entering MPI_Finalize", "");
    let error = refused("imb", &format!("{cut}{two}"), &[]);
    assert!(error.contains("line 26: the run before ends without"), "{error}");
}

#[test]
fn imb_sizes_not_timed_and_messages_between_are_left_out() {
    let tables = format!(
        "{IMB_BCAST}[node1:22534] 3 more processes have sent help message help-mpi-btl-openib.txt / CQ resized\n           \
         16         1000         0.55         0.80         0.65\n      \
         4194304 out-of-mem.; needed X=   1.003 GB; use flag \"-mem X\" or MAX_MEM_USAGE>=X (IMB_mem_info.h)\n      \
         8388608 int-overflow.; The production rank*size caused int overflow for given sample\n"
    );
    let (rows, said) = read("imb", &imb("Intel(R) MPI Benchmarks 2021.3", &tables), &[]);
    assert_eq!(rows, ["1 bcast default 4 8 0.75", "1 bcast default 4 16 0.8"]);
    for told in ["not time all sizes: out-of-mem.", "int-overflow.", "line 13, '[node1:22534]"] {
        assert!(said.contains(told), "{told}: {said}");
    }
    let broken = imb("Intel(R) MPI Benchmarks 2021.3", &IMB_BCAST.replace("0.75", "0.7 5"));
    let error = refused("imb", &broken, &[]);
    assert!(error.contains("line 12: 6 fields, expected 5"), "{error}");
}

#[test]
fn imb_non_blocking_and_groups_are_left_out_and_defects_are_a_column() {
    let tables = format!(
        "{IMB_BCAST}\n# Benchmarking Ibcast \n# #processes = 4 \n       \
         #bytes #repetitions t_ovrl[usec] t_pure[usec]  t_CPU[usec]   overlap[%]\n            \
         8         1000         9.50         9.75         9.60        90.00\n\n\
         # Benchmarking Multi-Allreduce \n# ( 2 groups of 2 processes each running simultaneous ) \n\
         # Group  0:     0    1 \nGroup       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n     \
         0            4         1000         9.50         9.75         9.60\n"
    );
    let (rows, said) = read("imb", &imb("Intel(R) MPI Benchmarks 2021.3", &tables), &[]);
    assert_eq!(rows, ["1 bcast default 4 8 0.75"]);
    assert!(said.contains("Ibcast is not read") && said.contains("Multi-Allreduce"), "{said}");
    let defects = IMB_BCAST
        .replace("t_avg[usec]", "t_avg[usec]      defects")
        .replace("0.60", "0.60         0.00");
    let (rows, _) = read("imb", &imb("Intel(R) MPI Benchmarks 2021.3", &defects), &[]);
    assert_eq!(rows, ["1 bcast default 4 8 0.75"]);
}

#[test]
fn imb_messages_in_a_row_are_as_many_as_it_was_told() {
    let table = "# Calling sequence was: \n\n# IMB-MPI1 uniband -window_size 16 \n\n# Benchmarking Uniband \n# #processes = 4 \n       \
                 #bytes #repetitions   Mbytes/sec      Msg/sec\n            8         1000         16.0       2000000\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("uniband.txt");
    fs::write(&file, imb("Intel(R) MPI Benchmarks 2021.3", table)).unwrap();
    let (run_directory, _) = imported(folder.path(), "imb", &[file], &[]);
    let rows = record::read::<PairStreams>(&run_directory.join("pair-streams.csv")).unwrap().rows;
    assert_eq!((rows[0].pairs, rows[0].messages, rows[0].seconds), (2, 16, 1.6e-5));
}

#[test]
fn reprompi_files_that_were_appended_to_hold_jobs() {
    let one = "#Command-line arguments: --calls-list=MPI_Bcast\n#@nprocs=16\n#@procsync=barrier\n\
               #@datatype_extent_bytes=1\n[node1:9] 3 more processes have sent help\n                    \
               test       nrep        count    runtime_sec \n      MPI_Bcast          0          256   0.0000123000\n      \
               MPI_Bcast          1          256   0.0000133000\nwarning: slow clock\n";
    let (rows, said) = read("reprompi", &format!("{one}{one}"), &[]);
    let wanted = ["1 bcast default 16 256 12.3", "1 bcast default 16 256 13.3"];
    assert_eq!(rows[..2], wanted);
    assert_eq!(rows[2..], wanted.map(|row| row.replacen('1', "2", 1)));
    assert!(said.contains("line 5, '[node1:9]") && said.contains("and 3 more"), "{said}");
    let broken = one.replace("256   0.0000133000", "256");
    let error = refused("reprompi", &broken, &[]);
    assert!(error.contains("line 8: 3 fields, expected 4"), "{error}");
    let error = refused("reprompi", "4   5.47\n8   5.89\n", &[]);
    assert!(error.contains("line 1: is '4   5.47'; expected '#' lines"), "{error}");
}

/// PICO's own summary, as its `summarize_data.py` writes it.
const PICO_OWN: &str = "collective_type,array_dim,buffer_size,algo_name,datatype,mean,median,std,min,max,nnodes,\
     tasks_per_node,n_iter,percentile_10,percentile_25,percentile_75,percentile_90,iqr,standard_error,ci_lower,ci_upper,\
     num_outliers,system,timestamp,test_id,MPI_Op,CUDA,notes,mpi_lib,mpi_lib_version,libswing_version\n\
     ALLGATHER,64,512.0,ring_ompi,double,4500.5,4000.0,90.0,3000,9000,2x2x2,4,80,3100.0,3500.0,5000.0,6000.0,1500.0,1.0,\
     4400.0,4600.0,2,somewhere,2025_04_10___20_36_45,0,,False,,OMPI,4.1.5,1.0\n";

#[test]
fn picos_own_summary_is_read() {
    let (rows, _) = read("pico", PICO_OWN, &[]);
    // 64 doubles dealt to 32 ranks.
    assert_eq!(rows, ["1 allgather native:openmpi:ring 32 16 4"]);
    for (from, to, wanted) in [
        ("4000.0", "four", "line 2, field median: is 'four'"),
        ("2x2x2", "many", "line 2, field nnodes: is 'many'; expected 32 or 8x8x8"),
        (",double,", ",quad,", "line 2, field datatype: unknown datatype 'quad'"),
        ("ring_ompi", "\"ring_ompi", "line 2: a quotation mark opens in field 4 of this line"),
        ("512.0", "512.5", "line 2, field buffer_size: is '512.5'"),
    ] {
        let error = refused("pico", &PICO_OWN.replace(from, to), &[]);
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    let error = refused("pico", "highest,rank0,rank1\n4000,3000,4000\n", &[]);
    assert!(error.contains("line 1: holds the times of one test"), "{error}");
}

#[test]
fn tables_of_other_countries_and_programs() {
    let columns = ["--columns", "collective=coll,procs=np,bytes=size,seconds=time:us"];
    let (rows, _) = read(
        "csv",
        "\u{feff}\"\";\"coll\";\"np\";\"size\";\"time\"\r\n0;\"MPI_Bcast\";4;1024;12.5\r\n1; BCAST ;4;1024;1.5e1\r\n",
        &columns,
    );
    assert_eq!(rows, ["1 bcast default 4 1024 12.5", "1 bcast default 4 1024 15"]);
    let (rows, _) = read("csv", "coll\tnp\tsize\ttime\nbcast\t4\t1024\t12.5\n", &columns);
    assert_eq!(rows, ["1 bcast default 4 1024 12.5"]);
    let table = "coll;np;size;time\nbcast;4;1024;12.5\n";
    for (from, to, wanted) in [
        ("12.5", "12,5", "line 2, field seconds: is '12,5'; expected a time"),
        ("1024", "1.024", "line 2, field bytes: is '1.024'; expected a size in bytes"),
        (
            "1024",
            "\"1024",
            "line 2: a quotation mark opens in field 3 of this line and none closes it",
        ),
        ("1024", "1K", "line 2, field bytes: is '1K'"),
        (";4;", ";4.0;", "line 2, field procs: is '4.0'"),
        ("12.5", "", "line 2, field seconds"),
        (";12.5", "", "line 2: 3 fields, expected 4"),
        (
            ";12.5",
            ";\"12.5",
            "line 2: a quotation mark opens in field 4 of this line and none closes it",
        ),
        (
            "coll;",
            "\"coll;",
            "line 1: a quotation mark opens in field 1 of this line and none closes it",
        ),
        (";size;", ";np;", "line 1, field np: two columns have this name"),
        ("time", "t", "line 1, field time: there is no such column"),
        ("bcast", "broadcst", "line 2, field collective: unknown collective 'broadcst'"),
    ] {
        let error = refused("csv", &table.replace(from, to), &columns);
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
}

#[test]
fn a_script_with_several_launchers_does_not_tell_the_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bcast.txt");
    fs::write(
        &file,
        "# OSU MPI Broadcast Latency Test v5.9\n# Size       Avg Latency(us)\n1  2.50\n",
    )
    .unwrap();
    let script = folder.path().join("bcast.sh");
    fs::write(
        &script,
        "#SBATCH --nodes=4 --ntasks=8\nfor n in 2 4 8; do mpirun -np $n osu_bcast; done\n",
    )
    .unwrap();
    let target = folder.path().join("run");
    let arguments = ["import", "--from", "osu", text(&file), text(&target)];
    let (_, stderr) = run(1, &arguments);
    let wanted =
        "bcast.sh, line 2: 'do mpirun -np $n osu_bcast' is not understood: $n is 2 or 4 or 8";
    assert!(stderr.contains(wanted) && stderr.contains("give --procs"), "{stderr}");
    fs::write(&script, "#SBATCH --nodes=4 --ntasks=8\nsrun -n 4 osu_bcast\n").unwrap();
    run(0, &arguments);
    assert_eq!(calls(&target, "measurements.csv").rows[0].point.layout.procs(), 4);
}
