// What the host passes to every kernel. GatherArguments.java, RangeCutter.java and
// CudaCopyStream.java write these structs byte by byte, StreamState.java reads one: a change here is
// a change there.
#pragma once

#include <stdint.h>

namespace zerohop {

// One signal word to wait for or to raise.
struct SignalWord {
  uint64_t address;
  uint32_t epoch;
  uint32_t reserved;
};

// What became of the launches of one stream, in pinned host memory that the device writes to.
struct StreamState {
  uint32_t failure;    // 0, or a Failure: launches behind it do nothing
  uint32_t signal;     // index of the signal whose wait failed, in its launch
  uint32_t launch;     // number of the launch that failed
  uint32_t abort;      // set by the host: every wait of this stream ends
  uint32_t completed;  // number of the last launch that ended, however it ended
};

enum Failure : uint32_t { NONE = 0, TIMED_OUT = 1, ABORTED = 2, CANCELLED = 3 };

// Where a range of the list begins: a copy, and how many of its bytes belong to the range before.
struct RangeStart {
  uint32_t copy;
  uint32_t offset;
};

// A list of copies with what has to happen before and after it. The list is in pinned host memory;
// each warp reads its own part of it, ahead of time.
struct Gather {
  const uint64_t *source;
  const uint64_t *destination;
  const uint32_t *length;
  const RangeStart *ranges;  // range_count + 1 of them, the last is the end of the list
  const SignalWord *waits;
  const SignalWord *raises;
  StreamState *state;
  uint32_t *finished;  // of this stream, in device memory: thread blocks at their end; left at 0
  uint64_t wait_limit_ns;
  uint32_t range_count;
  uint32_t wait_count;
  uint32_t raise_count;
  uint32_t launch;
  uint32_t conditional;  // whether a wait before this launch may have failed
  uint32_t reserved;
};

}  // namespace zerohop
