/* Collectives of ranks that share memory, checked against what they must give. First argument: which way; the second a
 * number. A rank prints "wrong: 0" if all ranks had right results. */
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size, wrong;

#define CHECK(right) \
    do \
        if (!(right) && __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED) < 3) \
            fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #right); \
    while (0)

/* All nine collectives, of n numbers for each rank. */
static void nine(MPI_Comm comm, int n, int turn)
{
    int me, p;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &p);
    int root = turn % p, all = n * p, ranks = p * (p - 1) / 2;
    int *a = malloc(sizeof *a * (all + 1)), *b = malloc(sizeof *b * (all + 1));
#define OF(i, r) ((i) % 97 + (r) + turn)
#define SUM(i) (p * ((i) % 97 + turn) + ranks)
#define CLEAR() memset(b, -1, sizeof *b * (all + 1))
    for (int i = 0; i < all; i++) a[i] = OF(i, me);
    CLEAR();
    MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < n; i++) CHECK(b[i] == SUM(i));
    CHECK(b[n] == -1);
    CLEAR();
    MPI_Reduce(a, b, n, MPI_INT, MPI_SUM, root, comm);
    for (int i = 0; i < n; i++) CHECK(me != root || b[i] == SUM(i));
    CLEAR();
    for (int i = 0; i < n && me == root; i++) b[i] = OF(i, me);
    MPI_Bcast(b, n, MPI_INT, root, comm);
    for (int i = 0; i < n; i++) CHECK(b[i] == OF(i, root));
    MPI_Barrier(comm);
    CLEAR();
    MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, comm);
    for (int i = 0; i < all; i++) CHECK(b[i] == OF(i % n, i / n));
    CLEAR();
    MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, comm);
    for (int i = 0; i < all; i++) CHECK(b[i] == OF(me * n + i % n, i / n));
    CLEAR();
    MPI_Gather(a, n, MPI_INT, b, n, MPI_INT, root, comm);
    for (int i = 0; i < all; i++) CHECK(me != root || b[i] == OF(i % n, i / n));
    CLEAR();
    MPI_Scatter(a, n, MPI_INT, b, n, MPI_INT, root, comm);
    for (int i = 0; i < n; i++) CHECK(b[i] == OF(me * n + i, root));
    CLEAR();
    MPI_Reduce_scatter_block(a, b, n, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < n; i++) CHECK(b[i] == SUM(me * n + i));
    CHECK(b[n] == -1 || p == 1);
    free(a), free(b);
}

static void of_all_lengths(MPI_Comm comm)
{
    const int lengths[] = { 1, 3, 12, 13, 1000, 70001 };
    for (int turn = 0; turn < 12; turn++) nine(comm, lengths[turn % 6], turn);
}

/* Short and long calls in any order, some ranks late: data of one turn may lie where another one's were. */
static void mixed(void)
{
    static const int lengths[] = { 1, 12, 13, 500, 3000, 4096, 5000, 12000, 16384, 30000, 70000 };
    unsigned same = 1, own = rank + 1;
    for (int turn = 0; turn < 20; turn++) {
        same = same * 1664525 + 1013904223, own = own * 1664525 + 1013904223;
        if (own >> 30 == 0) usleep(own % 300);
        nine(MPI_COMM_WORLD, lengths[(same >> 16) % 11], turn);
    }
}

/* Calls that come again and again, by turns with others that differ from them in one thing: the operation, the type, the
 * root, where the operand is, and how far the buffers are from each other. */
