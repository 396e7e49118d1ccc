//! Output of other tools, as its readers' tests have it.

/// Right samples of a tool's output.
pub fn output_of(tool: &str) -> Vec<String> {
    let texts: &[&str] = match tool {
        "osu" => &[
            include_str!("../../../import/tests/samples/osu/omb-Osu_allreduce.txt"),
            include_str!("../../../import/tests/samples/osu/omb-Osu_mbw_mr_16.txt"),
        ],
        "imb" => &[
            include_str!("../../../import/tests/samples/imb/allreduce-made-up.txt"),
            include_str!("../../../import/tests/samples/imb/imb-IMB_PingPong.txt"),
        ],
        "reprompi" => &[
            include_str!("../../../import/tests/samples/reprompi/runtimes-made-up.txt"),
            include_str!("../../../import/tests/samples/reprompi/summary-made-up.txt"),
        ],
        "pico" => {
            &["system,timestamp,test_id,collective,nodes,ppn,p,mpi_lib,mpi_version,gpu,notes,\
             count_int32,bytes,algorithm,n,min_ns,p10_ns,median_ns,mean_ns,p90_ns\n\
             m,2025_04_10,0,ALLGATHER,8x8x8,1,512,OMPI,4.1.5,no,UCX=1,64,256,ring_ompi,9,1,2,3,4,5\n\
             m,2025_04_10,1,BCAST,32,1,32,OMPI,4.1.5,no,null,64,256,bine_over,9,1,2,3,4,5\n"]
        }
        _ => &["collective,method,procs,bytes,seconds,repetition,job,nodes,library,statistic\n\
             bcast,native:openmpi:binomial,8,64,1e-6,0,one,8x1,Open MPI,\n\
             bcast,default,8,64,\"2e-6\",0,one,8x1,Open MPI,\n"],
    };
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A job's script.
pub fn script() -> String {
    include_str!("../../../import/tests/samples/osu/omb-Osu_allreduce.job.sh").to_owned()
}
