/* Elements far from each other, and memory that is not there.
 *
 * far_apart EXTENT: reductions of one int whose type extends over so many bytes, while the process may have little more
 * memory than it has. Prints the kilobytes by which it has grown.
 * far_apart lacking BYTES: an allreduce of so many bytes with too little memory for a copy. Prints the class of its error. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, size;

static void must(int is_right, const char *what)
{
    if (is_right) return;
    fprintf(stderr, "%s on rank %d is wrong\n", what, rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The process may have so many bytes of addresses more than it has. */
static void may_have(long more)
{
    long pages = 0;
    FILE *told = fopen("/proc/self/statm", "r");
    must(told && fscanf(told, "%ld", &pages) == 1, "/proc/self/statm");
    fclose(told);
    rlim_t most = pages * sysconf(_SC_PAGESIZE) + more;
    must(setrlimit(RLIMIT_AS, &(struct rlimit){ most, most }) == 0, "setrlimit");
}

static long kilobytes(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;
}

static long extent;

static void add(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *length; i++) *(int *)((char *)inout + i * extent) += *(int *)((char *)in + i * extent);
}

static void far_apart(void)
{
    MPI_Datatype type;
    MPI_Op op;
    int given = rank + 1, got = 0, all = size * (size + 1) / 2;
    MPI_Type_create_resized(MPI_INT, 0, extent, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add, 1, &op);
    for (int root = 0; root < size; root++) {
        MPI_Reduce(&given, &got, 1, type, op, root, MPI_COMM_WORLD);
        must(rank != root || got == all, "reduce");
    }
    MPI_Allreduce(&given, &got, 1, type, op, MPI_COMM_WORLD);
    must(got == all, "allreduce");
    MPI_Scan(&given, &got, 1, type, op, MPI_COMM_WORLD);
    must(got == (rank + 1) * (rank + 2) / 2, "scan");
    MPI_Exscan(&given, &got, 1, type, op, MPI_COMM_WORLD);
    must(rank == 0 || got == rank * (rank + 1) / 2, "exscan");
    MPI_Bcast(&got, 1, type, 0, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

/* Two ints, so far apart that no operand more fits into the limit, though the process has memory for some. */
static void two_far_apart(void)
{
    long bytes = extent + sizeof(int);
    int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *given = mmap(NULL, bytes, protection, flags, -1, 0), *got = mmap(NULL, bytes, protection, flags, -1, 0);
    must(given != MAP_FAILED && got != MAP_FAILED, "mmap");
    MPI_Datatype type;
    MPI_Op op;
    MPI_Type_create_resized(MPI_INT, 0, extent, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add, 1, &op);
    *(int *)given = rank + 1, *(int *)(given + extent) = 2;
    MPI_Allreduce(given, got, 2, type, op, MPI_COMM_WORLD);
    must(*(int *)got == size * (size + 1) / 2 && *(int *)(got + extent) == 2 * size, "allreduce of two");
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

static void lacking(long bytes)
{
    int class = 0, code;
    char *given = malloc(bytes), *got = malloc(bytes);
    must(given && got, "malloc");
    memset(given, 1, bytes);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    may_have(bytes / 2);
    code = MPI_Allreduce(given, got, (int)bytes, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    const char *name = class == MPI_ERR_NO_MEM ? "MPI_ERR_NO_MEM" : class ? "another" : "none";
    if (rank == 0) printf("error: %s\n", name);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2) {
        lacking(atol(argv[2]));
    } else {
        extent = 8;
        far_apart();
        extent = atol(argv[1]);
        long before = kilobytes(), most;
        may_have(1L << 30);
        far_apart();
        long grown = kilobytes() - before;
        if (extent < 1L << 30) two_far_apart();
        MPI_Reduce(&grown, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("grown: %ld\n", most);
    }
    MPI_Finalize();
    return 0;
}
