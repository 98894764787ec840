package io.zerohop.spark.rapids.setup;

import io.zerohop.spark.conf.ZerohopConf;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkStatusTracker;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.CoalescedPartitionSpec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec;
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec;
import org.apache.spark.sql.execution.exchange.ENSURE_REQUIREMENTS$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.jspecify.annotations.Nullable;
import scala.Some;
import scala.collection.Seq;
import scala.collection.immutable.$colon$colon;
import scala.collection.immutable.Nil$;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * Makes few, large reduce tasks of many small ones where all that they do runs on the GPU. Adaptive
 * execution coalesces shuffle partitions so that each core has a task; on a GPU a small task costs
 * nearly as much as a large one. This rule coalesces further, as Spark does with {@code
 * spark.sql.adaptive.coalescePartitions.parallelismFirst=false}, but only in stages
 *
 * <ul>
 *   <li>whose operators are all RAPIDS' own, and call no Python or row functions: others keep a
 *       core busy for each task;
 *   <li>without nested loops: their work does not follow from the bytes that they read, and Spark
 *       makes their tasks smaller for that reason, from 4.0.2 on;
 *   <li>whose output goes to an exchange that Spark needs itself. The number of tasks of a last
 *       stage is the number of files that it writes, or of partitions that somebody reads; and
 *       where a user asked for the exchange, Spark splits a large partition of it between the tasks
 *       that wrote it;
 *   <li>all of whose shuffles were coalesced by Spark, for its own needs: not where the user asked
 *       for partitions, and not where Spark split a skewed one.
 * </ul>
 *
 * <p>Shuffles that Spark coalesced in the same way stay coalesced in the same way, since a join
 * reads partition n of both. Others share the maximum size, since a union may read several of them
 * in one task. For the driver. Thread safe.
 */
final class CoalesceRule extends Rule<SparkPlan> {
  static final String KEY = "spark.zerohop.rapids.coalesce.size";

  private static final String READ =
      "org.apache.spark.sql.rapids.execution.GpuCustomShuffleReaderExec";

  private static final Set<String> EXCHANGES =
      Set.of(KudoRule.EXCHANGE, "org.apache.spark.sql.rapids.execution.GpuBroadcastExchangeExec");

  private static final String GPU_OPERATOR = "com.nvidia.spark.rapids.GpuExec";

  /**
   * Operators of RAPIDS that have processes of Python work for them, and those that compare each
   * row of one side with each of the other.
   */
  private static final Pattern KEPT_APART =
      Pattern.compile("Python|Pandas|Arrow|CartesianProduct|NestedLoopJoin");

  /** Expressions of RAPIDS that are evaluated row by row on a core. */
  private static final Pattern ROW_EXPRESSION = Pattern.compile("RowBased|CpuBridge");

  /** A task for each executor gets at least the maximum size divided by this. */
  private static final int SPREAD = 8;

  private static final ClassValue<Boolean> LARGE_TASKS =
      new ClassValue<>() {
        @Override
        protected Boolean computeValue(final Class<?> type) {
          return isGpuOperator(type) && !KEPT_APART.matcher(type.getSimpleName()).find();
        }
      };

  /**
   * Partitions that a task reads, of all shuffles that were coalesced alike.
   *
   * @param start the first partition
   * @param end behind the last one
   */
  record Range(int start, int end) {}

  @Override
  public SparkPlan apply(final SparkPlan plan) {
    final SparkEnv env = SparkEnv.get();
    if (env == null
        || !RapidsMode.isActive(env.conf())
        || RapidsMode.REDUCE_TASKS.stream().anyMatch(conf()::contains)) {
      return plan;
    }
    final long size = size(env.conf());
    return size == 0 ? plan : coalesced(plan, size);
  }

  /** A session may set it, too. */
  private long size(final SparkConf conf) {
    final String set = conf().getConfString(KEY, null);
    return ZerohopConf.of(set == null ? conf : conf.clone().set(KEY, set)).rapids().coalesceSize();
  }

