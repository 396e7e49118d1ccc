/* Which case a program is in, written where it is found after a crash; and which cases are set aside.
 *
 * CASES names a directory. Each process writes two files there, called by its process id: PID.now holds
 * the state (r runs, c has crashed or found wrong data), how many cases it has begun and the name of the last; PID.begun
 * has a line for each name. The file `aside` has a line for each case that is not to be called. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 96, MOST = 2000 };
static char aside[MOST][NAME], begun[MOST][NAME];
static int asides, beguns, is_open, now = -1, all = -1;
static long number;

static int is_among(char names[][NAME], int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return 1;
    return 0;
}

/* The case of this process is wrong; the job is about to end. */
void fails(void)
{
    if (now >= 0 && pwrite(now, "c", 1, 0)) {}
}

static void crashed(int signal_number)
{
    fails();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void open_files(const char *folder)
{
    static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    char path[1000];
    snprintf(path, sizeof path, "%s/aside", folder);
    FILE *list = fopen(path, "r");
    while (list && asides < MOST && fgets(aside[asides], NAME, list))
        aside[asides][strcspn(aside[asides], "\n")] = 0, asides++;
    if (list) fclose(list);
    snprintf(path, sizeof path, "%s/%d.now", folder, (int)getpid());
    now = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    snprintf(path, sizeof path, "%s/%d.begun", folder, (int)getpid());
    all = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (now < 0 || all < 0) abort();
    /* After the MPI library's own handlers, which would end the process first. */
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], crashed);
}

/* Whether a case is to be called, which has then begun. The same on all ranks. */
int begins(const char *name)
{
    char line[NAME + 40];
    const char *folder = getenv("CASES");
    if (!folder) return 1;
    if (!is_open) open_files(folder), is_open = 1;
    if (is_among(aside, asides, name)) return 0;
    int length = snprintf(line, sizeof line, "r %ld %s\n", ++number, name);
    if (pwrite(now, line, length, 0) != length || ftruncate(now, length)) abort();
    if (!is_among(begun, beguns, name)) {
        if (beguns == MOST) abort();
        snprintf(begun[beguns++], NAME, "%s", name);
        length = snprintf(line, sizeof line, "%s\n", name);
        if (write(all, line, length) != length) abort();
    }
    return 1;
}
