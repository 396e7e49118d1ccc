/* How programs begin and end. Argument: which way. Prints the same with libcolibri.so as without. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void say(const char *what, long value)
{
    printf("%d %s %ld\n", rank, what, value);
    fflush(stdout);
}

/* Some collectives; a number that tells their results. */
static long used(MPI_Comm comm)
{
    int me, n, data[60], into[60];
    long sum = 0;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    for (int i = 0; i < 60; i++) data[i] = me * 7 + i;
    MPI_Allreduce(data, into, 60, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < 60; i++) sum = sum * 3 % 100003 + into[i];
    MPI_Bcast(data, 60, MPI_INT, n - 1, comm);
    MPI_Allgather(data, 60 / n, MPI_INT, into, 60 / n, MPI_INT, comm);
    for (int i = 0; i < 60 / n * n; i++) sum = sum * 3 % 100003 + into[i];
    MPI_Barrier(comm);
    return sum;
}

static int at_the_end(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    /* MPI deletes the attributes of MPI_COMM_SELF before anything else ends. */
    say("at the end", used(MPI_COMM_WORLD) + *(int *)value);
    return MPI_SUCCESS;
}

/* Nothing is freed, and something hangs on MPI_COMM_SELF. */
static void alive(void)
{
    static int value = 1000000;
    int key, dims = size, periods = 1;
    MPI_Comm a, b, c, d;
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Comm_split(a, rank % 2, 0, &b);
    MPI_Cart_create(a, 1, &dims, &periods, 0, &c);
    MPI_Comm_dup(MPI_COMM_SELF, &d);
    say("a", used(a)), say("b", used(b)), say("c", used(c)), say("d", used(d));
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &value);
}

static void disconnected(void)
{
    MPI_Comm comm;
    for (int turn = 0; turn < 5; turn++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        say("before", used(comm));
        MPI_Comm_disconnect(&comm);
        say("gone", comm == MPI_COMM_NULL);
    }
}

/* The children may have the library or not. */
static void spawning(const char *program, int with_library)
{
    char *bare[] = { "-u", "LD_PRELOAD", (char *)program, "child", NULL }, *plain[] = { "child", NULL };
    MPI_Comm inter, all, part;
    const char *command = with_library ? program : "env";
    MPI_Comm_spawn(command, with_library ? plain : bare, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                   MPI_ERRCODES_IGNORE);
    say("among parents", used(MPI_COMM_WORLD));
    MPI_Intercomm_merge(inter, 0, &all);
    say("merged", used(all));
    MPI_Comm_split(all, rank % 2, 0, &part);
    say("part of it", used(part));
    MPI_Comm_free(&part);
    MPI_Comm_dup(MPI_COMM_WORLD, &part);
    say("parents again", used(part));
    MPI_Comm_free(&part);
    MPI_Barrier(inter);
    /* Open MPI 4.1 hangs by itself where both are disconnected. */
    MPI_Comm_free(&all);
    MPI_Comm_free(&inter);
}

static void spawned(void)
{
    MPI_Comm inter, all, part;
    MPI_Comm_get_parent(&inter);
    say("among children", used(MPI_COMM_WORLD));
    MPI_Intercomm_merge(inter, 1, &all);
    say("merged with parents", used(all));
    MPI_Comm_split(all, rank % 2, 0, &part);
    say("part with parents", used(part));
    MPI_Comm_free(&part);
    MPI_Barrier(inter);
    /* Open MPI 4.1 hangs by itself where both are disconnected. */
    MPI_Comm_free(&all);
    MPI_Comm_free(&inter);
}

static void *in_turn(void *comm)
{
    say("in a thread", used(*(MPI_Comm *)comm));
    return NULL;
}

/* One thread at a time, never the same. */
static void serialized(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int turn = 0; turn < 6; turn++) {
        pthread_t thread;
        pthread_create(&thread, NULL, in_turn, &comm);
        pthread_join(thread, NULL);
        say("in the first", used(comm));
    }
    MPI_Comm_free(&comm);
}

#if MPI_VERSION >= 4
static void session(const char *name)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm, again;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "colibri", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    say(name, used(comm));
    MPI_Comm_dup(comm, &again);
    say(name, used(again));
    MPI_Comm_free(&again);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}
#endif

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int is_there = 0, given;
    MPI_Initialized(&is_there);
    if (is_there) return 9;
    if (!strcmp(way, "none")) {
        int version, part;
        MPI_Get_version(&version, &part);
        say("version", version);
        return 0;
    }
#if MPI_VERSION >= 4
    if (!strcmp(way, "session")) {
        session("session");
        return 0;
    }
#endif
    if (!strcmp(way, "serialized"))
        MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(way, "alive")) alive();
    if (!strcmp(way, "disconnected")) disconnected();
    if (!strcmp(way, "serialized")) serialized();
    if (!strcmp(way, "spawn")) spawning(argv[0], 1);
    if (!strcmp(way, "spawn bare")) spawning(argv[0], 0);
    if (!strcmp(way, "child")) spawned();
    if (!strcmp(way, "pcontrol")) say("pcontrol", MPI_Pcontrol(1) + used(MPI_COMM_WORLD));
#if MPI_VERSION >= 4
    if (!strcmp(way, "session beside")) {
        int world = rank;
        say("world", used(MPI_COMM_WORLD));
        session("session");
        rank = world;
        say("world", used(MPI_COMM_WORLD));
    }
#endif
    if (!strcmp(way, "abort")) {
        say("before", used(MPI_COMM_WORLD));
        if (rank == 0) MPI_Abort(MPI_COMM_WORLD, 7);
        sleep(60);
    }
    if (!strcmp(way, "fatal")) {
        int data = 0;
        say("before", used(MPI_COMM_WORLD));
        MPI_Bcast(&data, 1, MPI_INT, -7, MPI_COMM_WORLD);
        say("after", 0);
    }
    MPI_Finalize();
    MPI_Finalized(&is_there);
    say("finalized", is_there);
    return 0;
}
