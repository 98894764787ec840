package io.zerohop.device;

import java.util.zip.CRC32C;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * CRC32C of memory by address. One per thread; the bytes pass through a block that stays in the
 * first-level cache, since the JDK sums arrays and not addresses.
 */
public final class Crc32c {
  private static final int BLOCK_BYTES = 8 << 10;
  private static final ThreadLocal<Crc32c> PER_THREAD = ThreadLocal.withInitial(Crc32c::new);

  private final CRC32C sum = new CRC32C();
  private final byte[] block = new byte[BLOCK_BYTES];
  private final UnsafeBuffer memory = new UnsafeBuffer(0, 0);

  private Crc32c() {}

  /** This thread's instance, reset. */
  public static Crc32c begin() {
    final Crc32c crc = PER_THREAD.get();
    crc.sum.reset();
    return crc;
  }

  /** The checksum of one range. */
  public static int of(final long address, final int length) {
    return begin().update(address, length).value();
  }

  /** Adds a range. */
  public Crc32c update(final long address, final int length) {
    memory.wrap(address, length);
    for (int done = 0; done < length; ) {
      final int step = Math.min(BLOCK_BYTES, length - done);
      memory.getBytes(done, block, 0, step);
      sum.update(block, 0, step);
      done += step;
    }
    return this;
  }

  /** The checksum of everything added since {@link #begin}. */
  public int value() {
    return (int) sum.getValue();
  }
}
