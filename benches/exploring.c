/* What COLIBRI_ADAPT costs a call whose method is the MPI library's: one that is left alone, and one that is timed.
 * MPI_Barrier, MPI_Bcast and MPI_Allreduce of 8 bytes go through what the program finds and straight to the function
 * behind, by turns, on a communicator of all ranks. That function is no real one: with -DBEHIND this file is a library
 * that stands behind the preload library, whose functions take a microsecond and do nothing, so that no message hides
 * a nanosecond. It counts how often the clock is read, by which a timed call is known.
 *
 *     exploring [CALLS]
 *
 * Prints for each collective, in nanoseconds (means of the middle half of the calls): what a call that is left alone
 * takes longer than the function behind; what two readings of the clock take; what a timed call takes longer than the
 * function and these: the first of a run, which finds little at hand, those after it, and the last of five, of which
 * the explorer is told; then how many of the last there were. Calls by other methods are left out. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef BEHIND

unsigned long clock_readings, calls_behind;
static int (*read_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    *(void **)&read_clock = dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    clock_readings++;
    if (!read_clock) begin();
    return read_clock(clock, now);
}

/* Multiplications that wait for each other: always as long. */
static int work(void)
{
    volatile unsigned long start = 3;
    calls_behind++;
    unsigned long x = start;
    for (int i = 0; i < 1000; i++) {
        x *= x;
        __asm__ volatile("" : "+r"(x));
    }
    return x == 0;
}

/* What the preload library itself calls, on communicators of its own, is the MPI library's. */
int is_begun;
typedef int Barrier(MPI_Comm);
typedef int Bcast(void *, int, MPI_Datatype, int, MPI_Comm);
typedef int Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

int PMPI_Barrier(MPI_Comm comm)
{
    if (is_begun && comm == MPI_COMM_WORLD) return work();
    return ((Barrier *)dlsym(RTLD_NEXT, "PMPI_Barrier"))(comm);
}

int PMPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    if (is_begun && comm == MPI_COMM_WORLD) return work();
    return ((Bcast *)dlsym(RTLD_NEXT, "PMPI_Bcast"))(data, count, type, root, comm);
}

int PMPI_Allreduce(const void *from, void *into, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    if (is_begun && comm == MPI_COMM_WORLD) return work();
    return ((Allreduce *)dlsym(RTLD_NEXT, "PMPI_Allreduce"))(from, into, count, type, op, comm);
}

#else

enum { MOST_CALLS = 4000000, KINDS = 3 };
/* In a run of timed calls: the first, those after it, and the fifth, of which the explorer is told. */
enum { FIRST, NEXT, LAST, PLACES, RUN = 5 };
static const char *names[KINDS] = { "MPI_Barrier", "MPI_Bcast", "MPI_Allreduce" };
typedef int Barrier(MPI_Comm);
typedef int Bcast(void *, int, MPI_Datatype, int, MPI_Comm);
typedef int Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
static double data[2];
static MPI_Comm comm;

static int call(int kind, void *function)
{
    switch (kind) {
    case 0: return ((Barrier *)function)(comm);
    case 1: return ((Bcast *)function)(data, 1, MPI_DOUBLE, 0, comm);
    default: return ((Allreduce *)function)(&data[0], &data[1], 1, MPI_DOUBLE, MPI_SUM, comm);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The mean of the middle half, finer than the clock ticks. */
static double middle_of(double *values, size_t number)
{
    double sum = 0;
    if (number < 4) return 0;
    qsort(values, number, sizeof *values, ascending);
    for (size_t i = number / 4; i < 3 * number / 4; i++) sum += values[i];
    return sum / (3 * number / 4 - number / 4);
}

int main(int argc, char **argv)
{
    static double alone[MOST_CALLS], timed[PLACES][MOST_CALLS / 16], behind[MOST_CALLS], clocks[MOST_CALLS];
    int rank, calls = argc > 1 ? atoi(argv[1]) : 300000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    comm = MPI_COMM_WORLD;
    unsigned long *readings = dlsym(RTLD_DEFAULT, "clock_readings");
    unsigned long *calls_behind = dlsym(RTLD_DEFAULT, "calls_behind");
    int *is_begun = dlsym(RTLD_DEFAULT, "is_begun");
    if (!readings || !calls_behind || !is_begun || calls < 1 || calls > MOST_CALLS) return 2;
    *is_begun = 1;
    for (int kind = 0; kind < KINDS; kind++) {
        char name[32];
        void *found = dlsym(RTLD_DEFAULT, names[kind]);
        snprintf(name, sizeof name, "P%s", names[kind]);
        /* The preload library has one of this name, too: the one behind is the next to that. */
        void *library = dlopen(getenv("BEHIND"), RTLD_LAZY | RTLD_NOLOAD);
        void *function = library ? dlsym(library, name) : NULL;
        if (!found || !function) return 2;
        size_t of_alone = 0, of_timed[PLACES] = { 0 }, in_a_row = 0, kept = 0;
        for (int i = 0; i < calls; i++) {
            double start = now();
            call(kind, function);
            double middle = now();
            unsigned long before = *readings, calls_before = *calls_behind;
            double again = now();
            call(kind, found);
            double end = now();
            unsigned long read = *readings - before - 2;
            int by_library = *calls_behind == calls_before + 1;
            now();
            double last = now();
            /* Few, so that what a call needs stays in the nearest cache. */
            int is_kept = i % 64 == 0;
            if (is_kept) behind[kept] = middle - start;
            /* Three readings begin after `end`; the last two are what two take. */
            if (is_kept) clocks[kept++] = last - end;
            if (is_kept && read == 0 && by_library) alone[of_alone++] = end - again;
            in_a_row = read == 2 && by_library ? in_a_row + 1 : 0;
            if (in_a_row == 0) continue;
            int place = in_a_row == 1 ? FIRST : in_a_row < RUN ? NEXT : LAST;
            if (of_timed[place] < MOST_CALLS / 16) timed[place][of_timed[place]++] = end - again;
        }
        double usual = middle_of(behind, kept), reading = middle_of(clocks, kept);
        double left = middle_of(alone, of_alone) - usual, more[PLACES];
        for (int place = 0; place < PLACES; place++)
            more[place] = middle_of(timed[place], of_timed[place]) - usual - reading;
        if (rank == 0)
            printf("%s %.1f %.1f %.1f %.1f %.1f %zu\n", names[kind], left, reading, more[FIRST], more[NEXT], more[LAST],
                   of_timed[LAST]);
    }
    *is_begun = 0;
    MPI_Finalize();
    return 0;
}
#endif
