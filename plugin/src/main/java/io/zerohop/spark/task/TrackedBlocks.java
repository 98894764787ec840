package io.zerohop.spark.task;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.fetch.OwnerOrder;
import io.zerohop.spark.keeper.KeptId;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockId;
import org.jspecify.annotations.Nullable;
import scala.Option;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.Seq;

/** The blocks that Spark's tracker lists for a reduce task, in the form that all readers use. */
public final class TrackedBlocks {
  private static final KnownLocations LOCATIONS = new KnownLocations();

  private TrackedBlocks() {}

  /**
   * The blocks owner by owner, in an order of this task's own, see {@link OwnerOrder}.
   *
   * @param attempt the task attempt that reads, as {@code TaskContext.taskAttemptId} numbers it
   */
  public static List<BlockSource> sources(
      final Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> blocks,
      final long attempt) {
    return sources(blocks, attempt, 0);
  }

  /**
   * The same for blocks that are longer than their map statuses say.
   *
   * @param attempt as above
   * @param unsaid by how many bytes each is about longer
   */
  public static List<BlockSource> sources(
      final Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> blocks,
      final long attempt,
      final long unsaid) {
    final List<BlockSource> sources = new ArrayList<>();
    while (blocks.hasNext()) {
      final Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>> owner = blocks.next();
      final BlockManagerId address = owner._1();
      final Option<String> topology = address.topologyInfo();
      final Location location = topology.isDefined() ? LOCATIONS.of(topology.get()) : null;
      sources.add(
          new BlockSource(
              KeptId.executorOf(address.executorId()),
              location,
              address.host(),
              address,
              blocksOf(owner._2(), unsaid),
              KeptId.isOne(address.executorId())));
    }
    return OwnerOrder.of(sources, attempt);
  }

  private static List<Block> blocksOf(
      final Seq<Tuple3<BlockId, Object, Object>> listed, final long unsaid) {
    final List<Block> blocks = new ArrayList<>(listed.length());
    final Iterator<Tuple3<BlockId, Object, Object>> iterator = listed.iterator();
    while (iterator.hasNext()) {
      final Tuple3<BlockId, Object, Object> block = iterator.next();
      final ShuffleBlockId id = (ShuffleBlockId) block._1();
      blocks.add(
          new Block(
              id.shuffleId(),
              id.mapId(),
              (Integer) block._3(),
              id.reduceId(),
              unsaid + (Long) block._2()));
    }
    return blocks;
  }

  /**
   * Ends a fetch with its task; a task that stopped early must not succeed on memory that was lost.
   */
  public static void finish(final BlockFetcher fetcher, final TaskContext context) {
    try {
      check(fetcher, context);
    } finally {
      fetcher.close();
    }
  }

  /** Makes the same check for a fetch that another caller ends. */
  public static void check(final BlockFetcher fetcher, final TaskContext context) {
    try {
      if (!fetcher.isClosed() && !context.isFailed() && !context.isInterrupted()) {
        fetcher.checkIntact();
      }
    } catch (final ZerohopException e) {
      throw FailureOutcome.raise(e);
    }
  }

  /**
   * Locations by the text that carries them, parsed once. Each reduce task meets those of all
   * owners, and parsing a thousand of them takes several times as long as all that Spark does to
   * list its blocks. Thread safe.
   */
  static final class KnownLocations {
    /** Some MB; executors come and go, and nobody says which text will not come again. */
    private static final int MOST = 16_384;

    private final Map<String, Location> known = new ConcurrentHashMap<>();

    /** The location; null if the text is null or none of this version. */
    @Nullable Location of(final @Nullable String text) {
      if (text == null) {
        return null;
      }
      final Location location = known.get(text);
      return location != null ? location : parse(text);
    }

    private @Nullable Location parse(final String text) {
      final Location location = Location.parse(text);
      if (location != null) {
        if (known.size() >= MOST) {
          known.clear();
        }
        known.put(text, location);
      }
      return location;
    }

    /** Locations that are kept. */
    int size() {
      return known.size();
    }
  }
}
