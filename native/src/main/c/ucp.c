/*
 * Which UCX was loaded: its binding for Java does not say. ucp_get_version is of ucp/api/ucp.h.
 */
#include "zerohop.h"

#include <dlfcn.h>
#include <string.h>

ZH_JNI(jint, NativeLibrary, libucpVersion)(JNIEnv *env, jclass type) {
  (void)env;
  (void)type;
  /* The one that the binding uses, or none: nothing is loaded for the question. */
  void *library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL) {
    return 0;
  }
  void (*ask)(unsigned *, unsigned *, unsigned *) = NULL;
  void *symbol = dlsym(library, "ucp_get_version");
  memcpy(&ask, &symbol, sizeof symbol);
  unsigned major = 0, minor = 0, release = 0;
  if (ask != NULL) {
    ask(&major, &minor, &release);
  }
  dlclose(library);
  return (jint)(major << 16 | minor << 8 | (release & 0xff));
}
