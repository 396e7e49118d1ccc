/* Median time of MPI_Bcast and MPI_Reduce per size, as an application sees it: the slowest rank's
 * time of each call, with all ranks in step before it. An ordinary MPI program, which knows nothing
 * of Colibri: run it with and without libcolibri.so preloaded (docs/preload.md). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int repetitions = argc > 1 ? atoi(argv[1]) : 15, rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *times = malloc(repetitions * sizeof *times);
    double *in = calloc(1 << 17, sizeof *in), *out = calloc(1 << 17, sizeof *out);
    for (int reduce = 0; reduce < 2; reduce++)
        for (int bytes = 1024; bytes <= 1 << 20; bytes *= 4) {
            for (int i = -1; i < repetitions; i++) {
                MPI_Barrier(MPI_COMM_WORLD);
                double start = MPI_Wtime(), mine, all;
                if (reduce)
                    MPI_Reduce(in, out, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
                else
                    MPI_Bcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
                mine = MPI_Wtime() - start;
                MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
                if (i >= 0)
                    times[i] = all;
            }
            qsort(times, repetitions, sizeof *times, ascending);
            if (rank == 0)
                printf("%s %d procs %d bytes %.6f s\n", reduce ? "reduce" : "bcast", size, bytes,
                       times[repetitions / 2]);
        }
    MPI_Finalize();
    return 0;
}
