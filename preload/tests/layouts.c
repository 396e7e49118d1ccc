/* Random calls on random datatypes: nested, with gaps, backwards, with bounds far from the data, and
 * different ones on each rank for one signature. Other traffic of the same communicator is under way
 * meanwhile. Every result is checked, and that nothing beside it was touched.
 *
 * Arguments: seed, number of calls. Prints the number of calls. */
#include "layouts.h"

#ifdef OPEN_MPI
#define MPICH_CRASHES 0
#else
#define MPICH_CRASHES 1 /* by itself (4.0.2) */
#endif

/* Of what isn't significant on a rank, something that must not be looked at. */
#define NOWHERE ((void *)8)

/* This rank's own random numbers. */
static uint64_t own;

/* Of whole elements in `ints` ints, so many blocks of which follow each other. */
static Layout layout_for(uint64_t *random, int ints, int blocks)
{
    for (;;) {
        int each = divisor(random, ints, MOST_INTS);
        Layout layout = random_layout(random, each, below(random, 3) ? 0 : 7 * (each == 1));
        if (!overlaps(&layout, ints / each * blocks)) return layout;
        drop(&layout);
    }
}

/* All of it as one element of a datatype that holds addresses. */
static void from_bottom(Buffer *b)
{
    MPI_Aint place;
    MPI_Get_address(b->address, &place);
    MPI_Type_create_hindexed(1, &b->count, &place, b->layout.handle, &b->type);
    MPI_Type_commit(&b->type);
    b->address = MPI_BOTTOM, b->count = 1;
}

static void moving(void)
{
    static const int lengths[] = { 1, 2, 6, 12, 24, 60, 240, 4800 };
    int kind = below(&shared, 5), root = below(&shared, size), n = lengths[below(&shared, 8)];
    int in_place = below(&shared, 2), is_root = rank == root, is_apart = below(&own, 3) == 0;
    static const char *names[] = { "bcast", "gather", "allgather", "scatter", "alltoall" };
    if (!begins(names[kind])) return;
    snprintf(what, sizeof what, "moving %d, root %d, %d ints, in place %d", kind, root, n, in_place);
    if (kind == 0) {
        Layout layout = layout_for(&own, n, 1);
        Buffer b = buffer(layout, n / layout.ints);
        if (is_root) fill(&b, 0, root, 0, n);
        seal(&b);
        expect_from(&b, 0, root, 0, n);
        if (is_apart) from_bottom(&b);
        MPI_Bcast(b.address, b.count, b.type, root, comm);
        check_and_free("bcast", &b);
        return;
    }
    int is_gather = kind == 1, is_all = kind == 2, is_scatter = kind == 3;
    int sent = is_gather || is_all ? 1 : size, received = is_scatter ? 1 : size;
    Layout from = layout_for(&own, n, sent), into = layout_for(&own, n, received);
    Buffer s = buffer(from, n / from.ints * sent), r = buffer(into, n / into.ints * received);
    int sends = n / from.ints, receives = n / into.ints;
    in_place = in_place && (is_root || is_all || kind == 4);
    fill(&s, 0, rank, 0, (long)n * sent);
    if (in_place && (is_gather || is_all)) fill(&r, (long)rank * n, rank, 0, n);
    if (in_place && kind == 4) fill(&r, 0, rank, 0, (long)n * size);
    seal(&s), seal(&r);
    for (int other = 0; other < received; other++) {
        if (is_scatter && !in_place) expect_from(&r, 0, root, (long)rank * n, n);
        if (is_all || (is_gather && is_root)) expect_from(&r, (long)other * n, other, 0, n);
        if (kind == 4) expect_from(&r, (long)other * n, other, (long)rank * n, n);
    }
    if (is_apart && (is_gather || is_all)) from_bottom(&s), sends = 1;
    if (is_apart && is_scatter) from_bottom(&r), receives = 1;
    void *send = in_place && !is_scatter ? MPI_IN_PLACE : s.address;
    MPI_Datatype none = MPI_DATATYPE_NULL, stype = send == MPI_IN_PLACE ? none : s.type;
    if (send == MPI_IN_PLACE) sends = -5;
    if (is_gather)
        MPI_Gather(send, sends, stype, is_root ? r.address : NOWHERE, is_root ? receives : -9,
                   is_root ? r.type : none, root, comm);
    else if (is_all)
        MPI_Allgather(send, sends, stype, r.address, receives, r.type, comm);
    else if (is_scatter)
        MPI_Scatter(is_root ? s.address : NOWHERE, is_root ? sends : -3, is_root ? s.type : none,
                    in_place ? MPI_IN_PLACE : r.address, in_place ? -4 : receives,
                    in_place ? none : r.type, root, comm);
    else
        MPI_Alltoall(send, sends, stype, r.address, receives, r.type, comm);
    check_and_free("what was sent", &s);
    check_and_free("what was received", &r);
}

