/*
 * What every file of the library needs: JNI names and the one way to report a failed call.
 *
 * The library is a thin skin over system calls. It keeps no state, allocates nothing that outlives
 * a call, and turns each failure into an exception that carries the call's name and its errno.
 */
#ifndef ZEROHOP_H
#define ZEROHOP_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "glibc.h"

#include <errno.h>
#include <jni.h>
#include <stdint.h>

#define ZH_JNI(type, class, method) \
  JNIEXPORT type JNICALL Java_io_zerohop_device_posix_##class##_##method

/* Throws PosixException(call, error). The caller returns to Java at once. */
void zh_throw(JNIEnv *env, const char *call, int error);

static inline void *zh_pointer(jlong address) { return (void *)(uintptr_t)address; }

#endif
