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
static MPI_Datatype pair; /* two ints: x -> a x + b */
static MPI_Op composed;

enum { SUM, MOST, ODD, COMPOSED };

/* Associative, not commutative. */
static void compose(void *in, void *inout, int *length, MPI_Datatype *type)
{
    unsigned *f = in, *g = inout;
    (void)type;
    for (int i = 0; i < 2 * *length; i += 2) {
        g[i + 1] = f[i + 1] * g[i] + g[i + 1];
        g[i] = f[i] * g[i];
    }
}

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

/* What the ranks from one to another give, one after the other. */
static unsigned combined(int op, long call, int from, int up_to, long place)
{
    long pair = place / 2 * 2;
    unsigned all[2] = { 0, 0 };
    for (int r = from; r < up_to; r++) {
        unsigned own = datum(call, r, place), a = datum(call, r, pair), b = datum(call, r, pair + 1);
        if (op == COMPOSED)
            all[1] = r == from ? b : all[1] * a + b, all[0] = r == from ? a : all[0] * a;
        else if (op == SUM)
            all[place % 2] += own;
        else if (op == MOST)
            all[place % 2] = own > all[place % 2] ? own : all[place % 2];
        else
            all[place % 2] ^= own;
    }
    return all[place % 2];
}

/* Operands are 2 n ints for each block, in `a`; the result is in `b`. */
static void combine(Walk *w, MPI_Comm comm, int kind, int *a, int *b, int n, int root, int in_place)
{
    static const char *names[] = { "allreduce", "reduce", "scan", "exscan", "reduce_scatter_block",
                                   "reduce_scatter" };
    long c = w->calls - 1, first = 0;
    int rank, size, from = 0, length = 2 * n, which = next(w) % 4;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int up_to = size;
#ifndef OPEN_MPI /* crashes by itself (4.0.2) */
    if (kind == 10 && which == COMPOSED) which = SUM;
    if (kind == 7) in_place = 0;
#endif
    MPI_Op op = which == SUM ? MPI_SUM : which == MOST ? MPI_MAX : which == ODD ? MPI_BXOR : composed;
    MPI_Datatype type = which == COMPOSED ? pair : MPI_INT;
    int per = which == COMPOSED ? 2 : 1, elements = length / per;
    for (long i = 0; i < (long)length * size; i++) a[i] = datum(c, rank, i);
    in_place = in_place && kind < 10;
    if (in_place) memcpy(b, a, length * sizeof *a);
    const void *send = in_place ? MPI_IN_PLACE : a;
    if (kind == 6) MPI_Allreduce(send, b, elements, type, op, comm);
    if (kind == 7) {
        MPI_Reduce(rank == root ? send : a, b, elements, type, op, root, comm);
        if (rank != root) length = 0;
    }
    if (kind == 8) up_to = rank + 1, MPI_Scan(send, b, elements, type, op, comm);
    if (kind == 9) {
        up_to = rank, MPI_Exscan(send, b, elements, type, op, comm);
        if (rank == 0) length = 0;
    }
    if (kind == 10) {
        first = (long)rank * length;
        MPI_Reduce_scatter_block(a, b, elements, type, op, comm);
    }
    if (kind == 11) {
        int *counts = malloc(size * sizeof *counts);
        for (int r = 0; r < size; r++) counts[r] = r % 2 ? elements : elements / 2;
        for (int r = 0; r < rank; r++) first += counts[r] * per;
        length = counts[rank] * per;
        MPI_Reduce_scatter(a, b, counts, type, op, comm);
        free(counts);
    }
    for (int i = 0; i < length; i++)
        CHECK(names[kind - 6], (unsigned)b[i] == combined(which, c, from, up_to, first + i));
}

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
    default:
        combine(w, comm, kind, a, b, n, root, in_place);
    }
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
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &composed);
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
    MPI_Type_free(&pair);
    MPI_Op_free(&composed);
    if (rank_of_all == 0)
        printf("seed %llu: %ld calls right; memory %ld KiB, at the end %ld KiB\n",
               (unsigned long long)seed, calls, early, resident());
    MPI_Finalize();
    return 0;
}
