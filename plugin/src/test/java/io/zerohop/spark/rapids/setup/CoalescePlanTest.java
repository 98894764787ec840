package io.zerohop.spark.rapids.setup;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.nvidia.spark.rapids.GpuExec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.rapids.shims.GpuShuffleExchangeExec;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.execution.CoalescedPartitionSpec;
import org.apache.spark.sql.execution.PartialReducerPartitionSpec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.ResultQueryStageExec;
import org.apache.spark.sql.execution.exchange.REBALANCE_PARTITIONS_BY_COL$;
import org.apache.spark.sql.execution.exchange.REPARTITION_BY_COL$;
import org.apache.spark.sql.execution.exchange.REPARTITION_BY_NUM$;
import org.apache.spark.sql.execution.exchange.ShuffleOrigin;
import org.apache.spark.sql.rapids.execution.GpuCustomShuffleReaderExec;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import scala.Option;
import scala.collection.Seq;
import scala.collection.immutable.IndexedSeq;
import scala.jdk.javaapi.CollectionConverters;

/** Shuffles of Spark's that have run, below operators that stand for RAPIDS'. */
class CoalescePlanTest {
  private static final String SMALL = "spark.sql.adaptive.coalescePartitions.minPartitionSize";
  private static final int CORES = 8;
  private static SparkSession spark;
  private static List<AQEShuffleReadExec> joined;
  private static List<AQEShuffleReadExec> repartitioned;

  /** Runs on the GPU. */
  private static class OnGpu extends PlanNode implements GpuExec {
    private OnGpu(final SparkPlan... children) {
      super(children);
    }

    @Override
    protected SparkPlan again(final SparkPlan... replaced) {
      return new OnGpu(replaced);
    }
  }

  /** The same, and Python works for it. */
  private static final class GpuArrowEvalPythonExec extends OnGpu {
    private GpuArrowEvalPythonExec(final SparkPlan child) {
      super(child);
    }
  }

  /** The same, with each row of one side beside each of the other. */
  private static final class GpuCartesianProductExec extends OnGpu {
    private GpuCartesianProductExec(final SparkPlan... sides) {
      super(sides);
    }
  }

  /** The same, and it evaluates an expression. */
  private static final class GpuProjectExec extends OnGpu {
    private final Expression expression;

    private GpuProjectExec(final Expression expression, final SparkPlan child) {
      super(child);
      this.expression = expression;
    }

    @Override
    public int productArity() {
      return 1;
    }

    @Override
    public Object productElement(final int index) {
      return expression;
    }

    @Override
    protected SparkPlan again(final SparkPlan... replaced) {
      return new GpuProjectExec(expression, replaced[0]);
    }
  }

  /** A function. */
  private static class GpuFunction extends Expression {
    @Override
    public boolean nullable() {
      return false;
    }

    @Override
    public Object eval(final InternalRow input) {
      throw new UnsupportedOperationException("it is never run");
    }

    @Override
    public ExprCode doGenCode(final CodegenContext context, final ExprCode code) {
      throw new UnsupportedOperationException("it is never run");
    }

    @Override
    public DataType dataType() {
      return DataTypes.IntegerType;
    }

    @Override
    public scala.collection.immutable.Seq<Expression> children() {
      return CollectionConverters.asScala(List.<Expression>of()).toSeq();
    }

    @Override
    public Expression withNewChildrenInternal(final IndexedSeq<Expression> children) {
      return this;
    }

    @Override
    public int productArity() {
      return 0;
    }

    @Override
    public Object productElement(final int index) {
      throw new IndexOutOfBoundsException(index);
    }

    @Override
    public boolean canEqual(final Object other) {
      return other == this;
    }
  }

  /** A function that takes one row after the other. */
  private static final class GpuRowBasedScalaUDF extends GpuFunction {}

  @BeforeAll
  static void run() {
    spark =
        SparkSession.builder()
            .master("local[" + CORES + "]")
            .appName("plans")
            .config("spark.ui.enabled", "false")
            .config("spark.zerohop.internal.rapids", "true")
            .config("spark.sql.shuffle.partitions", "40")
            .config("spark.sql.autoBroadcastJoinThreshold", "-1")
            .getOrCreate();
    spark.conf().set(SMALL, "1b");
    final Dataset<Row> rows = spark.range(0, 10_000, 1, 4).select(col("id"), expr("id % 997 AS k"));
    final Dataset<Row> counts = rows.groupBy("k").count();
    joined = reads(rows.join(counts, "k"));
    repartitioned = reads(rows.repartition(col("k")));
    spark.conf().unset(SMALL);
  }

  @AfterAll
  static void stop() {
    spark.stop();
  }

