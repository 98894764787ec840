package io.zerohop.shuffle.keeper;

import io.zerohop.device.Crc32c;
import io.zerohop.shuffle.block.Block;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * The questions of executors on other nodes to a keeper, and its answers. Numbers are big endian.
 *
 * <pre>
 *  READ    | version | 1 | length | socket ... | shuffle | from | count | map, partition ...
 *            1         1   1        1 to 64      4         8      4       12 each
 *  TAKEN   | version | 2 | bytes of answers that have come
 *            1         1   4
 *
 *  answer to READ    | status | bytes of the block | length | CRC32C | bytes ...   for each block
 *                      1        8                    4        4        length
 * </pre>
 *
 * <p>An answer has as many blocks as fit, the first ones that were asked for; {@code from} counts
 * in the first. Only the first block may be there in part, and then it is alone. A block that the
 * keeper does not have has -1 bytes.
 */
final class KeptWire {
  static final byte VERSION = 1;
  static final byte READ = 1;
  static final byte TAKEN = 2;

  static final byte FOUND = 0;

  /** The keeper has not taken over from that executor. */
  static final byte NOT_LEFT = 1;

  /** Others have too many answers under way. */
  static final byte BUSY = 2;

  /** Maximum of an answer, headers included: a part of a block fits in. */
  static final int MAX_ANSWER = 1 << 20;

  static final int MAX_BLOCKS = 4096;
  static final int ITEM_BYTES = Long.BYTES + 2 * Integer.BYTES;
  private static final int MAX_SOCKET = 64;
  private static final int BLOCK_BYTES = Long.BYTES + Integer.BYTES;

  private KeptWire() {}

  /** A block by its number in its map output. */
  record Wanted(long mapId, int partition) {}

  /** Whether an answer says no more than that the keeper has no room for one now. */
  static boolean isBusy(final ByteBuffer answer) {
    return answer.remaining() == 1 && answer.get(answer.position()) == BUSY;
  }

  /**
   * A request for blocks.
   *
   * @param socket of the executor that has ended
   * @param from offset in the first block
   */
  record Read(String socket, int shuffleId, long from, List<Wanted> blocks) {
    static ByteBuffer of(
        final String socket, final int shuffleId, final long from, final List<Block> blocks) {
      final byte[] name = socket.getBytes(StandardCharsets.US_ASCII);
      final ByteBuffer question =
          ByteBuffer.allocate(
              3 + name.length + 2 * Integer.BYTES + Long.BYTES + blocks.size() * BLOCK_BYTES);
      question.put(VERSION).put(READ).put((byte) name.length).put(name);
      question.putInt(shuffleId).putLong(from).putInt(blocks.size());
      blocks.forEach(block -> question.putLong(block.mapId()).putInt(block.partition()));
      return question.flip();
    }

    /**
     * @throws IllegalArgumentException if this is no such question
     */
    static Read parse(final ByteBuffer question) {
      final int length = question.get() & 0xff;
      check(length > 0 && length <= MAX_SOCKET && question.remaining() >= length);
      final byte[] name = new byte[length];
      question.get(name);
      check(question.remaining() >= 2 * Integer.BYTES + Long.BYTES);
      final int shuffleId = question.getInt();
      final long from = question.getLong();
      final int count = question.getInt();
      check(from >= 0 && count > 0 && count <= MAX_BLOCKS);
      check(question.remaining() == count * BLOCK_BYTES);
      final List<Wanted> blocks = new ArrayList<>(count);
      for (int i = 0; i < count; i++) {
        blocks.add(new Wanted(question.getLong(), question.getInt()));
      }
      return new Read(new String(name, StandardCharsets.US_ASCII), shuffleId, from, blocks);
    }
  }

  /** Says that so many bytes of answers have come. */
  static ByteBuffer taken(final int bytes) {
    return ByteBuffer.allocate(2 + Integer.BYTES).put(VERSION).put(TAKEN).putInt(bytes).flip();
  }

  /**
   * Returns the kind of a question, and moves behind it.
   *
   * @throws IllegalArgumentException if it is of another version, or too short
   */
  static byte kind(final ByteBuffer question) {
    check(question.remaining() > 2 && question.get() == VERSION);
    return question.get();
  }

  /** Reads the number of a {@link #TAKEN}. */
  static int takenBytes(final ByteBuffer question) {
    check(question.remaining() == Integer.BYTES);
    return question.getInt();
  }

  /**
   * One block of an answer, or its part.
   *
   * @param total bytes of the block; negative if it is not there
   */
  record Item(long total, byte[] bytes) {
    /**
     * @throws IllegalArgumentException if these are not the bytes that were sent
     */
    static Item parse(final ByteBuffer answer) {
      check(answer.remaining() >= ITEM_BYTES);
      final long total = answer.getLong();
      final int length = answer.getInt();
      final int crc = answer.getInt();
      check(length >= 0 && length <= answer.remaining() && (total < 0 || length <= total));
      final byte[] bytes = new byte[length];
      answer.get(bytes);
      check(Crc32c.of(ByteBuffer.wrap(bytes)) == crc);
      return new Item(total, bytes);
    }
  }

  private static void check(final boolean holds) {
    if (!holds) {
      throw new IllegalArgumentException("these are not bytes of a keeper's protocol");
    }
  }
}
