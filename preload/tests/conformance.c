/* Calls every collective that libcolibri.so catches in every way that MPI allows, and some that it
 * forbids. Prints, per rank and kind of call, a hash of everything that the calls wrote, and the
 * error classes: the same with the library as without, whatever methods it uses.
 *
 * Argument: how often to repeat (default 1), for leaks and races. */
#include <mpi.h>
#include <pthread.h>
#include "notes.h"

/* Set by the test for a library that ends the program at every error, whatever handler is set. */
#ifndef HANDLERS_IGNORED
#define HANDLERS_IGNORED 0
#endif

/* Elements of two ints each: side by side, with gaps, backwards with a gap, a struct. */
enum { PLAIN, GAPS, BACKWARDS, TYPES };
static MPI_Datatype types[TYPES], uncommitted;
static const int reach[TYPES] = { 2, 5, 4 };  /* ints from one element to the next */
static const int first[TYPES] = { 0, 0, 3 };  /* where an element's first int lies */
static const int second[TYPES] = { 1, 3, 0 };
static MPI_Op compose;

/* x -> a x + b: associative, not commutative. */
static void composing(void *in, void *inout, int *length, MPI_Datatype *type)
{
    unsigned *f = in, *g = inout;
    MPI_Aint lower, extent;
    MPI_Type_get_extent(*type, &lower, &extent);
    for (int i = 0; i < *length; i++) {
        unsigned *x = f + i * (extent / 4), *y = g + i * (extent / 4);
        int a = 0, b = extent == 8 ? 1 : extent == 20 ? 3 : 0;
        if (extent == 16) a = 3;
        y[b] = x[b] * y[a] + y[b];
        y[a] = x[a] * y[a];
    }
}

static void make_types(void)
{
    MPI_Datatype part;
    MPI_Type_contiguous(2, MPI_INT, &types[PLAIN]);
    MPI_Type_vector(2, 1, 3, MPI_INT, &part);
    MPI_Type_create_resized(part, 0, 20, &types[GAPS]);
    MPI_Type_free(&part);
    int lengths[] = { 1, 1 }, places[] = { 3, 0 };
    MPI_Type_indexed(2, lengths, places, MPI_INT, &part);
    MPI_Type_create_resized(part, 0, 16, &types[BACKWARDS]);
    MPI_Type_free(&part);
    for (int t = 0; t < TYPES; t++) MPI_Type_commit(&types[t]);
    MPI_Type_contiguous(3, MPI_INT, &uncommitted);
    MPI_Op_create(composing, 0, &compose);
}

/* Room for so many elements, every int of it told apart; at least one byte. */
static int *room(int count, int type, int seed)
{
    int ints = count * reach[type] + 2;
    int *all = malloc(ints * sizeof(int));
    for (int i = 0; i < ints; i++) all[i] = -1000 - i - seed;
    return all;
}

static int *filled(int count, int type, int seed)
{
    int *all = room(count, type, seed);
    for (int e = 0; e < count; e++) {
        all[e * reach[type] + first[type]] = (seed * 31 + e * 7) % 1000 + 1;
        all[e * reach[type] + second[type]] = (seed * 17 + e * 13) % 997 + 1;
    }
    return all;
}

static void note_room(const char *name, const int *all, int count, int type)
{
    note(name, all, (count * reach[type] + 2) * sizeof(int));
}

static const int counts[] = { 0, 1, 2, 7, 300 };
#define EACH(item, list) for (size_t i_##item = 0; i_##item < sizeof(list) / sizeof *(list); i_##item++)

