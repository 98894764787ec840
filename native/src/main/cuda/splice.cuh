// Puts pieces of columns together: 32-bit integers with something added to them, and bits that do
// not begin where a word does. What is moved as it is goes by the gather.
#pragma once

#include "launch.cuh"

namespace zerohop {

// count integers, each by delta larger.
struct OffsetsPiece {
  uint64_t source;
  uint64_t destination;
  uint32_t count;
  int32_t delta;
};

// A destination of bits and which of the runs make it up.
struct BitColumn {
  uint64_t destination;
  uint32_t bits;
  uint32_t first_run;
  uint32_t runs;
  uint32_t reserved;
};

// Bits of a column from `start` on, up to the next run; ones if there is no source.
struct BitRun {
  uint64_t source;
  uint32_t start;
  uint32_t reserved;
};

struct Splice {
  const OffsetsPiece *offsets;
  const BitColumn *columns;
  const BitRun *runs;
  uint32_t offsets_count;
  uint32_t column_count;
};

// Loads of one thread that are under way together, so that a link is kept busy.
constexpr int OFFSETS_UNROLL = 8;

__device__ inline void copy_offsets(const OffsetsPiece &piece) {
  const int32_t *source = reinterpret_cast<const int32_t *>(piece.source);
  int32_t *destination = reinterpret_cast<int32_t *>(piece.destination);
  for (uint32_t base = threadIdx.x; base < piece.count; base += blockDim.x * OFFSETS_UNROLL) {
    int32_t values[OFFSETS_UNROLL];
#pragma unroll
    for (int i = 0; i < OFFSETS_UNROLL; i++) {
      const uint32_t at = base + i * blockDim.x;
      values[i] = at < piece.count ? source[at] : 0;
    }
#pragma unroll
    for (int i = 0; i < OFFSETS_UNROLL; i++) {
      const uint32_t at = base + i * blockDim.x;
      if (at < piece.count) {
        destination[at] = values[i] + piece.delta;
      }
    }
  }
}

// At most 32 bits of a run, from its bit `local` on, in the low end; the rest is undefined.
__device__ inline uint32_t bits_of(const BitRun &run, uint32_t local, uint32_t count) {
  if (run.source == 0) {
    return 0xffffffffu;
  }
  const uint32_t *words = reinterpret_cast<const uint32_t *>(run.source) + local / 32;
  const uint32_t shift = local % 32;
  uint32_t value = words[0] >> shift;
  if (shift + count > 32) {
    value |= words[1] << (32 - shift);
  }
  return value;
}

// Index of the run that holds a bit: the last that begins at it or before.
__device__ inline uint32_t run_of(const BitRun *runs, uint32_t count, uint32_t bit) {
  uint32_t low = 0;
  uint32_t high = count;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (runs[middle].start <= bit) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

__device__ inline uint32_t word_of(const BitColumn &column, const BitRun *runs, uint32_t word) {
  uint32_t bit = word * 32;
  const uint32_t end = min(column.bits, bit + 32);
  uint32_t run = run_of(runs, column.runs, bit);
  uint32_t value = 0;
  uint32_t filled = 0;
  while (bit < end) {
    const uint32_t until = run + 1 < column.runs ? min(end, runs[run + 1].start) : end;
    const uint32_t count = until - bit;
    uint32_t part = bits_of(runs[run], bit - runs[run].start, count);
    if (count < 32) {
      part &= (1u << count) - 1;
    }
    value |= part << filled;
    filled += count;
    bit = until;
    run++;
  }
  return value;
}

__device__ inline void splice(const Splice &work) {
  for (uint32_t i = blockIdx.x; i < work.offsets_count; i += gridDim.x) {
    copy_offsets(work.offsets[i]);
  }
  const uint32_t threads = gridDim.x * blockDim.x;
  for (uint32_t i = 0; i < work.column_count; i++) {
    const BitColumn column = work.columns[i];
    uint32_t *destination = reinterpret_cast<uint32_t *>(column.destination);
    const uint32_t words = column.bits / 32 + (column.bits % 32 != 0);
    for (uint32_t word = blockIdx.x * blockDim.x + threadIdx.x; word < words; word += threads) {
      destination[word] = word_of(column, work.runs + column.first_run, word);
    }
  }
}

}  // namespace zerohop
