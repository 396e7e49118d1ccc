/* A tool of the profiling interface: counts calls, and prints how many when MPI ends. */
#include <mpi.h>
#include <stdio.h>

static int bcasts, allreduces, barriers;

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    bcasts++;
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    allreduces++;
    return PMPI_Allreduce(send, receive, count, type, op, comm);
}

int MPI_Barrier(MPI_Comm comm)
{
    barriers++;
    return PMPI_Barrier(comm);
}

int MPI_Finalize(void)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("%d saw %d %d %d\n", rank, bcasts, allreduces, barriers);
    fflush(stdout);
    return PMPI_Finalize();
}
