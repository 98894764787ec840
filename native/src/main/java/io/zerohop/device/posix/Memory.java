package io.zerohop.device.posix;

import java.nio.ByteBuffer;

/**
 * Shared memory that lives as long as a descriptor or a mapping of it does ({@code memfd}).
 *
 * <p>Addresses are not checked: a wrong one ends the process. Failures are {@link PosixException}s.
 */
public final class Memory {
  private Memory() {}

  /** Bytes of a page, the granularity of {@link #map}. */
  public static native int pageSize();

  /**
   * Creates an empty, sealable memfd, which nobody can execute on kernels from 6.3 on. The caller
   * owns the descriptor; {@code name} is for tools.
   */
  public static native int create(String name);

  /** Sets the size in bytes; new bytes read as zero and take no memory yet. */
  public static native void resize(int fd, long bytes);

  /** Gives every page of the range physical memory now, so that touching it cannot fail later. */
  public static native void reserve(int fd, long offset, long bytes);

  /**
   * Fixes size and seals for good ({@code F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL}).
   *
   * @param readOnly whether nobody may write to it any more but by the mappings that are there now
   *     ({@code F_SEAL_FUTURE_WRITE}); kernels before 5.1 do not know that and leave it out. No
   *     page can be given back then: the memory goes as a whole, with its last holder
   */
  public static native void seal(int fd, boolean readOnly);

  /** Whether the kernel refuses new writers; false as well for what is no memfd at all. */
  public static native boolean isReadOnly(int fd);

  /**
   * Whether the size is fixed and the seals are for good; false as well for what is no memfd at
   * all.
   */
  public static native boolean isSealed(int fd);

  /**
   * Maps the first {@code bytes} bytes, readable and shared, and keeps them out of core dumps;
   * returns the address.
   */
  public static native long map(int fd, long bytes, boolean writable);

  /** Ends a mapping made by {@link #map}. */
  public static native void unmap(long address, long bytes);

  /** Takes all write faults of a mapped range at once; 0, or the errno if the kernel will not. */
  public static native int populate(long address, long bytes);

  /**
   * The bytes at an address as a buffer, for calls that take no address. It holds nothing: who uses
   * it sees to it that they stay mapped.
   */
  public static native ByteBuffer view(long address, int bytes);

  /**
   * Makes {@code count} copies one after another. {@code list} is the address of as many (source,
   * destination, length) triples of native-order 64-bit words.
   */
  public static native void copy(long list, int count);

  /**
   * Sleeps while the 32-bit word at {@code address} is {@code expected}, at most {@code nanos} ns,
   * also across processes. May return early for no reason: look at the word again.
   */
  public static native void await(long address, int expected, long nanos);

  /** Wakes every sleeper on the word, in every process that maps it. */
  public static native void wake(long address);
}