  private static SparkPlan coalesced(final SparkPlan plan, final long size) {
    return plan.transformUp(
        new AbstractPartialFunction<SparkPlan, SparkPlan>() {
          @Override
          public boolean isDefinedAt(final SparkPlan node) {
            return isExchange(node);
          }

          @Override
          public SparkPlan apply(final SparkPlan exchange) {
            if (exchange instanceof ShuffleExchangeLike shuffle && !isForSpark(shuffle)) {
              return exchange;
            }
            final Stage stage = new Stage();
            exchange.mapChildren(stage.visitor());
            return stage.canCoalesce() ? exchange.mapChildren(stage.coalescer(size)) : exchange;
          }
        });
  }

  /**
   * Groups neighbouring ranges.
   *
   * @param bytes of each range
   * @param target maximum bytes of a group of several
   * @return how many ranges each task reads
   */
  static List<Integer> tasks(final long[] bytes, final long target) {
    final long total = Arrays.stream(bytes).sum();
    final long tasks = Math.max(1, (total + target - 1) / target);
    final long even = (total + tasks - 1) / tasks;
    final List<Integer> counts = new ArrayList<>();
    long size = 0;
    int count = 0;
    for (final long next : bytes) {
      if (count > 0 && (size + next > target || size + next / 2 > even)) {
        counts.add(count);
        size = 0;
        count = 0;
      }
      size += next;
      count++;
    }
    if (count > 0) {
      counts.add(count);
    }
    return counts;
  }

  /**
   * Returns how many bytes of shuffles that are coalesced alike a task should read.
   *
   * @param total bytes of these shuffles
   * @param executors among which they should be spread
   * @param size maximum of a task
   * @param groups how many such groups of shuffles the stage reads
   */
  static long target(final long total, final int executors, final long size, final int groups) {
    return Math.max(1, Math.min(size / groups, Math.max(total / executors, size / SPREAD)));
  }

  /** Asks nobody: the driver's own list of executors, which its events keep. */
  private static int executors() {
    // The driver is listed, too. In local mode it is the only one, and runs the tasks.
    final SparkStatusTracker status = SparkSession.active().sparkContext().statusTracker();
    return Math.max(1, status.getExecutorInfos().length - 1);
  }

  /** Whether Spark put the exchange there for its own needs, and no user asked for it. */
  private static boolean isForSpark(final ShuffleExchangeLike shuffle) {
    return shuffle.shuffleOrigin() == (Object) ENSURE_REQUIREMENTS$.MODULE$;
  }

  private static boolean isExchange(final SparkPlan node) {
    return EXCHANGES.contains(node.getClass().getName());
  }

  private static boolean isGpuOperator(final @Nullable Class<?> type) {
    return type != null
        && (type.getName().equals(GPU_OPERATOR)
            || isGpuOperator(type.getSuperclass())
            || Arrays.stream(type.getInterfaces()).anyMatch(CoalesceRule::isGpuOperator));
  }

  /**
   * A read of a shuffle.
   *
   * @param specs what each task reads of it
   * @param bytes of its partitions
   */
  private record Read(List<Range> specs, long[] bytes) {
    /** Null if it is not one that Spark coalesced for its own needs. */
    static @Nullable Read of(final SparkPlan node) {
      if (!(node.productElement(0) instanceof ShuffleQueryStageExec shuffle)
          || !isForSpark(shuffle.shuffle())
          || shuffle.mapStats().isEmpty()) {
        return null;
      }
      final long[] bytes = shuffle.mapStats().get().bytesByPartitionId();
      final Seq<?> listed = (Seq<?>) node.productElement(1);
      final List<Range> specs = new ArrayList<>();
      int from = 0;
      for (int i = 0; i < listed.length(); i++) {
        if (!(listed.apply(i) instanceof CoalescedPartitionSpec spec)
            || spec.startReducerIndex() < from
            || spec.endReducerIndex() <= spec.startReducerIndex()
            || spec.endReducerIndex() > bytes.length) {
          return null;
        }
        from = spec.endReducerIndex();
        specs.add(new Range(spec.startReducerIndex(), from));
      }
      return new Read(specs, bytes);
    }

    private long bytesOf(final Range range) {
      long sum = 0;
      for (int i = range.start; i < range.end; i++) {
        sum += bytes[i];
      }
      return sum;
    }

