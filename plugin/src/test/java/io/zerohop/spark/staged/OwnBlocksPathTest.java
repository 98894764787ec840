package io.zerohop.spark.staged;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.shuffle.transport.contract.PathContract;
import io.zerohop.spark.LocalSpark;
import java.util.EnumSet;
import org.apache.spark.SparkEnv;
import org.junit.jupiter.api.extension.RegisterExtension;

/** An executor's own blocks come from what serves them, without the service. */
class OwnBlocksPathTest extends PathContract {
  @RegisterExtension static final LocalSpark SPARK = new LocalSpark();

  private Staging staging;

  @Override
  protected BlockPath path() {
    return BlockPath.STAGED;
  }

  @Override
  protected boolean isOwn() {
    return true;
  }

  @Override
  protected ShuffleNode.Setup configure(final ShuffleNode.Setup config, final String executor) {
    return config.set("paths", EnumSet.of(BlockPath.STAGED));
  }

  @Override
  protected Object address() {
    return SparkEnv.get().blockManager().blockManagerId();
  }

  @Override
  protected long movedBytes(final Block block) {
    return staging.sentBytes(block);
  }

  @Override
  protected FallbackTransport startFallback() {
    staging = new Staging(owner, Long.MAX_VALUE);
    return staging.transport();
  }

  @Override
  protected void endFallback() {
    staging.assertNothingHeld();
  }
}
