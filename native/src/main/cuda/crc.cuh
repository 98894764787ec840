// CRC32C of blocks, as BlockChecksums.java asks for them.
//
// A CRC is the remainder of the bytes, as a polynomial over GF(2), by that of Castagnoli (RFC 3720);
// bits are reflected: the highest bit of a number is the coefficient of x^0. The remainder is linear,
// so parts are computed anywhere and added, each multiplied by x^(bits behind it).
#pragma once

#include "cursor.cuh"
#include "launch.cuh"

namespace zerohop {

struct Checksums {
  const uint8_t *blocks;      // the first of them, if they lie one behind the other
  const uint64_t *addresses;  // or of each one; else null
  const uint64_t *offsets;    // of each, counted as if they did, and where the last one ends
  uint32_t *results;          // one a block, then one a piece
  uint32_t count;
  uint32_t pieces;
};

// What a warp takes at a time, whatever blocks it belongs to. BlockChecksums.java has this, too.
constexpr uint64_t CRC_PIECE_BYTES = 16384;

constexpr uint32_t CRC_POLYNOMIAL = 0x82f63b78;
constexpr uint32_t CRC_ONE = 0x80000000;
constexpr uint32_t CRC_WORD_BITS = 32;

// Words that a lane loads before it needs them.
constexpr uint32_t CRC_AHEAD = 8;

// Between two words of a lane.
constexpr uint32_t CRC_STRIDE_BITS = WARP * CRC_WORD_BITS;

__host__ __device__ constexpr uint32_t crc_multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (int bit = 31; bit >= 0; bit--) {
    product ^= a & (0u - (b >> bit & 1));
    a = a >> 1 ^ (CRC_POLYNOMIAL & (0u - (a & 1)));
  }
  return product;
}

// x^bits.
__host__ __device__ constexpr uint32_t crc_power(uint64_t bits) {
  uint32_t result = CRC_ONE;
  uint32_t square = CRC_ONE >> 1;
  for (; bits != 0; bits >>= 1) {
    result = bits & 1 ? crc_multiply(result, square) : result;
    square = crc_multiply(square, square);
  }
  return result;
}

// What a CRC begins with: the word before the first byte that leaves all bits set behind it.
__host__ __device__ constexpr uint32_t crc_prefix() {
  uint32_t value = 0xffffffff;
  for (uint32_t bit = 0; bit < CRC_WORD_BITS; bit++) {  // divides by x
    value = value & CRC_ONE ? (value ^ CRC_POLYNOMIAL) << 1 | 1 : value << 1;
  }
  return value;
}

constexpr uint32_t CRC_PREFIX = crc_prefix();
constexpr uint32_t CRC_STRIDE = crc_power(CRC_STRIDE_BITS);

struct CrcPowers {
  uint32_t lane[WARP];   // x^(bits from the lane's last word to the end)
  uint32_t bytes[WARP];  // x^(8 * 2^i)
};

__host__ __device__ constexpr CrcPowers crc_powers() {
  CrcPowers powers = {};
  for (uint32_t i = 0; i < WARP; i++) {
    powers.lane[i] = crc_power(CRC_WORD_BITS * (WARP - i));
    powers.bytes[i] = crc_power(8ull << i);
  }
  return powers;
}

__device__ const CrcPowers CRC_POWERS = crc_powers();

// Multiplies by x^CRC_STRIDE_BITS, by tables in shared memory.
struct CrcTable {
  uint32_t entries[4][256];

  __device__ void fill() {
    for (uint32_t i = threadIdx.x; i < 1024; i += blockDim.x) {
      entries[i >> 8][i & 255] = crc_multiply((i & 255) << (i >> 8) * 8, CRC_STRIDE);
    }
  }

  __device__ uint32_t step(uint32_t value) const {
    return entries[0][value & 255] ^ entries[1][value >> 8 & 255] ^ entries[2][value >> 16 & 255] ^
           entries[3][value >> 24];
  }
};

// A lane's words at any address, each behind what the other lanes have. Aligned words that hold some
// of the bytes are read whole.
struct CrcWords {
  const uint32_t *words;
  uint32_t shift;

  __device__ explicit CrcWords(const uint8_t *at) {
    const uint64_t address = reinterpret_cast<uint64_t>(at);
    words = reinterpret_cast<const uint32_t *>(address & ~3ull);
    shift = (address & 3) * 8;
  }

  __device__ uint32_t get(uint32_t index) const {
    const uint32_t *here = words + index * WARP;
    return shift == 0 ? here[0] : __funnelshift_r(here[0], here[1], shift);
  }
};

// The word that begins 1 to 7 bytes before a part of a block: what the CRC begins with, if the block
// begins here, or else zeroes, and the first bytes.
__device__ inline uint32_t word_before(const uint8_t *begin, uint32_t bytes, bool first,
                                       int position) {
  uint64_t both = first ? CRC_PREFIX : 0;
  for (uint32_t i = 0; i < min(bytes, 4u); i++) {
    both |= static_cast<uint64_t>(begin[i]) << (32 + 8 * i);
  }
  const int skipped = position + 4;
  return static_cast<uint32_t>(skipped >= 0 ? both >> 8 * skipped : both << -8 * skipped);
}

