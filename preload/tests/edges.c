/* Calls that MPI allows and that programs seldom make, beside the plain ones of conformance.c:
 * memory that ends where the data does, buffers side by side, pairs, MPI_BOTTOM, handles used again,
 * topologies, other communication on the same communicator, communicators freed early, error handlers. */
#define _GNU_SOURCE
#include <complex.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>
#include "notes.h"

static MPI_Datatype gaps; /* two ints, twelve bytes apart, the next element after twenty */
static MPI_Op exclusive;

static void exclude(void *in, void *inout, int *length, MPI_Datatype *type)
{
    int *from = in, *into = inout;
    (void)type;
    for (int i = 0; i < *length; i++)
        for (int part = 0; part <= 3; part += 3) into[5 * i + part] ^= from[5 * i + part];
}

/* A value of five ints with an operation that combines one, whatever length it is told, as those of
 * ScaLAPACK's BLACS do. Where it is told that there is none it would write where no value is. */
static MPI_Datatype five;
static MPI_Op of_one;
static int without_any;

static void combine_one(void *in, void *inout, int *length, MPI_Datatype *type)
{
    int *from = in, *into = inout;
    (void)type;
    if (*length < 1) {
        without_any++;
        return;
    }
    for (int i = 0; i < 5; i++)
        if (from[i] > into[i]) into[i] = from[i];
}

static void of_one_element(MPI_Comm comm)
{
    int rank, size, mine[5], into[5];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 5; i++) mine[i] = (rank * 7 + i * 3) % 11;
#define ONE(name, counts, call) CASE("one element " name) { \
            memset(into, 0, sizeof into); \
            without_any = 0; \
            call; \
            if (counts) note("one element " name, into, sizeof into); \
            note("combined without any " name, &without_any, sizeof without_any); \
        }
    ONE("allreduce", 1, MPI_Allreduce(mine, into, 1, five, of_one, comm));
    ONE("scan", 1, MPI_Scan(mine, into, 1, five, of_one, comm));
    ONE("exscan", rank > 0, MPI_Exscan(mine, into, 1, five, of_one, comm));
    for (int root = 0; root < size; root++)
        ONE("reduce", rank == root, MPI_Reduce(mine, into, 1, five, of_one, root, comm));
}

/* Memory after which nothing may be touched, and which may be made constant. */
typedef struct { char *map, *start; size_t bytes, whole; } Guarded;

static Guarded guarded(size_t bytes, int seed)
{
    size_t page = sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    int access = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS;
    char *map = mmap(NULL, whole + page, access, kind, -1, 0);
    if (map == MAP_FAILED || mprotect(map + whole, page, PROT_NONE)) abort();
    Guarded g = { map, map + whole - bytes, bytes, whole };
    for (size_t i = 0; i < bytes; i++) g.start[i] = (char)(seed * 31 + i * 7 + i / 251);
    return g;
}

static Guarded constant(size_t bytes, int seed)
{
    Guarded g = guarded(bytes, seed);
    if (g.whole && mprotect(g.map, g.whole, PROT_READ)) abort();
    return g;
}

static void drop(Guarded g) { munmap(g.map, g.whole + sysconf(_SC_PAGESIZE)); }

static void note_and_drop(const char *name, Guarded g, int counts)
{
    if (counts) note(name, g.start, g.bytes);
    drop(g);
}

static size_t span(long count, int is_spread)
{
    return !is_spread ? (size_t)count : count ? (count - 1) * 20 + 16 : 0;
}