static void moving(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    EACH(count, counts) for (int s = 0; s < TYPES; s++) for (int r = 0; r < TYPES; r++) {
        int n = counts[i_count];
        /* The same signature by other means: two ints for each element. */
        int bare = (s + r) % 2, times = bare && r == PLAIN ? 2 : 1;
        MPI_Datatype rtype = times == 2 ? MPI_INT : types[r];
        int *one = filled(n, s, rank + 1), *all = filled(n * size, s, rank + 1);
        int *into = room(n, r, rank), *into_all = room(n * size, r, rank);
        for (int root = 0; root < size; root++) {
            int *mine = rank == root ? filled(n, s, root + 9) : room(n, r, rank);
            CASE("bcast") {
                MPI_Bcast(mine, rank == root ? n : n * times, rank == root ? types[s] : rtype, root, comm);
                note_room("bcast", mine, n, rank == root ? s : r);
            }
            free(mine);

            /* What counts at the root only is wrong elsewhere. */
            CASE("gather") {
                MPI_Gather(one, n, types[s], rank == root ? into_all : NULL, rank == root ? n * times : -7,
                           rank == root ? rtype : MPI_DATATYPE_NULL, root, comm);
                note_room("gather", into_all, n * size, r);
            }
            CASE("scatter") {
                MPI_Scatter(rank == root ? all : NULL, rank == root ? n : -7,
                            rank == root ? types[s] : MPI_DATATYPE_NULL, into, n * times, rtype, root, comm);
                note_room("scatter", into, n, r);
            }
            int *both = filled(n * size, r, rank + 40);
            CASE("gather in place") {
                if (rank == root)
                    MPI_Gather(MPI_IN_PLACE, -3, MPI_DATATYPE_NULL, both, n * times, rtype, root, comm);
                else
                    MPI_Gather(one, n, types[s], NULL, -3, MPI_DATATYPE_NULL, root, comm);
                note_room("gather in place", both, n * size, r);
            }
            free(both), both = filled(n * size, r, rank + 45);
            CASE("scatter in place") {
                if (rank == root)
                    MPI_Scatter(both, n * times, rtype, MPI_IN_PLACE, -3, MPI_DATATYPE_NULL, root, comm);
                else
                    MPI_Scatter(NULL, -3, MPI_DATATYPE_NULL, into, n, types[r], root, comm);
                note_room("scatter in place", into, n, r);
            }
            free(both);
        }
        free(into), into = room(n, r, rank);
        free(into_all), into_all = room(n * size, r, rank);
        CASE("allgather") {
            MPI_Allgather(one, n, types[s], into_all, n * times, rtype, comm);
            note_room("allgather", into_all, n * size, r);
        }
        int *both = filled(n * size, r, rank + 50);
        CASE("allgather in place") {
            MPI_Allgather(MPI_IN_PLACE, -3, MPI_DATATYPE_NULL, both, n * times, rtype, comm);
            note_room("allgather in place", both, n * size, r);
        }
        CASE("alltoall") {
            MPI_Alltoall(all, n, types[s], into_all, n * times, rtype, comm);
            note_room("alltoall", into_all, n * size, r);
        }
        free(both), both = filled(n * size, r, rank + 55);
        CASE("alltoall in place") {
            MPI_Alltoall(MPI_IN_PLACE, -3, MPI_DATATYPE_NULL, both, n * times, rtype, comm);
            note_room("alltoall in place", both, n * size, r);
        }
        note_room("what was sent", one, n, s);
        note_room("what was sent", all, n * size, s);
        free(both), free(one), free(all), free(into), free(into_all);
    }
    CASE("barrier") MPI_Barrier(comm);
}

