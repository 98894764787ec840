package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.TransitionsContract;

class RemoteTransferStateTest extends TransitionsContract<RemoteTransfer.State> {
  RemoteTransferStateTest() {
    super(
        RemoteTransfer.State.values(),
        RemoteTransfer.State.TRANSITIONS,
        "ASKING -> HOLDING",
        "ASKING -> ENDED",
        "HOLDING -> ENDED");
  }
}
