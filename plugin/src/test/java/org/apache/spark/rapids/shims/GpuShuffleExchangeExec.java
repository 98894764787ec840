package org.apache.spark.rapids.shims;

import com.nvidia.spark.rapids.GpuExec;
import io.zerohop.spark.rapids.setup.PlanNode;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.FutureAction;
import org.apache.spark.MapOutputStatistics;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.execution.ShufflePartitionSpec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ENSURE_REQUIREMENTS$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.sql.execution.exchange.ShuffleOrigin;
import scala.Option;
import scala.concurrent.Future;

/** Stands for RAPIDS' exchange. It is never run. */
public final class GpuShuffleExchangeExec extends PlanNode implements GpuExec, ShuffleExchangeLike {
  private final ShuffleOrigin origin;

  /** One that Spark needs itself. */
  public GpuShuffleExchangeExec(final SparkPlan... child) {
    this((ShuffleOrigin) (Object) ENSURE_REQUIREMENTS$.MODULE$, child);
  }

  public GpuShuffleExchangeExec(final ShuffleOrigin origin, final SparkPlan... child) {
    super(child);
    this.origin = origin;
  }

  @Override
  protected SparkPlan again(final SparkPlan... replaced) {
    return new GpuShuffleExchangeExec(origin, replaced);
  }

  @Override
  public ShuffleOrigin shuffleOrigin() {
    return origin;
  }

  @Override
  public Option<Object> advisoryPartitionSize() {
    return Option.empty();
  }

  @Override
  public int numMappers() {
    throw neverRun();
  }

  @Override
  public int numPartitions() {
    throw neverRun();
  }

  @Override
  public int shuffleId() {
    throw neverRun();
  }

  @Override
  public Future<MapOutputStatistics> mapOutputStatisticsFuture() {
    throw neverRun();
  }

  @Override
  public RDD<?> getShuffleRDD(final ShufflePartitionSpec[] specs) {
    throw neverRun();
  }

  @Override
  public Statistics runtimeStatistics() {
    throw neverRun();
  }

  @Override
  public AtomicReference<Option<FutureAction<MapOutputStatistics>>> futureAction() {
    throw neverRun();
  }

  // What a Scala trait has for its fields.

  @Override
  public void org$apache$spark$sql$execution$exchange$ShuffleExchangeLike$_setter_$futureAction_$eq(
      final AtomicReference<Option<FutureAction<MapOutputStatistics>>> action) {
    throw neverRun();
  }

  @Override
  public boolean org$apache$spark$sql$execution$exchange$ShuffleExchangeLike$$isCancelled() {
    throw neverRun();
  }

  @Override
  public void org$apache$spark$sql$execution$exchange$ShuffleExchangeLike$$isCancelled_$eq(
      final boolean cancelled) {
    throw neverRun();
  }

  private static UnsupportedOperationException neverRun() {
    return new UnsupportedOperationException("it is never run");
  }
}
