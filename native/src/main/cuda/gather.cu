// One launch moves a whole window: thousands of copies of any length and alignment, from any
// number of peers. Each warp works through its own part of the list, on its own.
#include "bulk.cuh"
#include "crc.cuh"
#include "cursor.cuh"
#include "launch.cuh"
#include "rowhash.cuh"
#include "shift.cuh"
#include "signal.cuh"
#include "splice.cuh"

namespace zerohop {

// Before the copies: waits for what must be ready. The same answer for the whole thread block.
__device__ inline bool begin(const Gather &gather) {
  if (gather.wait_count == 0 && !gather.conditional) {
    return true;
  }
  __shared__ bool go;
  if (threadIdx.x == 0) {
    go = !(gather.conditional && has_failed(gather.state)) &&
         wait_for_all(gather.waits, gather.wait_count, gather.state, gather.wait_limit_ns,
                      gather.launch);
  }
  __syncthreads();
  return go;
}

// Behind the copies: the last thread block to come here raises the signals, if all of them went.
__device__ inline void finish(const Gather &gather, bool went) {
  __syncthreads();
  if (threadIdx.x != 0) {
    return;
  }
  __threadfence_system();
  const uint32_t failed = went ? 0 : 1u << 16;
  const uint32_t before = atomicAdd(gather.finished, 1 + failed);
  if ((before & 0xffff) != gridDim.x - 1) {
    return;
  }
  // Before the fence: once the launch has completed, the next one may begin on another stream.
  *gather.finished = 0;
  __threadfence_system();
  if (before + failed < 1u << 16) {
    for (uint32_t i = 0; i < gather.raise_count; i++) {
      raise(gather.raises[i]);
    }
  }
  store_relaxed_system(&gather.state->completed, gather.launch);
}

// A copy, or part of one, that lies in a stage of shared memory.
struct __align__(16) Piece {
  uint64_t destination;
  uint32_t shared;
  uint32_t length;
};

// A warp's ring of stages. The copy engine fills a stage with as many pieces as fit, up to one per
// lane; when all have arrived the warp stores them. Stages ahead of it are on their way meanwhile.
template <int STAGES, int STAGE_BYTES>
class Ring {
 public:
  // A piece lies in its stage as it lies in its line of global memory. If it did not, the engine
  // would ask for twice as many lines: a quarter of the link's bandwidth, as measured.
  static constexpr uint32_t LINE = 128;
  static constexpr uint32_t BYTES =
      (STAGES * (STAGE_BYTES + WARP * static_cast<uint32_t>(sizeof(Piece)) + 16) + LINE - 1) /
      LINE * LINE;
  static_assert(STAGE_BYTES % LINE == 0 && STAGE_BYTES >= 4 * LINE, "stages hold whole lines");

  __device__ Ring(uint8_t *memory, uint32_t lane) : memory_(memory), lane_(lane) {
    if (lane == 0) {
      for (int stage = 0; stage < STAGES; stage++) {
        barrier_init(barrier(stage), 1);
      }
      barrier_init_fence();
    }
    __syncwarp();
  }

