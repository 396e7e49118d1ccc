/* Half of the least round trip between ranks 0 and 1, in seconds, for each size on the command line.
   usage: pingpong BYTES... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < argc; i++) {
        int bytes = atoi(argv[i]), repetitions = bytes < 65536 ? 60 : 8;
        char *buffer = calloc(bytes + 1, 1);
        double least = 1e9;
        for (int r = 0; rank < 2 && r < repetitions; r++) {
            double begin = MPI_Wtime();
            if (rank == 0) {
                MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
                MPI_Recv(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            }
            double half = (MPI_Wtime() - begin) / 2;
            if (half < least)
                least = half;
        }
        if (rank == 0)
            printf("%d %.9f\n", bytes, least);
        free(buffer);
    }
    MPI_Finalize();
    return 0;
}
