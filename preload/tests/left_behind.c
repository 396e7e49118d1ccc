/* A message of a collective that nobody receives lies on MPI_COMM_WORLD when the program ends: the
 * root's call was wrong and was refused, the others' were right and have sent. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    enum { N = 40, MOST = 8 };
    int rank, size, class, from[N] = { 0 }, into[N * MOST] = { 0 };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MOST) return 9;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Gather(from, N, MPI_INT, into, rank ? N : -1, MPI_INT, 0, MPI_COMM_WORLD), &class);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (class != (rank ? MPI_SUCCESS : MPI_ERR_COUNT)) return 8;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    printf("%d ended\n", rank);
    return 0;
}
