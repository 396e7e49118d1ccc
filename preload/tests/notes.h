/* What a program prints of its calls: per rank and kind of call a hash of everything that the calls
 * wrote, and error classes. The same with libcolibri.so as without. */
#ifndef NOTES_H
#define NOTES_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By itself, in calls that MPI allows; and in wrong ones that others refuse (seen in 4.0.2). */
#ifdef OPEN_MPI
#define MPICH_CRASHES 0
#else
#define MPICH_CRASHES 1
#endif

/* An allreduce of no type at all ends MPICH 5.0 by an assertion. */
#if defined(MPI_ABI_VERSION) || (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 50000000)
#define MPICH_5 1
#else
#define MPICH_5 0
#endif

/* In cases.c. What a name stands for can be left out by itself: later cases take nothing from it. */
int begins(const char *name);
#define CASE(name) if (begins(name))

#define KINDS 1000
static struct { char name[64]; uint64_t hash; } kinds[KINDS];
static int known, world_rank, world_size;

static void note(const char *name, const void *bytes, size_t length)
{
    int i = 0;
    while (i < known && strcmp(kinds[i].name, name)) i++;
    if (i == KINDS) abort();
    if (i == known) {
        snprintf(kinds[known].name, sizeof kinds[0].name, "%s", name);
        kinds[known++].hash = 14695981039346656037u;
    }
    for (size_t b = 0; b < length; b++)
        kinds[i].hash = (kinds[i].hash ^ ((const unsigned char *)bytes)[b]) * 1099511628211u;
}

static void note_class(const char *name, int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    note(name, &class, sizeof class);
}

/* All by the first rank: launchers mix the lines of several. */
static void print_notes(void)
{
    if (world_rank) MPI_Send(kinds, sizeof kinds, MPI_BYTE, 0, 99, MPI_COMM_WORLD);
    for (int rank = 0; rank < world_size && world_rank == 0; rank++) {
        if (rank) MPI_Recv(kinds, sizeof kinds, MPI_BYTE, rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < KINDS && kinds[i].name[0]; i++)
            printf("%d %s %016llx\n", rank, kinds[i].name, (unsigned long long)kinds[i].hash);
    }
    fflush(stdout);
}

#endif
