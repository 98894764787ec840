/*
 * Counts what CUDA copies in a process, by where from, where to and how large.
 *
 * The driver loads this library when it starts (CUDA_INJECTION64_PATH), before anything can be
 * copied. Each mark appends one line of JSON to the file COPY_COUNTER_OUT.<pid>, with the totals
 * since then: the difference of two lines is what was copied between them.
 *
 * CUPTI sees copies that are asked for as copies, by the copy engines or not. What a kernel loads
 * and stores by itself it does not see; of that, the counters of the links tell (link_counter.c).
 */
#include "link_counter.h"

#include <cupti.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KINDS = 11, PLACES = 8, SIZES = 6, FIRST_SIZE = 1024, SIZE_STEP = 16 };
enum { BUFFER_BYTES = 4 << 20, BUFFER_ALIGNMENT = 8 };

/* In the order of CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind. */
static const char *const KIND_NAMES[KINDS] = {"unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                              "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
static const char *const PLACE_NAMES[PLACES] = {"unknown",       "pageable",      "pinned",
                                                "device",        "array",         "managed",
                                                "device_static", "managed_static"};

struct total {
  uint64_t copies;
  uint64_t bytes;
  uint64_t sizes[SIZES]; /* copies of up to 1 KiB, 16 KiB, 256 KiB, 4 MiB, 64 MiB, and larger */
};

static struct {
  pthread_mutex_t lock;
  struct total totals[KINDS][PLACES][PLACES];
  uint64_t dropped;
  int injected;
  CUptiResult status;
} counter = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add(unsigned kind, unsigned from, unsigned to, uint64_t copies, uint64_t bytes) {
  struct total *total =
      &counter.totals[kind < KINDS ? kind : 0][from < PLACES ? from : 0][to < PLACES ? to : 0];
  unsigned size = 0;
  uint64_t limit = FIRST_SIZE;
  while (size < SIZES - 1 && bytes / copies > limit) {
    limit *= SIZE_STEP;
    size++;
  }
  total->copies += copies;
  total->bytes += bytes;
  total->sizes[size] += copies;
}

static void add_record(const CUpti_Activity *record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const CUpti_ActivityMemcpy6 *copy = (const CUpti_ActivityMemcpy6 *)record;
    add(copy->copyKind, copy->srcKind, copy->dstKind, copy->copyCount > 0 ? copy->copyCount : 1,
        copy->bytes);
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
    const CUpti_ActivityMemcpyPtoP4 *copy = (const CUpti_ActivityMemcpyPtoP4 *)record;
    add(copy->copyKind, copy->srcKind, copy->dstKind, 1, copy->bytes);
  }
}

/* Without a buffer CUPTI drops the record, and says so when the next buffer is done. */
static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most) {
  *buffer = aligned_alloc(BUFFER_ALIGNMENT, BUFFER_BYTES);
  *size = *buffer == NULL ? 0 : BUFFER_BYTES;
  *most = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid) {
  (void)size;
  size_t dropped = 0;
  CUpti_Activity *record = NULL;
  pthread_mutex_lock(&counter.lock);
  while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    add_record(record);
  }
  if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS) {
    counter.dropped += dropped;
  }
  pthread_mutex_unlock(&counter.lock);
  free(buffer);
}

/* Called by the driver. The application runs on whatever happens here. */
int InitializeInjection(void) {
  CUptiResult status = cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  if (status == CUPTI_SUCCESS) {
    status = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
  }
  if (status == CUPTI_SUCCESS) {
    status = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2);
  }
  pthread_mutex_lock(&counter.lock);
  counter.status = status;
  counter.injected = 1;
  pthread_mutex_unlock(&counter.lock);
  return 1;
}

static const char *state(void) {
  const char *text = "unknown to CUPTI";
  if (!counter.injected) {
    return "not loaded by CUDA";
  }
  if (counter.status == CUPTI_SUCCESS) {
    return "counting";
  }
  (void)cuptiGetResultString(counter.status, &text);
  return text;
}

static void write_total(FILE *out, int kind, int from, int to, const struct total *total) {
  fprintf(out,
          "{\"kind\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"copies\":%" PRIu64 ",\"bytes\":%" PRIu64
          ",\"sizes\":[",
          KIND_NAMES[kind], PLACE_NAMES[from], PLACE_NAMES[to], total->copies, total->bytes);
  for (int i = 0; i < SIZES; i++) {
    fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", total->sizes[i]);
  }
  fputs("]}", out);
}

static void write_totals(FILE *out) {
  int written = 0;
  for (int kind = 0; kind < KINDS; kind++) {
    for (int from = 0; from < PLACES; from++) {
      for (int to = 0; to < PLACES; to++) {
        const struct total *total = &counter.totals[kind][from][to];
        if (total->copies > 0) {
          fputs(written++ > 0 ? "," : "", out);
          write_total(out, kind, from, to, total);
        }
      }
    }
  }
}

/* Appends a line; 0 or the error number. What was asked for must have ended, or it is not in it. */
int copy_counter_write(int64_t mark) {
  char path[PATH_MAX];
  const char *prefix = getenv("COPY_COUNTER_OUT");
  snprintf(path, sizeof path, "%s.%ld", prefix == NULL ? "copy_counter" : prefix, (long)getpid());
  /* Not under the lock: this calls take_buffer. */
  if (counter.injected && counter.status == CUPTI_SUCCESS) {
    counter.status = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  }
  FILE *out = fopen(path, "a");
  if (out == NULL) {
    return errno;
  }
  pthread_mutex_lock(&counter.lock);
  fprintf(out, "{\"mark\":%" PRId64 ",\"state\":\"%s\",\"dropped\":%" PRIu64 ",\"copies\":[", mark,
          state(), counter.dropped);
  write_totals(out);
  pthread_mutex_unlock(&counter.lock);
  fputs("],\"gpus\":", out);
  link_counter_write(out);
  fputs("}\n", out);
  int failed = ferror(out);
  return fclose(out) != 0 || failed ? EIO : 0;
}

/* For Java. Its arguments are plain numbers, so that a host without a JDK can compile this. */
int32_t Java_io_zerohop_gpu_CopyCounter_write(void *env, void *type, int64_t mark) {
  (void)env;
  (void)type;
  return copy_counter_write(mark);
}
