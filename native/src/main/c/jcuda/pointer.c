/* What JCuda's objects hold, for the driver and back. */
#include "jcuda.h"

#include <stdlib.h>
#include <string.h>

enum { ZH_UUID_BYTES = 16, ZH_DEPTH = 2 };

static struct {
  jfieldID native_pointer;
  jfieldID byte_offset;
  jfieldID buffer;
  jfieldID pointers;
  jfieldID uuid_bytes;
  jmethodID array;
  jclass pointer;
  jclass bytes;
  jclass ints;
  jclass longs;
} java;

static jclass find_class(JNIEnv *env, const char *name) {
  jclass local = (*env)->FindClass(env, name);
  return local == NULL ? NULL : (*env)->NewGlobalRef(env, local);
}

static jfieldID find_field(JNIEnv *env, jclass type, const char *name, const char *kind) {
  return type == NULL ? NULL : (*env)->GetFieldID(env, type, name, kind);
}

int zh_find_fields(JNIEnv *env) {
  jclass object = find_class(env, "jcuda/NativePointerObject");
  java.native_pointer = find_field(env, object, "nativePointer", "J");
  if (java.native_pointer == NULL) {
    return 0;
  }
  java.pointer = find_class(env, "jcuda/Pointer");
  java.byte_offset = find_field(env, java.pointer, "byteOffset", "J");
  if (java.byte_offset == NULL) {
    return 0;
  }
  java.buffer = find_field(env, java.pointer, "buffer", "Ljava/nio/Buffer;");
  if (java.buffer == NULL) {
    return 0;
  }
  java.pointers = find_field(env, java.pointer, "pointers", "[Ljcuda/NativePointerObject;");
  if (java.pointers == NULL) {
    return 0;
  }
  java.uuid_bytes = find_field(env, find_class(env, "jcuda/driver/CUuuid"), "bytes", "[B");
  if (java.uuid_bytes == NULL) {
    return 0;
  }
  jclass buffer = find_class(env, "java/nio/Buffer");
  java.array =
      buffer == NULL ? NULL : (*env)->GetMethodID(env, buffer, "array", "()Ljava/lang/Object;");
  if (java.array == NULL) {
    return 0;
  }
  java.bytes = find_class(env, "[B");
  java.ints = java.bytes == NULL ? NULL : find_class(env, "[I");
  java.longs = java.ints == NULL ? NULL : find_class(env, "[J");
  return java.longs != NULL;
}

uint64_t zh_handle(JNIEnv *env, jobject object) {
  return object == NULL ? 0 : (uint64_t)(*env)->GetLongField(env, object, java.native_pointer);
}

static void give(JNIEnv *env, jobject object, uint64_t value) {
  (*env)->SetLongField(env, object, java.native_pointer, (jlong)value);
  if ((*env)->IsInstanceOf(env, object, java.pointer)) {
    (*env)->SetLongField(env, object, java.byte_offset, 0);
    (*env)->SetObjectField(env, object, java.buffer, NULL);
    (*env)->SetObjectField(env, object, java.pointers, NULL);
  }
}

void zh_give_handle(JNIEnv *env, jobject object, uint64_t value) {
  if (object != NULL) {
    give(env, object, value);
  }
}

void zh_give_memory(JNIEnv *env, jobject pointer, void *address, jlong bytes) {
  if (pointer == NULL) {
    return;
  }
  give(env, pointer, (uint64_t)(uintptr_t)address);
  /* No buffer of Java's is larger; the address serves for those. */
  jobject buffer = bytes > INT32_MAX ? NULL : (*env)->NewDirectByteBuffer(env, address, bytes);
  if (buffer != NULL) {
    (*env)->SetObjectField(env, pointer, java.buffer, buffer);
  }
}

uint64_t zh_address(JNIEnv *env, jobject pointer) {
  if (pointer == NULL) {
    return 0;
  }
  return zh_handle(env, pointer) + (uint64_t)(*env)->GetLongField(env, pointer, java.byte_offset);
}

void zh_give_uuid(JNIEnv *env, jobject uuid, const void *bytes) {
  jbyteArray array = (*env)->NewByteArray(env, ZH_UUID_BYTES);
  if (array != NULL) {
    (*env)->SetByteArrayRegion(env, array, 0, ZH_UUID_BYTES, bytes);
    (*env)->SetObjectField(env, uuid, java.uuid_bytes, array);
  }
}

