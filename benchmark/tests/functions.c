/* Every function of the header, as a program would call it; what is refused; that all ranks get the same. */
#include <colibri_bench.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WANT(holds)                                                                      \
    do {                                                                                 \
        if (!(holds)) {                                                                  \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #holds, colibri_bench_error()); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                \
        }                                                                                \
    } while (0)

static void nothing(void *state, MPI_Comm comm)
{
    (void)state, (void)comm;
}

static void allgather(void *state, MPI_Comm comm, size_t bytes)
{
    char *buffer = state;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, buffer, (int)bytes, MPI_BYTE, comm);
}

/* What all ranks have alike is what rank 0 has. */
static void want_same(const void *what, size_t bytes)
{
    char *copy = malloc(bytes);
    memcpy(copy, what, bytes);
    MPI_Bcast(copy, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    WANT(memcmp(copy, what, bytes) == 0);
    free(copy);
}

static void want_sound(const colibri_bench_result *results, int count)
{
    for (int i = 0; i < count; i++) {
        WANT(results[i].repetitions >= 5 && results[i].repetitions <= 12);
        WANT(results[i].low <= results[i].mean && results[i].mean <= results[i].high);
        WANT(results[i].median > 0 && results[i].wtick > 0 && results[i].wtick < 1e-3);
        WANT(i == 0 || results[i - 1].bytes < results[i].bytes);
    }
    want_same(results, sizeof *results * (size_t)count);
}

static void pairs(const colibri_bench_options *options, int ranks)
{
    int count = ranks * (ranks - 1) / 2;
    colibri_bench_pair *found = calloc((size_t)count, sizeof *found);
    for (int way = 0; way < 4; way++) {
        WANT(!colibri_bench_pairs(MPI_COMM_WORLD, options, way % 2, way / 2, 1000, found));
        for (int i = 0; i < count; i++) {
            WANT(found[i].one < found[i].other && found[i].other < ranks);
            WANT(i == 0 || found[i - 1].one < found[i].one || found[i - 1].other < found[i].other);
            WANT(found[i].result.bytes == 1000);
        }
        for (int i = 0; i < count; i++)
            want_sound(&found[i].result, 1);
    }
    free(found);
    colibri_bench_result result;
    WANT(!colibri_bench_p2p(MPI_COMM_WORLD, options, COLIBRI_BENCH_PING_PONG, 1, 0, 8, &result));
    want_sound(&result, 1);
    WANT(colibri_bench_p2p(MPI_COMM_WORLD, options, 0, 0, ranks, 8, &result) == COLIBRI_BENCH_REFUSED);
    WANT(strstr(colibri_bench_error(), "rank"));
}

static void collectives(const colibri_bench_options *options, const char *file, int ranks)
{
    const char *names[] = {"allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "barrier", "bcast", "exscan",
        "gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "scatter", "scatterv"};
    const char *uneven[] = {"allgatherv", "gatherv", "scatterv"};
    const char *methods[] = {"default", "own:linear-ascending", "own:binomial-descending", "own:traff"};
    size_t sizes[] = {8, 4096};
    colibri_bench_result results[2];
    double *factors = calloc((size_t)ranks, sizeof *factors);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        WANT(!colibri_bench_collective(MPI_COMM_WORLD, options, names[i], NULL, NULL, sizes, 2, results));
        want_sound(results, 2);
    }
    WANT(!colibri_bench_factors(file, factors, ranks));
    WANT(factors[0] == 1 && factors[1] == 0);
    for (size_t i = 0; i < sizeof uneven / sizeof *uneven; i++)
        for (size_t j = 0; j < (i == 0 ? 1 : sizeof methods / sizeof *methods); j++) {
            WANT(!colibri_bench_collective(MPI_COMM_WORLD, options, uneven[i], methods[j], factors, sizes, 2, results));
            want_sound(results, 2);
        }
    WANT(colibri_bench_collective(MPI_COMM_WORLD, options, "bcast", NULL, factors, sizes, 2, results) == 1);
    WANT(strstr(colibri_bench_error(), "takes no factors"));
    WANT(colibri_bench_collective(MPI_COMM_WORLD, options, "bcst", NULL, NULL, sizes, 2, results) == 1);
    WANT(strstr(colibri_bench_error(), "bcast"));
    WANT(colibri_bench_factors("/no/such/file", factors, ranks) == 1);
    free(factors);
}

static void sizes_found(const colibri_bench_options *options)
{
    colibri_bench_range range = {0, 1 << 14, 1024, 0.5};
    colibri_bench_result results[6];
    char *buffer = calloc(1 << 14, 64);
    int count = 6;
    WANT(!colibri_bench_measure_adaptive(MPI_COMM_WORLD, options, allgather, buffer, &range, results, &count));
    WANT(count >= 5 && count <= 6 && results[0].bytes == 0);
    want_sound(results, count);
    count = 3;
    WANT(!colibri_bench_collective_adaptive(
        MPI_COMM_WORLD, options, "bcast", "own:binomial", NULL, &range, results, &count));
    WANT(count == 3);
    want_sound(results, count);
    range.stride = 0;
    WANT(colibri_bench_measure_adaptive(MPI_COMM_WORLD, options, allgather, buffer, &range, results, &count) == 1);
    free(buffer);
}

int main(int argc, char **argv)
{
    colibri_bench_options options;
    colibri_bench_result result;
    int ranks;
    colibri_bench_defaults(&options);
    options.max_repetitions = 12;
    WANT(colibri_bench_measure(MPI_COMM_WORLD, &options, nothing, NULL, &result) == COLIBRI_BENCH_MPI);
    WANT(strstr(colibri_bench_error(), "MPI_Init"));
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    WANT(!colibri_bench_measure(MPI_COMM_WORLD, NULL, nothing, NULL, &result) && result.repetitions <= 100);
    WANT(colibri_bench_measure(MPI_COMM_WORLD, &options, NULL, NULL, &result) == COLIBRI_BENCH_REFUSED);
    options.timing = 5;
    WANT(colibri_bench_measure(MPI_COMM_WORLD, &options, nothing, NULL, &result) == COLIBRI_BENCH_REFUSED);
    WANT(strstr(colibri_bench_error(), "timing 5"));
    options.timing = COLIBRI_BENCH_MAX;
    pairs(&options, ranks);
    collectives(&options, argv[1], ranks);
    sizes_found(&options);
    return MPI_Finalize();
}