static void again(MPI_Comm comm, int n)
{
    int me, p;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &p);
    int *buffers = malloc(sizeof *buffers * (size_t)n * (4 * p + 4)), ranks = p * (p - 1) / 2;
    for (int turn = 0; turn < 24; turn++) {
        /* Side by side, or so far from each other that nothing needs a closer look. */
        int *a = buffers, *b = buffers + (size_t)n * (turn % 3 == 0 ? 1 : 3 * p + 2), root = turn / 4 % p;
        for (int i = 0; i < n; i++) a[i] = OF(i, me), b[i] = -1;
        MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < n; i++) CHECK(b[i] == SUM(i));
        MPI_Allreduce(a, b, n, MPI_INT, MPI_MAX, comm);
        for (int i = 0; i < n; i++) CHECK(b[i] == OF(i, p - 1));
        MPI_Allreduce(MPI_IN_PLACE, b, n, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < n; i++) CHECK(b[i] == p * OF(i, p - 1));
        MPI_Allreduce(a, b, n, MPI_UNSIGNED, MPI_MIN, comm);
        for (int i = 0; i < n; i++) CHECK(b[i] == OF(i, 0));
        if (n > 1 && turn % 3 > 0) {
            /* They share all but one number, which the library lets pass. */
            MPI_Allreduce(a, a + 1, n, MPI_INT, MPI_SUM, comm);
            for (int i = 0; i < n; i++) CHECK(a[i + 1] == SUM(i));
            for (int i = 0; i < n; i++) a[i] = OF(i, me);
        }
        for (int i = 0; i < n; i++) b[i] = me == root ? OF(i, me) : -1;
        MPI_Bcast(b, n, MPI_INT, root, comm);
        for (int i = 0; i < n; i++) CHECK(b[i] == OF(i, root));
        MPI_Bcast(b, 4 * n, MPI_BYTE, root, comm);
        MPI_Reduce(a, b, n, MPI_INT, MPI_SUM, root, comm);
        for (int i = 0; i < n; i++) CHECK(b[i] == (me == root ? SUM(i) : OF(i, root)));
        for (int i = 0; i < n; i++) b[i] = OF(i, me);
        MPI_Reduce(me == root ? MPI_IN_PLACE : b, b, n, MPI_INT, MPI_SUM, root, comm);
        for (int i = 0; i < n; i++) CHECK(b[i] == (me == root ? SUM(i) : OF(i, me)));
        MPI_Barrier(comm);
    }
    free(buffers);
}

/* The same on communicators that are made and freed, whose ranks stand in another order each time. */
static void again_and_again(void)
{
    const int lengths[] = { 1, 2, 12, 13, 3000 };
    for (int i = 0; i < 5; i++) again(MPI_COMM_WORLD, lengths[i]);
    /* Of one rank the world alone is not the library's. */
    for (int turn = 0; size > 1 && turn < 6; turn++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, 0, turn % 2 ? rank : -rank, &comm);
        again(comm, 2);
        for (int more = 0; more < 4; more++) nine(comm, 7, turn);
        MPI_Comm_free(&comm);
    }
}

/* Each thread on a communicator of its own, all at once. */
enum { THREADS = 4 };
static void *in_a_thread(void *comm)
{
    for (int turn = 0; turn < 30; turn++) nine(*(MPI_Comm *)comm, turn % 3 ? 5 : 3000, turn);
    return NULL;
}

static void threads(void)
{
    MPI_Comm comms[THREADS];
    pthread_t all[THREADS];
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; i++) pthread_create(&all[i], NULL, in_a_thread, &comms[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&comms[i]);
}

static void small_calls(MPI_Comm comm, int turn)
{
    for (int call = 0; call < 3; call++) {
        int value = turn + rank, sum;
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == size * turn + size * (size - 1) / 2);
        value = rank == turn % size ? turn : -1;
        MPI_Bcast(&value, 1, MPI_INT, turn % size, comm);
        CHECK(value == turn);
        MPI_Barrier(comm);
    }
}

/* What the process has: kilobytes in memory, mappings, open files. */
static void tell_possessions(const char *when)
{
    long kilobytes = 0, mappings = 0, files = 0;
    char line[4096];
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file)) sscanf(line, "VmRSS: %ld", &kilobytes);
    fclose(file);
    file = fopen("/proc/self/maps", "r");
    /* Of what is not Colibri's the MPI library may map more, as it likes. */
    while (fgets(line, sizeof line, file)) mappings += strstr(line, "colibri-") || strstr(line, "memfd:colibri");
    fclose(file);
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder)) files++;
    closedir(folder);
    if (rank == 0) printf("%s: %ld kB %ld mappings %ld files\n", when, kilobytes, mappings, files);
}

