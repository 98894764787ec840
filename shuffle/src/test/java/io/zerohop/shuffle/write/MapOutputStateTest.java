package io.zerohop.shuffle.write;

import io.zerohop.device.TransitionsContract;

class MapOutputStateTest extends TransitionsContract<MapOutput.State> {
  MapOutputStateTest() {
    super(
        MapOutput.State.values(),
        MapOutput.State.TRANSITIONS,
        "IN_MEMORY -> IN_FILES",
        "IN_MEMORY -> PUBLISHED",
        "IN_MEMORY -> CLOSED",
        "IN_FILES -> CLOSED",
        "PUBLISHED -> CLOSED");
  }
}
