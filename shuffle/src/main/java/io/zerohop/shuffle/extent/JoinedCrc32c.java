package io.zerohop.shuffle.extent;

/**
 * The CRC32C of bytes that follow one another, from the checksums of both parts alone. A checksum
 * is a polynomial modulo the generator; to append n bytes is to multiply it by x to the power of 8n
 * and to add the other one. Coefficients are bits, the highest bit that of x to the power of 0.
 */
public final class JoinedCrc32c {
  private static final int GENERATOR = 0x82F63B78;
  private static final int ONE = 1 << 31;
  private static final int BYTE = ONE >>> 8;

  /** {@code POWERS[i][b]} appends b times 256 to the power of i bytes. */
  private static final int[][] POWERS = new int[4][256];

  static {
    int unit = BYTE;
    for (final int[] powers : POWERS) {
      powers[0] = ONE;
      for (int b = 1; b < powers.length; b++) {
        powers[b] = product(powers[b - 1], unit);
      }
      unit = product(powers[255], unit);
    }
  }

  private JoinedCrc32c() {}

  /**
   * The checksum of both parts together.
   *
   * @param first of the bytes that come first
   * @param second of those behind them
   * @param length bytes of the second part
   */
  public static int of(final int first, final int second, final int length) {
    int moved = first;
    for (int i = 0; i < POWERS.length; i++) {
      final int digit = length >>> 8 * i & 0xff;
      if (digit != 0) {
        moved = product(moved, POWERS[i][digit]);
      }
    }
    return moved ^ second;
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