    /** The same with fewer tasks. */
    SparkPlan coalesced(final SparkPlan node, final List<Integer> counts) {
      scala.collection.immutable.List<CoalescedPartitionSpec> list = nil();
      int end = specs.size();
      for (int task = counts.size() - 1; task >= 0; task--) {
        final int start = end - counts.get(task);
        final Range range = new Range(specs.get(start).start, specs.get(end - 1).end);
        list =
            new $colon$colon<>(
                new CoalescedPartitionSpec(range.start, range.end, new Some<>(bytesOf(range))),
                list);
        end = start;
      }
      return node.makeCopy(new Object[] {node.productElement(0), list});
    }

    @SuppressWarnings("unchecked") // It has no elements.
    private static <E> scala.collection.immutable.List<E> nil() {
      return (scala.collection.immutable.List<E>) Nil$.MODULE$;
    }
  }

  /** Operators that run in the tasks of one stage, down to the exchanges that it reads. */
  private static final class Stage {
    private final IdentityHashMap<SparkPlan, Read> reads = new IdentityHashMap<>();
    private boolean allowsLargeTasks = true;

    private boolean canCoalesce() {
      return allowsLargeTasks && !reads.isEmpty();
    }

    /** Children are visited by a method whose signature is the same for Scala 2.12 and 2.13. */
    private AbstractFunction1<SparkPlan, SparkPlan> visitor() {
      return new AbstractFunction1<>() {
        @Override
        public SparkPlan apply(final SparkPlan node) {
          visit(node);
          return node;
        }
      };
    }

    private void visit(final SparkPlan node) {
      if (node.getClass().getName().equals(READ)) {
        final Read read = Read.of(node);
        if (read == null) {
          allowsLargeTasks = false;
        } else {
          reads.put(node, read);
        }
      } else if (node instanceof ShuffleQueryStageExec || isExchange(node)) {
        allowsLargeTasks = false; // Its number of partitions is not ours to say.
      } else if (!(node instanceof BroadcastQueryStageExec)) {
        allowsLargeTasks &= LARGE_TASKS.get(node.getClass()) && !callsRowFunctions(node);
        node.mapChildren(visitor());
      }
    }

    private static boolean callsRowFunctions(final SparkPlan node) {
      final boolean[] found = new boolean[1];
      node.transformExpressions(
          new AbstractPartialFunction<Expression, Expression>() {
            @Override
            public boolean isDefinedAt(final Expression one) {
              found[0] |= ROW_EXPRESSION.matcher(one.getClass().getSimpleName()).find();
              return false;
            }

            @Override
            public Expression apply(final Expression one) {
              return one;
            }
          });
      return found[0];
    }

    private AbstractFunction1<SparkPlan, SparkPlan> coalescer(final long size) {
      final Map<List<Range>, List<Integer>> tasks = tasksOf(size);
      return new AbstractFunction1<>() {
        @Override
        public SparkPlan apply(final SparkPlan node) {
          final Read read = reads.get(node);
          if (read == null) {
            return node instanceof BroadcastQueryStageExec ? node : node.mapChildren(this);
          }
          final List<Integer> counts = Objects.requireNonNull(tasks.get(read.specs));
          return counts.size() == read.specs.size() ? node : read.coalesced(node, counts);
        }
      };
    }

    /** Each task reads the same ranges of all shuffles that were coalesced alike. */
    private Map<List<Range>, List<Integer>> tasksOf(final long size) {
      final Map<List<Range>, long[]> bytes = new HashMap<>();
      for (final Read read : reads.values()) {
        final long[] sums = bytes.computeIfAbsent(read.specs, specs -> new long[specs.size()]);
        for (int i = 0; i < sums.length; i++) {
          sums[i] += read.bytesOf(read.specs.get(i));
        }
      }
      final int executors = executors();
      final Map<List<Range>, List<Integer>> tasks = new HashMap<>();
      bytes.forEach(
          (specs, sums) ->
              tasks.put(
                  specs,
                  tasks(sums, target(Arrays.stream(sums).sum(), executors, size, bytes.size()))));
      return tasks;
    }
  }
}
