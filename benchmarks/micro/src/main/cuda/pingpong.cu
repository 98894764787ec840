// Two threads on two GPUs, or on one, that answer each other by signal words: what a signal costs
// when no launch is involved.
#include "signal.cuh"

extern "C" __global__ void pingpong(uint64_t mine, uint64_t theirs, uint32_t rounds, uint32_t first,
                                    zerohop::StreamState *state, uint64_t limit_ns) {
  const uint64_t deadline = zerohop::global_nanos() + limit_ns;
  for (uint32_t round = 1; round <= rounds; round++) {
    if (first) {
      zerohop::store_epoch(theirs, round);
    }
    const zerohop::SignalWord word = {mine, round, 0};
    if (zerohop::wait_for(word, state, deadline) != zerohop::NONE) {
      state->failure = 1;
      return;
    }
    if (!first) {
      zerohop::store_epoch(theirs, round);
    }
  }
}
