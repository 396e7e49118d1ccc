//! More files as strangers have them: tables with columns, labels and memories that few have.

use std::fs;

use records::{imported::PairStreams, record};

use crate::{
    importing::{calls, imported, refused},
    strange_files::read,
};

const PROCS: [&str; 2] = ["--procs", "8"];

/// `PAIRS bytes messages microseconds` of each exchange in an OSU file, and what was said.
fn exchanges(content: &str) -> (Vec<String>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("exchanges.txt");
    fs::write(&file, content).unwrap();
    let (run_directory, said) = imported(folder.path(), "osu", &[file], &[]);
    let streams = record::read::<PairStreams>(&run_directory.join("pair-streams.csv")).unwrap();
    let told = streams.rows.iter().map(|row| {
        let microseconds = (row.seconds * 1e10).round() / 1e4;
        format!("{} {} {} {microseconds}", row.pairs, row.bytes, row.messages)
    });
    (told.collect(), said)
}

/// Names of columns are 18 wide, so that only one space is between these.
#[test]
fn osu_bandwidths_have_quantiles() {
    let quantiles = "P50 Tail BW(MB/s) P90 Tail BW(MB/s) P99 Tail BW(MB/s)";
    for (names, pass) in [("", ""), ("        Validation", "              Pass")] {
        let (told, _) = exchanges(&format!(
            "\n# OSU MPI Bandwidth Test v7.4\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s){names} {quantiles}\n\
             1                       6.40{pass}              6.20              6.50              6.60\n"
        ));
        assert_eq!(told, ["1 1 64 10"]);
    }
}

#[test]
fn osu_message_rates_may_be_left_out() {
    let title = "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 4 ] [ window size: 64 ]\n";
    let (told, _) =
        exchanges(&format!("{title}# Size                  MB/s\n8                      64.00\n"));
    let with = "# Size                  MB/s        Messages/s\n8                      64.00        8000000.00\n";
    assert_eq!(told, ["4 8 64 32"]);
    assert_eq!(exchanges(&format!("{title}{with}")).0, told);
}

/// They have other times than as many bytes in a row.
#[test]
fn osu_derived_datatypes_are_refused() {
    let table = "# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_CHAR.\n\
                 # Size       Avg Latency(us)     Transmit Size\n64                      3.21                32\n";
    let error = refused("osu", table, &PROCS);
    assert!(error.contains("line 3: derived datatypes (-D) were timed"), "{error}");
}

#[test]
fn osu_buffers_in_other_memory_are_not_mixed() {
    let of = |title: &str, size: u32, microseconds: &str| {
        format!(
            "# OSU {title} Latency Test v5.7\n# Size       Avg Latency(us)\n{size}   {microseconds}\n"
        )
    };
    let both = of("MPI-CUDA Allreduce", 4, "9.5")
        + &of("MPI Allreduce", 4, "2.5")
        + &of("MPI-CUDA Reduce", 4, "8.5");
    let (rows, said) = read("osu", &both, &PROCS);
    assert_eq!(rows, ["1 allreduce default 8 4 9.5", "1 reduce default 8 4 8.5"]);
    assert!(said.contains("CUDA: buffers may be in memory of GPUs"), "{said}");
    assert!(
        said.contains("left out: in 'MPI Allreduce Latency Test v5.7' buffers are in another"),
        "{said}"
    );
    let (rows, _) = read("osu", &of("MPI-CUDA MANAGED Broadcast", 1, "5.5"), &PROCS);
    assert_eq!(rows, ["1 bcast default 8 1 5.5"]);
    let of = |side: &str, microseconds: &str| {
        format!(
            "# OSU MPI-CUDA Latency Test v5.7\n# Send Buffer on {side} and Receive Buffer on {side}\n\
             # Datatype: MPI_CHAR.\n# Size          Latency (us)\n0   {microseconds}\n"
        )
    };
    let (told, said) =
        exchanges(&(of("DEVICE (D)", "5.5") + &of("HOST (H)", "1.5") + &of("DEVICE (D)", "6.5")));
    assert_eq!(told, ["1 0 1 11", "1 0 1 13"]);
    assert!(
        said.contains("'Send Buffer on HOST (H) and Receive Buffer on HOST (H)' is another"),
        "{said}"
    );
}

