/* Calls each caught collective three times, each of another size by its repetition, so that what is
 * recorded tells whether every call was seen, and seen once. */
#include <mpi.h>

int main(int argc, char **argv)
{
    static int a[4096], b[4096];
    int size, counts[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 64; i++) counts[i] = 2;
    for (int turn = 0; turn < 3; turn++) {
        MPI_Allgather(a, 2, MPI_INT, b, 2, MPI_INT, MPI_COMM_WORLD);
        MPI_Allreduce(a, b, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Alltoall(a, 2, MPI_INT, b, 2, MPI_INT, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Bcast(a, 2, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Exscan(a, b, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Gather(a, 2, MPI_INT, b, 2, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Reduce(a, b, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Reduce_scatter_block(a, b, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Scan(a, b, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Scatter(a, 2, MPI_INT, b, 2, MPI_INT, 0, MPI_COMM_WORLD);
#if defined(LARGE) && MPI_VERSION >= 4
        MPI_Bcast_c(a, 2, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allreduce_c(a, b, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#endif
    }
    MPI_Finalize();
    return 0;
}
