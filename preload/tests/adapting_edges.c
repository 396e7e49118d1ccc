/* A program on two ranks that does what is rare, and looks at all data.
 *
 * Arguments: what to do, and how often.
 *   refused TURNS: broadcasts; the second rank alone is refused calls now and then, of sizes that no rank has used.
 *   many COMMUNICATORS CALLS: so many communicators at a time, so many calls on each.
 *   sizes TURNS: broadcasts of 2500 and of 3500 bytes by turns.
 *   threads: of two threads, each on a communicator of its own, one waits on the first rank for the other one on the
 *     second.
 *   inter TURNS: sums on an inter-communicator, whose first group comes late to its first 300 calls.
 * "many" prints how many sums over ranks were begun, and how many of them nobody had waited for when all communicators
 * were freed. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 4096, SHORT = 64 };
static int rank;
long sums_begun, waited_for; /* sums.c counts them */

static void is(int right, const char *what)
{
    if (right) return;
    printf("rank %d: %s\n", rank, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void broadcast(MPI_Comm comm, int bytes, int turn)
{
    unsigned char data[BYTES];
    memset(data, rank == 0 ? turn % 251 : 255, bytes);
    MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
    is(data[0] == turn % 251 && data[bytes - 1] == turn % 251, "wrong data of a broadcast");
}

static void refused(int turns)
{
    static float data[2 << 18];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int turn = 0; turn < turns; turn++) {
        if (rank == 1 && turn % 40 == 20) {
            MPI_Comm world = MPI_COMM_WORLD;
            /* There are no bits of floating-point numbers. */
            is(MPI_Allreduce(data, data + (1 << 18), 1 << turn / 40 % 18, MPI_FLOAT, MPI_BAND, world), "not refused");
            is(MPI_Comm_free(&world), "the world was freed");
        }
        broadcast(MPI_COMM_WORLD, BYTES, turn);
    }
}

static void many(int communicators, int calls)
{
    MPI_Comm *all = malloc(communicators * sizeof *all);
    for (int i = 0; i < communicators; i++) MPI_Comm_dup(MPI_COMM_WORLD, all + i);
    for (int i = 0; i < communicators; i++)
        for (int call = 0; call < calls; call++) {
            int own = rank + i, sum = 0;
            MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, all[i]);
            is(sum == 2 * i + 1, "wrong data of an allreduce");
        }
    for (int i = 0; i < communicators; i++) MPI_Comm_free(all + i);
    if (rank == 0) printf("%ld %ld\n", sums_begun, sums_begun - waited_for);
    free(all);
}

/* Short ones, whose root waits for nobody. */
static void *ahead(void *comm)
{
    for (int turn = 0; turn < 2; turn++) broadcast(*(MPI_Comm *)comm, SHORT, turn);
    return NULL;
}

/* The number of calls before is odd or even, so that once a sum was begun before, and once begins in `ahead`. */
static void threads(int before)
{
    MPI_Comm one, other;
    pthread_t thread;
    MPI_Comm_dup(MPI_COMM_WORLD, &one);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (int turn = 0; turn < before; turn++) {
        broadcast(one, SHORT, turn);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) {
        pthread_create(&thread, NULL, ahead, &one);
        /* Time for it to come to where it waits. */
        usleep(200000);
    }
    for (int turn = 0; turn < 20; turn++) MPI_Barrier(other);
    if (rank == 0) pthread_join(thread, NULL);
    else ahead(&one);
    MPI_Comm_free(&one);
    MPI_Comm_free(&other);
}

/* Each group gets the other's sum: what the ranks of one group decide by a sum the others don't. */
static void inter(int turns)
{
    MPI_Comm comm;
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, 7, &comm);
    for (int turn = 0; turn < turns; turn++) {
        int own = turn + rank, sum = -1;
        if (rank == 0 && turn < 300) usleep(1000);
        MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
        is(sum == turn + 1 - rank, "wrong data of an allreduce between groups");
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    int given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    is(given == MPI_THREAD_MULTIPLE, "no threads");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(argv[1], "refused")) refused(atoi(argv[2]));
    if (!strcmp(argv[1], "sizes"))
        for (int turn = 0; turn < atoi(argv[2]); turn++) broadcast(MPI_COMM_WORLD, turn % 2 ? 3500 : 2500, turn);
    if (!strcmp(argv[1], "many")) many(atoi(argv[2]), atoi(argv[3]));
    if (!strcmp(argv[1], "inter")) inter(atoi(argv[2]));
    if (!strcmp(argv[1], "threads"))
        for (int before = 60; before < 62; before++) threads(before);
    MPI_Finalize();
    return 0;
}
