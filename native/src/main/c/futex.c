/* Waits on a 32-bit word that several processes map; the futex is therefore not private. */
#include "zerohop.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while the word is `expected`, at most `nanos`. May return early: callers look again. */
ZH_JNI(void, Memory, await)(JNIEnv *env, jclass type, jlong address, jint expected, jlong nanos) {
  (void)type;
  struct timespec limit = {.tv_sec = nanos / 1000000000, .tv_nsec = nanos % 1000000000};
  long result = syscall(SYS_futex, zh_pointer(address), FUTEX_WAIT, expected, &limit, NULL, 0);
  if (result != 0 && errno != EAGAIN && errno != ETIMEDOUT && errno != EINTR) {
    zh_throw(env, "futex(WAIT)", errno);
  }
}

ZH_JNI(void, Memory, wake)(JNIEnv *env, jclass type, jlong address) {
  (void)type;
  if (syscall(SYS_futex, zh_pointer(address), FUTEX_WAKE, INT_MAX, NULL, NULL, 0) < 0) {
    zh_throw(env, "futex(WAKE)", errno);
  }
}
