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
}
