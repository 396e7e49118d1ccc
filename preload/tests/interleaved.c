/* Reductions of elements that reach beyond their extent, lie between each other, backwards or far apart, against a plain
 * loop; and that nothing beside the result was touched. MPI promises that no two elements of a buffer overlap, of as many
 * as a rank receives.
 *
 * Arguments: seed, number of random datatypes, and a letter for each collective in the order of their names below: o for
 * a method of ours, l for what leads to the MPI library's own collectives. These crash by many a datatype, so that they are
 * called with some alone; operations that are not commutative may be left to them. Prints the number of calls. */
#include "layouts.h"

#ifdef OPEN_MPI
#define SCATTERS_IN_ORDER 1
#else
#define SCATTERS_IN_ORDER 0 /* MPICH 4.0.2's reduce-scatters are wrong where elements have gaps */
#endif

enum { BCAST = KINDS, GATHER, ALLGATHER, SCATTER, ALLTOALL, ALL };
static const char *names[] = { "reduce", "allreduce", "scan", "exscan", "reduce_scatter", "reduce_scatter_block",
                               "bcast", "gather", "allgather", "scatter", "alltoall" };
static const char *by;

/* Elements for each rank, and whether the libraries' own collectives can do with them. */
typedef struct {
    const char *name;
    Layout layout;
    int n, is_tame;
} Case;

/* x -> a x + b on pairs of ints, or the sum of ints. */
static int is_composed;
static const Layout *operated;

static void combined(unsigned *into, const unsigned *left, const unsigned *right)
{
    for (int i = 0; i < operated->ints; i += 1 + is_composed) {
        if (!is_composed) {
            into[i] = left[i] + right[i];
            continue;
        }
        unsigned second = left[i + 1] * right[i] + right[i + 1];
        into[i] = left[i] * right[i];
        into[i + 1] = second;
    }
}

static void get(unsigned *into, const char *element)
{
    for (int i = 0; i < operated->ints; i++) memcpy(into + i, element + operated->at[i], sizeof *into);
}

static void operate(void *in, void *inout, int *length, MPI_Datatype *type)
{
    MPI_Aint lower, extent;
    unsigned left[MOST_INTS], right[MOST_INTS];
    MPI_Type_get_extent(*type, &lower, &extent);
    if (extent != operated->extent || lower != operated->lower)
        wrong("the operation is told a datatype of extent %ld, not %ld", extent, operated->extent);
    for (int e = 0; e < *length; e++) {
        char *element = (char *)inout + e * extent;
        get(left, (char *)in + e * extent), get(right, element);
        combined(right, left, right);
        for (int i = 0; i < operated->ints; i++) memcpy(element + operated->at[i], right + i, sizeof *right);
    }
}

/* What a rank has at a place of its operands, whichever elements it is of. */
static unsigned operand_at(int of, long place) { return (unsigned)given(of, place / 4) | 1; }

static void fill_operands(Buffer *b)
{
    for (long i = 0; i < (long)b->count * b->layout.ints; i++) {
        unsigned value = operand_at(rank, place_of(b, i) - b->base);
        memcpy(b->memory + place_of(b, i), &value, sizeof value);
    }
}

/* The operands of the ranks below one, from element `begin` on, combined at the first elements of `b`. */
static void expect_sums(Buffer *b, const Buffer *operands, int up_to, int begin, int count)
{
    int ints = b->layout.ints;
    for (int e = 0; e < count; e++) {
        unsigned sum[MOST_INTS], next[MOST_INTS];
        for (int r = 0; r < up_to; r++) {
            for (int i = 0; i < ints; i++)
                next[i] = operand_at(r, place_of(operands, (long)(begin + e) * ints + i) - operands->base);
            if (r == 0) memcpy(sum, next, sizeof sum);
            else combined(sum, sum, next);
        }
        for (int i = 0; i < ints; i++) expect(b, (long)e * ints + i, (int)sum[i]);
    }
}

