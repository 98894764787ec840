package io.zerohop.shuffle.fetch.route;

import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.transport.BlockMemory;

/**
 * The way chosen for one owner's blocks.
 *
 * @param path the way
 * @param memory where to read in place; null if the blocks are moved
 * @param reason why it is no better way, for messages
 */
public record Route(Path path, BlockMemory memory, String reason) {

  static Route inPlace(final BlockMemory memory) {
    return new Route(memory.path(), memory, "");
  }

  static Route ucx() {
    return new Route(Path.UCX, null, "");
  }

  static Route sent() {
    return new Route(Path.SENT, null, "");
  }

  static Route staged(final String reason) {
    return new Route(Path.STAGED, null, reason);
  }
}