/* Bytes of an element; 0 for kinds of arrays that nobody here uses. */
static size_t element(JNIEnv *env, jobject array) {
  if ((*env)->IsInstanceOf(env, array, java.bytes)) {
    return sizeof(jbyte);
  }
  if ((*env)->IsInstanceOf(env, array, java.ints)) {
    return sizeof(jint);
  }
  return (*env)->IsInstanceOf(env, array, java.longs) ? sizeof(jlong) : 0;
}

/* Copies between an array and memory outside the heap. */
static int transfer(JNIEnv *env, jobject array, void *memory, size_t bytes, int to_java) {
  void *inside = (*env)->GetPrimitiveArrayCritical(env, array, NULL);
  if (inside == NULL) {
    return 0;
  }
  memcpy(to_java ? inside : memory, to_java ? memory : inside, bytes);
  (*env)->ReleasePrimitiveArrayCritical(env, array, inside, to_java ? 0 : JNI_ABORT);
  return 1;
}

/* A copy of the array, since the collector may move it while the driver works. */
static int enter_array(JNIEnv *env, jobject buffer, struct zh_target *target) {
  jobject array = (*env)->CallObjectMethod(env, buffer, java.array);
  if ((*env)->ExceptionCheck(env)) {
    return 0;
  }
  size_t size = element(env, array);
  if (size == 0) {
    return 0;
  }
  target->bytes = size * (size_t)(*env)->GetArrayLength(env, array);
  void *copy = malloc(target->bytes + 1);
  if (copy == NULL || !transfer(env, array, copy, target->bytes, 0)) {
    free(copy);
    return 0;
  }
  target->array = array;
  target->address = copy;
  return 1;
}

static int enter(JNIEnv *env, jobject pointer, struct zh_target *target, int depth);

static int enter_pointers(JNIEnv *env, jobjectArray pointers, struct zh_target *target, int depth) {
  size_t count = (size_t)(*env)->GetArrayLength(env, pointers);
  struct zh_target *children = calloc(count + 1, sizeof *children);
  void **addresses = calloc(count + 1, sizeof *addresses);
  if (children == NULL || addresses == NULL) {
    free(children);
    free(addresses);
    return 0;
  }
  int entered = 1;
  for (size_t i = 0; entered && i < count; i++) {
    jobject child = (*env)->GetObjectArrayElement(env, pointers, (jsize)i);
    entered = enter(env, child, &children[i], depth - 1);
    if (entered) {
      addresses[i] = children[i].address;
      target->child_count++;
    }
  }
  target->children = children;
  target->address = addresses;
  if (!entered) {
    zh_leave(env, target, 0);
  }
  return entered;
}

static int enter(JNIEnv *env, jobject pointer, struct zh_target *target, int depth) {
  memset(target, 0, sizeof *target);
  if (pointer == NULL) {
    return 1;
  }
  if (!(*env)->IsInstanceOf(env, pointer, java.pointer)) {
    target->address = (void *)(uintptr_t)zh_handle(env, pointer);
    return 1;
  }
  jobjectArray pointers = (*env)->GetObjectField(env, pointer, java.pointers);
  if (pointers != NULL) {
    return depth > 0 && enter_pointers(env, pointers, target, depth);
  }
  jlong offset = (*env)->GetLongField(env, pointer, java.byte_offset);
  jobject buffer = (*env)->GetObjectField(env, pointer, java.buffer);
  if (buffer == NULL) {
    target->address = (void *)(uintptr_t)zh_address(env, pointer);
    return 1;
  }
  char *direct = (*env)->GetDirectBufferAddress(env, buffer);
  if (direct != NULL) {
    target->address = direct + offset;
    return 1;
  }
  return offset == 0 && enter_array(env, buffer, target);
}

int zh_enter(JNIEnv *env, jobject pointer, struct zh_target *target) {
  return enter(env, pointer, target, ZH_DEPTH);
}

void zh_leave(JNIEnv *env, struct zh_target *target, int written) {
  if (target->array != NULL) {
    if (written) {
      (void)transfer(env, target->array, target->address, target->bytes, 1);
    }
    free(target->address);
  } else if (target->children != NULL) {
    struct zh_target *children = target->children;
    for (size_t i = 0; i < target->child_count; i++) {
      zh_leave(env, &children[i], written);
    }
    free(children);
    free(target->address);
  }
  memset(target, 0, sizeof *target);
}
