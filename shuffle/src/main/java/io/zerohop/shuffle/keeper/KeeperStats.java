package io.zerohop.shuffle.keeper;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * The numbers that a keeper tells in its greeting: sixteen of 8 bytes each, behind a version of one
 * byte, and then its release.
 *
 * @param startedMillis when it started, in milliseconds since 1970; 0 of none
 * @param limitBytes maximum of {@code heldBytes}
 * @param heldBytes segments of executors that live and of those that have ended
 * @param leftBytes segments of executors that have ended
 * @param leftOutputs map outputs of executors that have ended
 * @param adoptedOutputs map outputs taken over since the start
 * @param droppedOutputs of these, those that were dropped
 * @param removedOutputs of these, those that were removed because memory was short
 * @param refusedSegments segments beyond the keeper's limit since the start
 * @param sharedSegments segments of ended executors whose descriptors executors of the node got
 * @param sharedBytes their bytes
 * @param sentBlocks blocks, and parts of large ones, sent to executors of other nodes, and out of
 *     files also to those of this node
 * @param sentBytes their bytes
 * @param fileBytes bytes in files, of executors that have ended
 * @param fileLimitBytes maximum of them; 0 if nothing goes to files
 * @param fileOutputs the part of {@code leftOutputs} that is in files
 * @param release of its jar; empty if it is not known
 */
public record KeeperStats(
    long startedMillis,
    long limitBytes,
    long heldBytes,
    long leftBytes,
    long leftOutputs,
    long adoptedOutputs,
    long droppedOutputs,
    long removedOutputs,
    long refusedSegments,
    long sharedSegments,
    long sharedBytes,
    long sentBlocks,
    long sentBytes,
    long fileBytes,
    long fileLimitBytes,
    long fileOutputs,
    String release) {
  /** Of no keeper. */
  public static final KeeperStats NONE =
      new KeeperStats(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "");

  private static final byte VERSION = 2;
  private static final int NUMBERS = 1 + 16 * Long.BYTES;
  private static final int MAX_RELEASE = 100;

  byte[] encode() {
    final byte[] text = release.getBytes(StandardCharsets.UTF_8);
    final int length = Math.min(text.length, MAX_RELEASE);
    return ByteBuffer.allocate(NUMBERS + length)
        .put(VERSION)
        .putLong(startedMillis)
        .putLong(limitBytes)
        .putLong(heldBytes)
        .putLong(leftBytes)
        .putLong(leftOutputs)
        .putLong(adoptedOutputs)
        .putLong(droppedOutputs)
        .putLong(removedOutputs)
        .putLong(refusedSegments)
        .putLong(sharedSegments)
        .putLong(sharedBytes)
        .putLong(sentBlocks)
        .putLong(sentBytes)
        .putLong(fileBytes)
        .putLong(fileLimitBytes)
        .putLong(fileOutputs)
        .put(text, 0, length)
        .array();
  }

  /** Reads a keeper's greeting; absent if it is of another version. */
  public static @Nullable KeeperStats decode(final byte[] greeting) {
    if (greeting.length < NUMBERS
        || greeting.length > NUMBERS + MAX_RELEASE
        || greeting[0] != VERSION) {
      return null;
    }
    final ByteBuffer bytes = ByteBuffer.wrap(greeting, 1, greeting.length - 1);
    return new KeeperStats(
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        bytes.getLong(),
        StandardCharsets.UTF_8.decode(bytes).toString());
  }
}
