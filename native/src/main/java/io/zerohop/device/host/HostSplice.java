package io.zerohop.device.host;

import io.zerohop.device.SpliceLists;
import org.agrona.UnsafeAccess;

/** Puts columns together in shared host memory, on the calling thread. */
final class HostSplice {
  private static final int WORD_BITS = Integer.SIZE;

  private HostSplice() {}

  static void run(final SpliceLists lists) {
    lists.forEachOffsets(HostSplice::addOffsets);
    for (int column = 0; column < lists.bitColumns(); column++) {
      putBits(lists, column);
    }
  }

  private static void addOffsets(
      final long source, final long destination, final int count, final int delta) {
    for (long i = 0; i < count; i++) {
      UnsafeAccess.UNSAFE.putInt(
          destination + 4 * i, UnsafeAccess.UNSAFE.getInt(source + 4 * i) + delta);
    }
  }

  private static void putBits(final SpliceLists lists, final int column) {
    final int bits = lists.bits(column);
    int run = lists.firstRun(column);
    int word = 0;
    for (int bit = 0; bit < bits; bit++) {
      while (run + 1 < lists.endOfRuns(column) && lists.runStart(run + 1) <= bit) {
        run++;
      }
      final long source = lists.runSource(run);
      word |= source == 0 || isSet(source, bit - lists.runStart(run)) ? 1 << bit : 0;
      if (bit % WORD_BITS == WORD_BITS - 1 || bit == bits - 1) {
        UnsafeAccess.UNSAFE.putInt(lists.destination(column) + 4L * (bit / WORD_BITS), word);
        word = 0;
      }
    }
  }

  private static boolean isSet(final long source, final int bit) {
    return (UnsafeAccess.UNSAFE.getInt(source + 4L * (bit / WORD_BITS)) >>> bit & 1) != 0;
  }
}
