/* Collectives of ranks that share a node (reductions: sums of doubles): by what the program finds as MPI_X, which the
 * preload library may have put there, straight by the MPI library, and by plain shared memory, untuned. Single calls by
 * turns in one job; before each all ranks are in step by plain shared memory, and what is sent is written. Every
 * rank spins, so that it wants a processor of its own.
 *
 *     shared [CALLS [COLLECTIVE[,COLLECTIVE]... [BYTES]...]]
 *
 * COLLECTIVE may be "read", too: see READ. BYTES are those of a block where each rank has one of its own. Prints a line
 * for each: collective, bytes, then microseconds by plain shared memory, by what was found and by the library, 0 where
 * there is none: medians of the slowest rank's time, each with its quartiles. Ends with 1 where a result is wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 128, PAYLOAD = 48, CELL = 64 << 10, CELLS = 16, LONGEST = 64 << 20, MOST_CALLS = 4000 };
enum { PLAIN, FOUND, LIBRARY, WAYS };
/* READ is no collective: all ranks but the root read what the root has just put into shared memory. No bcast is faster. */
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLTOALL, GATHER, SCATTER, REDUCE_SCATTER_BLOCK, READ, KINDS };
static const char *names[] = { "barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter",
                               "reduce_scatter_block", "read" };

/* A flag with room beside it, on lines of its own. */
typedef struct {
    _Atomic uint64_t value;
    double payload[PAYLOAD / 8];
    char rest[LINE - 8 - PAYLOAD];
} Flag;

static int ranks, rank;
/* By rank: of the barrier, of short and long reductions, of cells. */
static Flag *arrived, *short_arrived, *put, *combined, *finished, *taken;
static Flag *released, *short_released, *cell_put;
static char *slots[2], *results[2], *cells;

