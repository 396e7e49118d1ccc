/* Messages of more than 2^31 bytes, and counts of more than 2^31 where there are functions for them.
 * Two ranks; takes some GB. Prints what was right. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20 };
static const int64_t blocks = 2200, bytes = 2200LL * MIB;
static int rank, size;

static char *room(int64_t length)
{
    char *memory = malloc(length);
    if (!memory) MPI_Abort(MPI_COMM_WORLD, 5);
    return memory;
}

static void fill(char *memory, int64_t length, int seed)
{
    uint64_t *words = (uint64_t *)memory;
    for (int64_t i = 0; i < length / 8; i++) words[i] = (i + seed) * 0x9e3779b97f4a7c15u;
}

static void check(const char *what, const char *memory, int64_t length, int seed, uint64_t factor)
{
    const uint64_t *words = (const uint64_t *)memory;
    int64_t wrong = 0;
    for (int64_t i = 0; i < length / 8; i++)
        wrong += words[i] != factor * ((i + seed) * 0x9e3779b97f4a7c15u);
    printf("%d %s: %s\n", rank, what, wrong ? "WRONG" : "right");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    MPI_Datatype block;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_contiguous(MIB, MPI_BYTE, &block);
    MPI_Type_commit(&block);
    char *memory = room(bytes);

    if (rank == 0) fill(memory, bytes, 3);
    MPI_Bcast(memory, blocks, block, 0, MPI_COMM_WORLD);
    check("bcast of blocks", memory, bytes, 3, 1);

    /* A count that an int holds, of more bytes than that. */
    if (rank == size - 1) fill(memory, bytes, 4);
    MPI_Bcast(memory, bytes / 8, MPI_UINT64_T, size - 1, MPI_COMM_WORLD);
    check("bcast of words", memory, bytes, 4, 1);

    /* Blocks of half of it for each of two ranks. */
    int64_t half = bytes / 2 / MIB * MIB;
    fill(memory + rank * half, half, rank + 5);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory, half / MIB, block, MPI_COMM_WORLD);
    for (int r = 0; r < 2; r++) check("allgather", memory + r * half, half, r + 5, 1);

    fill(memory, bytes, 6);
    MPI_Allreduce(MPI_IN_PLACE, memory, bytes / 8, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    check("allreduce", memory, bytes, 6, size);
#if MPI_VERSION >= 4
    if (rank == 0) fill(memory, bytes, 7);
    MPI_Bcast_c(memory, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    check("bcast of bytes", memory, bytes, 7, 1);
#endif
    MPI_Type_free(&block);
    free(memory);
    MPI_Finalize();
    return 0;
}