/* Kilobytes of the shared memory that this process has touched. */
static long touched(void)
{
    long all = 0, one;
    unsigned long from, to;
    int is_ours = 0;
    char line[4096];
    FILE *file = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) is_ours = strstr(line, "colibri-") || strstr(line, "memfd:colibri");
        if (is_ours && sscanf(line, "Rss: %ld", &one) == 1) all += one;
    }
    fclose(file);
    return all;
}

/* Short calls, then long ones, on a communicator of their own. */
static void sized(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    long before = touched();
    for (int turn = 0; turn < 4; turn++) small_calls(comm, turn);
    long by_short = touched() - before;
    nine(comm, 20000, 0);
    long by_first = touched() - before;
    for (int turn = 1; turn < 40; turn++) nine(comm, 20000, turn);
    long by_all = touched() - before;
    if (rank == 0) printf("touched: %ld kB short %ld kB first %ld kB all\n", by_short, by_first, by_all);
    MPI_Comm_free(&comm);
}

static void made_and_freed(int number)
{
    for (int turn = 0; turn < number; turn++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        small_calls(comm, turn);
        if (turn == 0) tell_possessions("one alive");
        MPI_Comm_free(&comm);
        if (turn == number / 10) tell_possessions("a tenth");
    }
    tell_possessions("at the end");
}

/* None is freed before the end. */
static void alive(int number)
{
    MPI_Comm *comms = malloc(sizeof *comms * number);
    for (int i = 0; i < number; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int turn = 0; turn < 4; turn++)
        for (int i = 0; i < number; i++) nine(comms[i], turn % 2 ? 2000 : 2, turn + i);
    free(comms);
}

