/* Calls that are wrong by MPI, or seldom, but that libraries answer: what is sent lies where it is received, or
 * a rank has no place to receive at. A rank that is refused repeats its call rightly, as if the wrong one
 * had not been; the others have called once. Prints of each rank and call the error class, and whether the
 * data came out right. The library's own answer is that of a run with `native` as the argument;
 * another argument names a collective whose method leaves the calls to the library. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum collective { ALLGATHER, ALLREDUCE, ALLTOALL, BCAST, EXSCAN, GATHER, REDUCE, REDUCE_SCATTER,
                  REDUCE_SCATTER_BLOCK, SCAN, SCATTER };
static const char *const names[] = { "allgather", "allreduce", "alltoall", "bcast", "exscan",
    "gather", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "scatter" };

/* Who is so called, and where a rank's own side lies. */
enum { ALL = -1, FAR = -1000000, IN_PLACE = -1000001 };
enum receiving { SOMEWHERE, AT_NULL, AT_IN_PLACE, OF_NO_COMMITTED_TYPE };

/* A call. The blocks of all ranks, or what is received, lie at the base of the buffer; the own
 * side of rank r at `first + per_rank * r` from there, in elements. */
typedef struct {
    const char *how;
    enum collective collective;
    int root;
    long first, per_rank;
    /* The rank that does it so, all others do it right; or ALL. */
    int who;
    /* The type of the own side. */
    MPI_Datatype own;
    enum receiving receiving;
    /* The rank that receives nothing of a reduce_scatter; or -1. */
    int empty;
    /* Whether the library by itself ends the process. */
    int ends;
} Case;

enum { MOST = 1000 };
static struct { char name[72]; int class, is_right; } done[MOST];
static int cases, rank, size, is_native;
/* Ranks whose call was refused, so that they have repeated it rightly. */
static int refused[16];
static const char *left = "";

/* Whether a name is one of those in a list, with spaces between them. */
static int is_named(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return 1;
    return 0;
}
static int n;
static unsigned *buffer, *base;
static long words;
static MPI_Comm comm;
static MPI_Datatype uncommitted;

#ifdef OPEN_MPI
enum { IS_OPEN_MPI = 1 };
#else
enum { IS_OPEN_MPI = 0 };
#endif

static void hangs(int signal)
{
    char line[120];
    (void)signal;
    int length = snprintf(line, sizeof line, "rank %d hangs in %s\n", rank, done[cases].name);
    if (write(2, line, length) < 0) _exit(5);
    sleep(1); /* the others tell, too */
    _exit(4);
}

static unsigned value(int of, long place) { return of * 1000003u + (unsigned)place * 7u; }

/* Where rank `of` has its own side. */
static long own_place(const Case *c, int of)
{
    long first = (c->who == ALL || c->who == of) && !refused[of] ? c->first : FAR;
    if (first == FAR) return 2L * size * n;
    if (first != IN_PLACE) return first + c->per_rank * of;
    return c->collective == ALLGATHER || c->collective == GATHER ? (long)n * of : 0;
}

static int count_of(const Case *c, int of) { return of == c->empty ? 0 : n; }

static int is_reduction(enum collective c)
{
    return c == ALLREDUCE || c == EXSCAN || c == REDUCE || c == REDUCE_SCATTER ||
           c == REDUCE_SCATTER_BLOCK || c == SCAN;
}

/* `count` elements at `place` are the sum of what the ranks `first` to `last` sent. */
static int is_sum(const Case *c, long place, int count, int first, int last, long from)
{
    for (int i = 0; i < count; i++) {
        unsigned sum = 0;
        for (int q = first; q <= last; q++) sum += value(q, own_place(c, q) + from + i);
        if (base[place + i] != sum) return 0;
    }
    return 1;
}