static void combining(MPI_Comm comm, const char *what, MPI_Op op, MPI_Datatype type, int t, int per)
{
    int rank, size;
    char name[64];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
#define NAMED(collective) (snprintf(name, sizeof name, collective " %s", what), name)
    EACH(count, counts) for (int in_place = 0; in_place < 2; in_place++) {
        int n = counts[i_count], each[64], mine = 0, total = 0;
        for (int p = 0; p < size; p++) {
            each[p] = p % 3 == 1 ? 0 : n + p % 2;
            total += each[p];
            if (p == rank) mine = each[p];
        }
        int *one = filled(n, t, rank + 1), *all = filled(n * size, t, rank + 1);
        int *varied = filled(total, t, rank + 2);
        int *into = room(n, t, rank), *into_some = room(mine, t, rank);
#define SIDES(send, into, count) \
    int *to = into; \
    if (in_place) memcpy(to, send, ((count) * reach[t] + 2) * sizeof(int)); \
    const void *from = in_place ? MPI_IN_PLACE : (const void *)send;
        for (int root = 0; root < size; root++) {
            int *to = into, given = in_place && rank == root;
            given = given && (!MPICH_CRASHES || root == 0 || n <= 7);
            if (given) memcpy(to, one, (n * reach[t] + 2) * sizeof(int));
            CASE(NAMED("reduce")) {
                MPI_Reduce(given ? MPI_IN_PLACE : one, rank == root ? to : NULL, n * per, type, op, root,
                           comm);
                note_room(name, to, n, t);
            }
        }
        CASE(NAMED("allreduce")) {
            SIDES(one, into, n) MPI_Allreduce(from, to, n * per, type, op, comm);
            note_room(name, into, n, t);
        }
        CASE(NAMED("scan")) {
            SIDES(one, into, n) MPI_Scan(from, to, n * per, type, op, comm);
            note_room(name, into, n, t);
        }
        CASE(NAMED("exscan")) {
            SIDES(one, into, n) MPI_Exscan(from, to, n * per, type, op, comm);
            if (rank > 0) note_room(name, into, n, t);
        }
        /* The first rank gets nothing. */
        if (!MPICH_CRASHES) CASE(NAMED("exscan")) {
            MPI_Exscan(one, rank > 0 ? into : NULL, n * per, type, op, comm);
            if (rank > 0) note_room(name, into, n, t);
        }
        int per_rank[64];
        for (int p = 0; p < size; p++) per_rank[p] = each[p] * per;
        free(into), into = room(n, t, rank);
        int *both = filled(n * size, t, rank + 3), *both_varied = filled(total, t, rank + 4);
        int cuts = !MPICH_CRASHES || op != compose;
        if (in_place && cuts) CASE(NAMED("reduce_scatter_block in place")) {
            MPI_Reduce_scatter_block(MPI_IN_PLACE, both, n * per, type, op, comm);
            /* What becomes of the other blocks is not said. */
            note(name, both, n * reach[t] * sizeof(int));
        }
        if (in_place) CASE(NAMED("reduce_scatter in place")) {
            MPI_Reduce_scatter(MPI_IN_PLACE, both_varied, per_rank, type, op, comm);
            note(name, both_varied, mine * reach[t] * sizeof(int));
        }
        if (!in_place && cuts) CASE(NAMED("reduce_scatter_block")) {
            MPI_Reduce_scatter_block(all, into, n * per, type, op, comm);
            note_room(name, into, n, t);
        }
        if (!in_place) CASE(NAMED("reduce_scatter")) {
            /* Who gets nothing needs no place for it. */
            MPI_Reduce_scatter(varied, mine ? into_some : NULL, per_rank, type, op, comm);
            note_room(name, into_some, mine, t);
        }
        free(both), free(both_varied);
        note_room("what was sent", one, n, t);
        note_room("what was sent", all, n * size, t);
        free(one), free(all), free(varied), free(into), free(into_some);
    }
}

static void on(MPI_Comm comm)
{
    moving(comm);
    combining(comm, "sum", MPI_SUM, MPI_INT, PLAIN, 2);
    combining(comm, "bxor", MPI_BXOR, MPI_INT, PLAIN, 2);
    combining(comm, "minloc", MPI_MINLOC, MPI_2INT, PLAIN, 1);
    combining(comm, "composition", compose, types[PLAIN], PLAIN, 1);
    combining(comm, "composition with gaps", compose, types[GAPS], GAPS, 1);
    combining(comm, "composition backwards", compose, types[BACKWARDS], BACKWARDS, 1);
}

static int raised;
static void raise_it(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code, raised++; }

