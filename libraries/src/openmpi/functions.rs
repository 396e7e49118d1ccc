//! The functions behind the algorithms, exported as `ompi_coll_base_...`, and as `mca_coll_...` those of coll/han and
//! coll/sm: whoever stands before them sees which ran.

/// Calls a macro with all of them. A line per collective gives Open MPI's arguments that are only
/// passed on, then each function with the arguments after those, which tell its parameters.
///
/// The signatures are those of `ompi/mca/coll/base/coll_base_functions.h`, 4.1 and 5.0, in terms of
/// a `Word` (any pointer) and a `c_int` that the caller defines. A count is an `int` in both and a
/// `size_t` in later versions: it is passed on as a whole machine word, which serves both, since it
/// travels in a register on x86-64 and AArch64. It is not looked at.
#[macro_export]
macro_rules! openmpi_functions {
    ($then:ident) => {
        $then! {
            allgather (send: Word, count: usize, type_: Word, receive: Word, received: usize, received_type: Word,
             comm: Word, module: Word) {
                ompi_coll_base_allgather_intra_basic_linear ();
                ompi_coll_base_allgather_intra_bruck ();
                ompi_coll_base_allgather_intra_neighborexchange ();
                ompi_coll_base_allgather_intra_recursivedoubling ();
                ompi_coll_base_allgather_intra_ring ();
                ompi_coll_base_allgather_intra_two_procs ();
                mca_coll_han_allgather_intra ();
                mca_coll_han_allgather_intra_simple ();
            }
            allgatherv (send: Word, count: usize, type_: Word, receive: Word, counts: Word, places: Word,
             received_type: Word, comm: Word, module: Word) {
                ompi_coll_base_allgatherv_intra_basic_default ();
                ompi_coll_base_allgatherv_intra_bruck ();
                ompi_coll_base_allgatherv_intra_neighborexchange ();
                ompi_coll_base_allgatherv_intra_ring ();
                ompi_coll_base_allgatherv_intra_two_procs ();
            }
            allreduce (send: Word, receive: Word, count: usize, datatype: Word, op: Word, comm: Word, module: Word) {
                ompi_coll_base_allreduce_intra_basic_linear ();
                ompi_coll_base_allreduce_intra_nonoverlapping ();
                ompi_coll_base_allreduce_intra_recursivedoubling ();
                ompi_coll_base_allreduce_intra_redscat_allgather ();
                ompi_coll_base_allreduce_intra_ring ();
                ompi_coll_base_allreduce_intra_ring_segmented (segment);
                mca_coll_han_allreduce_intra ();
                mca_coll_han_allreduce_intra_simple ();
                mca_coll_sm_allreduce_intra ();
            }
            alltoall (send: Word, count: usize, type_: Word, receive: Word, received: usize, received_type: Word,
             comm: Word, module: Word) {
                ompi_coll_base_alltoall_intra_basic_linear ();
                ompi_coll_base_alltoall_intra_bruck ();
                ompi_coll_base_alltoall_intra_linear_sync (requests);
                ompi_coll_base_alltoall_intra_pairwise ();
                ompi_coll_base_alltoall_intra_two_procs ();
            }
            alltoallv (send: Word, counts: Word, places: Word, type_: Word, receive: Word, received: Word,
             received_places: Word, received_type: Word, comm: Word, module: Word) {
                ompi_coll_base_alltoallv_intra_basic_linear ();
                ompi_coll_base_alltoallv_intra_pairwise ();
            }
            barrier (comm: Word, module: Word) {
                ompi_coll_base_barrier_intra_basic_linear ();
                ompi_coll_base_barrier_intra_bruck ();
                ompi_coll_base_barrier_intra_doublering ();
                ompi_coll_base_barrier_intra_recursivedoubling ();
                ompi_coll_base_barrier_intra_tree ();
                ompi_coll_base_barrier_intra_two_procs ();
                mca_coll_han_barrier_intra_simple ();
                mca_coll_sm_barrier_intra ();
            }
            bcast (buffer: Word, count: usize, datatype: Word, root: c_int, comm: Word, module: Word) {
                ompi_coll_base_bcast_intra_basic_linear ();
                ompi_coll_base_bcast_intra_binomial (segment);
                ompi_coll_base_bcast_intra_bintree (segment);
                ompi_coll_base_bcast_intra_chain (segment, fan_out);
                ompi_coll_base_bcast_intra_knomial (segment, fan_out);
                ompi_coll_base_bcast_intra_pipeline (segment);
                ompi_coll_base_bcast_intra_scatter_allgather (segment);
                ompi_coll_base_bcast_intra_scatter_allgather_ring (segment);
                ompi_coll_base_bcast_intra_split_bintree (segment);
                mca_coll_han_bcast_intra ();
                mca_coll_han_bcast_intra_simple ();
                mca_coll_sm_bcast_intra ();
            }
            exscan (send: Word, receive: Word, count: usize, datatype: Word, op: Word, comm: Word, module: Word) {
                ompi_coll_base_exscan_intra_linear ();
                ompi_coll_base_exscan_intra_recursivedoubling ();
            }
            gather (send: Word, count: usize, type_: Word, receive: Word, received: usize, received_type: Word,
             root: c_int, comm: Word, module: Word) {
                ompi_coll_base_gather_intra_basic_linear ();
                ompi_coll_base_gather_intra_binomial ();
                ompi_coll_base_gather_intra_linear_sync (segment);
                mca_coll_han_gather_intra ();
                mca_coll_han_gather_intra_simple ();
            }
            reduce (send: Word, receive: Word, count: usize, datatype: Word, op: Word, root: c_int,
             comm: Word, module: Word) {
                ompi_coll_base_reduce_intra_basic_linear ();
                ompi_coll_base_reduce_intra_binary (segment, requests);
                ompi_coll_base_reduce_intra_binomial (segment, requests);
                ompi_coll_base_reduce_intra_chain (segment, fan_out, requests);
                ompi_coll_base_reduce_intra_in_order_binary (segment, requests);
                ompi_coll_base_reduce_intra_pipeline (segment, requests);
                ompi_coll_base_reduce_intra_redscat_gather ();
                mca_coll_han_reduce_intra ();
                mca_coll_han_reduce_intra_simple ();
                mca_coll_sm_reduce_intra ();
            }
            reduce_scatter (send: Word, receive: Word, counts: Word, datatype: Word, op: Word,
             comm: Word, module: Word) {
                ompi_coll_base_reduce_scatter_intra_basic_recursivehalving ();
                ompi_coll_base_reduce_scatter_intra_butterfly ();
                ompi_coll_base_reduce_scatter_intra_nonoverlapping ();
                ompi_coll_base_reduce_scatter_intra_ring ();
            }
            reduce_scatter_block (send: Word, receive: Word, count: usize, datatype: Word, op: Word, comm: Word, module: Word) {
                ompi_coll_base_reduce_scatter_block_intra_butterfly ();
                ompi_coll_base_reduce_scatter_block_intra_recursivedoubling ();
                ompi_coll_base_reduce_scatter_block_intra_recursivehalving ();
            }
            scan (send: Word, receive: Word, count: usize, datatype: Word, op: Word, comm: Word, module: Word) {
                ompi_coll_base_scan_intra_linear ();
                ompi_coll_base_scan_intra_recursivedoubling ();
            }
            scatter (send: Word, count: usize, type_: Word, receive: Word, received: usize, received_type: Word,
             root: c_int, comm: Word, module: Word) {
                ompi_coll_base_scatter_intra_basic_linear ();
                ompi_coll_base_scatter_intra_binomial ();
                ompi_coll_base_scatter_intra_linear_nb (requests);
                mca_coll_han_scatter_intra ();
                mca_coll_han_scatter_intra_simple ();
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use records::{Algorithm, Collective};

    use crate::openmpi::{algorithms::algorithms, han, sm};

    macro_rules! names {
        ($($collective:ident $passed:tt { $($name:ident $noted:tt;)* })*) => {
            &[$($(stringify!($name)),*),*]
        };
    }

    /// Whatever can be forced can be seen.
    #[test]
    fn every_algorithm_is_among_them() {
        let seen: &[&str] = openmpi_functions!(names);
        for collective in Collective::ALL {
            for row in algorithms(collective) {
                let name = format!("ompi_coll_base_{}", row.function);
                assert!(seen.contains(&name.as_str()), "{name}");
            }
            for algorithm in [Algorithm::Han, Algorithm::HanSimple] {
                let Some(row) = han::find(collective, algorithm) else { continue };
                let name = format!("mca_coll_{}", han::function(collective, row));
                assert!(seen.contains(&name.as_str()), "{name}");
            }
            let name = format!("mca_coll_{}", sm::function(collective));
            assert_eq!(seen.contains(&name.as_str()), sm::has(collective), "{name}");
        }
    }
}
