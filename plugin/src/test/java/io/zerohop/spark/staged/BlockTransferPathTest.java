package io.zerohop.spark.staged;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.shuffle.transport.contract.RemotePathContract;
import io.zerohop.spark.LocalSpark;
import java.util.EnumSet;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Another executor's blocks come by Spark's block transfer service, compressed, into memory. */
class BlockTransferPathTest extends RemotePathContract {
  @Order(1)
  @RegisterExtension
  static final LocalSpark SPARK = new LocalSpark();

  @Order(2)
  @RegisterExtension
  static final OwnerService SERVICE = new OwnerService();

  private Staging staging;

  /** Blocks over this size come by way of files. */
  protected long largeBytes() {
    return Long.MAX_VALUE;
  }

  @Override
  protected BlockPath path() {
    return BlockPath.STAGED;
  }

  @Override
  protected ShuffleNode.Setup configure(final ShuffleNode.Setup config, final String executor) {
    return config.set("paths", EnumSet.of(BlockPath.STAGED));
  }

  @Override
  protected Object address() {
    return SERVICE.address();
  }

  /** Spark refuses a request for blocks of which it does not find one. */
  @Override
  protected boolean failsAlone() {
    return false;
  }

  @Override
  protected long movedBytes(final Block block) {
    return staging.sentBytes(block);
  }

  @Override
  protected FallbackTransport startFallback() {
    staging = new Staging(owner, largeBytes());
    SERVICE.serve(staging::served);
    return staging.transport();
  }

  @Override
  protected void endService() {
    SERVICE.move();
  }

  @Override
  protected void endFallback() {
    staging.assertNothingHeld();
    SERVICE.serveNothing();
  }
}
