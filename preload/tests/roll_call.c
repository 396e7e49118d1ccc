/* What a process without libcolibri.so would notice of others that have it: collectives of all kinds
 * in step, and receives from anyone that find nothing but what was sent. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, flag = 1, sum = 0, later = 0, token = -1;
    MPI_Comm half;
    MPI_Request request;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    int mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Iallreduce(&mine, &later, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Bcast(&sum, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, &request);
    MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, &status);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_MAX, half);
    MPI_Comm_free(&half);
    int is_right = !flag && sum == size * (size + 1) / 2 && later == sum;
    is_right = is_right && token == (rank + size - 1) % size && mine >= rank + 1 && mine <= size;
    printf("%s\n", is_right ? "right" : "wrong");
    MPI_Finalize();
    return 0;
}
