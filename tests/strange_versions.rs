//! What the tools print in their versions of the last years: titles, columns, datatypes, rows of 0; and
//! jobs whose ranks lay on nodes in several ways.

use std::fs;

use records::{imported::PairStreams, record};

use crate::{
    importing::{calls, imported, refused, sample, text},
    strange_files::read,
    support::run,
};

/// A table of Allreduce under a title, or under none.
fn imb_table(title: &str, benchmark: &str, rows: &str) -> String {
    let title = match title {
        "" => String::new(),
        title => format!("#{0}\n#    {title}\n#{0}\n", "-".repeat(60)),
    };
    format!(
        "{title}# Benchmarking {benchmark} \n# #processes = 4 \n#{}\n       \
         #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n{rows}\n",
        "-".repeat(60)
    )
}

const ROWS: &str = "            0         1000         0.04         0.05         0.04\n            \
                    4         1000         0.42         0.53         0.43\n";
const IMB_END: &str = "\n# All processes entering MPI_Finalize\n\n";

#[test]
fn imb_titles_of_all_versions_are_known() {
    for title in [
        "Intel (R) MPI Benchmark Suite V3.2.4, MPI-1 part",
        "Intel (R) MPI Benchmarks 4.0 Update 1, MPI-1 part",
        "Intel (R) MPI Benchmarks 2018, MPI-1 part    ",
        "Intel(R) MPI Benchmarks 2018, MPI-1 part",
        "Intel(R) MPI Benchmarks 2019 Update 6, MPI-1 part    ",
        "Intel(R) MPI Benchmarks 2021.7, MPI-1 part (GPU)",
    ] {
        let (rows, _) = read("imb", &(imb_table(title, "Allreduce", ROWS) + IMB_END), &[]);
        let wanted = ["1 allreduce default 4 0 0.05", "1 allreduce default 4 4 0.53"];
        assert_eq!(rows, wanted, "{title}");
    }
}

#[test]
fn imb_excerpts_without_a_title_are_read() {
    let excerpt = imb_table("", "Allreduce", ROWS);
    let (rows, said) = read("imb", &excerpt, &[]);
    assert_eq!(rows, ["1 allreduce default 4 0 0.05", "1 allreduce default 4 4 0.53"]);
    assert!(said.contains("line 1: tables without a title"), "{said}");
    // The end of one run and the whole of another: two jobs.
    let whole = imb_table("Intel (R) MPI Benchmarks 2018, MPI-1 part", "Allreduce", ROWS);
    let (rows, _) = read("imb", &format!("{excerpt}{IMB_END}{whole}{IMB_END}"), &[]);
    let jobs: Vec<&str> = rows.iter().map(|row| &row[..1]).collect();
    assert_eq!(jobs, ["1", "1", "2", "2"]);
    // A file that begins within a table says at which line it can't be read.
    let (_, within) = excerpt.split_once("\n            ").unwrap();
    let error = refused("imb", &format!("            {within}"), &[]);
    assert!(error.contains("line 1: does not begin as output of the Intel"), "{error}");
}

/// The vector up to version 2018, the block of each rank since (seen in 2021.11 by the counts of its calls).
#[test]
fn imb_sizes_of_reduce_scatter_are_those_of_the_version() {
    let rows = "         1024         1000         5.05         5.25         5.15\n";
    let of = |title: &str| imb_table(title, "Reduce_scatter", rows) + IMB_END;
    for (title, bytes) in [
        ("Intel(R) MPI Benchmarks 4.1, MPI-1 part", 256),
        ("Intel (R) MPI Benchmarks 2018, MPI-1 part", 256),
        ("Intel(R) MPI Benchmarks 2019 Update 5, MPI-1 part", 1024),
        ("Intel(R) MPI Benchmarks 2021.11, MPI-1 part", 1024),
    ] {
        let (read, _) = read("imb", &of(title), &[]);
        assert_eq!(read, [format!("1 reduce_scatter default 4 {bytes} 5.25")], "{title}");
    }
    let error = refused("imb", &imb_table("", "Reduce_scatter", rows), &[]);
    assert!(error.contains("its size is not the same in all versions"), "{error}");
    // With another datatype than a float a vector of 1,024 bytes has other elements.
    let rows = rows.replace("1024", "  40");
    let title = "Intel (R) MPI Benchmarks 2018, MPI-1 part\n# MPI_Datatype for reductions    :   MPI_DOUBLE";
    let (read, _) = read("imb", &(imb_table(title, "Reduce_scatter", &rows) + IMB_END), &[]);
    assert_eq!(read, ["1 reduce_scatter default 4 8 5.25"]);
}

