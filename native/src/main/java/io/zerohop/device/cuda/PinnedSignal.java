package io.zerohop.device.cuda;

import io.zerohop.device.Signal;
import java.time.Duration;
import java.util.function.BooleanSupplier;

/**
 * A signal word in host memory that the GPU reaches: the host looks at it by a load, kernels over
 * the bus. Thread safe; owns nothing.
 *
 * @param word the same for the host
 * @param address the same as the host's
 */
record PinnedSignal(Signal word, long address) implements Signal, DeviceWord {

  @Override
  public int epoch() {
    return word.epoch();
  }

  @Override
  public void raise(final int epoch) {
    word.raise(epoch);
  }

  @Override
  public void abort(final int reason) {
    word.abort(reason);
  }

  @Override
  public void wake() {
    word.wake();
  }

  @Override
  public int aborted() {
    return word.aborted();
  }

  @Override
  public void await(final int epoch, final Duration limit, final BooleanSupplier cancelled) {
    word.await(epoch, limit, cancelled);
  }
}
