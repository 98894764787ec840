package io.zerohop.shuffle.transport;

import io.zerohop.shuffle.block.BlockSource;
import java.time.Duration;

/**
 * The transport for blocks that no other one can read. It does not depend on the others, and also
 * reads blocks that an owner has in files. Thread safe.
 */
@FunctionalInterface
public interface FallbackTransport extends Transport {

  /**
   * Returns whether anybody serves an owner's blocks: false if nobody answers there although there
   * is a way, or for all of the limit. Waits no longer than that.
   */
  default boolean answers(final BlockSource source, final Duration limit) {
    return true;
  }
}