static inline void pause_a_little(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static inline void await_flag(Flag *flag, uint64_t value)
{
    for (unsigned looks = 0; atomic_load_explicit(&flag->value, memory_order_acquire) < value; looks++)
        if (looks < 2000) pause_a_little(); else sched_yield();
}

static inline void raise_flag(Flag *flag, uint64_t value)
{
    atomic_store_explicit(&flag->value, value, memory_order_release);
}

static void plain_barrier(void)
{
    static uint64_t turn;
    turn++;
    if (rank > 0) {
        raise_flag(&arrived[rank], turn);
        await_flag(released, turn);
        return;
    }
    for (int other = 1; other < ranks; other++) await_flag(&arrived[other], turn);
    raise_flag(released, turn);
}

static void plain_bcast(char *data, size_t bytes)
{
    static uint64_t turn;
    for (size_t done = 0; done < bytes; done += CELL) {
        size_t now = bytes - done < CELL ? bytes - done : CELL;
        char *cell = cells + (++turn % CELLS) * CELL;
        if (rank == 0) {
            for (int other = 1; other < ranks && turn > CELLS; other++) await_flag(&taken[other], turn - CELLS);
            memcpy(cell, data + done, now);
            raise_flag(cell_put, turn);
        } else {
            await_flag(cell_put, turn);
            memcpy(data + done, cell, now);
            raise_flag(&taken[rank], turn);
        }
    }
}

static void plain_short_allreduce(const double *in, double *out, size_t count)
{
    static uint64_t turn;
    turn++;
    if (rank > 0) {
        memcpy(short_arrived[rank].payload, in, 8 * count);
        raise_flag(&short_arrived[rank], turn);
        await_flag(short_released, turn);
        memcpy(out, short_released->payload, 8 * count);
        return;
    }
    double sum[PAYLOAD / 8];
    memcpy(sum, in, 8 * count);
    for (int other = 1; other < ranks; other++) {
        await_flag(&short_arrived[other], turn);
        for (size_t k = 0; k < count; k++) sum[k] += short_arrived[other].payload[k];
    }
    memcpy(short_released->payload, sum, 8 * count);
    raise_flag(short_released, turn);
    memcpy(out, sum, 8 * count);
}

/* Each rank adds a slice of what all put down, and takes the others'. */
static void plain_allreduce(const double *in, double *out, size_t all)
{
    if (8 * all <= PAYLOAD) {
        plain_short_allreduce(in, out, all);
        return;
    }
    static uint64_t turn;
    size_t most = (8 * all <= 256 << 10 ? 16 << 10 : CELL) / 8;
    for (size_t done = 0; done < all; done += most, in += most, out += most) {
        size_t count = all - done < most ? all - done : most, slice = (count + ranks - 1) / ranks;
        turn++;
        for (int other = 0; other < ranks && turn > 2; other++)
            if (other != rank) await_flag(&finished[other], turn - 2);
        slice = ((slice < 64 ? 64 : slice) + 15) / 16 * 16;
        size_t low = slice * rank < count ? slice * rank : count, high = low + slice < count ? low + slice : count;
        double *own = (double *)(slots[turn % 2] + (size_t)rank * CELL), *result = (double *)results[turn % 2];
        memcpy(own, in, 8 * low);
        memcpy(own + high, in + high, 8 * (count - high));
        raise_flag(&put[rank], turn);
        for (int i = 0; i < ranks && low < high; i++) {
            int other = (rank + i) % ranks;
            if (i > 0) await_flag(&put[other], turn);
            const double *restrict from = i == 0 ? in : (double *)(slots[turn % 2] + (size_t)other * CELL);
            double *restrict into = result;
            if (i == 0) memcpy(into + low, from + low, 8 * (high - low));
            else for (size_t k = low; k < high; k++) into[k] += from[k];
        }
        raise_flag(&combined[rank], turn);
        int owners = (count + slice - 1) / slice;
        for (int i = 0; i < owners; i++) {
            int owner = (rank + i) % owners;
            await_flag(&combined[owner], turn);
            size_t first = slice * owner, last = first + slice < count ? first + slice : count;
            memcpy(out + first, result + first, 8 * (last - first));
        }
        raise_flag(&finished[rank], turn);
    }
}

static void share_memory(void)
{
    size_t flags = (size_t)LINE * (6 * ranks + 3), page = 4096;
    size_t bytes = page + (flags + page - 1) / page * page + (2 * (size_t)ranks + 2 + CELLS) * CELL;
    MPI_Win window;
    MPI_Aint size;
    char *base;
    int unit;
    MPI_Win_allocate_shared(rank == 0 ? bytes : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    MPI_Win_shared_query(window, 0, &size, &unit, &base);
    if (rank == 0) memset(base, 0, bytes);
    base = (char *)(((uintptr_t)base + page - 1) / page * page);
    Flag *flag = (Flag *)base;
    Flag **of_ranks[] = { &arrived, &short_arrived, &put, &combined, &finished, &taken };
    for (int i = 0; i < 6; i++) *of_ranks[i] = flag, flag += ranks;
    released = flag++, short_released = flag++, cell_put = flag++;
    char *data = base + (flags + page - 1) / page * page;
    for (int half = 0; half < 2; half++) {
        slots[half] = data + (size_t)half * ranks * CELL;
        results[half] = data + (2 * (size_t)ranks + half) * CELL;
    }
    cells = data + (2 * (size_t)ranks + 2) * CELL;
    /* Messages of its own: a barrier might be one of those that are timed. */
    for (int other = 0; other < ranks; other++)
        MPI_Sendrecv(NULL, 0, MPI_BYTE, other, 1, NULL, 0, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* What a collective is called by; gather stands for those with its arguments. */
typedef int Barrier(MPI_Comm);
typedef int Bcast(void *, int, MPI_Datatype, int, MPI_Comm);
typedef int Reduce(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
typedef int Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
typedef int Allgather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
typedef int Gather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
static void *functions[KINDS][WAYS];

static int find_functions(void)
{
    static const char *files[] = { "libmpi.so.40", "libmpich.so.12", "libmpi.so.12" };
    static const char *symbols[] = { "MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Allreduce", "MPI_Allgather",
                                     "MPI_Alltoall", "MPI_Gather", "MPI_Scatter", "MPI_Reduce_scatter_block" };
    void *library = NULL;
    for (int i = 0; i < 3 && !library; i++) library = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);
    for (int kind = 0; kind < READ && library; kind++) {
        functions[kind][FOUND] = dlsym(RTLD_DEFAULT, symbols[kind]);
        functions[kind][LIBRARY] = dlsym(library, symbols[kind]);
        if (!functions[kind][FOUND] || !functions[kind][LIBRARY]) return 0;
    }
    return library != NULL;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static double in[LONGEST / 8], out[LONGEST / 8];

static void call_library(int kind, int way, size_t bytes)
{
    int count = bytes / 8;
    void *function = functions[kind][way];
    switch (kind) {
    case BARRIER: ((Barrier *)function)(MPI_COMM_WORLD); return;
    case BCAST: ((Bcast *)function)(in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD); return;
    case REDUCE: ((Reduce *)function)(in, out, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); return;
    case ALLREDUCE:
    case REDUCE_SCATTER_BLOCK: ((Allreduce *)function)(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); return;
    case ALLGATHER:
    case ALLTOALL: ((Allgather *)function)(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, MPI_COMM_WORLD); return;
    default: ((Gather *)function)(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
}

static int has_way(int kind, int way, size_t bytes)
{
    if (way != PLAIN) return kind != READ;
    return kind == BARRIER || kind == BCAST || kind == ALLREDUCE || (kind == READ && bytes <= (size_t)CELL * CELLS);
}

/* Microseconds of a call on this rank. */
static double time_call(int kind, int way, size_t bytes)
{
    if (kind == READ && rank == 0) memcpy(cells, in, bytes);
    plain_barrier();
    plain_barrier();
    double start = now();
    if (way != PLAIN) call_library(kind, way, bytes);
    else if (kind == BARRIER) plain_barrier();
    else if (kind == BCAST) plain_bcast((char *)in, bytes);
    else if (kind == ALLREDUCE) plain_allreduce(in, out, bytes / 8);
    else if (rank > 0) memcpy(out, cells, bytes);
    return now() - start;
}

/* What is sent, another in each call; small whole numbers, whose sum is exact in any order. */
static double sent(int from, int call, size_t k) { return (double)((k * 7 + from * 3 + call) % 101); }

/* Elements that this rank sends or has sent to it. */
static size_t sent_count(int kind, size_t count)
{
    int is_many = kind == ALLTOALL || kind == REDUCE_SCATTER_BLOCK || (kind == SCATTER && rank == 0);
    return is_many ? count * ranks : count;
}

static size_t received_count(int kind, size_t count)
{
    if (kind == BARRIER || kind == BCAST || kind == READ || ((kind == REDUCE || kind == GATHER) && rank > 0)) return 0;
    return kind == ALLGATHER || kind == ALLTOALL || kind == GATHER ? count * ranks : count;
}

static double result(int kind, int call, size_t count, size_t k)
{
    double sum = 0;
    switch (kind) {
    case REDUCE:
    case ALLREDUCE:
        for (int other = 0; other < ranks; other++) sum += sent(other, call, k);
        return sum;
    case REDUCE_SCATTER_BLOCK:
        for (int other = 0; other < ranks; other++) sum += sent(other, call, rank * count + k);
        return sum;
    case ALLTOALL: return sent(k / count, call, rank * count + k % count);
    case SCATTER: return sent(0, call, rank * count + k);
    default: return sent(k / count, call, k % count);
    }
}

static int is_right(int kind, int call, size_t count)
{
    for (size_t k = 0; k < count && kind == BCAST; k++)
        if (in[k] != sent(0, call, k)) return 0;
    for (size_t k = 0; k < received_count(kind, count); k++)
        if (out[k] != result(kind, call, count, k)) return 0;
    return 1;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double times[WAYS][MOST_CALLS], of_other[MOST_CALLS];

static int compare(int kind, size_t bytes, int calls)
{
    int right = 1;
    size_t count = bytes / 8;
    for (int call = -20; call < calls; call++)
        for (int way = PLAIN; way < WAYS; way++) {
            if (!has_way(kind, way, bytes)) continue;
            for (size_t k = 0; k < sent_count(kind, count); k++)
                in[k] = kind == BCAST && rank > 0 ? -1 : sent(rank, call + 20, k);
            for (size_t k = 0; k < received_count(kind, count); k++) out[k] = -1;
            double taken = time_call(kind, way, bytes);
            right &= call % 8 != 0 || is_right(kind, call + 20, count);
            if (call >= 0) times[way][call] = taken;
        }
    for (int way = 0; way < WAYS; way++) {
        if (!has_way(kind, way, bytes)) memset(times[way], 0, sizeof times[way]);
        if (rank > 0) MPI_Send(times[way], calls, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
        for (int other = 1; other < ranks && rank == 0; other++) {
            MPI_Recv(of_other, calls, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int call = 0; call < calls; call++)
                if (of_other[call] > times[way][call]) times[way][call] = of_other[call];
        }
        qsort(times[way], calls, sizeof(double), ascending);
    }
    if (rank == 0) {
        printf("%s %zu", names[kind], bytes);
        for (int way = 0; way < WAYS; way++)
            printf(" %.3f %.3f %.3f", times[way][calls / 2], times[way][calls / 4], times[way][3 * calls / 4]);
        printf("\n");
    }
    return right;
}

static int is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length])) return 1;
    return 0;
}

int main(int argc, char **argv)
{
    static const size_t usual[] = { 8, 4 << 10, 64 << 10 };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!find_functions()) return 2;
    share_memory();
    int calls = argc > 1 ? atoi(argv[1]) : 1000, sizes = argc > 3 ? argc - 3 : 3;
    const char *kinds = argc > 2 ? argv[2] : "barrier,bcast,allreduce";
    if (calls < 4 || calls > MOST_CALLS) return 2;
    int right = 1;
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < (kind == BARRIER ? 1 : sizes) && is_listed(kinds, names[kind]); i++) {
            size_t bytes = kind == BARRIER ? 0 : argc > 3 ? strtoull(argv[3 + i], NULL, 0) : usual[i];
            if (kind != BARRIER && (bytes < 8 || bytes > (size_t)(LONGEST / ranks) || bytes % 8)) return 2;
            /* Fewer of long calls. */
            right &= compare(kind, bytes, bytes > 64 << 10 ? (calls + 3) / 4 : calls);
        }
    if (!right) fprintf(stderr, "rank %d: a result is wrong\n", rank);
    MPI_Finalize();
    return !right;
}
