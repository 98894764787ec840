package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.device.TransitionsContract;
import io.zerohop.shuffle.transport.ucx.jucx.JucxEngine.Lifecycle;

class LifecycleTest extends TransitionsContract<Lifecycle> {
  LifecycleTest() {
    super(Lifecycle.values(), Lifecycle.TRANSITIONS, "OPEN -> CLOSING", "CLOSING -> CLOSED");
  }
}