static void forks(void)
{
    for (int turn = 0; turn < 6; turn++) {
        nine(MPI_COMM_WORLD, 100, turn);
        pid_t child = fork();
        if (child == 0) {
            if (turn % 2) execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        /* While the child may be alive. */
        nine(MPI_COMM_WORLD, 100, turn);
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

/* The last rank ends in the middle, before a barrier that has come again and again. */
static void dies(void)
{
    for (int turn = 0; turn < 4; turn++) nine(MPI_COMM_WORLD, 100, turn);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == size - 1) raise(SIGKILL);
    double begin = MPI_Wtime();
    int code = MPI_Barrier(MPI_COMM_WORLD);
    printf("%d had %s after %.1f s\n", rank, code ? "an error" : "NO ERROR", MPI_Wtime() - begin);
    fflush(stdout);
    _exit(0);
}

/* The first rank is done long before the others are. */
static void early(void)
{
    int all[64], own = rank;
    nine(MPI_COMM_WORLD, 100, 0);
    if (rank == 2) sleep(4);
    MPI_Gather(&own, 1, MPI_INT, all, 1, MPI_INT, 1, MPI_COMM_WORLD);
    for (int r = 0; r < size && rank == 1; r++) CHECK(all[r] == r);
}

/* The first rank is in a collective, while the second waits for a message that needs the first: with a message of which
 * nobody wants to know meanwhile, or without. */
static void waits(void)
{
    enum { LONG = 1 << 20 };
    int *data = malloc(sizeof *data * LONG), note = 0, by_bcast;
    for (int turn = 0; turn < 12; turn++) {
        MPI_Request request = MPI_REQUEST_NULL;
        int is_queued = turn / 2 % 2, is_sent = turn / 4 % 3;
        for (int i = 0; i < LONG; i++) data[i] = rank < 2 && (rank == 0) == (is_sent != 1) ? i + turn : -1;
        if (is_queued && rank == 1) MPI_Send(&turn, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
        if (is_queued && rank == 1) MPI_Send(data, 100, MPI_INT, 0, 10, MPI_COMM_WORLD);
        /* By now it is there. */
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0 && is_sent != 1) MPI_Isend(data, LONG, MPI_INT, 1, 5, MPI_COMM_WORLD, &request);
        if (rank == 0 && is_sent == 1) MPI_Irecv(data, LONG, MPI_INT, 1, 5, MPI_COMM_WORLD, &request);
        if (rank == 1) {
            usleep(20000);
            if (is_sent != 1) MPI_Recv(data, LONG, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else MPI_Ssend(data, LONG, MPI_INT, 0, 5, MPI_COMM_WORLD);
        }
        by_bcast = rank == 1 ? turn : -1;
        if (turn % 2) MPI_Barrier(MPI_COMM_WORLD);
        else MPI_Bcast(&by_bcast, 1, MPI_INT, 1, MPI_COMM_WORLD);
        CHECK(turn % 2 || by_bcast == turn);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < LONG && rank < 2; i++) CHECK(data[i] == i + turn);
        if (is_queued && rank == 0) {
            MPI_Recv(&note, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(note == turn);
            MPI_Recv(data, 100, MPI_INT, 1, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    free(data);
}

static void composed(void *left, void *right, int *n, MPI_Datatype *type)
{
    (void)type;
    /* The second of two pairs of a number and a gap. */
    for (int i = 0; i < 2 * *n; i += 2) ((int *)right)[i] += ((int *)left)[i];
}

/* Elements of an int and a gap as large. */
static void gaps(void)
{
    enum { N = 40 };
    MPI_Datatype type;
    MPI_Op op;
    int a[2 * N * 64], b[2 * N * 64];
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Op_create(composed, 1, &op);
    for (int turn = 0; turn < 6; turn++) {
        for (int i = 0; i < 2 * N * size; i++) a[i] = i % 2 ? -2 : i + rank, b[i] = -3;
        MPI_Allreduce(a, b, N, type, op, MPI_COMM_WORLD);
        for (int i = 0; i < 2 * N; i++) CHECK(b[i] == (i % 2 ? -3 : size * i + size * (size - 1) / 2));
        for (int i = 0; i < 2 * N * size; i++) b[i] = -3;
        MPI_Reduce(a, b, N, type, op, turn % size, MPI_COMM_WORLD);
        for (int i = 0; i < 2 * N && rank == turn % size; i++)
            CHECK(b[i] == (i % 2 ? -3 : size * i + size * (size - 1) / 2));
    }
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

/* Files of four KiB at most, while calls are made; MPI_Finalize may write longer ones again. */
static void short_files(void)
{
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){4096, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    of_all_lengths(MPI_COMM_WORLD);
    setrlimit(RLIMIT_FSIZE, &before);
}

/* No file can be opened, and nobody reads what is said of it. */
static void unread(void)
{
    struct rlimit before, limit;
    int ends[2], standard_error = dup(2);
    CHECK(pipe(ends) == 0);
    close(ends[0]);
    dup2(ends[1], 2);
    close(ends[1]);
    getrlimit(RLIMIT_NOFILE, &before);
    limit = (struct rlimit){3, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
    of_all_lengths(MPI_COMM_WORLD);
    setrlimit(RLIMIT_NOFILE, &before);
    dup2(standard_error, 2);
    close(standard_error);
}

/* As much memory more as a short call needs, and no more. */
static void scarce(void)
{
    struct rlimit before, limit;
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld", &pages) == 1);
    if (file) fclose(file);
    getrlimit(RLIMIT_AS, &before);
    limit = (struct rlimit){pages * sysconf(_SC_PAGESIZE) + (30 << 20), before.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
    for (int turn = 0; turn < 20; turn++) {
        int a[100], b[100];
        for (int i = 0; i < 100; i++) a[i] = i + turn;
        MPI_Scan(a, b, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < 100; i++) CHECK(b[i] == (rank + 1) * (i + turn));
    }
    setrlimit(RLIMIT_AS, &before);
}

/* Rank 1 has no memory to unpack a message with, of which the root waits for nobody: it alone has an error. */
static void scarce_alone(void)
{
    enum { NUMBERS = 25600 };
    static long numbers[2 * NUMBERS];
    struct rlimit before, limit;
    MPI_Datatype spread;
    int code, class = MPI_SUCCESS;
    MPI_Type_vector(NUMBERS, 1, 2, MPI_LONG, &spread);
    MPI_Type_commit(&spread);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* All that is made once is there, and the pages of so long a message. */
    for (int turn = 0; turn < 4; turn++) MPI_Bcast(numbers, NUMBERS, MPI_LONG, 0, MPI_COMM_WORLD);
    getrlimit(RLIMIT_AS, &before);
    limit = (struct rlimit){0, before.rlim_max};
    if (rank == 1) setrlimit(RLIMIT_AS, &limit);
    if (rank == 1) code = MPI_Bcast(numbers, 1, spread, 0, MPI_COMM_WORLD);
    else code = MPI_Bcast(numbers, NUMBERS, MPI_LONG, 0, MPI_COMM_WORLD);
    if (rank == 1) setrlimit(RLIMIT_AS, &before);
    MPI_Error_class(code, &class);
    CHECK(class == (rank == 1 ? MPI_ERR_NO_MEM : MPI_SUCCESS));
    for (int turn = 0; turn < 50; turn++) {
        long number = rank == 0 ? 1000 + turn : -1;
        MPI_Bcast(&number, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        CHECK(number == 1000 + turn);
    }
    MPI_Type_free(&spread);
}

/* Of no type, on a communicator that returns errors, while those of MPI_COMM_WORLD end the program. */
static void no_type(void)
{
    MPI_Comm comm;
    int a[64] = {0}, b[64], class = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
#define WRONG(call) do { \
        MPI_Error_class(call, &class); \
        CHECK(class == MPI_ERR_TYPE); \
    } while (0)
    WRONG(MPI_Allgather(a, 1, MPI_DATATYPE_NULL, b, 1, MPI_INT, comm));
    WRONG(MPI_Alltoall(a, 1, MPI_DATATYPE_NULL, b, 1, MPI_INT, comm));
    if (size == 1) {
        WRONG(MPI_Gather(a, 1, MPI_DATATYPE_NULL, b, 1, MPI_INT, 0, comm));
        WRONG(MPI_Scatter(a, 1, MPI_INT, b, 1, MPI_DATATYPE_NULL, 0, comm));
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0, given, all = 0;
    MPI_Init_thread(&argc, &argv, strcmp(way, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(way, "lengths")) of_all_lengths(MPI_COMM_WORLD);
    if (!strcmp(way, "threads")) {
        CHECK(given == MPI_THREAD_MULTIPLE);
        threads();
    }
    if (!strcmp(way, "mixed")) mixed();
    if (!strcmp(way, "again")) again_and_again();
    if (!strcmp(way, "sized")) sized();
    if (!strcmp(way, "freed")) made_and_freed(number);
    if (!strcmp(way, "alive")) alive(number);
    if (!strcmp(way, "forks")) forks();
    if (!strcmp(way, "dies")) dies();
    if (!strcmp(way, "early")) early();
    if (!strcmp(way, "waits")) waits();
    if (!strcmp(way, "gaps")) gaps();
    if (!strcmp(way, "short-files")) short_files();
    if (!strcmp(way, "unread")) unread();
    if (!strcmp(way, "scarce")) scarce();
    if (!strcmp(way, "scarce-alone")) scarce_alone();
    if (!strcmp(way, "no-type")) no_type();
    if (strcmp(way, "early")) {
        /* Not a collective that is tested. */
        MPI_Exscan(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == size - 1) printf("wrong: %d\n", all + wrong);
    } else if (rank == 1)
        printf("wrong: %d\n", wrong);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
