package io.zerohop.device.cuda;

import io.zerohop.device.Signal;
import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.device.WaitException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The signals that a stream's launches wait for and raise: their words in the ring, and their names
 * for when a wait fails. Behind a wait a launch is conditional until the stream was synchronized:
 * it does nothing if the wait has failed. For one thread at a time.
 */
final class LaunchSignals {
  /** Bytes of one signal in a launch's list: its address and an epoch. */
  static final int BYTES = 16;

  private final LaunchRing ring;
  private final GatherArguments arguments;
  private final Map<Integer, List<SignalEpoch>> awaited = new HashMap<>();
  private boolean conditional;
  private Duration lastLimit = Duration.ZERO;

  /**
   * @param ring where the words go
   * @param arguments told where they are
   */
  LaunchSignals(final LaunchRing ring, final GatherArguments arguments) {
    this.ring = ring;
    this.arguments = arguments;
  }

  /** Whether a launch now stands behind a wait. */
  boolean conditional() {
    return conditional;
  }

  /**
   * Writes the signals of a launch.
   *
   * @param at where in the ring
   * @param after what it waits for
   * @param then what it raises in the end
   */
  void write(
      final int launch,
      final int at,
      final List<SignalEpoch> after,
      final List<SignalEpoch> then,
      final Duration limit) {
    final int raisesAt = writeWords(after, at);
    writeWords(then, raisesAt);
    arguments.waits(ring.address(at), after.size(), Kernels.limitNanos(limit));
    arguments.raises(ring.address(raisesAt), then.size());
    if (!after.isEmpty()) {
      awaited.put(launch, List.copyOf(after));
      conditional = true;
      lastLimit = limit;
    }
  }

  private int writeWords(final List<SignalEpoch> signals, final int from) {
    int at = from;
    for (final SignalEpoch next : signals) {
      ring.bytes().putLong(at, addressOf(next.signal()));
      ring.bytes().putInt(at + Long.BYTES, next.epoch());
      at += BYTES;
    }
    return at;
  }

  /** Where the GPU finds a signal. */
  static long addressOf(final Signal signal) {
    if (signal instanceof DeviceWord word) {
      return word.address();
    }
    throw new IllegalArgumentException("not a signal that a CUDA device reaches: " + signal);
  }

  /** Takes the failure of a wait, if there was one; the stream is idle, and begins anew. */
  @Nullable WaitException takeFailure(final StreamState state, final String stream) {
    conditional = false;
    final WaitException failure = state.takeFailure(stream, lastLimit, this::name);
    awaited.clear();
    return failure;
  }

  private String name(final int launch, final int index) {
    final List<SignalEpoch> signals = awaited.get(launch);
    return signals == null || index >= signals.size()
        ? "a signal"
        : "epoch " + signals.get(index).epoch() + " of " + signals.get(index).signal();
  }
}
