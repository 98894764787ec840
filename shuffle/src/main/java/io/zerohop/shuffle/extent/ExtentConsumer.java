package io.zerohop.shuffle.extent;

/** Takes ranges of memory, in order. */
@FunctionalInterface
public interface ExtentConsumer {

  /**
   * Takes one range.
   *
   * @param address address of its first byte in this process
   * @param length its length in bytes, positive
   */
  void extent(long address, int length);

  /**
   * Takes a range of any length, in pieces whose lengths an extent can say.
   *
   * @param bytes its length; none are taken of an empty one
   */
  default void extents(final long address, final long bytes) {
    final int most = 1 << 30;
    for (long done = 0; done < bytes; done += most) {
      extent(address + done, (int) Math.min(most, bytes - done));
    }
  }
}
