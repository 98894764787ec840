/*
 * JCuda's binding of the CUDA driver API for machines that JCuda has no library for: what its class
 * JCudaDriver declares as native, as far as Zerohop calls it. A call that is missing here ends in an
 * UnsatisfiedLinkError that names it.
 *
 * JCuda's objects are known by their fields: NativePointerObject.nativePointer is the handle or the
 * address, to which a Pointer adds byteOffset; a Pointer to Java's memory has a buffer instead, and
 * a Pointer to pointers has them in an array.
 */
#ifndef ZEROHOP_JCUDA_H
#define ZEROHOP_JCUDA_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "../glibc.h"

#include <jni.h>
#include <stddef.h>
#include <stdint.h>

enum { ZH_SUCCESS = 0, ZH_INVALID_VALUE = 1, ZH_NOT_FOUND = 500 };

/* What a jcuda.Pointer points to, while a call of the driver runs. */
struct zh_target {
  void *address;  /* for the driver */
  jobject array;  /* Java's array, of which address is a copy; or NULL */
  size_t bytes;   /* of that copy */
  void *children; /* struct zh_target of each pointer that address points to; or NULL */
  size_t child_count;
};

/* Finds the fields of JCuda's classes, once; whether they are there. If not, an exception waits. */
int zh_find_fields(JNIEnv *env);

/* The handle or address of a NativePointerObject, without a Pointer's offset; 0 for null. */
uint64_t zh_handle(JNIEnv *env, jobject object);

/* Puts a handle or an address in, at offset 0. */
void zh_give_handle(JNIEnv *env, jobject object, uint64_t value);

/* Puts an address of host memory in, with a buffer of its bytes as Pointer.getByteBuffer wants. */
void zh_give_memory(JNIEnv *env, jobject pointer, void *address, jlong bytes);

/* The address in a CUdeviceptr, or in a Pointer made from a number; 0 for null. */
uint64_t zh_address(JNIEnv *env, jobject pointer);

/* What a Pointer of any kind points to. Whether it could be had; zh_leave has to follow if so. */
int zh_enter(JNIEnv *env, jobject pointer, struct zh_target *target);

/* Frees what zh_enter took, and writes to Java's array what the driver wrote to the copy. */
void zh_leave(JNIEnv *env, struct zh_target *target, int written);

/* Puts bytes into the field of a CUuuid. */
void zh_give_uuid(JNIEnv *env, jobject uuid, const void *bytes);

#endif