static void at_the_edge(MPI_Comm comm)
{
    static const int lengths[] = { 1, 7, 301, 5001 };
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int turn = 0; turn < 8; turn++) {
        int n = lengths[turn / 2], spread = turn % 2, counts[64], places[64];
        MPI_Datatype type = spread ? gaps : MPI_BYTE;
        MPI_Op op = spread ? exclusive : MPI_BXOR;
        size_t one = span(n, spread), all = span((long)n * size, spread);
        Guarded mine = constant(one, rank), every = constant(all, rank + 9), into;
        for (int root = 0; root < size; root++) {
            int is_root = rank == root;
            CASE("edge bcast") {
                into = guarded(one, is_root ? 77 + root : rank);
                MPI_Bcast(into.start, n, type, root, comm);
                note_and_drop("edge bcast", into, 1);
            }
            CASE("edge gather") {
                into = guarded(is_root ? all : 0, 1);
                MPI_Gather(mine.start, n, type, into.start, n, type, root, comm);
                note_and_drop("edge gather", into, 1);
            }
            CASE("edge scatter") {
                into = guarded(one, 2);
                MPI_Scatter(is_root ? every.start : NULL, n, type, into.start, n, type, root, comm);
                note_and_drop("edge scatter", into, 1);
            }
            CASE("edge reduce") {
                into = guarded(is_root ? one : 0, 3);
                MPI_Reduce(mine.start, into.start, n, type, op, root, comm);
                note_and_drop("edge reduce", into, 1);
            }
        }
#define EDGE(name, bytes, seed, counts, call) CASE("edge " name) { \
            into = guarded(bytes, seed); \
            call; \
            note_and_drop("edge " name, into, counts); \
        }
        EDGE("allgather", all, 4, 1,
             MPI_Allgather(mine.start, n, type, into.start, n, type, comm));
        EDGE("alltoall", all, 5, 1, MPI_Alltoall(every.start, n, type, into.start, n, type, comm));
        EDGE("allreduce", one, 6, 1, MPI_Allreduce(mine.start, into.start, n, type, op, comm));
        EDGE("scan", one, 7, 1, MPI_Scan(mine.start, into.start, n, type, op, comm));
        EDGE("exscan", one, 8, rank > 0, MPI_Exscan(mine.start, into.start, n, type, op, comm));
        EDGE("reduce_scatter_block", one, 9, 1,
             MPI_Reduce_scatter_block(every.start, into.start, n, type, op, comm));
        /* What our own methods combine by. */
        EDGE("reduce_local", one, 11, 1, MPI_Reduce_local(mine.start, into.start, n, type, op));
        long total = 0;
        for (int r = 0; r < size; r++) total += counts[r] = r % 3 == 2 ? 0 : n + r;
        Guarded varied = constant(span(total, spread), rank + 3);
        EDGE("reduce_scatter", span(counts[rank], spread), 10, 1,
             MPI_Reduce_scatter(varied.start, into.start, counts, type, op, comm));
        /* What mock-ups lead to, by the same memory. */
        for (int r = 0; r < size; r++) counts[r] = n, places[r] = r * n;
        EDGE("allgatherv", all, 12, 1,
             MPI_Allgatherv(mine.start, n, type, into.start, counts, places, type, comm));
        EDGE("alltoallv", all, 13, 1,
             MPI_Alltoallv(every.start, counts, places, type, into.start, counts, places, type, comm));
        EDGE("gatherv", rank == 0 ? all : 0, 14, 1,
             MPI_Gatherv(mine.start, n, type, into.start, counts, places, type, 0, comm));
        EDGE("scatterv", one, 15, 1,
             MPI_Scatterv(every.start, counts, places, type, into.start, n, type, 0, comm));
        drop(varied), drop(mine), drop(every);
    }
}

/* Every collective that combines, and some that move, on values of one type. `noted` takes what of
 * an element is its data. */
typedef void Noting(const char *name, const void *element);

static void valued(const char *what, MPI_Datatype type, MPI_Op op, size_t bytes, const void *given,
                   Noting *noted, MPI_Comm comm)
{
    enum { N = 5 };
    int rank, size, counts[64];
    char name[64];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    char *into = calloc(N * size, bytes);
#define RESULT(collective, count, call) do { \
        snprintf(name, sizeof name, "%s %s", collective, what); \
        CASE(name) { \
            call; \
            for (int e = 0; e < (count); e++) noted(name, into + e * bytes); \
        } \
        memset(into, 0, N * size * bytes); \
    } while (0)
    for (int root = 0; root < size; root++) {
        RESULT("reduce", rank == root ? N : 0, MPI_Reduce(given, into, N, type, op, root, comm));
        memcpy(into, given, N * bytes);
        RESULT("bcast", N, MPI_Bcast(into, N, type, root, comm));
        RESULT("gather", rank == root ? N * size : 0,
               MPI_Gather(given, N, type, into, N, type, root, comm));
        RESULT("scatter", N, MPI_Scatter(given, N, type, into, N, type, root, comm));
    }
    RESULT("allreduce", N, MPI_Allreduce(given, into, N, type, op, comm));
    memcpy(into, given, N * bytes);
    RESULT("allreduce in place", N, MPI_Allreduce(MPI_IN_PLACE, into, N, type, op, comm));
    memcpy(into, given, N * bytes);
    RESULT("reduce_local", N, MPI_Reduce_local(given, into, N, type, op));
    RESULT("scan", N, MPI_Scan(given, into, N, type, op, comm));
    RESULT("exscan", rank ? N : 0, MPI_Exscan(given, into, N, type, op, comm));
    RESULT("reduce_scatter_block", N, MPI_Reduce_scatter_block(given, into, N, type, op, comm));
    for (int r = 0; r < size; r++) counts[r] = r % 2 ? 1 : N;
    RESULT("reduce_scatter", counts[rank],
           MPI_Reduce_scatter(given, into, counts, type, op, comm));
    RESULT("allgather", N * size, MPI_Allgather(given, N, type, into, N, type, comm));
    RESULT("alltoall", N * size, MPI_Alltoall(given, N, type, into, N, type, comm));
    free(into);
}

