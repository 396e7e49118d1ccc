/* Calls collectives and tells, per collective and size, which algorithm ran and how long it took.
 *
 * usage: program COLLECTIVE:BYTES[:in-place] ...
 * prints: COLLECTIVE:BYTES LEAST_SECONDS WHAT_RAN, on rank 0 and as seen there
 *
 * BYTES is Colibri's message size. What ran is told by Colibri's tracer where that is preloaded
 * (Open MPI), or by the functions that this program wraps (WRAPPED, MPICH linked statically). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPETITIONS 10

static char ran[65536];

#ifdef WRAPPED
/* Up to 12 words are passed on: more than any of these functions takes. */
#define WORDS long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, \
              long k, long l
#define NOTE(name)                                                   \
    int __real_##name(WORDS);                                        \
    int __wrap_##name(WORDS) {                                       \
        strcpy(ran, #name);                                          \
        return __real_##name(a, b, c, d, e, f, g, h, i, j, k, l);    \
    }
WRAPPED
#endif

static void reset(void) {
    void (*of_tracer)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "colibri_tracer_reset");
    ran[0] = 0;
    if (of_tracer) of_tracer();
}

static void read_back(void) {
    size_t (*of_tracer)(char *, size_t) =
        (size_t(*)(char *, size_t))dlsym(RTLD_DEFAULT, "colibri_tracer_read");
    if (of_tracer) of_tracer(ran, sizeof ran);
}

static void call(const char *name, int n, int in_place, char *send, char *receive, int procs) {
    MPI_Comm world = MPI_COMM_WORLD;
    int rank, doubles = n / 8;
    MPI_Comm_rank(world, &rank);
    if (!strcmp(name, "bcast"))
        MPI_Bcast(send, n, MPI_BYTE, 0, world);
    else if (!strcmp(name, "reduce"))
        MPI_Reduce(send, receive, doubles, MPI_DOUBLE, MPI_SUM, 0, world);
    else if (!strcmp(name, "allreduce"))
        MPI_Allreduce(send, receive, doubles, MPI_DOUBLE, MPI_SUM, world);
    else if (!strcmp(name, "scan"))
        MPI_Scan(send, receive, doubles, MPI_DOUBLE, MPI_SUM, world);
    else if (!strcmp(name, "exscan"))
        MPI_Exscan(send, receive, doubles, MPI_DOUBLE, MPI_SUM, world);
    else if (!strcmp(name, "allgather") && in_place)
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive, n, MPI_BYTE, world);
    else if (!strcmp(name, "allgather"))
        MPI_Allgather(send, n, MPI_BYTE, receive, n, MPI_BYTE, world);
    else if (!strcmp(name, "alltoall"))
        MPI_Alltoall(send, n, MPI_BYTE, receive, n, MPI_BYTE, world);
    else if (!strcmp(name, "gather") && in_place && rank == 0)
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive, n, MPI_BYTE, 0, world);
    else if (!strcmp(name, "gather"))
        MPI_Gather(send, n, MPI_BYTE, receive, n, MPI_BYTE, 0, world);
    else if (!strcmp(name, "scatter"))
        /* The send arguments mean nothing away from the root. */
        MPI_Scatter(rank ? NULL : send, rank ? 0 : n, MPI_BYTE, receive, n, MPI_BYTE, 0, world);
    else if (!strcmp(name, "reduce_scatter_block"))
        MPI_Reduce_scatter_block(send, receive, doubles, MPI_DOUBLE, MPI_SUM, world);
    else if (!strcmp(name, "reduce_scatter")) {
        int *counts = malloc(sizeof *counts * (size_t)procs);
        for (int index = 0; index < procs; index++) counts[index] = doubles;
        MPI_Reduce_scatter(send, receive, counts, MPI_DOUBLE, MPI_SUM, world);
        free(counts);
    } else if (!strcmp(name, "barrier"))
        MPI_Barrier(world);
    else {
        fprintf(stderr, "unknown collective %s\n", name);
        MPI_Abort(world, 2);
    }
}

int main(int argc, char **argv) {
    int rank, procs;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    for (int argument = 1; argument < argc; argument++) {
        char name[64];
        int bytes, read = 0;
        if (sscanf(argv[argument], "%63[^:]:%d%n", name, &bytes, &read) != 2) {
            fprintf(stderr, "usage: %s COLLECTIVE:BYTES[:in-place] ...\n", argv[0]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        int in_place = !strcmp(argv[argument] + read, ":in-place");
        size_t room = (size_t)bytes * (size_t)procs + 8;
        char *send = calloc(room, 1), *receive = calloc(room, 1);
        double least = 1e9;
        for (int repetition = 0; repetition < REPETITIONS; repetition++) {
            MPI_Barrier(MPI_COMM_WORLD);
            reset();
            double begin = MPI_Wtime();
            call(name, bytes, in_place, send, receive, procs);
            double seconds = MPI_Wtime() - begin;
            read_back();
            if (seconds < least) least = seconds;
        }
        if (rank == 0) printf("%s %.9f %s\n", argv[argument], least, ran);
        free(send);
        free(receive);
    }
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