/// A real output: what 2021.11 prints of the benchmarks that are read, and of some that are not.
#[test]
fn imb_of_2021_is_read_as_it_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let (run_directory, said) =
        imported(folder.path(), "imb", &[sample("imb/imb-2021.11.txt")], &[]);
    let told: Vec<String> = calls(&run_directory, "measurements.csv")
        .rows
        .iter()
        .map(|row| {
            format!("{} {} {}", row.point.collective, row.point.layout.procs(), row.point.bytes)
        })
        .collect();
    let wanted = ["allreduce 4 4", "allreduce 4 8", "reduce_scatter 4 4", "reduce_scatter 4 8"];
    assert_eq!(told[1..3], wanted[..2]);
    assert_eq!(told[4..6], wanted[2..]);
    assert!(said.contains("Reduce_scatter_block is not read"), "{said}");
    let streams = record::read::<PairStreams>(&run_directory.join("pair-streams.csv")).unwrap();
    // 256 messages in a row since 2021.2.
    let messages: Vec<u32> = streams.rows.iter().map(|row| row.messages).collect();
    assert_eq!(messages, [256, 256, 256, 1, 1, 1]);
}

/// Their tables have PingPong, too, of other times.
#[test]
fn imb_parts_that_are_not_read_are_told() {
    let table = "# Benchmarking PingPong\n# #processes = 4\n\
                 #----------------------------------------------------------------\n       \
                 #bytes #repetitions      t[usec]   Mbytes/sec      Msg/sec\n            \
                 4           10         2.42         3.01       751323\n";
    let title = "#    Intel(R) MPI Benchmarks 2021.11, IMB-P2P part\n";
    for file in [format!("{title}{table}{IMB_END}"), table.to_owned()] {
        let error = refused("imb", &file, &[]);
        assert!(error.contains("holds no table that Colibri reads, but PingPong"), "{error}");
    }
    let grouped = "# Benchmarking Allreduce \n# #processes = 4 \n        \
                   Group       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n            \
                   0            4           10         3.35         4.07         3.64\n";
    let title = "#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part\n";
    let (rows, _) = read("imb", &format!("{title}{grouped}{IMB_END}"), &[]);
    assert_eq!(rows, ["1 allreduce default 4 4 4.07"]);
}

/// Two decimals are printed: what is shorter is 0.00.
#[test]
fn rows_of_0_are_left_out_and_told() {
    let title = "Intel(R) MPI Benchmarks 2021.3, MPI-1 part";
    let rows = ROWS.replace("0.04         0.05         0.04", "0.00         0.00         0.00");
    let (read_rows, said) = read("imb", &(imb_table(title, "Allreduce", &rows) + IMB_END), &[]);
    assert_eq!(read_rows, ["1 allreduce default 4 4 0.53"]);
    assert!(said.contains("output.txt, line 8: left out, as it tells 0"), "{said}");
    let rows = rows.replace("0.42         0.53         0.43", "0.00         0.00         0.00");
    let error = refused("imb", &(imb_table(title, "Allreduce", &rows) + IMB_END), &[]);
    assert!(error.contains("output.txt, line 8 and 1 more: left out, as it tells 0"), "{error}");
    let osu = "# OSU MPI Barrier Latency Test v7.3\n# Avg Latency(us)\n0.00\n\
               # OSU MPI Broadcast Latency Test v7.3\n# Size       Avg Latency(us)\n1   0.00\n2  0.01\n";
    let (rows, said) = read("osu", osu, &["--procs", "4"]);
    assert_eq!(rows, ["1 bcast default 4 2 0.01"]);
    assert!(said.contains("line 3 and 1 more: left out, as it tells 0"), "{said}");
    let csv = "collective,procs,bytes,seconds\nbcast,4,1,0\nbcast,4,2,1e-6\n";
    assert_eq!(read("csv", csv, &[]).0, ["1 bcast default 4 2 1"]);
}

