/* Random calls of what libcolibri.so catches: collectives, sizes, types, roots, operations,
 * communicators made and freed, a second thread. Every result is checked against what it must be.
 *
 * Arguments: seed, seconds. All ranks draw the same numbers. Prints what was done, and the memory
 * of the first rank at the first tenth and at the end. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { uint64_t state; MPI_Comm base; double until; long calls; } Walk;

static int rank_of_all;
static uint64_t seed;
static MPI_Datatype gaps; /* two ints, five apart from element to element */

static uint64_t next(Walk *walk)
{
    uint64_t z = walk->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void wrong(const char *what, long call)
{
    fprintf(stderr, "rank %d: wrong result of %s, call %ld, seed %llu\n", rank_of_all, what, call,
            (unsigned long long)seed);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What a rank contributes at a place, the same for whoever asks. */
static int datum(long call, int rank, long place)
{
    return (int)((call * 2654435761u + rank * 40503u + place * 97u) % 100003u);
}

static long resident(void)
{
    long pages = 0, ignored;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &ignored, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

#define CHECK(what, condition) do { if (!(condition)) wrong(what, c); } while (0)

static void call_one(Walk *w, MPI_Comm comm)
{
    static const int most[] = { 1, 4, 40, 700, 20000 };
    long c = w->calls++;
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int kind = next(w) % 12, root = next(w) % size, spread = next(w) % 3 == 0;
    int n = next(w) % (most[next(w) % 5] + 1), in_place = next(w) % 2;
    long all = (long)n * size, reach = spread ? 5 : 2;
    MPI_Datatype type = spread ? gaps : MPI_INT;
    int per = spread ? 1 : 2, *a = NULL, *b = NULL;
    /* An element is two ints, side by side or with gaps between. */
#define AT(element, part) ((element) * reach + (part) * (spread ? 3 : 1))
#define EACH_OF(count) for (long e = 0; e < (count); e++) for (int p = 0; p < 2; p++)
    a = malloc((all * reach + 8) * sizeof *a);
    b = malloc((all * reach + 8) * sizeof *b);
    memset(b, 0x5a, (all * reach + 8) * sizeof *b);
    EACH_OF(all) a[AT(e, p)] = datum(c, rank, 2 * e + p);
    switch (kind) {
    case 0:
        if (rank == root) EACH_OF(n) b[AT(e, p)] = datum(c, root, 2 * e + p);
        MPI_Bcast(b, n * per, type, root, comm);
        EACH_OF(n) CHECK("bcast", b[AT(e, p)] == datum(c, root, 2 * e + p));
        break;
    case 1:
        if (in_place) EACH_OF(n) b[AT(rank * (long)n + e, p)] = a[AT(e, p)];
        MPI_Allgather(in_place ? MPI_IN_PLACE : a, n * per, type, b, n * per, type, comm);
        for (int r = 0; r < size; r++)
            EACH_OF(n) CHECK("allgather", b[AT(r * (long)n + e, p)] == datum(c, r, 2 * e + p));
        break;
    case 2:
        MPI_Alltoall(a, n * per, type, b, n * per, type, comm);
        for (int r = 0; r < size; r++) EACH_OF(n)
            CHECK("alltoall", b[AT(r * (long)n + e, p)] == datum(c, r, 2 * (rank * (long)n + e) + p));
        break;
    case 3:
        MPI_Gather(a, n * per, type, rank == root ? b : NULL, n * per, type, root, comm);
        if (rank == root) for (int r = 0; r < size; r++)
            EACH_OF(n) CHECK("gather", b[AT(r * (long)n + e, p)] == datum(c, r, 2 * e + p));
        break;
    case 4:
        MPI_Scatter(rank == root ? a : NULL, n * per, type, b, n * per, type, root, comm);
        EACH_OF(n) CHECK("scatter", b[AT(e, p)] == datum(c, root, 2 * (rank * (long)n + e) + p));
        break;
    case 5:
        MPI_Barrier(comm);
        break;
    default: {
        int up_to = size, from = 0, length = 2 * n;
        EACH_OF(n) a[2 * e + p] = datum(c, rank, 2 * e + p);
        for (long i = 0; i < 2 * all; i++) a[i] = datum(c, rank, i);
        if (in_place && kind != 10 && kind != 11) memcpy(b, a, length * sizeof *a);
        const void *send = in_place && kind != 10 && kind != 11 ? MPI_IN_PLACE : a;
        long first = 0;
        const char *what = "allreduce";
        if (kind == 6) MPI_Allreduce(send, b, length, MPI_INT, MPI_SUM, comm);
        if (kind == 7) {
            what = "reduce";
#ifndef OPEN_MPI /* crashes by itself (4.0.2) */
            send = a;
#endif
            MPI_Reduce(rank == root ? send : a, b, length, MPI_INT, MPI_SUM, root, comm);
            if (rank != root) length = 0;
        }
        if (kind == 8) what = "scan", up_to = rank + 1, MPI_Scan(send, b, length, MPI_INT, MPI_SUM, comm);
        if (kind == 9) {
            what = "exscan", up_to = rank, MPI_Exscan(send, b, length, MPI_INT, MPI_SUM, comm);
            if (rank == 0) length = 0;
        }
        if (kind == 10) {
            what = "reduce_scatter_block", first = (long)rank * length;
            MPI_Reduce_scatter_block(a, b, length, MPI_INT, MPI_SUM, comm);
        }
        if (kind == 11) {
            int *counts = malloc(size * sizeof *counts);
            for (int r = 0; r < size; r++) counts[r] = r % 2 ? length : length / 2;
            for (int r = 0; r < rank; r++) first += counts[r];
            what = "reduce_scatter", length = counts[rank];
            MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, comm);
            free(counts);
        }
        for (int i = 0; i < length; i++) {
            long sum = 0;
            for (int r = from; r < up_to; r++) sum += datum(c, r, first + i);
            CHECK(what, b[i] == (int)sum);
        }
    } }
    free(a), free(b);
}

static void *walk(void *argument)
{
    Walk *w = argument;
    MPI_Comm comm = w->base, made = MPI_COMM_NULL;
    for (;;) {
        int rank, go;
        if (w->calls % 64 == 0) { /* the first rank's clock counts */
            MPI_Comm_rank(w->base, &rank);
            go = MPI_Wtime() < w->until;
            MPI_Bcast(&go, 1, MPI_INT, 0, w->base);
            if (!go) break;
        }
        if (next(w) % 40 == 0) {
            if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
            MPI_Comm_rank(w->base, &rank);
            int parts = 1 + next(w) % 3, turned = next(w) % 2;
            MPI_Comm_split(w->base, rank % parts, turned ? -rank : rank, &made);
        }
        comm = made != MPI_COMM_NULL && next(w) % 3 ? made : w->base;
        uint64_t before = w->state;
        long calls = w->calls;
        call_one(w, comm);
        /* Parts of different size have drawn differently; all go on alike. */
        w->state = before + 0x51ed270b * 2654435761u, w->calls = calls + 1;
    }
    if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
    return NULL;
}

int main(int argc, char **argv)
{
    int given;
    double seconds = argc > 2 ? atof(argv[2]) : 10;
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_of_all);
    MPI_Type_vector(2, 1, 3, MPI_INT, &gaps);
    MPI_Datatype bare = gaps;
    MPI_Type_create_resized(bare, 0, 20, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Type_free(&bare);
    long early = 0, calls = 0;
    for (int part = 0; part < 10; part++) {
        Walk walks[2];
        pthread_t thread;
        for (int i = 0; i < 2; i++) {
            walks[i] = (Walk){ seed * 20 + part * 2 + i, MPI_COMM_NULL, MPI_Wtime() + seconds / 10, 0 };
            MPI_Comm_dup(MPI_COMM_WORLD, &walks[i].base);
        }
        if (given == MPI_THREAD_MULTIPLE) pthread_create(&thread, NULL, walk, &walks[1]);
        walk(&walks[0]);
        if (given == MPI_THREAD_MULTIPLE) pthread_join(thread, NULL);
        for (int i = 0; i < 2; i++) {
            calls += walks[i].calls;
            MPI_Comm_free(&walks[i].base);
        }
        if (part == 0) early = resident();
    }
    MPI_Type_free(&gaps);
    if (rank_of_all == 0)
        printf("seed %llu: %ld calls right; memory %ld KiB, at the end %ld KiB\n",
               (unsigned long long)seed, calls, early, resident());
    MPI_Finalize();
    return 0;
}