#define VALUES(c_type, mpi_type, op, value) do { \
        c_type *given = calloc(5 * size, sizeof *given); \
        for (int e = 0; e < 5 * size; e++) { int v = (e * 7 + rank * 3) % 11; given[e] = value; } \
        valued(#mpi_type " " #op, mpi_type, op, sizeof *given, given, noting_##c_type, comm); \
        free(given); \
    } while (0)

typedef struct { double value; int index; } double_int;
typedef struct { long double value; int index; } long_double_int;
typedef struct { short value; int index; } short_int;
typedef struct { int value, index; } two_int;
typedef double _Complex double_complex;
typedef unsigned char octet;

#define PAIR(pair) static void noting_##pair(const char *name, const void *element) \
{ \
    const pair *p = element; \
    double value = p->value; \
    note(name, &value, sizeof value), note(name, &p->index, sizeof p->index); \
}
#define SIMPLE(type) static void noting_##type(const char *name, const void *element) \
{ \
    note(name, element, sizeof(type)); \
}
PAIR(double_int) PAIR(long_double_int) PAIR(short_int) PAIR(two_int)
SIMPLE(double_complex) SIMPLE(bool) SIMPLE(double) SIMPLE(int64_t) SIMPLE(octet)

static void values(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    VALUES(double_int, MPI_DOUBLE_INT, MPI_MAXLOC, ((double_int){ v, rank }));
    VALUES(long_double_int, MPI_LONG_DOUBLE_INT, MPI_MINLOC, ((long_double_int){ v, rank }));
    VALUES(short_int, MPI_SHORT_INT, MPI_MAXLOC, ((short_int){ (short)v, rank }));
    VALUES(two_int, MPI_2INT, MPI_MINLOC, ((two_int){ v, rank }));
    VALUES(double_complex, MPI_C_DOUBLE_COMPLEX, MPI_SUM, (v + 2 * v * I));
    VALUES(double_complex, MPI_C_DOUBLE_COMPLEX, MPI_PROD, (v % 2 ? 2 + I : 3 + 2 * I));
    VALUES(bool, MPI_C_BOOL, MPI_LAND, (v % 5 > 0));
    VALUES(bool, MPI_C_BOOL, MPI_LXOR, (v % 2 > 0));
    VALUES(double, MPI_DOUBLE, MPI_MAX, (v * 0.5));
    VALUES(int64_t, MPI_INT64_T, MPI_PROD, (v + 1));
    VALUES(octet, MPI_BYTE, MPI_BOR, (octet)(1 << v % 8));
    VALUES(octet, MPI_UNSIGNED_CHAR, MPI_MIN, (octet)(v * 20));
}

/* Types that hold addresses. */
static void bottom(MPI_Comm comm)
{
    int rank, size, data[6], plain[64 * 3], into[64 * 3], lengths[] = { 2, 1 }, three = 3;
    MPI_Aint places[2], place;
    MPI_Datatype scattered, bare, blocks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Get_address(&data[0], &places[0]);
    MPI_Get_address(&data[4], &places[1]);
    MPI_Get_address(into, &place);
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &scattered);
    MPI_Type_create_hindexed(1, &three, &place, MPI_INT, &bare);
    MPI_Type_create_resized(bare, 0, 3 * sizeof(int), &blocks);
    MPI_Type_commit(&scattered);
    MPI_Type_commit(&blocks);
    MPI_Type_free(&bare);
    for (int i = 0; i < 64 * 3; i++) plain[i] = rank * 1000 + i;
#define BEGIN() do { \
        for (int i = 0; i < 6; i++) data[i] = rank * 10 + i; \
        for (int i = 0; i < 64 * 3; i++) into[i] = i + rank; \
    } while (0)
    for (int root = 0; root < size; root++) {
#define BOTTOM(name, call, memory) CASE("bottom " name) { \
            BEGIN(); \
            call; \
            note("bottom " name, memory, sizeof memory); \
        }
        BOTTOM("bcast", MPI_Bcast(MPI_BOTTOM, 1, scattered, root, comm), data);
        BOTTOM("gather", MPI_Gather(MPI_BOTTOM, 1, scattered, MPI_BOTTOM, 1, blocks, root, comm), into);
        BOTTOM("scatter", MPI_Scatter(plain, 3, MPI_INT, MPI_BOTTOM, 1, scattered, root, comm), data);
    }
    BOTTOM("allgather", MPI_Allgather(MPI_BOTTOM, 1, scattered, MPI_BOTTOM, 1, blocks, comm), into);
    BOTTOM("allgather in place",
           MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, MPI_BOTTOM, 1, blocks, comm), into);
    BOTTOM("alltoall", MPI_Alltoall(plain, 3, MPI_INT, MPI_BOTTOM, 1, blocks, comm), into);
    MPI_Type_free(&scattered);
    MPI_Type_free(&blocks);
}