#[test]
fn osu_sizes_of_reduce_scatter_are_those_of_the_datatype() {
    let of = |datatype: &str| {
        format!(
            "# OSU MPI Reduce_scatter Latency Test v7.3\n{datatype}# Size       Avg Latency(us)\n\
             4                      13.52\n8                      13.62\n16                     13.72\n\
             24                     13.82\n64                     13.92\n"
        )
    };
    let told = |datatype: &str| {
        let (rows, said) = read("osu", &of(datatype), &["--procs", "8"]);
        let sizes = rows.iter().map(|row| row.split(' ').nth(4).unwrap().parse::<u64>().unwrap());
        (sizes.collect::<Vec<_>>(), said)
    };
    let char = told("# Datatype: MPI_CHAR.\n");
    assert_eq!(char.0, [1, 2, 3, 8]);
    assert!(
        char.1.contains("line 4: vectors of fewer elements than ranks are left out"),
        "{char:?}"
    );
    assert_eq!(told("").0, [8], "a float before version 7");
    assert_eq!(told("# Datatype: MPI_INT.\n").0, [8]);
    assert_eq!(told("# Datatype: MPI_DOUBLE.\n").0, [8]);
    let error = refused("osu", &of("# Datatype: MPI_COMPLEX.\n"), &["--procs", "8"]);
    assert!(error.contains("line 4: unknown datatype 'MPI_COMPLEX'"), "{error}");
}

#[test]
fn columns_of_one_name_are_refused() {
    let osu = "# OSU MPI Broadcast Latency Test\n                    clusterA            clusterB\n\
               # Size    Avg Latency(us)      Avg Latency(us)\n1                    0.45                 3.00\n";
    let error = refused("osu", osu, &["--procs", "4"]);
    let wanted = "line 3, field Avg Latency(us): two columns have this name";
    assert!(error.contains(wanted), "{error}");
    let title = "Intel(R) MPI Benchmarks 2021.3, MPI-1 part";
    let imb = imb_table(title, "Allreduce", ROWS).replace("t_avg[usec]", "t_max[usec]");
    let error = refused("imb", &(imb + IMB_END), &[]);
    assert!(error.contains("field t_max[usec]: two columns have this name"), "{error}");
    let reprompi =
        "#@nprocs=4\n#@datatype_extent_bytes=4\ntest nrep count runtime_sec runtime_sec\n";
    let error = refused("reprompi", reprompi, &[]);
    assert!(error.contains("line 3, field runtime_sec: two columns have this name"), "{error}");
    let pico = fs::read_to_string(sample("pico/summary-2025.csv")).unwrap();
    let error = refused("pico", &pico.replacen("percentile_25", "percentile_10", 1), &[]);
    assert!(error.contains("line 1, field percentile_10: two columns have this name"), "{error}");
}

