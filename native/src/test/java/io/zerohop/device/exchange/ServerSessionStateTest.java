package io.zerohop.device.exchange;

import io.zerohop.device.TransitionsContract;

class ServerSessionStateTest extends TransitionsContract<ServerSession.State> {
  ServerSessionStateTest() {
    super(
        ServerSession.State.values(),
        ServerSession.State.TRANSITIONS,
        "NEW -> CHALLENGED",
        "NEW -> ENDED",
        "CHALLENGED -> OPEN",
        "CHALLENGED -> ENDED",
        "OPEN -> ENDED");
  }
}
