//! Output of other tools, as its readers' tests have it.

/// Right samples of a tool's output.
pub fn output_of(tool: &str) -> Vec<String> {
    let texts: &[&str] = match tool {
        "osu" => &[
            include_str!("../../../import/tests/samples/osu/omb-Osu_allreduce.txt"),
            include_str!("../../../import/tests/samples/osu/omb-Osu_mbw_mr_16.txt"),
            "# OSU MPI-CUDA Reduce_scatter Latency Test v7.4\n# Datatype: MPI_CHAR.\n\
             # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n\
             64                     13.52             12.52             14.52        1000\n\
             128                     0.00              0.00              0.00        1000\n\
             # OSU MPI Bandwidth Test v7.4\n# Send Buffer on HOST (H) and Receive Buffer on HOST (H)\n\
             # Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)\n1   6.40\n\
             # OSU MPI Barrier Latency Test v7.4\n# Avg Latency(us)\n1.52\n",
        ],
        "imb" => &[
            include_str!("../../../import/tests/samples/imb/allreduce-made-up.txt"),
            include_str!("../../../import/tests/samples/imb/imb-IMB_PingPong.txt"),
            include_str!("../../../import/tests/samples/imb/imb-2021.11.txt"),
            "# Benchmarking Allreduce \n# #processes = 4 \n       \
             #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n            \
             0         1000         0.00         0.00         0.00\n            \
             4         1000         0.42         0.53         0.43\n      \
             4194304 out-of-mem.; needed X=   1.003 GB\n# All processes entering MPI_Finalize\n\
             #    Intel (R) MPI Benchmarks 2018, MPI-1 part\n# Benchmarking Biband \n# #processes = 4 \n       \
             #bytes #repetitions   Mbytes/sec      Msg/sec\n            \
             4         1000         9.11      2276970\n# All processes entering MPI_Finalize\n",
        ],
        "reprompi" => &[
            include_str!("../../../import/tests/samples/reprompi/runtimes-made-up.txt"),
            include_str!("../../../import/tests/samples/reprompi/summary-made-up.txt"),
        ],
        "pico" => &[
            "system,timestamp,test_id,collective,nodes,ppn,p,mpi_lib,mpi_version,gpu,notes,\
             count_int32,bytes,algorithm,n,min_ns,p10_ns,median_ns,mean_ns,p90_ns\n\
             m,2025_04_10,0,ALLGATHER,8x8x8,1,512,OMPI,4.1.5,no,UCX=1,64,256,ring_ompi,9,1,2,3,4,5\n\
             m,2025_04_10,1,BCAST,32,1,32,OMPI,4.1.5,no,null,64,256,bine_over,9,1,2,3,4,5\n",
            include_str!("../../../import/tests/samples/pico/summary-2025.csv"),
            include_str!("../../../import/tests/samples/pico/summary-2026.csv"),
        ],
        _ => &[
            "collective,method,procs,bytes,seconds,repetition,job,nodes,library,statistic\n\
             bcast,native:openmpi:binomial,8,64,1e-6,0,one,8x1,Open MPI,\n\
             bcast,default,8,64,\"2e-6\",0,one,8x1,Open MPI,\n",
            "procs;bytes;collective;seconds\n8;64;MPI_Bcast;1e-6\n8;64;MPI_Bcast;0\n",
        ],
    };
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Scripts of jobs.
pub fn scripts() -> Vec<String> {
    let texts = [
        include_str!("../../../import/tests/samples/osu/omb-Osu_allreduce.job.sh"),
        "#!/bin/bash\n#SBATCH -N4 --ntasks-per-node 8 --exclusive\n#SBATCH --time=0:10:0\n\
         export N=8 LIST='2 4'\nMPIRUN=$(which mpirun)\ncat > hosts <<EOF\nnode1\nmpirun -n 2 x\nEOF\n\
         for size in 1 2; do\n  $MPIRUN -np ${N} --map-by ppr:2:node \\\n    -x A=1 ./osu_bcast -m $size > out 2>&1\n\
         done\nif [ -e hosts ]; then srun -n8 \"./osu bcast\" | tee out; fi\n",
        "#PBS -l select=4:mpiprocs=8\naprun -n 4 a : -n 4 b\njsrun -n 4 -a 2 x && ibrun x; flux run -N2 -n8 x\n\
         ((n *= 2)); let n=n+1\nmpirun_rsh -np 8 -hostfile h x &\n",
    ];
    texts.map(str::to_owned).into()
}
