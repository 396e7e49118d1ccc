/* A program that isn't linked to MPI and loads a part of itself that is: argument 1. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *part = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int (*run)(int, char **) = part ? (int (*)(int, char **))dlsym(part, "run") : NULL;
    if (!run) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    return run(argc, argv);
}
