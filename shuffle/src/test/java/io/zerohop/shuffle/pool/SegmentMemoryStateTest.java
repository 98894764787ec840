package io.zerohop.shuffle.pool;

import io.zerohop.device.TransitionsContract;

class SegmentMemoryStateTest extends TransitionsContract<SegmentMemory.State> {
  SegmentMemoryStateTest() {
    super(
        SegmentMemory.State.values(),
        SegmentMemory.State.TRANSITIONS,
        "MAPPED -> PINNED",
        "MAPPED -> UNREACHABLE",
        "MAPPED -> CLOSED",
        "PINNED -> CLOSED",
        "UNREACHABLE -> CLOSED");
  }
}
