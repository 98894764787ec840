package io.zerohop.spark.staged;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.spark.outputfiles.MapOutputFiles;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockId;
import scala.Option;

/** A node's blocks by Spark's block transfer: what serves them, and what reads them. */
final class Staging {
  private final ZerohopBlockResolver resolver;
  private final WatchedTransport transport;

  /**
   * @param owner of the blocks
   * @param largeBytes blocks over this size are received in files
   */
  Staging(final ShuffleNode owner, final long largeBytes) {
    final SparkEnv env = SparkEnv.get();
    final IndexShuffleBlockResolver index =
        (IndexShuffleBlockResolver) env.shuffleManager().shuffleBlockResolver();
    resolver = new ZerohopBlockResolver(index, new MapOutputFiles(), () -> owner);
    transport = new WatchedTransport(new BlockTransferTransport(env, resolver, largeBytes));
  }

  /** What the owner's executor serves to Spark. */
  ManagedBuffer served(final BlockId id) {
    return resolver.getBlockData(id, Option.empty());
  }

  WatchedTransport transport() {
    return transport;
  }

  /** Bytes of a block as it is sent. */
  long sentBytes(final Block block) {
    final ManagedBuffer sent =
        served(new ShuffleBlockId(block.shuffleId(), block.mapId(), block.partition()));
    try {
      return sent.size();
    } finally {
      sent.release();
    }
  }

  /** Nothing is on its way, and neither memory of Spark's client nor a file is left. */
  void assertNothingHeld() {
    transport.assertAllReported();
    transport.assertAllReleased();
    TestNodes.eventually(
        "no temporary file is left",
        () -> SparkEnv.get().blockManager().diskBlockManager().getAllFiles().isEmpty());
  }
}
