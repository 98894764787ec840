/* The native methods of jcuda.driver.JCudaDriver. Each returns the driver's status. */
#include "jcuda.h"

#include "driver.h"

#include <dlfcn.h>
#include <string.h>

#define ZH_CALL(method, ...)                                                                      \
  JNIEXPORT jint JNICALL Java_jcuda_driver_JCudaDriver_##method##Native(JNIEnv *env, jclass type, \
                                                                        __VA_ARGS__)

/* A driver that lacks a function says so where it is called. */
#define ZH_DRIVER(member, ...) (driver.member == NULL ? ZH_NOT_FOUND : driver.member(__VA_ARGS__))

#define ZH_UNUSED \
  (void)env;      \
  (void)type

#define ZH_MEMBER(member, name, parameters) int(*member) parameters;
static struct { ZH_DRIVER_FUNCTIONS(ZH_MEMBER) } driver;

/* Function pointers and object pointers are different things in C; POSIX says they convert. */
static void find(void *library, const char *name, void *target) {
  void *symbol = dlsym(library, name);
  memcpy(target, &symbol, sizeof symbol);
}

#define ZH_FIND(member, name, parameters) find(library, name, &driver.member);

/* The driver stays loaded for good, as it does for JCuda's own library. */
JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
  (void)reserved;
  JNIEnv *env = NULL;
  if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) != JNI_OK || !zh_find_fields(env)) {
    return JNI_ERR;
  }
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) {
    jclass failure = (*env)->FindClass(env, "java/lang/UnsatisfiedLinkError");
    if (failure != NULL) {
      (*env)->ThrowNew(env, failure, "libcuda.so.1 cannot be loaded");
    }
    return JNI_ERR;
  }
  ZH_DRIVER_FUNCTIONS(ZH_FIND)
  return JNI_VERSION_1_8;
}

static zh_object object(JNIEnv *env, jobject handle) {
  return (zh_object)(uintptr_t)zh_handle(env, handle);
}

static int device(JNIEnv *env, jobject handle) { return (int)zh_handle(env, handle); }

static jint give_object(JNIEnv *env, jobject handle, int status, zh_object value) {
  if (status == ZH_SUCCESS) {
    zh_give_handle(env, handle, (uint64_t)(uintptr_t)value);
  }
  return status;
}

static jint give_address(JNIEnv *env, jobject pointer, int status, zh_device_address value) {
  if (status == ZH_SUCCESS) {
    zh_give_handle(env, pointer, value);
  }
  return status;
}

static void give_int(JNIEnv *env, jintArray array, int value) {
  jint number = value;
  (*env)->SetIntArrayRegion(env, array, 0, 1, &number);
}

static void give_size(JNIEnv *env, jlongArray array, size_t value) {
  jlong number = (jlong)value;
  (*env)->SetLongArrayRegion(env, array, 0, 1, &number);
}

/* Devices and contexts */

ZH_CALL(cuInit, jint flags) {
  ZH_UNUSED;
  return ZH_DRIVER(init, (unsigned)flags);
}

ZH_CALL(cuDeviceGet, jobject result, jint ordinal) {
  (void)type;
  int number = 0;
  int status = ZH_DRIVER(device_get, &number, ordinal);
  return give_address(env, result, status, (uint64_t)number);
}

ZH_CALL(cuDeviceGetCount, jintArray count) {
  (void)type;
  int number = 0;
  int status = ZH_DRIVER(device_count, &number);
  give_int(env, count, number);
  return status;
}

ZH_CALL(cuDeviceGetAttribute, jintArray value, jint attribute, jobject of) {
  (void)type;
  int number = 0;
  int status = ZH_DRIVER(device_attribute, &number, attribute, device(env, of));
  give_int(env, value, number);
  return status;
}

ZH_CALL(cuDeviceGetUuid, jobject uuid, jobject of) {
  (void)type;
  unsigned char bytes[16] = {0};
  int status = ZH_DRIVER(device_uuid, bytes, device(env, of));
  zh_give_uuid(env, uuid, bytes);
  return status;
}

ZH_CALL(cuDeviceTotalMem, jlongArray bytes, jobject of) {
  (void)type;
  size_t number = 0;
  int status = ZH_DRIVER(device_memory, &number, device(env, of));
  give_size(env, bytes, number);
  return status;
}

