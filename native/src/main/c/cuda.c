/*
 * The driver's virtual memory management, which JCuda's binding cannot call: its cuMemCreate reports
 * an invalid value. libcuda is found at run time, so that the library loads where there is none.
 *
 * Types and values are those of the CUDA driver API, "Virtual Memory Management" and "Memory
 * Management"; they are repeated here because nobody should need a CUDA toolkit to build this.
 */
#include "zerohop.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define ZH_CUDA(type, method) \
  JNIEXPORT type JNICALL Java_io_zerohop_device_cuda_DriverMemory_##method

enum {
  ZH_ALLOCATION_PINNED = 1,
  ZH_LOCATION_DEVICE = 1,
  ZH_ACCESS_READ_WRITE = 3,
  ZH_HANDLE_FABRIC = 8,
  ZH_FABRIC_BYTES = 64,
  ZH_FLUSH_CURRENT_CONTEXT = 0,
  ZH_FLUSH_TO_OWNER = 100,
  ZH_NOT_SUPPORTED = 801,
  ZH_INVALID_VALUE = 1
};

struct zh_location {
  int type;
  int id;
};

struct zh_properties {
  int type;
  int handle_types;
  struct zh_location location;
  void *win32;
  struct {
    unsigned char compression;
    unsigned char gpu_direct_rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
};

struct zh_access {
  struct zh_location location;
  int flags;
};

static struct {
  void *library;
  int (*granularity)(size_t *, const struct zh_properties *, int);
  int (*create)(uint64_t *, size_t, const struct zh_properties *, unsigned long long);
  int (*release)(uint64_t);
  int (*export)(void *, uint64_t, int, unsigned long long);
  int (*import)(uint64_t *, void *, int);
  int (*reserve)(uint64_t *, size_t, size_t, uint64_t, unsigned long long);
  int (*free)(uint64_t, size_t);
  int (*map)(uint64_t, size_t, size_t, uint64_t, unsigned long long);
  int (*unmap)(uint64_t, size_t);
  int (*access)(uint64_t, size_t, const struct zh_access *, size_t);
  int (*flush)(int, int); /* since CUDA 11.3; NULL in older drivers */
} driver;

/* Function pointers and object pointers are different things in C; POSIX says they convert. */
static int find(const char *name, void *target) {
  void *symbol = dlsym(driver.library, name);
  memcpy(target, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* Loads the driver's library for every library that comes after; whether all functions are there.
 * The caller makes sure that this happens once, before anything else of this file. */
ZH_CUDA(jboolean, open)(JNIEnv *env, jclass type, jstring path) {
  (void)type;
  const char *text = (*env)->GetStringUTFChars(env, path, NULL);
  if (text == NULL) {
    return JNI_FALSE;
  }
  void *library = dlopen(text, RTLD_NOW | RTLD_GLOBAL);
  (*env)->ReleaseStringUTFChars(env, path, text);
  if (library == NULL) {
    return JNI_FALSE;
  }
  driver.library = library;
  (void)find("cuFlushGPUDirectRDMAWrites", &driver.flush);
  int found = find("cuMemGetAllocationGranularity", &driver.granularity) &&
              find("cuMemCreate", &driver.create) && find("cuMemRelease", &driver.release) &&
              find("cuMemExportToShareableHandle", &driver.export) &&
              find("cuMemImportFromShareableHandle", &driver.import) &&
              find("cuMemAddressReserve", &driver.reserve) &&
              find("cuMemAddressFree", &driver.free) && find("cuMemMap", &driver.map) &&
              find("cuMemUnmap", &driver.unmap) && find("cuMemSetAccess", &driver.access);
  return found ? JNI_TRUE : JNI_FALSE;
}

static struct zh_properties properties(jint device, jint handle_types, jboolean rdma) {
  struct zh_properties wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.type = ZH_ALLOCATION_PINNED;
  wanted.handle_types = handle_types;
  wanted.location.type = ZH_LOCATION_DEVICE;
  wanted.location.id = device;
  wanted.flags.gpu_direct_rdma = rdma ? 1 : 0;
  return wanted;
}

/* Results come back in result[0]; the return value is the driver's status. */
static void give(JNIEnv *env, jlongArray result, uint64_t value) {
  jlong word = (jlong)value;
  (*env)->SetLongArrayRegion(env, result, 0, 1, &word);
}

ZH_CUDA(jint, granularity)
(JNIEnv *env, jclass type, jint device, jint handle_types, jlongArray result) {
  (void)type;
  struct zh_properties wanted = properties(device, handle_types, JNI_FALSE);
  size_t bytes = 0;
  int status = driver.granularity(&bytes, &wanted, 0);
  give(env, result, bytes);
  return status;
}

ZH_CUDA(jint, create)
(JNIEnv *env, jclass type, jint device, jint handle_types, jboolean rdma, jlong bytes,
 jlongArray result) {
  (void)type;
  struct zh_properties wanted = properties(device, handle_types, rdma);
  uint64_t handle = 0;
  int status = driver.create(&handle, (size_t)bytes, &wanted, 0);
  give(env, result, handle);
  return status;
}

ZH_CUDA(jint, release)(JNIEnv *env, jclass type, jlong handle) {
  (void)env;
  (void)type;
  return driver.release((uint64_t)handle);
}

/* A new descriptor of the memory, the caller's. */
ZH_CUDA(jint, exportDescriptor)
(JNIEnv *env, jclass type, jlong handle, jint handle_type, jlongArray result) {
  (void)type;
  int fd = -1;
  int status = driver.export(&fd, (uint64_t)handle, handle_type, 0);
  give(env, result, (uint64_t)(int64_t)fd);
  return status;
}

/* The descriptor stays the caller's. */
ZH_CUDA(jint, importDescriptor)
(JNIEnv *env, jclass type, jint fd, jint handle_type, jlongArray result) {
  (void)type;
  uint64_t handle = 0;
  int status = driver.import(&handle, (void *)(intptr_t)fd, handle_type);
  give(env, result, handle);
  return status;
}

/* Writes the memory's fabric handle, ZH_FABRIC_BYTES, to the array. */
ZH_CUDA(jint, exportFabric)(JNIEnv *env, jclass type, jlong handle, jbyteArray to) {
  (void)type;
  jbyte bytes[ZH_FABRIC_BYTES] = {0};
  int status = driver.export(bytes, (uint64_t)handle, ZH_HANDLE_FABRIC, 0);
  (*env)->SetByteArrayRegion(env, to, 0, ZH_FABRIC_BYTES, bytes);
  return status;
}

ZH_CUDA(jint, importFabric)(JNIEnv *env, jclass type, jbyteArray from, jlongArray result) {
  (void)type;
  jbyte bytes[ZH_FABRIC_BYTES];
  (*env)->GetByteArrayRegion(env, from, 0, ZH_FABRIC_BYTES, bytes);
  if ((*env)->ExceptionCheck(env)) {
    return ZH_INVALID_VALUE;
  }
  uint64_t handle = 0;
  int status = driver.import(&handle, bytes, ZH_HANDLE_FABRIC);
  give(env, result, handle);
  return status;
}

/* Addresses for all of the memory, readable and writable by one device. All of it or nothing. */
ZH_CUDA(jint, map)
(JNIEnv *env, jclass type, jint device, jlong handle, jlong bytes, jlongArray result) {
  (void)type;
  uint64_t address = 0;
  int status = driver.reserve(&address, (size_t)bytes, 0, 0, 0);
  if (status != 0) {
    return status;
  }
  status = driver.map(address, (size_t)bytes, 0, (uint64_t)handle, 0);
  if (status == 0) {
    struct zh_access access = {{ZH_LOCATION_DEVICE, device}, ZH_ACCESS_READ_WRITE};
    status = driver.access(address, (size_t)bytes, &access, 1);
    if (status != 0) {
      (void)driver.unmap(address, (size_t)bytes);
    }
  }
  if (status != 0) {
    (void)driver.free(address, (size_t)bytes);
    return status;
  }
  give(env, result, address);
  return 0;
}

ZH_CUDA(jint, flushAdapterWrites)(JNIEnv *env, jclass type) {
  (void)env;
  (void)type;
  return driver.flush == NULL ? ZH_NOT_SUPPORTED
                              : driver.flush(ZH_FLUSH_CURRENT_CONTEXT, ZH_FLUSH_TO_OWNER);
}

ZH_CUDA(jint, unmap)(JNIEnv *env, jclass type, jlong address, jlong bytes) {
  (void)env;
  (void)type;
  int status = driver.unmap((uint64_t)address, (size_t)bytes);
  int freed = driver.free((uint64_t)address, (size_t)bytes);
  return status != 0 ? status : freed;
}
