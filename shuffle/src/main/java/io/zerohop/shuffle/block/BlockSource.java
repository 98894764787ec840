package io.zerohop.shuffle.block;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The blocks that one executor holds for one reader.
 *
 * @param executorId the owner, for messages
 * @param location how to reach the owner's memory; absent if its map status did not say
 * @param host where its executor runs, as Spark knows it; empty if that is not known
 * @param address what the staged transport and failure reports need; opaque here
 * @param blocks the blocks wanted, in the order in which they should be read
 * @param kept whether a keeper of the owner's node has them once the owner has ended
 */
public record BlockSource(
    String executorId,
    @Nullable Location location,
    String host,
    Object address,
    List<Block> blocks,
    boolean kept) {

  /** Blocks that end with their owner. */
  public BlockSource(
      final String executorId,
      final @Nullable Location location,
      final String host,
      final Object address,
      final List<Block> blocks) {
    this(executorId, location, host, address, blocks, false);
  }

  /** An owner whose host does not matter, since it is not read from another node. */
  public BlockSource(
      final String executorId,
      final @Nullable Location location,
      final Object address,
      final List<Block> blocks) {
    this(executorId, location, "", address, blocks);
  }

  /**
   * Returns the order in which a reader visits owners: the sources turned round by its number.
   * Spark lists them in the same order to every task of a stage, and tasks of a stage start
   * together; so all of them would ask the first owner at once, then the second, while the others
   * have nothing to do. Numbers that follow one another, as those of the tasks of a stage do, begin
   * with different owners, and each owner comes first as often as any other.
   *
   * @param sources left as they are
   * @param reader tells readers apart; any value
   * @return the same sources in a list of the caller's
   */
  public static List<BlockSource> turned(final List<BlockSource> sources, final long reader) {
    final List<BlockSource> turned = new ArrayList<>(sources);
    if (!turned.isEmpty()) {
      Collections.rotate(turned, -(int) Math.floorMod(reader, (long) turned.size()));
    }
    return turned;
  }

  /** The location of an owner whose map status says it: of each that is connected to. */
  public Location knownLocation() {
    return Objects.requireNonNull(location, "the map status names no memory");
  }
}
