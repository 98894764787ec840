package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.device.TransitionsContract;

class LifecycleTest extends TransitionsContract<Lifecycle> {
  LifecycleTest() {
    super(Lifecycle.values(), Lifecycle.TRANSITIONS, "OPEN -> CLOSING", "CLOSING -> CLOSED");
  }
}
