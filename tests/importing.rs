//! Other tools' measurements become runs: sizes, methods, jobs and layouts as they were, and broken
//! files refused.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use records::{
    Collective,
    imported::{OtherStatistic, PairStreams, StreamDirection},
    observation::{CollectiveCall, ObservationStatus},
    record::{self, Record},
};

use crate::support::run;

pub fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("import/tests/samples").join(name)
}

/// A sample of PICO, unpacked into a directory.
pub fn pico(directory: &Path, name: &str) -> PathBuf {
    let packed = fs::File::open(sample(&format!("pico/{name}.csv.gz"))).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    let path = directory.join(format!("{name}.csv"));
    fs::write(&path, text).unwrap();
    path
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Imports files and gives the run's directory and what was said.
pub fn imported(
    directory: &Path,
    from: &str,
    files: &[PathBuf],
    flags: &[&str],
) -> (PathBuf, String) {
    let run_directory = directory.join("run");
    let files = files.iter().map(|file| text(file));
    let command = ["import", "--from", from].into_iter().chain(flags.iter().copied());
    let all: Vec<&str> = command.chain(files).chain([text(&run_directory)]).collect();
    let (_, stderr) = run(0, &all);
    (run_directory, stderr)
}

pub fn calls(run: &Path, name: &str) -> Record<CollectiveCall> {
    record::read(&run.join(name)).unwrap()
}

/// What a file in another's form is answered with.
pub fn refused(from: &str, text_of_file: &str, flags: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("output.txt");
    fs::write(&file, text_of_file).unwrap();
    let target = folder.path().join("deep/run");
    let paths = [text(&file), text(&target)];
    let (_, stderr) = run(1, &[&["import", "--from", from], flags, &paths].concat());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something is left: {stderr}");
    stderr
}

#[test]
fn pico_jobs_are_told_apart_and_totals_become_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let file = pico(folder.path(), "mare-nostrum-5");
    let (run_directory, said) = imported(folder.path(), "pico", &[file], &[]);
    assert!(said.contains("820 times of collectives by 14 jobs"), "{said}");
    let first = calls(&run_directory, "measurements.csv");
    for (key, wanted) in
        [("job", "2025_04_10___20_36_45 0"), ("layout", "32x1"), ("statistic", "median")]
    {
        assert_eq!(first.header[key], wanted);
    }
    assert!(first.header["rows"].contains("a statistic of many repetitions"));
    let all: Vec<CollectiveCall> = (1..=14)
        .flat_map(|job| {
            let name = if job == 1 { String::new() } else { format!("-{job}") };
            calls(&run_directory, &format!("measurements{name}.csv")).rows
        })
        .collect();
    assert_eq!(all.len(), 820);
    let find = |collective, procs, bytes, method: &str| {
        let is = |row: &&CollectiveCall| {
            (
                row.point.collective,
                row.point.layout.procs(),
                row.point.bytes,
                row.method.to_string().as_str(),
            ) == (collective, procs, bytes, method)
        };
        all.iter().find(is).map(|row| row.seconds)
    };
    // BCAST,32,...,8388608,scatter_allgather_ompi: its size is the vector.
    assert!(find(Collective::Bcast, 32, 8 << 20, "native:openmpi:scatter-allgather").is_some());
    // ALLGATHER of 256 bytes in all on 32 ranks: 8 bytes of each.
    assert!(find(Collective::Allgather, 32, 8, "native:openmpi:neighbor-exchange").is_some());
    // 64 elements of 4 bytes dealt to 60 ranks: one each.
    assert!(find(Collective::ReduceScatter, 60, 4, "native:openmpi:ring").is_some());
    assert!(find(Collective::Bcast, 32, 8 << 20, "other:bine_lat_over").is_some());
    assert!(find(Collective::Alltoall, 32, 8, "default").is_some());
    let others: Record<OtherStatistic> =
        record::read(&run_directory.join("statistics.csv")).unwrap();
    assert_eq!(others.rows.len(), 4 * 820);

    let (table, said) = run(0, &["verify", "--from-record", text(&run_directory)]);
    assert!(said.contains("no model is judged"), "{said}");
    assert!(table.contains("bcast           default"), "{table}");
    // 14 jobs, each of which measured other points: a single one has no p-value below a half.
    let (judged, _) = run(0, &["guidelines", "--from-record", text(&run_directory)]);
    assert!(judged.contains("observations, 1 job, "), "{judged}");
    assert!(judged.contains("p-value possible with 1 job is 5.00e-1"), "{judged}");
    run(0, &["report", text(&run_directory)]);
}