/* What the first rank finds after an exscan is not said. */
static int cleared(int code, void *memory, size_t bytes, int is_first)
{
    if (is_first) memset(memory, 0, bytes);
    return code;
}

/* The functions with large counts, where anybody has them, against those of old. */
static void large_by_name(MPI_Comm comm)
{
    typedef MPI_Count C;
    typedef MPI_Datatype T;
    enum { N = 12 };
    int rank, size, some[64], same = 1;
    C counts[64];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int bytes = N * size * sizeof(int), *a = malloc(bytes), *b = malloc(bytes), *s = malloc(bytes);
#define FUNCTION(name, ...) int (*name)(__VA_ARGS__) = dlsym(RTLD_DEFAULT, "MPI_" #name)
#define CHECKED(function, classic, large) CASE("large counts: " #function) { \
        for (int i = 0; i < N * size; i++) a[i] = b[i] = -i, s[i] = rank * 100 + i; \
        classic; \
        if (function) { \
            int code = large; \
            if (code || memcmp(a, b, bytes)) \
                same = 0, note("large counts differ: " #function, &rank, sizeof rank); \
        } \
    }
    FUNCTION(Bcast_c, void *, C, T, int, MPI_Comm);
    FUNCTION(Allgather_c, const void *, C, T, void *, C, T, MPI_Comm);
    FUNCTION(Alltoall_c, const void *, C, T, void *, C, T, MPI_Comm);
    FUNCTION(Gather_c, const void *, C, T, void *, C, T, int, MPI_Comm);
    FUNCTION(Scatter_c, const void *, C, T, void *, C, T, int, MPI_Comm);
    FUNCTION(Allreduce_c, const void *, void *, C, T, MPI_Op, MPI_Comm);
    FUNCTION(Scan_c, const void *, void *, C, T, MPI_Op, MPI_Comm);
    FUNCTION(Exscan_c, const void *, void *, C, T, MPI_Op, MPI_Comm);
    FUNCTION(Reduce_c, const void *, void *, C, T, MPI_Op, int, MPI_Comm);
    FUNCTION(Reduce_scatter_block_c, const void *, void *, C, T, MPI_Op, MPI_Comm);
    FUNCTION(Reduce_scatter_c, const void *, void *, const C *, T, MPI_Op, MPI_Comm);
    const T type = MPI_INT;
    const MPI_Op op = MPI_SUM;
    for (int root = 0; root < size; root++) {
        int i = rank == root;
        CHECKED(Bcast_c, (a[0] = rank, MPI_Bcast(a, N, type, root, comm)),
                (b[0] = rank, Bcast_c(b, N, type, root, comm)));
        CHECKED(Gather_c, MPI_Gather(s, N, type, a, N, type, root, comm),
                Gather_c(s, N, type, i ? b : NULL, i ? N : -9, type, root, comm));
        CHECKED(Scatter_c, MPI_Scatter(s, N, type, a, N, type, root, comm),
                Scatter_c(i ? s : NULL, i ? N : -9, type, b, N, type, root, comm));
        CHECKED(Reduce_c, MPI_Reduce(s, a, N, type, op, root, comm),
                Reduce_c(s, i ? b : NULL, N, type, op, root, comm));
    }
    CHECKED(Allgather_c, MPI_Allgather(s, N, type, a, N, type, comm),
            Allgather_c(s, N, type, b, N, type, comm));
    CHECKED(Alltoall_c, MPI_Alltoall(s, N, type, a, N, type, comm),
            Alltoall_c(s, N, type, b, N, type, comm));
    CHECKED(Allreduce_c, MPI_Allreduce(s, a, N, type, op, comm), Allreduce_c(s, b, N, type, op, comm));
    CHECKED(Allreduce_c, MPI_Allreduce(MPI_IN_PLACE, a, N, type, op, comm),
            Allreduce_c(MPI_IN_PLACE, b, N, type, op, comm));
    CHECKED(Scan_c, MPI_Scan(s, a, N, type, op, comm), Scan_c(s, b, N, type, op, comm));
    CHECKED(Exscan_c, cleared(MPI_Exscan(s, a, N, type, op, comm), a, bytes, rank == 0),
            cleared(Exscan_c(s, b, N, type, op, comm), b, bytes, rank == 0));
    CHECKED(Reduce_scatter_block_c, MPI_Reduce_scatter_block(s, a, N, type, op, comm),
            Reduce_scatter_block_c(s, b, N, type, op, comm));
    for (int r = 0; r < size; r++) counts[r] = some[r] = r % 2 ? 0 : N;
    CHECKED(Reduce_scatter_c, MPI_Reduce_scatter(s, a, some, type, op, comm),
            Reduce_scatter_c(s, b, counts, type, op, comm));
    note("large counts", &same, sizeof same);
    free(a), free(b), free(s);
}

