package io.zerohop.spark.metrics;

import io.zerohop.shuffle.block.Path;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.util.LongAccumulator;
import org.jspecify.annotations.Nullable;

/**
 * Named accumulators that show on the Stages page which paths a shuffle's bytes took. Made on the
 * driver for every shuffle, since the page shows an accumulator's total and not a stage's share of
 * it; they travel in the shuffle's handle, so that tasks have them without any further message.
 * Updates of failed tasks do not count, as with Spark's own metrics.
 *
 * <p>Spark attaches to a task every accumulator that comes with its closure and sends its value
 * back, used or not; the driver keeps those that changed for each of the last 100,000 tasks ({@code
 * spark.ui.retainedTasks}). So they travel as bytes, and a task makes only those that it has
 * something to add to: one or two for a shuffle that it reads, and none for one that it writes.
 * Thread safe.
 */
public final class PathAccumulators implements Serializable {
  private static final long serialVersionUID = 2L;

  private final Map<Path, byte[]> packed = new EnumMap<>(Path.class);

  /** The driver's own; Spark itself refers to them weakly only. */
  private final transient Map<Path, LongAccumulator> originals = new EnumMap<>(Path.class);

  /** Those that this task has made so far, if any. */
  private transient @Nullable Map<Path, LongAccumulator> made;

  private PathAccumulators() {}

  public static PathAccumulators register(final SparkContext context) {
    final PathAccumulators accumulators = new PathAccumulators();
    for (final Path path : Path.values()) {
      final LongAccumulator bytes = context.longAccumulator(name(path));
      accumulators.originals.put(path, bytes);
      accumulators.packed.put(path, pack(bytes));
    }
    return accumulators;
  }

  /** The name that tools see. */
  static String name(final Path path) {
    return "zerohop." + Metric.bytes(path).key();
  }

  /** Adds what one window brought to a task. */
  synchronized void add(final TaskContext task, final Path path, final long byteCount) {
    if (made == null) {
      made = new EnumMap<>(Path.class);
    }
    made.computeIfAbsent(path, one -> unpack(Objects.requireNonNull(packed.get(one)), task))
        .add(byteCount);
  }

  private static byte[] pack(final LongAccumulator accumulator) {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(accumulator);
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }

  /** An accumulator that is read in a task's thread belongs to the task from then on. */
  private static LongAccumulator unpack(final byte[] bytes, final TaskContext task) {
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
      final LongAccumulator accumulator = (LongAccumulator) in.readObject();
      if (TaskContext.get() == null) {
        task.registerAccumulator(accumulator); // A thread that the task has started.
      }
      return accumulator;
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    } catch (final ClassNotFoundException e) {
      throw new IllegalStateException(e);
    }
  }
}
