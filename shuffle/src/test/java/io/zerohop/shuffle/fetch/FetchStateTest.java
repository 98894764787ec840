package io.zerohop.shuffle.fetch;

import io.zerohop.device.TransitionsContract;

class FetchStateTest extends TransitionsContract<Fetch.State> {
  FetchStateTest() {
    super(Fetch.State.values(), Fetch.State.TRANSITIONS, "OPEN -> CLOSING", "CLOSING -> RELEASED");
  }
}
