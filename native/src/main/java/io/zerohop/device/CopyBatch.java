package io.zerohop.device;

/**
 * A list of copies that move in one submission. Reusable and not thread safe: it belongs to one
 * thread until it is submitted and again once the stream has passed it.
 */
public interface CopyBatch {

  /**
   * Adds a copy; zero lengths are dropped. Ranges of one batch must not overlap as destinations.
   */
  void add(long sourceAddress, long destinationAddress, long length);

  /** Copies in the list. */
  int size();

  /** Sum of the lengths in bytes. */
  long bytes();

  /** Empties the list so that it can be filled again. */
  void clear();
}
