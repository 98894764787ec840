package io.zerohop.device.exchange;

import io.zerohop.device.TransitionsContract;

class SegmentServerStateTest extends TransitionsContract<SegmentServer.State> {
  SegmentServerStateTest() {
    super(
        SegmentServer.State.values(),
        SegmentServer.State.TRANSITIONS,
        "NEW -> SERVING",
        "NEW -> CLOSED",
        "SERVING -> CLOSED");
  }
}
