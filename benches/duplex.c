/* Whether a rank's port sends and receives at the same time: messages of one size one way between ranks 0 and 1, both ways at
 * once, and from every rank to the next one; a ping-pong one way at a time, and both ways at once.
 *
 *     mpicc -O2 benches/duplex.c -o duplex && colibri testbed mpirun --name lab ./duplex
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100, LARGEST = 16384, ROUNDS = 7, PINGS = 10 };

static char out[LARGEST], in[MOST * LARGEST];

/* Seconds for `count` messages to one rank and from another, -1 for none. Who only sends waits for an answer. */
static double stream(int to, int from, int bytes, int count, MPI_Comm comm) {
    MPI_Request requests[2 * MOST];
    int number = 0;
    MPI_Barrier(comm);
    double start = MPI_Wtime();
    for (int i = 0; from >= 0 && i < count; i++)
        MPI_Irecv(in + (size_t)i * bytes, bytes, MPI_BYTE, from, 1, comm, &requests[number++]);
    for (int i = 0; to >= 0 && i < count; i++)
        MPI_Isend(out, bytes, MPI_BYTE, to, 1, comm, &requests[number++]);
    MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
    if (from < 0)
        MPI_Recv(in, 1, MPI_BYTE, to, 2, comm, MPI_STATUS_IGNORE);
    else if (to < 0)
        MPI_Send(out, 1, MPI_BYTE, from, 2, comm);
    return MPI_Wtime() - start;
}

/* Seconds that one message takes. */
static double ping(int me, int bytes, int both_ways, MPI_Comm comm) {
    MPI_Barrier(comm);
    double start = MPI_Wtime();
    for (int i = 0; i < PINGS; i++) {
        if (both_ways) {
            MPI_Sendrecv(out, bytes, MPI_BYTE, 1 - me, 3, in, bytes, MPI_BYTE, 1 - me, 3, comm, MPI_STATUS_IGNORE);
        } else if (me == 0) {
            MPI_Send(out, bytes, MPI_BYTE, 1, 3, comm);
            MPI_Recv(in, bytes, MPI_BYTE, 1, 3, comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, bytes, MPI_BYTE, 0, 3, comm, MPI_STATUS_IGNORE);
            MPI_Send(out, bytes, MPI_BYTE, 0, 3, comm);
        }
    }
    return (MPI_Wtime() - start) / (both_ways ? PINGS : 2 * PINGS);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median, in microseconds. */
static double median(double *seconds) {
    qsort(seconds, ROUNDS, sizeof *seconds, ascending);
    return 1e6 * seconds[ROUNDS / 2];
}

int main(int argc, char **argv) {
    static const int sizes[] = {64, 256, 1024, 4096, 16384};
    int ranks, me;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, me < 2 ? 0 : MPI_UNDEFINED, me, &pair);
    memset(out, 1, sizeof out);
    for (int size = 0; size < 5; size++) {
        int bytes = sizes[size], count = bytes <= 1024 ? 100 : bytes <= 4096 ? 50 : 20;
        double one[ROUNDS], both[ROUNDS], ring[ROUNDS], single[ROUNDS], exchange[ROUNDS];
        /* The first round connects. */
        for (int round = -1; round < ROUNDS; round++) {
            int kept = round < 0 ? 0 : round;
            if (me < 2) {
                one[kept] = stream(me == 0 ? 1 : -1, me == 1 ? 0 : -1, bytes, count, pair);
                both[kept] = stream(1 - me, 1 - me, bytes, count, pair);
                single[kept] = ping(me, bytes, 0, pair);
                exchange[kept] = ping(me, bytes, 1, pair);
            }
            MPI_Barrier(MPI_COMM_WORLD);
            double mine = stream((me + 1) % ranks, (me + ranks - 1) % ranks, bytes, count, MPI_COMM_WORLD);
            MPI_Reduce(&mine, &ring[kept], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        }
        if (me == 0) {
            double base = median(one), ponged = median(single);
            printf("%6d bytes: one way %.1f us a message, both ways %.3f times, ring %.3f times; ", bytes, base / count,
                   median(both) / base, median(ring) / base);
            printf("ping-pong %.1f us, both ways %.3f times\n", ponged, median(exchange) / ponged);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
