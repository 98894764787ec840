// A warp's way through its range of the list of copies. Every lane holds one copy of the current
// 32 and one of the next 32, whose loads are under way while the current ones move.
#pragma once

#include "launch.cuh"

namespace zerohop {

constexpr uint32_t WARP = 32;
constexpr uint32_t ALL = 0xffffffffu;

class Cursor {
 public:
  __device__ Cursor(const Gather &gather, uint32_t range)
      : gather_(gather), lane_(threadIdx.x % WARP) {
    if (range >= gather.range_count) {
      return;
    }
    const RangeStart first = gather.ranges[range];
    const RangeStart last = gather.ranges[range + 1];
    end_ = last.offset == 0 ? last.copy : last.copy + 1;
    end_offset_ = last.offset;
    last_ = last.copy;
    base_ = first.copy;
    offset_ = first.offset;
    load(base_, source_, destination_, length_);
    load(base_ + WARP, next_source_, next_destination_, next_length_);
  }

  // Whether copies are left; moves on to the next group if the current one is behind.
  __device__ bool more() {
    if (done_ == WARP && base_ + WARP < end_) {
      next_group();
    }
    return base_ + done_ < end_;
  }

  // Of this lane's copy: what is left. The remaining length is 0 for copies that are behind.
  __device__ uint64_t source() const { return source_ + skipped(); }
  __device__ uint64_t destination() const { return destination_ + skipped(); }
  __device__ uint32_t remaining() const { return lane_ < done_ ? 0 : length_ - skipped(); }
  __device__ uint32_t done() const { return done_; }

  // All copies before lane `lane` are behind now, and `bytes` more of that lane's own.
  __device__ void advance(uint32_t lane, uint32_t bytes) {
    offset_ = lane == done_ ? offset_ + bytes : bytes;
    done_ = lane;
  }

 private:
  __device__ uint32_t skipped() const { return lane_ == done_ ? offset_ : 0; }

  __device__ void next_group() {
    base_ += WARP;
    done_ = 0;
    offset_ = 0;
    source_ = next_source_;
    destination_ = next_destination_;
    length_ = next_length_;
    load(base_ + WARP, next_source_, next_destination_, next_length_);
  }

  __device__ void load(uint32_t base, uint64_t &source, uint64_t &destination, uint32_t &length) {
    const uint32_t copy = base + lane_;
    length = 0;
    if (copy < end_) {
      source = gather_.source[copy];
      destination = gather_.destination[copy];
      length = copy == last_ ? end_offset_ : gather_.length[copy];
    }
  }

  const Gather &gather_;
  const uint32_t lane_;
  uint32_t base_ = 0;        // first copy of the current group
  uint32_t end_ = 0;         // behind the last copy of the range
  uint32_t last_ = 0;        // the copy that the next range begins in, if it is cut
  uint32_t end_offset_ = 0;  // where it is cut
  uint32_t done_ = 0;        // copies of the group that are behind
  uint32_t offset_ = 0;      // bytes of the next one that are behind
  uint64_t source_ = 0;
  uint64_t destination_ = 0;
  uint32_t length_ = 0;
  uint64_t next_source_ = 0;
  uint64_t next_destination_ = 0;
  uint32_t next_length_ = 0;
};

}  // namespace zerohop
