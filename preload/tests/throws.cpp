/* The error handler throws; the program catches. Prints what was caught, by the last rank. */
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

static void handler(MPI_Comm *, int *, ...) { throw std::runtime_error("MPI"); }

template <typename Call> static void attempt(int rank, const char *what, Call call)
{
    const char *came = "nothing";
    try {
        call();
    } catch (const std::runtime_error &) {
        came = "caught";
    }
    if (rank == 1) std::printf("%s: %s\n", what, came);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, in = 1, out, data[64] = {};
    MPI_Comm comm;
    MPI_Errhandler throwing;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_create_errhandler(handler, &throwing);
    MPI_Comm_set_errhandler(comm, throwing);
    /* Open MPI tells some faults to the world's handler. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, throwing);
    /* The first calls on a communicator are the library's. */
    for (int call = 0; call < 3; call++) {
        MPI_Bcast(data, 64, MPI_INT, 0, comm);
        MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm);
    }
    attempt(rank, "no such root", [&] { MPI_Bcast(data, 64, MPI_INT, 17, comm); });
    attempt(rank, "no operation", [&] { MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_OP_NULL, comm); });
    /* The receiver finds it: the message is longer than its place. By turns, ranks that give different sizes would have
     * different methods: the program is wrong. */
    if (!std::getenv("COLIBRI_ADAPT_TURNS")) attempt(rank, "too long", [&] { MPI_Bcast(data, rank == 0 ? 64 : 32, MPI_INT, 0, comm); });
    MPI_Comm_free(&comm);
    /* One rank's call is refused, and repeated, on communicators old and new: the ranks stay in step. */
    bool right = true;
    for (int round = 0; round < 3; round++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, throwing);
        for (int call = 0; call < 60; call++) {
            if (rank == 1 && call % 3 == round)
                try {
                    MPI_Bcast(data, 64, MPI_INT, 17, comm);
                    right = false;
                } catch (const std::runtime_error &) {
                }
            data[63] = rank == 0 ? call : -1;
            MPI_Bcast(data, 64, MPI_INT, 0, comm);
            int own = rank + call, sum = 0;
            MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
            right = right && data[63] == call && sum == 2 * call + 1;
        }
        MPI_Comm_free(&comm);
    }
    if (rank == 1) std::printf("repeated: %s\n", right ? "right" : "wrong");
    MPI_Errhandler_free(&throwing);
    MPI_Finalize();
    return 0;
}
