package io.zerohop.device.cuda;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jcuda.Pointer;

/** {@code struct Gather} of launch.cuh: the one argument of every kernel. For one thread. */
final class GatherArguments {
  private static final int BYTES = 96;
  private static final int LIST = 0;
  private static final int WAITS = 32;
  private static final int RAISES = 40;
  private static final int STATE = 48;
  private static final int FINISHED = 56;
  private static final int LIMIT = 64;
  private static final int RANGE_COUNT = 72;
  private static final int WAIT_COUNT = 76;
  private static final int RAISE_COUNT = 80;
  private static final int LAUNCH = 84;
  private static final int CONDITIONAL = 88;

  private final byte[] array = new byte[BYTES];
  private final ByteBuffer bytes = ByteBuffer.wrap(array).order(ByteOrder.nativeOrder());
  private final Pointer struct = Pointer.to(array);
  private final Pointer pointer = Pointer.to(struct);

  GatherArguments(final long stateAddress, final long finishedAddress) {
    bytes.putLong(STATE, stateAddress);
    bytes.putLong(FINISHED, finishedAddress);
  }

  /** Begins the arguments of a launch without copies, waits or raises. */
  void begin(final int launch, final boolean conditional) {
    bytes.putInt(RANGE_COUNT, 0);
    bytes.putInt(WAIT_COUNT, 0);
    bytes.putInt(RAISE_COUNT, 0);
    bytes.putLong(LIMIT, 0);
    bytes.putInt(LAUNCH, launch);
    bytes.putInt(CONDITIONAL, conditional ? 1 : 0);
  }

  /** The list, as {@link CudaCopyBatch#write} leaves it, and its ranges. */
  void list(final long address, final int copies, final long ranges, final int rangeCount) {
    bytes.putLong(LIST, address);
    bytes.putLong(LIST + 8, address + (long) copies * Long.BYTES);
    bytes.putLong(LIST + 16, address + 2L * copies * Long.BYTES);
    bytes.putLong(LIST + 24, ranges);
    bytes.putInt(RANGE_COUNT, rangeCount);
  }

  void waits(final long address, final int count, final long limitNanos) {
    bytes.putLong(WAITS, address);
    bytes.putInt(WAIT_COUNT, count);
    bytes.putLong(LIMIT, limitNanos);
  }

  void raises(final long address, final int count) {
    bytes.putLong(RAISES, address);
    bytes.putInt(RAISE_COUNT, count);
  }

  /** The struct itself, where it is one argument of several. */
  Pointer struct() {
    return struct;
  }

  Pointer pointer() {
    return pointer;
  }
}
