/* Uses 1700 communicators at a time, of the 2048 that MPICH has, frees all, and does it again. */
#include <mpi.h>

#define MANY 1700

int main(int argc, char **argv)
{
    static MPI_Comm comms[MANY];
    int size, one = 1, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < MANY; i++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
            sum = 0;
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[i]);
            if (sum != size) MPI_Abort(MPI_COMM_WORLD, 1);
        }
        for (int i = 0; i < MANY; i++) MPI_Comm_free(&comms[i]);
    }
    MPI_Finalize();
    return 0;
}
