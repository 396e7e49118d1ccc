/* Calls whose lengths differ between ranks, which is wrong by MPI: one rank has another number of elements
 * than all others. After each the same call with one length, whose data must be right. Prints, by the first
 * rank, how many ranks had which error class in each wrong call. Arguments: `returned`, `long` (with longer
 * messages, too) or `fatal` (by the default error handler), and the collectives. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOT = 0 };
static int rank, size, turn;
static char now[80];

static void hangs(int signal)
{
    char line[120];
    (void)signal;
    int length = snprintf(line, sizeof line, "rank %d hangs in %s\n", rank, now);
    if (write(2, line, length) < 0) _exit(5);
    sleep(1); /* the others tell, too */
    _exit(4);
}

static int is(const char *which, const char *name) { return !strcmp(which, name); }

static int call(const char *which, int *from, int *into, int count)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    if (is(which, "bcast")) return MPI_Bcast(into, count, MPI_INT, ROOT, comm);
    if (is(which, "reduce")) return MPI_Reduce(from, into, count, MPI_INT, MPI_SUM, ROOT, comm);
    if (is(which, "allreduce")) return MPI_Allreduce(from, into, count, MPI_INT, MPI_SUM, comm);
    if (is(which, "gather")) return MPI_Gather(from, count, MPI_INT, into, count, MPI_INT, ROOT, comm);
    if (is(which, "scatter")) return MPI_Scatter(from, count, MPI_INT, into, count, MPI_INT, ROOT, comm);
    if (is(which, "allgather")) return MPI_Allgather(from, count, MPI_INT, into, count, MPI_INT, comm);
    if (is(which, "alltoall")) return MPI_Alltoall(from, count, MPI_INT, into, count, MPI_INT, comm);
    exit(7);
}

static int value(int of, int place) { return of * 10007 + turn * 101 + place; }

/* What is in `into` at `place` after a right call. */
static int wanted(const char *which, int count, int place)
{
    int sum = 0;
    if (is(which, "bcast")) return value(ROOT, place);
    if (is(which, "scatter")) return value(ROOT, rank * count + place);
    if (is(which, "alltoall")) return value(place / count, rank * count + place % count);
    if (!is(which, "reduce") && !is(which, "allreduce")) return value(place / count, place % count);
    for (int q = 0; q < size; q++) sum += value(q, place);
    return sum;
}

static void fill(const char *which, int *from, int *into, int all)
{
    turn++;
    for (int i = 0; i < all; i++) from[i] = value(rank, i);
    for (int i = 0; i < all; i++) into[i] = is(which, "bcast") && rank == ROOT ? from[i] : -1;
}

/* Rank `who` has `its` elements, all others `theirs`. */
static void wrong_then_right(const char *which, int who, int its, int theirs)
{
    int most = its > theirs ? its : theirs, all = size * most, class, classes[64];
    int *from = malloc(all * sizeof *from), *into = malloc(all * sizeof *into);
    fill(which, from, into, all);
    snprintf(now, sizeof now, "%s, %d elements on rank %d, %d on others", which, its, who, theirs);
    MPI_Error_class(call(which, from, into, rank == who ? its : theirs), &class);
    /* By a collective that is not replaced. */
    int counts[64], places[64];
    for (int q = 0; q < size; q++) counts[q] = 1, places[q] = q;
    MPI_Gatherv(&class, 1, MPI_INT, classes, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
    int truncated = 0, other = 0;
    for (int q = 0; rank == 0 && q < size; q++) {
        truncated += classes[q] == MPI_ERR_TRUNCATE;
        other += classes[q] != MPI_ERR_TRUNCATE && classes[q] != MPI_SUCCESS;
    }
    if (rank == 0) printf("%s: truncated %d, other %d\n", now, truncated, other);
    for (int again = 0; again < 2; again++) {
        fill(which, from, into, all);
        snprintf(now, sizeof now, "the right %s after %d elements on rank %d, %d on others", which, its, who, theirs);
        int code = call(which, from, into, most), blocks = is(which, "gather") || is(which, "allgather") || is(which, "alltoall") ? size : 1;
        if ((is(which, "gather") || is(which, "reduce")) && rank != ROOT) blocks = 0;
        for (int i = 0; i < blocks * most; i++) {
            if (code == MPI_SUCCESS && into[i] == wanted(which, most, i)) continue;
            printf("WRONG on rank %d: %s: code %d, %d for %d\n", rank, now, code, into[i], wanted(which, most, i));
            fflush(stdout);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    }
    free(from), free(into);
}

int main(int argc, char **argv)
{
    signal(SIGALRM, hangs);
    alarm(20);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 64 || argc < 3) return 9;
    if (!is(argv[1], "fatal")) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 2; i < argc; i++) {
        for (int who = 0; who < size; who += 2) {
            wrong_then_right(argv[i], who, 10, 100);
            wrong_then_right(argv[i], who, 100, 10);
            if (is(argv[1], "long")) wrong_then_right(argv[i], who, 50000, 200000);
            if (is(argv[1], "long")) wrong_then_right(argv[i], who, 200000, 50000);
        }
        /* Segments that nobody receives. */
        if (is(argv[i], "bcast")) wrong_then_right(argv[i], ROOT, 900, 100);
        if (is(argv[i], "reduce")) wrong_then_right(argv[i], ROOT, 100, 900);
    }
    snprintf(now, sizeof now, "MPI_Finalize");
    MPI_Finalize();
    return 0;
}
