/* Shared memory: memfd, seals, mappings, and copies between mappings. */
#include "zerohop.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1; older kernels answer EINVAL */
#endif

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3; older kernels answer EINVAL */
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels answer EINVAL */
#endif

ZH_JNI(jint, Memory, pageSize)(JNIEnv *env, jclass type) {
  (void)env;
  (void)type;
  return (jint)sysconf(_SC_PAGESIZE);
}

ZH_JNI(jint, Memory, create)(JNIEnv *env, jclass type, jstring name) {
  (void)type;
  const char *text = (*env)->GetStringUTFChars(env, name, NULL);
  if (text == NULL) {
    return -1;
  }
  int fd = zh_memfd_create(text, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) {
    fd = zh_memfd_create(text, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  }
  int error = errno;
  (*env)->ReleaseStringUTFChars(env, name, text);
  if (fd < 0) {
    zh_throw(env, "memfd_create", error);
  }
  return fd;
}

ZH_JNI(void, Memory, resize)(JNIEnv *env, jclass type, jint fd, jlong bytes) {
  (void)type;
  if (ftruncate(fd, bytes) != 0) {
    zh_throw(env, "ftruncate", errno);
  }
}

ZH_JNI(void, Memory, reserve)(JNIEnv *env, jclass type, jint fd, jlong offset, jlong bytes) {
  (void)type;
  int result;
  do {
    result = fallocate(fd, 0, offset, bytes);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    zh_throw(env, "fallocate", errno);
  }
}

/* Mappings that are there now stay writable when others may only read. */
ZH_JNI(void, Memory, seal)(JNIEnv *env, jclass type, jint fd, jboolean read_only) {
  (void)type;
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  int result = fcntl(fd, F_ADD_SEALS, read_only ? seals | F_SEAL_FUTURE_WRITE : seals);
  if (result != 0 && errno == EINVAL && read_only) {
    result = fcntl(fd, F_ADD_SEALS, seals);
  }
  if (result != 0) {
    zh_throw(env, "fcntl(F_ADD_SEALS)", errno);
  }
}

ZH_JNI(jboolean, Memory, isReadOnly)(JNIEnv *env, jclass type, jint fd) {
  (void)env;
  (void)type;
  int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & (F_SEAL_FUTURE_WRITE | F_SEAL_WRITE)) != 0 ? JNI_TRUE : JNI_FALSE;
}

/* Whether the descriptor is memory whose size is fixed for good; false for anything else. */
ZH_JNI(jboolean, Memory, isSealed)(JNIEnv *env, jclass type, jint fd) {
  (void)env;
  (void)type;
  int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & wanted) == wanted ? JNI_TRUE : JNI_FALSE;
}

ZH_JNI(jlong, Memory, map)(JNIEnv *env, jclass type, jint fd, jlong bytes, jboolean writable) {
  (void)type;
  int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void *address = mmap(NULL, (size_t)bytes, access, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) {
    zh_throw(env, "mmap", errno);
    return 0;
  }
  /* A core dump of one process would hold the blocks of all of its peers. */
  if (madvise(address, (size_t)bytes, MADV_DONTDUMP) != 0) {
    int error = errno;
    (void)munmap(address, (size_t)bytes);
    zh_throw(env, "madvise(MADV_DONTDUMP)", error);
    return 0;
  }
  /* Only a wish: most systems have huge pages for shared memory switched off. */
  (void)madvise(address, (size_t)bytes, MADV_HUGEPAGE);
  return (jlong)(uintptr_t)address;
}

ZH_JNI(void, Memory, unmap)(JNIEnv *env, jclass type, jlong address, jlong bytes) {
  (void)type;
  if (munmap(zh_pointer(address), (size_t)bytes) != 0) {
    zh_throw(env, "munmap", errno);
  }
}

/* Pays all page faults of the range at once; 0, or the errno of a kernel that will not. */
ZH_JNI(jint, Memory, populate)(JNIEnv *env, jclass type, jlong address, jlong bytes) {
  (void)env;
  (void)type;
  int result;
  do {
    result = madvise(zh_pointer(address), (size_t)bytes, MADV_POPULATE_WRITE);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

ZH_JNI(jobject, Memory, view)(JNIEnv *env, jclass type, jlong address, jint bytes) {
  (void)type;
  return (*env)->NewDirectByteBuffer(env, zh_pointer(address), bytes);
}

struct zh_copy {
  uint64_t source;
  uint64_t destination;
  uint64_t bytes;
};

ZH_JNI(void, Memory, copy)(JNIEnv *env, jclass type, jlong list, jint count) {
  (void)env;
  (void)type;
  const struct zh_copy *copies = zh_pointer(list);
  for (jint i = 0; i < count; i++) {
    memmove((void *)(uintptr_t)copies[i].destination, (const void *)(uintptr_t)copies[i].source,
            (size_t)copies[i].bytes);
  }
}
