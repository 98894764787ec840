/* File descriptors and folders: what java.nio does not show. */
#include "zerohop.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

ZH_JNI(jint, Descriptor, duplicate)(JNIEnv *env, jclass type, jint fd) {
  (void)type;
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) {
    zh_throw(env, "fcntl(F_DUPFD_CLOEXEC)", errno);
  }
  return copy;
}

/* Linux frees the descriptor even when close reports EINTR, so it is never tried again. */
ZH_JNI(void, Descriptor, close)(JNIEnv *env, jclass type, jint fd) {
  (void)type;
  if (close(fd) != 0 && errno != EINTR) {
    zh_throw(env, "close", errno);
  }
}

static void fill(JNIEnv *env, jlongArray out, const struct stat *status) {
  /* The order is that of io.zerohop.device.posix.FileStatus. */
  jlong values[5] = {(jlong)status->st_dev, (jlong)status->st_ino, (jlong)status->st_uid,
                     (jlong)status->st_mode, (jlong)status->st_size};
  (*env)->SetLongArrayRegion(env, out, 0, 5, values);
}

ZH_JNI(void, Descriptor, status)(JNIEnv *env, jclass type, jint fd, jlongArray out) {
  (void)type;
  struct stat status;
  if (zh_fstat(fd, &status) != 0) {
    zh_throw(env, "fstat", errno);
    return;
  }
  fill(env, out, &status);
}

ZH_JNI(void, Descriptor, statusOf)(JNIEnv *env, jclass type, jstring path, jlongArray out) {
  (void)type;
  const char *text = (*env)->GetStringUTFChars(env, path, NULL);
  if (text == NULL) {
    return;
  }
  struct stat status;
  int result = zh_lstat(text, &status);
  int error = errno;
  (*env)->ReleaseStringUTFChars(env, path, text);
  if (result != 0) {
    zh_throw(env, "lstat", error);
    return;
  }
  fill(env, out, &status);
}

/* Opens a folder for itself, never what a symbolic link points to. */
ZH_JNI(jint, Descriptor, openFolder)(JNIEnv *env, jclass type, jstring path) {
  (void)type;
  const char *text = (*env)->GetStringUTFChars(env, path, NULL);
  if (text == NULL) {
    return -1;
  }
  int fd = open(text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int error = errno;
  (*env)->ReleaseStringUTFChars(env, path, text);
  if (fd < 0) {
    zh_throw(env, "open", error);
  }
  return fd;
}

/* Tries to lock; false when somebody else holds a lock that excludes this one. */
ZH_JNI(jboolean, Descriptor, tryLock)(JNIEnv *env, jclass type, jint fd, jboolean shared) {
  (void)type;
  if (flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) {
    return JNI_TRUE;
  }
  if (errno != EWOULDBLOCK && errno != EINTR) {
    zh_throw(env, "flock", errno);
  }
  return JNI_FALSE;
}

/* Renames without replacing; EEXIST when the new name is taken. */
ZH_JNI(void, Descriptor, rename)(JNIEnv *env, jclass type, jstring from, jstring to) {
  (void)type;
  const char *source = (*env)->GetStringUTFChars(env, from, NULL);
  const char *target = source == NULL ? NULL : (*env)->GetStringUTFChars(env, to, NULL);
  if (target != NULL) {
    long result = syscall(SYS_renameat2, AT_FDCWD, source, AT_FDCWD, target, RENAME_NOREPLACE);
    if (result != 0 && (errno == EINVAL || errno == ENOSYS)) {
      /* A file system without the flag: a hard link is as exclusive. */
      result = link(source, target);
      if (result == 0) {
        result = unlink(source);
      }
    }
    if (result != 0) {
      zh_throw(env, "rename", errno);
    }
    (*env)->ReleaseStringUTFChars(env, to, target);
  }
  if (source != NULL) {
    (*env)->ReleaseStringUTFChars(env, from, source);
  }
}

ZH_JNI(jint, Descriptor, userId)(JNIEnv *env, jclass type) {
  (void)env;
  (void)type;
  return (jint)geteuid();
}
