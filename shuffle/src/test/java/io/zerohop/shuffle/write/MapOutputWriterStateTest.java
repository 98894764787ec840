package io.zerohop.shuffle.write;

import io.zerohop.device.TransitionsContract;

class MapOutputWriterStateTest extends TransitionsContract<MapOutputWriter.State> {
  MapOutputWriterStateTest() {
    super(
        MapOutputWriter.State.values(),
        MapOutputWriter.State.TRANSITIONS,
        "WRITING -> PUBLISHED",
        "WRITING -> CLOSED",
        "PUBLISHED -> CLOSED");
  }
}
