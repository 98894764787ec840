package io.zerohop.shuffle.fetch;

import io.zerohop.shuffle.block.BlockSource;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * The order in which a reader visits owners. Spark lists them in the same order to every task of a
 * stage, and tasks of a stage start together; so all of them would ask the first owner at once,
 * then the second, while the others have nothing to do.
 */
public final class OwnerOrder {
  private OwnerOrder() {}

  /**
   * The sources turned round by the reader's number. Numbers that follow one another, as those of
   * the tasks of a stage do, begin with different owners, and each owner comes first as often as
   * any other.
   *
   * @param sources left as they are
   * @param reader tells readers apart; any value
   * @return the same sources in a list of the caller's
   */
  public static List<BlockSource> of(final List<BlockSource> sources, final long reader) {
    final List<BlockSource> turned = new ArrayList<>(sources);
    if (!turned.isEmpty()) {
      Collections.rotate(turned, -(int) Math.floorMod(reader, (long) turned.size()));
    }
    return turned;
  }
}
