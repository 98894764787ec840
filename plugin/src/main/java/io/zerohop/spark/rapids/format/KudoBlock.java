package io.zerohop.spark.rapids.format;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * The header of a block of RAPIDS' serializer, which identifies blocks that come over the host and
 * shows that they are complete. Big-endian numbers of 32 bits, by spark-rapids-jni's {@code
 * KudoTableHeader}:
 *
 * <pre>
 *  0       4      8      12         16        20      24        28
 *  | magic | row  | rows | validity | offsets | bytes | columns | a bit for each column ...
 * </pre>
 *
 * <p>"bytes" are those behind the header: validity, offsets and data, padded. Columns count those
 * that are nested in others, too.
 */
public final class KudoBlock {
  /** Of a header, without the bits. */
  public static final int FIXED_BYTES = 28;

  /** "KUD0" in the order of its bytes. */
  private static final int MAGIC = 0x4b554430;

  private static final int ROWS = 8;
  private static final int VALIDITY = 12;
  private static final int OFFSETS = 16;
  private static final int BYTES = 20;
  private static final int COLUMNS = 24;
  private static final int MAX_COLUMNS = 1 << 20;

  private KudoBlock() {}

  /** Whether bytes that begin so, as a big-endian number, are a block of this kind. */
  public static boolean begins(final int first) {
    return first == MAGIC;
  }

  /**
   * Bytes of a block, its header among them, by the header at the beginning of a buffer.
   *
   * @throws IOException if it is damaged or cut off
   */
  public static long length(final ByteBuffer from) throws IOException {
    if (from.remaining() < FIXED_BYTES) {
      throw damaged();
    }
    final int at = from.position();
    final int rows = from.getInt(at + ROWS);
    final long validity = from.getInt(at + VALIDITY);
    final long offsets = from.getInt(at + OFFSETS);
    final long bytes = from.getInt(at + BYTES);
    final int columns = from.getInt(at + COLUMNS);
    final boolean sized =
        validity >= 0 && offsets >= 0 && bytes >= 0 && validity + offsets <= bytes;
    if (!begins(from.getInt(at)) || rows < 1 || columns < 1 || columns > MAX_COLUMNS || !sized) {
      throw damaged();
    }
    return FIXED_BYTES + (columns + 7) / 8 + bytes;
  }

  private static IOException damaged() {
    return new IOException("the header of a Kudo block is damaged");
  }
}
