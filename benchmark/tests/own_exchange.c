/* Times its own exchange, a broadcast of so many bytes, by each timing method; a line for each. */
#include <colibri_bench.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *message;
static void exchange(void *state, MPI_Comm comm, size_t bytes)
{
    ++*(int *)state;
    MPI_Bcast(message, (int)bytes, MPI_BYTE, 0, comm);
}

int main(int argc, char **argv)
{
    const char *names[] = {"barrier", "global", "max", "root", "bcast"};
    MPI_Init(&argc, &argv);
    size_t bytes = (size_t)atol(argv[1]);
    int rank;
    message = memset(malloc(1 << 20), 1, 1 << 20);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int timing = COLIBRI_BENCH_BARRIER; timing <= COLIBRI_BENCH_BCAST; timing++) {
        colibri_bench_options options;
        colibri_bench_result result;
        int calls = 0;
        colibri_bench_defaults(&options);
        options.timing = timing;
        options.min_repetitions = 8;
        options.max_repetitions = 40;
        options.relative_error = 0.05;
        if (colibri_bench_measure_sizes(MPI_COMM_WORLD, &options, exchange, &calls, &bytes, 1, &result)) {
            fprintf(stderr, "%s: %s\n", names[timing], colibri_bench_error());
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (rank == 0)
            printf("%s %d %d %d %.12f %.12f %.12f %.12f %.12f\n", names[timing], result.repetitions, calls, result.precise,
                   result.median, result.mean, result.low, result.high, result.wtick);
    }
    return MPI_Finalize();
}
