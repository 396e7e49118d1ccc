/* A system that refuses files to be shared. REFUSED names what: memfd_create, shm_open, open_other (of another process's file),
 * mmap or fallocate (of a file of libcolibri.so). On all ranks, or on the one that REFUSED_RANK names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static int is_refused(const char *what)
{
    const char *all = getenv("REFUSED"), *rank = getenv("REFUSED_RANK"), *own = getenv("OMPI_COMM_WORLD_RANK");
    if (!own) own = getenv("PMI_RANK");
    if (rank && *rank && (!own || strcmp(own, rank))) return 0;
    return all && strstr(all, what) != NULL;
}

static int is_ours(int file)
{
    char link[64], path[256] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    return readlink(link, path, sizeof path - 1) > 0 && (strstr(path, "memfd:colibri") || strstr(path, "/dev/shm/colibri-"));
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int memfd_create(const char *name, unsigned flags)
{
    if (!strcmp(name, "colibri") && is_refused("memfd_create")) return errno = ENOSYS, -1;
    return NEXT(memfd_create)(name, flags);
}

int shm_open(const char *name, int flags, mode_t mode)
{
    if (!strncmp(name, "/colibri-", 9) && is_refused("shm_open")) return errno = ENOENT, -1;
    return NEXT(shm_open)(name, flags, mode);
}

static int opened(const char *path, int flags, mode_t mode, int (*next)(const char *, int, ...))
{
    /* MPICH's transport opens such files as well, without O_CLOEXEC. */
    if (!strncmp(path, "/proc/", 6) && strstr(path, "/fd/") && (flags & O_CLOEXEC) && is_refused("open_other"))
        return errno = EACCES, -1;
    return next(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int file = opened(path, flags, va_arg(rest, mode_t), NEXT(open));
    va_end(rest);
    return file;
}

int open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int file = opened(path, flags, va_arg(rest, mode_t), NEXT(open64));
    va_end(rest);
    return file;
}

void *mmap(void *address, size_t bytes, int access, int flags, int file, off_t offset)
{
    if (file >= 0 && (flags & MAP_SHARED) && is_refused("mmap") && is_ours(file)) return errno = ENOMEM, MAP_FAILED;
    return NEXT(mmap)(address, bytes, access, flags, file, offset);
}

int posix_fallocate(int file, off_t offset, off_t bytes)
{
    if (is_refused("fallocate") && is_ours(file)) return ENOSPC;
    return NEXT(posix_fallocate)(file, offset, bytes);
}