/* What is sent begins where what is received ends, or the other way round. */
static void side_by_side(MPI_Comm comm)
{
    static const int lengths[] = { 1, 7, 400 };
    int rank, size, counts[64];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int turn = 0; turn < 6; turn++) {
        int n = lengths[turn / 2], is_sent_first = turn % 2, total = 0, whole = 2 * n * size;
        int *all = malloc(whole * sizeof *all), mine = n * size, *from, *into;
        for (int r = 0; r < size; r++) total += counts[r] = r % 2 ? 1 : n;
#define BESIDE(name, sent, received, call) CASE("beside " name) { \
        for (int i = 0; i < whole; i++) all[i] = rank * 100 + i; \
        from = is_sent_first ? all : all + (received); \
        into = is_sent_first ? all + (sent) : all; \
        call; \
        note("beside " name, all, whole * sizeof *all); \
    }
        for (int root = 0; root < size; root++) {
            BESIDE("gather", n, mine, MPI_Gather(from, n, MPI_INT, into, n, MPI_INT, root, comm));
            BESIDE("scatter", mine, n, MPI_Scatter(from, n, MPI_INT, into, n, MPI_INT, root, comm));
            BESIDE("reduce", n, n, MPI_Reduce(from, into, n, MPI_INT, MPI_SUM, root, comm));
        }
        BESIDE("allgather", n, mine, MPI_Allgather(from, n, MPI_INT, into, n, MPI_INT, comm));
        BESIDE("alltoall", mine, mine, MPI_Alltoall(from, n, MPI_INT, into, n, MPI_INT, comm));
        BESIDE("allreduce", n, n, MPI_Allreduce(from, into, n, MPI_INT, MPI_SUM, comm));
        BESIDE("scan", n, n, MPI_Scan(from, into, n, MPI_INT, MPI_SUM, comm));
        BESIDE("exscan", n, n, cleared(MPI_Exscan(from, into, n, MPI_INT, MPI_SUM, comm), into,
                                       n * sizeof *into, rank == 0));
        BESIDE("reduce_scatter_block", mine, n,
               MPI_Reduce_scatter_block(from, into, n, MPI_INT, MPI_SUM, comm));
        BESIDE("reduce_scatter", total, counts[rank],
               MPI_Reduce_scatter(from, into, counts, MPI_INT, MPI_SUM, comm));
        free(all);
    }
}

static void use(const char *name, MPI_Comm comm)
{
    enum { N = 40 };
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int *data = malloc(N * size * sizeof(int)), *into = malloc(N * size * sizeof(int));
    for (int i = 0; i < N * size; i++) data[i] = rank * 50 + i;
    memset(into, 0, N * size * sizeof(int));
#define USED(collective, call) do { \
        char what[64]; \
        snprintf(what, sizeof what, "%s: %s", name, collective); \
        CASE(what) { \
            call; \
            note(what, into, N * size * sizeof(int)); \
        } \
    } while (0)
    USED("allreduce", MPI_Allreduce(data, into, N, MPI_INT, MPI_SUM, comm));
    USED("bcast", MPI_Bcast(into, N, MPI_INT, size - 1, comm));
    USED("alltoall", MPI_Alltoall(data, N, MPI_INT, into, N, MPI_INT, comm));
    USED("allgather", MPI_Allgather(data, N, MPI_INT, into, N, MPI_INT, comm));
    USED("gather", MPI_Gather(data, N / 2, MPI_INT, into, N / 2, MPI_INT, size / 2, comm));
    USED("scatter", MPI_Scatter(data, N / 2, MPI_INT, into, N / 2, MPI_INT, size / 2, comm));
    USED("scan", MPI_Scan(data, into, N, MPI_INT, MPI_MAX, comm));
    USED("reduce", MPI_Reduce(data, rank ? NULL : into, N, MPI_INT, MPI_MIN, 0, comm));
    USED("reduce_scatter_block", MPI_Reduce_scatter_block(data, into, N, MPI_INT, MPI_SUM, comm));
    USED("barrier", MPI_Barrier(comm));
    free(data), free(into);
}

