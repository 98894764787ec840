package io.zerohop.shuffle.fetch.route;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.transport.BlockMemory;

/**
 * The path chosen for one owner's blocks.
 *
 * @param path the way
 * @param memory where to read in place; null if the blocks are moved
 * @param reason why blocks are staged; null for any other path. It has no place of its own: the
 *     owner is known
 */
public record Route(Path path, BlockMemory memory, Message reason) {

  static Route inPlace(final BlockMemory memory) {
    return new Route(memory.path(), memory, null);
  }

  static Route ucx() {
    return new Route(Path.UCX, null, null);
  }

  static Route sent() {
    return new Route(Path.SENT, null, null);
  }

  static Route staged(final Message reason) {
    return new Route(Path.STAGED, null, reason);
  }
}
