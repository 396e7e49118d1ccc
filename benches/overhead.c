/* What stands before MPI_Bcast costs a call of 8 bytes on one rank: on the world and on a communicator
 * made from it. Blocks of calls go by turns through what the program finds and straight to the MPI
 * library, so that both see the same state of the processor's clock. Prints for each communicator the
 * library's nanoseconds per call (median) and for how many more the others take (quartiles, median). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCKS = 2001, CALLS = 500 };
typedef int Bcast(void *, int, MPI_Datatype, int, MPI_Comm);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double of_a_call(Bcast *bcast, MPI_Comm comm)
{
    char data[8] = { 0 };
    double start = now();
    for (int i = 0; i < CALLS; i++) bcast(data, 8, MPI_BYTE, 0, comm);
    return (now() - start) / CALLS;
}

static Bcast *of_library(void)
{
    static const char *files[] = { "libmpi.so.40", "libmpich.so.12", "libmpi.so.12" };
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library) return (Bcast *)dlsym(library, "MPI_Bcast");
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static double alone[BLOCKS], more[BLOCKS];
    MPI_Comm comms[2] = { MPI_COMM_WORLD, MPI_COMM_NULL };
    Bcast *library = of_library(), *volatile found = MPI_Bcast;
    if (!library) return 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comms[1]);
    for (int c = 0; c < 2; c++) {
        for (int block = -20; block < BLOCKS; block++) {
            double one = of_a_call(library, comms[c]), other = of_a_call(found, comms[c]);
            if (block >= 0) alone[block] = one, more[block] = other - one;
        }
        qsort(alone, BLOCKS, sizeof *alone, by_value);
        qsort(more, BLOCKS, sizeof *more, by_value);
        printf("%.2f %.2f %.2f %.2f ", alone[BLOCKS / 2], more[BLOCKS / 4], more[BLOCKS / 2],
               more[3 * BLOCKS / 4]);
    }
    printf("\n");
    MPI_Comm_free(&comms[1]);
    MPI_Finalize();
    return 0;
}