/* x -> a x + b on pairs of ints, or the sum of ints. */
static int is_composed;
static const Layout *operated;

static void operate(void *in, void *inout, int *length, MPI_Datatype *type)
{
    MPI_Aint lower, extent;
    MPI_Type_get_extent(*type, &lower, &extent);
    if (extent != operated->extent || lower != operated->lower)
        wrong("the operation is told a datatype of extent %ld, not %ld", extent, operated->extent);
    for (int e = 0; e < *length; e++)
        for (int i = 0; i < operated->ints; i += 1 + is_composed) {
            unsigned *x = (void *)((char *)in + e * extent + operated->at[i]);
            unsigned *y = (void *)((char *)inout + e * extent + operated->at[i]);
            if (is_composed) {
                unsigned *xb = (void *)((char *)in + e * extent + operated->at[i + 1]);
                unsigned *yb = (void *)((char *)inout + e * extent + operated->at[i + 1]);
                *yb = *xb * *y + *yb;
                *y = *x * *y;
            } else {
                *y += *x;
            }
        }
}

/* What the ranks below one give from a place on, combined; `to` is where it is expected. */
static void expect_combined(Buffer *b, long to, int up_to, long begin, long count)
{
    for (long i = 0; i < count; i += 1 + is_composed) {
        unsigned first = given(0, begin + i), second = given(0, begin + i + 1);
        for (int r = 1; r < up_to; r++) {
            unsigned a = given(r, begin + i), c = given(r, begin + i + 1);
            second = second * a + c;
            first = is_composed ? first * a : first + a;
        }
        expect(b, to + i, (int)first);
        if (is_composed) expect(b, to + i + 1, (int)second);
    }
}

static void combine(int kind, int root, int n, int in_place, Layout layout, MPI_Op op)
{
    int counts[64], total = 0, before = 0, is_root = rank == root, scatters = kind >= REDUCE_SCATTER;
    for (int r = 0; r < size; r++) {
        int varied = below(&shared, 3) ? below(&shared, n + 1) : 0;
        counts[r] = kind == REDUCE_SCATTER ? varied : n;
        if (r < rank) before += counts[r];
        total += counts[r];
    }
    int given_in = scatters ? total : n, mine = scatters ? counts[rank] : n;
    long ints = layout.ints, words = ints * mine;
    Layout one = layout, other = layout;
    one.is_named = other.is_named = 0;
    MPI_Type_dup(layout.handle, &one.handle), MPI_Type_dup(layout.handle, &other.handle);
    in_place = in_place && (kind != REDUCE || is_root);
    Buffer s = buffer(one, given_in), r = buffer(other, in_place ? given_in : mine);
    fill(&s, 0, rank, 0, ints * given_in);
    if (in_place) fill(&r, 0, rank, 0, ints * given_in);
    seal(&s), seal(&r);
    if (scatters)
        expect_combined(&r, 0, size, ints * before, words);
    else if (kind == ALLREDUCE || (kind == REDUCE && is_root))
        expect_combined(&r, 0, size, 0, words);
    else if (kind == SCAN || (kind == EXSCAN && rank > 0))
        expect_combined(&r, 0, rank + (kind == SCAN), 0, words);
    void *from = in_place ? MPI_IN_PLACE : s.address, *into = r.address;
    int goes_without = (kind == REDUCE && !is_root) || (kind == EXSCAN && rank == 0 && !in_place);
    if (goes_without && !MPICH_CRASHES && below(&own, 2)) into = below(&own, 2) ? NULL : NOWHERE;
    reduce(kind, from, into, n, counts, layout.handle, op, root);
    if (scatters && in_place) let_pass(&r, words, ints * given_in);
    if (kind == EXSCAN && rank == 0) let_pass(&r, 0, words);
    check_and_free("operands", &s);
    check_and_free("result", &r);
}

