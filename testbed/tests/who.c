/* Which ranks are on which node, as MPI sees it.
   Prints for each rank: its number, its processor's name, and how many ranks share its memory. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, length, sharing, one = 1, sum;
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm node;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_processor_name(name, &length);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &sharing);
    printf("%d %s with %d\n", rank, name, sharing);
    fflush(stdout);
    /* All have been heard before any ends: some libraries now and then do not come out of MPI_Finalize. */
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_free(&node);
    return MPI_Finalize();
}