static void combine(int kind, int root, int n, int in_place, Layout layout, MPI_Op op)
{
    int counts[64], total = 0, before = 0, is_root = rank == root, scatters = kind >= REDUCE_SCATTER;
    for (int r = 0; r < size; r++) {
        counts[r] = kind == REDUCE_SCATTER && r != root ? (r * 7 + 3) % (n + 1) : n;
        if (r < rank) before += counts[r];
        total += counts[r];
    }
    int sent = scatters ? total : n, mine = scatters ? counts[rank] : n;
    Layout one = layout, other = layout;
    one.is_named = other.is_named = 0;
    MPI_Type_dup(layout.handle, &one.handle), MPI_Type_dup(layout.handle, &other.handle);
    in_place = in_place && (kind != REDUCE || is_root);
    Buffer s = buffer(one, sent), r = buffer(other, in_place ? sent : mine);
    fill_operands(in_place ? &r : &s);
    seal(&s), seal(&r);
    void *from = in_place ? MPI_IN_PLACE : s.address, *into = r.address;
    reduce(kind, from, into, n, counts, layout.handle, op, root);
    long ints = layout.ints;
    if (scatters && in_place) let_pass(&r, 0, ints * sent);
    if (kind == EXSCAN && rank == 0) let_pass(&r, 0, ints * mine);
    if (scatters || kind == ALLREDUCE || (kind == REDUCE && is_root))
        expect_sums(&r, &s, size, scatters ? before : 0, mine);
    else if (kind == SCAN || (kind == EXSCAN && rank > 0))
        expect_sums(&r, &s, rank + (kind == SCAN), 0, mine);
    check_and_free("operands", &s);
    check_and_free("result", &r);
    call++;
}

/* Whether so many elements lie in memory that there is, and don't overlap. */
static int are_apart(const Layout *layout, long elements)
{
    return elements * labs(layout->extent) <= 1 << 24 && !overlaps(layout, (int)elements);
}

/* Whether MPI allows the call, and whoever carries it out can do with it: the libraries' reduce-scatters receive all ranks'
 * blocks where a rank receives one. */
static int is_allowed(int kind, const Case *of, int is_commutative)
{
    int is_library = by[kind] == 'l' || !is_commutative;
    int scatters = kind == REDUCE_SCATTER || kind == REDUCE_SCATTER_BLOCK;
    int gathers = kind == GATHER || kind == ALLGATHER || kind == SCATTER || kind == ALLTOALL;
    long elements = gathers || (scatters && is_library) ? (long)of->n * size : of->n;
    if (is_library && !of->is_tame) return 0;
    if (scatters && !is_commutative && !SCATTERS_IN_ORDER) return 0;
    if (scatters && (long)of->n * size * labs(of->layout.extent) > 1 << 24) return 0;
    return are_apart(&of->layout, elements);
}

/* Begins a call, unless it is set aside. */
static int goes(int kind, const Case *of)
{
    snprintf(what, sizeof what, "%s %s", names[kind], of->name);
    return begins(what);
}

/* Calls of one kind, by operations that are commutative and not, in place and not. */
static void combines(int kind, const Case *of)
{
    for (int way = 0; way < 4; way++) {
        int root = (int)(call % size), in_place = way / 2;
        is_composed = way % 2;
        if ((is_composed && of->layout.ints % 2) || !is_allowed(kind, of, !is_composed) || !goes(kind, of)) continue;
        snprintf(what, sizeof what, "%s of %d %s, root %d, in place %d, composed %d", names[kind], of->n, of->name,
                 root, in_place, is_composed);
        MPI_Op op;
        MPI_Op_create(operate, !is_composed, &op);
        operated = &of->layout;
        combine(kind, root, of->n, in_place, of->layout, op);
        MPI_Op_free(&op);
    }
}

