package io.zerohop.device;

/**
 * A list of copies that move in one submission. Reusable and not thread safe: it belongs to one
 * thread until it is submitted and again once the stream has passed it.
 */
public interface CopyBatch {

  /**
   * Adds a copy; zero lengths are dropped. Ranges of one batch must not overlap as destinations.
   *
   * @throws IllegalArgumentException if the length is negative or an address is zero
   */
  void add(long sourceAddress, long destinationAddress, long length);

  /**
   * The same for memory that may be gone when it is read, such as a dead peer's: by a copy engine
   * where the device has such, and never by a kernel.
   */
  default void addByEngine(
      final long sourceAddress, final long destinationAddress, final long length) {
    add(sourceAddress, destinationAddress, length);
  }

  /** Refuses what no batch takes, for those who make batches. */
  static void check(final long sourceAddress, final long destinationAddress, final long length) {
    if (length < 0 || sourceAddress == 0 || destinationAddress == 0) {
      throw new IllegalArgumentException(
          "copy of " + length + " bytes from " + sourceAddress + " to " + destinationAddress);
    }
  }

  int size();

  /** Sum of the lengths in bytes. */
  long bytes();

  /** Empties the list so that it can be filled again. */
  void clear();
}