  @AfterEach
  void unset() {
    spark.conf().unset(CoalesceRule.KEY);
    spark.conf().unset(SMALL);
  }

  private static List<AQEShuffleReadExec> reads(final Dataset<Row> query) {
    query.collectAsList();
    final List<AQEShuffleReadExec> reads = new ArrayList<>();
    collect(((AdaptiveSparkPlanExec) query.queryExecution().executedPlan()).executedPlan(), reads);
    assertThat(reads).isNotEmpty();
    return reads;
  }

  private static void collect(final SparkPlan plan, final List<AQEShuffleReadExec> to) {
    if (plan instanceof AQEShuffleReadExec read) {
      to.add(read);
    }
    if (plan instanceof ResultQueryStageExec last) {
      collect(last.plan(), to);
    }
    CollectionConverters.asJava(plan.children()).forEach(child -> collect(child, to));
  }

  private static SparkPlan[] onGpu(final List<AQEShuffleReadExec> reads) {
    return reads.stream()
        .map(read -> new GpuCustomShuffleReaderExec(read.child(), read.partitionSpecs()))
        .toArray(SparkPlan[]::new);
  }

  /** How many tasks each read has once the rule has seen the plan. */
  private static List<Integer> tasks(final SparkPlan plan) {
    return found(ruled(plan)).stream().map(read -> read.specs().length()).toList();
  }

  /** Each test may have a thread of its own, and Spark's rules find their session by it. */
  private static SparkPlan ruled(final SparkPlan plan) {
    SparkSession.setActiveSession(spark);
    return new CoalesceRule().apply(plan);
  }

  private static List<GpuCustomShuffleReaderExec> found(final SparkPlan plan) {
    final List<GpuCustomShuffleReaderExec> reads = new ArrayList<>();
    plan.foreach(
        node -> {
          if (node instanceof GpuCustomShuffleReaderExec read) {
            reads.add(read);
          }
          return null;
        });
    return reads;
  }

  private static List<Integer> asTheyWere(final SparkPlan... reads) {
    return Arrays.stream(reads)
        .map(read -> ((GpuCustomShuffleReaderExec) read).specs().length())
        .toList();
  }

  @Test
  void bothSidesOfAJoinAreReadByFewerTasksOfTheSameRanges() {
    final SparkPlan[] reads = onGpu(joined);
    assertThat(reads).hasSize(2);
    assertThat(asTheyWere(reads)).allMatch(tasks -> tasks >= CORES);
    assertThat(tasks(new GpuShuffleExchangeExec(new OnGpu(reads)))).containsExactly(1, 1);

    spark.conf().set(CoalesceRule.KEY, "60000");
    final List<GpuCustomShuffleReaderExec> some =
        found(ruled(new GpuShuffleExchangeExec(new OnGpu(reads))));
    assertThat(some.get(0).specs().length()).isBetween(2, CORES);
    assertThat(ranges(some.get(0))).isEqualTo(ranges(some.get(1)));
    assertThat(partitions(some.get(0)))
        .isEqualTo(partitions((GpuCustomShuffleReaderExec) reads[0]));
  }

  private static List<CoalesceRule.Range> ranges(final GpuCustomShuffleReaderExec read) {
    return CollectionConverters.asJava(read.specs()).stream()
        .map(CoalescedPartitionSpec.class::cast)
        .map(spec -> new CoalesceRule.Range(spec.startReducerIndex(), spec.endReducerIndex()))
        .toList();
  }

  private static List<Integer> partitions(final GpuCustomShuffleReaderExec read) {
    return ranges(read).stream()
        .flatMap(range -> IntStream.range(range.start(), range.end()).boxed())
        .toList();
  }

  @Test
  void aLastStageHasSparksTasks() {
    final SparkPlan[] reads = onGpu(joined);
    assertThat(tasks(new OnGpu(reads))).isEqualTo(asTheyWere(reads));
    assertThat(tasks(new OnGpu(new GpuShuffleExchangeExec(new OnGpu(reads)))))
        .containsExactly(1, 1);
  }

  @Test
  void stagesThatNeedCoresHaveSparksTasks() {
    final SparkPlan[] reads = onGpu(joined);
    final List<Integer> all = asTheyWere(reads);
    final SparkPlan join = new OnGpu(reads);
    assertThat(tasks(new GpuShuffleExchangeExec(new OnGpu(new PlanNode(reads))))).isEqualTo(all);
    assertThat(tasks(new GpuShuffleExchangeExec(new GpuArrowEvalPythonExec(join)))).isEqualTo(all);
    assertThat(
            tasks(new GpuShuffleExchangeExec(new GpuProjectExec(new GpuRowBasedScalaUDF(), join))))
        .isEqualTo(all);
    assertThat(tasks(new GpuShuffleExchangeExec(new GpuProjectExec(new GpuFunction(), join))))
        .containsExactly(1, 1);
  }

