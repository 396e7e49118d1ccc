/* Calls a collective with each count on the command line and tells what each rank's tracer saw.
   usage: observed bcast|reduce COUNT... */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*reset_function)(void);
typedef size_t (*read_function)(char *, size_t);

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    reset_function reset = (reset_function)dlsym(RTLD_DEFAULT, "colibri_tracer_reset");
    read_function read = (read_function)dlsym(RTLD_DEFAULT, "colibri_tracer_read");
    if (reset == NULL || read == NULL) {
        fprintf(stderr, "the tracer is not loaded\n");
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    for (int i = 2; i < argc; i++) {
        int count = atoi(argv[i]);
        double *in = calloc(count + 1, sizeof(double)), *out = calloc(count + 1, sizeof(double));
        reset();
        if (strcmp(argv[1], "bcast") == 0)
            MPI_Bcast(in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        else
            MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        char text[1024];
        read(text, sizeof text);
        printf("rank %d count %d: %s\n", rank, count, text);
        free(in);
        free(out);
    }
    MPI_Finalize();
    return 0;
}
