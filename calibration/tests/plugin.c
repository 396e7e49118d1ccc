/* Collectives as users bring them: right ones, a wrong one, and one that fails. */
#include <mpi.h>
#include <string.h>

static MPI_Comm own = MPI_COMM_NULL;
static int refuses;

int collectives_initialize(MPI_Comm comm, char *suboptions)
{
    refuses = strcmp(suboptions, "refuse=1") == 0;
    if (strcmp(suboptions, "fail=1") == 0 || own != MPI_COMM_NULL)
        return MPI_ERR_ARG;
    return MPI_Comm_dup(comm, &own);
}

int collectives_finalize(MPI_Comm comm)
{
    int relation;
    MPI_Comm_compare(comm, own, &relation);
    return relation == MPI_CONGRUENT ? MPI_Comm_free(&own) : MPI_ERR_COMM;
}

/* Along a chain, on the communicator that was prepared for these very ranks. */
int chain_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, relation;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_compare(comm, own, &relation);
    if (relation != MPI_CONGRUENT)
        return MPI_ERR_COMM;
    if (refuses)
        return MPI_ERR_COUNT;
    int place = (rank - root + size) % size;
    if (place > 0)
        MPI_Recv(buffer, count, datatype, (rank - 1 + size) % size, 0, own, MPI_STATUS_IGNORE);
    if (place < size - 1)
        MPI_Send(buffer, count, datatype, (rank + 1) % size, 0, own);
    return MPI_SUCCESS;
}

/* The last rank gets a wrong last byte. */
int wrong_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int code = chain_Bcast(buffer, count, datatype, root, comm);
    if (rank == size - 1 && count > 0)
        ((char *)buffer)[count - 1] ^= 1;
    return code;
}

int flat_Scatter(const void *send, int sent, MPI_Datatype sent_type, void *receive, int received,
                 MPI_Datatype received_type, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Aint lower, extent;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Recv(receive, received, received_type, root, 0, comm, MPI_STATUS_IGNORE);
    MPI_Type_get_extent(sent_type, &lower, &extent);
    for (int to = 0; to < size; to++) {
        const char *block = (const char *)send + (MPI_Aint)to * sent * extent;
        if (to != root)
            MPI_Send(block, sent, sent_type, to, 0, comm);
        else
            MPI_Sendrecv(block, sent, sent_type, root, 0, receive, received, received_type, root, 0,
                         comm, MPI_STATUS_IGNORE);
    }
    return MPI_SUCCESS;
}

int chain_Reduce(const void *send, void *receive, int count, MPI_Datatype datatype, MPI_Op op,
                 int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (size == 1)
        return MPI_Reduce(send, receive, count, datatype, op, root, comm);
    int bytes, place = (rank - root + size) % size;
    MPI_Type_size(datatype, &bytes);
    static char sum[1 << 20];
    if ((long)bytes * count > (long)sizeof sum)
        return MPI_ERR_COUNT;
    memcpy(sum, send, (size_t)bytes * count);
    static char next[sizeof sum];
    if (place < size - 1) {
        MPI_Recv(next, count, datatype, (rank + 1) % size, 0, comm, MPI_STATUS_IGNORE);
        MPI_Reduce_local(next, sum, count, datatype, op);
    }
    if (place > 0)
        return MPI_Send(sum, count, datatype, (rank - 1 + size) % size, 0, comm);
    memcpy(receive, sum, (size_t)bytes * count);
    return MPI_SUCCESS;
}