static void combining(void)
{
    static const int lengths[] = { 0, 1, 2, 3, 7, 20, 33 };
    int kind = below(&shared, 6), root = below(&shared, size), n = lengths[below(&shared, 7)];
    int in_place = below(&shared, 2), is_named = below(&shared, 3) == 0;
    static const char *names[] = { "reduce", "allreduce", "scan", "exscan", "reduce_scatter",
                                   "reduce_scatter_block" };
    if (!begins(names[kind])) return;
    is_composed = below(&shared, 2) && !is_named;
    Layout layout = plain();
    while (!is_named) {
        int ints = is_composed ? 2 * (1 + below(&shared, 4)) : 1 + below(&shared, 9);
        layout = random_layout(&shared, ints, 0);
        if (layout.extent > 0 && !overlaps(&layout, (n + 1) * size)) break;
        drop(&layout);
    }
    int is_ours = !is_named || below(&shared, 2), is_committed = layout.is_named;
    snprintf(what, sizeof what, "combining %d, root %d, %d of %d ints, in place %d, composed %d", kind,
             root, n, layout.ints, in_place, is_composed);
    int is_left_out = kind >= REDUCE_SCATTER || (kind == REDUCE && in_place && root > 0) ||
                      (kind == ALLREDUCE && !is_named);
    if (!MPICH_CRASHES || !is_left_out) {
        MPI_Op op = MPI_SUM;
        if (is_ours) MPI_Op_create(operate, !is_composed, &op);
        if (!is_committed) MPI_Type_commit(&layout.handle);
        operated = &layout;
        combine(kind, root, n, in_place, layout, op);
        if (is_ours) MPI_Op_free(&op);
    }
    drop(&layout);
}

enum { COMMS = 7 };
static MPI_Comm comms[COMMS];

static void free_comms(void)
{
    for (int i = 0; i < COMMS; i++)
        if (comms[i] != MPI_COMM_NULL) MPI_Comm_free(&comms[i]);
}

static void make_comms(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Group all, others;
    MPI_Request request;
    int me, everybody, one = 1, first = 0;
    MPI_Comm_rank(world, &me);
    MPI_Comm_size(world, &everybody);
    int right = (me + 1) % everybody, left = (me + everybody - 1) % everybody;
    MPI_Comm_dup(world, &comms[0]);
    MPI_Comm_split(world, 0, -me, &comms[1]);
    MPI_Comm_split(world, me % 2, me, &comms[2]);
    MPI_Cart_create(world, 1, &everybody, &one, 1, &comms[3]);
    MPI_Dist_graph_create_adjacent(world, 1, &left, &one, 1, &right, &one, MPI_INFO_NULL, 0,
                                   &comms[4]);
    MPI_Comm_group(world, &all);
    MPI_Group_excl(all, everybody > 1, &first, &others);
    MPI_Comm_create(world, others, &comms[5]);
    MPI_Group_free(&all), MPI_Group_free(&others);
    MPI_Comm_idup(world, &comms[6], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Some calls, while a message or a collective of the application's is under way. */
static void calls_beside_others(void)
{
    enum { SHORT = 300, LONG = 40000 };
    static int out[LONG], in[LONG];
    int traffic = below(&shared, 4), count = traffic == 1 ? SHORT : LONG, ones[9], sums[9];
    int right = (rank + 1) % size, left = (rank + size - 1) % size, tag = call % 7;
    MPI_Request request = MPI_REQUEST_NULL;
    for (int i = 0; i < LONG; i++) out[i] = given(rank, i), in[i] = 0;
    for (int i = 0; i < 9; i++) ones[i] = 1;
    if (traffic == 1)
        MPI_Irecv(in, count, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
    if (traffic == 2) MPI_Isend(out, count, MPI_INT, right, tag, comm, &request);
    if (traffic == 3) MPI_Iallreduce(ones, sums, 9, MPI_INT, MPI_SUM, comm, &request);
    for (int again = 1 + below(&shared, 3); again > 0; again--) {
        int kind = below(&shared, 9);
        if (kind < 4) moving();
        else if (kind < 8) combining();
        else if (begins("barrier")) MPI_Barrier(comm);
    }
    if (traffic == 1) MPI_Send(out, count, MPI_INT, right, tag, comm);
    if (traffic == 2) MPI_Recv(in, count, MPI_INT, left, tag, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int is_message = traffic == 1 || traffic == 2;
    if (is_message && in[count - 1] != given(left, count - 1)) wrong("a message beside it");
    if (traffic == 3 && sums[8] != size) wrong("an allreduce beside it");
}

int main(int argc, char **argv)
{
    int is_given, me;
    long seed = argc > 1 ? atol(argv[1]) : 1, calls = argc > 2 ? atol(argv[2]) : 100;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &is_given);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (call = 0; call < calls; call++) {
        shared = seed * 1000003 + call * 77;
        own = shared * 31 + me * 5 + 1;
        if (call > 0 && call % 40 == 0) free_comms();
        if (call % 40 == 0) make_comms();
        int which = below(&shared, COMMS + 2);
        comm = which < COMMS ? comms[which] : which == COMMS ? MPI_COMM_WORLD : MPI_COMM_SELF;
        if (comm == MPI_COMM_NULL) continue;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        /* Calls of one rank are the library's but on the world, and MPICH 4.0 hangs in some of its own. */
        if (size > 1 || comm == MPI_COMM_WORLD) calls_beside_others();
    }
    free_comms();
    if (me == 0) printf("%ld calls\n", call);
    MPI_Finalize();
    return 0;
}
