package io.zerohop.spark.sent;

import org.apache.spark.storage.ShuffleBlockBatchId;

/**
 * The kind and target of an upload, encoded in the numbers of its block id, which are not negative.
 * The id is a batch of shuffle blocks, which no migration of Spark's has.
 *
 * <pre>
 *              shuffle (31 bits)                            map (63)  first partition  last
 *  a message   01, top bits of transfer and sum, length - 1 transfer  offset           CRC32C
 *  compressed  11, top bit of transfer, codec (2), length-1 transfer  offset           its bytes
 *  a word      10, type (3)                                 link      number           length
 * </pre>
 *
 * @param kind {@link #MESSAGE}, {@link #COMPRESSED}, {@link #WORD}, or something that nobody knows
 * @param type of a word; of a compressed message: the {@link MessageCodec}
 * @param number of a message: the transfer; of a word: the link
 * @param place of a message: its offset in the transfer; of a word: the question's number
 * @param length bytes of the body
 * @param sum of a message: the CRC32C of its bytes; of a compressed one: how many bytes it has when
 *     it is expanded, since their CRC32C comes before them in the body, four bytes, the lowest
 *     first
 */
record UploadId(int kind, int type, long number, int place, int length, int sum) {
  static final int MESSAGE = 1;
  static final int WORD = 2;
  static final int COMPRESSED = 3;

  /** Words. */
  static final int QUESTION = 1;

  static final int ANSWER = 2;

  /** The link has ended. */
  static final int BYE = 3;

  /** To oneself. */
  static final int ECHO = 4;

  /** Messages of a transfer were lost on their way; its place is the transfer's top bit. */
  static final int LOST = 5;

  private static final int KIND_SHIFT = 29;
  private static final int TYPE_SHIFT = 26;
  private static final int TYPE_MASK = 7;
  private static final int TOP_OF_NUMBER = 28;
  private static final int TOP_OF_SUM = 27;
  private static final int LENGTH_MASK = (1 << TOP_OF_SUM) - 1;
  private static final int CODEC_SHIFT = 26;
  private static final int CODEC_MASK = 3;
  private static final int COMPRESSED_MASK = (1 << CODEC_SHIFT) - 1;

  static UploadId message(
      final long transfer, final long offset, final long length, final int sum) {
    return new UploadId(
        MESSAGE, 0, transfer, Math.toIntExact(offset), Math.toIntExact(length), sum);
  }

  /**
   * @param length of the body
   * @param expanded how many bytes it has at its place
   */
  static UploadId compressed(
      final long transfer,
      final long offset,
      final MessageCodec codec,
      final int length,
      final int expanded) {
    return new UploadId(
        COMPRESSED, codec.ordinal(), transfer, Math.toIntExact(offset), length, expanded);
  }

  /** Bytes that a message has at its place. */
  int expanded() {
    return kind == COMPRESSED ? sum : length;
  }

  /**
   * @param link not negative
   * @param number not negative
   */
  static UploadId word(final int type, final long link, final int number, final int length) {
    return new UploadId(WORD, type, link, number, length, 0);
  }

  ShuffleBlockBatchId encode() {
    if (kind == WORD) {
      return new ShuffleBlockBatchId(
          kind << KIND_SHIFT | type << TYPE_SHIFT, number, place, length);
    }
    if (kind == COMPRESSED) {
      return new ShuffleBlockBatchId(
          kind << KIND_SHIFT
              | (int) (number >>> 63) << TOP_OF_NUMBER
              | type << CODEC_SHIFT
              | (length - 1),
          number & Long.MAX_VALUE,
          place,
          sum);
    }
    final int first =
        kind << KIND_SHIFT
            | (int) (number >>> 63) << TOP_OF_NUMBER
            | sum >>> 31 << TOP_OF_SUM
            | (length - 1);
    return new ShuffleBlockBatchId(first, number & Long.MAX_VALUE, place, sum & Integer.MAX_VALUE);
  }

  /** Takes any id apart, also one that makes no sense. */
  static UploadId decode(final ShuffleBlockBatchId id) {
    final int first = id.shuffleId();
    final int kind = first >>> KIND_SHIFT;
    final long transfer = id.mapId() | (long) (first >>> TOP_OF_NUMBER & 1) << 63;
    if (kind == COMPRESSED) {
      return new UploadId(
          kind,
          first >>> CODEC_SHIFT & CODEC_MASK,
          transfer,
          id.startReduceId(),
          (first & COMPRESSED_MASK) + 1,
          id.endReduceId());
    }
    if (kind != MESSAGE) {
      final int type = first >>> TYPE_SHIFT & TYPE_MASK;
      return new UploadId(kind, type, id.mapId(), id.startReduceId(), id.endReduceId(), 0);
    }
    final int sum = id.endReduceId() | (first >>> TOP_OF_SUM & 1) << 31;
    final int length = (first & LENGTH_MASK) + 1;
    return new UploadId(MESSAGE, 0, transfer, id.startReduceId(), length, sum);
  }
}
