/*
 * NVML's counters of NVLink and PCIe, as they stand. What cannot be read is null.
 *
 * Types and values are those of the NVML API reference, "Field Value Queries"; they are repeated
 * here so that NVML's header, which not every CUDA toolkit brings, is not needed.
 */
#include "link_counter.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { UUID_BYTES = 96, MAX_LINKS = 36, UNSIGNED_INT = 1 };

/* Of NVLink without the protocol's own bytes, in KiB; of PCIe in bytes, which may wrap. */
enum { NVLINK_TX = 138, NVLINK_RX = 139, PCIE_TX = 197, PCIE_RX = 198 };

typedef struct device *device;

struct field {
  unsigned id;
  unsigned scope;
  long long timestamp;
  long long latency;
  int type;
  int status;
  union {
    unsigned narrow;
    unsigned long long wide;
  } value;
};

static struct {
  int usable;
  int (*init)(void);
  int (*count)(unsigned *);
  int (*by_index)(unsigned, device *);
  int (*uuid)(device, char *, unsigned);
  int (*fields)(device, int, struct field *);
} nvml;

static int find(void *library, const char *name, void *target) {
  void *symbol = dlsym(library, name);
  memcpy(target, &symbol, sizeof symbol);
  return symbol != NULL;
}

static void load(void) {
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  nvml.usable = library != NULL && find(library, "nvmlInit_v2", &nvml.init) &&
                find(library, "nvmlDeviceGetCount_v2", &nvml.count) &&
                find(library, "nvmlDeviceGetHandleByIndex_v2", &nvml.by_index) &&
                find(library, "nvmlDeviceGetUUID", &nvml.uuid) &&
                find(library, "nvmlDeviceGetFieldValues", &nvml.fields) && nvml.init() == 0;
}

static int read_field(device gpu, unsigned id, unsigned scope, uint64_t *value) {
  struct field field;
  memset(&field, 0, sizeof field);
  field.id = id;
  field.scope = scope;
  if (nvml.fields(gpu, 1, &field) != 0 || field.status != 0) {
    return 0;
  }
  *value = field.type == UNSIGNED_INT ? field.value.narrow : field.value.wide;
  return 1;
}

/* Adds up a GPU's links; where they cannot be read one by one, asks for their sum. */
static int read_links(device gpu, unsigned id, uint64_t *sum) {
  int links = 0;
  uint64_t value = 0;
  *sum = 0;
  for (unsigned link = 0; link < MAX_LINKS; link++) {
    if (read_field(gpu, id, link, &value)) {
      *sum += value;
      links++;
    }
  }
  return links > 0 ? links : read_field(gpu, id, UINT_MAX, sum);
}

static void write_value(FILE *out, const char *name, int known, const uint64_t *value) {
  if (known) {
    fprintf(out, ",\"%s\":%" PRIu64, name, *value);
  } else {
    fprintf(out, ",\"%s\":null", name);
  }
}

static void write_gpu(FILE *out, device gpu, const char *uuid) {
  uint64_t value = 0;
  int links = read_links(gpu, NVLINK_RX, &value);
  fprintf(out, "{\"uuid\":\"%s\",\"links\":%d", uuid, links);
  write_value(out, "nvlink_rx_kib", links > 0, &value);
  write_value(out, "nvlink_tx_kib", read_links(gpu, NVLINK_TX, &value) > 0, &value);
  write_value(out, "pcie_rx_bytes", read_field(gpu, PCIE_RX, 0, &value), &value);
  write_value(out, "pcie_tx_bytes", read_field(gpu, PCIE_TX, 0, &value), &value);
  fputc('}', out);
}

void link_counter_write(FILE *out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  unsigned gpus = 0;
  int written = 0;
  if (!nvml.usable || nvml.count(&gpus) != 0) {
    gpus = 0;
  }
  fputc('[', out);
  for (unsigned i = 0; i < gpus; i++) {
    device gpu = NULL;
    char uuid[UUID_BYTES] = "";
    if (nvml.by_index(i, &gpu) == 0 && nvml.uuid(gpu, uuid, sizeof uuid) == 0) {
      fputs(written++ > 0 ? "," : "", out);
      write_gpu(out, gpu, uuid);
    }
  }
  fputc(']', out);
}