/// As `mpirun --tag-output`, `srun --label` and Hydra's `-l` write.
#[test]
fn labels_of_launchers_are_taken_off() {
    let osu = "# OSU MPI Allreduce Latency Test v5.6\n# Size       Avg Latency(us)\n\n4                       5.47\n";
    let imb = "#------------------\n#    Intel(R) MPI Benchmarks 2021.7, MPI-1 part\n#------------------\n\
               # Benchmarking Allreduce \n# #processes = 8 \n       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n            \
               4         1000         5.40         5.47         5.45\n\n# All processes entering MPI_Finalize\n";
    let reprompi = "#@nprocs=8\n#@datatype_extent_bytes=1\n    test nrep count runtime_sec\n\n\
                    MPI_Allreduce    0     4  0.00000547\n";
    for label in ["[1,0]<stdout>:", "0: ", "[0] "] {
        for (tool, content) in [("osu", osu), ("imb", imb), ("reprompi", reprompi)] {
            let lines = content.lines().map(|line| format!("{label}{line}\n"));
            let (rows, _) = read(tool, &lines.collect::<String>(), &PROCS);
            assert_eq!(rows, ["1 allreduce default 8 4 5.47"], "{tool} {label}");
        }
    }
}

/// 4, 8 and 16 bytes on 8 ranks would all be blocks of 0 bytes.
#[test]
fn vectors_of_fewer_elements_than_ranks_are_left_out() {
    let osu = "# OSU MPI Reduce_scatter Latency Test v7.3\n# Size       Avg Latency(us)\n4   5.25\n8   6.25\n16  7.25\n32  8.25\n";
    let (rows, said) = read("osu", osu, &PROCS);
    assert_eq!(rows, ["1 reduce_scatter default 8 4 8.25"]);
    assert!(said.contains("fewer elements than ranks are left out"), "{said}");
    let columns = ["--columns", "collective=coll,procs=np,bytes=size:total,seconds=time:us"];
    let (rows, said) = read(
        "csv",
        "coll,np,size,time\nallgather,8,4,5.25\nallgather,8,64,6.25\nbcast,8,4,7.25\n",
        &columns,
    );
    assert_eq!(rows, ["1 allgather default 8 8 6.25", "1 bcast default 8 4 7.25"]);
    assert!(said.contains("fewer elements than ranks are left out"), "{said}");
}

#[test]
fn imb_files_without_a_table_that_is_read_say_what_they_hold() {
    let content = "#    Intel(R) MPI Benchmarks 2021.7, MPI-1 part\n# Benchmarking Sendrecv \n# #processes = 2 \n       \
                   #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec\n            \
                   1         1000         0.63         0.64         0.63         3.12\n\n# All processes entering MPI_Finalize\n";
    let error = refused("imb", content, &[]);
    assert!(error.contains("holds no table that Colibri reads, but Sendrecv; read are"), "{error}");
}

#[test]
fn a_tables_algorithms_are_the_librarys_where_it_is_told() {
    let columns =
        "collective=coll,procs=np,bytes=size,seconds=time:us,method=alg,library=lib,job=run";
    let table = "sep=;\ncoll;np;size;time;alg;lib;run\nbcast;8;4;1.5;binomial;Open MPI v4.1.5;a\n\
                 bcast;8;4;2.5;binomial;;b\nbcast;8;4;3.5;binomial;mpich 4.0;c\n\
                 scatter;8;4;4.5;knomial;openmpi/4.0.3-x;d\nbcast;8;4;5.5;knomial;openmpi/4.0.3-x;d\n";
    let (rows, _) = read("csv", table, &["--columns", columns]);
    let methods: Vec<&str> = rows.iter().map(|row| row.split(' ').nth(2).unwrap()).collect();
    let wanted = [
        "native:openmpi:binomial",
        "other:binomial",
        "native:mpich:binomial",
        "other:knomial",
        "native:openmpi:k-nomial",
    ];
    assert_eq!(methods, wanted);
    let columns = columns.replace(",library=lib", "");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table.csv");
    fs::write(&file, table).unwrap();
    let (run_directory, _) = imported(
        folder.path(),
        "csv",
        &[file],
        &["--columns", &columns, "--mpi-library", "openmpi"],
    );
    assert_eq!(calls(&run_directory, "measurements.csv").rows[0].method.to_string(), wanted[0]);
}

