package io.zerohop.spark.rapids.read;

import io.zerohop.device.TransitionsContract;

class BatchIteratorStateTest extends TransitionsContract<BatchIterator.State> {
  BatchIteratorStateTest() {
    super(
        BatchIterator.State.values(),
        BatchIterator.State.TRANSITIONS,
        "FETCHING -> FETCHED",
        "FETCHED -> RELEASED");
  }
}
