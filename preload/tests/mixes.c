/* Programs that spend about half their time in collectives, for timing them with and without something beside.
 *
 * Arguments: seed, kind, turns. Kinds: "mix", random collectives of random sizes; "changing", whose sizes change every
 * 40 calls; "few", 15 calls of each size; "late", where ranks are late by turns, by up to half of what they compute.
 * Prints the seconds from before MPI_Init to after MPI_Finalize, of the first process, and the nanoseconds that the first
 * two ranks needed for a message each way, before and after the calls: processors of virtual machines change their state. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 1 << 16, SIZES = 6, MESSAGES = 501 };
static unsigned long state;
static char from[2 * MOST], into[2 * MOST];

/* xorshift64*: the same numbers on all ranks */
static unsigned random_below(unsigned limit)
{
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return (unsigned)((state * 2685821657736338717UL) >> 33) % limit;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void compute(double seconds)
{
    double until = now() + seconds;
    while (now() < until) ;
}

static void call(unsigned collective, int bytes, int size)
{
    switch (collective) {
    case 0: MPI_Bcast(from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); break;
    case 1: MPI_Allreduce(from, into, bytes / 8 + 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD); break;
    case 2: MPI_Alltoall(from, bytes / size + 1, MPI_BYTE, into, bytes / size + 1, MPI_BYTE, MPI_COMM_WORLD); break;
    case 3: MPI_Reduce(from, into, bytes / 8 + 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD); break;
    case 4: MPI_Allgather(from, bytes / size + 1, MPI_BYTE, into, bytes / size + 1, MPI_BYTE, MPI_COMM_WORLD); break;
    default: MPI_Barrier(MPI_COMM_WORLD);
    }
}

static int order(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* No collective: what is compared does not touch it. */
static double message_nanoseconds(int rank)
{
    static double seconds[MESSAGES];
    char out = 0, in;
    for (int i = 0; i < MESSAGES && rank < 2; i++) {
        double begun = now();
        MPI_Sendrecv(&out, 1, MPI_BYTE, 1 - rank, 0, &in, 1, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        seconds[i] = now() - begun;
    }
    qsort(seconds, MESSAGES, sizeof *seconds, order);
    return 1e9 * seconds[MESSAGES / 2];
}

int main(int argc, char **argv)
{
    double begun = now();
    const char *kind = argv[2];
    long turns = atol(argv[3]);
    int rank, size, bytes[SIZES];
    unsigned collectives[SIZES];
    state = 88172645463325252UL + 7919UL * strtoul(argv[1], NULL, 10);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < SIZES; i++) bytes[i] = 1 << random_below(17), collectives[i] = random_below(6);
    double message_before = message_nanoseconds(rank);
    for (long turn = 0; turn < turns; turn++) {
        int i = random_below(SIZES);
        double base = (5 + random_below(20)) * 1e-6, late = random_below(50) * 0.01 * base;
        if (!strcmp(kind, "changing") && turn % 40 == 0) bytes[i] = 1 << random_below(17);
        if (!strcmp(kind, "few") && turn % 15 == 0) bytes[i = 0] = 1 + random_below(MOST);
        if (!strcmp(kind, "few")) i = 0;
        compute(base + (!strcmp(kind, "late") && (int)(turn % size) == rank ? late : 0));
        call(collectives[i], bytes[i], size);
    }
    double message_after = message_nanoseconds(rank);
    MPI_Finalize();
    if (rank == 0) printf("%.6f %.0f %.0f\n", now() - begun, message_before, message_after);
    return 0;
}
