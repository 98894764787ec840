package io.zerohop.workload;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.execution.BaseSubqueryExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;

/**
 * What decides how fast a plan can be and must not depend on the shuffle: which joins it has, from
 * which side each builds, and what it exchanges. Whoever compares two shuffles shows by it that
 * both have run the same plan. How many partitions adaptive execution reads together is kept apart:
 * it depends on the bytes of a shuffle, and these on whether it compresses them.
 *
 * <p>In plan order, children before subqueries. An exchange or subquery that is used twice counts
 * once. Immutable.
 */
public final class PlanShape {
  /**
   * A shuffle or a broadcast.
   *
   * @param name its class
   * @param partitions how many it has before adaptive execution reads several as one
   * @param dataSize bytes of its rows before they are serialised, or of its batches
   * @param rows how many, or null if it does not count them
   */
  public record Exchange(String name, int partitions, long dataSize, Long rows) {}

  /**
   * How adaptive execution reads a shuffle.
   *
   * @param partitions how many tasks read it
   * @param local whether a task reads what some map tasks wrote instead of a partition
   * @param coalesced whether a task reads several partitions
   * @param skewed whether several tasks read one partition
   */
  public record Read(int partitions, boolean local, boolean coalesced, boolean skewed) {}

  private final List<String> joins = new ArrayList<>();
  private final List<Exchange> shuffles = new ArrayList<>();
  private final List<Exchange> broadcasts = new ArrayList<>();
  private final List<Read> reads = new ArrayList<>();
  private final Set<SparkPlan> seen = Collections.newSetFromMap(new IdentityHashMap<>());

  private PlanShape(final SparkPlan plan) {
    look(plan);
    seen.clear();
  }

  /** The shape of a plan that has run, adaptive or not. */
  public static PlanShape of(final SparkPlan plan) {
    return new PlanShape(plan);
  }

  /** Each join's class, its type and the side that it builds from. */
  public List<String> joins() {
    return List.copyOf(joins);
  }

  /** How many shuffles it has. */
  public int shuffles() {
    return shuffles.size();
  }

  /** How many broadcasts it has. */
  public int broadcasts() {
    return broadcasts.size();
  }

  /** Shuffles first, then broadcasts. */
  public List<Exchange> exchanges() {
    final List<Exchange> exchanges = new ArrayList<>(shuffles);
    exchanges.addAll(broadcasts);
    return exchanges;
  }

  /** How adaptive execution reads shuffles. */
  public List<Read> reads() {
    return List.copyOf(reads);
  }

  /** How many tasks each adaptive read of a shuffle has. */
  public List<Integer> readPartitions() {
    return reads.stream().map(Read::partitions).toList();
  }

  /** The bytes of all shuffles' rows, before they are serialised and compressed. */
  public long dataSize() {
    return shuffles.stream().mapToLong(Exchange::dataSize).sum();
  }

  /** What a measurement says of it. */
  public Map<String, Object> toMap() {
    final Map<String, Object> map = new LinkedHashMap<>();
    map.put("joins", joins());
    map.put("shuffles", shuffles());
    map.put("broadcasts", broadcasts());
    map.put("data_bytes", dataSize());
    map.put("shuffle_partitions", shuffles.stream().map(Exchange::partitions).toList());
    map.put("read_partitions", readPartitions());
    map.put("local_reads", reads.stream().filter(Read::local).count());
    map.put("coalesced_reads", reads.stream().filter(Read::coalesced).count());
    map.put("skewed_reads", reads.stream().filter(Read::skewed).count());
    return map;
  }

  /**
   * Says how another plan of the same query differs: in joins, their build sides, and how often
   * something is exchanged. Reads are not compared, nor is the order of joins: of two uses of an
   * exchange either may be the one that the other refers to.
   *
   * @return no line if they are alike
   */
  public List<String> differences(final PlanShape other) {
    final List<String> differences = new ArrayList<>();
    compare(
        "joins",
        joins.stream().sorted().toList(),
        other.joins.stream().sorted().toList(),
        differences);
    compare("shuffles", shuffles(), other.shuffles(), differences);
    compare("broadcasts", broadcasts(), other.broadcasts(), differences);
    return differences;
  }

  private static void compare(
      final String what, final Object here, final Object there, final List<String> differences) {
    if (!here.equals(there)) {
      differences.add(what + ": " + here + " and " + there);
    }
  }

  /** Adaptive execution hides what it has decided from those who only follow the children. */
  private void look(final SparkPlan plan) {
    if (plan instanceof AdaptiveSparkPlanExec adaptive) {
      look(adaptive.executedPlan());
    } else if (plan instanceof QueryStageExec stage) {
      look(stage.plan());
    } else if (plan instanceof ReusedExchangeExec reused) {
      look(reused.child());
    } else if (!isShared(plan) || seen.add(plan)) {
      note(new PlanNode(plan));
      ScalaLists.get(SparkPlan.class, plan, "children").forEach(this::look);
      ScalaLists.get(SparkPlan.class, plan, "subqueries").forEach(this::look);
    }
  }

  private static boolean isShared(final SparkPlan plan) {
    return plan instanceof org.apache.spark.sql.execution.exchange.Exchange
        || plan instanceof BaseSubqueryExec;
  }

  private void note(final PlanNode node) {
    if (node.isJoin()) {
      joins.add(node.join());
    } else if (node.isShuffle()) {
      shuffles.add(node.exchange());
    } else if (node.isBroadcast()) {
      broadcasts.add(node.exchange());
    } else if (node.isRead()) {
      reads.add(node.read());
    }
  }

  @Override
  public String toString() {
    return toMap().toString();
  }
}
