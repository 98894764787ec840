package io.zerohop.shuffle;

import io.zerohop.device.TransitionsContract;

class NodePartsStateTest extends TransitionsContract<NodeParts.State> {
  NodePartsStateTest() {
    super(
        NodeParts.State.values(),
        NodeParts.State.TRANSITIONS,
        "SERVING -> FROZEN",
        "SERVING -> STOPPED",
        "FROZEN -> STOPPED",
        "STOPPED -> FREED");
  }
}
