/* A loop of MPI_Bcast, MPI_Allreduce and MPI_Alltoall of mixed sizes, with computing between that takes some ranks up to
 * a tenth longer. For timing an application that runs for a while: every window of time prints its turns and the
 * milliseconds of a turn in collectives, the mean of the ranks.
 *
 * Arguments: seconds, seconds of a window. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZES = 4, KINDS = 3 };
static const int bytes[SIZES] = { 1 << 10, 1 << 13, 1 << 16, 1 << 18 };
static unsigned long state = 88172645463325252UL;

/* xorshift64*: the same numbers on all ranks */
static unsigned random_below(unsigned limit)
{
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return (unsigned)((state * 2685821657736338717UL) >> 33) % limit;
}

int main(int argc, char **argv)
{
    int rank, size, is_over = 0;
    double seconds = argc > 1 ? atof(argv[1]) : 60, window = argc > 2 ? atof(argv[2]) : 5;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *from = calloc(1, 1 << 20), *into = calloc(1, 1 << 20);
    double begun = MPI_Wtime(), since = begun, taken = 0;
    long turns = 0;
    while (!is_over) {
        int order[SIZES * KINDS];
        for (int i = 0; i < SIZES * KINDS; i++) {
            int j = random_below(i + 1);
            order[i] = order[j], order[j] = i;
        }
        for (int i = 0; i < SIZES * KINDS; i++) {
            int n = bytes[order[i] % SIZES];
            double compute = 200e-6 * (1 + 0.1 * ((rank * 7 + turns + i) % size) / size), now = MPI_Wtime();
            while (MPI_Wtime() < now + compute) ;
            now = MPI_Wtime();
            switch (order[i] / SIZES) {
            case 0: MPI_Bcast(from, n, MPI_BYTE, 0, MPI_COMM_WORLD); break;
            case 1: MPI_Allreduce(from, into, n / 8, MPI_LONG, MPI_SUM, MPI_COMM_WORLD); break;
            default: MPI_Alltoall(from, n / size, MPI_BYTE, into, n / size, MPI_BYTE, MPI_COMM_WORLD);
            }
            taken += MPI_Wtime() - now;
        }
        turns++;
        /* Not one of the collectives that are timed. */
        double now = MPI_Wtime();
        int is_window = rank == 0 && now > since + window, say[2] = { is_window, now > begun + seconds };
        for (int to = 1; to < size && rank == 0; to++) MPI_Send(say, 2, MPI_INT, to, 0, MPI_COMM_WORLD);
        if (rank > 0) MPI_Recv(say, 2, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        is_over = say[1];
        if (say[0] || is_over) {
            double all = taken;
            for (int of = 1; of < size && rank == 0; of++) {
                double one;
                MPI_Recv(&one, 1, MPI_DOUBLE, of, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                all += one;
            }
            if (rank > 0) MPI_Send(&taken, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
            if (rank == 0) printf("%.1f s: %ld turns, %.3f ms\n", now - begun, turns, all / size / turns * 1e3);
            if (rank == 0) fflush(stdout);
            since = now, taken = 0, turns = 0;
        }
    }
    free(from), free(into);
    MPI_Finalize();
    return 0;
}
