package io.zerohop.spark.task;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.spark.keeper.KeptId;
import io.zerohop.spark.metrics.ReadMetrics;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockId;
import org.apache.spark.util.TaskCompletionListener;
import org.jspecify.annotations.Nullable;
import scala.Option;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * A task that reads blocks: which, who counts them, and how its reads end.
 *
 * @param blocks owners and their blocks, as Spark's tracker gives them; to be read once
 * @param metrics Spark's, of what is read
 * @param pathMetrics told of every window
 */
public record ReduceTask(
    Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> blocks,
    TaskContext context,
    ShuffleReadMetricsReporter metrics,
    ReadMetrics pathMetrics) {
  private static final KnownLocations LOCATIONS = new KnownLocations();

  /**
   * Returns the blocks owner by owner, in an order of this task's own, see {@link
   * BlockSource#turned}.
   *
   * @param unsaid by how many bytes each is about longer than its map status says
   */
  public List<BlockSource> sources(final long unsaid) {
    return sources(blocks, context.taskAttemptId(), unsaid);
  }

  /**
   * As {@link #sources(long)}.
   *
   * @param attempt the task attempt that reads, as {@code TaskContext.taskAttemptId} numbers it
   */
  static List<BlockSource> sources(
      final Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> listed,
      final long attempt,
      final long unsaid) {
    final List<BlockSource> sources = new ArrayList<>();
    while (listed.hasNext()) {
      final Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>> owner = listed.next();
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
    return BlockSource.turned(sources, attempt);
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
   * The end of one read: with its last block, or else with its task. A task may have thousands of
   * reads, and Spark keeps each listener until the task ends: so one that is done keeps nothing of
   * its read. Thread safe.
   */
  public static final class ReadEnd implements TaskCompletionListener {
    /** Absent once the read has ended. */
    private @Nullable Read read;

    /**
     * @param last told when the task ends before the read was done, and nothing is released yet
     */
    private record Read(ReduceTask task, Fetch fetch, Runnable last) {}

    /**
     * Ends a read with its task; at once if that has ended.
     *
     * @param last counts what the reader has not yet, if its task ends first
     */
    public void begin(final ReduceTask task, final Fetch fetch, final Runnable last) {
      synchronized (this) {
        read = new Read(task, fetch, last);
      }
      task.context().addTaskCompletionListener(this);
    }

    /**
     * All was read, and nothing of it is needed any more. Idempotent.
     *
     * @throws RuntimeException that Spark should see, if what was read was lost meanwhile
     */
    public void done() {
      final Read ending = current();
      if (ending != null) {
        ending.task().context().taskMetrics().mergeShuffleReadMetrics();
        end(ending, true);
        synchronized (this) {
          read = null;
        }
      }
    }

    private synchronized @Nullable Read current() {
      return read;
    }

    /** A task that stopped early must not succeed on memory that was lost. */
    @Override
    public void onTaskCompletion(final TaskContext task) {
      final Read ending = current();
      if (ending != null) {
        ending.last().run();
        end(ending, !task.isFailed() && !task.isInterrupted());
      }
    }

    private static void end(final Read ending, final boolean checks) {
      try {
        if (checks) {
          ending.fetch().finish();
        } else {
          ending.fetch().close();
        }
      } catch (final ZerohopException e) {
        throw FailureOutcome.raise(e);
      } finally {
        ending.task().pathMetrics().end();
      }
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
