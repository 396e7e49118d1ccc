/* Carries out one collective by the algorithm that SimGrid is told. Each rank prints when it begins
 * and ends, in virtual seconds. Arguments: the collective, and bytes: the whole vector for bcast,
 * reduce, allreduce and scan, else the block between two ranks. With "message": there and back
 * between ranks 0 and 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void round_trip(char *buffer, int bytes, int rank) {
    MPI_Status *ignored = MPI_STATUS_IGNORE;
    if (rank == 0) {
        MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, ignored);
    } else if (rank == 1) {
        MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, ignored);
        MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    int rank, ranks, i;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype type = MPI_BYTE;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    const char *what = argv[1];
    int bytes = argc > 2 ? atoi(argv[2]) : 0;
    size_t most = (size_t)bytes * ranks + 1;
    char *send = calloc(most, 1), *receive = calloc(most, 1);
    int *counts = malloc(ranks * sizeof *counts);
    for (i = 0; i < ranks; i++)
        counts[i] = bytes;
    double start = MPI_Wtime();
    if (strcmp(what, "message") == 0)
        round_trip(send, bytes, rank);
    else if (strcmp(what, "bcast") == 0)
        MPI_Bcast(send, bytes, type, 0, world);
    else if (strcmp(what, "reduce") == 0)
        MPI_Reduce(send, receive, bytes, type, MPI_BXOR, 0, world);
    else if (strcmp(what, "allreduce") == 0)
        MPI_Allreduce(send, receive, bytes, type, MPI_BXOR, world);
    else if (strcmp(what, "allgather") == 0)
        MPI_Allgather(send, bytes, type, receive, bytes, type, world);
    else if (strcmp(what, "alltoall") == 0)
        MPI_Alltoall(send, bytes, type, receive, bytes, type, world);
    else if (strcmp(what, "gather") == 0)
        MPI_Gather(send, bytes, type, receive, bytes, type, 0, world);
    else if (strcmp(what, "scatter") == 0)
        MPI_Scatter(send, bytes, type, receive, bytes, type, 0, world);
    else if (strcmp(what, "reduce_scatter") == 0)
        MPI_Reduce_scatter(send, receive, counts, type, MPI_BXOR, world);
    else if (strcmp(what, "scan") == 0)
        MPI_Scan(send, receive, bytes, type, MPI_BXOR, world);
    else if (strcmp(what, "exscan") == 0)
        MPI_Exscan(send, receive, bytes, type, MPI_BXOR, world);
    else if (strcmp(what, "barrier") == 0)
        MPI_Barrier(world);
    else
        MPI_Abort(world, 1);
    printf("%.15e %.15e\n", start, MPI_Wtime());
    free(counts);
    free(send);
    free(receive);
    MPI_Finalize();
    return 0;
}
