// Signal words on the device: waits with an end, and raises with release order at system scope.
#pragma once

#include "launch.cuh"

namespace zerohop {

// How often a waiting thread looks at the clock and at the host's abort word, which is a read over
// the PCIe bus: often enough to end within microseconds, rarely enough not to disturb copies.
constexpr int SPINS_PER_LOOK = 64;

// Epoch in the low half, abort reason in the high half; acquire at system scope.
__device__ inline uint64_t load_signal(uint64_t address) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.b64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

// Release at system scope: what this thread saw or wrote before is visible to who acquires it.
__device__ inline void store_epoch(uint64_t address, uint32_t epoch) {
  asm volatile("st.release.sys.global.b32 [%0], %1;" ::"l"(address), "r"(epoch) : "memory");
}

__device__ inline uint32_t load_relaxed_system(const uint32_t *address) {
  uint32_t value;
  asm volatile("ld.relaxed.sys.global.b32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

__device__ inline void store_relaxed_system(uint32_t *address, uint32_t value) {
  asm volatile("st.relaxed.sys.global.b32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

__device__ inline uint64_t global_nanos() {
  uint64_t nanos;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(nanos));
  return nanos;
}

__device__ inline bool at_least(uint32_t current, uint32_t wanted) {
  return static_cast<int32_t>(current - wanted) >= 0;
}

// Waits until the word has the epoch. An epoch that was reached counts even if it was aborted.
__device__ inline uint32_t wait_for(const SignalWord &word, const StreamState *state,
                                    uint64_t deadline) {
  while (true) {
    for (int spin = 0; spin < SPINS_PER_LOOK; spin++) {
      const uint64_t value = load_signal(word.address);
      if (at_least(static_cast<uint32_t>(value), word.epoch)) {
        return NONE;
      }
      if (value >> 32 != 0) {
        return ABORTED;
      }
    }
    if (load_relaxed_system(&state->abort) != 0) {
      return CANCELLED;
    }
    if (global_nanos() >= deadline) {
      return TIMED_OUT;
    }
  }
}

// Waits for all words in order, by one thread; false after a failure, which is recorded once.
__device__ inline bool wait_for_all(const SignalWord *words, uint32_t count, StreamState *state,
                                    uint64_t limit_ns, uint32_t launch) {
  const uint64_t deadline = global_nanos() + limit_ns;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t failure = wait_for(words[i], state, deadline);
    if (failure != NONE) {
      // Every thread block may come here; all of them write about the same wait.
      state->signal = i;
      state->launch = launch;
      __threadfence_system();
      state->failure = failure;
      return false;
    }
  }
  return true;
}

__device__ inline bool has_failed(const StreamState *state) {
  return load_relaxed_system(&state->failure) != 0;
}

// Epochs only grow: raising to one that was reached is nothing.
__device__ inline void raise(const SignalWord &word) {
  const uint64_t value = load_signal(word.address);
  if (!at_least(static_cast<uint32_t>(value), word.epoch)) {
    store_epoch(word.address, word.epoch);
  }
}

}  // namespace zerohop
