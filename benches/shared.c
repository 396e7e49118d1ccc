/* Barrier, bcast and allreduce (sum of doubles) of ranks that share a node: by what the program finds as MPI_X, which
 * the preload library may have put there, straight by the MPI library, and by plain shared memory, untuned. Single calls by
 * turns in one job; before each all ranks are in step by plain shared memory, and what is sent is written. Every
 * rank spins, so that it wants a processor of its own.
 *
 *     shared [CALLS [BYTES]...]
 *
 * Prints a line for each: collective, bytes, then microseconds by plain shared memory, by what was found and by the
 * library: medians of the slowest rank's time, each with its quartiles. Ends with 1 where a result is wrong. */
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

enum { LINE = 128, PAYLOAD = 48, CELL = 64 << 10, CELLS = 8, LONGEST = 4 << 20, MOST_CALLS = 4000 };
enum { PLAIN, FOUND, LIBRARY, WAYS };
enum { BARRIER, BCAST, ALLREDUCE, KINDS };

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

typedef int Barrier(MPI_Comm);
typedef int Bcast(void *, int, MPI_Datatype, int, MPI_Comm);
typedef int Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
static Barrier *barriers[WAYS];
static Bcast *bcasts[WAYS];
static Allreduce *allreduces[WAYS];

static int find_functions(void)
{
    static const char *files[] = { "libmpi.so.40", "libmpich.so.12", "libmpi.so.12" };
    void *library = NULL;
    for (int i = 0; i < 3 && !library; i++) library = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return 0;
    barriers[FOUND] = MPI_Barrier, barriers[LIBRARY] = (Barrier *)dlsym(library, "MPI_Barrier");
    bcasts[FOUND] = MPI_Bcast, bcasts[LIBRARY] = (Bcast *)dlsym(library, "MPI_Bcast");
    allreduces[FOUND] = MPI_Allreduce, allreduces[LIBRARY] = (Allreduce *)dlsym(library, "MPI_Allreduce");
    return 1;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static double in[LONGEST / 8], out[LONGEST / 8];

/* Microseconds of a call on this rank. */
static double time_call(int kind, int way, size_t bytes)
{
    plain_barrier();
    plain_barrier();
    double start = now();
    switch (kind) {
    case BARRIER:
        if (way == PLAIN) plain_barrier(); else barriers[way](MPI_COMM_WORLD);
        break;
    case BCAST:
        if (way == PLAIN) plain_bcast((char *)in, bytes);
        else bcasts[way](in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        break;
    default:
        if (way == PLAIN) plain_allreduce(in, out, bytes / 8);
        else allreduces[way](in, out, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    return now() - start;
}

/* What is sent, another in each call; small whole numbers, whose sum is exact in any order. */
static double sent(int from, int call, size_t k) { return (double)((k * 7 + from * 3 + call) % 101); }

static int is_right(int kind, int call, size_t bytes)
{
    for (size_t k = 0; k < bytes / 8 && kind != BARRIER; k++) {
        double sum = 0;
        for (int other = 0; other < ranks && kind == ALLREDUCE; other++) sum += sent(other, call, k);
        if (kind == BCAST ? in[k] != sent(0, call, k) : out[k] != sum) return 0;
    }
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
    static const char *names[] = { "barrier", "bcast", "allreduce" };
    int right = 1;
    for (int call = -20; call < calls; call++)
        for (int way = 0; way < WAYS; way++) {
            for (size_t k = 0; k < bytes / 8; k++) {
                in[k] = kind == BCAST && rank > 0 ? -1 : sent(rank, call + 20, k);
                out[k] = -1;
            }
            double taken = time_call(kind, way, bytes);
            right &= is_right(kind, call + 20, bytes);
            if (call >= 0) times[way][call] = taken;
        }
    for (int way = 0; way < WAYS; way++) {
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

int main(int argc, char **argv)
{
    static const size_t usual[] = { 8, 4 << 10, 64 << 10 };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!find_functions()) return 2;
    share_memory();
    int calls = argc > 1 ? atoi(argv[1]) : 1000, sizes = argc > 2 ? argc - 2 : 3;
    if (calls < 4 || calls > MOST_CALLS) return 2;
    int right = compare(BARRIER, 0, calls);
    for (int kind = BCAST; kind < KINDS; kind++)
        for (int i = 0; i < sizes; i++) {
            size_t bytes = argc > 2 ? strtoull(argv[2 + i], NULL, 0) : usual[i];
            if (bytes < 8 || bytes > LONGEST || bytes % 8) return 2;
            right &= compare(kind, bytes, calls);
        }
    if (!right) fprintf(stderr, "rank %d: a result is wrong\n", rank);
    MPI_Finalize();
    return !right;
}