static void use_and_free(const char *name, MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL) return;
    use(name, comm);
    MPI_Comm_free(&comm);
}

/* Communicators however made. */
static void made(void)
{
    MPI_Comm comm, half, inter, world = MPI_COMM_WORLD;
    MPI_Group group, part;
    MPI_Request request;
    int size = world_size, rank = world_rank, dims[2] = { 0, 0 }, periods[2] = { 1, 0 };
    int one = 1, keep[2] = { 0, 1 }, left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(world, 2, dims, periods, 0, &comm);
    MPI_Cart_sub(comm, keep, &half);
    use("cart", comm);
    use_and_free("cart_sub", half);
    use_and_free("cart", comm);
    MPI_Dist_graph_create_adjacent(world, 1, &left, &one, 1, &right, &one,
                                   MPI_INFO_NULL, 0, &comm);
    use("dist_graph", comm);
    int around = -1;
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, &around, 1, MPI_INT, comm);
    note("dist_graph", &around, sizeof around);
    use_and_free("dist_graph", comm);
    MPI_Comm_dup_with_info(world, MPI_INFO_NULL, &comm);
    use_and_free("dup_with_info", comm);
    MPI_Comm_idup(world, &comm, &request);
    use("world beside idup", world);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    use_and_free("idup", comm);
    MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    use_and_free("split_type", comm);
    MPI_Comm_group(world, &group);
    int range[1][3] = { { 0, size - 1, 2 } };
    MPI_Group_range_incl(group, 1, range, &part);
    MPI_Comm_create(world, part, &comm);
    use_and_free("create", comm);
    if (rank % 2 == 0) {
        MPI_Comm_create_group(world, part, 5, &comm);
        use_and_free("create_group", comm);
    }
    MPI_Group_free(&part);
    MPI_Group_free(&group);
    if (size > 1) {
        MPI_Comm_split(world, rank % 2, 0, &half);
        MPI_Intercomm_create(half, 0, world, 1 - rank % 2, 7, &inter);
        MPI_Intercomm_merge(inter, rank % 2, &comm);
        use("merged", comm);
        use_and_free("merged", comm);
        /* Again, now that groups have been merged. */
        use_and_free("half", half);
        MPI_Comm_dup(inter, &comm);
        MPI_Barrier(comm);
        MPI_Comm_disconnect(&comm);
        MPI_Comm_free(&inter);
    }
}

/* Types that were made with large counts, where they can be, mean what those of old do. */
static void of_large_counts(MPI_Comm comm)
{
    enum { BLOCKS = 3, LENGTH = 2, N = 8 };
    const MPI_Count far[BLOCKS] = { 0, 3, 6 };
    const int places[BLOCKS] = { 0, 3, 6 };
    int rank, size;
    MPI_Datatype type;
    FUNCTION(Type_create_indexed_block_c, MPI_Count, MPI_Count, const MPI_Count *, MPI_Datatype, MPI_Datatype *);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int *data = malloc(N * size * sizeof *data), own[N];
    if (Type_create_indexed_block_c) Type_create_indexed_block_c(BLOCKS, LENGTH, far, MPI_INT, &type);
    else MPI_Type_create_indexed_block(BLOCKS, LENGTH, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < N; i++) own[i] = rank * N + i;
        CASE("types of large counts: bcast") {
            MPI_Bcast(own, 1, type, root, comm);
            note("types of large counts: bcast", own, sizeof own);
        }
    }
    for (int i = 0; i < N * size; i++) data[i] = -1;
    CASE("types of large counts: allgather") {
        MPI_Allgather(own, 1, type, data, 1, type, comm);
        note("types of large counts: allgather", data, N * size * sizeof *data);
    }
    MPI_Type_free(&type);
    free(data);
}

/* The same handle, another meaning. */
static void used_again(MPI_Comm comm)
{
    int data[64], into[64], rank;
    MPI_Comm_rank(comm, &rank);
    for (int turn = 0; turn < 8; turn++) {
        MPI_Datatype type;
        MPI_Op op;
        for (int i = 0; i < 64; i++) data[i] = rank * 64 + i, into[i] = 0;
        MPI_Type_vector(2 + turn % 3, 1 + turn % 2, 3, MPI_INT, &type);
        MPI_Type_commit(&type);
        CASE("types again: bcast") {
            MPI_Bcast(data, 1, type, 0, comm);
            note("types again: bcast", data, sizeof data);
        }
        MPI_Type_free(&type);
        /* On elements of one size only, so that it is what it says, commutative or not. */
        MPI_Op_create(exclude, turn % 2, &op);
        CASE("operations again: allreduce") {
            MPI_Allreduce(data, into, 2, gaps, op, comm);
            note("operations again: allreduce", into, sizeof into);
        }
        MPI_Op_free(&op);
    }
}

