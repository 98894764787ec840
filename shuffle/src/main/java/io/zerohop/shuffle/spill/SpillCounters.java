package io.zerohop.shuffle.spill;

import java.util.concurrent.atomic.LongAdder;

/** Bytes that left a pool after they had been published, and how long that took. Thread safe. */
final class SpillCounters {
  private final LongAdder outputs = new LongAdder();
  private final LongAdder bytes = new LongAdder();
  private final LongAdder nanos = new LongAdder();
  private final LongAdder failures = new LongAdder();

  void add(final long moreBytes, final long moreNanos) {
    outputs.increment();
    bytes.add(moreBytes);
    nanos.add(moreNanos);
  }

  void addFailure() {
    failures.increment();
  }

  SpilledOutputs sum() {
    return new SpilledOutputs(outputs.sum(), bytes.sum(), nanos.sum(), failures.sum());
  }
}
