/* A program that calls MPI_Bcast, MPI_Allreduce and MPI_Alltoall in a loop, and looks at all data.
 *
 * Arguments: number of turns; "late" or nothing: whether ranks are late by turns; "threads": two threads by turns on one
 * communicator; "communicators": a new communicator every 50 turns; "refused": a rank tries to free the world, and
 * is refused. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4096, INTS = 256, BLOCK = 64 };
long counted_calls; /* how many broadcasts there were: slowed.c looks at it */
static int rank, size;

static void is(int right, const char *what, long turn)
{
    if (right) return;
    printf("rank %d, turn %ld: wrong data of %s\n", rank, turn, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void turn_of(MPI_Comm comm, long turn)
{
    unsigned char data[BYTES], *blocks = malloc(2 * (size_t)size * BLOCK);
    int own[INTS], sum[INTS], root = turn % size;
    memset(data, rank == root ? (int)(turn % 251) : 255, BYTES);
    MPI_Bcast(data, BYTES, MPI_BYTE, root, comm);
    counted_calls++;
    is(data[0] == turn % 251 && data[BYTES - 1] == turn % 251, "a broadcast", turn);
    for (int i = 0; i < INTS; i++) own[i] = rank + i + (int)turn;
    MPI_Allreduce(own, sum, INTS, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < INTS; i++)
        is(sum[i] == size * (i + (int)turn) + size * (size - 1) / 2, "an allreduce", turn);
    if (turn % 4 == 0) {
        unsigned char *into = blocks + (size_t)size * BLOCK;
        for (int i = 0; i < size; i++) memset(blocks + i * BLOCK, (rank * 16 + i) % 256, BLOCK);
        MPI_Alltoall(blocks, BLOCK, MPI_BYTE, into, BLOCK, MPI_BYTE, comm);
        for (int i = 0; i < size; i++) is(into[i * BLOCK + 1] == (i * 16 + rank) % 256, "an alltoall", turn);
    }
    free(blocks);
}

static void late(long turn)
{
    double until = MPI_Wtime() + (turn % size == rank ? 100e-6 : 20e-6);
    while (MPI_Wtime() < until) ;
}

typedef struct {
    MPI_Comm comm;
    long turn;
} Turn;

static void *in_a_thread(void *argument)
{
    Turn *turn = argument;
    turn_of(turn->comm, turn->turn);
    return NULL;
}

int main(int argc, char **argv)
{
    long turns = atol(argv[1]);
    const char *how = argc > 2 ? argv[2] : "";
    int given;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Init_thread(&argc, &argv, strcmp(how, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_SERIALIZED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(how, "refused")) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (long turn = 0; turn < turns; turn++) {
        if (!strcmp(how, "communicators") && turn % 50 == 0) {
            if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        }
        if (!strcmp(how, "late")) late(turn);
        if (!strcmp(how, "refused") && turn % 7 == 3 && turn / 7 % size == rank) {
            MPI_Comm world = MPI_COMM_WORLD;
            if (MPI_Comm_free(&world) == MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (!strcmp(how, "threads") && turn % 3 == 1) {
            pthread_t thread;
            Turn one = { comm, turn };
            pthread_create(&thread, NULL, in_a_thread, &one);
            pthread_join(thread, NULL);
            continue;
        }
        turn_of(comm, turn);
    }
    if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
