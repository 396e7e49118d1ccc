/* Traffic that fills a network, and its rates.
   usage: traffic ring|gather|across|pingpong BYTES SECONDS
     ring      everybody sends to the next rank
     gather    everybody sends to rank 0
     across    each rank of the first half sends to one of the second half
     pingpong  ranks 0 and 1 exchange BYTES: prints the median of half a round trip in seconds
   Prints for each sender its rank and the bytes per second at which its messages arrived, between the
   first quarter and the last of the time (so that all others were sending as well). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MESSAGES = 200000 };

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Receives from `source` until a message of one byte says that it was the last; the rate into `rate`. */
struct stream {
    int source, ended;
    double begin, end, first_time, last_time, bytes;
    MPI_Request request;
    char *buffer;
};

static void note(struct stream *s, int bytes) {
    double now = MPI_Wtime();
    if (now >= s->begin && s->first_time == 0)
        s->first_time = now;
    else if (now >= s->begin && now <= s->end) {
        s->last_time = now;
        s->bytes += bytes;
    }
}

static void receive(struct stream *streams, int count, int bytes) {
    int left = count;
    MPI_Request *requests = malloc(count * sizeof *requests);
    for (int i = 0; i < count; i++) {
        streams[i].buffer = malloc(bytes);
        MPI_Irecv(streams[i].buffer, bytes, MPI_BYTE, streams[i].source, 0, MPI_COMM_WORLD, &requests[i]);
    }
    while (left > 0) {
        int index, got;
        MPI_Status status;
        MPI_Waitany(count, requests, &index, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        if (got == 1) {
            left--;
            continue;
        }
        note(&streams[index], got);
        MPI_Irecv(streams[index].buffer, bytes, MPI_BYTE, streams[index].source, 0, MPI_COMM_WORLD, &requests[index]);
    }
    for (int i = 0; i < count; i++)
        printf("%d %.1f\n", streams[i].source, streams[i].bytes / (streams[i].last_time - streams[i].first_time));
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const char *kind = argv[1];
    int bytes = atoi(argv[2]);
    double seconds = atof(argv[3]);
    char *buffer = calloc(bytes + 1, 1);

    if (strcmp(kind, "pingpong") == 0) {
        double *halves = malloc(MOST_MESSAGES * sizeof *halves), begin = MPI_Wtime();
        int count = 0, go = 1;
        while (rank < 2 && go) {
            double start = MPI_Wtime();
            go = start - begin < seconds && count + 1 < MOST_MESSAGES;
            buffer[0] = (char)go;
            if (rank == 0) {
                MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
                MPI_Recv(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                halves[count++] = (MPI_Wtime() - start) / 2;
            } else {
                MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                go = buffer[0];
                MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            }
        }
        if (rank == 0) {
            qsort(halves, count, sizeof *halves, compare);
            printf("%d %.9f\n", bytes, halves[count / 2]);
        }
        MPI_Finalize();
        return 0;
    }

    int target = -1, sources = 0;
    struct stream *streams = calloc(size, sizeof *streams);
    if (strcmp(kind, "ring") == 0) {
        target = (rank + 1) % size;
        streams[sources++].source = (rank + size - 1) % size;
    } else if (strcmp(kind, "gather") == 0) {
        target = rank == 0 ? -1 : 0;
        for (int source = 1; rank == 0 && source < size; source++)
            streams[sources++].source = source;
    } else {
        int half = size / 2;
        target = rank < half ? rank + half : -1;
        if (rank >= half && rank < 2 * half)
            streams[sources++].source = rank - half;
    }
    /* Connections are made before anything is timed. */
    for (int i = 0; i < sources; i++)
        MPI_Irecv(&streams[i].ended, 1, MPI_INT, streams[i].source, 1, MPI_COMM_WORLD, &streams[i].request);
    if (target >= 0)
        MPI_Send(&target, 1, MPI_INT, target, 1, MPI_COMM_WORLD);
    for (int i = 0; i < sources; i++)
        MPI_Wait(&streams[i].request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);

    double begin = MPI_Wtime();
    for (int i = 0; i < sources; i++) {
        streams[i].begin = begin + seconds / 4;
        streams[i].end = begin + seconds * 3 / 4;
    }
    if (strcmp(kind, "ring") == 0) {
        /* Both at once, two messages on their way so that the link never pauses. */
        MPI_Request sends[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, receive = MPI_REQUEST_NULL;
        int got = bytes, sending = 1;
        for (int turn = 0; sending || got > 1 || receive != MPI_REQUEST_NULL;) {
            int done;
            MPI_Status status;
            if (receive == MPI_REQUEST_NULL && got > 1) {
                streams[0].buffer = streams[0].buffer ? streams[0].buffer : malloc(bytes);
                MPI_Irecv(streams[0].buffer, bytes, MPI_BYTE, streams[0].source, 0, MPI_COMM_WORLD, &receive);
            }
            for (int i = 0; sending && i < 2; i++) {
                int ready;
                MPI_Test(&sends[i], &ready, MPI_STATUS_IGNORE);
                if (!ready)
                    continue;
                sending = MPI_Wtime() - begin < seconds;
                MPI_Isend(buffer, sending ? bytes : 1, MPI_BYTE, target, 0, MPI_COMM_WORLD, &sends[i]);
                turn++;
            }
            if (receive == MPI_REQUEST_NULL)
                continue;
            MPI_Request all[3] = {sends[0], sends[1], receive};
            MPI_Waitany(3, all, &done, &status);
            sends[0] = all[0], sends[1] = all[1], receive = all[2];
            if (done == 2) {
                MPI_Get_count(&status, MPI_BYTE, &got);
                if (got > 1)
                    note(&streams[0], got);
            }
        }
        MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
        printf("%d %.1f\n", streams[0].source, streams[0].bytes / (streams[0].last_time - streams[0].first_time));
    } else if (target >= 0) {
        while (MPI_Wtime() - begin < seconds)
            MPI_Send(buffer, bytes, MPI_BYTE, target, 0, MPI_COMM_WORLD);
        MPI_Send(buffer, 1, MPI_BYTE, target, 0, MPI_COMM_WORLD);
    } else if (sources > 0) {
        receive(streams, sources, bytes);
    }
    MPI_Finalize();
    return 0;
}
