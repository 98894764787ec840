package io.zerohop.shuffle.transport;

import io.zerohop.shuffle.block.BlockSource;
import java.time.Duration;

/**
 * The transport that needs nothing of what the others do, takes blocks that an owner has in files,
 * too, and is left when no other is possible. Thread safe.
 */
@FunctionalInterface
public interface FallbackTransport extends Transport {

  /**
   * Whether anybody serves an owner's blocks: false if nobody answers there although there is a
   * way, or for all of the limit. Waits no longer than that.
   */
  default boolean answers(final BlockSource source, final Duration limit) {
    return true;
  }
}