/// By another algorithm, say: two times are no two repetitions.
#[test]
fn imb_tables_that_stand_there_again_are_jobs_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("twice.txt");
    let table = |seconds: f64| {
        format!(
            "# Benchmarking Allreduce \n# #processes = 8 \n\
             #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n\
             8         1000         4.50        {seconds}        11.69\n"
        )
    };
    fs::write(&file, table(18.5) + &table(918.5)).unwrap();
    let (run_directory, said) = imported(folder.path(), "imb", &[file], &[]);
    assert!(said.contains("line 6: Allreduce on 8 processes stands there again"), "{said}");
    assert!(said.contains("2 times of collectives by 2 jobs"), "{said}");
    let seconds = ["measurements.csv", "measurements-2.csv"]
        .map(|name| calls(&run_directory, name).rows[0].seconds);
    assert_eq!(seconds, [18.5e-6, 918.5e-6]);
}

/// As a program writes it that lets each rank print its own time.
#[test]
fn rows_of_each_rank_are_no_repetitions() {
    let columns = ["--columns", "collective:=bcast,procs=p,bytes=b,seconds=t,repetition=r"];
    let one = "p,b,r,t\n2,8,0,1e-6\n2,8,1,1e-6\n2,16,0,1e-6\n";
    for (more, line) in
        [("2,16,0,3e-6\n", 5), ("2,8,1,3e-6\n", 5), ("2,16,1,1e-6\n2,16,1,1e-6\n", 6)]
    {
        let error = refused("csv", &format!("{one}{more}"), &columns);
        let place = format!("line {line}, field repetition");
        assert!(error.contains(&place) && error.contains("one row for each repetition"), "{error}");
    }
    let of_ranks = "collective,procs,bytes,seconds,Rank\nbcast,2,8,1e-6,0\nbcast,2,8,3e-6,1\n";
    let error = refused("csv", of_ranks, &[]);
    assert!(
        error.contains("line 1, field Rank: numbers ranks; expected one row for each"),
        "{error}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table.csv");
    fs::write(
        &file,
        "p,b,r,t,method\n2,8,7,1e-6,Default\n2,8,3,1e-6,DEFAULT\n2,8,5,1e-6,default\n",
    )
    .unwrap();
    let all = [columns[0], &format!("{},method=method", columns[1])];
    let (run_directory, _) = imported(folder.path(), "csv", &[file], &all);
    let methods = calls(&run_directory, "measurements.csv").rows.into_iter();
    assert_eq!(methods.map(|row| row.method.to_string()).collect::<Vec<_>>(), ["default"; 3]);
}

