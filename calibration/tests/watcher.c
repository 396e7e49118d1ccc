/* Preloaded: counts the broadcasts of 4321 bytes that each of 4 ranks has left, the last rank each a
 * little later, and how often a rank that had left one looked for a message while another had not.
 * The file that WATCHER_FILE names, which all share, holds the four counts, then that. */
#include <fcntl.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 4, BYTES = 4321 };

static atomic_int *left;
static int me;

static void begin(void)
{
    size_t size = (RANKS + 1) * sizeof(int);
    int file = open(getenv("WATCHER_FILE"), O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, size) != 0)
        abort();
    left = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (left == MAP_FAILED)
        abort();
    close(file);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int size, ranks;
    MPI_Type_size(datatype, &size);
    MPI_Comm_size(comm, &ranks);
    int code = PMPI_Bcast(buffer, count, datatype, root, comm);
    if (count * size != BYTES || ranks != RANKS)
        return code;
    if (left == NULL)
        begin();
    MPI_Comm_rank(comm, &me);
    if (me == RANKS - 1)
        usleep(5000);
    left[me]++;
    return code;
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *there, MPI_Status *status)
{
    for (int rank = 0; left != NULL && rank < RANKS; rank++)
        if (left[rank] < left[me])
            left[RANKS]++;
    return PMPI_Iprobe(source, tag, comm, there, status);
}