static int is_right(const Case *c)
{
    long before = 0;
    for (int q = 0; q < rank; q++) before += count_of(c, q);
    switch (c->collective) {
    case BCAST:
        for (int i = 0; i < n; i++) if (base[i] != value(c->root, i)) return 0;
        return 1;
    case GATHER:
        if (rank != c->root) return 1; /* fall through */
    case ALLGATHER:
        for (int q = 0; q < size; q++) if (!is_sum(c, (long)q * n, n, q, q, 0)) return 0;
        return 1;
    case ALLTOALL:
        for (int q = 0; q < size; q++)
            if (!is_sum(c, (long)q * n, n, q, q, (long)rank * n)) return 0;
        return 1;
    case SCATTER:
        for (int i = 0; i < n; i++)
            if (base[own_place(c, rank) + i] != value(c->root, (long)rank * n + i)) return 0;
        return 1;
    case REDUCE: return rank != c->root || is_sum(c, 0, n, 0, size - 1, 0);
    case ALLREDUCE: return is_sum(c, 0, n, 0, size - 1, 0);
    case SCAN: return is_sum(c, 0, n, 0, rank, 0);
    case EXSCAN: return rank == 0 || is_sum(c, 0, n, 0, rank - 1, 0);
    case REDUCE_SCATTER: return is_sum(c, 0, count_of(c, rank), 0, size - 1, before);
    case REDUCE_SCATTER_BLOCK: return is_sum(c, 0, n, 0, size - 1, (long)rank * n);
    }
    return 0;
}

static int call(const Case *c)
{
    int counts[16], is_it = c->who == ALL || c->who == rank, of_own = n, root = c->root;
    MPI_Datatype all = MPI_INT, type = is_it ? c->own : MPI_INT;
    void *own = base + own_place(c, rank), *whole = base;
    if (is_it && c->first == IN_PLACE) own = MPI_IN_PLACE;
    if (type == MPI_BYTE) of_own *= sizeof(int);
    enum receiving receiving = is_it ? c->receiving : SOMEWHERE;
    void **into = c->collective == SCATTER ? &own : &whole;
    MPI_Datatype *received = c->collective == SCATTER ? &type : &all;
    if (receiving == AT_NULL) *into = NULL;
    if (receiving == AT_IN_PLACE) *into = MPI_IN_PLACE;
    if (receiving == OF_NO_COMMITTED_TYPE) *received = uncommitted;
    for (int q = 0; q < size; q++) counts[q] = count_of(c, q);
    switch (c->collective) {
    case BCAST: return MPI_Bcast(whole, n, all, root, comm);
    case ALLGATHER: return MPI_Allgather(own, of_own, type, whole, n, all, comm);
    case ALLTOALL: return MPI_Alltoall(own, of_own, type, whole, n, all, comm);
    case GATHER: return MPI_Gather(own, of_own, type, whole, n, all, root, comm);
    case SCATTER: return MPI_Scatter(whole, n, all, own, of_own, type, root, comm);
    case REDUCE: return MPI_Reduce(own, whole, n, all, MPI_SUM, root, comm);
    case ALLREDUCE: return MPI_Allreduce(own, whole, n, all, MPI_SUM, comm);
    case SCAN: return MPI_Scan(own, whole, n, all, MPI_SUM, comm);
    case EXSCAN: return MPI_Exscan(own, whole, n, all, MPI_SUM, comm);
    case REDUCE_SCATTER: return MPI_Reduce_scatter(own, whole, counts, all, MPI_SUM, comm);
    case REDUCE_SCATTER_BLOCK: return MPI_Reduce_scatter_block(own, whole, n, all, MPI_SUM, comm);
    }
    return MPI_ERR_OTHER;
}

static void run(Case c)
{
    if (cases == MOST) abort();
    snprintf(done[cases].name, sizeof done[0].name, "%s %s, %s %d, root %d, %d elements",
             names[c.collective], c.how, c.who == ALL ? "all" : "rank", c.who, c.root, n);
    for (long i = 0; i < words; i++) buffer[i] = value(rank, i - (base - buffer));
    done[cases].is_right = 1;
    memset(refused, 0, sizeof refused);
    /* Of gathers those are left whose root is not rank 0. */
    int is_left = is_named(left, names[c.collective]) && (c.collective != GATHER || c.root != 0);
    if (!(is_native || is_left) || !c.ends) {
        int code = call(&c), is_refused = code != 0, counts[16], places[16];
        MPI_Error_class(code, &done[cases].class);
        if (is_refused) {
            Case right = c;
            right.first = FAR, right.own = MPI_INT, right.receiving = SOMEWHERE;
            refused[rank] = 1;
            code = call(&right);
        }
        for (int q = 0; q < size; q++) counts[q] = 1, places[q] = q;
        /* By a collective that is not replaced. */
        MPI_Allgatherv(&is_refused, 1, MPI_INT, refused, counts, places, MPI_INT, MPI_COMM_WORLD);
        done[cases].is_right = code == 0 && is_right(&c);
    }
    cases++;
}

