package io.zerohop.shuffle.fetch.route;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.transport.BlockMemory;
import org.jspecify.annotations.Nullable;

/**
 * The path chosen for one owner's blocks.
 *
 * @param path the way
 * @param memory where to read in place; absent if the blocks are moved
 * @param reason why blocks are staged; absent for any other path. It has no place of its own: the
 *     owner is known
 */
public record Route(Path path, @Nullable BlockMemory memory, @Nullable Message reason) {

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
