/* Random datatypes, and memory for their elements in which it shows what was touched. */
#ifndef LAYOUTS_H
#define LAYOUTS_H

#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Random numbers, the same on all ranks. */
static uint64_t shared;
static long call;
static char what[160];
/* The communicator of the call under way. */
static MPI_Comm comm;
static int rank, size;

static int below(uint64_t *state, int limit)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return limit > 0 ? (int)((z ^ z >> 31) % limit) : 0;
}

/* In cases.c. */
int begins(const char *name);
void fails(void);

static void wrong(const char *format, ...)
{
    va_list arguments;
    fails();
    va_start(arguments, format);
    fprintf(stderr, "call %ld (%s), rank %d of %d: ", call, what, rank, size);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The ints of one element of a datatype: bytes from its address, in the signature's order. */
enum { MOST_INTS = 64 };
typedef struct {
    MPI_Datatype handle;
    int ints, is_named;
    long at[MOST_INTS];
    MPI_Aint lower, extent, true_lower, true_extent;
} Layout;

static Layout finished(Layout layout)
{
    MPI_Type_get_extent(layout.handle, &layout.lower, &layout.extent);
    MPI_Type_get_true_extent(layout.handle, &layout.true_lower, &layout.true_extent);
    return layout;
}

static void drop(Layout *layout)
{
    if (!layout->is_named) MPI_Type_free(&layout->handle);
}

static Layout plain(void)
{
    return finished((Layout){ .handle = MPI_INT, .ints = 1, .is_named = 1 });
}

static Layout repeated(Layout part, int times, long stride)
{
    Layout all = { 0 };
    if (stride == part.extent)
        MPI_Type_contiguous(times, part.handle, &all.handle);
    else
        MPI_Type_create_hvector(times, 1, stride, part.handle, &all.handle);
    for (int t = 0; t < times; t++)
        for (int i = 0; i < part.ints; i++) all.at[all.ints++] = part.at[i] + t * stride;
    drop(&part);
    return finished(all);
}

static Layout joined(Layout one, MPI_Aint at_one, Layout other, MPI_Aint at_other)
{
    Layout all = { 0 };
    /* A block without elements says nothing about the rest. */
    int counts[] = { 1, 0, 1 };
    MPI_Aint places[] = { at_one, 12345, at_other };
    MPI_Datatype handles[] = { one.handle, MPI_DOUBLE, other.handle };
    MPI_Type_create_struct(3, counts, places, handles, &all.handle);
    for (int i = 0; i < one.ints; i++) all.at[all.ints++] = one.at[i] + at_one;
    for (int i = 0; i < other.ints; i++) all.at[all.ints++] = other.at[i] + at_other;
    drop(&one), drop(&other);
    return finished(all);
}

static Layout resized(Layout part, MPI_Aint lower, MPI_Aint extent)
{
    Layout all = part;
    all.is_named = 0;
    MPI_Type_create_resized(part.handle, lower, extent, &all.handle);
    drop(&part);
    return finished(all);
}

static int divisor(uint64_t *random, int number, int most)
{
    int chosen = 1;
    for (int d = 1; d <= number && d <= most; d++)
        if (number % d == 0 && below(random, 2)) chosen = d;
    return chosen;
}

static Layout random_layout(uint64_t *random, int ints, int depth)
{
    int kind = below(random, 6);
    if (ints == 1 && (depth > 2 || kind < 3)) return plain();
    if (depth > 5) return repeated(plain(), ints, sizeof(int));
    if (kind < 2) {
        int times = divisor(random, ints, ints);
        Layout part = random_layout(random, ints / times, depth + 1);
        long gap = 4 * below(random, 4), sign = below(random, 3) ? 1 : -1;
        return repeated(part, times, kind ? sign * (part.true_extent + gap) : part.extent);
    }
    if (kind < 5 && ints > 1) {
        int first = 1 + below(random, ints - 1);
        Layout one = random_layout(random, first, depth + 1);
        Layout other = random_layout(random, ints - first, depth + 1);
        long at_one = 4 * (below(random, 20) - 10), begins = at_one + one.true_lower;
        long gap = 4 * below(random, 3), is_after = below(random, 2);
        long at_other = is_after ? begins + one.true_extent + gap - other.true_lower
                                 : begins - gap - other.true_lower - other.true_extent;
        return joined(one, at_one, other, at_other);
    }
    Layout part = random_layout(random, ints, depth + 1);
    long room = part.true_extent + 4 * below(random, 5);
    long lower = part.true_lower + 4 * (below(random, 9) - 4);
    return resized(part, lower, below(random, 9) ? room : part.extent);
}

static int by_value(const void *a, const void *b)
{
    long one = *(const long *)a, other = *(const long *)b;
    return (one > other) - (one < other);
}

static int overlaps(const Layout *layout, int elements)
{
    long count = (long)elements * layout->ints, *places = malloc((count + 1) * sizeof *places);
    int found = 0;
    for (long i = 0; i < count; i++)
        places[i] = layout->at[i % layout->ints] + i / layout->ints * layout->extent;
    qsort(places, count, sizeof *places, by_value);
    for (long i = 1; i < count; i++) found |= places[i] - places[i - 1] < (long)sizeof(int);
    free(places);
    return found;
}

/* Memory for elements, with room around in which nothing may change. */
typedef struct {
    Layout layout;
    char *memory, *expected;
    long bytes, base;
    /* What is passed to MPI. */
    void *address;
    int count;
    MPI_Datatype type;
} Buffer;

static Buffer buffer(Layout layout, int elements)
{
    Buffer b = { .layout = layout, .count = elements };
    long least = 0, most = sizeof(int);
    for (int e = 0; e < elements; e++) for (int i = 0; i < layout.ints; i++) {
        long at = layout.at[i] + e * layout.extent;
        if (at < least) least = at;
        if (at + 4 > most) most = at + 4;
    }
    b.base = (79 - least) / 16 * 16;
    b.bytes = b.base + most + 64;
    b.memory = malloc(b.bytes), b.expected = malloc(b.bytes);
    for (long i = 0; i < b.bytes; i++) b.memory[i] = (char)(i * 7 + call);
    if (!layout.is_named) MPI_Type_commit(&b.layout.handle);
    b.address = b.memory + b.base;
    b.type = b.layout.handle;
    return b;
}

static long place_of(const Buffer *b, long i)
{
    return b->base + b->layout.at[i % b->layout.ints] + i / b->layout.ints * b->layout.extent;
}

static int given(int from, long i) { return (int)(call * 1000003 + from * 7919 + i * 31); }

/* The ints from one place on are what a rank gives, from a place of its own on. */
static void fill(Buffer *b, long to, int from, long begin, long count)
{
    for (long i = 0; i < count; i++) {
        int value = given(from, begin + i);
        memcpy(b->memory + place_of(b, to + i), &value, sizeof value);
    }
}

/* From here on it stays as it is, but for what is expected. */
static void seal(Buffer *b) { memcpy(b->expected, b->memory, b->bytes); }

static void expect(Buffer *b, long i, int value)
{
    memcpy(b->expected + place_of(b, i), &value, sizeof value);
}

static void expect_from(Buffer *b, long to, int from, long begin, long count)
{
    for (long i = 0; i < count; i++) expect(b, to + i, given(from, begin + i));
}

/* MPI doesn't say what these become. */
static void let_pass(Buffer *b, long begin, long end)
{
    for (long i = begin; i < end; i++)
        memcpy(b->expected + place_of(b, i), b->memory + place_of(b, i), sizeof(int));
}

static void check_and_free(const char *name, Buffer *b)
{
    for (long i = 0; i < b->bytes; i++)
        if (b->memory[i] != b->expected[i])
            wrong("%s: byte %ld of %ld..%ld", name, i - b->base, -b->base, b->bytes - b->base);
    if (b->type != b->layout.handle) MPI_Type_free(&b->type);
    drop(&b->layout);
    free(b->memory), free(b->expected);
}

/* The collectives that combine. */
enum { REDUCE, ALLREDUCE, SCAN, EXSCAN, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, KINDS };

/* One of them; `counts` are of REDUCE_SCATTER alone. */
static void reduce(int kind, const void *from, void *into, int n, const int *counts, MPI_Datatype type, MPI_Op op,
                   int root)
{
    switch (kind) {
    case REDUCE: MPI_Reduce(from, into, n, type, op, root, comm); break;
    case ALLREDUCE: MPI_Allreduce(from, into, n, type, op, comm); break;
    case SCAN: MPI_Scan(from, into, n, type, op, comm); break;
    case EXSCAN: MPI_Exscan(from, into, n, type, op, comm); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter(from, into, counts, type, op, comm); break;
    default: MPI_Reduce_scatter_block(from, into, n, type, op, comm);
    }
}

#endif
