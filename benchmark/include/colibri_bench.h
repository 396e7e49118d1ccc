/* libcolibri_bench: times a program's own exchanges, any collective, and messages between pairs of ranks, from within
 * the program.
 *
 *     mpicc program.c -lcolibri_bench
 *
 * One library serves Open MPI, MPICH and its kin, and the ABI of MPI 5: it finds MPI's functions in the process.
 *
 * Every function is collective: all ranks of `comm` call it, between MPI_Init and MPI_Finalize, with the same
 * arguments, and all get the same results. It returns 0, or one of the codes below; colibri_bench_error() then says
 * in words what was wrong. A null pointer for `options` means the usual ones.
 */
#ifndef COLIBRI_BENCH_H
#define COLIBRI_BENCH_H

#include <mpi.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return. */
#define COLIBRI_BENCH_OK 0
#define COLIBRI_BENCH_REFUSED 1 /* an argument is wrong, and so on every rank */
#define COLIBRI_BENCH_MPI 2     /* the MPI library failed, or there is none that is known or initialised */
#define COLIBRI_BENCH_RESULT 3  /* a collective gave a wrong result */
#define COLIBRI_BENCH_DEFECT 4  /* a defect of this library */

/* How one exchange is timed. */
#define COLIBRI_BENCH_BARRIER 0 /* a barrier; from the first rank's start to the last rank's end, by a common clock */
#define COLIBRI_BENCH_GLOBAL 1  /* the same from an agreed instant on, without a barrier */
#define COLIBRI_BENCH_MAX 2     /* a barrier; each rank times its own part, the longest counts */
#define COLIBRI_BENCH_ROOT 3    /* a barrier; rank 0 times the exchange and a confirming barrier, less a barrier */
#define COLIBRI_BENCH_BCAST 4   /* of a broadcast from rank 0: with each rank's empty reply, less half a round trip */

typedef struct {
    int timing;
    int min_repetitions; /* as many as the greatest number: so many exactly */
    int max_repetitions;
    double confidence;     /* of the mean's interval, by Student's t */
    double relative_error; /* repeated until half of the interval's width is below this part of the mean */
} colibri_bench_options;

typedef struct {
    size_t bytes;
    double mean; /* of the repetitions, in seconds, as are all times */
    double median;
    double low; /* the interval that holds the true mean at the confidence asked for */
    double high;
    double wtick; /* the smallest step of the clock; the coarsest rank's */
    int repetitions;
    int precise; /* 1 where the relative error was reached, 0 where the repetitions ended before */
} colibri_bench_result;

/* Sizes to find between `first` and `last`: strides double where the time is on the line through the two sizes before,
 * and are halved, down to `stride`, where it is farther off than `greatest_difference` of it. */
typedef struct {
    size_t first;
    size_t last;
    size_t stride;
    double greatest_difference;
} colibri_bench_range;

/* How two ranks exchange messages. */
#define COLIBRI_BENCH_PING_PONG 0      /* MPI_Send and MPI_Recv, both ways */
#define COLIBRI_BENCH_SCATTER_GATHER 1 /* MPI_Scatter and MPI_Gather among the two */

typedef struct {
    int one;
    int other;
    colibri_bench_result result; /* half of a round trip */
} colibri_bench_pair;

/* An exchange of the caller's: every rank of `comm` does its part. */
typedef void (*colibri_bench_exchange)(void *state, MPI_Comm comm);
typedef void (*colibri_bench_sized_exchange)(void *state, MPI_Comm comm, size_t bytes);

/* Barrier; 5 to 100 repetitions, until the interval of 95 % is within 2.5 % of the mean. */
void colibri_bench_defaults(colibri_bench_options *options);

/* Of the last call in this thread that did not return 0. */
const char *colibri_bench_error(void);

/* Times an exchange of the caller's. */
int colibri_bench_measure(MPI_Comm comm, const colibri_bench_options *options, colibri_bench_exchange exchange,
                          void *state, colibri_bench_result *result);

/* Of `count` sizes; `results` has room for as many. */
int colibri_bench_measure_sizes(MPI_Comm comm, const colibri_bench_options *options,
                                colibri_bench_sized_exchange exchange, void *state, const size_t *sizes, int count,
                                colibri_bench_result *results);

/* Of sizes that are found; `results` has room for `*count`, which becomes their number. They come in ascending order. */
int colibri_bench_measure_adaptive(MPI_Comm comm, const colibri_bench_options *options,
                                   colibri_bench_sized_exchange exchange, void *state, const colibri_bench_range *range,
                                   colibri_bench_result *results, int *count);

/* Times a collective, such as "scatterv", by a method: "default" (or null), "own:binomial",
 * "mockup:bcast_as_scatter_allgather". Sizes are as `colibri bench` counts them. `factors`, null for equal blocks, has a number for every
 * rank, to which its block of allgatherv, gatherv or scatterv is in proportion; the size is the mean block's. */
int colibri_bench_collective(MPI_Comm comm, const colibri_bench_options *options, const char *collective,
                             const char *method, const double *factors, const size_t *sizes, int count,
                             colibri_bench_result *results);
int colibri_bench_collective_adaptive(MPI_Comm comm, const colibri_bench_options *options, const char *collective,
                                      const char *method, const double *factors, const colibri_bench_range *range,
                                      colibri_bench_result *results, int *count);

/* Reads `count` factors, one of each rank, from a file; every rank reads it. */
int colibri_bench_factors(const char *file, double *factors, int count);

/* Times messages between two ranks; `options->timing` has no meaning. */
int colibri_bench_p2p(MPI_Comm comm, const colibri_bench_options *options, int exchange, int one, int other,
                      size_t bytes, colibri_bench_result *result);

/* Between every two of n ranks; `pairs` has room for n (n - 1) / 2. Disjoint pairs `at_once`, or (0) one after the other. */
int colibri_bench_pairs(MPI_Comm comm, const colibri_bench_options *options, int exchange, int at_once, size_t bytes,
                        colibri_bench_pair *pairs);

#ifdef __cplusplus
}
#endif

#endif
