package io.zerohop.workload;

import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.execution.CoalescedMapperPartitionSpec;
import org.apache.spark.sql.execution.CoalescedPartitionSpec;
import org.apache.spark.sql.execution.PartialMapperPartitionSpec;
import org.apache.spark.sql.execution.PartialReducerPartitionSpec;
import org.apache.spark.sql.execution.ShufflePartitionSpec;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.Seq;

/**
 * What one node of a physical plan says of itself: known by the name of its class, with {@code Gpu}
 * before it or without, and by what it was made with, so that RAPIDS need not be there.
 */
final class PlanNode {
  private static final Pattern SIDE = Pattern.compile("(?:Gpu)?Build(Left|Right)\\$?");
  private static final Pattern READ =
      Pattern.compile("AQEShuffleReadExec|GpuCustomShuffleReaderExec");
  private static final String UNKNOWN = "";

  private final SparkPlan plan;
  private final String name;
  private final List<Object> made;

  PlanNode(final SparkPlan plan) {
    this.plan = plan;
    this.name = plan.getClass().getSimpleName();
    this.made = ScalaLists.of(plan.productIterator());
  }

  boolean isShuffle() {
    return name.endsWith("ShuffleExchangeExec");
  }

  boolean isBroadcast() {
    return name.endsWith("BroadcastExchangeExec");
  }

  boolean isRead() {
    return READ.matcher(name).matches();
  }

  boolean isJoin() {
    return name.endsWith("CartesianProductExec") || name.contains("Join") && !joinType().isEmpty();
  }

  /** A join's class, its type and the side that it builds from, as far as it has them. */
  String join() {
    return String.join(" ", List.of(name, joinType(), side())).strip();
  }

  PlanShape.Exchange exchange() {
    final Optional<Long> rows = metric("numOutputRows").or(() -> metric("shuffleRecordsWritten"));
    return new PlanShape.Exchange(
        name,
        plan.outputPartitioning().numPartitions(),
        metric("dataSize").orElse(0L),
        rows.orElse(null));
  }

  PlanShape.Read read() {
    final List<ShufflePartitionSpec> specs =
        made.stream()
            .filter(Seq.class::isInstance)
            .flatMap(many -> ScalaLists.of(many).stream())
            .filter(ShufflePartitionSpec.class::isInstance)
            .map(ShufflePartitionSpec.class::cast)
            .toList();
    return new PlanShape.Read(
        specs.size(),
        specs.stream().anyMatch(PlanNode::isLocal),
        specs.stream().anyMatch(PlanNode::isCoalesced),
        specs.stream().anyMatch(PartialReducerPartitionSpec.class::isInstance));
  }

  private Optional<Long> metric(final String metric) {
    return plan.metrics().contains(metric)
        ? Optional.of((Long) plan.metrics().apply(metric).value())
        : Optional.empty();
  }

  /** By its class, since an existence join's text has an expression's number. */
  private String joinType() {
    return made.stream()
        .filter(JoinType.class::isInstance)
        .map(type -> type.getClass().getSimpleName().replace("$", ""))
        .findFirst()
        .orElse(UNKNOWN);
  }

  private String side() {
    return made.stream()
        .filter(part -> part != null)
        .map(part -> SIDE.matcher(part.getClass().getSimpleName()))
        .filter(Matcher::matches)
        .map(side -> "Build" + side.group(1))
        .findFirst()
        .orElse(UNKNOWN);
  }

  private static boolean isLocal(final ShufflePartitionSpec spec) {
    return spec instanceof PartialMapperPartitionSpec
        || spec instanceof CoalescedMapperPartitionSpec;
  }

  private static boolean isCoalesced(final ShufflePartitionSpec spec) {
    return spec instanceof CoalescedPartitionSpec some
        && some.endReducerIndex() - some.startReducerIndex() > 1;
  }
}
