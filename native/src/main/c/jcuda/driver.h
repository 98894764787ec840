/*
 * The functions of libcuda that are called, by the names that the library has them under: those of
 * the CUDA driver API with the version that JCuda's own build for CUDA 12 binds. The library is
 * found at run time, so that nobody needs a CUDA toolkit to build this.
 */
#ifndef ZEROHOP_JCUDA_DRIVER_H
#define ZEROHOP_JCUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t zh_device_address;
typedef void *zh_object; /* a context, stream, event, module or function */

/* X(member, name, parameters) */
#define ZH_DRIVER_FUNCTIONS(X)                                                                     \
  X(init, "cuInit", (unsigned))                                                                    \
  X(device_get, "cuDeviceGet", (int *, int))                                                       \
  X(device_count, "cuDeviceGetCount", (int *))                                                     \
  X(device_attribute, "cuDeviceGetAttribute", (int *, int, int))                                   \
  X(device_uuid, "cuDeviceGetUuid", (void *, int))                                                 \
  X(device_memory, "cuDeviceTotalMem_v2", (size_t *, int))                                         \
  X(context_retain, "cuDevicePrimaryCtxRetain", (zh_object *, int))                                \
  X(context_set, "cuCtxSetCurrent", (zh_object))                                                   \
  X(event_create, "cuEventCreate", (zh_object *, unsigned))                                        \
  X(event_destroy, "cuEventDestroy_v2", (zh_object))                                               \
  X(event_query, "cuEventQuery", (zh_object))                                                      \
  X(event_record, "cuEventRecord", (zh_object, zh_object))                                         \
  X(stream_create, "cuStreamCreate", (zh_object *, unsigned))                                      \
  X(stream_destroy, "cuStreamDestroy_v2", (zh_object))                                             \
  X(stream_query, "cuStreamQuery", (zh_object))                                                    \
  X(stream_wait, "cuStreamWaitEvent", (zh_object, zh_object, unsigned))                            \
  X(stream_write, "cuStreamWriteValue32_v2", (zh_object, zh_device_address, uint32_t, unsigned))   \
  X(module_load, "cuModuleLoadDataEx", (zh_object *, const void *, unsigned, int *, void **))      \
  X(module_function, "cuModuleGetFunction", (zh_object *, zh_object, const char *))                \
  X(module_global, "cuModuleGetGlobal_v2",                                                         \
    (zh_device_address *, size_t *, zh_object, const char *))                                      \
  X(function_attribute, "cuFuncSetAttribute", (zh_object, int, int))                               \
  X(launch, "cuLaunchKernel",                                                                      \
    (zh_object, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, zh_object,   \
     void **, void **))                                                                            \
  X(alloc, "cuMemAlloc_v2", (zh_device_address *, size_t))                                         \
  X(free, "cuMemFree_v2", (zh_device_address))                                                     \
  X(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                     \
  X(host_free, "cuMemFreeHost", (void *))                                                          \
  X(host_register, "cuMemHostRegister_v2", (void *, size_t, unsigned))                             \
  X(host_unregister, "cuMemHostUnregister", (void *))                                              \
  X(host_device_pointer, "cuMemHostGetDevicePointer_v2", (zh_device_address *, void *, unsigned))  \
  X(copy_to_host, "cuMemcpyDtoH_v2", (void *, zh_device_address, size_t))                          \
  X(copy_to_host_async, "cuMemcpyDtoHAsync_v2", (void *, zh_device_address, size_t, zh_object))    \
  X(copy_async, "cuMemcpyDtoDAsync_v2", (zh_device_address, zh_device_address, size_t, zh_object)) \
  X(fill, "cuMemsetD8_v2", (zh_device_address, unsigned char, size_t))                             \
  X(fill_async, "cuMemsetD8Async", (zh_device_address, unsigned char, size_t, zh_object))

#endif