// The remainder of a part of a block, the same in all lanes. Lanes take neighbouring words; the last
// word of the part is the last lane's.
__device__ inline uint32_t crc_of_part(const CrcTable &table, const uint8_t *begin, uint32_t bytes,
                                       bool first, uint32_t lane) {
  const uint32_t words = (bytes + (first ? 4 : 0) + 3) / 4;
  const uint32_t slots = (words + WARP - 1) / WARP * WARP;
  const uint8_t *zero = begin + bytes - 4 * static_cast<uint64_t>(slots);
  uint32_t value = 0;
  uint32_t slot = lane;
  // Only here there are words that are not whole, or none.
  for (; slot < min(slots, 2 * WARP); slot += WARP) {
    const int position = static_cast<int>(bytes) - static_cast<int>(4 * (slots - slot));
    value = table.step(value);
    if (position >= 0) {
      value ^= CrcWords(begin + position).get(0);
    } else if (slot >= slots - words) {
      value ^= word_before(begin, bytes, first, position);
    }
  }
  // Loads go ahead of the steps, which wait for one another.
  CrcWords next(zero + 4 * slot);
  for (; slot + (CRC_AHEAD - 1) * WARP < slots; slot += CRC_AHEAD * WARP) {
    uint32_t ahead[CRC_AHEAD];
#pragma unroll
    for (uint32_t i = 0; i < CRC_AHEAD; i++) {
      ahead[i] = next.get(i);
    }
#pragma unroll
    for (uint32_t i = 0; i < CRC_AHEAD; i++) {
      value = table.step(value) ^ ahead[i];
    }
    next.words += CRC_AHEAD * WARP;
  }
  for (; slot < slots; slot += WARP) {
    value = table.step(value) ^ next.get(0);
    next.words += WARP;
  }
  value = crc_multiply(value, CRC_POWERS.lane[lane]);
#pragma unroll
  for (int step = 1; step < WARP; step *= 2) {
    value ^= __shfl_xor_sync(ALL, value, step);
  }
  return value;
}

// Multiplies by x^(8 * bytes): each lane has a power for one bit of the number.
__device__ inline uint32_t crc_shift(uint32_t value, uint64_t bytes, uint32_t lane) {
  uint32_t power = bytes >> lane & 1 ? CRC_POWERS.bytes[lane] : CRC_ONE;
#pragma unroll
  for (int step = 1; step < WARP; step *= 2) {
    power = crc_multiply(power, __shfl_xor_sync(ALL, power, step));
  }
  return crc_multiply(value, power);
}

// The last block that begins at or before a place.
__device__ inline uint32_t block_at(const Checksums &work, uint64_t place, uint32_t lane) {
  uint32_t first = 0;
  uint32_t behind = work.count;
  while (behind - first > 1) {
    const uint32_t step = (behind - first + WARP - 1) / WARP;
    const uint32_t mine = first + lane * step;
    const uint32_t before =
        __popc(__ballot_sync(ALL, mine < behind && work.offsets[mine] <= place));
    if (before == 0) {
      break;  // Not even the first one.
    }
    behind = min(behind, first + before * step);
    first += (before - 1) * step;
  }
  return first;
}

__device__ inline void checksums(const Checksums &work) {
  __shared__ CrcTable table;
  table.fill();
  __syncthreads();
  const uint32_t lane = threadIdx.x % WARP;
  const uint32_t warps = blockDim.x / WARP * gridDim.x;
  for (uint32_t piece = threadIdx.x / WARP * gridDim.x + blockIdx.x; piece < work.pieces;
       piece += warps) {
    const uint64_t from = piece * CRC_PIECE_BYTES;
    const uint64_t to = from + CRC_PIECE_BYTES;
    for (uint32_t block = block_at(work, from, lane); block < work.count; block++) {
      const uint64_t start = work.offsets[block];
      const uint64_t end = work.offsets[block + 1];
      if (start >= to) {
        break;
      }
      const uint64_t begin = max(start, from);
      const uint64_t stop = min(end, to);
      if (begin >= stop) {
        continue;  // Empty, or it ends before this piece.
      }
      const bool first = start >= from;
      const uint8_t *bytes =
          work.addresses == nullptr
              ? work.blocks + begin
              : reinterpret_cast<const uint8_t *>(work.addresses[block]) + (begin - start);
      uint32_t value = crc_of_part(table, bytes, static_cast<uint32_t>(stop - begin), first, lane);
      if (end > to) {
        value = crc_shift(value, end - to, lane);
      }
      if (lane == 0) {
        work.results[first ? block : work.count + piece] = first ? ~value : value;
      }
    }
  }
}

}  // namespace zerohop