ZH_CALL(cuDevicePrimaryCtxRetain, jobject context, jobject of) {
  (void)type;
  zh_object value = NULL;
  int status = ZH_DRIVER(context_retain, &value, device(env, of));
  return give_object(env, context, status, value);
}

ZH_CALL(cuCtxSetCurrent, jobject context) {
  (void)type;
  return ZH_DRIVER(context_set, object(env, context));
}

/* Events and streams */

ZH_CALL(cuEventCreate, jobject event, jint flags) {
  (void)type;
  zh_object value = NULL;
  int status = ZH_DRIVER(event_create, &value, (unsigned)flags);
  return give_object(env, event, status, value);
}

ZH_CALL(cuEventDestroy, jobject event) {
  (void)type;
  return ZH_DRIVER(event_destroy, object(env, event));
}

ZH_CALL(cuEventQuery, jobject event) {
  (void)type;
  return ZH_DRIVER(event_query, object(env, event));
}

ZH_CALL(cuEventRecord, jobject event, jobject stream) {
  (void)type;
  return ZH_DRIVER(event_record, object(env, event), object(env, stream));
}

ZH_CALL(cuStreamCreate, jobject stream, jint flags) {
  (void)type;
  zh_object value = NULL;
  int status = ZH_DRIVER(stream_create, &value, (unsigned)flags);
  return give_object(env, stream, status, value);
}

ZH_CALL(cuStreamDestroy, jobject stream) {
  (void)type;
  return ZH_DRIVER(stream_destroy, object(env, stream));
}

ZH_CALL(cuStreamQuery, jobject stream) {
  (void)type;
  return ZH_DRIVER(stream_query, object(env, stream));
}

ZH_CALL(cuStreamWaitEvent, jobject stream, jobject event, jint flags) {
  (void)type;
  return ZH_DRIVER(stream_wait, object(env, stream), object(env, event), (unsigned)flags);
}

ZH_CALL(cuStreamWriteValue32, jobject stream, jobject address, jint value, jint flags) {
  (void)type;
  return ZH_DRIVER(stream_write, object(env, stream), zh_address(env, address), (uint32_t)value,
                   (unsigned)flags);
}

/* Modules and kernels */

/* Without options, which are the one thing that Zerohop has no use for. */
ZH_CALL(cuModuleLoadDataEx, jobject module, jobject image, jint count, jintArray options,
        jobject values) {
  (void)type;
  (void)options;
  (void)values;
  struct zh_target bytes;
  if (count != 0 || !zh_enter(env, image, &bytes)) {
    return ZH_INVALID_VALUE;
  }
  zh_object value = NULL;
  int status = ZH_DRIVER(module_load, &value, bytes.address, 0, NULL, NULL);
  zh_leave(env, &bytes, 0);
  return give_object(env, module, status, value);
}

ZH_CALL(cuModuleGetFunction, jobject function, jobject module, jstring name) {
  (void)type;
  const char *text = name == NULL ? NULL : (*env)->GetStringUTFChars(env, name, NULL);
  if (text == NULL) {
    return ZH_INVALID_VALUE;
  }
  zh_object value = NULL;
  int status = ZH_DRIVER(module_function, &value, object(env, module), text);
  (*env)->ReleaseStringUTFChars(env, name, text);
  return give_object(env, function, status, value);
}

ZH_CALL(cuModuleGetGlobal, jobject address, jlongArray bytes, jobject module, jstring name) {
  (void)type;
  const char *text = name == NULL ? NULL : (*env)->GetStringUTFChars(env, name, NULL);
  if (text == NULL) {
    return ZH_INVALID_VALUE;
  }
  zh_device_address value = 0;
  size_t size = 0;
  int status = ZH_DRIVER(module_global, &value, &size, object(env, module), text);
  (*env)->ReleaseStringUTFChars(env, name, text);
  if (bytes != NULL) {
    give_size(env, bytes, size);
  }
  return give_address(env, address, status, value);
}

ZH_CALL(cuFuncSetAttribute, jobject function, jint attribute, jint value) {
  (void)type;
  return ZH_DRIVER(function_attribute, object(env, function), attribute, value);
}