#[test]
fn the_librarys_own_alone_are_imported_where_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let file = pico(folder.path(), "lumi-4-to-32");
    let (run_directory, said) = imported(folder.path(), "pico", &[file], &["--library-only"]);
    assert!(said.contains("left out"), "{said}");
    let rows = calls(&run_directory, "measurements.csv").rows;
    let is_theirs = |method: String| method.starts_with("other:") && !method.ends_with("_mpich");
    assert!(rows.iter().all(|row| !is_theirs(row.method.to_string())));
}

#[test]
fn osu_has_its_ranks_from_the_jobs_script() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["allreduce", "allgather", "alltoall", "latency", "bibw", "mbw_mr_16"];
    let files = names.map(|name| sample(&format!("osu/omb-Osu_{name}.txt")));
    let (run_directory, _) = imported(folder.path(), "osu", &files, &[]);
    let reduced = calls(&run_directory, "measurements.csv");
    assert_eq!(reduced.header["layout"], "2x32");
    assert!(reduced.header["platform"].contains("openmpi/4.0.3"));
    let first = &reduced.rows[0];
    assert_eq!(
        (first.point.collective, first.point.layout.procs(), first.point.bytes),
        (Collective::Allreduce, 64, 4)
    );
    assert_eq!(first.seconds, 5.47e-6);
    let exchanged = calls(&run_directory, "measurements-3.csv").rows;
    assert_eq!(
        (exchanged[0].point.collective, exchanged[0].point.layout.procs()),
        (Collective::Alltoall, 64)
    );
    let streams: Record<PairStreams> =
        record::read(&run_directory.join("pair-streams.csv")).unwrap();
    let find = |direction, pairs, bytes| {
        let is =
            |row: &&PairStreams| (row.direction, row.pairs, row.bytes) == (direction, pairs, bytes);
        streams.rows.iter().find(is).unwrap().seconds
    };
    // Half the way is 91.87 us; 8 pairs send 64 messages each at 11817.95 a second.
    assert!((find(StreamDirection::PingPong, 1, 1 << 20) / 183.74e-6 - 1.0).abs() < 1e-9);
    assert!((find(StreamDirection::OneWay, 8, 1 << 20) / (512.0 / 11_817.95) - 1.0).abs() < 1e-6);
    assert!(
        (find(StreamDirection::BothWays, 1, 1 << 20) / (128.0 * 1.048576 / 20_930.11) - 1.0).abs()
            < 1e-6
    );

    let alone = folder.path().join("alone.txt");
    fs::copy(&files[0], &alone).unwrap();
    let target = folder.path().join("none");
    let (_, stderr) = run(1, &["import", "--from", "osu", text(&alone), text(&target)]);
    assert!(stderr.contains("--procs or --layouts"), "{stderr}");
    assert!(!target.exists());
    run(0, &["import", "--from", "osu", "--layouts", "2x32", text(&alone), text(&target)]);
}

