package com.nvidia.spark.rapids;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** As {@link ShimLoader}. */
public class GpuSorter implements Serializable {
  private static final long serialVersionUID = 1;

  public GpuSorter(
      final Seq<SortOrder> ordering,
      final Seq<Attribute> input,
      final Map<String, GpuMetric> metrics) {
    throw new AssertionError("a stand-in for the compiler");
  }
}
