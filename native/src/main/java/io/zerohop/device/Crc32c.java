package io.zerohop.device;

import java.nio.ByteBuffer;
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

  /** The checksum of the bytes from a buffer's position to its limit, to which it moves. */
  public static int of(final ByteBuffer bytes) {
    final CRC32C sum = new CRC32C();
    sum.update(bytes);
    return (int) sum.getValue();
  }

  /** The checksum of one range. */
  public static int of(final long address, final int length) {
    return begin().update(address, length).value();
  }

  /**
   * The checksum of bytes that follow one another, from the checksums of both parts alone: without
   * reading the bytes again, whose damage would otherwise get a checksum that fits.
   *
   * @param first of the bytes that come first
   * @param second of those behind them
   * @param length bytes of the second part, as an unsigned number
   */
  public static int join(final int first, final int second, final int length) {
    return Powers.append(first, length) ^ second;
  }

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

  /**
   * Changes a checksum to that of the same bytes with zeroes behind them. A checksum is a remainder
   * of polynomials over GF(2) by Castagnoli's (RFC 3720), and more bytes multiply it by a power of
   * x; the highest bit is the coefficient of x^0.
   */
  private static final class Powers {
    private static final int GENERATOR = 0x82F63B78;
    private static final int ONE = 1 << 31;
    private static final int BYTE = ONE >>> 8;

    /** {@code OF_BYTES[i][b]} appends b times 256 to the power of i bytes. */
    private static final int[][] OF_BYTES = new int[4][256];

    static {
      int unit = BYTE;
      for (final int[] powers : OF_BYTES) {
        powers[0] = ONE;
        for (int b = 1; b < powers.length; b++) {
          powers[b] = product(powers[b - 1], unit);
        }
        unit = product(powers[255], unit);
      }
    }

    static int append(final int checksum, final int length) {
      int moved = checksum;
      for (int i = 0; i < OF_BYTES.length && moved != 0; i++) {
        final int digit = length >>> 8 * i & 0xff;
        if (digit != 0) {
          moved = product(moved, OF_BYTES[i][digit]);
        }
      }
      return moved;
    }

    private static int product(final int left, final int right) {
      int sum = 0;
      int shifted = right;
      for (int rest = left; rest != 0; rest <<= 1) {
        // Without branches, since half of them would be mispredicted.
        sum ^= shifted & rest >> 31;
        shifted = shifted >>> 1 ^ GENERATOR & -(shifted & 1);
      }
      return sum;
    }
  }
}