#[test]
fn imb_tells_its_processes_and_its_greatest_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = sample("imb/allreduce-made-up.txt");
    let (run_directory, said) = imported(folder.path(), "imb", &[file], &[]);
    assert!(said.contains("Sendrecv is not read"), "{said}");
    let told: Vec<_> = calls(&run_directory, "measurements.csv")
        .rows
        .iter()
        .map(|row| (row.point.collective, row.point.layout.procs(), row.point.bytes, row.seconds))
        .collect();
    assert_eq!(
        told,
        [
            (Collective::Allreduce, 4, 0, 0.06e-6),
            (Collective::Allreduce, 4, 4, 2.25e-6),
            (Collective::Allreduce, 4, 1024, 4.25e-6),
            (Collective::Allreduce, 8, 4, 3.25e-6),
            // The block of each rank, as since version 2019.
            (Collective::ReduceScatter, 8, 1024, 5.25e-6),
            (Collective::Barrier, 8, 0, 1.5e-6),
        ]
    );
}

#[test]
fn reprompi_tells_every_repetition_or_a_summary() {
    let folder = tempfile::tempdir().unwrap();
    let file = sample("reprompi/runtimes-made-up.txt");
    let (run_directory, _) = imported(folder.path(), "reprompi", &[file], &[]);
    let record = calls(&run_directory, "measurements.csv");
    assert_eq!(
        (record.header["timing"].as_str(), record.header["statistic"].as_str()),
        ("reprompi: global, win", "none")
    );
    let told: Vec<_> = record
        .rows
        .iter()
        .map(|row| (row.visit, row.method.to_string(), row.point.bytes, row.repetition, row.status))
        .collect();
    let (ok, late) = (ObservationStatus::Ok, ObservationStatus::Late);
    let (default, mockup) = ("default", "mockup:bcast_as_scatter_allgather");
    let wanted = [
        (0, default, 0, ok),
        (0, default, 1, late),
        (0, default, 2, ok),
        (1, mockup, 0, ok),
        (1, mockup, 1, ok),
        (2, default, 0, ok),
    ];
    let wanted: Vec<_> = wanted
        .map(|(visit, method, repetition, status)| {
            (visit, method.to_owned(), 1024, repetition, status)
        })
        .into();
    assert_eq!(told, wanted);

    let summary = tempfile::tempdir().unwrap();
    let file = sample("reprompi/summary-made-up.txt");
    let (run_directory, _) = imported(summary.path(), "reprompi", &[file], &[]);
    let record = calls(&run_directory, "measurements.csv");
    assert_eq!((record.header["statistic"].as_str(), record.rows[0].seconds), ("median", 11.3e-6));
}

#[test]
fn csv_columns_are_what_the_user_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("drawer.csv");
    fs::write(
        &file,
        "alg;np;size;t;run\nbinomial;8;8192;12.5;1\nnative:openmpi:ring;8;8192;10;2\n",
    )
    .unwrap();
    let columns = "collective:=allgather,method=alg,procs=np,bytes=size:total,seconds=t:us,job=run";
    let (run_directory, said) = imported(folder.path(), "csv", &[file], &["--columns", columns]);
    assert!(said.contains("by 2 jobs"), "{said}");
    let first = calls(&run_directory, "measurements.csv").rows;
    let second = calls(&run_directory, "measurements-2.csv").rows;
    assert_eq!(
        (first[0].method.to_string().as_str(), first[0].point.bytes),
        ("other:binomial", 1024)
    );
    assert_eq!(
        (second[0].method.to_string().as_str(), second[0].seconds),
        ("native:openmpi:ring", 1e-5)
    );
}

#[test]
fn rows_of_a_csv_file_without_repetitions_are_counted_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("drawer.csv");
    let rows: String = ["bcast,8,1024,1e-5,1", "bcast,8,1024,2e-5,1", "bcast,8,1024,3e-5,2"]
        .into_iter()
        .chain(["bcast,8,1024,4e-5,1", "bcast,8,4096,5e-5,1", "bcast,8,4096,6e-5,1"])
        .map(|row| format!("{row}\n"))
        .collect();
    fs::write(&file, format!("collective,procs,bytes,seconds,job\n{rows}")).unwrap();
    let (run_directory, _) = imported(folder.path(), "csv", &[file], &[]);
    let told = |name| {
        let rows = calls(&run_directory, name).rows.into_iter();
        rows.map(|row| (row.visit, row.repetition, row.seconds)).collect::<Vec<_>>()
    };
    let first = [(0, 0, 1e-5), (0, 1, 2e-5), (0, 2, 4e-5), (1, 0, 5e-5), (1, 1, 6e-5)];
    assert_eq!(told("measurements.csv"), first);
    assert_eq!(told("measurements-2.csv"), [(0, 0, 3e-5)]);
}

