/* What MPI_Bcast and MPI_Reduce take per size, as an application sees it: all ranks in step, then one
 * call; its time is the longest of the ranks' own. An ordinary MPI program, which knows nothing of
 * Colibri: run it with and without libcolibri.so preloaded (docs/preload.md).
 *
 *     gain [rounds [seed]]
 *
 * A short call's time hangs on where the scheduler put the ranks, which holds for a while: calls in
 * a row are alike. So each round visits the points in another order (by the seed, the same on all
 * ranks), with one call to warm up and a few that count; long calls, which are steadier, are not in
 * every round. Of each visit the median counts; told is the midmean of these, the mean of their middle
 * half, which lies between the modes of a call that has two, and their quartiles. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZES = 6, POINTS = 2 * SIZES, LONGEST = 1 << 20, MOST_CALLS = 3 };

/* From 1 KiB on, each four times the one before: rounds from one visit to the next, and calls that
 * count in a visit. */
static const int every[SIZES] = {1, 1, 1, 4, 8, 16}, calls[SIZES] = {3, 3, 3, 2, 2, 1};

static double in[LONGEST / sizeof(double)], out[LONGEST / sizeof(double)];

static int bytes_of(int point) { return 1024 << 2 * (point % SIZES); }

/* All ranks in step by messages of the program's own, those of a dissemination barrier. MPI_Barrier
 * might be another algorithm with the library preloaded: which rank then leaves it last, and so how
 * long the call after it seems to take, would be taken for a gain or loss of that call. */
static void in_step(void)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int distance = 1; distance < size; distance *= 2)
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + distance) % size, 1, NULL, 0, MPI_BYTE,
                     (rank - distance + size) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double call(int point)
{
    int bytes = bytes_of(point);
    in_step();
    double start = MPI_Wtime();
    if (point < SIZES)
        MPI_Bcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    else
        MPI_Reduce(in, out, bytes / sizeof(double), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return MPI_Wtime() - start;
}

/* Knuth's MMIX generator. */
static uint64_t state;

static int below(int limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of so many, in ascending order: the one at this share, between two of them if need be. */
static double at(const double *sorted, int count, double share)
{
    double place = share * (count - 1);
    int lower = place, upper = lower + (lower + 1 < count);
    return sorted[lower] + (place - lower) * (sorted[upper] - sorted[lower]);
}

/* Of so many, in ascending order: the mean of the middle half; what lies across an end of it counts in
 * part. */
static double midmean(const double *sorted, int count)
{
    double first = count / 4.0, last = count * 3 / 4.0, sum = 0;
    for (int i = 0; i < count; i++) {
        double from = i > first ? i : first, to = i + 1 < last ? i + 1 : last;
        sum += to > from ? (to - from) * sorted[i] : 0;
    }
    return sum / (last - first);
}

/* All visits; times are by point, visit and call. */
static void visit_all(int rounds, double (*times)[rounds][MOST_CALLS], int *visits)
{
    for (int round = 0; round < rounds; round++) {
        int order[POINTS] = {0};
        for (int point = 0; point < POINTS; point++) {
            int other = below(point + 1);
            order[point] = order[other];
            order[other] = point;
        }
        for (int i = 0; i < POINTS; i++) {
            int point = order[i], size = point % SIZES;
            int period = every[size] < rounds ? every[size] : rounds;
            if (round % every[size] != point % period)
                continue;
            double *visit = times[point][visits[point]++];
            call(point);
            for (int repetition = 0; repetition < calls[size]; repetition++)
                visit[repetition] = call(point);
        }
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 32, rank, size, visits[POINTS] = {0};
    state = argc > 2 ? atoi(argv[2]) : 1;
    if (rounds < 1) {
        fprintf(stderr, "%s is no number of rounds\n", argv[1]);
        return 1;
    }
    MPI_Init(&argc, &argv);
    double begin = MPI_Wtime();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < LONGEST / sizeof(double); i++)
        in[i] = i % 1000 + rank;
    int room = POINTS * rounds * MOST_CALLS;
    double(*mine)[rounds][MOST_CALLS] = calloc(room, sizeof(double));
    double(*longest)[rounds][MOST_CALLS] = calloc(room, sizeof(double));
    double *medians = calloc(rounds, sizeof(double));
    if (!mine || !longest || !medians)
        MPI_Abort(MPI_COMM_WORLD, 1);
    visit_all(rounds, mine, visits);
    /* At the end, so that nothing else goes before a call. */
    MPI_Reduce(mine, longest, room, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int point = 0; rank == 0 && point < POINTS; point++) {
        int count = visits[point], of_visit = calls[point % SIZES];
        for (int visit = 0; visit < count; visit++) {
            qsort(longest[point][visit], of_visit, sizeof(double), ascending);
            medians[visit] = at(longest[point][visit], of_visit, 0.5);
        }
        qsort(medians, count, sizeof(double), ascending);
        printf("%s %d procs %d bytes %.6f s, %.6f to %.6f s, %d visits\n",
               point < SIZES ? "bcast" : "reduce", size, bytes_of(point), midmean(medians, count),
               at(medians, count, 0.25), at(medians, count, 0.75), count);
    }
    if (rank == 0)
        printf("%.3f s from MPI_Init to MPI_Finalize\n", MPI_Wtime() - begin);
    MPI_Finalize();
    return 0;
}