ZH_CALL(cuLaunchKernel, jobject function, jint grid_x, jint grid_y, jint grid_z, jint block_x,
        jint block_y, jint block_z, jint shared, jobject stream, jobject arguments, jobject extra) {
  (void)type;
  struct zh_target list;
  if (extra != NULL || !zh_enter(env, arguments, &list)) {
    return ZH_INVALID_VALUE;
  }
  /* The driver has read the arguments when it returns. */
  int status = ZH_DRIVER(launch, object(env, function), (unsigned)grid_x, (unsigned)grid_y,
                         (unsigned)grid_z, (unsigned)block_x, (unsigned)block_y, (unsigned)block_z,
                         (unsigned)shared, object(env, stream), list.address, NULL);
  zh_leave(env, &list, 0);
  return status;
}

/* Memory */

ZH_CALL(cuMemAlloc, jobject address, jlong bytes) {
  (void)type;
  zh_device_address value = 0;
  int status = ZH_DRIVER(alloc, &value, (size_t)bytes);
  return give_address(env, address, status, value);
}

ZH_CALL(cuMemFree, jobject address) {
  (void)type;
  return ZH_DRIVER(free, zh_address(env, address));
}

ZH_CALL(cuMemHostAlloc, jobject pointer, jlong bytes, jint flags) {
  (void)type;
  void *value = NULL;
  int status = ZH_DRIVER(host_alloc, &value, (size_t)bytes, (unsigned)flags);
  if (status == ZH_SUCCESS) {
    zh_give_memory(env, pointer, value, bytes);
  }
  return status;
}

/* What was allocated here has a buffer, too, so its number is what counts. */
ZH_CALL(cuMemFreeHost, jobject pointer) {
  (void)type;
  int status = ZH_DRIVER(host_free, (void *)(uintptr_t)zh_handle(env, pointer));
  return give_object(env, pointer, status, NULL);
}

ZH_CALL(cuMemHostRegister, jobject pointer, jlong bytes, jint flags) {
  (void)type;
  return ZH_DRIVER(host_register, (void *)(uintptr_t)zh_address(env, pointer), (size_t)bytes,
                   (unsigned)flags);
}

ZH_CALL(cuMemHostUnregister, jobject pointer) {
  (void)type;
  return ZH_DRIVER(host_unregister, (void *)(uintptr_t)zh_address(env, pointer));
}

ZH_CALL(cuMemHostGetDevicePointer, jobject address, jobject pointer, jint flags) {
  (void)type;
  zh_device_address value = 0;
  int status = ZH_DRIVER(host_device_pointer, &value, (void *)(uintptr_t)zh_address(env, pointer),
                         (unsigned)flags);
  return give_address(env, address, status, value);
}

ZH_CALL(cuMemcpyDtoH, jobject to, jobject from, jlong bytes) {
  (void)type;
  struct zh_target memory;
  if (!zh_enter(env, to, &memory)) {
    return ZH_INVALID_VALUE;
  }
  int fits = memory.array == NULL || (uint64_t)bytes <= memory.bytes;
  int status = fits ? ZH_DRIVER(copy_to_host, memory.address, zh_address(env, from), (size_t)bytes)
                    : ZH_INVALID_VALUE;
  zh_leave(env, &memory, status == ZH_SUCCESS);
  return status;
}

/* Not to an array: the copy ends when nobody can write to the array any more. */
ZH_CALL(cuMemcpyDtoHAsync, jobject to, jobject from, jlong bytes, jobject stream) {
  (void)type;
  struct zh_target memory;
  if (!zh_enter(env, to, &memory)) {
    return ZH_INVALID_VALUE;
  }
  int status = memory.array != NULL || memory.children != NULL
                   ? ZH_INVALID_VALUE
                   : ZH_DRIVER(copy_to_host_async, memory.address, zh_address(env, from),
                               (size_t)bytes, object(env, stream));
  zh_leave(env, &memory, 0);
  return status;
}

ZH_CALL(cuMemcpyDtoDAsync, jobject to, jobject from, jlong bytes, jobject stream) {
  (void)type;
  return ZH_DRIVER(copy_async, zh_address(env, to), zh_address(env, from), (size_t)bytes,
                   object(env, stream));
}

ZH_CALL(cuMemsetD8, jobject address, jbyte value, jlong bytes) {
  (void)type;
  return ZH_DRIVER(fill, zh_address(env, address), (unsigned char)value, (size_t)bytes);
}

ZH_CALL(cuMemsetD8Async, jobject address, jbyte value, jlong bytes, jobject stream) {
  (void)type;
  return ZH_DRIVER(fill_async, zh_address(env, address), (unsigned char)value, (size_t)bytes,
                   object(env, stream));
}
