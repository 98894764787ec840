/*
 * A stand-in for libcuda that says how it was called, one line a call, and gives back what the test
 * can foresee. Host memory it has is real; device addresses are numbers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAY(...) dprintf(STDOUT_FILENO, __VA_ARGS__)
#define NUMBER(pointer) ((unsigned long long)(uintptr_t)(pointer))

enum { NOT_READY = 600, INVALID_VALUE = 1, NO_DEVICE = 100 };

static int answer; /* what the next call of cuStreamQuery says */

int cuInit(unsigned flags) {
  SAY("cuInit %u\n", flags);
  return flags == 0 ? 0 : INVALID_VALUE;
}

int cuDeviceGet(int *device, int ordinal) {
  SAY("cuDeviceGet %d\n", ordinal);
  *device = ordinal + 40;
  return ordinal < 2 ? 0 : NO_DEVICE;
}

int cuDeviceGetCount(int *count) {
  SAY("cuDeviceGetCount\n");
  *count = 2;
  return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  SAY("cuDeviceGetAttribute %d of %d\n", attribute, device);
  *value = attribute * 3;
  return 0;
}

int cuDeviceGetUuid(unsigned char *uuid, int device) {
  SAY("cuDeviceGetUuid of %d\n", device);
  for (int i = 0; i < 16; i++) {
    uuid[i] = (unsigned char)(0xf8 + i);
  }
  return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  SAY("cuDeviceTotalMem of %d\n", device);
  *bytes = (size_t)0x1122334455ULL;
  return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  SAY("cuDevicePrimaryCtxRetain of %d\n", device);
  *context = (void *)0xc0ffee000001ULL;
  return 0;
}

int cuCtxSetCurrent(void *context) {
  SAY("cuCtxSetCurrent %llx\n", NUMBER(context));
  return 0;
}

int cuEventCreate(void **event, unsigned flags) {
  SAY("cuEventCreate %u\n", flags);
  *event = (void *)0xe0e0e0000002ULL;
  return 0;
}

int cuEventDestroy_v2(void *event) {
  SAY("cuEventDestroy %llx\n", NUMBER(event));
  return 0;
}

int cuEventQuery(void *event) {
  SAY("cuEventQuery %llx\n", NUMBER(event));
  return NOT_READY;
}

int cuEventRecord(void *event, void *stream) {
  SAY("cuEventRecord %llx in %llx\n", NUMBER(event), NUMBER(stream));
  return 0;
}

int cuStreamCreate(void **stream, unsigned flags) {
  SAY("cuStreamCreate %u\n", flags);
  *stream = (void *)0x57e400000003ULL;
  return 0;
}

int cuStreamDestroy_v2(void *stream) {
  SAY("cuStreamDestroy %llx\n", NUMBER(stream));
  return 0;
}

int cuStreamQuery(void *stream) {
  SAY("cuStreamQuery %llx\n", NUMBER(stream));
  int said = answer;
  answer = NOT_READY - answer;
  return said;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  SAY("cuStreamWaitEvent %llx for %llx, %u\n", NUMBER(stream), NUMBER(event), flags);
  return 0;
}

int cuStreamWriteValue32_v2(void *stream, uint64_t address, uint32_t value, unsigned flags) {
  SAY("cuStreamWriteValue32 %llx at %llx: %u, %u\n", NUMBER(stream), NUMBER(address), value, flags);
  return 0;
}

int cuModuleLoadDataEx(void **module, const char *image, unsigned count, int *options,
                       void **values) {
  (void)options;
  (void)values;
  SAY("cuModuleLoadDataEx \"%s\" with %u options\n", image, count);
  *module = (void *)0x300000000004ULL;
  return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  SAY("cuModuleGetFunction %s of %llx\n", name, NUMBER(module));
  *function = (void *)0xf00000000005ULL;
  return 0;
}

int cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *module, const char *name) {
  SAY("cuModuleGetGlobal %s of %llx\n", name, NUMBER(module));
  *address = 0x700000000006ULL;
  *bytes = 24;
  return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
  SAY("cuFuncSetAttribute %llx: %d = %d\n", NUMBER(function), attribute, value);
  return 0;
}

/* The test says by the shared bytes how many arguments there are; each is a struct of 16 bytes. */
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **arguments, void **extra) {
  SAY("cuLaunchKernel %llx %ux%ux%u %ux%ux%u in %llx%s", NUMBER(function), gx, gy, gz, bx, by, bz,
      NUMBER(stream), extra == NULL ? "" : ", extra");
  for (unsigned i = 0; i < shared; i++) {
    uint64_t words[2];
    memcpy(words, arguments[i], sizeof words);
    SAY(" (%llx %llx)", NUMBER(words[0]), NUMBER(words[1]));
  }
  SAY("\n");
  return 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  SAY("cuMemAlloc %zu\n", bytes);
  *address = 0xd00000000007ULL;
  return 0;
}

int cuMemFree_v2(uint64_t address) {
  SAY("cuMemFree %llx\n", NUMBER(address));
  return 0;
}

static void *pinned;

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  SAY("cuMemHostAlloc %zu, %u\n", bytes, flags);
  *memory = pinned = calloc(1, bytes);
  return 0;
}

int cuMemFreeHost(void *memory) {
  SAY("cuMemFreeHost of what %s\n", memory == pinned ? "was allocated" : "was not allocated");
  free(pinned);
  pinned = NULL;
  return 0;
}

int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags) {
  SAY("cuMemHostRegister %llx, %zu, %u\n", NUMBER(memory), bytes, flags);
  return 0;
}

int cuMemHostUnregister(void *memory) {
  SAY("cuMemHostUnregister %llx\n", NUMBER(memory));
  return 0;
}

int cuMemHostGetDevicePointer_v2(uint64_t *address, void *memory, unsigned flags) {
  SAY("cuMemHostGetDevicePointer %llx, %u\n", NUMBER(memory), flags);
  *address = (uint64_t)(uintptr_t)memory + 0x10000;
  return 0;
}

/* The bytes that lie at a device address are 1, 2, 3 and so on. */
static void read_device(unsigned char *to, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    to[i] = (unsigned char)(i + 1);
  }
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  SAY("cuMemcpyDtoH from %llx, %zu\n", NUMBER(from), bytes);
  read_device(to, bytes);
  return 0;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  SAY("cuMemcpyDtoHAsync from %llx, %zu in %llx\n", NUMBER(from), bytes, NUMBER(stream));
  read_device(to, bytes);
  return 0;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  SAY("cuMemcpyDtoDAsync from %llx to %llx, %zu in %llx\n", NUMBER(from), NUMBER(to), bytes,
      NUMBER(stream));
  return 0;
}

int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t bytes) {
  SAY("cuMemsetD8 %llx, %u, %zu\n", NUMBER(address), value, bytes);
  return 0;
}

int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void *stream) {
  SAY("cuMemsetD8Async %llx, %u, %zu in %llx\n", NUMBER(address), value, bytes, NUMBER(stream));
  return 0;
}