/* Other communication of the same communicator, under way or between. */
static void beside(void)
{
    enum { N = 500 };
    MPI_Comm comm;
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Win window;
    int a[N], b[N], c[N], put[2] = { -1, -1 };
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < N; i++) a[i] = i + world_rank, b[i] = 0, c[i] = turn;
        MPI_Iallreduce(a, b, N, MPI_INT, MPI_SUM, comm, &requests[0]);
        MPI_Ibcast(c, N, MPI_INT, world_size - 1, comm, &requests[1]);
        use("beside others", comm);
        MPI_Ibarrier(comm, &requests[2]);
        MPI_Iallreduce(MPI_IN_PLACE, put, 2, MPI_INT, MPI_MAX, comm, &requests[3]);
        use("beside others", comm);
        MPI_Waitall(4, requests, statuses);
        note("others", b, sizeof b), note("others", c, sizeof c);
    }
    MPI_Comm_free(&comm);
    if (world_size == 1) return; /* Open MPI 4.1 may have no windows then */
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Win_create(put, sizeof put, sizeof(int), MPI_INFO_NULL, comm, &window);
    MPI_Win_fence(0, window);
    MPI_Put(&world_rank, 1, MPI_INT, (world_rank + 1) % world_size, 1, 1, MPI_INT, window);
    use("in an epoch", comm);
    MPI_Win_fence(0, window);
    note("put", put, sizeof put);
    MPI_Win_free(&window);
    MPI_Comm_free(&comm);
}

/* Freed by the application before its messages have arrived. */
static void freed_early(void)
{
    enum { N = 200000 };
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Comm comm;
    int *a = malloc(N * sizeof *a), *b = calloc(N, sizeof *b);
    for (int i = 0; i < N; i++) a[i] = i ^ world_rank;
    for (int turn = 0; turn < 4; turn++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        use("freed early", comm);
        int left = (world_rank + world_size - 1) % world_size, right = (world_rank + 1) % world_size;
        MPI_Irecv(b, N, MPI_INT, left, turn, comm, &requests[0]);
        MPI_Isend(a, N, MPI_INT, right, turn, comm, &requests[1]);
        MPI_Comm_free(&comm);
        use("after one freed early", MPI_COMM_WORLD);
        MPI_Waitall(2, requests, statuses);
        note("messages of one freed early", b, N * sizeof *b);
    }
    free(a), free(b);
}

static int freed;

static int freeing(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    freed++;
    return MPI_Comm_free(value);
}

/* As libraries do: a communicator of their own hangs on the application's and is freed with it. */
static void hanging(void)
{
    MPI_Comm outer, inner[3];
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freeing, &key, NULL);
    for (int turn = 0; turn < 3; turn++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &outer);
        MPI_Comm_dup(outer, &inner[turn]);
        if (turn != 1) use("outer", outer);
        if (turn != 2) use("inner", inner[turn]);
        MPI_Comm_set_attr(outer, key, &inner[turn]);
        use("outer", outer);
        use("inner", inner[turn]);
        MPI_Comm_free(&outer);
    }
    MPI_Comm_free_keyval(&key);
    note("inner freed", &freed, sizeof freed);
}

/* Two callbacks of a communicator that is being freed use it, after other attributes of it are gone. */
static int using(MPI_Comm comm, int key, void *value, void *state)
{
    (void)key, (void)state;
    use(value, comm);
    return MPI_SUCCESS;
}

static void used_while_freed(void)
{
    int keys[2];
    for (int i = 0; i < 2; i++) MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, using, &keys[i], NULL);
    for (int turn = 0; turn < 4; turn++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, 0, turn % 2 ? -world_rank : world_rank, &comm);
        MPI_Comm_set_attr(comm, keys[0], "freed, set first");
        use("before it is freed", comm);
        MPI_Comm_set_attr(comm, keys[1], "freed, set last");
        if (turn < 2) MPI_Comm_free(&comm);
        else MPI_Comm_disconnect(&comm);
        if (comm != MPI_COMM_NULL) note("not freed", &turn, sizeof turn);
    }
    for (int i = 0; i < 2; i++) MPI_Comm_free_keyval(&keys[i]);
}

static MPI_Comm told;
static int classes;