  // Starts the loads of the next pieces.
  __device__ void fill(uint32_t stage, Cursor &cursor) {
    const uint32_t remaining = cursor.remaining();
    const uint64_t source = cursor.source();
    const uint32_t shift = static_cast<uint32_t>(source) % LINE;
    // Saturated, so that the sum of all lanes cannot wrap around.
    const uint32_t wanted = min(remaining, static_cast<uint32_t>(STAGE_BYTES) + LINE);
    const uint32_t padded = remaining == 0 ? 0 : (shift + wanted + LINE - 1) & ~(LINE - 1);
    uint32_t end = padded;
#pragma unroll
    for (int step = 1; step < WARP; step *= 2) {
      const uint32_t other = __shfl_up_sync(ALL, end, step);
      end += lane_ >= step ? other : 0;
    }
    const uint32_t start = end - padded;
    const uint32_t over = __ballot_sync(ALL, end > STAGE_BYTES);
    const uint32_t first_over = over == 0 ? WARP : __ffs(over) - 1;
    uint32_t length = lane_ < first_over ? remaining : 0;
    if (lane_ == first_over) {
      length = part(start, shift, cursor.destination(), start == 0);
    }
    const uint32_t begin = shift & ~15u;
    const uint32_t loaded = length == 0 ? 0 : ((shift + length + 15) & ~15u) - begin;
    const uint32_t pieces = __ballot_sync(ALL, length != 0);
    const uint32_t total = __reduce_add_sync(ALL, loaded);
    if (lane_ == 0) {
      *count(stage) = __popc(pieces);
      barrier_expect(barrier(stage), total);
    }
    if (length != 0) {
      const uint32_t slot = __popc(pieces & ((1u << lane_) - 1));
      *piece(stage, slot) = {cursor.destination(), start + shift, length};
    }
    __syncwarp();
    if (length != 0) {
      bulk_load(shared_address(data(stage)) + start + begin, source - shift + begin, loaded,
                barrier(stage));
    }
    const uint32_t cut = first_over == WARP ? 0 : __shfl_sync(ALL, length, first_over);
    cursor.advance(first_over, cut);
  }

  // Waits for a stage and stores what came.
  __device__ void drain(uint32_t stage, uint32_t parity) {
    barrier_wait(barrier(stage), parity);
    const uint32_t pieces = *count(stage);
    for (uint32_t i = 0; i < pieces; i++) {
      const Piece now = *piece(stage, i);
      warp_copy<4>(now.destination, data(stage) + now.shared, now.length, lane_);
    }
    __syncwarp();
  }

 private:
  // How much of a copy that does not fit goes into the rest of a stage. Cut where the destination
  // is aligned; not worth it for a small rest, unless the stage has nothing else.
  __device__ static uint32_t part(uint32_t start, uint32_t shift, uint64_t destination,
                                  bool alone) {
    const uint32_t room = STAGE_BYTES - min(start, static_cast<uint32_t>(STAGE_BYTES));
    if (!alone && room < STAGE_BYTES / 4) {
      return 0;
    }
    const uint32_t most = room - shift;
    return most - (static_cast<uint32_t>(destination + most) & 15);
  }

  __device__ uint8_t *data(uint32_t stage) { return memory_ + stage * STAGE_BYTES; }
  __device__ Piece *piece(uint32_t stage, uint32_t slot) {
    return reinterpret_cast<Piece *>(memory_ + STAGES * STAGE_BYTES) + stage * WARP + slot;
  }
  __device__ uint32_t barrier(uint32_t stage) { return shared_address(tail() + stage * 16); }
  __device__ uint32_t *count(uint32_t stage) {
    return reinterpret_cast<uint32_t *>(tail() + stage * 16 + 8);
  }
  __device__ uint8_t *tail() { return memory_ + STAGES * (STAGE_BYTES + WARP * sizeof(Piece)); }