#[test]
fn broken_cut_and_mixed_files_are_refused_with_line_and_field() {
    let osu = "# OSU MPI Allreduce Latency Test v5.6.2\n# Size       Avg Latency(us)\n4   5.47\n8   5.89\n";
    let procs = ["--procs", "4"];
    for (text, wanted) in [
        (osu.replace("5.89", "5.8x"), "output.txt, line 4, field Avg Latency: is '5.8x'"),
        (osu.replace("5.89", "-1"), "line 4, field Avg Latency"),
        (osu.replace("8   5.89", "8"), "line 4: 1 fields, expected 2"),
        (osu.trim_end().to_owned(), "line 4: the file ends within this line"),
        (osu.replace("8   ", "2   "), "line 4, field Size: is 2 after 4; two outputs are mixed"),
        (osu.lines().take(2).map(|line| line.to_owned() + "\n").collect(), "ends without a row"),
        (osu.replace("Allreduce", "Allreduction"), "line 1: 'MPI Allreduction Latency Test"),
        (fs::read_to_string(sample("imb/allreduce-made-up.txt")).unwrap(), "expected a title"),
        (
            osu.replace("(us)", "(ms)"),
            "line 2, field Avg Latency(ms): has another unit; expected one of (us)",
        ),
        (String::new(), "holds no table"),
    ] {
        let error = refused("osu", &text, &procs);
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    let imb = fs::read_to_string(sample("imb/allreduce-made-up.txt")).unwrap();
    for (text, wanted) in [
        (imb.replace("# All processes", "# No processes"), "it was cut off"),
        (imb.replace("2.25", "2,25"), "field t_max: is '2,25'"),
        (imb.replace("#processes = 4", "#processes = 0"), "field #processes: is 0"),
        (imb.replace("t_max[usec]", "t_max[msec]"), "field t_max[msec]: is not in microseconds"),
        (
            with_last_column(&imb, "defects", "1.00"),
            "field defects: is '1.00'; expected 0.00: what was received was wrong",
        ),
        (osu.to_owned(), "does not begin as output of the Intel MPI Benchmarks"),
        (format!("{osu}{imb}"), "does not begin as output of the Intel MPI Benchmarks"),
        (format!("{imb}{osu}"), "a row of numbers outside of the Intel MPI Benchmarks' tables"),
    ] {
        let error = refused("imb", &text, &[]);
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    let reprompi = fs::read_to_string(sample("reprompi/runtimes-made-up.txt")).unwrap();
    for (text, wanted) in [
        (reprompi.replace("#@nprocs=16\n", ""), "the number of ranks is missing"),
        (reprompi.replace("#@datatype_extent_bytes=4\n", ""), "field count: counts elements"),
        (reprompi.replace("MPI_Bcast          2", "MPI_Bcst          2"), "field test"),
        (reprompi.replace("0.0000143000", "nan"), "field runtime_sec"),
    ] {
        let error = refused("reprompi", &text, &[]);
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    let header = "system,timestamp,test_id,collective,nodes,ppn,p,mpi_lib,mpi_version,gpu,notes,count_int32,bytes,algorithm,n,min_ns,p10_ns,median_ns,mean_ns,p90_ns\n";
    let row = "m,t,0,BCAST,32,1,32,OMPI,4.1.5,no,null,64,256,binomial_ompi,9,1,2,3,4,5\n";
    for (text, wanted) in [
        (row.replace("BCAST", "BCST"), "line 2, field collective: unknown collective 'bcst'"),
        (row.replace(",32,1,32,", ",16,1,32,"), "line 2, field nodes: is 16 nodes"),
        (row.replace(",2,3,", ",2,"), "line 2: 19 fields, expected 20"),
        (row.replace(",3,4,", ",0,4,"), "line 2: left out, as it tells 0"),
        (
            row.to_owned() + &row.replacen("m,", "other,", 1),
            "line 3, field system: is other after m; expected one cluster",
        ),
    ] {
        let error = refused("pico", &format!("{header}{text}"), &[]);
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
}

/// The table of times of IMB with one more column.
fn with_last_column(imb: &str, title: &str, value: &str) -> String {
    let longer = |line: &str| match line {
        _ if line.contains("t_avg[usec]") => format!("{line}  {title}\n"),
        _ if line.split_whitespace().all(|word| word.parse::<f64>().is_ok())
            && !line.trim().is_empty() =>
        {
            format!("{line}  {value}\n")
        }
        _ => format!("{line}\n"),
    };
    imb.lines().map(longer).collect()
}

#[test]
fn right_data_and_other_forms_of_files_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let imb = fs::read_to_string(sample("imb/allreduce-made-up.txt")).unwrap();
    let file = folder.path().join("checked.txt");
    fs::write(&file, with_last_column(&imb, "defects", "0.00")).unwrap();
    let (checked, _) = imported(folder.path(), "imb", &[file], &[]);
    assert!(!calls(&checked, "measurements.csv").rows.is_empty());

    let packed = folder.path().join("packed.csv");
    fs::write(&packed, b"\x1f\x8b\x08\x00").unwrap();
    let run_directory = folder.path().join("packed");
    let (_, stderr) = run(1, &["import", "--from", "csv", text(&packed), text(&run_directory)]);
    assert!(stderr.contains("packed.csv: is compressed by gzip; unpack it first"), "{stderr}");
}

/// A row that names no nodes ran nobody knows where, whatever the row before says.
#[test]
fn rows_without_nodes_do_not_take_those_of_the_row_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nodes.csv");
    let rows =
        "bcast,16,1024,1e-6,\nbcast,16,1024,1e-6,4x4\nbcast,16,2048,1e-6,\nbcast,8,2048,1e-6,\n";
    fs::write(&file, format!("collective,procs,bytes,seconds,nodes\n{rows}")).unwrap();
    let (run_directory, _) = imported(folder.path(), "csv", &[file], &[]);
    let rows = calls(&run_directory, "measurements.csv").rows;
    let layouts: Vec<String> = rows.iter().map(|row| row.point.layout.to_string()).collect();
    assert_eq!(layouts, ["16", "4x4", "16", "8"]);
}

#[test]
fn what_is_asked_of_csv_files_must_fit_them() {
    let good = "collective,procs,bytes,seconds\nbcast,4,8,1e-6\n";
    for (content, flags, wanted) in [
        (good, &["--procs", "16"][..], "leave out --procs"),
        (good, &["--only-layouts", "16x1"], "the files do not say on which nodes"),
        (
            &good.replace("seconds", "secs"),
            &[],
            "field seconds: there is no such column; say which it is, as in --columns 'seconds=secs,...'",
        ),
        (
            &good.replace("1e-6", "1e30"),
            &[],
            "line 2, field seconds: is '1e30'; expected a time from 0 to 1e15",
        ),
        (
            "#@schema=colibri/measurements/1\nvisit,repetition\n0,0\n",
            &[],
            "line 1: is a record of Colibri's own (measurements/1); use its run as it is",
        ),
        (
            &good.replace("1e-6\n", "1e-6\rbcast,4,16,2e-6\n"),
            &[],
            "line 2: has line ends of old Macs; convert them: tr '\\r' '\\n'",
        ),
    ] {
        let error = refused("csv", content, flags);
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let [file, run_directory] = ["times.csv", "run"].map(|name| folder.path().join(name));
    fs::write(&file, good).unwrap();
    let again =
        folder.path().join("../").join(folder.path().file_name().unwrap()).join("times.csv");
    let (_, stderr) =
        run(1, &["import", "--from", "csv", text(&file), text(&again), text(&run_directory)]);
    assert!(stderr.contains("is given twice"), "{stderr}");
}

#[test]
fn a_run_that_is_there_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = sample("imb/allreduce-made-up.txt");
    let (run_directory, _) = imported(folder.path(), "imb", std::slice::from_ref(&file), &[]);
    let (_, stderr) = run(1, &["import", "--from", "imb", text(&file), text(&run_directory)]);
    assert!(stderr.contains("already exists"), "{stderr}");
}

/// `NODES/output.txt` of each node count, say: a job each. Jobs that are named in files are the same in all.
#[test]
fn files_of_one_name_are_jobs_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let files_of = |name: &str, content: &str| {
        ["2", "4"].map(|directory| {
            let directory = folder.path().join(directory);
            fs::create_dir_all(&directory).unwrap();
            let file = directory.join(name);
            fs::write(&file, content).unwrap();
            file
        })
    };
    let osu = "# OSU MPI Broadcast Latency Test v5.9\n# Size       Avg Latency(us)\n1  2.50\n";
    let files = files_of("output.txt", osu);
    let (run_directory, said) = imported(folder.path(), "osu", &files, &["--procs", "4"]);
    assert!(said.contains("2 times of collectives by 2 jobs"), "{said}");
    let jobs = ["measurements.csv", "measurements-2.csv"]
        .map(|name| calls(&run_directory, name).header["job"].clone());
    assert_eq!(jobs, ["2/output.txt", "4/output.txt"]);

    let files =
        files_of("times.csv", "collective,procs,bytes,seconds,job\nbcast,4,8,1e-6,monday\n");
    let other = folder.path().join("named");
    let (run_directory, _) = imported(&other, "csv", &files, &[]);
    assert_eq!(calls(&run_directory, "measurements.csv").rows.len(), 2);
    assert!(!run_directory.join("measurements-2.csv").exists());
}

/// As within a file.
#[test]
fn clusters_and_memories_of_several_files_are_not_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let refused_together = |from: &str, contents: [String; 2], flags: &[&str]| {
        let files = ["first.txt", "second.txt"].map(|name| folder.path().join(name));
        for (file, content) in files.iter().zip(contents) {
            fs::write(file, content).unwrap();
        }
        let target = folder.path().join("run");
        let paths = [text(&files[0]), text(&files[1]), text(&target)];
        let (_, stderr) = run(1, &[&["import", "--from", from], flags, &paths].concat());
        stderr
    };
    let header = "system,timestamp,test_id,collective,nodes,ppn,p,mpi_lib,mpi_version,gpu,notes,count_int32,bytes,algorithm,n,min_ns,p10_ns,median_ns,mean_ns,p90_ns\n";
    let pico = |system: &str, test: u32, gpu: &str| {
        format!(
            "{header}{system},t,{test},BCAST,32,1,32,OMPI,4.1.5,{gpu},null,64,256,binomial_ompi,9,1,2,3,4,5\n"
        )
    };
    let error = refused_together("pico", [pico("m", 0, "no"), pico("other", 1, "no")], &[]);
    let wanted = "second.txt, line 2, field system: is other after m; expected one cluster";
    assert!(error.contains(wanted), "{error}");
    let error = refused_together("pico", [pico("m", 0, "no"), pico("m", 1, "yes")], &[]);
    let wanted = "second.txt, line 2: buffers of this job are in memory of GPU, those of the first job in the host's";
    assert!(error.contains(wanted), "{error}");
    let osu = |programming: &str| {
        format!(
            "# OSU {programming} Allreduce Latency Test v5.7\n# Size       Avg Latency(us)\n4   9.5\n"
        )
    };
    let error = refused_together("osu", [osu("MPI-CUDA"), osu("MPI")], &["--procs", "4"]);
    assert!(error.contains("second.txt, line 1: buffers of this job are in the host's"), "{error}");
}
