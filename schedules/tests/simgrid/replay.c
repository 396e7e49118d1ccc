/* Carries out a schedule in SimGrid's virtual time. Each rank prints when it begins and ends, in
 * seconds. In the folder that is given there is a file for each rank: first the size of the largest
 * message, then a line for each step, "s peer bytes slot" (send), "r peer bytes slot" (receive) or
 * "w slot" (wait). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 1024 };

int main(int argc, char **argv) {
    static MPI_Request requests[SLOTS];
    int rank, other, bytes, slot, most = 0;
    char what;
    double start;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (slot = 0; slot < SLOTS; slot++)
        requests[slot] = MPI_REQUEST_NULL;
    char name[4096];
    snprintf(name, sizeof name, "%s/%d", argv[1], rank);
    FILE *steps = fopen(name, "r");
    if (!steps || fscanf(steps, "%d", &most) != 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    char *buffer = malloc(most + 1);
    start = MPI_Wtime();
    while (fscanf(steps, " %c %d", &what, &other) == 2) {
        if (what == 'w') {
            MPI_Wait(&requests[other], MPI_STATUS_IGNORE);
        } else if (fscanf(steps, "%d %d", &bytes, &slot) != 2) {
            MPI_Abort(MPI_COMM_WORLD, 2);
        } else if (what == 's') {
            MPI_Isend(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[slot]);
        } else {
            MPI_Irecv(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[slot]);
        }
    }
    printf("%.15e %.15e\n", start, MPI_Wtime());
    fclose(steps);
    free(buffer);
    MPI_Finalize();
    return 0;
}