/* MPICH ends the process where it copies between places that overlap. */
#define OVERLAPPING (!IS_OPEN_MPI)

static void roots(enum collective collective)
{
    for (int root = 0; root < size; root++) {
        Case c = { "own block", collective, root, 0, n, root, MPI_INT, SOMEWHERE, -1, 0 };
        run(c);
        c.how = "own block as int32", c.own = MPI_INT32_T, c.ends = OVERLAPPING, run(c);
        c.how = "own block as bytes", c.own = MPI_BYTE, run(c);
        c.how = "overlapping", c.own = MPI_INT, c.per_rank = 0, c.first = (n + 1) / 2;
        if (n > 1) run(c); /* one is the block of rank 1 */
        c.how = "one buffer", c.first = 0;
        c.ends = root != 0 && OVERLAPPING, run(c);
        c.how = "one buffer as int32", c.own = MPI_INT32_T, c.ends = OVERLAPPING, run(c);
    }
}

static void blocks(void)
{
    Case c = { "own block", ALLGATHER, 0, 0, n, ALL, MPI_INT, SOMEWHERE, -1, 0 };
    run(c);
    c.how = "own block as int32", c.own = MPI_INT32_T, c.ends = OVERLAPPING, run(c);
    c.how = "own block as bytes", c.own = MPI_BYTE, run(c);
    c.how = "overlapping", c.own = MPI_INT, c.first = (n + 1) / 2, run(c);
    for (c.who = 0; c.who < size; c.who += size - 1) {
        c.how = "own block", c.first = 0, c.ends = 0, run(c);
        c.how = "in place", c.first = IN_PLACE, run(c);
    }
    c.how = "first block", c.first = c.per_rank = 0, c.who = ALL, c.ends = 0;
    run(c);
    c.how = "last block", c.first = (long)n * (size - 1);
    run(c);
    Case a = { "one buffer", ALLTOALL, 0, 0, 0, ALL, MPI_INT, SOMEWHERE, -1, 0 };
    run(a);
    a.how = "one buffer as int32", a.own = MPI_INT32_T, a.ends = OVERLAPPING, run(a);
    a.how = "overlapping", a.own = MPI_INT, a.first = n, run(a);
    for (a.who = 0; a.who < size; a.who += size - 1)
        a.how = "one buffer", a.first = 0, a.ends = 0, run(a);
}

static void reductions(void)
{
    static const enum collective each[] = { ALLREDUCE, EXSCAN, SCAN, REDUCE_SCATTER,
                                            REDUCE_SCATTER_BLOCK };
    for (unsigned k = 0; k < sizeof each / sizeof *each; k++) {
        enum collective which = each[k];
        Case c = { "one buffer", which, 0, 0, 0, ALL, MPI_INT, SOMEWHERE, -1, 0 };
        run(c);
        c.how = "overlapping", c.first = (n + 1) / 2, c.ends = OVERLAPPING, run(c);
        c.how = "own block", c.first = 0, c.per_rank = n, c.ends = 0;
        if (which == REDUCE_SCATTER_BLOCK || which == REDUCE_SCATTER) run(c);
        c.per_rank = 0;
        for (c.who = 0; c.who < size; c.who += size - 1) {
            c.how = "one buffer", c.first = 0, run(c);
            c.how = "in place", c.first = IN_PLACE, run(c);
        }
    }
    for (int empty = 0; empty < size; empty++) {
        Case c = { "one buffer, one empty", REDUCE_SCATTER, 0, 0, 0, ALL, MPI_INT, SOMEWHERE,
                   empty, 0 };
        run(c);
        c.how = "one buffer, itself empty", c.who = empty;
        run(c);
    }
    for (int root = 0; root < size; root++) {
        Case c = { "one buffer", REDUCE, root, 0, 0, root, MPI_INT, SOMEWHERE, -1, 0 };
        run(c);
        c.how = "overlapping", c.first = (n + 1) / 2, c.ends = OVERLAPPING, run(c);
    }
}

