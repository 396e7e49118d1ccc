/* Behind libcolibri.so: an MPI library whose broadcast is slow, and whose messages become slow.
 *
 * SLOWED_BCAST: microseconds that each MPI_Bcast takes longer on every rank. SLOWED_SENDS: microseconds that each send
 * of ours takes longer; SLOWED_LATER: the same from broadcast number SLOWED_FROM on, as the program counts them. Each
 * process prints at the end in how many turns of the program it made such a later send. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long slow_turns, last_slow = -1;


static void wait_for(const char *name)
{
    const char *text = getenv(name);
    struct timespec begun, now;
    long microseconds = text ? atol(text) : 0;
    if (microseconds <= 0) return;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begun.tv_sec) * 1000000 + (now.tv_nsec - begun.tv_nsec) / 1000 < microseconds);
}

static void before_send(void)
{
    const char *from = getenv("SLOWED_FROM");
    long *counted = dlsym(RTLD_DEFAULT, "counted_calls");
    if (!from || !counted || *counted < atol(from)) {
        wait_for("SLOWED_SENDS");
        return;
    }
    slow_turns += *counted != last_slow;
    last_slow = *counted;
    wait_for("SLOWED_LATER");
}

int PMPI_Bcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm)
{
    int (*behind)(void *, int, MPI_Datatype, int, MPI_Comm) = dlsym(RTLD_NEXT, "PMPI_Bcast");
    wait_for("SLOWED_BCAST");
    return behind(data, n, type, root, comm);
}

int PMPI_Finalize(void)
{
    int (*behind)(void) = dlsym(RTLD_NEXT, "PMPI_Finalize");
    printf("slow %ld\n", slow_turns);
    fflush(stdout);
    return behind();
}

int PMPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    int (*behind)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = dlsym(RTLD_NEXT, "PMPI_Isend");
    before_send();
    return behind(data, n, type, to, tag, comm, request);
}

int PMPI_Send(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    int (*behind)(const void *, int, MPI_Datatype, int, int, MPI_Comm) = dlsym(RTLD_NEXT, "PMPI_Send");
    before_send();
    return behind(data, n, type, to, tag, comm);
}
