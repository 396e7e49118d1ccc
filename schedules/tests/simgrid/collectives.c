/* Prints what a collective takes in SimGrid's virtual time: bytes, seconds. With "message": the
 * time of one message, half of a round trip. */
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
    int rank, i;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (i = 2; i < argc; i++) {
        int bytes = atoi(argv[i]), is_message = strcmp(argv[1], "message") == 0;
        char *send = calloc(bytes + 1, 1), *receive = calloc(bytes + 1, 1);
        double start, end, first, last;
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        if (is_message)
            round_trip(send, bytes, rank);
        else if (strcmp(argv[1], "bcast") == 0)
            MPI_Bcast(send, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        else if (strcmp(argv[1], "reduce") == 0)
            MPI_Reduce(send, receive, bytes, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD);
        else
            MPI_Barrier(MPI_COMM_WORLD);
        end = MPI_Wtime();
        MPI_Allreduce(&start, &first, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%d %.15e\n", bytes, (last - first) / (is_message ? 2 : 1));
        free(send);
        free(receive);
    }
    MPI_Finalize();
    return 0;
}
