package io.zerohop.shuffle.fetch;

import io.zerohop.shuffle.ExtentConsumer;
import java.util.Arrays;

/** A growing list of ranges of memory with their checksums, without an object each. */
public final class ExtentList {
  private long[] addresses = new long[4];
  private int[] lengths = new int[4];
  private int[] checksums = new int[4];
  private int size;

  /** Adds a range whose checksum is not known. */
  public void add(final long address, final int length) {
    add(address, length, 0);
  }

  void add(final long address, final int length, final int checksum) {
    if (size == addresses.length) {
      addresses = Arrays.copyOf(addresses, 2 * size);
      lengths = Arrays.copyOf(lengths, 2 * size);
      checksums = Arrays.copyOf(checksums, 2 * size);
    }
    addresses[size] = address;
    lengths[size] = length;
    checksums[size] = checksum;
    size++;
  }

  /** From now on the ranges lie one behind the other, each at a multiple of the alignment. */
  void moveTo(final long address, final int alignment) {
    long at = address;
    for (int i = 0; i < size; i++) {
      addresses[i] = at;
      at += (lengths[i] + alignment - 1L) / alignment * alignment;
    }
  }

  public int size() {
    return size;
  }

  /** Gives all ranges, in order. */
  public void forEach(final ExtentConsumer consumer) {
    for (int i = 0; i < size; i++) {
      consumer.extent(addresses[i], lengths[i]);
    }
  }

  long address(final int index) {
    return addresses[index];
  }

  int length(final int index) {
    return lengths[index];
  }

  int checksum(final int index) {
    return checksums[index];
  }
}