/* What is only moved. */
static void moves(int kind, const Case *of)
{
    for (int way = 0; way < 2; way++) {
        int n = of->n, root = (int)(call % size), is_root = rank == root, is_all = kind == ALLTOALL;
        int sent = is_all || kind == SCATTER ? size : 1, received = kind == SCATTER || kind == BCAST ? 1 : size;
        int in_place = way && kind != BCAST && (is_root || is_all || kind == ALLGATHER);
        long ints = (long)n * of->layout.ints;
        if (!is_allowed(kind, of, 1) || !goes(kind, of)) continue;
        snprintf(what, sizeof what, "%s of %d %s, root %d, in place %d", names[kind], n, of->name, root, in_place);
        Layout one = of->layout, other = of->layout;
        one.is_named = other.is_named = 0;
        MPI_Type_dup(of->layout.handle, &one.handle), MPI_Type_dup(of->layout.handle, &other.handle);
        Buffer s = buffer(one, n * sent), r = buffer(other, n * received);
        fill(&s, 0, rank, 0, ints * sent);
        if (kind == BCAST && is_root) fill(&r, 0, rank, 0, ints);
        if (in_place && is_all) fill(&r, 0, rank, 0, ints * size);
        if (in_place && (kind == GATHER || kind == ALLGATHER)) fill(&r, rank * ints, rank, 0, ints);
        seal(&s), seal(&r);
        for (int from = 0; from < received; from++) {
            if (kind == BCAST) expect_from(&r, 0, root, 0, ints);
            if (kind == ALLGATHER || (kind == GATHER && is_root)) expect_from(&r, from * ints, from, 0, ints);
            if (kind == SCATTER && !in_place) expect_from(&r, 0, root, rank * ints, ints);
            if (is_all) expect_from(&r, from * ints, from, rank * ints, ints);
        }
        void *send = in_place ? MPI_IN_PLACE : s.address, *receive = in_place ? MPI_IN_PLACE : r.address;
        MPI_Datatype type = of->layout.handle;
        switch (kind) {
        case BCAST: MPI_Bcast(r.address, n, type, root, comm); break;
        case GATHER: MPI_Gather(send, n, type, r.address, n, type, root, comm); break;
        case ALLGATHER: MPI_Allgather(send, n, type, r.address, n, type, comm); break;
        case SCATTER: MPI_Scatter(s.address, n, type, receive, n, type, root, comm); break;
        default: MPI_Alltoall(send, n, type, r.address, n, type, comm);
        }
        check_and_free("what was sent", &s);
        check_and_free("what was received", &r);
        call++;
    }
}

static void try(const char *name, int is_tame, Layout layout, int n)
{
    Case of = { .name = name, .layout = layout, .n = n, .is_tame = is_tame };
    MPI_Type_commit(&of.layout.handle);
    for (int kind = 0; kind < KINDS; kind++) combines(kind, &of);
    for (int kind = KINDS; kind < ALL; kind++) moves(kind, &of);
    drop(&of.layout);
}

/* Ints, each so many bytes from the one before. */
static Layout ints_apart(int ints, long stride) { return repeated(plain(), ints, stride); }

/* As many elements as don't overlap, at most 9. */
static int most(const Layout *layout)
{
    int n = 1;
    while (n < 9 && !overlaps(layout, n + 1)) n++;
    return n;
}

int main(int argc, char **argv)
{
    static const int lengths[] = { 1, 2, 8, 31 };
    long seed = argc > 1 ? atol(argv[1]) : 1, random_types = argc > 2 ? atol(argv[2]) : 20;
    by = argc > 3 ? argv[3] : "lllllllllll";
    MPI_Init(&argc, &argv);
    comm = MPI_COMM_WORLD;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    try("one beyond its extent", 1, resized(ints_apart(4, 4), 0, 4), 1);
    try("one without extent", 1, resized(ints_apart(2, 8), 0, 0), 1);
    try("one far from the next", 1, resized(plain(), 0, 1 << 20), 1);
    try("three between each other", 0, resized(joined(plain(), -20, plain(), 4), 100, 8), 3);
    try("five with gaps", 1, resized(ints_apart(2, 12), 0, 40), 5);
    for (int i = 0; i < 4; i++) {
        int n = lengths[i];
        try("parts apart", 1, resized(ints_apart(4, 4 * n), 0, 4), n);
        try("parts apart backwards", 0, resized(ints_apart(4, 4 * n), 0, -4), n);
        /* So that of all ranks' blocks no two elements overlap. */
        try("parts far apart", 1, resized(ints_apart(4, 4 * n * size), 0, 4), n);
    }
    shared = seed * 1000003;
    for (long i = 0; i < random_types; i++) {
        Layout part = random_layout(&shared, 1 + below(&shared, 8), 0);
        long extent = 4 * (below(&shared, 30) - 14), lower = 4 * (below(&shared, 30) - 15);
        Layout layout = resized(part, lower, extent);
        try("random", 0, layout, 1 + below(&shared, most(&layout)));
    }
    if (rank == 0) printf("%ld calls\n", call);
    MPI_Finalize();
    return 0;
}
