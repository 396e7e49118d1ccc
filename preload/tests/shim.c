/* Stands before an MPI library and does something wrong. Behind libcolibri.so it stands for a fault of
 * the library, before it for one of ours.
 *
 * Defined by the compiler's options: CRASHES or HANGS (an allreduce of 301 bytes by MPI_BXOR), BREAKS
 * (everything that combines crashes), FORGETS (a bit of a scan). COUNTS does nothing wrong: the first process
 * tells at the end how often an allreduce that does not block and a split were called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int Combining(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
typedef int Reducing(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);

/* Twice each, as libcolibri.so goes on to the second name. */
#define STANDS(function, next, parameters, arguments, type, wrong) \
    int P##function parameters { type *behind = (type *)dlsym(RTLD_NEXT, "P" #function); wrong; next arguments; } \
    int function parameters { type *behind = (type *)dlsym(RTLD_NEXT, "P" #function); wrong; next arguments; }
#define COMBINING(function, wrong) \
    STANDS(function, return behind, \
           (const void *send, void *receive, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
           (send, receive, n, type, op, comm), Combining, wrong)

#ifdef CRASHES
COMBINING(MPI_Allreduce, if (n == 301 && type == MPI_BYTE && op == MPI_BXOR) abort())
#endif
#ifdef HANGS
COMBINING(MPI_Allreduce, if (n == 301 && type == MPI_BYTE && op == MPI_BXOR) for (;;) pause())
#endif
#ifdef BREAKS
COMBINING(MPI_Allreduce, if (type == MPI_INT) abort())
COMBINING(MPI_Scan, abort())
COMBINING(MPI_Exscan, abort())
STANDS(MPI_Reduce, return behind,
       (const void *send, void *receive, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
       (send, receive, n, type, op, root, comm), Reducing, abort())
#endif
#ifdef COUNTS
static int allreduces, splits;
typedef int Beginning(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *);
STANDS(MPI_Iallreduce, return behind,
       (const void *send, void *receive, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
        MPI_Request *request),
       (send, receive, n, type, op, comm, request), Beginning, allreduces++)
typedef int Splitting(MPI_Comm, int, int, MPI_Comm *);
STANDS(MPI_Comm_split, return behind, (MPI_Comm comm, int color, int key, MPI_Comm *made),
       (comm, color, key, made), Splitting, splits++)
int PMPI_Finalize(void)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("allreduces %d splits %d\n", allreduces, splits), fflush(stdout);
    return ((int (*)(void))dlsym(RTLD_NEXT, "PMPI_Finalize"))();
}
#endif
#ifdef FORGETS
int MPI_Scan(const void *send, void *receive, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int code = ((Combining *)dlsym(RTLD_NEXT, "MPI_Scan"))(send, receive, n, type, op, comm);
    if (n > 0) *(char *)receive ^= 1;
    return code;
}
#endif