/* One rank has no place where it can receive; the library refuses it, and nobody else. */
static void nowhere(enum collective which, int root, int who)
{
    Case c = { "received in place", which, root, FAR, 0, who, MPI_INT, AT_IN_PLACE, -1, 0 };
    /* Libraries take it for an address here. */
    if (which != BCAST && which != (IS_OPEN_MPI ? EXSCAN : SCATTER)) run(c);
    /* Open MPI does not look at addresses. */
    c.how = "received at null", c.receiving = AT_NULL;
    if (!IS_OPEN_MPI) run(c);
    c.how = "not committed", c.receiving = OF_NO_COMMITTED_TYPE;
    if (!is_reduction(which)) run(c);
}

static void nowhere_at_all(void)
{
    for (int root = 0; root < size; root++) {
        int leaf = (root + 1) % size;
        nowhere(GATHER, root, root);
        nowhere(REDUCE, root, root);
        nowhere(BCAST, root, leaf);
        nowhere(SCATTER, root, leaf);
    }
    nowhere(ALLGATHER, 0, size - 1);
    nowhere(ALLTOALL, 0, size - 1);
    nowhere(ALLREDUCE, 0, size - 1);
    nowhere(SCAN, 0, size - 1);
    nowhere(EXSCAN, 0, size - 1);
    nowhere(REDUCE_SCATTER, 0, size - 1);
    nowhere(REDUCE_SCATTER_BLOCK, 0, size - 1);
}

/* What the root of a broadcast sends may lie where nobody can write: a constant. Not wrong by MPI; MPICH ends the
 * process by itself in some. */
static void read_only(void)
{
    size_t bytes = n * sizeof(unsigned);
    for (int root = 0; root < size; root++) {
        unsigned *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED || cases == MOST) abort();
        for (int i = 0; i < n; i++) data[i] = value(rank, i);
        if (rank == root && mprotect(data, bytes, PROT_READ)) abort();
        int code = 0, is_right = 1;
        if (IS_OPEN_MPI || !(is_native || is_named(left, "bcast"))) {
            code = MPI_Bcast(data, n, MPI_UNSIGNED, root, comm), is_right = code == 0;
            for (int i = 0; i < n; i++) is_right &= data[i] == value(root, i);
        }
        snprintf(done[cases].name, sizeof done[0].name, "bcast of read-only data, root %d, %d elements",
                 root, n);
        MPI_Error_class(code, &done[cases].class);
        done[cases++].is_right = is_right;
        munmap(data, bytes);
    }
}

/* All by the first rank: launchers mix the lines of several. */
static void print(void)
{
    MPI_Status status;
    if (rank) MPI_Send(done, sizeof done, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    for (int from = 0; rank == 0 && from < size; from++) {
        if (from) MPI_Recv(done, sizeof done, MPI_BYTE, from, 0, MPI_COMM_WORLD, &status);
        for (int i = 0; i < cases; i++)
            printf("%s, on rank %d: class %d %s\n", done[i].name, from, done[i].class,
                   done[i].is_right ? "right" : "wrong");
    }
}

int main(int argc, char **argv)
{
    static const int lengths[] = { 1, 3, 20000 };
    signal(SIGALRM, hangs);
    alarm(20);
    MPI_Init(&argc, &argv);
    if (argc > 1) left = argv[1];
    is_native = !strcmp(left, "native");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 16) abort();
    /* Open MPI tells some faults to the world's handler. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_vector(1, 1, 1, MPI_INT, &uncommitted);
    for (int k = 0; k < 3; k++) {
        n = lengths[k];
        words = 6L * size * n;
        buffer = malloc(words * sizeof *buffer);
        base = buffer + (long)size * n;
        roots(GATHER);
        roots(SCATTER);
        blocks();
        reductions();
        read_only();
        if (k < 2) nowhere_at_all();
        free(buffer);
    }
    print();
    MPI_Type_free(&uncommitted);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