#[test]
fn commands_in_a_log_are_heeded() {
    let table =
        "# OSU MPI Broadcast Latency Test v7.3\n# Size       Avg Latency(us)\n1     13.52\n";
    let forced = format!("$ mpirun -np 8 --mca coll_tuned_bcast_algorithm 6 ./osu_bcast\n{table}");
    let error = refused("osu", &forced, &PROCS);
    assert!(error.contains("line 1: coll_tuned_bcast_algorithm is '6' here"), "{error}");
    let unread = "# OSU MPI Init Test v7.3\nnprocs: 4, min: 120 ms, max: 130 ms, avg: 125 ms\n";
    let error = refused("osu", &format!("{unread}{forced}"), &PROCS);
    assert!(error.contains("line 3: coll_tuned_bcast_algorithm is '6' here"), "{error}");
    let imb = "(base) me@n1:~$ mpirun -np 8 --mca coll_tuned_allreduce_algorithm 4 ./IMB-MPI1\n\
               # Benchmarking Allreduce \n# #processes = 8 \n# ( 8 additional processes waiting in MPI_Barrier)\n\
               ( 8 additional processes waiting in MPI_Barrier)\n\
               #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n4 1000 5.40 5.47 5.45\n";
    let error = refused("imb", imb, &[]);
    assert!(error.contains("line 1: coll_tuned_allreduce_algorithm is '4' here"), "{error}");
    let (_, without) = imb.split_once('\n').unwrap();
    assert_eq!(read("imb", without, &[]).0, ["1 allreduce default 8 4 5.47"]);
    let reprompi = "mpirun -np 8 --mca coll_tuned_bcast_algorithm 6 ./mpibenchmark\n#@nprocs=8\n\
                    #@datatype_extent_bytes=1\ntest nrep count runtime_sec\nMPI_Bcast 0 4 0.00000547\n";
    let error = refused("reprompi", reprompi, &[]);
    assert!(error.contains("line 1: coll_tuned_bcast_algorithm is '6' here"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bcast.log");
    fs::write(&file, format!("+ mpirun -np 144 ./osu_bcast\n{table}")).unwrap();
    let (_, said) = imported(folder.path(), "osu", &[file], &PROCS);
    assert!(said.contains("line 1: '+ mpirun -np 144 ./osu_bcast' starts 144 ranks"), "{said}");
}

#[test]
fn calls_between_two_groups_are_refused() {
    let text = "#@nprocs=4\n#@intercommunicator=true\n";
    let error = refused("reprompi", text, &[]);
    assert!(error.contains("line 2, field intercommunicator: is true; expected"), "{error}");
}

/// A second header tells of another method, and of no layout.
#[test]
fn reprompi_headers_hold_for_their_own_rows() {
    let of = |told: &str, seconds: &str| {
        format!(
            "#@nprocs=4\n#@datatype_extent_bytes=1\n{told}test nrep count runtime_sec\nMPI_Bcast 0 8 {seconds}\n"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("both.txt");
    let first = of("#@method=native:openmpi:binomial\n#@layout=2x2\n", "0.00001");
    fs::write(&file, first + &of("#@method=default\n", "0.00002")).unwrap();
    let (run_directory, _) = imported(folder.path(), "reprompi", &[file], &[]);
    let told = ["measurements.csv", "measurements-2.csv"].map(|name| {
        let row = calls(&run_directory, name).rows.remove(0);
        format!("{} {} {}", row.method, row.point.layout, row.seconds)
    });
    assert_eq!(told, ["native:openmpi:binomial 2x2 0.00001", "default 4 0.00002"]);
}

#[test]
fn messages_within_a_node_are_left_out() {
    let osu = "# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n8  1.25\n";
    let imb = "# Benchmarking PingPong \n# #processes = 2 \n\
               #bytes #repetitions      t[usec]   Mbytes/sec\n8         1000         1.25         6.40\n";
    for (tool, content, layout) in [("osu", osu, "1x2"), ("imb", imb, "4x4"), ("imb", imb, "1x2")] {
        let error = refused(tool, content, &["--layouts", layout]);
        let wanted = "messages between ranks of one node are left out";
        assert!(error.contains(wanted), "{tool} {layout}: {error}");
    }
    for (tool, content, layout) in [("osu", osu, "2x1"), ("imb", imb, "4x1")] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("latency.txt");
        fs::write(&file, content).unwrap();
        let (run_directory, _) = imported(folder.path(), tool, &[file], &["--layouts", layout]);
        let rows =
            record::read::<PairStreams>(&run_directory.join("pair-streams.csv")).unwrap().rows;
        assert_eq!(rows.len(), 1, "{tool} {layout}");
    }
}
