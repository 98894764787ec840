package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.device.TransitionsContract;

class JucxEndpointStateTest extends TransitionsContract<JucxEndpoint.State> {
  JucxEndpointStateTest() {
    super(
        JucxEndpoint.State.values(),
        JucxEndpoint.State.TRANSITIONS,
        "NEW -> OPEN",
        "NEW -> LOST",
        "OPEN -> LOST",
        "OPEN -> CLOSED",
        "LOST -> CLOSED");
  }
}
