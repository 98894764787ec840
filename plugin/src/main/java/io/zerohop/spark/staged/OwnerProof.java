package io.zerohop.spark.staged;

import io.zerohop.shuffle.ShuffleNode;
import java.nio.ByteBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.storage.ShuffleBlockId;
import org.jspecify.annotations.Nullable;

/**
 * The name of a block that one life of an executor alone has, and no other executor of any
 * application. Readers ask for it together with an owner's blocks, since Spark's service looks
 * neither at the application nor at the executor that a request names: who has the port of an
 * executor that has ended would give blocks of its own that have the same numbers. The service
 * looks for all blocks of a request before it sends the first one, and refuses the request if one
 * is missing.
 *
 * <p>It is the last block of a request, so that it is also in each request by which Spark's client
 * asks again for what a lost connection had to bring: blocks come in order.
 *
 * <p>Its map id has the mark, and the upper 62 bits of the incarnation; the rest is in the
 * partition. Map ids of Spark are numbers of task attempts and never come near the mark.
 */
final class OwnerProof {
  private static final long MARK = 1L << 62;
  private static final int LOWER_BITS = 2;

  private OwnerProof() {}

  /** Names the block of one life, for a request for blocks of a shuffle. */
  static ShuffleBlockId of(final int shuffleId, final long incarnation) {
    return new ShuffleBlockId(
        shuffleId,
        MARK | incarnation >>> LOWER_BITS,
        (int) (incarnation & ((1 << LOWER_BITS) - 1)));
  }

  /** Returns whether somebody asks for a proof, and not for a map output's block. */
  static boolean isOne(final ShuffleBlockId asked) {
    return asked.mapId() >= MARK;
  }

  /**
   * The block, if it is this executor's.
   *
   * @param node of this executor, if it shares memory
   * @throws IllegalStateException if it is another one's
   */
  static ManagedBuffer give(final ShuffleBlockId asked, final @Nullable ShuffleNode node) {
    if (node == null || !asked.equals(of(asked.shuffleId(), node.location().incarnation()))) {
      throw new IllegalStateException(
          "the executor that is asked has ended, and another one has its port");
    }
    return new NioManagedBuffer(ByteBuffer.allocate(1)); // Nobody reads it.
  }
}