  @Test
  void nestedLoopsHaveSparksTasks() {
    final SparkPlan[] reads = onGpu(joined);
    assertThat(tasks(new GpuShuffleExchangeExec(new GpuCartesianProductExec(reads))))
        .isEqualTo(asTheyWere(reads));
  }

  @Test
  void partitionsThatTheUserAskedForStayApart() {
    final SparkPlan[] reads = onGpu(repartitioned);
    assertThat(tasks(new GpuShuffleExchangeExec(new OnGpu(reads)))).isEqualTo(asTheyWere(reads));
  }

  /** Spark splits a partition of a rebalance between the tasks that wrote it. */
  @Test
  void whatAUserAskedForIsWrittenBySparksTasks() {
    final SparkPlan[] reads = onGpu(joined);
    for (final Object origin :
        List.of(
            REBALANCE_PARTITIONS_BY_COL$.MODULE$,
            REPARTITION_BY_COL$.MODULE$,
            REPARTITION_BY_NUM$.MODULE$)) {
      final SparkPlan exchange =
          new GpuShuffleExchangeExec((ShuffleOrigin) origin, new OnGpu(reads));
      assertThat(tasks(exchange)).as(origin.toString()).isEqualTo(asTheyWere(reads));
    }
  }

  @Test
  void aShuffleThatSparkDidNotCoalesceKeepsTheOthersApart() {
    final SparkPlan[] reads = onGpu(joined);
    final SparkPlan stage = joined.get(1).child();
    assertThat(tasks(new GpuShuffleExchangeExec(new OnGpu(reads[0], stage))))
        .isEqualTo(asTheyWere(reads[0]));
    final Seq<?> skewed =
        CollectionConverters.asScala(
                List.of(
                    new PartialReducerPartitionSpec(0, 0, 2, 10),
                    new PartialReducerPartitionSpec(0, 2, 4, 10),
                    new CoalescedPartitionSpec(1, 40, Option.empty())))
            .toSeq();
    assertThat(
            tasks(
                new GpuShuffleExchangeExec(
                    new OnGpu(new GpuCustomShuffleReaderExec(stage, skewed)))))
        .containsExactly(3);
  }

  @Test
  void branchesOfAUnionAreCoalescedEachByItself() {
    final SparkPlan[] reads = onGpu(joined);
    final Seq<?> others =
        CollectionConverters.asScala(
                List.of(
                    new CoalescedPartitionSpec(0, 3, Option.empty()),
                    new CoalescedPartitionSpec(3, 40, Option.empty())))
            .toSeq();
    final SparkPlan other = new GpuCustomShuffleReaderExec(joined.get(0).child(), others);
    assertThat(tasks(new GpuShuffleExchangeExec(new OnGpu(new OnGpu(reads), other))))
        .containsExactly(1, 1, 1);
  }

  @Test
  void branchesOfAUnionShareTheMaximum() {
    final SparkPlan read = onGpu(joined)[0];
    final SparkPlan alone = new GpuShuffleExchangeExec(new OnGpu(read));
    final SparkPlan[] branches = new SparkPlan[4];
    for (int i = 0; i < branches.length; i++) {
      branches[i] =
          new GpuCustomShuffleReaderExec(
              joined.get(0).child(), joined.get(0).partitionSpecs().drop(i).toSeq());
    }
    spark.conf().set(CoalesceRule.KEY, "60000");
    final int least = tasks(alone).get(0);
    assertThat(tasks(new GpuShuffleExchangeExec(new OnGpu(branches))).get(0))
        .isGreaterThan(2 * least);
  }

  @Test
  void settingsTurnItOff() {
    final SparkPlan[] reads = onGpu(joined);
    final SparkPlan plan = new GpuShuffleExchangeExec(new OnGpu(reads));
    spark.conf().set(CoalesceRule.KEY, "0");
    assertThat(tasks(plan)).isEqualTo(asTheyWere(reads));
    spark.conf().unset(CoalesceRule.KEY);
    spark.conf().set(SMALL, "1m");
    assertThat(tasks(plan)).as("the user decides").isEqualTo(asTheyWere(reads));
    spark.conf().unset(SMALL);
    assertThat(tasks(plan)).containsExactly(1, 1);
  }

  @Test
  void aSizeThatIsNoneIsNamedWithItsKey() {
    spark.conf().set(CoalesceRule.KEY, "much");
    assertThatThrownBy(() -> tasks(new GpuShuffleExchangeExec(new OnGpu(onGpu(joined)))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(CoalesceRule.KEY + "=much");
  }
}
