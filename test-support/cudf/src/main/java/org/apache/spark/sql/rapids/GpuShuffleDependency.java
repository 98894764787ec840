package org.apache.spark.sql.rapids;

import org.apache.spark.HashPartitioner;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.rdd.RDD;
import org.apache.spark.shuffle.ShuffleWriteProcessor;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;
import scala.Product2;
import scala.collection.immutable.Map;
import scala.reflect.ClassTag;

/** As RAPIDS': an exchange of batches. */
public final class GpuShuffleDependency
    extends ShuffleDependency<Integer, ColumnarBatch, ColumnarBatch> {
  private static final long serialVersionUID = 1;
  private final transient DataType[] types;
  private final transient Map<String, SQLMetric> metrics;
  private final boolean usesGpu;

  public GpuShuffleDependency(
      final RDD<Product2<Integer, ColumnarBatch>> rdd,
      final int partitions,
      final DataType[] types,
      final Map<String, SQLMetric> metrics,
      final boolean usesGpu) {
    super(
        rdd,
        new HashPartitioner(partitions),
        SparkEnv.get().serializer(),
        Option.empty(),
        Option.empty(),
        false,
        new ShuffleWriteProcessor(),
        ClassTag.apply(Integer.class),
        ClassTag.apply(ColumnarBatch.class),
        ClassTag.apply(ColumnarBatch.class));
    this.types = types;
    this.metrics = metrics;
    this.usesGpu = usesGpu;
  }

  public boolean useGPUShuffle() {
    return usesGpu;
  }

  public DataType[] sparkTypes() {
    return types;
  }

  public Map<String, SQLMetric> metrics() {
    return metrics;
  }
}
