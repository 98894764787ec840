package io.zerohop.spark.executor;

import io.zerohop.device.TransitionsContract;

class StartupStateTest extends TransitionsContract<Startup.State> {
  StartupStateTest() {
    super(
        Startup.State.values(),
        Startup.State.TRANSITIONS,
        "IDLE -> STARTING",
        "IDLE -> STOPPED",
        "STARTING -> IDLE",
        "STARTING -> MADE",
        "STARTING -> STOPPED",
        "MADE -> STOPPED");
  }
}
