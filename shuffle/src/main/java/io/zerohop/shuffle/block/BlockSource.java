package io.zerohop.shuffle.block;

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

  /** The location of an owner whose map status says it: of each that is connected to. */
  public Location knownLocation() {
    return Objects.requireNonNull(location, "the map status names no memory");
  }
}