static void telling(MPI_Comm *comm, int *code, ...)
{
    int class;
    MPI_Error_class(*code, &class);
    told = *comm, classes = classes * 100 + class;
}

static void wrong_on(MPI_Comm comm)
{
    int data[8] = { 0 }, into[8] = { 0 }, is_it;
#define TOLD(name, call) CASE("told " name) { \
        told = MPI_COMM_NULL, classes = 0; \
        note_class("told " name, call); \
        is_it = told == comm; \
        note("told " name, &is_it, sizeof is_it), note("told " name, &classes, sizeof classes); \
    }
    TOLD("bcast root", MPI_Bcast(data, 1, MPI_INT, 99, comm));
    TOLD("bcast count", MPI_Bcast(data, -1, MPI_INT, 0, comm));
    TOLD("reduce operation", MPI_Reduce(data, into, 1, MPI_INT, MPI_OP_NULL, 0, comm));
    if (!MPICH_5) TOLD("allreduce no type", MPI_Allreduce(data, into, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
    TOLD("allreduce operation", MPI_Allreduce(data, into, 1, MPI_DOUBLE, MPI_BAND, comm));
    TOLD("gather root", MPI_Gather(data, 1, MPI_INT, into, 1, MPI_INT, -3, comm));
    TOLD("alltoall count", MPI_Alltoall(data, -1, MPI_INT, into, -1, MPI_INT, comm));
    TOLD("scan operation", MPI_Scan(data, into, 1, MPI_INT, MPI_OP_NULL, comm));
}

/* An error is told to the handler of the communicator that the call was for, and once. */
static void handlers(void)
{
    MPI_Errhandler handler;
    MPI_Comm comms[3];
    MPI_Comm_create_errhandler(telling, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_set_errhandler(comms[0], handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_dup(comms[0], &comms[1]);
    use("with a handler", comms[1]);
    MPI_Comm_split(comms[1], 0, -world_rank, &comms[2]);
    for (int i = 0; i < 3; i++) wrong_on(comms[i]);
    for (int i = 0; i < 3; i++) use_and_free("with a handler", comms[i]);
}

/* What is sent lies where it is received: forbidden, but Open MPI lets programs do it. */
static void shared(void)
{
#ifdef OPEN_MPI
    enum { N = 30 };
    MPI_Comm comm;
    int size = world_size, rank = world_rank, *all = malloc(N * size * sizeof *all);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
#define SHARED(name, call) CASE("shared " name) { \
        for (int i = 0; i < N * size; i++) all[i] = rank * 70 + i; \
        note_class("shared " name, call); \
        note("shared " name, all, N * size * sizeof *all); \
    }
    SHARED("allgather", MPI_Allgather(all + rank * N, N, MPI_INT, all, N, MPI_INT, comm));
    for (int root = 0; root < size; root++) {
        SHARED("gather", MPI_Gather(all + rank * N, N, MPI_INT, all, N, MPI_INT, root, comm));
        int *into = rank == root ? all + rank * N : all;
        SHARED("scatter", MPI_Scatter(all, N, MPI_INT, into, N, MPI_INT, root, comm));
    }
    MPI_Comm_free(&comm);
    free(all);
#endif
}

int main(int argc, char **argv)
{
    MPI_Comm backwards;
    MPI_Datatype bare;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Type_vector(2, 1, 3, MPI_INT, &bare);
    MPI_Type_create_resized(bare, 0, 20, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Type_free(&bare);
    MPI_Op_create(exclude, 1, &exclusive);
    MPI_Type_contiguous(5, MPI_INT, &five);
    MPI_Type_commit(&five);
    MPI_Op_create(combine_one, 1, &of_one);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &backwards);
    at_the_edge(MPI_COMM_WORLD);
    at_the_edge(backwards);
    of_one_element(MPI_COMM_WORLD);
    values(MPI_COMM_WORLD);
    values(MPI_COMM_SELF);
    bottom(backwards);
    side_by_side(MPI_COMM_WORLD);
    large_by_name(MPI_COMM_WORLD);
    of_large_counts(MPI_COMM_WORLD);
    used_again(MPI_COMM_WORLD);
    CASE("communicators however made") made();
    CASE("other communication beside") beside();
    CASE("communicators freed early") freed_early();
    CASE("communicators that hang on others") hanging();
    CASE("communicators used while they are freed") used_while_freed();
    CASE("error handlers") handlers();
    CASE("shared blocks") shared();
    MPI_Comm_free(&backwards);
    MPI_Op_free(&of_one);
    MPI_Op_free(&exclusive);
    MPI_Type_free(&five);
    MPI_Type_free(&gaps);
    print_notes();
    MPI_Finalize();
    return 0;
}
