/*
 * A process that cannot map other processes' GPU memory, as on a machine without peer access between
 * its GPUs: whoever looks up cuMemImportFromShareableHandle gets a function that refuses. For
 * LD_PRELOAD, on hosts whose GPUs do reach each other. The driver's own look-ups are not changed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

enum { NOT_SUPPORTED = 801 };

static int refuse(void) { return NOT_SUPPORTED; }

void *dlsym(void *library, const char *name) {
  static void *(*real)(void *, const char *);
  if (!real) {
    /* Older and newer versions of glibc have it under either. */
    void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    *(void **)&real = found ? found : dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  }
  return strcmp(name, "cuMemImportFromShareableHandle") == 0 ? (void *)&refuse
                                                             : real(library, name);
}
