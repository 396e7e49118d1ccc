/* Preloaded: a rank that waits spins for a moment and then sleeps for another, so that more ranks than
 * processors get round, beside other work, too.
 *
 * Open MPI yields where it waits. A yield gives a whole slice of time away, to whatever else runs, and
 * the message that comes meanwhile finds its receiver last in the queue. MPICH (4.0 over UCX) doesn't
 * even yield. Who sleeps is let in as soon as it wakes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/prctl.h>
#include <time.h>

enum { MICROSECOND = 1000, SPINS = 10, SLEEP = 50 * MICROSECOND };

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* Nothing was found to do. */
static void pass(void)
{
    static __thread long last;
    static __thread int idle;
    if (last == 0) prctl(PR_SET_TIMERSLACK, MICROSECOND);
    if (now() - last > 20 * MICROSECOND) idle = 0;
    if (++idle > SPINS) {
        struct timespec moment = { 0, SLEEP };
        nanosleep(&moment, NULL);
    }
    last = now();
}

int sched_yield(void)
{
    pass();
    return 0;
}

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*progress)(void *);
    const char *name = "ucp_worker_progress";
    if (!progress) progress = dlsym(RTLD_NEXT, name);
    /* A program that loads MPI itself (mpi4py) keeps it to itself. */
    if (!progress) progress = dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD), name);
    unsigned arrived = progress(worker);
    if (!arrived) pass();
    return arrived;
}