/* What is wrong is answered as it is without us: same class, the same handler as often. */
static void errors(void)
{
    MPI_Comm comm;
    MPI_Errhandler counting;
    int data[64] = { 0 }, into[64] = { 0 }, size = world_size;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(raise_it, &counting);
    for (int turn = 0; turn < 2; turn++) {
        MPI_Comm_set_errhandler(comm, turn ? counting : MPI_ERRORS_RETURN);
        MPI_Bcast(data, 4, MPI_INT, 0, comm);
#define WRONG(name, call) CASE("error: " name) note_class("error: " name, call)
        WRONG("bcast root", MPI_Bcast(data, 4, MPI_INT, size, comm));
        WRONG("bcast root below", MPI_Bcast(data, 4, MPI_INT, -5, comm));
        WRONG("bcast count", MPI_Bcast(data, -1, MPI_INT, 0, comm));
        WRONG("bcast no type", MPI_Bcast(data, 4, MPI_DATATYPE_NULL, 0, comm));
        WRONG("bcast uncommitted", MPI_Bcast(data, 2, uncommitted, 0, comm));
        WRONG("reduce root", MPI_Reduce(data, into, 4, MPI_INT, MPI_SUM, size, comm));
        WRONG("reduce no op", MPI_Reduce(data, into, 4, MPI_INT, MPI_OP_NULL, 0, comm));
        WRONG("reduce op", MPI_Reduce(data, into, 4, MPI_FLOAT, MPI_BAND, 0, comm));
        WRONG("allreduce op", MPI_Allreduce(data, into, 4, MPI_DOUBLE, MPI_BXOR, comm));
        WRONG("allreduce derived", MPI_Allreduce(data, into, 2, types[PLAIN], MPI_SUM, comm));
        if (!MPICH_5) WRONG("allreduce no type", MPI_Allreduce(data, into, 4, MPI_DATATYPE_NULL, MPI_SUM, comm));
        WRONG("scan no op", MPI_Scan(data, into, 4, MPI_INT, MPI_OP_NULL, comm));
        WRONG("scan op", MPI_Scan(data, into, 4, MPI_BYTE, MPI_SUM, comm));
#if !MPICH_CRASHES
        int few[64] = { -1 };
        WRONG("allreduce count", MPI_Allreduce(data, into, -4, MPI_INT, MPI_SUM, comm));
        WRONG("reduce_scatter_block count",
              MPI_Reduce_scatter_block(data, into, -1, MPI_INT, MPI_SUM, comm));
        WRONG("reduce_scatter count", MPI_Reduce_scatter(data, into, few, MPI_INT, MPI_SUM, comm));
#endif
        WRONG("gather root", MPI_Gather(data, 1, MPI_INT, into, 1, MPI_INT, size + 1, comm));
        WRONG("scatter root", MPI_Scatter(data, 1, MPI_INT, into, 1, MPI_INT, -4, comm));
        WRONG("gather count", MPI_Gather(data, -1, MPI_INT, into, -1, MPI_INT, 0, comm));
        WRONG("allgather type",
              MPI_Allgather(data, 1, MPI_DATATYPE_NULL, into, 1, MPI_DATATYPE_NULL, comm));
        WRONG("alltoall count", MPI_Alltoall(data, -2, MPI_INT, into, -2, MPI_INT, comm));
    }
    note("errors raised", &raised, sizeof raised);
    MPI_Errhandler_free(&counting);
    MPI_Comm_free(&comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    WRONG("no communicator", MPI_Bcast(data, 4, MPI_INT, 0, MPI_COMM_NULL));
    WRONG("barrier, no communicator", MPI_Barrier(MPI_COMM_NULL));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static void intercommunicator(void)
{
    MPI_Comm half, inter;
    int color = world_rank % 2, data[8], into[8] = { 0 };
    if (world_size < 2) return;
    MPI_Comm_split(MPI_COMM_WORLD, color, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - color, 7, &inter);
    for (int i = 0; i < 8; i++) data[i] = world_rank * 10 + i;
    MPI_Allreduce(data, into, 8, MPI_INT, MPI_SUM, inter);
    note("intercommunicator", into, sizeof into);
    int root = color ? 0 : world_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Bcast(data, 8, MPI_INT, root, inter);
    note("intercommunicator", data, sizeof data);
    MPI_Barrier(inter);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static int copied, deleted;
static int copying(MPI_Comm c, int k, void *e, void *in, void *out, int *flag)
{
    (void)c, (void)k, (void)e;
    *(void **)out = in, *flag = 1, copied++;
    return MPI_SUCCESS;
}
static int deleting(MPI_Comm c, int k, void *v, void *e)
{
    (void)c, (void)k, (void)v, (void)e;
    deleted++;
    return MPI_SUCCESS;
}

/* Made, used and freed; the application's attributes are copied and deleted as often as without us. */
static void communicators(int times)
{
    int key;
    MPI_Comm base;
    MPI_Comm_create_keyval(copying, deleting, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &base);
    MPI_Comm_set_attr(base, key, &key);
    for (int turn = 0; turn < times; turn++) {
        MPI_Comm again, part;
        MPI_Comm_dup(base, &again);
        MPI_Comm_split(again, world_rank % 3, -world_rank, &part);
        int data[3] = { turn, world_rank, 5 }, into[3];
        MPI_Allreduce(data, into, 3, MPI_INT, MPI_SUM, part);
        MPI_Bcast(data, 3, MPI_INT, world_size - 1, again);
        note("freed communicators", into, sizeof into);
        note("freed communicators", data, sizeof data);
        MPI_Comm_free(&part);
        MPI_Comm_free(&again);
    }
    MPI_Comm_free(&base);
    MPI_Comm_free_keyval(&key);
    note("attributes", &copied, sizeof copied);
    note("attributes", &deleted, sizeof deleted);
}

/* A receive of anything must not catch what is none of the application's. */
static void wildcard(void)
{
    int caught[400] = { 0 }, data[400], into[400];
    MPI_Request request;
    MPI_Irecv(caught, 400, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 400; i++) data[i] = i * world_rank;
    MPI_Bcast(data, 400, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allreduce(data, into, 400, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce(data, into, 400, MPI_INT, MPI_MAX, world_size - 1, MPI_COMM_WORLD);
    data[0] = 77;
    MPI_Send(data, 400, MPI_INT, (world_rank + 1) % world_size, 3, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    note("wildcard", caught, sizeof caught);
    note("wildcard", into, sizeof into);
}

static void *in_a_thread(void *argument)
{
    MPI_Comm comm = *(MPI_Comm *)argument;
    static const int n = 600;
    int *data = malloc(n * sizeof *data), *into = malloc(n * sizeof *into);
    long *sum = calloc(1, sizeof *sum);
    for (int turn = 0; turn < 30; turn++) {
        for (int i = 0; i < n; i++) data[i] = i + turn + world_rank;
        MPI_Allreduce(data, into, n, MPI_INT, MPI_SUM, comm);
        MPI_Bcast(into, n, MPI_INT, turn % world_size, comm);
        for (int i = 0; i < n; i++) *sum = *sum * 31 + into[i];
        MPI_Barrier(comm);
    }
    free(data), free(into);
    return sum;
}

/* Two threads, each on a communicator of its own, in no order between them. */
static void threads(void)
{
    MPI_Comm comms[2];
    pthread_t thread;
    void *sums[2];
    for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    pthread_create(&thread, NULL, in_a_thread, &comms[world_rank % 2]);
    sums[world_rank % 2 == 0] = in_a_thread(&comms[world_rank % 2 == 0]);
    pthread_join(thread, &sums[world_rank % 2]);
    for (int i = 0; i < 2; i++) {
        note("threads", sums[i], sizeof(long));
        free(sums[i]);
        MPI_Comm_free(&comms[i]);
    }
}

int main(int argc, char **argv)
{
    int given, times = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Comm part, backwards;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    make_types();
    for (int turn = 0; turn < times; turn++) {
        on(MPI_COMM_WORLD);
        MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &part);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &backwards);
        moving(part);
        combining(part, "sum", MPI_SUM, MPI_INT, PLAIN, 2);
        combining(backwards, "composition", compose, types[PLAIN], PLAIN, 1);
        moving(MPI_COMM_SELF);
        MPI_Comm_free(&backwards);
        MPI_Comm_free(&part);
        if (!HANDLERS_IGNORED) CASE("error handlers") errors();
        CASE("intercommunicator") intercommunicator();
        CASE("freed communicators") communicators(30);
        CASE("wildcard") wildcard();
        if (given == MPI_THREAD_MULTIPLE) CASE("threads") threads();
    }
    for (int t = 0; t < TYPES; t++) MPI_Type_free(&types[t]);
    MPI_Type_free(&uncommitted);
    MPI_Op_free(&compose);
    print_notes();
    MPI_Finalize();
    return 0;
}
