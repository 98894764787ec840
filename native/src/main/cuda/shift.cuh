// Copies by one warp between places that need not be aligned to one another: 16-byte stores to the
// destination, each put together from the two aligned 16-byte words of the source that hold it.
#pragma once

#include "cursor.cuh"

namespace zerohop {

// The 16 bytes that begin `shift` bytes into the 32 bytes of `low` and `high`; 0 < shift < 16.
__device__ inline uint4 shifted(const uint4 &low, const uint4 &high, uint32_t shift) {
  const uint32_t bits = (shift % 4) * 8;
  uint32_t a, b, c, d, e;
  switch (shift / 4) {  // The same for all lanes.
    case 0:
      a = low.x, b = low.y, c = low.z, d = low.w, e = high.x;
      break;
    case 1:
      a = low.y, b = low.z, c = low.w, d = high.x, e = high.y;
      break;
    case 2:
      a = low.z, b = low.w, c = high.x, d = high.y, e = high.z;
      break;
    default:
      a = low.w, b = high.x, c = high.y, d = high.z, e = high.w;
      break;
  }
  return make_uint4(__funnelshift_r(a, b, bits), __funnelshift_r(b, c, bits),
                    __funnelshift_r(c, d, bits), __funnelshift_r(d, e, bits));
}

// Up to 15 bytes each at the head and at the tail, by half a warp each.
__device__ inline void copy_edges(uint64_t destination, const uint8_t *source, uint32_t head,
                                  uint32_t body, uint32_t tail, uint32_t lane) {
  uint8_t *to = reinterpret_cast<uint8_t *>(destination);
  if (lane < 16) {
    if (lane < head) {
      to[lane] = source[lane];
    }
  } else if (lane - 16 < tail) {
    to[head + body + lane - 16] = source[head + body + lane - 16];
  }
}

// Where the aligned part of a destination begins, and how long it is.
struct Parts {
  uint32_t head;
  uint32_t body;
  uint32_t tail;

  __device__ Parts(uint64_t destination, uint32_t length) {
    head = static_cast<uint32_t>(-destination) & 15;
    head = head < length ? head : length;
    body = (length - head) & ~15u;
    tail = length - head - body;
  }
};

// Copies with UNROLL loads of each lane in flight. The aligned words around the source are read
// whole; no 16-byte word is cut by the end of an allocation.
template <int UNROLL>
__device__ inline void warp_copy(uint64_t destination, const uint8_t *source, uint32_t length,
                                 uint32_t lane) {
  const Parts parts(destination, length);
  copy_edges(destination, source, parts.head, parts.body, parts.tail, lane);
  uint4 *to = reinterpret_cast<uint4 *>(destination + parts.head);
  const uint8_t *body = source + parts.head;
  const uint32_t shift = static_cast<uint32_t>(reinterpret_cast<uint64_t>(body)) & 15;
  const uint4 *from = reinterpret_cast<const uint4 *>(body - shift);
  const uint32_t words = parts.body / 16;
  uint32_t at = lane;
  if (shift == 0) {
    for (; at + (UNROLL - 1) * WARP < words; at += UNROLL * WARP) {
      uint4 value[UNROLL];
#pragma unroll
      for (int i = 0; i < UNROLL; i++) {
        value[i] = from[at + i * WARP];
      }
#pragma unroll
      for (int i = 0; i < UNROLL; i++) {
        to[at + i * WARP] = value[i];
      }
    }
    for (; at < words; at += WARP) {
      to[at] = from[at];
    }
  } else {
    for (; at + (UNROLL - 1) * WARP < words; at += UNROLL * WARP) {
      uint4 low[UNROLL];
      uint4 high[UNROLL];
#pragma unroll
      for (int i = 0; i < UNROLL; i++) {
        low[i] = from[at + i * WARP];
        high[i] = from[at + i * WARP + 1];
      }
#pragma unroll
      for (int i = 0; i < UNROLL; i++) {
        to[at + i * WARP] = shifted(low[i], high[i], shift);
      }
    }
    for (; at < words; at += WARP) {
      to[at] = shifted(from[at], from[at + 1], shift);
    }
  }
}

}  // namespace zerohop
