/* Communicators made in every way, freed in every way, with few calls on each, so that handles come again.
 * The data of each call must be right. Argument: `made` prints of each number of processes how many calls
 * of MPI_Bcast were among the first two on their communicator, and how many were not; `few N` makes N
 * communicators for two calls each and N for three. The others have calls that the library refuses on one
 * rank among the first ones: it repeats them (`repeated`), goes on with other collectives (`left`), or with
 * the same one, in which it is then one behind the others (`behind`). */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 20, MOST = 8 };
static int world_rank, world_size;
static long first[MOST + 1], later[MOST + 1];

static void check(int is_right, const char *what)
{
    if (is_right) return;
    printf("WRONG on rank %d: %s\n", world_rank, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void bcast(MPI_Comm comm, int number)
{
    int data[N], rank, size, root;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    root = number % size;
    for (int i = 0; i < N; i++) data[i] = rank == root ? i * 7 + size : -1;
    MPI_Bcast(data, N, MPI_INT, root, comm);
    for (int i = 0; i < N; i++) check(data[i] == i * 7 + size, "bcast");
}

static void use(MPI_Comm comm, int calls)
{
    int rank, size;
    if (comm == MPI_COMM_NULL) return;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    /* Another collective has its own first calls. */
    if (calls) MPI_Barrier(comm);
    for (int i = 0; i < calls; i++) {
        bcast(comm, i);
        /* Calls of one rank are the library's. */
        if (rank == 0) (i < 2 || size == 1 ? first : later)[size]++;
    }
}

static void use_and_free(MPI_Comm comm, int calls)
{
    if (comm == MPI_COMM_NULL) return;
    use(comm, calls);
    if (calls % 2) MPI_Comm_free(&comm);
    else MPI_Comm_disconnect(&comm);
}

static int freeing(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    return MPI_Comm_free(value);
}

static void made(int turn)
{
    static const int calls_of[] = { 3, 1, 2, 5, 0, 4 };
    int rank = world_rank, size = world_size, next = turn;
    int left = (rank + size - 1) % size, right = (rank + 1) % size, one = 1, period = 1, key;
    MPI_Comm world = MPI_COMM_WORLD, comm, other, inter;
    MPI_Request request;
    MPI_Group all, part;
#define CALLS calls_of[next++ % 6]
    MPI_Comm_dup(world, &comm);
    use_and_free(comm, CALLS);
    /* As many calls on a duplicate of one that has had its own. */
    MPI_Comm_dup(world, &comm);
    use(comm, 3);
    MPI_Comm_dup(comm, &other);
    use_and_free(comm, 0);
    use_and_free(other, CALLS);
    MPI_Comm_idup(world, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    use_and_free(comm, CALLS);
    MPI_Comm_split(world, 0, -rank, &comm);
    use_and_free(comm, CALLS);
    MPI_Comm_split(world, rank % 2, rank, &comm);
    /* Halves count apart. */
    use_and_free(comm, rank % 2 ? CALLS : 3);
    next = turn + 5;
    MPI_Comm_group(world, &all);
    int range[1][3] = { { 0, size - 1, 2 } };
    MPI_Group_range_incl(all, 1, range, &part);
    MPI_Comm_create(world, part, &comm);
    use_and_free(comm, CALLS);
    if (rank % 2 == 0) {
        MPI_Comm_create_group(world, part, 5, &comm);
        use_and_free(comm, calls_of[(turn + 1) % 6]);
    }
    next = turn + 6;
    MPI_Group_free(&part);
    MPI_Group_free(&all);
    MPI_Cart_create(world, 1, &size, &period, 0, &comm);
    use_and_free(comm, CALLS);
    MPI_Dist_graph_create_adjacent(world, 1, &left, &one, 1, &right, &one, MPI_INFO_NULL, 0, &comm);
    use_and_free(comm, CALLS);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    use_and_free(comm, CALLS);
    /* One hangs on another, and is freed with it. */
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freeing, &key, NULL);
    MPI_Comm_dup(world, &comm);
    MPI_Comm_dup(world, &other);
    MPI_Comm_set_attr(comm, key, &other);
    use(other, CALLS);
    use_and_free(comm, CALLS);
    MPI_Comm_free_keyval(&key);
    /* Between groups, and then one of all. */
    MPI_Comm_split(world, rank % 2, 0, &other);
    MPI_Intercomm_create(other, 0, world, 1 - rank % 2, 7, &inter);
    for (int i = 0, calls = CALLS; i < calls; i++) MPI_Barrier(inter);
    MPI_Intercomm_merge(inter, rank % 2, &comm);
    use_and_free(comm, CALLS);
    use_and_free(other, calls_of[turn % 6]);
    MPI_Comm_free(&inter);
    use(world, 0);
}

/* The library refuses it before it sends anything. */
static void reduce_in_one_buffer(int root, MPI_Comm comm)
{
    int data[N] = { 0 };
    check(MPI_Reduce(data, data, N, MPI_INT, MPI_SUM, root, comm) != MPI_SUCCESS, "one buffer");
}

static void allreduce(MPI_Comm comm, int call)
{
    int from[N], into[N];
    for (int i = 0; i < N; i++) from[i] = world_rank + i * call, into[i] = -1;
    check(MPI_Allreduce(from, into, N, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS, "allreduce");
    for (int i = 0; i < N; i++)
        check(into[i] == world_size * (world_size - 1) / 2 + world_size * i * call, "sum of all");
}

static void repeated(int turn)
{
    MPI_Comm comm;
    int from[N], into[N], wrong = turn % 5, root = turn % world_size;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int call = 0; call < 5; call++) {
        int is_root = world_rank == root, sum = world_size * (world_size - 1) / 2;
        for (int i = 0; i < N; i++) from[i] = world_rank + i * call, into[i] = -1;
        if (call == wrong && is_root)
            reduce_in_one_buffer(root, comm);
        check(MPI_Reduce(from, into, N, MPI_INT, MPI_SUM, root, comm) == MPI_SUCCESS, "reduce");
        for (int i = 0; is_root && i < N; i++)
            check(into[i] == sum + world_size * i * call, "sum");
    }
    bcast(comm, turn);
    MPI_Comm_free(&comm);
}

/* The communicator is not freed: its number would come again, and with it what was sent to the root. */
static void left(MPI_Comm comm, int turn)
{
    int from[N] = { 0 }, into[N], before = turn % 4;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int call = 0; call < 6; call++) {
        if (call == before) {
            if (world_rank == 0) reduce_in_one_buffer(0, comm);
            else MPI_Reduce(from, into, N, MPI_INT, MPI_SUM, 0, comm);
        }
        if (turn % 2) bcast(comm, call);
        allreduce(comm, call);
    }
}

static void behind(void)
{
    int from[N] = { 0 }, into[N];
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (world_rank == 0) reduce_in_one_buffer(0, comm);
    for (int call = world_rank == 0; call < 3; call++)
        MPI_Reduce(from, into, N, MPI_INT, MPI_SUM, 0, comm);
    for (int call = 0; call < 3; call++) allreduce(comm, call);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (world_size > MOST || argc < 2) return 9;
    alarm(strcmp(argv[1], "behind") ? 60 : 4);
    if (!strcmp(argv[1], "repeated")) for (int turn = 0; turn < 20; turn++) repeated(turn);
    if (!strcmp(argv[1], "left")) {
        left(MPI_COMM_WORLD, 0);
        for (int turn = 0; turn < 12; turn++) {
            MPI_Comm comm;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            left(comm, turn);
        }
    }
    if (!strcmp(argv[1], "behind")) behind();
    if (!strcmp(argv[1], "few")) {
        for (int turn = 0; turn < 2 * atoi(argv[2]); turn++) {
            MPI_Comm comm;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            use_and_free(comm, 2 + turn % 2);
        }
    }
    if (!strcmp(argv[1], "made")) {
        long all[2][MOST + 1];
        for (int turn = 0; turn < 24; turn++) made(turn);
        MPI_Reduce(first, all[0], MOST + 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Reduce(later, all[1], MOST + 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        for (int procs = 1; procs <= world_size && world_rank == 0; procs++)
            printf("%d %ld %ld\n", procs, all[0][procs], all[1][procs]);
    }
    MPI_Finalize();
    return 0;
}