  uint8_t *memory_;
  const uint32_t lane_;
};

template <int STAGES, int STAGE_BYTES>
__device__ inline void gather_bulk(const Gather &gather) {
  using Pipeline = Ring<STAGES, STAGE_BYTES>;
  extern __shared__ __align__(128) uint8_t shared[];
  const uint32_t warp = threadIdx.x / WARP;
  const uint32_t lane = threadIdx.x % WARP;
  const bool go = begin(gather);
  if (go) {
    engine_fence();
    // Warps of one number are neighbours in the list, so that each SM takes from all over it.
    Cursor cursor(gather, warp * gridDim.x + blockIdx.x);
    Pipeline ring(shared + warp * Pipeline::BYTES, lane);
    uint32_t in_flight = 0;
    uint32_t fill = 0;
    uint32_t drain = 0;
    uint32_t parity = 0;
    while (true) {
      while (in_flight < STAGES && cursor.more()) {
        ring.fill(fill, cursor);
        fill = fill + 1 == STAGES ? 0 : fill + 1;
        in_flight++;
      }
      if (in_flight == 0) {
        break;
      }
      ring.drain(drain, parity);
      in_flight--;
      if (++drain == STAGES) {
        drain = 0;
        parity ^= 1;
      }
    }
  }
  finish(gather, go);
}

// For devices before sm_90: every lane loads its 16-byte words into registers.
template <int UNROLL>
__device__ inline void gather_loads(const Gather &gather) {
  const uint32_t warp = threadIdx.x / WARP;
  const uint32_t lane = threadIdx.x % WARP;
  const bool go = begin(gather);
  if (go) {
    Cursor cursor(gather, warp * gridDim.x + blockIdx.x);
    while (cursor.more()) {
      for (uint32_t i = cursor.done(); i < WARP; i++) {
        const uint32_t length = __shfl_sync(ALL, cursor.remaining(), i);
        const uint64_t source = __shfl_sync(ALL, cursor.source(), i);
        const uint64_t destination = __shfl_sync(ALL, cursor.destination(), i);
        if (length != 0) {
          warp_copy<UNROLL>(destination, reinterpret_cast<const uint8_t *>(source), length, lane);
        }
      }
      cursor.advance(WARP, 0);
    }
  }
  finish(gather, go);
}

}  // namespace zerohop

// Stages of a warp and bytes of a stage, as measured on H200 (docs/gpu.md): 16 such warps on each
// of 24 SMs have 3 MiB in flight. The link needs 2 MiB, and slows down when asked for 5.
constexpr int STAGES = 2;
constexpr int STAGE_BYTES = 4096;

constexpr int BULK_THREADS = 512;
constexpr int LOADS_THREADS = 1024;
constexpr int SPLICE_THREADS = 512;
constexpr int ROW_HASH_THREADS = 256;
constexpr int CHECKSUM_THREADS = 256;

// What the host reads before it launches: threads and bytes of shared memory of a block of each.
extern "C" __device__ const uint32_t zerohop_shapes[7] = {
    BULK_THREADS,    (BULK_THREADS / zerohop::WARP) * zerohop::Ring<STAGES, STAGE_BYTES>::BYTES,
    LOADS_THREADS,   0,
    SPLICE_THREADS,  ROW_HASH_THREADS,
    CHECKSUM_THREADS};

extern "C" __global__ void __launch_bounds__(BULK_THREADS, 1)
    zerohop_gather_bulk(const __grid_constant__ zerohop::Gather gather) {
#if __CUDA_ARCH__ >= 900
  zerohop::gather_bulk<STAGES, STAGE_BYTES>(gather);
#else
  __trap();  // The host asks for the compute capability first.
#endif
}

extern "C" __global__ void __launch_bounds__(LOADS_THREADS, 1)
    zerohop_gather_loads(const __grid_constant__ zerohop::Gather gather) {
  zerohop::gather_loads<2>(gather);
}

extern "C" __global__ void __launch_bounds__(SPLICE_THREADS)
    zerohop_splice(const __grid_constant__ zerohop::Gather gather,
                   const __grid_constant__ zerohop::Splice work) {
  const bool go = zerohop::begin(gather);
  if (go) {
    zerohop::splice(work);
  }
  zerohop::finish(gather, go);
}

extern "C" __global__ void __launch_bounds__(ROW_HASH_THREADS)
    zerohop_row_hash(const __grid_constant__ zerohop::Gather gather,
                     const __grid_constant__ zerohop::RowHash work) {
  const bool go = zerohop::begin(gather);
  if (go) {
    zerohop::row_hash<ROW_HASH_THREADS>(work);
  }
  zerohop::finish(gather, go);
}

extern "C" __global__ void __launch_bounds__(CHECKSUM_THREADS)
    zerohop_checksums(const __grid_constant__ zerohop::Gather gather,
                      const __grid_constant__ zerohop::Checksums work) {
  const bool go = zerohop::begin(gather);
  if (go) {
    zerohop::checksums(work);
  }
  zerohop::finish(gather, go);
}