/// The summaries that PICO itself makes: of early 2025 (`CUDA`), since (`gpu_awareness`) and of 2026
/// (`libpico_version`), where nothing stands in the place of `null`.
#[test]
fn pico_summaries_of_all_versions_are_read() {
    for (name, rows, job) in [
        (
            "summary-2025",
            [
                "reduce_scatter other:bine_permute_remap_over 64 4 17.66",
                "reduce_scatter native:openmpi:recursive-halving 64 1048576 35799.3805",
            ],
            "2025_06_05___15_11_38 0",
        ),
        (
            "summary-2026",
            ["allreduce native:openmpi:ring 8 512 9.5", "allreduce default 8 512 12.25"],
            "2026_03_04___10_20_30 0",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = sample(&format!("pico/{name}.csv"));
        let (run_directory, said) = imported(folder.path(), "pico", &[file], &[]);
        let record = calls(&run_directory, "measurements.csv");
        let told: Vec<String> = record
            .rows
            .iter()
            .map(|row| {
                let procs = row.point.layout.procs();
                let microseconds = (row.seconds * 1e10).round() / 1e4;
                format!(
                    "{} {} {procs} {} {microseconds}",
                    row.point.collective, row.method, row.point.bytes
                )
            })
            .collect();
        assert_eq!(told, rows, "{name}");
        assert_eq!(record.header["job"], job);
        if name == "summary-2026" {
            assert!(said.contains("line 4: left out, as it tells 0 repetitions"), "{said}");
            assert!(said.contains("line 5: buffers in another memory"), "{said}");
        }
    }
}

/// More than a communicator may have would be more hosts than a memory holds.
#[test]
fn ranks_beyond_what_a_communicator_may_have_are_refused() {
    let rate = "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 4294967295 ] [ window size: 64 ]\n\
                # Size                  MB/s        Messages/s\n8   64.00   8000000.00\n";
    let title = "Intel(R) MPI Benchmarks 2021.3, MPI-1 part";
    let imb =
        imb_table(title, "Allreduce", ROWS).replace("processes = 4", "processes = 4000000000");
    let csv = "collective,procs,bytes,seconds\nbcast,16777217,1,1e-6\n";
    let reprompi = "#@nprocs=4294967295\n";
    let pico = fs::read_to_string(sample("pico/summary-2025.csv")).unwrap();
    let pico = pico.replace(",64,1,16", ",640000,6400,16");
    for (from, text) in [
        ("osu", rate),
        ("imb", &(imb + IMB_END)),
        ("csv", csv),
        ("reprompi", reprompi),
        ("pico", &pico),
    ] {
        let error = refused(from, text, &[]);
        let wanted = ["expected 1 to 16777216", "are not a possible layout"];
        assert!(wanted.iter().any(|wanted| error.contains(wanted)), "{from}: {error}");
    }
}

/// Leonardo's runs have 256 nodes with 1 and with 4 ranks.
#[test]
fn layouts_of_one_number_of_ranks_are_held_and_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("aggregated results.csv");
    let pico = fs::read_to_string(sample("pico/summary-2025.csv")).unwrap();
    let (head, rows) = pico.split_once('\n').unwrap();
    let of = |nodes: &str, job: &str| {
        rows.replace(",64,1,16", &format!(",{nodes},16")).replace("15_11_38,0", job)
    };
    let all = [
        of("16,1", "a,0"),
        of("4,4", "a,1"),
        of("64,1", "a,2"),
        of("16,4", "a,3"),
        of("2,1", "a,4"),
    ];
    fs::write(&file, format!("{head}\n{}", all.concat())).unwrap();
    let imported_layouts = |flags: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let (target, said) = imported(folder.path(), "pico", std::slice::from_ref(&file), flags);
        let names = (1..=5).map(|job| match job {
            1 => "measurements.csv".to_owned(),
            job => format!("measurements-{job}.csv"),
        });
        let names = names.filter(|name| target.join(name).exists());
        let layouts = names.map(|name| format!("{:#}", calls(&target, &name).rows[0].point.layout));
        (layouts.collect::<Vec<_>>(), said)
    };
    assert_eq!(imported_layouts(&[]).0, ["16x1", "4x4", "64x1", "16x4", "2x1"]);
    let (layouts, said) = imported_layouts(&["--only-layouts", "4x4,2x1"]);
    assert_eq!(layouts, ["4x4", "2x1"]);
    for wanted in
        ["16 ranks as 16x1 (2 rows)", "64 ranks as 64x1 (2 rows)", "64 ranks as 16x4 (2 rows)"]
    {
        assert!(said.contains(&format!("left out: {wanted}")), "{said}");
    }
    let target = folder.path().join("run");
    let (_, stderr) =
        run(1, &["import", "--from", "pico", "--only-layouts", "3x1", text(&file), text(&target)]);
    assert!(
        stderr.contains("no job ran on 3x1; the files have 2x1, 16x1, 4x4, 64x1, 16x4"),
        "{stderr}"
    );
}
