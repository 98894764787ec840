// Sums of hashes of rows, as RowHashBatch.java defines them; HostRowHash.java is the same in Java.
// RowHashArguments.java writes the structs byte by byte.
#pragma once

#include "cursor.cuh"
#include "launch.cuh"

namespace zerohop {

// A column, with those below it right behind it.
struct __align__(16) HashColumn {
  uint64_t data;     // values or characters
  uint64_t offsets;  // of strings and lists
  uint64_t mask;     // 0: nothing is null
  uint32_t shape;    // the kind in two bits; above them the width, or the number of fields
  uint32_t end;      // index behind the column and all below it, in its table
};

enum ColumnKind : uint32_t { FIXED = 0, STRING = 1, LIST = 2, STRUCT = 3 };

// Rows of one table that are summed up together.
struct HashChunk {
  uint64_t result;
  uint32_t first_column;
  uint32_t columns;
  uint32_t top;  // columns that are not below others
  uint32_t first_row;
  uint32_t rows;
  uint32_t reserved;
};

struct RowHash {
  const HashColumn *columns;
  const HashChunk *chunks;
  uint32_t chunk_count;
  uint32_t reserved;
};

// RowHashBatch.java has these too.
constexpr uint64_t ROW_SEED = 0x726f77;
constexpr uint64_t FIXED_SEED = 0x6669786564;
constexpr uint64_t STRING_SEED = 0x737472696e67;
constexpr uint64_t LIST_SEED = 0x6c697374;
constexpr uint64_t STRUCT_SEED = 0x737472756374;
constexpr uint64_t NULL_HASH = 0x6e756c6c;
constexpr int MOST_DEPTH = 16;

// Columns of a table that a thread block keeps in shared memory; more are read where the host put
// them, which is slow but rare.
constexpr uint32_t SHARED_COLUMNS = 256;

// The finaliser of splitmix64; HashMix.java says where it comes from.
__device__ inline uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

__device__ inline uint64_t combine(uint64_t hash, uint64_t value) {
  return mix((hash ^ value) + 0x9e3779b97f4a7c15);
}

__device__ inline bool is_null(const HashColumn &column, uint32_t row) {
  return column.mask != 0 &&
         (reinterpret_cast<const uint32_t *>(column.mask)[row / 32] >> row % 32 & 1) == 0;
}

__device__ inline uint64_t hash_fixed(const HashColumn &column, uint32_t row) {
  const uint32_t width = column.shape >> 2;
  const uint64_t begin = FIXED_SEED + width;
  switch (width) {  // The same for all threads at a column of the row itself.
    case 1:
      return combine(begin, reinterpret_cast<const uint8_t *>(column.data)[row]);
    case 2:
      return combine(begin, reinterpret_cast<const uint16_t *>(column.data)[row]);
    case 4:
      return combine(begin, reinterpret_cast<const uint32_t *>(column.data)[row]);
    case 8:
      return combine(begin, reinterpret_cast<const uint64_t *>(column.data)[row]);
    default: {
      const uint64_t *halves = reinterpret_cast<const uint64_t *>(column.data) + 2ull * row;
      return combine(combine(begin, halves[0]), halves[1]);
    }
  }
}

// Characters lie at any address: each number is put together from the aligned words that hold it.
__device__ inline uint64_t hash_string(const HashColumn &column, uint32_t row) {
  const uint32_t *offsets = reinterpret_cast<const uint32_t *>(column.offsets);
  const uint32_t begin = offsets[row];
  uint32_t left = offsets[row + 1] - begin;
  uint64_t hash = combine(STRING_SEED, left);
  if (left == 0) {
    return hash;
  }
  const uint64_t at = column.data + begin;
  const uint64_t *words = reinterpret_cast<const uint64_t *>(at & ~7ull);
  const uint32_t skipped = at & 7;
  const uint32_t shift = skipped * 8;
  uint64_t low = *words;
  while (true) {
    uint64_t value = low >> shift;
    if (skipped + left > 8) {  // The next word holds a character too.
      low = *++words;
      value |= shift == 0 ? 0 : low << (64 - shift);
    }
    if (left <= 8) {
      return combine(hash, left == 8 ? value : value & ((1ull << left * 8) - 1));
    }
    hash = combine(hash, value);
    left -= 8;
  }
}

// Where a thread is among the fields of a row or struct, or among the items of a list.
struct Level {
  uint64_t hash;
  uint32_t column;
  uint32_t row;
  uint32_t left;
  bool items;  // the next one is in the next row of the same column
};

// The level of a list or struct that is not null.
__device__ inline Level level_of(const HashColumn *columns, uint32_t self, uint32_t row) {
  const HashColumn &column = columns[self];
  if ((column.shape & 3) == STRUCT) {
    return {STRUCT_SEED, self + 1, row, column.shape >> 2, false};
  }
  const uint32_t *offsets = reinterpret_cast<const uint32_t *>(column.offsets);
  const uint32_t begin = offsets[row];
  const uint32_t items = offsets[row + 1] - begin;
  return {combine(LIST_SEED, items), self + 1, begin, items, true};
}

// The hash of a row by one thread, which goes down into lists and structs by a stack of its own.
__device__ inline uint64_t hash_of_row(const HashColumn *columns, uint32_t top, uint32_t row) {
  Level above[MOST_DEPTH];
  int depth = 0;
  Level here = {ROW_SEED, 0, row, top, false};
  while (true) {
    uint64_t value;
    if (here.left == 0) {
      if (depth == 0) {
        return here.hash;
      }
      value = here.hash;
      here = above[--depth];
    } else {
      const uint32_t self = here.column;
      const uint32_t at = here.row;
      const HashColumn &column = columns[self];
      here.left--;
      if (here.items) {
        here.row++;
      } else {
        here.column = column.end;
      }
      const uint32_t kind = column.shape & 3;
      if (is_null(column, at)) {
        value = NULL_HASH;
      } else if (kind == FIXED) {
        value = hash_fixed(column, at);
      } else if (kind == STRING) {
        value = hash_string(column, at);
      } else {
        above[depth++] = here;
        here = level_of(columns, self, at);
        continue;
      }
    }
    here.hash = combine(here.hash, value);
  }
}

// The sum over a thread block; thread 0 has it.
template <int THREADS>
__device__ inline uint64_t block_sum(uint64_t value) {
  __shared__ uint64_t sums[THREADS / WARP];
  for (uint32_t step = WARP / 2; step > 0; step /= 2) {
    value += __shfl_down_sync(ALL, value, step);
  }
  if (threadIdx.x % WARP == 0) {
    sums[threadIdx.x / WARP] = value;
  }
  __syncthreads();
  uint64_t sum = 0;
  if (threadIdx.x == 0) {
    for (uint32_t warp = 0; warp < THREADS / WARP; warp++) {
      sum += sums[warp];
    }
  }
  return sum;
}

template <int THREADS>
__device__ inline void row_hash(const RowHash &work) {
  __shared__ HashColumn shared[SHARED_COLUMNS];
  for (uint32_t i = blockIdx.x; i < work.chunk_count; i += gridDim.x) {
    const HashChunk chunk = work.chunks[i];
    const HashColumn *columns = work.columns + chunk.first_column;
    __syncthreads();  // The chunk before is done with what is shared.
    if (chunk.columns <= SHARED_COLUMNS) {
      const uint4 *from = reinterpret_cast<const uint4 *>(columns);
      uint4 *to = reinterpret_cast<uint4 *>(shared);
      for (uint32_t word = threadIdx.x; word < 2 * chunk.columns; word += THREADS) {
        to[word] = from[word];
      }
      columns = shared;
      __syncthreads();
    }
    uint64_t sum = 0;
    for (uint32_t row = threadIdx.x; row < chunk.rows; row += THREADS) {
      sum += hash_of_row(columns, chunk.top, chunk.first_row + row);
    }
    sum = block_sum<THREADS>(sum);
    if (threadIdx.x == 0) {
      *reinterpret_cast<uint64_t *>(chunk.result) = sum;
    }
  }
}

}  // namespace zerohop
